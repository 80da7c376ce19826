/* tile: what the kinds of reductions have in common on their way from fields to tiles.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_TILE_H
#define TCC_PASSES_TILE_H

#include "passes/rows.h"
#include "passes/schedule.h"
#include "passes/tiling.h"

/* A kernel on its way. */
typedef struct tcc_tiler {
    tcc_pass_ctx *ctx;
    tcc_func *f;
    tcc_space space;
    tcc_map written;       /* what is written, and the ops that it is computed of */
    tcc_schedule schedule; /* with products; of streams k is what they go along */
    tcc_rows_tile held;    /* without: how warps hold a tile */
    tcc_op *grid;
    tcc_tiling t; /* builds at the end of the grid's region; its sizes are those of a tile */
} tcc_tiler;

/* How one kind of reductions is computed, and what kernels with them need of a schedule and a target. */
typedef struct tcc_tile_kind {
    /* What the schedule says of tiles, with their sizes in w->t; false: not enough. */
    bool (*find_tile)(tcc_tiler *w);
    /* Reports what is not supported yet; puts the ops that terms are computed of, on tiles, into a set. NULL: all are
     * computed so, and nothing else is asked. */
    bool (*check)(tcc_tiler *w, tcc_map *terms);
    /* Fills the grid's region. */
    void (*build)(tcc_tiler *w);
} tcc_tile_kind;

/* Sums of products, by matrix instructions; those of what is computed of others and of reductions along the same index;
 * reductions along rows; all others, one term after the other. */
extern const tcc_tile_kind tcc_tile_products, tcc_tile_streams, tcc_tile_rows, tcc_tile_terms;

/* Adds the fields that ops in a set are computed of, as far as reductions, whose results are there already. */
void tcc_tiler_need(const tcc_tiler *w, tcc_map *ops);
/* Stores the tile that a tensor.write writes. */
tcc_op *tcc_tiler_write(tcc_tiler *w, const tcc_op *op);
/* Once the reductions are there: all that is written, and what it is computed of. */
void tcc_tiler_finish(tcc_tiler *w);

#endif
