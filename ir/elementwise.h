/* elementwise: what arith and math ops do to one row of elements, the same at every level.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_ELEMENTWISE_H
#define TCC_IR_ELEMENTWISE_H

#include "ir/ir.h"
#include "ir/number.h"

/* clang-format off */
/* Every op that is elementwise and not in ir/math.def. */
#define TCC_ELEMENTWISE_OPS(OP)                                                                    \
    OP(arith_const) OP(arith_add) OP(arith_sub) OP(arith_mul) OP(arith_div) OP(arith_rem)          \
    OP(arith_floor_div) OP(arith_floor_rem)                                                        \
    OP(arith_min) OP(arith_max) OP(arith_and) OP(arith_or) OP(arith_xor) OP(arith_shl)             \
    OP(arith_shr) OP(arith_fma) OP(arith_cmp) OP(arith_select) OP(arith_cast) OP(arith_neg) OP(math_abs)         \
    OP(math_exp2) OP(math_log2) OP(math_rcp) OP(math_relu) OP(math_roundeven)
/* clang-format on */

/* r[i] = op(a[0][i * step[0]], …) for i < n. A step of 0 repeats one element. */
typedef struct tcc_elements {
    const tcc_op *op;
    const tcc_cell *a[3];
    size_t step[3];
    tcc_cell *r;
    size_t n;
} tcc_elements;

/* Computes a row; an integer divided by zero gives zero. Returns false when the op is none of
 * these. `machine`: float results are rounded to their type. */
bool tcc_elementwise(const tcc_elements *e, bool machine);

/* Which of less, equal, greater a predicate of arith.cmp holds for; with a NaN it is none of them. */
typedef struct tcc_predicate {
    const char *name;
    bool less, equal, greater, unordered;
} tcc_predicate;

const tcc_predicate *tcc_predicate_get(const char *name);

#endif
