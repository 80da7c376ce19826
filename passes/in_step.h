/* in_step: reductions that are kept in step with each other while a loop goes over their terms (passes/stream.c).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_IN_STEP_H
#define TCC_PASSES_IN_STEP_H

#include "passes/tiling.h"

/* Whether a sum is rescaled while terms come; whether a reduction is what such a sum is kept in step with. */
bool tcc_is_rescaled(const tcc_op *reduce);
bool tcc_is_followed(const tcc_op *reduce);
/* What rescales a sum; NULL: nothing. */
const tcc_op *tcc_rescale_of(const tcc_op *reduce);
/* The reduction whose terms are combined where op stands in a walk over the function; NULL: none. */
tcc_op *tcc_reduced_at(tcc_op *op);

/* Lets what follows a reduction use its results before and after a tile's terms. An extremum of none counts as this
 * share of the largest number. */
void tcc_follow(tcc_tiling *t, const tcc_op *reduce, double share, tcc_value *before, tcc_value *after);
/* What a rescaled sum is multiplied by, as a tile of `type`; 1 where `is_first`, an i1 or a tile of the type's extents,
 * says that no term was before; NULL: some were. */
tcc_value *tcc_in_step(tcc_tiling *t, const tcc_op *rescale, tcc_value *is_first, const tcc_type *type);
/* x * y + z, rounded once where the target does. */
tcc_value *tcc_multiply_add(tcc_tiling *t, tcc_value *x, tcc_value *y, tcc_value *z);

#endif
