/* assume: what a variant may count on at a launch, in the attribute `assumes` of its function:
 *
 *   [align, A, 16]    the address of tensor A is a multiple of 16 bytes
 *   [pitch, A, 16]    each row of A, its last dimension, is a multiple of 16 bytes long; where A has strides, they are,
 *                     but for the last one
 *   [length, A, 16]   each row of A has 16 bytes or more
 *   [min, K, 8]       dimension K is 8 or more
 *   [max, N, 4096]    dimension N is 4096 or less
 *   [multiple, K, 8]  dimension K is a multiple of 8
 *
 * A variant is this set, which may be empty; a function without the attribute is none. Passes ask
 * it before they decide on anything that not every launch allows. What they then made use of are
 * the launch conditions `requires` of the target level, which an assumption must imply.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_ASSUME_H
#define TCC_IR_ASSUME_H

#include "ir/ir.h"

bool tcc_func_is_variant(const tcc_func *f);
/* Adds an assumption on a tensor or a dimension; with a name of NULL none: the empty set. */
void tcc_assume(tcc_func *f, const char *word, const char *name, int64_t n);

/* Whether the address of a parameter, and whether its rows, are multiples of this many bytes. Rows
 * of a known length need no assumption. */
bool tcc_assumes_align(const tcc_func *f, const tcc_value *tensor, int64_t bytes);
bool tcc_assumes_pitch(const tcc_func *f, const tcc_value *tensor, int64_t bytes);
/* Whether a tensor's rows are as long as a dimension, without padding. */
bool tcc_has_rows_of(const tcc_value *tensor, tcc_dim dim);
/* Whether a dimension is known or assumed to be a multiple of n; by the length of a parameter's rows, *rows. */
bool tcc_assumes_multiple(const tcc_func *f, tcc_dim dim, int64_t n, const tcc_value **rows);
/* Whether its rows are assumed not to be shorter. */
bool tcc_assumes_length(const tcc_func *f, const tcc_value *tensor, int64_t bytes);
/* Whether a dimension is known or assumed to be at least n. */
bool tcc_assumes_min(const tcc_func *f, tcc_dim dim, int64_t n);
/* Whether it is known or assumed to be at most n. */
bool tcc_assumes_max(const tcc_func *f, tcc_dim dim, int64_t n);
/* Whether all addresses are aligned to this many bytes, and all rows that can be. */
bool tcc_assumes_all_aligned(const tcc_func *f, int64_t bytes);

/* Whether `assumes` can hold, and implies the alignments and bounds of extents in `requires`; if not,
 * why. */
const char *tcc_assume_wrong(const tcc_func *f, tcc_arena *arena);

#endif
