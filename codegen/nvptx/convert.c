/* Conversions of floats that NVIDIA's GPUs multiply and LLVM has no types for. PTX ISA, "Data Movement and Conversion
 * Instructions: cvt".
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>

#include "codegen/nvptx/nvptx.h"

LLVMValueRef tcc_nvptx_round_to_tf32(const tcc_lower *l, LLVMValueRef x)
{
    x = tcc_lower_intrinsic(l, "llvm.nvvm.f2tf32.rna", NULL, 1, &x);
    return LLVMBuildBitCast(l->builder, x, l->types[TCC_f32], "");
}

void tcc_nvptx_fp8_to_f32(tcc_lower *l, tcc_scalar from, LLVMValueRef pair, LLVMValueRef *out)
{
    const char *name =
        from == TCC_e4m3 ? "llvm.nvvm.e4m3x2.to.f16x2.rn" : "llvm.nvvm.e5m2x2.to.f16x2.rn";
    LLVMValueRef halves = tcc_lower_intrinsic(l, name, NULL, 1, &pair);
    for (unsigned k = 0; k < TCC_NVPTX_FP8_AT_ONCE; k++) {
        LLVMValueRef half = LLVMBuildExtractElement(l->builder, halves, tcc_lower_i32(l, k), "");
        out[k] = LLVMBuildFPExt(l->builder, half, l->types[TCC_f32], "");
    }
}

/* The instructions give the largest number for all that is beyond it. It is nearest up to the middle between it and
 * what would be the next one, and at that where it is even; what is further becomes NaN or, of e5m2, an infinity. */
static LLVMValueRef beyond(const tcc_lower *l, tcc_scalar to, LLVMValueRef x)
{
    double end = to == TCC_e4m3 ? 464 : 61440;
    LLVMRealPredicate is = to == TCC_e4m3 ? LLVMRealOGT : LLVMRealOGE;
    LLVMValueRef magnitude = tcc_lower_intrinsic(l, "llvm.fabs", l->types[TCC_f32], 1, &x);
    return LLVMBuildFCmp(l->builder, is, magnitude, LLVMConstReal(l->types[TCC_f32], end), "");
}

static LLVMValueRef pair_of(const tcc_lower *l, tcc_scalar to, LLVMValueRef low, LLVMValueRef high)
{
    const char *name = to == TCC_e4m3 ? "llvm.nvvm.ff.to.e4m3x2.rn" : "llvm.nvvm.ff.to.e5m2x2.rn";
    return tcc_lower_intrinsic(l, name, NULL, 2, (LLVMValueRef[]){high, low});
}

LLVMValueRef tcc_nvptx_f32_to_fp8(tcc_lower *l, tcc_scalar to, const LLVMValueRef *in)
{
    enum { BYTE = 8 };
    LLVMBuilderRef b = l->builder;
    LLVMTypeRef i16 = LLVMInt16TypeInContext(l->context);
    if (to == TCC_e4m3) {
        LLVMValueRef x[TCC_NVPTX_FP8_AT_ONCE], nan = LLVMConstReal(l->types[TCC_f32], (double)NAN);
        for (unsigned k = 0; k < TCC_NVPTX_FP8_AT_ONCE; k++)
            x[k] = LLVMBuildSelect(b, beyond(l, to, in[k]), nan, in[k], "");
        return pair_of(l, to, x[0], x[1]);
    }
    /* Infinity is the number after the largest one of the same sign. */
    LLVMValueRef pair = pair_of(l, to, in[0], in[1]);
    for (unsigned k = 0; k < TCC_NVPTX_FP8_AT_ONCE; k++) {
        LLVMValueRef more = LLVMConstInt(i16, UINT64_C(1) << k * BYTE, false), zero = LLVMConstNull(i16);
        pair = LLVMBuildAdd(b, pair, LLVMBuildSelect(b, beyond(l, to, in[k]), more, zero, ""), "");
    }
    return pair;
}
