/* tile: what the tile and async levels share.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_TILE_H
#define TCC_INTERP_TILE_H

#include "interp/exec.h"

enum { TCC_WINDOW_RANK = 8 }; /* of a tile at most */

/* Part of a tensor: element (i, j, …) of the tile is at the coordinates plus i, j, … along the
 * tensor's dimensions that `dims` names. */
typedef struct tcc_window {
    const tcc_param *tensor;
    int64_t *at;           /* for each dimension of the tensor */
    const tcc_dim *extent; /* of the tile */
    int64_t *dims;
    size_t rank; /* of the tile */
    int begins;    /* the tile's dimension along which it may begin before the tensor; or -1 */
    int64_t chunk; /* of what then comes first; 0: nothing does */
    int64_t group; /* elements, a multiple of which its row begins at, as far before the tensor's; 0: at the row */
    bool anywhere; /* or there, but nowhere in particular */
    bool undefined[2]; /* along its first dimensions: elements beyond the tensor's end */
} tcc_window;

/* The window of tile.load, tile.store or async.copy; the coordinates follow operand `first`, and
 * `skip` dimensions of `type` are not the tile's. */
tcc_window tcc_window_of(tcc_thread *t, const tcc_inst *in, unsigned tensor, unsigned first,
                         const tcc_type *type, unsigned skip);
/* Reports coordinates that are negative and must not be. */
bool tcc_window_is_valid(tcc_thread *t, const tcc_inst *in, const tcc_window *w);
/* Steps an index through extents, the last dimension fastest; false at the end. */
bool tcc_next_index(int64_t *index, const tcc_dim *extent, size_t rank);
/* The value of undefined elements. */
tcc_cell tcc_undefined_cell(tcc_scalar elem);
void tcc_window_load(const tcc_window *w, tcc_cell *to);
/* Writes the elements inside the tensor, in its element type. */
void tcc_window_store(const tcc_run *run, const tcc_window *w, const tcc_cell *from);

/* What tile.mma or async.mma adds to, its operand c; NULL: to 0. */
const tcc_cell *tcc_mma_sums(tcc_thread *t, const tcc_inst *in, unsigned c);
/* r[j] += sum over k of a[k] * b[k * step + j], for n sums. */
void tcc_add_products(tcc_cell *restrict r, const tcc_cell *restrict a, const tcc_cell *restrict b, int64_t n,
                      int64_t step, int64_t k, bool ints);
/* r = c + a * b, m x k and k x n; r may be c, c may be NULL: 0. */
void tcc_tile_multiply(const tcc_run *run, const tcc_cell *a, const tcc_cell *b, const tcc_cell *c,
                       tcc_cell *r, const int64_t mnk[3], const tcc_type *type);

#endif
