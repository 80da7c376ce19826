/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/intern.h"

#include <check.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;
static tcc_intern *names;

static void setup(void)
{
    arena = tcc_arena_create(NULL);
    names = tcc_intern_create(arena);
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

START_TEST(equal_bytes_give_one_pointer)
{
    char text[] = "acc";
    const char *first = tcc_intern_get(names, text, 3);
    ck_assert_ptr_ne(first, text);
    ck_assert_ptr_eq(tcc_intern_get(names, "acc", 3), first);
    ck_assert_ptr_eq(tcc_intern_get(names, "accumulator", 3), first);
    ck_assert_str_eq(first, "acc");
}
END_TEST

START_TEST(different_bytes_give_different_pointers)
{
    const char *ab = tcc_intern_get(names, "ab", 2), *a = tcc_intern_get(names, "ab", 1);
    const char *empty = tcc_intern_get(names, "", 0);
    const char *with_zero = tcc_intern_get(names, "ab\0c", 4);
    ck_assert_ptr_ne(ab, a);
    ck_assert_ptr_ne(a, empty);
    ck_assert_ptr_ne(ab, with_zero);
    ck_assert_mem_eq(with_zero, "ab\0c", 5);
}
END_TEST

/* Enough names for several rehashes. */
START_TEST(pointers_stay_while_the_table_grows)
{
    enum { N = 20000 };
    static const char *seen[N];
    char text[16];
    for (int i = 0; i < N; i++)
        seen[i] = tcc_intern_get(names, text, (size_t)snprintf(text, sizeof text, "n%d", i));
    for (int i = 0; i < N; i++) {
        size_t n = (size_t)snprintf(text, sizeof text, "n%d", i);
        ck_assert_ptr_eq(tcc_intern_get(names, text, n), seen[i]);
        ck_assert_str_eq(seen[i], text);
    }
}
END_TEST

/* Interns with the n-th allocation failing; true when that was reached. */
static bool interning_runs_out(long n)
{
    jmp_buf handler;
    tcc_arena *a = tcc_arena_create(&handler);
    if (setjmp(handler)) {
        tcc_arena_destroy(a);
        return true;
    }
    oom_fail_after(n);
    tcc_intern *t = tcc_intern_create(a);
    char text[16];
    for (int i = 0; i < 5000; i++)
        tcc_intern_get(t, text, (size_t)snprintf(text, sizeof text, "n%d", i));
    oom_fail_after(-1);
    tcc_arena_destroy(a);
    return false;
}

START_TEST(every_failing_allocation_reaches_the_handler)
{
    long n = 0;
    while (interning_runs_out(n))
        n++;
    ck_assert_int_gt(n, 2);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("intern");
    TCase *tc = tcase_create("intern");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, equal_bytes_give_one_pointer);
    tcase_add_test(tc, different_bytes_give_different_pointers);
    tcase_add_test(tc, pointers_stay_while_the_table_grows);
    tcase_add_test(tc, every_failing_allocation_reaches_the_handler);
    suite_add_tcase(s, tc);
    return s;
}
