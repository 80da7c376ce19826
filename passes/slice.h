/* slice: what values of the tensor level are computed of.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_SLICE_H
#define TCC_PASSES_SLICE_H

#include "ir/ir.h"
#include "support/map.h"

/* The ops that values are computed of, their own included: the keys of a map in the arena. */
tcc_map tcc_slice_of(tcc_arena *arena, size_t n, tcc_value *const *values);
/* Adds those that other values are computed of. */
void tcc_slice_extend(tcc_map *slice, size_t n, tcc_value *const *values);
/* Whether another op is computed of op. */
bool tcc_slice_has(tcc_arena *scratch, const tcc_op *other, const tcc_op *op);

#endif
