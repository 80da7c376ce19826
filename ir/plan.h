/* plan: numbers that a launch computes, as attributes of functions: `cost`.
 *
 * An expression (support/expr.h) is a number, the name of a dimension, [device, ATTRIBUTE], or
 * [OPERATION, A, B, …].
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_PLAN_H
#define TCC_IR_PLAN_H

#include "ir/ir.h"
#include "support/expr.h"

/* Reads an expression over the dimensions that `dims`, a list of names, has. NULL, or what is
 * wrong. */
const char *tcc_expr_read(tcc_arena *arena, tcc_attr a, tcc_attr dims, tcc_expr *out);

/* The cost of all steps of a variant, the highest number if it exceeds 64 bits; 0 for those that have none. dims has an
 * extent for each name of the attribute `dims` of its signature s. */
int64_t tcc_variant_cost(const tcc_func *variant, const tcc_func *s, const int64_t *dims,
                         const tcc_device_attrs *device, tcc_arena *arena);

/* The bytes of a workspace tensor, as an expression, up to where the next one may begin. */
tcc_attr tcc_workspace_bytes(tcc_ir *ir, const tcc_type *tensor);

/* [op, items…]; the item itself when there is but one, and `none` when there is none. */
tcc_attr tcc_expr_attr(tcc_ir *ir, tcc_expr_code op, size_t n, const tcc_attr *items, int64_t none);

#endif
