/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/map.h"

#include <check.h>
#include <stdbool.h>
#include <setjmp.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

START_TEST(an_empty_map_has_nothing)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_map m = TCC_MAP(arena);
    ck_assert_ptr_null(tcc_map_get(&m, arena));
    ck_assert_uint_eq(tcc_arena_used(arena), 0);
    tcc_arena_destroy(arena);
}
END_TEST

START_TEST(values_stay_while_the_map_grows)
{
    enum { N = 20000 };
    static int keys[N + 1];
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_map m = TCC_MAP(arena);
    for (int i = 0; i < N; i++) {
        void **slot = tcc_map_at(&m, &keys[i]);
        ck_assert_ptr_null(*slot);
        *slot = &keys[N - 1 - i];
    }
    for (int i = 0; i < N; i++) {
        ck_assert_ptr_eq(tcc_map_get(&m, &keys[i]), &keys[N - 1 - i]);
        ck_assert_ptr_eq(*tcc_map_at(&m, &keys[i]), &keys[N - 1 - i]);
    }
    ck_assert_ptr_null(tcc_map_get(&m, &keys[N]));
    ck_assert_uint_eq(m.len, N);
    tcc_arena_destroy(arena);
}
END_TEST

/* Fills a map with the n-th allocation failing; true when that was reached. */
static bool filling_runs_out(long n)
{
    static int keys[5000];
    jmp_buf handler;
    tcc_arena *a = tcc_arena_create(&handler);
    if (setjmp(handler)) {
        tcc_arena_destroy(a);
        return true;
    }
    oom_fail_after(n);
    tcc_map m = TCC_MAP(a);
    for (int i = 0; i < 5000; i++)
        *tcc_map_at(&m, &keys[i]) = &keys[i];
    oom_fail_after(-1);
    tcc_arena_destroy(a);
    return false;
}

START_TEST(every_failing_allocation_reaches_the_handler)
{
    long n = 0;
    while (filling_runs_out(n))
        n++;
    ck_assert_int_gt(n, 2);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("map");
    TCase *tc = tcase_create("map");
    tcase_add_test(tc, an_empty_map_has_nothing);
    tcase_add_test(tc, values_stay_while_the_map_grows);
    tcase_add_test(tc, every_failing_allocation_reaches_the_handler);
    suite_add_tcase(s, tc);
    return s;
}
