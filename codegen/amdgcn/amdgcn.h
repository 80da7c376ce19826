/* amdgcn: RDNA's part of the lowering: lower.c ops, kernel.c what makes a function a kernel, math.c
 * maths, convert.c 8-bit floats; spills.c warns of spills; link.c, object.c and symbols.c make
 * code objects.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_AMDGCN_AMDGCN_H
#define TCC_CODEGEN_AMDGCN_AMDGCN_H

#include "codegen/lower.h"

/* The functions of a tcc_backend. */
void tcc_amdgcn_initialize(void);
void tcc_amdgcn_begin_kernel(tcc_lower *l, const tcc_func *func);
const tcc_op *tcc_amdgcn_lower_op(tcc_lower *l, const tcc_op *op);
LLVMValueRef tcc_amdgcn_math(tcc_lower *l, tcc_opcode code, const LLVMValueRef *args);
void tcc_amdgcn_warn_of_spills(const tcc_ir *ir, tcc_codegen_output output, const char *data,
                               size_t size, tcc_arena *arena, tcc_diag *diag);

/* For its tcc_fp8. */
enum { TCC_AMDGCN_FP8_AT_ONCE = 4 };
void tcc_amdgcn_fp8_to_f32(tcc_lower *l, tcc_scalar from, LLVMValueRef word, LLVMValueRef *out);
LLVMValueRef tcc_amdgcn_f32_to_fp8(tcc_lower *l, tcc_scalar to, const LLVMValueRef *in);

/* Metadata of one string and more, attached to an instruction or a function. */
void tcc_amdgcn_attach(tcc_lower *l, LLVMValueRef to, const char *kind, size_t n,
                       LLVMMetadataRef *nodes);

#endif
