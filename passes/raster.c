/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/raster.h"

#include "passes/arith.h"

/* The parameters of a raster order. */
typedef struct plane {
    tcc_builder *b;
    int64_t group;
    tcc_value *number, *const *tiles;
} plane;

static tcc_value *bin(const plane *p, tcc_opcode op, tcc_value *x, tcc_value *y)
{
    return tcc_arith_bin(p->b, op, x, y);
}

static tcc_value *choose(const plane *p, tcc_value *cond, tcc_value *x, tcc_value *y)
{
    return TCC_EMIT(p->b, arith_select, x->type, cond, x, y);
}

static void by_rows(const plane *p, tcc_value **at)
{
    at[0] = bin(p, TCC_OP_arith_div, p->number, p->tiles[1]);
    at[1] = bin(p, TCC_OP_arith_rem, p->number, p->tiles[1]);
}

static void by_columns(const plane *p, tcc_value **at)
{
    at[0] = bin(p, TCC_OP_arith_rem, p->number, p->tiles[0]);
    at[1] = bin(p, TCC_OP_arith_div, p->number, p->tiles[0]);
}

/* A group of rows: the first, how many there are, the number of the tile among theirs. */
typedef struct rows {
    tcc_value *top, *height, *rest;
} rows;

static rows find_group(const plane *p, int64_t high)
{
    tcc_value *group = tcc_build_i32(p->b, high);
    tcc_value *in_group = bin(p, TCC_OP_arith_mul, group, p->tiles[1]);
    tcc_value *g = bin(p, TCC_OP_arith_div, p->number, in_group);
    rows r = {.top = bin(p, TCC_OP_arith_mul, g, group)};
    tcc_value *left = bin(p, TCC_OP_arith_sub, p->tiles[0], r.top);
    r.height = bin(p, TCC_OP_arith_min, left, group);
    r.rest = bin(p, TCC_OP_arith_rem, p->number, in_group);
    return r;
}

static void by_groups(const plane *p, tcc_value **at)
{
    if (p->group <= 1) {
        by_rows(p, at);
        return;
    }
    rows r = find_group(p, p->group);
    tcc_value *down = bin(p, TCC_OP_arith_rem, r.rest, r.height);
    at[0] = bin(p, TCC_OP_arith_add, r.top, down);
    at[1] = bin(p, TCC_OP_arith_div, r.rest, r.height);
}

enum { LEVELS = 3, SIDE = 1 << LEVELS }; /* of a curve */

static tcc_value *bit(const plane *p, tcc_value *v, int at)
{
    tcc_value *low = at ? bin(p, TCC_OP_arith_shr, v, tcc_build_i32(p->b, at)) : v;
    return tcc_arith_bin_const(p->b, TCC_OP_arith_and, low, 1);
}

/* A position in one of several parts of this size. */
static tcc_value *part(const plane *p, tcc_value *at, tcc_value *nth, int64_t size)
{
    tcc_value *before = tcc_arith_mul(p->b, nth, size);
    return bin(p, TCC_OP_arith_add, at, before);
}

/* The place on a Hilbert curve that begins at its first column and ends at its last, both of the first row.
 * Every two bits of the number, the last ones first, give the quarter of the curve so far, which is transposed
 * in the quarters of the first row. */
static void follow_curve(const plane *p, tcc_value *number, tcc_value **at)
{
    tcc_value *gray = bin(p, TCC_OP_arith_xor, number, tcc_arith_div(p->b, number, 2));
    for (int level = 0; level < LEVELS; level++) {
        int64_t size = 1 << level;
        tcc_value *right = bit(p, number, 2 * level + 1), *down = bit(p, gray, 2 * level);
        tcc_value *row = at[0], *column = at[1];
        at[0] = down;
        at[1] = right;
        if (!level)
            continue;
        tcc_value *mirror = tcc_arith_mul(p->b, right, size - 1);
        tcc_value *turn = tcc_arith_cmp(p->b, "eq", down, tcc_build_i32(p->b, 0));
        tcc_value *turned_row = bin(p, TCC_OP_arith_xor, column, mirror);
        tcc_value *turned_column = bin(p, TCC_OP_arith_xor, row, mirror);
        at[0] = part(p, choose(p, turn, turned_row, row), down, size);
        at[1] = part(p, choose(p, turn, turned_column, column), right, size);
    }
}

/* Groups of as many rows as a curve has; tiles right of the last whole curve, or in a group with fewer rows, are
 * numbered down the columns. */
static void by_curves(const plane *p, tcc_value **at)
{
    enum { TILES = SIDE * SIDE };
    rows r = find_group(p, SIDE);
    tcc_value *curves = tcc_arith_mul(p->b, tcc_arith_div(p->b, p->tiles[1], SIDE), TILES);
    tcc_value *is_left = tcc_arith_cmp(p->b, "lt", r.rest, curves);
    tcc_value *is_high = tcc_arith_cmp(p->b, "eq", r.height, tcc_build_i32(p->b, SIDE));
    tcc_value *on_curve = bin(p, TCC_OP_arith_and, is_left, is_high), *in[2] = {NULL, NULL};
    follow_curve(p, tcc_arith_rem(p->b, r.rest, TILES), in);
    in[1] = part(p, in[1], tcc_arith_div(p->b, r.rest, TILES), SIDE);
    tcc_value *down = choose(p, on_curve, in[0], bin(p, TCC_OP_arith_rem, r.rest, r.height));
    at[0] = bin(p, TCC_OP_arith_add, r.top, down);
    at[1] = choose(p, on_curve, in[1], bin(p, TCC_OP_arith_div, r.rest, r.height));
}

void tcc_raster_place(tcc_builder *b, tcc_raster raster, int64_t group, tcc_value *number, tcc_value *const tiles[2],
                      tcc_value *at[2])
{
    static void (*const orders[])(const plane *, tcc_value **) = {[TCC_RASTER_GROUPED] = by_groups,
                                                                  [TCC_RASTER_ROW] = by_rows,
                                                                  [TCC_RASTER_COLUMN] = by_columns,
                                                                  [TCC_RASTER_HILBERT] = by_curves};
    orders[raster](&(plane){b, group, number, tiles}, at);
}
