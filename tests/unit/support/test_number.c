/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/number.h"

#include <check.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static bool parses(const char *text, double *out)
{
    return tcc_double_parse(text, strlen(text), out);
}

static void check_round_trip(double v)
{
    tcc_str s = {0};
    double back;
    tcc_str_double(&s, v);
    ck_assert_msg(tcc_double_parse(s.data, s.len, &back), "%s does not parse", s.data);
    ck_assert_msg(!memcmp(&v, &back, sizeof v), "%a prints as %s, which is %a", v, s.data, back);
    ck_assert_msg(strpbrk(s.data, ".ein"), "%s looks like an integer", s.data);
    tcc_str_free(&s);
}

START_TEST(text_reads_back_as_the_same_bits)
{
    const double values[] = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             0.1,
                             1.0 / 3,
                             1e15,
                             1e16,
                             1e17,
                             1e300,
                             DBL_MAX,
                             -DBL_MAX,
                             DBL_MIN,
                             5e-324,
                             INFINITY,
                             -INFINITY,
                             0.3 - 0.1,
                             123456789012345678.0,
                             4503599627370497.5,
                             65504.0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        check_round_trip(values[i]);
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        double v;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        memcpy(&v, &bits, sizeof v);
        if (!isnan(v))
            check_round_trip(v);
    }
}
END_TEST

START_TEST(text_is_as_people_write_it)
{
    const struct {
        double v;
        const char *text;
    } cases[] = {
        {0, "0.0"},   {-0.0, "-0.0"},    {1, "1.0"},          {100, "100.0"},
        {0.1, "0.1"}, {1e20, "1e+20"},   {2.5e-7, "2.5e-07"}, {0.1 + 0.2, "0.30000000000000004"},
        {NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tcc_str s = {0};
        tcc_str_double(&s, cases[i].v);
        ck_assert_str_eq(s.data, cases[i].text);
        tcc_str_free(&s);
    }
}
END_TEST

START_TEST(what_is_no_number_is_refused)
{
    const char *const bad[] = {"",      "x",  "1x",       "1.2.3", "1e",  "--1", "1 ", " 1",
                               "1e999", "0x", "infinity", "nanx",  "1,5", ".",   "e5", "+-1"};
    double v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!parses(bad[i], &v), "'%s' is taken for %g", bad[i], v);
    ck_assert(!tcc_double_parse("1\0002", 3, &v));
    char many[300];
    memset(many, '1', sizeof many);
    ck_assert(!tcc_double_parse(many, sizeof many, &v));
    ck_assert(tcc_double_parse(many, 255, &v));
}
END_TEST

START_TEST(both_bases_are_read)
{
    double v;
    ck_assert(parses("0x1.8p-3", &v) && v == 0.1875);
    ck_assert(parses("-0x1p+4", &v) && v == -16);
    ck_assert(parses("1e-2", &v) && v == 0.01);
    ck_assert(parses("+2.", &v) && v == 2);
    ck_assert(parses("nan", &v) && isnan(v));
    ck_assert(parses("-inf", &v) && v == -INFINITY);
}
END_TEST

/* A program that embeds the library may live in any locale. */
START_TEST(the_locale_does_not_matter)
{
    const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "ps_AF.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!setlocale(LC_NUMERIC, names[i]))
            continue;
        double v;
        tcc_str s = {0};
        tcc_str_double(&s, 1.5);
        ck_assert_str_eq(s.data, "1.5");
        ck_assert(parses("1.5", &v) && v == 1.5);
        ck_assert(!parses("1,5", &v));
        tcc_str_free(&s);
    }
    setlocale(LC_NUMERIC, "C");
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("number");
    TCase *tc = tcase_create("number");
    tcase_add_test(tc, text_reads_back_as_the_same_bits);
    tcase_add_test(tc, text_is_as_people_write_it);
    tcase_add_test(tc, what_is_no_number_is_refused);
    tcase_add_test(tc, both_bases_are_read);
    tcase_add_test(tc, the_locale_does_not_matter);
    suite_add_tcase(s, tc);
    return s;
}
