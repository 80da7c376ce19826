/* lds: LDS of AMD's workgroups, as interp/amdgcn.c has it.
 *
 * A wave's accesses are an actor whose clock is the number of times that the wave has waited for
 * all of them. An access has the number of the next wait: at a barrier the wave hands on only what
 * it has waited for. A wait that leaves some unfinished is taken for none.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

static tcc_presult access_lds(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                              const tcc_type *type, bool write)
{
    const tcc_pvalue *at = tcc_p_slot(p, s, warp, in->operands[0]);
    if (!tcc_p_access_lanes(p, s, warp, in, at, tcc_p_bytes_of(type), write, false))
        return TCC_P_FAILED;
    if (!write && in->results[0] != TCC_P_NO_SLOT)
        *tcc_p_slot(p, s, warp, in->results[0]) = (tcc_pvalue){.kind = TCC_P_UNKNOWN};
    return TCC_P_NEXT;
}

tcc_presult tcc_p_amdgcn_ds_load(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return access_lds(p, s, warp, in, in->op->results[0].type, false);
}

tcc_presult tcc_p_amdgcn_ds_store(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                  const tcc_pinst *in)
{
    return access_lds(p, s, warp, in, in->op->operands[1]->type, true);
}

tcc_presult tcc_p_amdgcn_waitcnt(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    if (tcc_attr_int(&in->op->attrs, "ds", 1) == 0) {
        tcc_p_seen(p, s, warp)[tcc_p_bulk_actor(p, warp)]++;
        tcc_p_log(p, s, warp, in, -1, 0);
    }
    return TCC_P_NEXT;
}

tcc_presult tcc_p_amdgcn_s_barrier(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                   const tcc_pinst *in)
{
    return tcc_p_meet(p, s, warp, in, 0, (int64_t)p->n_warps * p->n_lanes);
}
