/* Layouts cover their tiles, registers are found by their places, parts are held as the whole is.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/descriptor.h"
#include "ir/ir.h"
#include "ir/layout.h"
#include "ir/moves.h"
#include "tests/unit/suite.h"

enum { MAX = 256 };

static const struct {
    tcc_fragment_id fragment;
    int64_t rows, cols;
    unsigned n;
    tcc_repeat repeats[4];
    int64_t holders; /* of each element */
} cases[] = {
    {TCC_FRAGMENT_wgmma_d, 64, 8, 0, {{0}}, 1},
    {TCC_FRAGMENT_wgmma_d, 64, 80, 1, {{1, false, 10}}, 1},
    {TCC_FRAGMENT_wgmma_d, 192, 176, 2, {{1, false, 22}, {0, true, 3}}, 1},
    {TCC_FRAGMENT_wgmma_d, 256, 80, 3, {{1, false, 10}, {0, true, 2}, {0, false, 2}}, 1},
    {TCC_FRAGMENT_wgmma_a, 128, 48, 2, {{1, false, 3}, {0, true, 2}}, 1},
    {TCC_FRAGMENT_wgmma_d, 1, 80, 2, {{1, false, 10}, {0, true, 2}}, 8 * 4 * 2},
    {TCC_FRAGMENT_wgmma_d, 256, 1, 2, {{0, true, 2}, {0, false, 2}}, 4},
    {TCC_FRAGMENT_mma_d, 64, 48, 3, {{1, false, 3}, {1, true, 2}, {0, true, 4}}, 1},
    {TCC_FRAGMENT_gfx11_operand_32, 64, 16, 2, {{0, true, 2}, {0, false, 2}}, 2},
    {TCC_FRAGMENT_gfx11_b_32,
     32,
     128,
     4,
     {{0, TCC_IN_REGISTERS, 2},
      {TCC_REPEAT_SAME, TCC_IN_WARPS, 2},
      {1, TCC_IN_WARPS, 4},
      {1, TCC_IN_REGISTERS, 2}},
     4},
    {TCC_FRAGMENT_gfx11_sum16_32,
     32,
     128,
     4,
     {{0, TCC_IN_WARPS, 2}, {1, TCC_IN_WARPS, 2}, {1, TCC_IN_HALVES, 2}, {1, TCC_IN_REGISTERS, 2}},
     1},
    {TCC_FRAGMENT_gfx12_d_64, 32, 96, 3, {{1, true, 2}, {1, false, 3}, {0, false, 2}}, 1},
};

static const tcc_type *type_of(tcc_ir *ir, int i)
{
    const int64_t sizes[] = {cases[i].rows, cases[i].cols};
    const tcc_type *t = tcc_type_sized(ir, TCC_KIND_tile, TCC_f16, 2, sizes);
    return tcc_type_with_repeats(ir, t, tcc_layout_of_fragment(cases[i].fragment), cases[i].n,
                                 cases[i].repeats);
}

static int64_t place_of(const tcc_spread *s, int64_t number, int64_t lane, int64_t warp, int dim)
{
    return tcc_digits_place(&s->registers, number, dim) + tcc_digits_place(&s->lanes, lane, dim) +
           tcc_digits_place(&s->warps, warp, dim);
}

START_TEST(every_element_has_its_holders)
{
    static int64_t times[MAX][MAX];
    tcc_arena *arena = tcc_arena_create(NULL);
    const tcc_type *t = type_of(tcc_ir_create(arena), _i);
    tcc_spread s;
    memset(times, 0, sizeof times);
    ck_assert_ptr_null(tcc_layout_wrong(t));
    ck_assert(tcc_layout_spread(t, &s));
    int64_t lanes = 1ll << tcc_fragments[cases[_i].fragment].lanes.n;
    for (int64_t w = 0; w < s.n_warps; w++)
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t r = 0; r < s.n_registers; r++) {
                int64_t row = place_of(&s, r, l, w, 0), col = place_of(&s, r, l, w, 1);
                ck_assert(row < cases[_i].rows && col < cases[_i].cols);
                times[row][col]++;
            }
    for (int64_t row = 0; row < cases[_i].rows; row++)
        for (int64_t col = 0; col < cases[_i].cols; col++)
            ck_assert_int_eq(times[row][col], cases[_i].holders);
    tcc_arena_destroy(arena);
}
END_TEST

START_TEST(registers_are_found)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_spread s;
    ck_assert(tcc_layout_spread(type_of(tcc_ir_create(arena), _i), &s));
    for (int64_t r = 0; r < s.n_registers; r++)
        ck_assert_int_eq(
            tcc_layout_register(&s, place_of(&s, r, 0, 0, 0), place_of(&s, r, 0, 0, 1)), r);
    ck_assert_int_eq(tcc_layout_register(&s, cases[_i].rows, 0), -1);
    tcc_arena_destroy(arena);
}
END_TEST

/* A part has the first of the whole's places, by the same lanes and warps. */
START_TEST(parts_are_held_as_the_whole)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_ir *ir = tcc_ir_create(arena);
    const tcc_type *whole = type_of(ir, 3), *part = tcc_layout_part(ir, whole, 128, 16);
    tcc_spread of_whole, of_part;
    ck_assert_ptr_nonnull(part);
    ck_assert(tcc_layout_spread(whole, &of_whole) && tcc_layout_spread(part, &of_part));
    ck_assert_int_eq(of_part.n_registers, 8);
    for (int d = 0; d < 2; d++) {
        ck_assert(tcc_layout_same_threads(&of_whole, &of_part, d));
        for (int64_t r = 0; r < 8; r++)
            ck_assert_int_eq(place_of(&of_whole, r, 0, 0, d), place_of(&of_part, r, 0, 0, d));
    }
    ck_assert_ptr_null(tcc_layout_part(ir, whole, 64, 16)); /* of one warpgroup of two */
    ck_assert_ptr_null(tcc_layout_part(ir, whole, 128, 12));
    tcc_arena_destroy(arena);
}
END_TEST

/* Results of wgmma are its operand A as they are; warps that stand otherwise hold others. */
START_TEST(equal_maps)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_ir *ir = tcc_ir_create(arena);
    const tcc_type *t = tcc_type_sized(ir, TCC_KIND_tile, TCC_bf16, 2, (const int64_t[]){64, 32});
    tcc_spread d, a, m;
    ck_assert(
        tcc_layout_spread(tcc_type_with_repeats(ir, t, tcc_layout_of_fragment(TCC_FRAGMENT_wgmma_d),
                                                1, (const tcc_repeat[]){{1, false, 4}}),
                          &d));
    ck_assert(
        tcc_layout_spread(tcc_type_with_repeats(ir, t, tcc_layout_of_fragment(TCC_FRAGMENT_wgmma_a),
                                                1, (const tcc_repeat[]){{1, false, 2}}),
                          &a));
    ck_assert(tcc_layout_spread(
        tcc_type_with_repeats(ir, t, tcc_layout_of_fragment(TCC_FRAGMENT_mma_d), 3,
                              (const tcc_repeat[]){{1, false, 2}, {1, true, 2}, {0, true, 4}}),
        &m));
    for (int dim = 0; dim < 2; dim++) {
        ck_assert(tcc_layout_same_threads(&d, &a, dim));
        ck_assert(!tcc_layout_same_threads(&d, &m, dim));
        for (int64_t r = 0; r < 16; r++)
            ck_assert_int_eq(place_of(&d, r, 0, 0, dim), place_of(&a, r, 0, 0, dim));
    }
    tcc_arena_destroy(arena);
}
END_TEST

/* Lanes trade bits of a register's number for those of theirs that tell columns, or rows; elements of a word stay
 * together. */
static const struct {
    tcc_fragment_id sum, rows;
    unsigned swaps;
} stored_as[] = {{TCC_FRAGMENT_mma_d, TCC_FRAGMENT_rows8, 2},
                 {TCC_FRAGMENT_mma_d, TCC_FRAGMENT_rows2, 2},
                 {TCC_FRAGMENT_fma_d, TCC_FRAGMENT_fma_rows2, 1}};
START_TEST(lanes_trade_words)
{
    static const tcc_repeat of_sums[] = {{1, TCC_IN_REGISTERS, 4}, {1, TCC_IN_WARPS, 2}}, of_rows[] = {{1, TCC_IN_WARPS, 2}};
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_ir *ir = tcc_ir_create(arena);
    int64_t sizes[] = {16, 64};
    const tcc_type *tile = tcc_type_sized(ir, TCC_KIND_tile, TCC_f16, 2, sizes);
    tcc_spread from, to;
    bool narrow = stored_as[_i].sum == TCC_FRAGMENT_mma_d; /* four blocks side by side are as wide as rows */
    ck_assert(tcc_layout_spread(
        tcc_layout_repeated(ir, tile, stored_as[_i].sum, narrow ? 2 : 1, narrow ? of_sums : of_rows), &from));
    ck_assert(tcc_layout_spread(tcc_layout_repeated(ir, tile, stored_as[_i].rows, 1, of_rows), &to));
    tcc_lane_swaps swaps;
    const int64_t *source = tcc_swaps_in_warp(arena, &from, &to, 16, &swaps);
    ck_assert_ptr_nonnull(source);
    ck_assert_uint_eq(swaps.n, stored_as[_i].swaps);
    int64_t held[32][16], words = 0;
    for (int64_t lane = 0; lane < 32; lane++)
        for (int64_t r = 0; r < 16; r++)
            held[lane][r] = 100 * (tcc_digits_place(&from.registers, r, 0) + tcc_digits_place(&from.lanes, lane, 0)) +
                            tcc_digits_place(&from.registers, r, 1) + tcc_digits_place(&from.lanes, lane, 1);
    for (unsigned i = 0; i < swaps.n; i++)
        for (int64_t lane = 0; lane < 32; lane++)
            for (int64_t r = 0; r < 16; r++) {
                int64_t other = lane ^ 1 << swaps.of[i].lane_bit, there = r ^ 1 << swaps.of[i].register_bit;
                if (lane < other && (r >> swaps.of[i].register_bit & 1)) {
                    int64_t mine = held[lane][r];
                    held[lane][r] = held[other][there];
                    held[other][there] = mine;
                    words++;
                }
            }
    ck_assert_int_eq(words, stored_as[_i].swaps * 32 / 2 * 16 / 2);
    for (int64_t lane = 0; lane < 32; lane++)
        for (int64_t r = 0; r < 16; r++)
            ck_assert_int_eq(held[lane][source[r]],
                             100 * (tcc_digits_place(&to.registers, r, 0) + tcc_digits_place(&to.lanes, lane, 0)) +
                                 tcc_digits_place(&to.registers, r, 1) + tcc_digits_place(&to.lanes, lane, 1));
    ck_assert_ptr_null(tcc_swaps_in_warp(arena, &from, &from, 16, &swaps)); /* nothing to trade */
    ck_assert_ptr_null(tcc_swaps_in_warp(arena, &to, &from, 8, &swaps));    /* words would be torn */
    tcc_arena_destroy(arena);
}
END_TEST

/* Two blocks of 16 bits in the halves of the same registers: a part of one block takes every other
 * element. */
START_TEST(halves)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_ir *ir = tcc_ir_create(arena);
    const tcc_type *t = tcc_type_sized(ir, TCC_KIND_tile, TCC_f16, 2, (const int64_t[]){16, 64});
    const tcc_type *sum = tcc_layout_repeated(ir, t, TCC_FRAGMENT_gfx11_sum16_32, 3,
                                              (const tcc_repeat[]){{1, TCC_IN_WARPS, 2},
                                                                   {1, TCC_IN_HALVES, 2},
                                                                   {0, TCC_IN_REGISTERS, 1}});
    tcc_spread s, part;
    ck_assert(tcc_layout_spread(sum, &s));
    ck_assert_int_eq(s.n_fragment, 16);
    ck_assert_int_eq(tcc_layout_register(&s, 0, 32), 1);
    ck_assert_int_eq(tcc_layout_register(&s, 0, 1), 2);
    ck_assert_int_eq(tcc_layout_neighbours(&s), 1);
    ck_assert(tcc_layout_spread(tcc_layout_part(ir, sum, 16, 32), &part));
    ck_assert_int_eq(part.n_registers, 8);
    ck_assert_int_eq(tcc_layout_neighbours(&part), 8);
    for (int d = 0; d < 2; d++)
        ck_assert(tcc_layout_same_threads(&s, &part, d));
    tcc_arena_destroy(arena);
}
END_TEST

/* The checker finds where an operand's chunks are for the first stage, and the same for others (checker/mma.c). */
START_TEST(chunks_lie_alike_in_every_kilobyte)
{
    enum { KILOBYTE = 1024, UNITS = KILOBYTE / TCC_CHUNK_BYTES, STAGES = 16 };
    int64_t bits = (int64_t)((uint64_t)_i << 62 | UINT64_C(64) << 32 | UINT64_C(32) << 16);
    for (int64_t start = 0; start < UNITS; start++)
        for (int mn_major = 0; mn_major < 2; mn_major++) {
            tcc_descriptor first, d;
            ck_assert(!tcc_descriptor_decode(bits + start, mn_major, &first));
            for (int64_t stage = 1; stage < STAGES; stage++) {
                ck_assert(!tcc_descriptor_decode(bits + start + stage * UNITS, mn_major, &d));
                for (int64_t row = 0; row < 16; row++)
                    for (int64_t chunk = 0; chunk < 16; chunk++)
                        ck_assert_int_eq(tcc_descriptor_chunk(&d, row, chunk),
                                         tcc_descriptor_chunk(&first, row, chunk) + stage * KILOBYTE);
            }
        }
}
END_TEST

Suite *SUITE(void)
{
    enum { SWIZZLES = 4, N = sizeof cases / sizeof *cases };
    TCase *t = tcase_create("layout");
    tcase_add_loop_test(t, every_element_has_its_holders, 0, N);
    tcase_add_loop_test(t, registers_are_found, 0, N);
    tcase_add_test(t, parts_are_held_as_the_whole);
    tcase_add_test(t, equal_maps);
    tcase_add_loop_test(t, lanes_trade_words, 0, sizeof stored_as / sizeof *stored_as);
    tcase_add_test(t, halves);
    tcase_add_loop_test(t, chunks_lie_alike_in_every_kilobyte, 0, SWIZZLES);
    Suite *s = suite_create("layout");
    suite_add_tcase(s, t);
    return s;
}
