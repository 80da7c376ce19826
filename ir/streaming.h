/* streaming: the law by which a sum whose terms need another reduction over the same index takes one sweep.
 *
 * A sum s of terms f(x, P), where P are reductions of the same terms' index, can be kept up to date with P: when P
 * becomes P', s becomes A(P, P') * s, if f(x, P') = A(P, P') * f(x, P) for all x; then the terms that came with P' are
 * added. Parts of the terms can be summed apart, each with P of its own, and merged in the same way. tensor.rescale
 * says that it is so for a sum, and computes A, from tensor.before (P) and the reductions (P').
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_STREAMING_H
#define TCC_IR_STREAMING_H

#include "ir/ir.h"

/* Proves the law for a tensor.rescale, over the reals, where a factor of the terms that is rounded to 16 bits or more
 * is itself, times the same number close to 1 before and after; returns what is wrong, in the arena, or NULL. What
 * compilers have found A with is not used: both sides are brought into a normal form. */
const char *tcc_streaming_wrong(const tcc_op *rescale, tcc_arena *arena);

/* Proves it for parts of the terms: `parts` reduces some of them for each value of the index `part`, and stores what
 * that gives; `merge` makes of these what reductions of all terms give. Each term is in one part, each part in the result
 * once, and sums are multiplied by an A. Where a part's extremum is what no terms give, it has none. */
const char *tcc_streaming_merge_wrong(const tcc_func *merge, const tcc_func *parts, const char *part, tcc_arena *arena);

/* Whether an op rounds to f16 or bf16 what depends on a reduction over an index, for a sum over the same index. It may
 * then be rounded relative to what the reduction is of some of the terms. */
bool tcc_streaming_rounds(const tcc_op *op, tcc_arena *arena);

#endif
