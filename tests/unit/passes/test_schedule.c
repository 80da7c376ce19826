/* The arithmetic of schedules, for every schedule that could be asked for.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/schedule.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static const tcc_target *target;

static void setup(void)
{
    target = tcc_target_find("sm_90a");
}

/* Each of an SM's quarters has 16384 registers and every fourth warp. */
static int64_t even_share(const tcc_schedule *s)
{
    int64_t warps = tcc_schedule_threads(s) / 32, of_quarter = (warps + 3) / 4;
    return 16384 / (of_quarter * 32);
}

START_TEST(threads_of_every_producer)
{
    static const struct {
        tcc_producer producer;
        const char *name;
        int64_t own, all; /* threads, with two consumers */
    } cases[] = {{TCC_PRODUCER_NONE, "none", 0, 256},
                 {TCC_PRODUCER_WARP, "warp", 32, 288},
                 {TCC_PRODUCER_WARPGROUP, "warpgroup", 128, 384}};
    for (size_t i = 0; i < 3; i++) {
        const tcc_schedule s = {.target = target, .warpgroups = 2, .producer = cases[i].producer};
        ck_assert_str_eq(tcc_producer_name(cases[i].producer), cases[i].name);
        ck_assert_int_eq(tcc_schedule_producer_threads(&s), cases[i].own);
        ck_assert_int_eq(tcc_schedule_threads(&s), cases[i].all);
    }
}
END_TEST

START_TEST(accumulators_of_a_thread)
{
    /* 64 rows of a warpgroup and 8 columns are 4 numbers for each of its threads. */
    const tcc_schedule a = {.target = target, .m = 128, .n = 256, .warpgroups = 2};
    const tcc_schedule b = {.target = target, .m = 256, .n = 104, .warpgroups = 1};
    ck_assert_int_eq(tcc_schedule_accumulators(&a), 128);
    ck_assert_int_eq(tcc_schedule_accumulators(&b), 208);
    const tcc_schedule gated = {
        .target = target, .m = 128, .n = 192, .warpgroups = 2, .more_sums = 1, .more_b = 1};
    ck_assert_int_eq(tcc_schedule_accumulators(&gated), 2 * 96);
}
END_TEST

/* setmaxnreg takes multiples of 8 from 24 to 256, out of what all warpgroups got at the launch. */
START_TEST(registers_are_given_and_taken)
{
    for (int64_t wg = 1; wg <= 3; wg++)
        for (int p = TCC_PRODUCER_NONE; p <= TCC_PRODUCER_WARPGROUP; p++)
            for (int64_t n = 8; n <= 256; n += 8) {
                const tcc_schedule s = {.target = target, .m = 64 * wg, .n = n, .k = 64, .swizzle = 128, .warpgroups = wg,
                                        .producer = (tcc_producer)p};
                int64_t producer, consumer = tcc_schedule_registers(&s, target, &producer);
                int64_t share = even_share(&s);
                ck_assert_int_le(consumer, 255);
                if (!producer) {
                    ck_assert_int_le(consumer, share);
                    continue;
                }
                ck_assert_int_eq(p, TCC_PRODUCER_WARPGROUP);
                ck_assert_int_le(128 * producer + wg * 128 * consumer,
                                 share / 8 * 8 * tcc_schedule_threads(&s));
                ck_assert(producer % 8 == 0 && producer >= 24 && producer < share);
                ck_assert(consumer % 8 == 0 && consumer <= 256 && consumer > share);
            }
}
END_TEST

/* TMA copies whole panels: narrow ones where the widest swizzle does not divide what an instruction
 * takes. */
START_TEST(copies_of_a_stage)
{
    const tcc_schedule wide = {.target = target, .m = 128, .n = 256, .k = 64, .swizzle = 128, .warpgroups = 2};
    const tcc_schedule odd = {.target = target, .m = 128, .n = 248, .k = 48, .swizzle = 128, .warpgroups = 2};
    ck_assert_int_eq(tcc_schedule_copies(&wide, target, true, true), 2);
    ck_assert_int_eq(tcc_schedule_copies(&wide, target, false, false), 2 + 4);
    ck_assert_int_eq(tcc_schedule_copies(&odd, target, true, true), 3 + 3);
    ck_assert_int_eq(tcc_schedule_copies(&odd, target, false, false), 2 + 31);
    tcc_schedule three = wide;
    three.more_sums = three.more_b = 2;
    ck_assert_int_eq(tcc_schedule_copies(&three, target, true, false), 1 + 3 * 4);
}
END_TEST

/* ptxas has an even share of registers for what setmaxnreg moves later: C7602. */
START_TEST(an_instruction_fits_an_even_share)
{
    unsigned halved = 0, refused = 0;
    for (int64_t wg = 1; wg <= 3; wg++)
        for (int p = TCC_PRODUCER_NONE; p <= TCC_PRODUCER_WARPGROUP; p++)
            for (int64_t n = 8; n <= 256; n += 8) {
                const tcc_schedule s = {.target = target, .m = 64 * wg, .n = n, .warpgroups = wg,
                                        .producer = (tcc_producer)p};
                int64_t instr = tcc_schedule_instr_n(&s, target);
                refused += !instr;
                if (!instr)
                    continue;
                halved += instr != n;
                ck_assert(instr % 8 == 0 && n % instr == 0);
                ck_assert_int_le(instr / 2 + TCC_INSTR_REGISTERS, even_share(&s));
            }
    /* With three consumers and a producer. */
    ck_assert_uint_eq(halved, 8);  /* 208, 224, 240 and 256 columns */
    ck_assert_uint_eq(refused, 6); /* 216, 232 and 248 */
}
END_TEST

START_TEST(a_schedule_is_attributes)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_ir *ir = tcc_ir_create(arena);
    tcc_func *f = tcc_func_create(ir, "f", (tcc_loc){1, 1});
    const tcc_schedule s = {.target = target, .m = 64, .n = 24, .k = 32, .stages = 3, .warpgroups = 1,
                            .producer = TCC_PRODUCER_WARP, .swizzle = 0, .group = 5, .split = 4};
    tcc_schedule_set(f, &s, "i", "j", "k");
    const tcc_schedule r = tcc_schedule_of(f);
    ck_assert(r.m == 64 && r.n == 24 && r.k == 32 && r.stages == 3 && r.warpgroups == 1 &&
              r.producer == TCC_PRODUCER_WARP && r.swizzle == 0 && r.epilogue == TCC_STORING_INTERLEAVED && r.group == 5 &&
              r.split == 4);
    tcc_str text = {0};
    tcc_schedule_print(&text, f, "f");
    ck_assert_str_eq(tcc_str_text(&text), "schedule f for sm_90a\n"
                                          "{\n"
                                          "    tile       i 64, j 24, k 32;\n"
                                          "    stages     3;\n"
                                          "    warpgroups 1;\n"
                                          "    consumers  cooperative;\n"
                                     "    operands   in_order;\n"
                                          "    producer   warp;\n"
                                          "    swizzle    none;\n"
                                          "    epilogue   interleaved;\n"
                                          "    group      5;\n"
                                          "    persistent none;\n"
                                          "    split      4;\n"
                                          "}\n");
    tcc_str_free(&text);
    tcc_arena_destroy(arena);
}
END_TEST

/* Each of two warpgroups holds a whole tile: as many accumulators as one alone would. */
START_TEST(who_takes_whole_tiles)
{
    tcc_schedule s = {.target = target, .m = 64, .n = 24, .k = 32, .stages = 1, .warpgroups = 2, .group = 1,
                      .consumers = TCC_CONSUMERS_PINGPONG, .producer = TCC_PRODUCER_WARPGROUP,
                      .persistent = TCC_PERSISTENT_STATIC};
    ck_assert(tcc_schedule_is_valid(&s));
    ck_assert_int_eq(tcc_schedule_turns(&s), 2);
    ck_assert_int_eq(tcc_schedule_rows(&s), 64);
    ck_assert_int_eq(tcc_schedule_accumulators(&s), 12);
    ck_assert_int_eq(tcc_schedule_threads(&s), 384);
    s.m = 128;
    ck_assert_int_eq(tcc_schedule_accumulators(&s), 24);
    tcc_schedule bad = s;
    bad.m = 96;
    ck_assert(!tcc_schedule_is_valid(&bad));
    bad = s, bad.warpgroups = 3;
    ck_assert(!tcc_schedule_is_valid(&bad));
    bad = s, bad.producer = TCC_PRODUCER_WARP;
    ck_assert(!tcc_schedule_is_valid(&bad));
    bad = s, bad.persistent = TCC_PERSISTENT_NONE;
    ck_assert(!tcc_schedule_is_valid(&bad));
    s.consumers = TCC_CONSUMERS_COOPERATIVE;
    ck_assert_int_eq(tcc_schedule_turns(&s), 1);
    ck_assert_int_eq(tcc_schedule_rows(&s), 64);
    ck_assert_int_eq(tcc_schedule_accumulators(&s), 12);
}
END_TEST

START_TEST(attributes_may_be_nonsense)
{
    const tcc_schedule good = {.target = target, .m = 128, .n = 24, .k = 32, .stages = 1, .warpgroups = 2, .group = 1};
    ck_assert(tcc_schedule_is_valid(&good));
    static const int64_t bad[] = {INT64_MIN, -64, 0, 1, 65, 257, 320, INT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tcc_schedule s = good;
        s.m = bad[i];
        ck_assert(!tcc_schedule_is_valid(&s));
        s = good, s.n = bad[i];
        ck_assert(!tcc_schedule_is_valid(&s));
        s = good, s.k = bad[i];
        ck_assert(!tcc_schedule_is_valid(&s));
        s = good, s.warpgroups = bad[i];
        ck_assert(tcc_schedule_is_valid(&s) == (bad[i] == 1));
        s = good, s.swizzle = bad[i];
        ck_assert(tcc_schedule_is_valid(&s) == (bad[i] == 0));
        s = good, s.stages = bad[i];
        ck_assert(tcc_schedule_is_valid(&s) == (bad[i] > 0 && bad[i] < INT64_MAX));
        s = good, s.group = bad[i];
        ck_assert(tcc_schedule_is_valid(&s) == (bad[i] > 0));
    }
}
END_TEST

/* Rows and columns of a tile that units read, of which there are so many along m and n. */
static int64_t reads(const tcc_schedule *s, int64_t along_m, int64_t along_n)
{
    return s->m / along_m + s->n / along_n;
}

/* Warps and waves alike stand so that no other arrangement in blocks of the same shape reads less. */
START_TEST(units_stand_where_they_read_least)
{
    static const struct {
        const char *target;
        tcc_instr instr;
    } of[] = {{"sm_80", TCC_INSTR_MMA}, {"gfx1100", TCC_INSTR_WMMA}};
    unsigned arranged = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int64_t m = 16; m <= 256; m += 16)
            for (int64_t n = 8; n <= 256; n += 8)
                for (int64_t units = 1; units <= 16; units++) {
                    bool waves = of[i].instr == TCC_INSTR_WMMA;
                    const tcc_schedule s = {.target = tcc_target_find(of[i].target), .m = m, .n = n,
                                            .instr = of[i].instr, .warps = waves ? 0 : units,
                                            .waves = waves ? units : 0, .wave = waves ? 32 : 0};
                    tcc_arrangement a;
                    bool can = tcc_arrange(&s, &a), any = false;
                    for (int64_t rows = 1; rows <= units; rows++) {
                        bool fits = units % rows == 0 && m % (a.block.m * rows) == 0 &&
                                    n % (a.block.n * (units / rows)) == 0;
                        any |= fits;
                        ck_assert(!can || !fits || reads(&s, rows, units / rows) >= reads(&s, a.stand[0], a.stand[1]));
                    }
                    ck_assert_int_eq(can, any);
                    arranged += can;
                    ck_assert(!can || (a.stand[0] * a.stand[1] == units && a.blocks[0] * a.block.m * a.stand[0] == m &&
                                       a.blocks[1] * a.block.n * a.stand[1] == n));
                }
    ck_assert_uint_gt(arranged, 1000);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("schedule");
    TCase *t = tcase_create("schedule");
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, threads_of_every_producer);
    tcase_add_test(t, accumulators_of_a_thread);
    tcase_add_test(t, registers_are_given_and_taken);
    tcase_add_test(t, copies_of_a_stage);
    tcase_add_test(t, an_instruction_fits_an_even_share);
    tcase_add_test(t, a_schedule_is_attributes);
    tcase_add_test(t, who_takes_whole_tiles);
    tcase_add_test(t, attributes_may_be_nonsense);
    tcase_add_test(t, units_stand_where_they_read_least);
    suite_add_tcase(s, t);
    return s;
}
