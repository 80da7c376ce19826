/* The maths that RDNA has instructions for, f32: "RDNA3" and "RDNA4" ISA guides, VOP1. They have an
 * error of 1 ulp and flush subnormal operands and results to 0. LLVM scales the operand and the
 * result where that matters; exp2 and rcp are the bare instructions.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/amdgcn/amdgcn.h"

/* Allows LLVM an error of 2.5 ulp: it then takes the instruction, of 1 ulp, instead of a sequence
 * of its own that rounds correctly. Its quotient has at most 2.5, too. */
static LLVMValueRef allow_error(tcc_lower *l, LLVMValueRef v)
{
    LLVMMetadataRef ulps = LLVMValueAsMetadata(LLVMConstReal(l->types[TCC_f32], 2.5));
    if (!LLVMIsAInstruction(v))
        return v;
    tcc_amdgcn_attach(l, v, "fpmath", 1, &ulps);
    LLVMSetFastMathFlags(v, LLVMFastMathAllowContract); /* 1 / sqrt is one instruction */
    return v;
}

static LLVMValueRef square_root(tcc_lower *l, LLVMValueRef x)
{
    return allow_error(l, tcc_lower_intrinsic(l, "llvm.sqrt", l->types[TCC_f32], 1, &x));
}

static LLVMValueRef quotient(tcc_lower *l, LLVMValueRef a, LLVMValueRef b)
{
    return allow_error(l, LLVMBuildFDiv(l->builder, a, b, ""));
}

LLVMValueRef tcc_amdgcn_math(tcc_lower *l, tcc_opcode code, const LLVMValueRef *args)
{
    LLVMTypeRef f32 = l->types[TCC_f32];
    switch (code) {
    case TCC_OP_arith_div: return quotient(l, args[0], args[1]);
    case TCC_OP_math_rcp: /* 1 ulp; takes and gives subnormals as 0 */
        return tcc_lower_intrinsic(l, "llvm.amdgcn.rcp", f32, 1, args);
    case TCC_OP_math_exp2: /* 1 ulp; takes and gives subnormals as 0 */
        return tcc_lower_intrinsic(l, "llvm.amdgcn.exp2", f32, 1, args);
    case TCC_OP_math_log2: /* 1 ulp, scaled for subnormals */
        return tcc_lower_intrinsic(l, "llvm.log2", f32, 1, args);
    case TCC_OP_math_sqrt: return square_root(l, args[0]);
    case TCC_OP_math_rsqrt: return quotient(l, LLVMConstReal(f32, 1), square_root(l, args[0]));
    default: return NULL;
    }
}
