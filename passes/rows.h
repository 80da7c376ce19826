/* rows: kernels that reduce over one index. Where memory is contiguous along it, a warp or a CTA holds whole rows; where it
 * is along another one, rows are beside each other, and lanes have some each.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_ROWS_H
#define TCC_PASSES_ROWS_H

#include "passes/pointwise.h"

/* partition: whether all that a function computes are maps and reductions over one index, the row's, with no sum of
 * products that matrix instructions multiply, and reads along the row are contiguous, or some run along another index.
 * Then every index of a row gets one name, and the function's attribute `row` says it, `beside` that other index. */
bool tcc_rows_recognize(tcc_func *f);
/* Whether such a function can compute a reduction by itself, and the ops that it is computed of. are_beside: in rows
 * beside each other. */
bool tcc_rows_can_reduce(const tcc_op *reduce, const tcc_map *of, bool are_beside);

/* Replaces an argmax or argmin by reductions that rows have: the extremum, and the least index of a term equal to it. */
void tcc_place_expand(tcc_op *place);

/* How warps hold a tile of a row kernel. Where a row fits, one sweep reads it; else loops sweep over it. */
typedef struct tcc_rows_tile {
    tcc_pointwise_tile of;
    bool one_sweep;
} tcc_rows_tile;

enum {
    TCC_ROWS_FEWEST = 16,         /* terms: a thread as well reduces fewer by itself */
    TCC_ROWS_ELEMENTS = 32,       /* of a row that a lane has, at most */
    TCC_ROWS_LEAST = 4,           /* of a short row, at least: other lanes have other rows */
    TCC_ROWS_MOST_COLUMNS = 16384, /* in one sweep */
    TCC_ROWS_SWEPT_COLUMNS = 4096, /* at a time in several, of single elements */
    TCC_ROWS_LONG = 40960,         /* elements: rows up to here leave much of larger tiles empty, */
    TCC_ROWS_LONG_VECTORS = 8192,  /* and are swept over so many at a time, of vectors */
    TCC_ROWS_SWEPT_VECTORS = 16384, /* of vectors: by so many warps that what is read twice is in L2 */
    TCC_ROWS_FEW = 128,            /* rows, of which a multiprocessor has one */
    TCC_ROWS_FEW_COLUMNS = 16384,  /* at a time of these, of single elements */
    TCC_ROWS_FEW_VECTORS = 32768,  /* the same, of vectors: enough to keep memory busy */
    TCC_ROWS_PARTS = 1024,         /* of the only row, each of which has CTAs of its own */
    TCC_ROWS_BESIDE_DEPTH = 512,   /* terms of a part of rows beside each other */
    TCC_ROWS_BESIDE_PARTS = INT32_MAX / TCC_ROWS_BESIDE_DEPTH, /* more than there can be terms for: none takes turns */
    TCC_ROWS_BESIDE_HELD = 64      /* terms of such rows that are held in one sweep, at most */
};

/* rows_groups.c: whether tiles of rows, which may begin anywhere, can begin at a multiple of a vector, before the row or
 * with it: all rows that are read and written begin at the same place among those multiples, of which tensors' addresses
 * are. */
bool tcc_rows_can_group(const tcc_func *f, const tcc_space *p);
/* Whether an access is of rows that begin there. */
bool tcc_rows_is_grouped(const tcc_func *f, const tcc_space *p, const tcc_op *access);
/* The sum in parts that a function computes; NULL: none is in parts. */
const tcc_op *tcc_rows_parts(const tcc_func *f);
/* Warps for rows of this many columns; false if they do not hold so many. */
bool tcc_rows_arrange(tcc_pointwise_tile *t, const tcc_space *p, int64_t rows, int64_t columns, int64_t vector);
/* For the tile in the function's schedule. */
bool tcc_rows_tile_of(const tcc_func *f, const tcc_space *p, tcc_rows_tile *t);
/* The dimension of which few values mean that rows are few, and how many; without name where they are few or are not,
 * whatever it is. */
tcc_dim tcc_rows_few(const tcc_space *p);
/* Whether all that runs along rows is accessed in aligned vectors. */
bool tcc_rows_has_vectors(const tcc_func *f, const tcc_space *p);
/* Whether parts consist of whole tiles. */
bool tcc_rows_can_part(const tcc_func *f, const tcc_space *p, int64_t rows, int64_t columns);
/* choose-schedule: completes what the user gave. */
void tcc_rows_choose(const tcc_func *f, const tcc_space *p, int64_t *rows, int64_t *columns);

#endif
