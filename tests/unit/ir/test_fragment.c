/* Fragments are maps onto their matrices, and hold single elements where the manuals' figures do.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"
#include "tests/unit/suite.h"

enum { SIDE = 512 };

static const tcc_fragment *get(tcc_fragment_id id)
{
    return &tcc_fragments[id];
}

static unsigned copies(const tcc_fragment_bits *bits)
{
    unsigned n = 1;
    for (unsigned i = 0; i < bits->n; i++)
        n <<= !bits->adds[i].row && !bits->adds[i].col;
    return n;
}

/* Every place is held once, or as often as there are bits that add nothing. */
START_TEST(every_element_has_its_holders)
{
    const tcc_fragment *f = get((tcc_fragment_id)_i);
    unsigned times[SIDE][SIDE] = {{0}};
    tcc_places places = tcc_fragment_places(f);
    ck_assert_uint_le(f->rows, SIDE);
    ck_assert_uint_le(f->cols, SIDE);
    for (unsigned w = 0; w < 1u << f->warps.n; w++)
        for (unsigned l = 0; l < 1u << f->lanes.n; l++)
            for (unsigned e = 0; e < tcc_fragment_elements(f, l); e++) {
                tcc_place p = tcc_fragment_place(f, e, l, w);
                ck_assert_uint_lt(p.row, f->rows);
                ck_assert_uint_lt(p.col, f->cols);
                tcc_place of_first = tcc_place_in(&places, e, l);
                ck_assert(w > 0 || (of_first.row == p.row && of_first.col == p.col));
                times[p.row][p.col]++;
            }
    for (unsigned r = 0; r < f->rows; r++)
        for (unsigned c = 0; c < f->cols; c++)
            ck_assert_uint_eq(times[r][c],
                              copies(&f->elements) * copies(&f->lanes) * copies(&f->warps));
    ck_assert_uint_eq(tcc_fragment_elements(f, 1u << f->lanes.n), 0);
}
END_TEST

/* Read off the figures of the sections that ir/fragments.def names. */
START_TEST(single_places)
{
    static const struct {
        tcc_fragment_id id;
        unsigned element, lane, warp, row, col;
    } at[] = {
        {TCC_FRAGMENT_wgmma_d, 0, 0, 0, 0, 0},
        {TCC_FRAGMENT_wgmma_d, 1, 3, 0, 0, 7},
        {TCC_FRAGMENT_wgmma_d, 2, 4, 0, 9, 0},
        {TCC_FRAGMENT_wgmma_d, 3, 31, 3, 63, 7},
        {TCC_FRAGMENT_wgmma_d, 5, 31, 1, 23, 15},
        {TCC_FRAGMENT_wgmma_d, 127, 0, 0, 8, 249},
        {TCC_FRAGMENT_wgmma_a, 2, 5, 2, 41, 2},
        {TCC_FRAGMENT_wgmma_a, 5, 0, 0, 0, 9},
        {TCC_FRAGMENT_wgmma_a, 7, 31, 0, 15, 15},
        {TCC_FRAGMENT_ldmatrix, 1, 30, 0, 7, 5},
        {TCC_FRAGMENT_ldmatrix, 0, 4, 0, 1, 0},
        {TCC_FRAGMENT_mma_b16, 3, 5, 0, 11, 1},
        {TCC_FRAGMENT_mma_a32, 3, 6, 0, 9, 6},
        {TCC_FRAGMENT_mma_b32, 1, 9, 0, 5, 2},
        {TCC_FRAGMENT_mma_a8, 13, 2, 0, 8, 25},
        {TCC_FRAGMENT_mma_b8, 6, 3, 0, 30, 0},
        {TCC_FRAGMENT_mma_a4, 31, 31, 0, 15, 63},
        {TCC_FRAGMENT_mma_b4, 9, 4, 0, 33, 1},
        {TCC_FRAGMENT_mma_d, 2, 1, 0, 8, 2},
        {TCC_FRAGMENT_mfma32_operand, 1, 33, 0, 1, 5},
        {TCC_FRAGMENT_mfma32_d, 5, 40, 0, 13, 8},
        {TCC_FRAGMENT_mfma16_d, 3, 17, 0, 7, 1},
        {TCC_FRAGMENT_mfma16_operand, 2, 50, 0, 2, 14},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        tcc_place p = tcc_fragment_place(get(at[i].id), at[i].element, at[i].lane, at[i].warp);
        ck_assert_uint_eq(p.row, at[i].row);
        ck_assert_uint_eq(p.col, at[i].col);
    }
}
END_TEST

static const tcc_target *target_of(int i)
{
    return tcc_target_find(i % 2 ? "gfx1200" : "gfx1100");
}

/* The matrix instruction multiplies b by a: row i of its A is the column of b that lane i holds,
 * column j of its B the row of a in lane j; what it leaves in D is what the tile's fragment says.
 * Lanes have the same k of both. */
START_TEST(tiles_are_transposed_products)
{
    static const unsigned bits[] = {16, 8, 4};
    const tcc_target *t = target_of(_i);
    unsigned wave = _i / 2 ? 64 : 32;
    const tcc_fragment *d = tcc_wmma_result(t, wave);
    for (size_t n = 0; n < sizeof bits / sizeof *bits; n++) {
        const tcc_fragment *a = get(tcc_wmma_held(t, TCC_AS_A, bits[n], wave));
        const tcc_fragment *b = get(tcc_wmma_held(t, TCC_AS_B, bits[n], wave));
        for (unsigned lane = 0; lane < wave; lane++)
            for (unsigned e = 0; e < tcc_fragment_elements(a, lane); e++)
                ck_assert_uint_eq(tcc_fragment_place(a, e, lane, 0).col,
                                  tcc_fragment_place(b, e, lane, 0).row);
        for (int sum = 0; sum < 2; sum++) {
            const tcc_fragment *tile =
                get(tcc_wmma_held(t, sum ? TCC_AS_SUM : TCC_AS_RESULT, bits[n], wave));
            for (unsigned lane = 0; lane < wave; lane++)
                for (unsigned e = 0; e < tcc_fragment_elements(d, lane); e++) {
                    tcc_place in_d = tcc_fragment_place(d, e, lane, 0);
                    tcc_place in_tile = tcc_fragment_place(tile, e, lane, 0);
                    ck_assert_uint_eq(in_tile.col, tcc_fragment_place(b, 0, in_d.row, 0).col);
                    ck_assert_uint_eq(in_tile.row, tcc_fragment_place(a, 0, in_d.col, 0).row);
                }
        }
    }
}
END_TEST

Suite *SUITE(void)
{
    TCase *t = tcase_create("fragment");
    tcase_add_loop_test(t, every_element_has_its_holders, 0, TCC_FRAGMENT_COUNT);
    tcase_add_test(t, single_places);
    tcase_add_loop_test(t, tiles_are_transposed_products, 0, 4);
    Suite *s = suite_create("fragment");
    suite_add_tcase(s, t);
    return s;
}
