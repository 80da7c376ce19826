/* A warp's matrix instructions: where the lanes hold their matrices.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/mma_sync.h"
#include "tests/unit/suite.h"

enum { M = TCC_MMA_SYNC_M, N = TCC_MMA_SYNC_N, WORD_BITS = 32, LANES = 32 };

typedef struct instruction {
    int64_t k;
    tcc_scalar a, b, acc;
    tcc_fragment_id of_a, of_b, of_d;
} instruction;

static const instruction instructions[] = {
#define MMA_SYNC(family, needs, ptx, rows, k, a, b, acc, of_a, of_b, of_d)                                \
    {k, TCC_##a, TCC_##b, TCC_##acc, TCC_FRAGMENT_##of_a, TCC_FRAGMENT_##of_b, TCC_FRAGMENT_##of_d},
#include "ir/mma_sync.def"
};

enum { INSTRUCTIONS = sizeof instructions / sizeof *instructions };

/* Elements of a register, which has a word, or a number of 64 bits. */
static unsigned per_register(unsigned bits)
{
    return bits < WORD_BITS ? WORD_BITS / bits : 1;
}

/* Element e of a lane, as "Matrix Fragments for mma.m16n8k16" and "… m16n8k32" of the PTX ISA have it by
 * groupID and threadID_in_group. */
static tcc_place place_in_a(unsigned bits, unsigned lane, unsigned e)
{
    unsigned group = lane / 4, thread = lane % 4, n = per_register(bits), word = e / n;
    return (tcc_place){group + word % 2 * 8, thread * n + e % n + word / 2 * 4 * n};
}

static tcc_place place_in_b(unsigned bits, unsigned lane, unsigned e)
{
    unsigned group = lane / 4, thread = lane % 4, n = per_register(bits), word = e / n;
    return (tcc_place){thread * n + e % n + word * 4 * n, group};
}

static tcc_place place_in_d(unsigned bits, unsigned lane, unsigned e)
{
    (void)bits;
    return (tcc_place){lane / 4 + e / 2 * 8, lane % 4 * 2 + e % 2};
}

static void check(tcc_fragment_id id, unsigned rows, unsigned cols, unsigned bits,
                  tcc_place (*expected)(unsigned bits, unsigned lane, unsigned e))
{
    const tcc_fragment *f = &tcc_fragments[id];
    ck_assert_uint_eq(f->rows, rows);
    ck_assert_uint_eq(f->cols, cols);
    ck_assert_uint_eq(tcc_fragment_elements(f, 0) * LANES, rows * cols);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned e = 0; e < tcc_fragment_elements(f, lane); e++) {
            tcc_place is = tcc_fragment_place(f, e, lane, 0), want = expected(bits, lane, e);
            ck_assert_msg(is.row == want.row && is.col == want.col,
                          "%s: element %u of lane %u is at %u, %u, not at %u, %u", f->name, e, lane, is.row,
                          is.col, want.row, want.col);
        }
}

START_TEST(lanes_hold_what_the_ptx_isa_says)
{
    const instruction *in = &instructions[_i];
    unsigned bits = tcc_scalar_bits(in->a);
    ck_assert_uint_eq(tcc_scalar_bits(in->b), bits);
    check(in->of_a, M, (unsigned)in->k, bits, place_in_a);
    check(in->of_b, (unsigned)in->k, N, bits, place_in_b);
    check(in->of_d, M, N, tcc_scalar_bits(in->acc), place_in_d);
}
END_TEST

#define OF_WMMA(id) TCC_FRAGMENT_wmma_##id
static const tcc_fragment_id opaque[] = {
    OF_WMMA(a16),    OF_WMMA(b16),   OF_WMMA(a8),    OF_WMMA(b8),   OF_WMMA(d),
    OF_WMMA(a16m32), OF_WMMA(b16n8), OF_WMMA(a8m32), OF_WMMA(b8n8), OF_WMMA(d32x8),
    OF_WMMA(a16m8),  OF_WMMA(b16n32), OF_WMMA(a8m8), OF_WMMA(b8n32), OF_WMMA(d8x32),
};
enum { N_OPAQUE = sizeof opaque / sizeof *opaque, SIDE = 32 };

/* How often each place is taken by the elements of an opaque fragment's lanes. */
static void count_places(tcc_fragment_id id, bool columns, unsigned taken[SIDE][SIDE])
{
    tcc_held held = tcc_held_opaquely(id, TCC_f16, columns);
    memset(taken, 0, SIDE * sizeof *taken);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned e = 0; e < tcc_fragment_elements(&tcc_fragments[id], lane); e++) {
            tcc_place at = tcc_held_place(&held, e, lane);
            taken[at.row][at.col]++;
        }
}

/* Every element is somewhere, and where it is says neither the table nor the other layout. */
START_TEST(fragments_of_wmma_keep_their_secret)
{
    tcc_fragment_id id = opaque[_i];
    const tcc_fragment *f = &tcc_fragments[id];
    unsigned taken[SIDE][SIDE], differs = 0, differs_by_layout = 0;
    for (int columns = 0; columns < 2; columns++) {
        count_places(id, columns, taken);
        for (unsigned i = 0; i < SIDE * SIDE; i++)
            ck_assert_uint_eq(taken[i / SIDE][i % SIDE],
                              i / SIDE < f->rows && i % SIDE < f->cols ? tcc_fragment_copies(f) : 0);
    }
    tcc_held in_rows = tcc_held_opaquely(id, TCC_f16, false), in_columns = tcc_held_opaquely(id, TCC_f16, true);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned e = 0; e < tcc_fragment_elements(&tcc_fragments[id], lane); e++) {
            tcc_place rows = tcc_held_place(&in_rows, e, lane), cols = tcc_held_place(&in_columns, e, lane);
            tcc_place table = tcc_fragment_place(&tcc_fragments[id], e, lane, 0);
            differs += rows.row != table.row || rows.col != table.col;
            differs_by_layout += rows.row != cols.row || rows.col != cols.col;
        }
    ck_assert_uint_gt(differs, 0);
    ck_assert_uint_gt(differs_by_layout, 0);
}
END_TEST

/* PTX ISA, "wmma.mma": the shapes, and registers of each fragment. */
START_TEST(wmma_has_shapes)
{
    static const struct {
        tcc_mma_block block;
        int64_t halves, of_a, of_b; /* words of 16-bit fragments; of A and of B of 8 bits */
    } shapes[] = {{{16, 16}, 8, 2, 2}, {{32, 8}, 8, 4, 1}, {{8, 32}, 8, 1, 4}};
    const tcc_target *target = tcc_target_find("sm_72");
    tcc_mma_block block;
    for (size_t i = 0; i < 3; i++) {
        ck_assert(tcc_mma_sync_block(target, TCC_INSTR_MMA, i, &block));
        ck_assert_int_eq(block.m, shapes[i].block.m);
        ck_assert_int_eq(block.n, shapes[i].block.n);
        const tcc_mma_sync *halves = tcc_mma_sync_of_block(target, TCC_INSTR_MMA, block, TCC_f16, TCC_f16, TCC_f16);
        const tcc_mma_sync *bytes = tcc_mma_sync_of_block(target, TCC_INSTR_MMA, block, TCC_u8, TCC_u8, TCC_i32);
        const tcc_fragment_id of[] = {halves->of_a, halves->of_b, bytes->of_a, bytes->of_b, bytes->of_d};
        const int64_t words[] = {shapes[i].halves, shapes[i].halves, shapes[i].of_a, shapes[i].of_b, 8};
        for (int j = 0; j < 5; j++)
            ck_assert_int_eq(tcc_fragment_elements(&tcc_fragments[of[j]], 0) * (j < 2 ? 16 : j < 4 ? 8 : 32) / WORD_BITS,
                             words[j]);
        ck_assert_int_eq(tcc_mma_sync_with(target, TCC_AS_SUM, 32, bytes->of_d)->of_r, bytes->of_r);
    }
    ck_assert(!tcc_mma_sync_block(target, TCC_INSTR_MMA, 3, &block));
    ck_assert(!tcc_mma_sync_block(tcc_target_find("sm_80"), TCC_INSTR_MMA, 1, &block));
    ck_assert_ptr_null(tcc_mma_sync_of_block(target, TCC_INSTR_MMA, (tcc_mma_block){32, 32}, TCC_f16, TCC_f16, TCC_f16));
}
END_TEST

START_TEST(instructions_are_found_by_their_types)
{
    const tcc_target *target = tcc_target_find("sm_80"), *older = tcc_target_find("sm_75");
    ck_assert_int_eq(tcc_mma_sync_find(older, TCC_INSTR_MMA, TCC_f16, TCC_f16, TCC_f32)->k, 8);
    ck_assert_int_eq(tcc_mma_sync_find(older, TCC_INSTR_MMA, TCC_u8, TCC_i8, TCC_i32)->k, 16);
    ck_assert_ptr_null(tcc_mma_sync_find(older, TCC_INSTR_MMA, TCC_bf16, TCC_bf16, TCC_f32));
    older = tcc_target_find("sm_72");
    ck_assert_int_eq(tcc_mma_sync_find(older, TCC_INSTR_MMA, TCC_f16, TCC_f16, TCC_f16)->n, 16);
    ck_assert_int_eq(tcc_mma_sync_find(older, TCC_INSTR_MMA, TCC_u8, TCC_u8, TCC_i32)->n, 16);
    ck_assert_ptr_null(tcc_mma_sync_find(older, TCC_INSTR_MMA, TCC_u8, TCC_i8, TCC_i32));
    ck_assert_ptr_null(tcc_mma_sync_find(tcc_target_find("sm_70"), TCC_INSTR_MMA, TCC_u8, TCC_u8, TCC_i32));
    ck_assert_int_eq(tcc_mma_sync_find(target, TCC_INSTR_MMA, TCC_f16, TCC_f16, TCC_f32)->k, 16);
    ck_assert_int_eq(tcc_mma_sync_find(target, TCC_INSTR_MMA, TCC_u8, TCC_i8, TCC_i32)->k, 32);
    ck_assert_ptr_null(tcc_mma_sync_find(target, TCC_INSTR_MMA, TCC_f16, TCC_bf16, TCC_f32));
    ck_assert_ptr_null(tcc_mma_sync_find(target, TCC_INSTR_MMA, TCC_e4m3, TCC_e5m2, TCC_f32));
    const tcc_target *newer = tcc_target_find("sm_89");
    ck_assert_int_eq(tcc_mma_sync_find(newer, TCC_INSTR_MMA, TCC_e4m3, TCC_e5m2, TCC_f32)->ptx, 84);
    ck_assert_int_eq(tcc_mma_sync_find(target, TCC_INSTR_COUNT, TCC_f64, TCC_f64, TCC_f64)->rows, 8);
    ck_assert_int_eq(tcc_mma_sync_find(tcc_target_find("sm_90"), TCC_INSTR_COUNT, TCC_f64, TCC_f64, TCC_f64)->rows, 8);
    ck_assert_int_eq(tcc_mma_sync_find(newer, TCC_INSTR_COUNT, TCC_f64, TCC_f64, TCC_f64)->instr, TCC_INSTR_FMA);
    ck_assert_ptr_null(tcc_mma_sync_find(tcc_target_find("sm_90a"), TCC_INSTR_COUNT, TCC_f16, TCC_f16, TCC_f32));
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("mma_sync");
    TCase *t = tcase_create("mma_sync");
    tcase_add_loop_test(t, lanes_hold_what_the_ptx_isa_says, 0, INSTRUCTIONS);
    tcase_add_loop_test(t, fragments_of_wmma_keep_their_secret, 0, N_OPAQUE);
    tcase_add_test(t, wmma_has_shapes);
    tcase_add_test(t, instructions_are_found_by_their_types);
    suite_add_tcase(s, t);
    return s;
}
