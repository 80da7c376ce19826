/* cascade: what a kernel multiplies that computes reductions along one index, which need each other, in one loop.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_CASCADE_H
#define TCC_PASSES_CASCADE_H

#include "passes/products.h"

/* In a loop over tiles of `along`: scores, which are there for a tile and are not kept, and sums, which are. */
typedef struct tcc_cascade {
    const char *along, *rows; /* indices; scores have both, and sums the rows */
    const char *columns;      /* of the sums; all have the same */
    size_t n_scores, n_sums;
    tcc_product *scores; /* of elements of two tensors, over an index of their own: of[0] has the rows, of[1] `along` */
    tcc_product *sums;   /* over `along`: of[0] is computed and has the rows, of[1] is read and has the columns */
} tcc_cascade;

/* Of a function that has the attribute `stream`, or would have it with `along`. False where its products are not such,
 * or one tile cannot hold the extents that are not tiled. */
bool tcc_cascade_along(const tcc_func *f, const char *along, tcc_cascade *out);
bool tcc_cascade_of(const tcc_func *f, tcc_cascade *out);
/* Of some products the one whose sum op is; NULL: there is none. */
const tcc_product *tcc_product_of(const tcc_op *op, size_t n, const tcc_product *of);
/* Whether one field that is masked where there is no term serves all reductions (tile_streams.c). */
bool tcc_stream_masks_once(tcc_func *f, const tcc_cascade *c);

#endif
