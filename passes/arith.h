/* arith: scalar arithmetic and conditions at a builder's place.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_ARITH_H
#define TCC_PASSES_ARITH_H

#include "ir/ir.h"

/* Binary ops on equal types; the result of cmp is an i1. */
tcc_value *tcc_arith_bin(tcc_builder *b, tcc_opcode op, tcc_value *x, tcc_value *y);
tcc_value *tcc_arith_bin_const(tcc_builder *b, tcc_opcode op, tcc_value *x, int64_t y);
tcc_value *tcc_arith_add(tcc_builder *b, tcc_value *x, int64_t y); /* x itself when y is 0 */
tcc_value *tcc_arith_mul(tcc_builder *b, tcc_value *x, int64_t y);
tcc_value *tcc_arith_div(tcc_builder *b, tcc_value *x, int64_t y); /* x >= 0 */
tcc_value *tcc_arith_rem(tcc_builder *b, tcc_value *x, int64_t y); /* x >= 0 */
tcc_value *tcc_arith_cmp(tcc_builder *b, const char *pred, tcc_value *x, tcc_value *y);
tcc_value *tcc_arith_cast(tcc_builder *b, const tcc_type *type, tcc_value *x);

/* (x - 1) % by + 1: how much of x is in its last part of `by`, a power of two, 1 to all of it. */
tcc_value *tcc_arith_rest(tcc_builder *b, tcc_value *x, int64_t by);
/* Whether v is known from its ops to be a multiple of `by`, a power of two; `known`, or NULL, is a
 * dimension that is one. */
bool tcc_is_multiple(const tcc_value *v, int64_t by, const tcc_dim *known);
/* v modulo `by` if it is known from its ops, else -1. */
int64_t tcc_known_remainder(const tcc_value *v, int64_t by);

/* Whether an index is known from its ops to be 0 or more: dimensions, CTAs, and indices of loops that
 * begin there are. */
bool tcc_is_not_negative(const tcc_value *v);
/* Whether an index is known to be below a dimension's extent: it is a remainder modulo the extent, or
 * both are numbers. */
bool tcc_is_below(const tcc_value *at, tcc_dim d);

/* Extent of a dimension as an i32: tensor.dim or a constant. */
tcc_value *tcc_build_extent(tcc_builder *b, tcc_dim d);

/* Opens scf.if: later ops go into its first region until tcc_end_if. */
tcc_op *tcc_begin_if(tcc_builder *b, tcc_value *cond);
void tcc_end_if(tcc_builder *b, tcc_op *op);

/* Whether op does nothing but compute a number: of each role that needs it, it may have a copy. */
bool tcc_is_number(const tcc_op *op);

#endif
