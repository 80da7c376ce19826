/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/element.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static double rounded(const char *type, double x)
{
    return elem_round(elem_type_find(type), x);
}

START_TEST(every_16_bit_element_survives_a_round_trip)
{
    static const char *const names[] = {"f16", "bf16"};
    const elem_type *t = elem_type_find(names[_i]);
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t in = (uint16_t)bits, out;
        double x = elem_get(t, &in, 0);
        elem_set(t, &out, 0, x);
        if (isnan(x))
            ck_assert(isnan(elem_get(t, &out, 0)));
        else
            ck_assert_uint_eq(in, out);
    }
}
END_TEST

START_TEST(every_small_element_survives_a_round_trip)
{
    static const char *const names[] = {"e4m3", "e5m2", "i8", "u8", "i4", "u4"};
    const elem_type *t = elem_type_find(names[_i]);
    for (unsigned bits = 0; bits < 256; bits++) {
        uint8_t in = (uint8_t)bits, out = 0;
        for (size_t i = 0; i < 8 / t->bits; i++)
            elem_set(t, &out, i, elem_get(t, &in, i));
        if (isnan(elem_get(t, &in, 0)))
            ck_assert(isnan(elem_get(t, &out, 0)));
        else
            ck_assert_uint_eq(in, out);
    }
}
END_TEST

START_TEST(tf32_is_an_f32_whose_lower_bits_do_not_count)
{
    const elem_type *t = elem_type_find("tf32");
    float x;
    elem_set(t, &x, 0, 1 + 0x1.8p-11);
    ck_assert(x == (float)(1 + 0x1.8p-11));
    ck_assert(elem_get(t, &x, 0) == 1);
    ck_assert(rounded("tf32", 1 + 0x1p-11) == 1 + 0x1p-10 && rounded("tf32", -1 - 0x1p-11) == -1 - 0x1p-10);
    ck_assert(isinf(rounded("tf32", 0x1.fffffep127)) && isnan(rounded("tf32", (double)NAN)));
}
END_TEST

START_TEST(halves_of_bytes_lie_low_first)
{
    const elem_type *i4 = elem_type_find("i4"), *u4 = elem_type_find("u4");
    uint8_t data[3] = {0xff, 0xff, 0xff};
    for (size_t i = 0; i < 5; i++)
        elem_set(i4, data, i, (double)i - 2);
    ck_assert_mem_eq(data, ((uint8_t[]){0xfe, 0x10, 0xf2}), 3);
    ck_assert(elem_get(i4, data, 0) == -2 && elem_get(u4, data, 0) == 14);
    ck_assert_uint_eq(elem_bytes(i4, 5), 3);
    ck_assert_uint_eq(elem_bytes(elem_type_find("i32"), 5), 20);
}
END_TEST

START_TEST(f32_is_what_the_processor_does)
{
    const elem_type *t = elem_type_find("f32");
    uint64_t random = 1;
    for (int i = 0; i < 100000; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double x = ldexp((double)(int64_t)random, (int)(random >> 20 & 255) - 200);
        float expected = (float)x, got;
        elem_set(t, &got, 0, x);
        ck_assert_mem_eq(&got, &expected, sizeof got);
        ck_assert(elem_get(t, &got, 0) == (double)expected);
    }
}
END_TEST

START_TEST(f64_is_a_double)
{
    static const double numbers[] = {0, -0.0, 0.1, -0x1.fffffffffffffp1023, 0x1p-1074, INFINITY};
    const elem_type *t = elem_type_find("f64");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double got;
        elem_set(t, &got, 0, numbers[i]);
        ck_assert_mem_eq(&got, &numbers[i], sizeof got);
        got = elem_get(t, &numbers[i], 0);
        ck_assert_mem_eq(&got, &numbers[i], sizeof got);
        ck_assert(elem_round(t, numbers[i]) == numbers[i]);
    }
    ck_assert(isnan(elem_round(t, NAN)));
    ck_assert_uint_eq(elem_bytes(t, 3), 24);
}
END_TEST

/* Between two neighbours the nearer one, half-way the even one. */
START_TEST(rounding_is_to_nearest_even)
{
    static const char *const names[] = {"f16", "bf16"};
    const elem_type *t = elem_type_find(names[_i]);
    uint16_t infinity = _i ? 0x7f80 : 0x7c00;
    for (uint16_t bits = 0; bits + 1 < infinity; bits++) {
        uint16_t next = (uint16_t)(bits + 1);
        double low = elem_get(t, &bits, 0), high = elem_get(t, &next, 0);
        ck_assert(elem_round(t, low + (high - low) / 2) == (bits % 2 ? high : low));
        ck_assert(elem_round(t, low + (high - low) * 0.499) == low);
        ck_assert(elem_round(t, low + (high - low) * 0.501) == high);
        ck_assert(elem_round(t, -low - (high - low) * 0.501) == -high);
    }
}
END_TEST

START_TEST(overflow_and_specials)
{
    ck_assert(rounded("f16", 65519.99) == 65504);
    ck_assert(isinf(rounded("f16", 65520)));
    ck_assert(rounded("f16", -1e30) == -INFINITY);
    ck_assert(rounded("bf16", 3.39e38) < INFINITY);
    ck_assert(isinf(rounded("bf16", 3.4e38)));
    ck_assert(isinf(rounded("f32", 1e39)));
    ck_assert(rounded("f16", 1e-300) == 0);
    ck_assert(signbit(rounded("f16", -1e-300)));
    ck_assert(isnan(rounded("bf16", NAN)));
    ck_assert(rounded("f32", INFINITY) == INFINITY);
    ck_assert_ptr_null(elem_type_find("f63"));
    ck_assert(rounded("e4m3", 464) == 448 && isnan(rounded("e4m3", 464.1)));
    ck_assert(isnan(rounded("e4m3", -INFINITY)) && isnan(rounded("e4m3", NAN)));
    ck_assert(rounded("e4m3", 0x1p-10) == 0 && rounded("e4m3", 0x1.8p-10) == 0x1p-9);
    ck_assert(rounded("e5m2", 61439) == 57344 && isinf(rounded("e5m2", 61440)));
    ck_assert(rounded("i8", 127.5) == 127 && rounded("i8", -1e9) == -128);
    ck_assert(rounded("u8", -1) == 0 && rounded("u4", 2.5) == 2 && rounded("i4", 3.5) == 4);
    ck_assert(rounded("i32", 1e10) == INT32_MAX && rounded("i32", NAN) == 0);
}
END_TEST

START_TEST(random_numbers_are_standard_normal)
{
    enum { N = 300001 }; /* several threads' worth, and odd */
    const elem_type *t = elem_type_find("f32");
    float *x = malloc(N * sizeof *x);
    double sum = 0, sum2 = 0, sum4 = 0, lag = 0;
    elem_fill_random(t, x, N, 7);
    for (int i = 0; i < N; i++) {
        double v = (double)x[i];
        sum += v;
        sum2 += v * v;
        sum4 += v * v * v * v;
        lag += i ? v * (double)x[i - 1] : 0;
    }
    ck_assert_double_lt(fabs(sum / N), 0.01);
    ck_assert_double_lt(fabs(sum2 / N - 1), 0.01);
    ck_assert_double_lt(fabs(sum4 / N - 3), 0.1);
    ck_assert_double_lt(fabs(lag / N), 0.01);
    free(x);
}
END_TEST

START_TEST(random_integers_have_their_whole_range)
{
    enum { N = 300001 };
    static const char *const names[] = {"i8", "u8", "i4", "u4"};
    static const double least[] = {-128, 0, -8, 0}, most[] = {127, 255, 7, 15};
    const elem_type *t = elem_type_find(names[_i]);
    uint8_t *x = malloc(elem_bytes(t, N));
    elem_fill_random(t, x, N, 7);
    size_t counts[256] = {0}, n_values = (size_t)(most[_i] - least[_i]) + 1;
    for (size_t i = 0; i < N; i++)
        counts[(size_t)(elem_get(t, x, i) - least[_i])]++;
    for (size_t i = 0; i < 256; i++)
        if (i < n_values)
            ck_assert_double_lt(fabs((double)(counts[i] * n_values) / N - 1), 0.2);
        else
            ck_assert_uint_eq(counts[i], 0);
    free(x);
}
END_TEST

START_TEST(random_numbers_depend_on_seed_and_position_alone)
{
    enum { N = 200000 };
    const elem_type *t = elem_type_find("f16");
    uint16_t *all = malloc(N * sizeof *all), few[5], other[5];
    elem_fill_random(t, all, N, 1);
    elem_fill_random(t, few, 5, 1);
    elem_fill_random(t, other, 5, 2);
    ck_assert_mem_eq(all, few, sizeof few);
    ck_assert_mem_ne(few, other, sizeof few);
    free(all);
}
END_TEST

START_TEST(widening_covers_every_element)
{
    enum { N = 200003 };
    const elem_type *t = elem_type_find("bf16");
    uint16_t *x = malloc(N * sizeof *x);
    double *wide = malloc(N * sizeof *wide);
    elem_fill_random(t, x, N, 3);
    elem_to_doubles(t, x, N, wide);
    for (size_t i = 0; i < N; i++)
        ck_assert(wide[i] == elem_get(t, x, i));
    free(x);
    free(wide);
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("element");
    TCase *tcase = tcase_create("element");
    tcase_add_loop_test(tcase, every_16_bit_element_survives_a_round_trip, 0, 2);
    tcase_add_loop_test(tcase, every_small_element_survives_a_round_trip, 0, 6);
    tcase_add_test(tcase, tf32_is_an_f32_whose_lower_bits_do_not_count);
    tcase_add_test(tcase, halves_of_bytes_lie_low_first);
    tcase_add_test(tcase, f32_is_what_the_processor_does);
    tcase_add_test(tcase, f64_is_a_double);
    tcase_add_loop_test(tcase, rounding_is_to_nearest_even, 0, 2);
    tcase_add_test(tcase, overflow_and_specials);
    tcase_add_test(tcase, random_numbers_are_standard_normal);
    tcase_add_loop_test(tcase, random_integers_have_their_whole_range, 0, 4);
    tcase_add_test(tcase, random_numbers_depend_on_seed_and_position_alone);
    tcase_add_test(tcase, widening_covers_every_element);
    suite_add_tcase(suite, tcase);
    return suite;
}
