/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/names.h"

#include <check.h>
#include <stdio.h>

#include "support/intern.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;

static void setup(void)
{
    arena = tcc_arena_create(NULL);
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

START_TEST(names_keep_their_order)
{
    tcc_intern *intern = tcc_intern_create(arena);
    tcc_names t = {0};
    int what[1000];
    const char *name[1000];
    ck_assert_ptr_null(tcc_names_get(&t, tcc_intern_get(intern, "x", 1)));
    for (int i = 0; i < 1000; i++) {
        char text[16];
        name[i] = tcc_intern_get(intern, text, (size_t)snprintf(text, sizeof text, "n%d", i));
        tcc_names_put(arena, &t, name[i], &what[i]);
    }
    ck_assert_uint_eq(t.len, 1000);
    for (int i = 0; i < 1000; i++) {
        ck_assert_ptr_eq(tcc_names_get(&t, name[i]), &what[i]);
        ck_assert_ptr_eq(t.entries[i].name, name[i]);
    }
    ck_assert_ptr_null(tcc_names_get(&t, tcc_intern_get(intern, "x", 1)));
}
END_TEST

/* What is meant by `wanted` among three names. */
static const char *nearest(const char *wanted, const char *a, const char *b, const char *c)
{
    tcc_spelling s = {.wanted = wanted};
    tcc_spelling_try(&s, a);
    tcc_spelling_try(&s, b);
    tcc_spelling_try(&s, c);
    return tcc_spelling_hint(arena, &s);
}

START_TEST(the_nearest_spelling_is_meant)
{
    ck_assert_str_eq(nearest("rleu", "gelu", "relu", "silu"), "; did you mean 'relu'?");
    ck_assert_str_eq(nearest("gelutanh", "gelu", "gelu_tanh", "tanh"),
                     "; did you mean 'gelu_tanh'?");
    ck_assert_str_eq(nearest("biass", "bias1", "bias", "basis"), "; did you mean 'bias1'?");
    ck_assert_str_eq(nearest("N", "m", "n", "k"), "; did you mean 'n'?");
}
END_TEST

START_TEST(nothing_near_is_no_hint)
{
    ck_assert_str_eq(nearest("x", "y", "z", ""), "");
    ck_assert_str_eq(nearest("exp", "log", "abs", "erf"), "");
    ck_assert_str_eq(nearest("relu", "relu", "relu", "relu"), "");
    ck_assert_str_eq(nearest("", "a", "b", "c"), "");
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("names");
    TCase *tc = tcase_create("names");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, names_keep_their_order);
    tcase_add_test(tc, the_nearest_spelling_is_meant);
    tcase_add_test(tc, nothing_near_is_no_hint);
    suite_add_tcase(s, tc);
    return s;
}
