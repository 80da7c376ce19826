/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/str.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

START_TEST(an_empty_buffer_reads_as_an_empty_string)
{
    tcc_str s = {0};
    ck_assert_str_eq(tcc_str_text(&s), "");
    tcc_str_free(&s);
}
END_TEST

START_TEST(appends_join_in_order)
{
    tcc_str s = {0};
    tcc_str_puts(&s, "tile.");
    tcc_str_append(&s, "mma-", 3);
    tcc_str_printf(&s, " %%%d : %s", 7, "f32");
    ck_assert_str_eq(tcc_str_text(&s), "tile.mma %7 : f32");
    ck_assert_uint_eq(s.len, strlen("tile.mma %7 : f32"));
    tcc_str_free(&s);
}
END_TEST

START_TEST(bytes_may_be_zero)
{
    tcc_str s = {0};
    tcc_str_append(&s, "a\0b", 3);
    ck_assert_uint_eq(s.len, 3);
    ck_assert_mem_eq(s.data, "a\0b", 4);
    tcc_str_free(&s);
}
END_TEST

START_TEST(integers_and_spaces_are_as_printf_has_them)
{
    static const int64_t values[] = {0, 7, -1, 10, -10, 1234567890, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        tcc_str s = {0}, expected = {0};
        tcc_str_indent(&s, i);
        tcc_str_int(&s, values[i]);
        tcc_str_printf(&expected, "%*s%lld", (int)i, "", (long long)values[i]);
        ck_assert_str_eq(tcc_str_text(&s), tcc_str_text(&expected));
        ck_assert_uint_eq(s.len, expected.len);
        tcc_str_free(&s);
        tcc_str_free(&expected);
    }
}
END_TEST

/* Every length around the sizes at which the buffer grows. */
START_TEST(it_grows_at_any_length)
{
    for (size_t n = 250; n < 1030; n++) {
        tcc_str s = {0};
        for (size_t i = 0; i < n; i++)
            tcc_str_append(&s, "x", 1);
        tcc_str_printf(&s, "%0*d", (int)n, 0);
        ck_assert_uint_eq(strlen(tcc_str_text(&s)), 2 * n);
        tcc_str_free(&s);
    }
}
END_TEST

START_TEST(take_hands_over_the_text_and_empties)
{
    tcc_str s = {0};
    tcc_str_puts(&s, "ptx");
    char *text = tcc_str_take(&s);
    ck_assert_str_eq(text, "ptx");
    ck_assert_ptr_null(s.data);
    free(text);
    char *empty = tcc_str_take(&s);
    ck_assert_str_eq(empty, "");
    free(empty);
}
END_TEST

START_TEST(a_failed_append_sticks_and_keeps_what_was_there)
{
    tcc_str s = {0};
    tcc_str_puts(&s, "kept");
    oom_fail_after(0);
    tcc_str_printf(&s, "%1000d", 0);
    ck_assert(s.failed);
    tcc_str_puts(&s, "dropped");
    ck_assert_str_eq(tcc_str_text(&s), "kept");
    ck_assert_ptr_null(tcc_str_take(&s));
    ck_assert(!s.failed);
}
END_TEST

START_TEST(take_fails_when_even_the_terminator_does)
{
    tcc_str s = {0};
    oom_fail_after(0);
    ck_assert_ptr_null(tcc_str_take(&s));
}
END_TEST

START_TEST(a_word_is_found_whole)
{
    ck_assert(tcc_has_word("waves wave group", "waves"));
    ck_assert(tcc_has_word("waves wave group", "wave"));
    ck_assert(tcc_has_word("waves wave group", "group"));
    ck_assert(!tcc_has_word("waves group", "wave"));
    ck_assert(!tcc_has_word("waves group", "aves"));
    ck_assert(!tcc_has_word("waves group", "groups"));
    ck_assert(!tcc_has_word("", "wave"));
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("str");
    TCase *tc = tcase_create("str");
    tcase_add_test(tc, an_empty_buffer_reads_as_an_empty_string);
    tcase_add_test(tc, appends_join_in_order);
    tcase_add_test(tc, bytes_may_be_zero);
    tcase_add_test(tc, integers_and_spaces_are_as_printf_has_them);
    tcase_add_test(tc, it_grows_at_any_length);
    tcase_add_test(tc, take_hands_over_the_text_and_empties);
    tcase_add_test(tc, a_failed_append_sticks_and_keeps_what_was_there);
    tcase_add_test(tc, take_fails_when_even_the_terminator_does);
    tcase_add_test(tc, a_word_is_found_whole);
    suite_add_tcase(s, tc);
    return s;
}
