/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/diag.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

/* What the callback saw last, and how often it was called. */
static char text[2048], message[512], source_line[512];
static tcc_severity severity;
static int calls;

static void record(const tcc_diagnostic *d, void *user)
{
    ++*(int *)user;
    severity = d->severity;
    snprintf(text, sizeof text, "%s", d->text);
    snprintf(message, sizeof message, "%s", d->message);
    snprintf(source_line, sizeof source_line, "%s", d->source_line ? d->source_line : "(none)");
}

static tcc_diag diag_of(const char *source)
{
    calls = 0;
    return (tcc_diag){.file = "a.tile",
                      .source = source,
                      .size = source ? strlen(source) : 0,
                      .fn = record,
                      .user = &calls};
}

START_TEST(an_error_shows_place_line_and_caret)
{
    tcc_diag d = diag_of("kernel k()\n{\n    C[m] = x;\n}\n");
    tcc_error(&d, TCC_ERR_TYPE, (tcc_loc){3, 12}, "undefined name '%s'", "x");
    ck_assert_str_eq(text, "a.tile:3:12: error: undefined name 'x'\n"
                           "    C[m] = x;\n"
                           "           ^\n");
    ck_assert_str_eq(message, "undefined name 'x'");
    ck_assert_str_eq(source_line, "    C[m] = x;");
    ck_assert_int_eq(severity, TCC_SEV_ERROR);
}
END_TEST

START_TEST(the_status_is_that_of_the_first_error)
{
    tcc_diag d = diag_of("x");
    tcc_warn(&d, (tcc_loc){1, 1}, "odd");
    ck_assert_int_eq(d.status, TCC_OK);
    tcc_error(&d, TCC_ERR_TYPE, (tcc_loc){1, 1}, "one");
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 1}, "two");
    tcc_note(&d, (tcc_loc){1, 1}, "here");
    ck_assert_int_eq(d.status, TCC_ERR_TYPE);
    ck_assert_uint_eq(d.n_errors, 2);
    ck_assert_uint_eq(d.n_warnings, 1);
    ck_assert_int_eq(calls, 4);
    ck_assert_str_eq(text, "a.tile:1:1: note: here\nx\n^\n");
}
END_TEST

START_TEST(without_a_position_there_is_no_source_line)
{
    tcc_diag d = diag_of("x");
    tcc_error(&d, TCC_ERR_TARGET, (tcc_loc){0, 0}, "unknown target");
    ck_assert_str_eq(text, "a.tile: error: unknown target\n");
    ck_assert_str_eq(source_line, "(none)");
    d.file = NULL;
    tcc_error(&d, TCC_ERR_TARGET, (tcc_loc){0, 0}, "unknown target");
    ck_assert_str_eq(text, "error: unknown target\n");
}
END_TEST

START_TEST(a_line_past_the_end_is_not_shown)
{
    tcc_diag d = diag_of("one\ntwo");
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){9, 1}, "unexpected end");
    ck_assert_str_eq(text, "a.tile:9:1: error: unexpected end\n");
    d = diag_of(NULL);
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 1}, "no source");
    ck_assert_str_eq(text, "a.tile:1:1: error: no source\n");
}
END_TEST

START_TEST(the_last_line_needs_no_newline)
{
    tcc_diag d = diag_of("one\ntwo");
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){2, 4}, "expected ';'");
    ck_assert_str_eq(text, "a.tile:2:4: error: expected ';'\ntwo\n   ^\n");
}
END_TEST

START_TEST(carriage_returns_are_dropped)
{
    tcc_diag d = diag_of("one\r\ntwo\r\n");
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 1}, "x");
    ck_assert_str_eq(source_line, "one");
}
END_TEST

START_TEST(tabs_before_the_caret_are_kept)
{
    tcc_diag d = diag_of("\t\tx y");
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 5}, "x");
    ck_assert_str_eq(text, "a.tile:1:5: error: x\n\t\tx y\n\t\t  ^\n");
}
END_TEST

START_TEST(what_could_garble_a_terminal_shows_as_question_marks)
{
    tcc_diag d = diag_of("a\033[1m\377\xc3z\x7f\xc2\x9b\xe2\x80\xae-\xe2\x80\x8b");
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 10}, "x");
    ck_assert_str_eq(source_line, "a?[1m?\?z?\?\?-?");
    ck_assert_str_eq(text, "a.tile:1:10: error: x\na?[1m?\?z?\?\?-?\n         ^\n");
}
END_TEST

/* The column counts bytes, the caret stands below the character. */
START_TEST(utf8_is_shown_as_it_is)
{
    tcc_diag d = diag_of("\xc3\xa9\xe2\x82\xac x");
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 7}, "x");
    ck_assert_str_eq(text, "a.tile:1:7: error: x\n\xc3\xa9\xe2\x82\xac x\n   ^\n");
    d = diag_of("\xe6\x97\xa5\xf0\x9f\x98\x80""e\xcc\x81 x"); /* wide, wide, combined */
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 12}, "x");
    ck_assert_str_eq(strchr(strchr(text, '\n') + 1, '\n') + 1, "      ^\n");
    d = diag_of("\xef\xbb\xbfx y");
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 6}, "x");
    ck_assert_str_eq(text, "a.tile:1:6: error: x\nx y\n  ^\n");
}
END_TEST

START_TEST(a_long_line_is_cut_between_characters)
{
    char source[4001];
    for (int i = 0; i < 4000; i += 2)
        memcpy(source + i, "\xc3\xa9", 2);
    source[4000] = 0;
    for (uint32_t column = 1; column <= 4001; column += 25) {
        tcc_diag d = diag_of(source);
        tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, column}, "x");
        ck_assert_ptr_null(strchr(source_line, '?'));
        ck_assert_uint_le(strlen(source_line), 200);
    }
}
END_TEST

/* None of whose bytes begins a character. */
START_TEST(a_long_line_of_tails_is_cut_at_the_column)
{
    char source[1000];
    memset(source, 0x80, sizeof source - 1);
    source[sizeof source - 1] = 0;
    tcc_diag d = diag_of(source);
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 600}, "x");
    ck_assert_int_eq(calls, 1);
    const char *caret = strstr(text, "^");
    ck_assert_ptr_nonnull(caret);
    ck_assert_ptr_eq(strstr(text, "\n^\n"), caret - 1);
}
END_TEST

START_TEST(a_carriage_return_ends_a_line)
{
    tcc_diag d = diag_of("one\rtwo\r\nthree\n\rfive\r\rseven");
    for (uint32_t line = 1; line <= 7; line++) {
        static const char *const lines[] = {"one",  "two",    "three", "(none)",
                                            "five", "(none)", "seven"};
        tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){line, 1}, "x");
        ck_assert_str_eq(source_line, lines[line - 1]);
    }
}
END_TEST

START_TEST(a_long_line_is_cut_around_the_column)
{
    char source[5001];
    memset(source, '.', 5000);
    source[2999] = 'X';
    source[5000] = 0;
    tcc_diag d = diag_of(source);
    tcc_error(&d, TCC_ERR_SYNTAX, (tcc_loc){1, 3000}, "x");
    ck_assert_uint_le(strlen(source_line), 200);
    const char *caret = strchr(text, '^'), *line = strchr(text, '\n') + 1;
    const char *caret_line = strchr(line, '\n') + 1;
    ck_assert_int_eq(line[caret - caret_line], 'X');
}
END_TEST

START_TEST(errors_beyond_the_limit_are_counted_only)
{
    tcc_diag d = diag_of("x");
    for (int i = 0; i < 3 * TCC_MAX_ERRORS; i++) {
        tcc_error(&d, TCC_ERR_TYPE, (tcc_loc){1, 1}, "error %d", i);
        tcc_note(&d, (tcc_loc){1, 1}, "note %d", i);
    }
    ck_assert_uint_eq(d.n_errors, 3 * TCC_MAX_ERRORS);
    ck_assert_int_eq(calls, 2 * TCC_MAX_ERRORS);
}
END_TEST

START_TEST(without_a_callback_errors_are_counted)
{
    tcc_diag d = {.file = "a.tile"};
    tcc_error(&d, TCC_ERR_TYPE, (tcc_loc){1, 1}, "x");
    ck_assert_uint_eq(d.n_errors, 1);
    ck_assert_int_eq(d.status, TCC_ERR_TYPE);
}
END_TEST

START_TEST(an_error_is_counted_whatever_allocation_fails)
{
    for (long n = 0; n < 8; n++) {
        tcc_diag d = diag_of("some source");
        oom_fail_after(n);
        tcc_error(&d, TCC_ERR_TYPE, (tcc_loc){1, 3}, "message of %d", 1);
        oom_fail_after(-1);
        ck_assert_uint_eq(d.n_errors, 1);
        ck_assert_int_eq(d.status, TCC_ERR_TYPE);
        ck_assert_int_eq(calls, 1);
    }
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("diag");
    TCase *tc = tcase_create("diag");
    tcase_add_test(tc, an_error_shows_place_line_and_caret);
    tcase_add_test(tc, the_status_is_that_of_the_first_error);
    tcase_add_test(tc, without_a_position_there_is_no_source_line);
    tcase_add_test(tc, a_line_past_the_end_is_not_shown);
    tcase_add_test(tc, the_last_line_needs_no_newline);
    tcase_add_test(tc, carriage_returns_are_dropped);
    tcase_add_test(tc, tabs_before_the_caret_are_kept);
    tcase_add_test(tc, what_could_garble_a_terminal_shows_as_question_marks);
    tcase_add_test(tc, utf8_is_shown_as_it_is);
    tcase_add_test(tc, a_long_line_is_cut_between_characters);
    tcase_add_test(tc, a_long_line_of_tails_is_cut_at_the_column);
    tcase_add_test(tc, a_carriage_return_ends_a_line);
    tcase_add_test(tc, a_long_line_is_cut_around_the_column);
    tcase_add_test(tc, errors_beyond_the_limit_are_counted_only);
    tcase_add_test(tc, without_a_callback_errors_are_counted);
    tcase_add_test(tc, an_error_is_counted_whatever_allocation_fails);
    suite_add_tcase(s, tc);
    return s;
}
