/* pointwise: tiles of kernels without a product, or whose products are computed naively.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_POINTWISE_H
#define TCC_PASSES_POINTWISE_H

#include "passes/choose_schedule.h"
#include "passes/space.h"

/* How many neighbours along n are 16 bytes of the widest elements along it (tcc_space.vector). */
int64_t tcc_pointwise_most(const tcc_func *f, const tcc_space *p);

/* Whether rows of a tensor that op, a read or write, accesses run along n. */
bool tcc_pointwise_runs_along(const tcc_space *p, const tcc_op *op);

/* Bytes of a vector of a tensor's elements, as far as one access reaches. */
int64_t tcc_pointwise_bytes(const tcc_space *p, const tcc_value *tensor);
/* Whether a function assumes that such vectors are aligned in all rows. */
bool tcc_pointwise_is_aligned(const tcc_func *f, const tcc_space *p, const tcc_value *tensor);
/* Neighbours in a row that a lane holds: one where those that are written need not be aligned. */
int64_t tcc_pointwise_vector(const tcc_func *f, const tcc_space *p);

enum {
    TCC_POINTWISE_WARPS = 8,          /* of a CTA, at most */
    TCC_POINTWISE_MOST_ELEMENTS = 64, /* of a tile, in one lane */
};

/* How warps hold a tile. */
typedef struct tcc_pointwise_tile {
    int64_t m, n;
    int64_t vector;   /* neighbours in a row that a lane holds */
    int64_t warps[2]; /* beside each other along m and n */
    bool blocks;      /* a lane has as many rows of its neighbours */
    int64_t lanes;    /* rows of lanes that a warp has below each other, of a tile of short rows; 0: one */
} tcc_pointwise_tile;

/* Whether op reads rows along m in vectors, which lanes then turn. */
bool tcc_pointwise_is_turned(const tcc_space *p, const tcc_op *op);
/* Neighbours in a row, and rows, of the blocks that lanes turn; 0: they do not, since no tensor's rows run along m, aligned
 * as the function assumes, or what they would hold is longer than an extent. */
int64_t tcc_pointwise_block(const tcc_func *f, const tcc_space *p);
/* As tcc_pointwise_arrange. */
bool tcc_pointwise_arrange_blocks(tcc_pointwise_tile *t, int64_t m, int64_t n, int64_t side);

/* As many warps as can hold a tile of m x n, with vectors of at most this many elements, shorter ones if more warps
 * can share it then; false if n is not a multiple of their lanes, or if they would hold too much. */
bool tcc_pointwise_arrange(tcc_pointwise_tile *t, int64_t m, int64_t n, int64_t vector);
/* choose-schedule: completes what the user gave. */
tcc_status tcc_choose_pointwise(tcc_choice *ch);
/* For the tile in the function's schedule. */
bool tcc_pointwise_tile_of(const tcc_func *f, const tcc_space *p, tcc_pointwise_tile *t);

#endif
