/* Whatever the order of the tiles, each is one CTA's: there are as many CTAs as tiles, and none of the tiles is
 * left out.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/interp/kernel.h"
#include "tests/unit/suite.h"

static const char *const orders[] = {"group 3", "raster row", "raster column", "raster hilbert"};
static const char *const targets[] = {"sm_90a", "gfx1100"};
enum { ORDERS = sizeof orders / sizeof *orders, TARGETS = sizeof targets / sizeof *targets, COLUMNS = 32 };

/* The target's pipeline, up to where CTAs have their tiles or to its end. */
static void compile(kernel *k, bool whole)
{
    static const char last[] = "distribute-grid";
    char list[4096];
    snprintf(list, sizeof list, "%s", tcc_pipeline(tcc_target_of(k->ir)));
    char *end = strstr(list, last);
    ck_assert_ptr_nonnull(end);
    if (!whole)
        end[sizeof last - 1] = 0;
    ck_assert_msg(!tcc_run_passes(k->ir, list, NULL, &k->diag), "%s", k->said);
}

static void check_all(const char *target, const char *source, extents e, bool whole)
{
    kernel k;
    kernel_open_for(&k, target, source, e);
    compile(&k, whole);
    const tcc_func *f = k.ir->first;
    ck_assert_msg(!kernel_run(&k, f, 1), "%s: %s", source, k.said);
    kernel_compare(&k, f, 1);
    kernel_close(&k);
}

static void check_grid(const char *target, const char *order, int64_t rows, int64_t columns, bool whole)
{
    char source[512];
    snprintf(source, sizeof source,
             "kernel f(X: f32[M, N]) -> (Y: f32[M, N]) { Y[m, n] = X[m, n] * 2; }\n"
             "schedule f for %s { tile m 4, n %d; %s; }\n",
             target, COLUMNS, order);
    check_all(target, source, (extents){.m = rows * 4 - 1, .n = columns * COLUMNS}, whole);
}

START_TEST(every_small_grid)
{
    int64_t rows = 1 + _i / ORDERS;
    for (int64_t columns = 1; columns < 20; columns++)
        check_grid(targets[0], orders[_i % ORDERS], rows, columns, false);
}
END_TEST

START_TEST(long_grids)
{
    static const int64_t longs[] = {23, 64, 97};
    for (int i = 0; i < 3; i++) {
        check_grid(targets[0], orders[_i], longs[i], 1, false);
        check_grid(targets[0], orders[_i], 1, longs[i], false);
        check_grid(targets[0], orders[_i], longs[i], 11, false);
        check_grid(targets[0], orders[_i], 13, longs[i], false);
    }
}
END_TEST

START_TEST(by_instructions)
{
    static const int64_t sizes[][2] = {{1, 1}, {8, 8}, {9, 17}, {19, 10}, {1, 13}, {13, 1}};
    for (int i = 0; i < 6; i++)
        check_grid(targets[_i / ORDERS], orders[_i % ORDERS], sizes[i][0], sizes[i][1], true);
}
END_TEST

/* Clusters of tiles have an order, and so have the tiles of a persistent CTA, those of each part of a sum, of each
 * product of a batch. */
static const struct {
    const char *target, *settings;
} products[] = {
    {"sm_90a", "tile m 64, n 16, k 16; stages 2; cluster m 2"},
    {"sm_90a", "tile m 64, n 16, k 16; stages 2; cluster n 2"},
    {"sm_90a", "tile m 64, n 16, k 16; stages 2; persistent"},
    {"sm_90a", "tile m 64, n 16, k 16; stages 2; persistent; cluster m 2"},
    {"sm_90a", "tile m 64, n 16, k 16; stages 2; persistent; consumers pingpong"},
    {"sm_90a", "tile m 64, n 16, k 16; stages 1; split 2"},
    {"sm_80", "tile m 16, n 16, k 32; warps 1"},
    {"gfx1100", "tile m 16, n 16, k 32; waves 1"},
};
enum { PRODUCTS = sizeof products / sizeof *products };

START_TEST(with_what_else_a_schedule_has)
{
    const char *target = products[_i / ORDERS].target;
    char source[512];
    snprintf(source, sizeof source,
             "kernel f(A: f16[P, M, K], B: f16[K, N]) -> (C: f32[P, M, N])\n"
             "{\n    C[p, m, n] = sum(k) A[p, m, k] * B[k, n];\n}\n"
             "schedule f for %s { %s; %s; }\n",
             target, products[_i / ORDERS].settings, orders[_i % ORDERS]);
    int64_t high = strstr(products[_i / ORDERS].settings, "m 64") ? 64 : 16;
    check_all(target, source, (extents){.m = 9 * high, .n = 9 * 16, .k = 16, .p = 2}, true);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("raster");
    TCase *t = tcase_create("raster");
    tcase_set_timeout(t, 60);
    suite_add_sampled(t, every_small_grid, 19 * ORDERS);
    tcase_add_loop_test(t, long_grids, 0, ORDERS);
    tcase_add_loop_test(t, by_instructions, 0, TARGETS * ORDERS);
    tcase_add_loop_test(t, with_what_else_a_schedule_has, 0, PRODUCTS *ORDERS);
    suite_add_tcase(s, t);
    return s;
}
