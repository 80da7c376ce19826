/* nvptx: what codegen knows of NVIDIA's GPUs: lower.c ops and kernels, access.c loads and stores, products.c products
 * of matrices, outer.c FMAs of lanes, math.c maths, convert.c floats of few bits, version.c which PTX a module is;
 * ptx.def and ptx_builder.c inline assembly; ptxas.c cubins, sass.c listings of them, by programs that toolkit.c finds
 * and runs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_NVPTX_NVPTX_H
#define TCC_CODEGEN_NVPTX_NVPTX_H

#include "codegen/lower.h"
#include "codegen/nvptx/ptx_builder.h"

enum { TCC_NVPTX_SHARED = 3 }; /* the address space */

/* The functions of a tcc_backend. */
void tcc_nvptx_initialize(void);
void tcc_nvptx_begin_kernel(tcc_lower *l, const tcc_func *func);
const tcc_op *tcc_nvptx_lower_op(tcc_lower *l, const tcc_op *op);
LLVMValueRef tcc_nvptx_math(tcc_lower *l, tcc_opcode code, const LLVMValueRef *args);
/* Whether op is FMAs of f32 or f64; lowers the run of them that begins with it, and returns its last one. */
bool tcc_nvptx_is_outer(const tcc_op *op);
const tcc_op *tcc_nvptx_lower_outer(tcc_lower *l, const tcc_op *op);
/* Elements that go to memory together: sums of a loop in other registers than in the loop. */
const LLVMValueRef *tcc_nvptx_copy_sums(tcc_lower *l, const LLVMValueRef *elems, unsigned n);
/* The op, if it is a load, a store or a copy by threads. */
bool tcc_nvptx_lower_access(tcc_lower *l, const tcc_op *op);
/* Products of matrices, or the run of them that begins with op; returns its last one. NULL if there is none. */
const tcc_op *tcc_nvptx_lower_products(tcc_lower *l, const tcc_op *op);
/* Adds the row of an op that loads or stores fragments of a warp; false when it is none. */
bool tcc_nvptx_add_fragment(tcc_ptx *p, tcc_lower *l, const tcc_op *op, LLVMValueRef addr);
/* A number that an attribute says. */
static inline LLVMValueRef tcc_nvptx_attr(const tcc_lower *l, const tcc_op *op, const char *name)
{
    return tcc_lower_i32(l, tcc_attr_int(&op->attrs, name, 0));
}
int tcc_nvptx_version(const tcc_target *target, const tcc_ir *ir);

LLVMValueRef tcc_nvptx_round_to_tf32(const tcc_lower *l, LLVMValueRef x);
/* For its tcc_fp8. */
enum { TCC_NVPTX_FP8_AT_ONCE = 2 };
void tcc_nvptx_fp8_to_f32(tcc_lower *l, tcc_scalar from, LLVMValueRef pair, LLVMValueRef *out);
LLVMValueRef tcc_nvptx_f32_to_fp8(tcc_lower *l, tcc_scalar to, const LLVMValueRef *in);

#endif
