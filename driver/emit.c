/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/emit.h"

#include "support/str.h"

enum { NVIDIA = 1, AMD = 2, ANY = NVIDIA | AMD };

static const struct {
    const char *name;
    int vendors;
    bool is_ir;
} kinds[TCC_EMIT_COUNT] = {
    [TCC_EMIT_DEFAULT] = {"default", ANY, false}, [TCC_EMIT_IR] = {"ir", ANY, true},
    [TCC_EMIT_TIR] = {"tir", ANY, true},         [TCC_EMIT_LLVM] = {"llvm", ANY, false},
    [TCC_EMIT_CUBIN] = {"cubin", NVIDIA, false}, [TCC_EMIT_MANIFEST] = {"manifest", ANY, false},
    [TCC_EMIT_TILE] = {"tile", ANY, true},       [TCC_EMIT_ASYNC] = {"async", ANY, true},
    [TCC_EMIT_ASM] = {"asm", ANY, false},        [TCC_EMIT_OBJ] = {"obj", AMD, false},
    [TCC_EMIT_HSACO] = {"hsaco", AMD, false},     [TCC_EMIT_PTX] = {"ptx", NVIDIA, false},
};

const char *tcc_emit_name(tcc_emit emit)
{
    return (unsigned)emit < TCC_EMIT_COUNT ? kinds[emit].name : NULL;
}

bool tcc_emit_is_ir(tcc_emit emit)
{
    return kinds[emit].is_ir;
}

static int vendor_of(const tcc_target *target)
{
    static const int vendors[TCC_FAMILY_COUNT] = {
        [TCC_FAMILY_SM90] = NVIDIA, [TCC_FAMILY_GFX11] = AMD, [TCC_FAMILY_GFX12] = AMD};
    return vendors[target->family];
}

tcc_emit tcc_target_emit(const char *target)
{
    const tcc_target *t = target ? tcc_target_find(target) : NULL;
    return t && vendor_of(t) == AMD ? TCC_EMIT_HSACO : TCC_EMIT_PTX;
}

tcc_status tcc_emit_check(tcc_emit emit, const tcc_target *target, tcc_diag *diag)
{
    const tcc_loc nowhere = {0, 0};
    if ((unsigned)emit >= TCC_EMIT_COUNT) {
        tcc_error(diag, TCC_ERR_ARGUMENT, nowhere, "no kind of output has number %d", (int)emit);
        return TCC_ERR_ARGUMENT;
    }
    int vendor = vendor_of(target);
    if (kinds[emit].vendors == ANY || (kinds[emit].vendors & vendor))
        return TCC_OK;
    if (!vendor)
        return tcc_target_lacks(target, "driver/emit.c", diag, nowhere);
    tcc_error(diag, TCC_ERR_ARGUMENT, nowhere, "no %s is made for %s: it has %s", kinds[emit].name,
              target->name, vendor == AMD ? "asm, obj and hsaco" : "ptx, cubin and asm");
    return TCC_ERR_ARGUMENT;
}
