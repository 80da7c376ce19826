/* nvptx: what codegen knows of NVIDIA's GPUs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_NVPTX_NVPTX_H
#define TCC_CODEGEN_NVPTX_NVPTX_H

#include "codegen/lower.h"

/* The functions of a tcc_backend. */
void tcc_nvptx_initialize(void);
void tcc_nvptx_begin_kernel(tcc_lower *l, const tcc_func *func);
const tcc_op *tcc_nvptx_lower_op(tcc_lower *l, const tcc_op *op);
LLVMValueRef tcc_nvptx_math(tcc_lower *l, tcc_opcode code, const LLVMValueRef *args);

#endif
