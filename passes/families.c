/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/families.h"

#include <assert.h>

#include "passes/passes.h"

/* All properties of a family: an incomplete row does not compile. */
#define PASSES(id, pipeline, copying, schedule, choose, choose_generic, fill, menu, has_room, counts_pressure, \
               may_lack, lay_out, hold, lanes_give)                                               \
    static const tcc_family_passes passes_##id = {                                                 \
        pipeline, copying, schedule, choose, choose_generic, fill, menu, has_room, counts_pressure,           \
        may_lack, lay_out, hold, lanes_give};

PASSES(sm90, tcc_pipeline_to_nvvm, &tcc_copying_by_tma, &tcc_schedule_of_warpgroups,
       tcc_sm90_choose, tcc_sm90_choose_generic, tcc_sm90_fill, &tcc_tile_menu_of_warpgroups, tcc_sm90_has_room, true,
       NULL, tcc_lay_out_swizzled, tcc_hold_by_warpgroups, true)
PASSES(warps, tcc_pipeline_to_nvvm, &tcc_copying_by_threads, &tcc_schedule_of_warps,
       tcc_warps_choose, tcc_warps_choose_generic, tcc_warps_fill, &tcc_tile_menu_of_warps, tcc_warps_has_room, false,
       tcc_warps_may_lack, tcc_lay_out_for_warps, tcc_hold_by_warps, true)
PASSES(warps_by_registers, tcc_pipeline_to_nvvm, &tcc_copying_by_registers, &tcc_schedule_of_warps,
       tcc_warps_choose, tcc_warps_choose_generic, tcc_warps_fill, &tcc_tile_menu_of_warps, tcc_warps_has_room, false,
       tcc_warps_may_lack, tcc_lay_out_for_warps, tcc_hold_by_warps, true)
PASSES(rdna, tcc_pipeline_to_amdgcn, &tcc_copying_by_buffer, &tcc_schedule_of_waves,
       tcc_rdna_choose, tcc_rdna_choose_generic, tcc_rdna_fill, &tcc_tile_menu_of_waves, tcc_rdna_has_room, false,
       NULL, tcc_lay_out_in_panels, tcc_hold_by_waves, false)

/* The capabilities that those passes use. */
#define CAN TCC_CAN
enum {
    NEEDED_BY_sm90 = CAN(tma) | CAN(mbarrier) | CAN(wgmma) | CAN(setmaxnreg) | CAN(ldmatrix) |
                     CAN(stmatrix),
    NEEDED_BY_warps = CAN(mma_sync) | CAN(fma) | CAN(cp_async) | CAN(ldmatrix),
    NEEDED_BY_warps_by_registers = CAN(fma),
    NEEDED_BY_rdna = CAN(wmma) | CAN(buffer),
    NEEDED_BY_none = 0
};
#define FAMILY(id, vendor, passes, capabilities)                                                   \
    static_assert((NEEDED_BY_##passes & ~(capabilities)) == 0,                                     \
                  #id " cannot do all that the passes of " #passes " use");
#include "ir/families.def"

#define passes_none (*(const tcc_family_passes *)0)
static const tcc_family_passes *const families[] = {
#define FAMILY(id, vendor, passes, capabilities) &passes_##passes,
#include "ir/families.def"
};

const tcc_family_passes *tcc_family_passes_of(const tcc_target *target)
{
    return target ? families[target->family] : NULL;
}

const tcc_family_passes *tcc_family_passes_wanted(const tcc_target *target, tcc_diag *diag,
                                                  tcc_loc loc)
{
    const tcc_family_passes *passes = tcc_family_passes_of(target);
    if (!passes)
        tcc_target_lacks(target, "passes/families.c", diag, loc);
    return passes;
}
