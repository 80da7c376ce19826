/* The maths that NVIDIA's GPUs have instructions for, f32. PTX ISA, "Floating Point Instructions";
 * errors are the largest relative ones that it states.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/llvm_major.h"
#include "codegen/nvptx/nvptx.h"

LLVMValueRef tcc_nvptx_math(tcc_lower *l, tcc_opcode code, const LLVMValueRef *args)
{
    switch (code) {
    case TCC_OP_arith_div: /* 2 ulp */
        return tcc_lower_intrinsic(l, "llvm.nvvm.div.full", NULL, 2, args);
    case TCC_OP_math_rcp: /* 2^-23; takes and gives subnormals as 0 */
        return tcc_lower_intrinsic(l, "llvm.nvvm.rcp.approx.ftz.f", NULL, 1, args);
    case TCC_OP_math_exp2: /* 2^-22.5; takes and gives subnormals as 0 */
        return TCC_LLVM_EX2_IS_OVERLOADED
                   ? tcc_lower_intrinsic(l, "llvm.nvvm.ex2.approx.ftz", l->types[TCC_f32], 1, args)
                   : tcc_lower_intrinsic(l, "llvm.nvvm.ex2.approx.ftz.f", NULL, 1, args);
    case TCC_OP_math_log2: /* 2^-22.6, absolute between 1/2 and 2 */
        return tcc_lower_intrinsic(l, "llvm.nvvm.lg2.approx.f", NULL, 1, args);
    case TCC_OP_math_sqrt: /* 2^-23 */
        return tcc_lower_intrinsic(l, "llvm.nvvm.sqrt.approx.f", NULL, 1, args);
    case TCC_OP_math_rsqrt: /* 2^-22.9 */
        return tcc_lower_intrinsic(l, "llvm.nvvm.rsqrt.approx.f", NULL, 1, args);
    default: return NULL;
    }
}
