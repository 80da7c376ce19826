/* mma_sync: where the lanes of a warp have the elements of fragments, also of those that only matrix instructions know.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_MMA_SYNC_H
#define TCC_INTERP_MMA_SYNC_H

#include "ir/fragment.h"

typedef struct tcc_held {
    tcc_places places;
    unsigned n_log2, bits; /* elements of a lane; how the number of an element differs from that in the table */
} tcc_held;

tcc_held tcc_held_openly(tcc_fragment_id id);
/* For the fragment with such elements, loaded in columns or in rows (D: neither, false). */
tcc_held tcc_held_opaquely(tcc_fragment_id id, tcc_scalar elem, bool columns);

static inline tcc_place tcc_held_place(const tcc_held *h, unsigned element, unsigned lane)
{
    unsigned number = (lane << h->n_log2 | element) ^ h->bits;
    return tcc_place_in(&h->places, number & ((1u << h->n_log2) - 1), number >> h->n_log2);
}

#endif
