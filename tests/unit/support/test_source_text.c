/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/text.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

#include "tests/unit/suite.h"

static void encode(uint32_t c, char *p, size_t *n)
{
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    *n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = *n; i-- > 1; c >>= 6)
        p[i] = (char)(0x80 | (c & 0x3f));
    p[0] = (char)(first[*n] | c);
}

START_TEST(every_character_is_read_back)
{
    uint32_t wrong = 0; /* an assertion takes too long for each */
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char text[4];
        size_t n;
        encode(c, text, &n);
        bool surrogate = c >= 0xd800 && c <= 0xdfff;
        wrong += tcc_utf8_length(text, n) != (surrogate ? 0 : n);
        wrong += !surrogate && tcc_utf8_decode(text, n) != c;
        wrong += tcc_utf8_length(text, n - 1) != 0;
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

START_TEST(a_line_ends_in_three_ways)
{
    ck_assert_uint_eq(tcc_line_end("\r\n", 2), 2);
    ck_assert_uint_eq(tcc_line_end("\r\n", 1), 1);
    ck_assert_uint_eq(tcc_line_end("\n\r", 2), 1);
    ck_assert_uint_eq(tcc_line_end("\r\r", 2), 1);
    ck_assert_uint_eq(tcc_line_end("x", 1), 0);
    ck_assert_uint_eq(tcc_line_end("\n", 0), 0);
    const char text[] = "ab\rc";
    ck_assert_ptr_eq(tcc_line_rest(text, text + 4), text + 2);
    ck_assert_ptr_eq(tcc_line_rest(text + 3, text + 4), text + 4);
    ck_assert_ptr_eq(tcc_line_rest(text, text), text);
}
END_TEST

START_TEST(long_lines_end_where_they_end)
{
    char text[1001];
    for (size_t at = 0; at < sizeof text; at++) {
        memset(text, 'x', sizeof text);
        ck_assert_ptr_eq(tcc_line_rest(text, text + at), text + at);
        text[at] = at % 2 ? '\n' : '\r';
        text[sizeof text - 1] = '\n';
        ck_assert_ptr_eq(tcc_line_rest(text, text + sizeof text), text + at);
        if (at)
            text[at - 1] = at % 2 ? '\r' : '\n';
        ck_assert_ptr_eq(tcc_line_rest(text, text + sizeof text), text + at - !!at);
    }
}
END_TEST

START_TEST(characters_have_widths)
{
    static const struct {
        uint32_t c;
        int width;
    } cases[] = {{0, -1},     {'\t', -1},   {' ', 1},     {'~', 1},      {0x7f, -1},  {0x9b, -1},
                 {0xe9, 1},   {0x301, 0},   {0x3a3, 1},   {0x202e, -1},  {0x20ac, 1}, {0x65e5, 2},
                 {0xac00, 2}, {0x1f600, 2}, {0x10ffff, 1}, {0xe0001, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_int_eq(tcc_char_width(cases[i].c), cases[i].width);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("text");
    TCase *t = tcase_create("text");
    tcase_add_test(t, every_character_is_read_back);
    tcase_add_test(t, a_line_ends_in_three_ways);
    tcase_add_test(t, long_lines_end_where_they_end);
    tcase_add_test(t, characters_have_widths);
    suite_add_tcase(s, t);
    return s;
}
