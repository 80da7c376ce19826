/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/emit.h"

#include "support/str.h"

enum { NVIDIA = 1 << TCC_VENDOR_NVIDIA, AMD = 1 << TCC_VENDOR_AMD, ANY = ~0 };

static const struct {
    const char *name;
    int vendors; /* a bit for each */
    bool is_ir;
} kinds[TCC_EMIT_COUNT] = {
    [TCC_EMIT_DEFAULT] = {"default", ANY, false}, [TCC_EMIT_IR] = {"ir", ANY, true},
    [TCC_EMIT_TIR] = {"tir", ANY, true},         [TCC_EMIT_LLVM] = {"llvm", ANY, false},
    [TCC_EMIT_CUBIN] = {"cubin", NVIDIA, false}, [TCC_EMIT_MANIFEST] = {"manifest", ANY, false},
    [TCC_EMIT_TILE] = {"tile", ANY, true},       [TCC_EMIT_ASYNC] = {"async", ANY, true},
    [TCC_EMIT_ASM] = {"asm", ANY, false},        [TCC_EMIT_OBJ] = {"obj", AMD, false},
    [TCC_EMIT_HSACO] = {"hsaco", AMD, false},     [TCC_EMIT_PTX] = {"ptx", NVIDIA, false},
    [TCC_EMIT_SASS] = {"sass", NVIDIA, false},
};

const char *tcc_emit_name(tcc_emit emit)
{
    return (unsigned)emit < TCC_EMIT_COUNT ? kinds[emit].name : NULL;
}

bool tcc_emit_is_ir(tcc_emit emit)
{
    return kinds[emit].is_ir;
}

/* A vendor's default, and all that it has. */
typedef struct outputs {
    tcc_emit otherwise;
    const char *kinds;
} outputs;
static const outputs outputs_NVIDIA = {TCC_EMIT_PTX, "ptx, cubin, asm and sass"};
static const outputs outputs_AMD = {TCC_EMIT_HSACO, "asm, obj and hsaco"};

static const outputs *outputs_of(const tcc_target *target)
{
    static const outputs *const of_vendors[] = {
#define VENDOR(id) &outputs_##id,
        TCC_VENDORS(VENDOR)
#undef VENDOR
    };
    return of_vendors[tcc_target_vendor(target)];
}

tcc_emit tcc_target_emit(const char *target)
{
    const tcc_target *t = target ? tcc_target_find(target) : NULL;
    return t ? outputs_of(t)->otherwise : TCC_EMIT_PTX;
}

tcc_status tcc_emit_check(tcc_emit emit, const tcc_target *target, tcc_diag *diag)
{
    const tcc_loc nowhere = {0, 0};
    if ((unsigned)emit >= TCC_EMIT_COUNT) {
        tcc_error(diag, TCC_ERR_ARGUMENT, nowhere, "unknown kind of output: %d", (int)emit);
        return TCC_ERR_ARGUMENT;
    }
    if (kinds[emit].vendors >> tcc_target_vendor(target) & 1)
        return TCC_OK;
    tcc_error(diag, TCC_ERR_ARGUMENT, nowhere, "no %s for %s: its kinds of output are %s", kinds[emit].name,
              target->name, outputs_of(target)->kinds);
    return TCC_ERR_ARGUMENT;
}
