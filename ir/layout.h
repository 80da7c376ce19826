/* layout: which register of which lane of which warp holds an element of a tile.
 *
 * A layout is a fragment (fragment.h) and its repeats, from the inside out: each repeats the layout so far n
 * times along a dimension of the tile, in further registers or in further warps. The position of an element is
 * the sum of what the digits of three numbers add: of its register, its lane and its warp. The fragment's
 * digits are bits (K. Zhou et al., "Linear Layouts", 2025); a repeat's has n values, any number.
 *
 *   tile<f32[256, 80], wgmma_d(cols 10, warps rows 2, rows 2)>
 *
 * Elements of 16 bits may be in the low or in the high halves of registers: `halves cols 2` is the lowest digit of
 * a register's number, with the right one of two matrices in the high halves. What repeats `same` adds nothing.
 *
 * Along a dimension of extent 1 digits add nothing: lanes and warps hold the same there, and registers
 * are left out. A tile without a layout has no such digits.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_LAYOUT_H
#define TCC_IR_LAYOUT_H

#include "ir/fragment.h"
#include "ir/type.h"

enum { TCC_MAX_REPEATS = 8, TCC_MAX_DIGITS = TCC_FRAGMENT_BITS + TCC_MAX_REPEATS };

/* A digit: its values, and what one of them adds to the row and the column. */
typedef struct tcc_digit {
    int64_t n, add[2];
} tcc_digit;

/* A number, the lowest digit first. */
typedef struct tcc_digits {
    unsigned n;
    tcc_digit of[TCC_MAX_DIGITS];
} tcc_digits;

typedef struct tcc_spread {
    tcc_digits registers, lanes, warps;
    int64_t n_registers, n_lanes, n_warps;
    int64_t n_fragment;  /* of the registers, those of one fragment, or of two in halves */
    int64_t extent[2]; /* that is covered; 1 where the tile's is */
} tcc_spread;

static inline tcc_layout tcc_layout_of_fragment(tcc_fragment_id f)
{
    return (tcc_layout)(TCC_LAYOUT_COUNT - TCC_FRAGMENT_COUNT + (int)f);
}
/* For a tile with a layout. */
static inline tcc_fragment_id tcc_layout_fragment(const tcc_type *tile)
{
    return (tcc_fragment_id)((int)tile->layout - (TCC_LAYOUT_COUNT - TCC_FRAGMENT_COUNT));
}

/* Whether the positions of a fragment's elements are unknown: the tile's digits then give their number, and which warp
 * and registers have a fragment. */
bool tcc_layout_is_opaque(const tcc_type *tile);
/* Rows of such fragments are accessed in memory at multiples of what a lane has of one: fragments beside each other are
 * apart this many times their width. 1 for other layouts. */
int64_t tcc_layout_apart(const tcc_type *tile);

/* The digits of a tile's layout; those that go on along a dimension where the one before them ends are one.
 * False when it names no fragment. */
bool tcc_layout_spread(const tcc_type *tile, tcc_spread *s);

/* The row (dim 0) or column that a number adds. */
int64_t tcc_digits_place(const tcc_digits *digits, int64_t number, int dim);
/* The register whose digits add this row and column; -1 when there is none. */
int64_t tcc_layout_register(const tcc_spread *s, int64_t row, int64_t col);
/* How many neighbours in a row of the tile a thread holds in consecutive registers, beginning at multiples of
 * this number. */
int64_t tcc_layout_neighbours(const tcc_spread *s);
/* Whether lanes and warps add the same along a dimension. */
bool tcc_layout_same_threads(const tcc_spread *a, const tcc_spread *b, int dim);

/* The type of a part of a tile with these extents, with its elements in the same places: with fewer repeats
 * in registers; without a layout if the tile's is not a fragment. NULL if the same threads do not hold such
 * a part. */
const tcc_type *tcc_layout_part(tcc_ir *ir, const tcc_type *tile, int64_t rows, int64_t cols);

/* The tile in this fragment, with those of the repeats that are more than one. */
const tcc_type *tcc_layout_repeated(tcc_ir *ir, const tcc_type *tile, tcc_fragment_id f, unsigned n,
                                    const tcc_repeat *repeats);

/* What is wrong with a tile's layout for its extents, or NULL. */
const char *tcc_layout_wrong(const tcc_type *tile);

#endif
