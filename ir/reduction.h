/* reduction: what combines the terms of tensor.reduce, tile.reduce and async.combine, by their attribute `kind`.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_REDUCTION_H
#define TCC_IR_REDUCTION_H

#include "ir/ir.h"
#include "ir/number.h"

typedef enum tcc_reduction {
    TCC_REDUCTION_SUM,
    TCC_REDUCTION_MIN,
    TCC_REDUCTION_MAX,
    TCC_REDUCTION_ARGMIN, /* the place of the extremum: only of tensor.reduce */
    TCC_REDUCTION_ARGMAX,
    TCC_REDUCTION_COUNT
} tcc_reduction;

static inline bool tcc_is_reduction(const tcc_op *op)
{
    return op->code == TCC_OP_tensor_reduce;
}
extern const char *const tcc_reduction_words[TCC_REDUCTION_COUNT]; /* as `kind` has them */
tcc_reduction tcc_reduction_of(const tcc_op *op);
/* Whether it gives the index of an extremum; what finds that, which for others is the reduction itself. */
bool tcc_reduction_is_place(tcc_reduction r);
tcc_reduction tcc_reduction_extremum(tcc_reduction r);
enum { TCC_NO_PLACE = -1 }; /* where there is no term, or only NaNs */

/* These are of sums and extrema. */
/* The op that combines two terms. */
tcc_opcode tcc_reduction_op(tcc_reduction r);
/* What no terms give, and changes nothing when it is combined with one. */
tcc_cell tcc_reduction_start(tcc_reduction r, tcc_scalar elem);
/* x and y in one, as the op does, but that sums are not rounded or wrapped. */
tcc_cell tcc_reduction_combine(tcc_reduction r, tcc_cell x, tcc_cell y, bool ints);

#endif
