/* pointwise: the index space of a tensor-level function without a sum of products, or whose products are computed
 * naively.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_POINTWISE_H
#define TCC_PASSES_POINTWISE_H

#include "passes/choose_schedule.h"
#include "passes/contraction.h"

/* Y[axes] = what is computed elementwise of elements of tensors, and of sums of such values, which are taken
 * one term after the other. Index names are interned, extents are the dimensions of the outputs. Axis 1 is n, the
 * innermost index of the first output, or of a row kernel the one along which memory is contiguous; axis 0 is m, the one
 * around it or another one that the schedule tiles.
 * Every further index is an axis of its own that takes one value in a CTA. With only one index, m has name ""
 * and extent 1; with none, n has a name that no index has. */
typedef struct tcc_pointwise {
    size_t n_axes;
    const char *axes[TCC_MAX_AXES];
    tcc_dim extents[TCC_MAX_AXES];
    const char *row; /* of a row kernel the axis along which it reduces (passes/rows.h); NULL: it is none */
    int along;       /* which axis that is: 1, or 0 where rows are beside each other, and memory contiguous across them */
    int64_t vector; /* neighbours along n that are 16 bytes of the widest elements along it, of tensors with all
                       indices; 1 where a thread computes one element */
} tcc_pointwise;

/* False when the function multiplies matrices, writes nothing or sums what is not computed elementwise. */
bool tcc_pointwise_find(const tcc_func *f, tcc_pointwise *out);

/* Whether rows of a tensor that op, a read or write, accesses run along n. */
bool tcc_pointwise_runs_along(const tcc_pointwise *p, const tcc_op *op);

/* Bytes of a vector of a tensor's elements, as far as one access reaches. */
int64_t tcc_pointwise_bytes(const tcc_pointwise *p, const tcc_value *tensor);
/* Whether a function assumes that such vectors are aligned in all rows. */
bool tcc_pointwise_is_aligned(const tcc_func *f, const tcc_pointwise *p, const tcc_value *tensor);
/* Neighbours in a row that a lane holds: one where those that are written need not be aligned, and must be to be vectors. */
int64_t tcc_pointwise_vector(const tcc_func *f, const tcc_pointwise *p);

enum {
    TCC_POINTWISE_WARPS = 8,          /* of a CTA, at most */
    TCC_POINTWISE_MOST_ELEMENTS = 64, /* of a tile, in one lane */
};

/* How warps hold a tile. */
typedef struct tcc_pointwise_tile {
    int64_t m, n;
    int64_t vector;   /* neighbours in a row that a lane holds */
    int64_t warps[2]; /* beside each other along m and n */
} tcc_pointwise_tile;

/* As many warps as can hold a tile of m x n, with vectors of at most this many elements, shorter ones if more warps
 * can share it then; false if n is not a multiple of their lanes, or if they would hold too much. */
bool tcc_pointwise_arrange(tcc_pointwise_tile *t, int64_t m, int64_t n, int64_t vector);
/* choose-schedule: completes what the user gave. */
tcc_status tcc_choose_pointwise(tcc_choice *ch, const tcc_pointwise *p);
/* For the tile in the function's schedule. */
bool tcc_pointwise_tile_of(const tcc_func *f, const tcc_pointwise *p, tcc_pointwise_tile *t);

#endif
