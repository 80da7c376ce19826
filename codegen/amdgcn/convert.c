/* Conversions of 8-bit floats, which RDNA4 has, two at a time: RDNA4 ISA, V_CVT_PK_F32_FP8 and its
 * kin. What is too large becomes NaN or, e5m2, an infinity: the mode FP16_OVFL, which would make it
 * the largest number, is off.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/amdgcn/amdgcn.h"

enum { PER_PAIR = 2 };

static LLVMValueRef is_upper(const tcc_lower *l, unsigned element)
{
    return LLVMConstInt(l->types[TCC_i1], element != 0, false);
}

void tcc_amdgcn_fp8_to_f32(tcc_lower *l, tcc_scalar from, LLVMValueRef word, LLVMValueRef *out)
{
    const char *name =
        from == TCC_e4m3 ? "llvm.amdgcn.cvt.pk.f32.fp8" : "llvm.amdgcn.cvt.pk.f32.bf8";
    for (unsigned i = 0; i < TCC_AMDGCN_FP8_AT_ONCE; i += PER_PAIR) {
        LLVMValueRef pair = tcc_lower_intrinsic(l, name, NULL, 2, (LLVMValueRef[]){word, is_upper(l, i)});
        for (unsigned k = 0; k < PER_PAIR; k++)
            out[i + k] = LLVMBuildExtractElement(l->builder, pair, tcc_lower_i32(l, k), "");
    }
}

LLVMValueRef tcc_amdgcn_f32_to_fp8(tcc_lower *l, tcc_scalar to, const LLVMValueRef *in)
{
    const char *name = to == TCC_e4m3 ? "llvm.amdgcn.cvt.pk.fp8.f32" : "llvm.amdgcn.cvt.pk.bf8.f32";
    LLVMValueRef word = LLVMGetPoison(l->types[TCC_i32]);
    for (unsigned i = 0; i < TCC_AMDGCN_FP8_AT_ONCE; i += PER_PAIR)
        word = tcc_lower_intrinsic(l, name, NULL, 4, (LLVMValueRef[]){in[i], in[i + 1], word, is_upper(l, i)});
    return word;
}
