/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/extent.h"

#include <check.h>

#include "tests/unit/suite.h"

static const char *const names[] = {"M", "N", "W1"};

static int find(const void *user, const tcc_extent_factor *name)
{
    (void)user;
    for (int i = 0; i < 3; i++)
        if (tcc_extent_is(name, names[i]))
            return i;
    return -1;
}

static int64_t value(const char *name, bool *ok)
{
    static const int64_t values[] = {10, 3, 0};
    int64_t n = -1;
    *ok = tcc_extent_eval(name, find, NULL, values, &n);
    return n;
}

START_TEST(names_say_what_extents_are)
{
    static const struct {
        const char *name;
        int64_t is;
    } cases[] = {{"M", 10}, {"M.N", 30}, {"M.N.4", 120}, {"4.M", 40}, {"(M)", 10}, {"(M - N * 2 + 1)", 5},
                 {"((M + 3) / 4)", 3}, {"(-M + 4 * N)", 2}, {"(2 * (M / 3) * N)", 18}, {"(M - 3 * N / 2)", 6},
                 {"(N - M)", 0}, {"(M / W1)", 10}, {"((N - M) / 2 + 5)", 1}, {"(M * 4611686018427387904)", INT64_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool ok;
        int64_t n = value(cases[i].name, &ok);
        ck_assert_msg(ok && n == cases[i].is, "%s is %lld", cases[i].name, (long long)n);
    }
}
END_TEST

START_TEST(what_is_no_name_is_refused)
{
    static const char *const wrong[] = {"", "X", "M.", "M..N", "M N", "(M", "(M))", "(M +)", "(M + X)", "()", "M + N",
                                        "(M % 3)", "(1a)", "99999999999999999999", "(M +- N)"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bool ok;
        value(wrong[i], &ok);
        ck_assert_msg(!ok, "%s", wrong[i]);
    }
}
END_TEST

START_TEST(expressions_compute_the_same)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    static const int64_t values[] = {4, 9, 2};
    tcc_expr e;
    int64_t n;
    ck_assert(tcc_extent_compile(arena, "(M - N)", true, find, NULL, &e));
    ck_assert(tcc_expr_value(&e, values, NULL, &n) && n == -5);
    ck_assert(tcc_extent_compile(arena, "(M - N)", false, find, NULL, &e));
    ck_assert(tcc_expr_value(&e, values, NULL, &n) && n == 0);
    tcc_arena_destroy(arena);
}
END_TEST

START_TEST(people_read_products_and_sums)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    ck_assert_str_eq(tcc_extent_text(arena, "M"), "M");
    ck_assert_str_eq(tcc_extent_text(arena, "M.N.4"), "4 * M * N");
    ck_assert_str_eq(tcc_extent_text(arena, "(M + N - 1)"), "M + N - 1");
    const char *left = "(M + 2 * N - W1)";
    tcc_extent_factor f;
    for (int i = 0; i < 3; i++)
        ck_assert(tcc_extent_take_name(&left, &f) && tcc_extent_is(&f, names[i]));
    ck_assert(!tcc_extent_take_name(&left, &f));
    tcc_arena_destroy(arena);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("extent");
    TCase *tc = tcase_create("extent");
    tcase_add_test(tc, names_say_what_extents_are);
    tcase_add_test(tc, what_is_no_name_is_refused);
    tcase_add_test(tc, expressions_compute_the_same);
    tcase_add_test(tc, people_read_products_and_sums);
    suite_add_tcase(s, tc);
    return s;
}
