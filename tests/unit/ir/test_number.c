/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/number.h"

#include <check.h>
#include <math.h>

#include "tests/unit/suite.h"

static const tcc_scalar small_floats[] = {TCC_f16, TCC_bf16, TCC_e4m3, TCC_e5m2};
enum { N_SMALL = sizeof small_floats / sizeof *small_floats };

static double decode(uint64_t bits, tcc_scalar s)
{
    return tcc_decode(bits, s).f;
}

START_TEST(every_bit_pattern_survives_decoding_and_encoding)
{
    tcc_scalar s = small_floats[_i];
    for (uint64_t bits = 0; bits < UINT64_C(1) << tcc_scalar_bits(s); bits++) {
        tcc_cell v = tcc_decode(bits, s);
        if (isnan(v.f))
            ck_assert(isnan(decode(tcc_encode(v, s), s)));
        else
            ck_assert_uint_eq(tcc_encode(v, s), bits);
    }
}
END_TEST

START_TEST(numbers_of_a_type_round_to_themselves_and_midpoints_to_even)
{
    tcc_scalar s = small_floats[_i];
    uint64_t sign = UINT64_C(1) << (tcc_scalar_bits(s) - 1);
    for (uint64_t bits = 0; bits + 1 < sign; bits++) {
        double a = decode(bits, s), b = decode(bits + 1, s);
        if (!isfinite(a) || !isfinite(b))
            continue;
        double even = bits % 2 ? b : a, middle = (a + b) / 2;
        ck_assert_double_eq(tcc_round_float(a, s), a);
        ck_assert_double_eq(tcc_round_float(-a, s), -a);
        ck_assert_double_eq(tcc_round_float(middle, s), even);
        ck_assert_double_eq(tcc_round_float(nextafter(middle, a), s), a);
        ck_assert_double_eq(tcc_round_float(nextafter(middle, b), s), b);
    }
}
END_TEST

START_TEST(too_large_is_infinite_or_nan)
{
    ck_assert_double_eq(tcc_round_float(65519, TCC_f16), 65504);
    ck_assert_double_eq(tcc_round_float(65520, TCC_f16), (double)INFINITY);
    ck_assert_double_eq(tcc_round_float(-1e300, TCC_bf16), -(double)INFINITY);
    ck_assert_double_eq(tcc_round_float(1e300, TCC_f32), (double)INFINITY);
    ck_assert_double_eq(tcc_round_float(464, TCC_e4m3), 448);
    ck_assert(isnan(tcc_round_float(480, TCC_e4m3)));
    ck_assert(isnan(tcc_round_float((double)INFINITY, TCC_e4m3)));
}
END_TEST

START_TEST(floats_of_32_bits_are_the_machines)
{
    float values[] = {0, -0.0f, 1.5f, -3.25e-39f, 1e-45f, 3.4e38f, INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        union {
            float f;
            uint32_t u;
        } bits = {values[i]};
        ck_assert_uint_eq(tcc_encode((tcc_cell){.f = values[i]}, TCC_f32), bits.u);
        ck_assert_double_eq(decode(bits.u, TCC_f32), values[i]);
    }
    ck_assert_double_eq(decode(0x3fc02000, TCC_tf32), 1.5009765625);
    ck_assert_uint_eq(tcc_encode((tcc_cell){.f = 1.5009765625}, TCC_tf32), 0x3fc02000);
}
END_TEST

START_TEST(midpoints_of_tf32_round_away_from_zero)
{
    ck_assert_double_eq(tcc_round_float(1 + 0x1p-11, TCC_tf32), 1 + 0x1p-10);
    ck_assert_double_eq(tcc_round_float(-1 - 0x1p-11, TCC_tf32), -1 - 0x1p-10);
    ck_assert_double_eq(tcc_round_float(1 + 0x1.fffffep-12, TCC_tf32), 1);
    ck_assert_double_eq(tcc_round_float(0x1.ffcp127 + 0x1p116, TCC_tf32), (double)INFINITY);
    ck_assert_double_eq(tcc_round_float(0x1.ffcp127 + 0x1p115, TCC_tf32), 0x1.ffcp127);
    ck_assert_double_eq(tcc_round_float(0x1p-137, TCC_tf32), 0x1p-136);
    ck_assert_double_eq(tcc_round_float(0x1.fffffep-138, TCC_tf32), 0);
    ck_assert(signbit(tcc_round_float(-0x1p-140, TCC_tf32)));
    ck_assert_double_eq(decode(0x3f803fff, TCC_tf32), 1 + 0x1p-10); /* the lower bits do not count */
}
END_TEST

START_TEST(floats_of_64_bits_are_doubles)
{
    double values[] = {0, -0.0, 0.1, -0x1.23456789abcdep-1030, 0x1p-1074, 0x1.fffffffffffffp1023, INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        union {
            double f;
            uint64_t u;
        } bits = {values[i]};
        ck_assert_uint_eq(tcc_encode((tcc_cell){.f = values[i]}, TCC_f64), bits.u);
        ck_assert_double_eq(decode(bits.u, TCC_f64), values[i]);
        ck_assert_double_eq(tcc_round_float(values[i], TCC_f64), values[i]);
    }
    ck_assert(isnan(decode(tcc_encode((tcc_cell){.f = (double)NAN}, TCC_f64), TCC_f64)));
    ck_assert(tcc_is_poison(decode(tcc_encode((tcc_cell){.f = tcc_poison()}, TCC_f64), TCC_f64)));
}
END_TEST

START_TEST(integers_survive_encoding)
{
    static const tcc_scalar types[] = {TCC_i64, TCC_i32, TCC_i8, TCC_u8, TCC_i4, TCC_u4, TCC_i1};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        tcc_int_range range = tcc_scalar_range(types[t]);
        int64_t edges[] = {range.least, range.most, 0, 1};
        for (int i = 0; i < 4; i++) {
            uint64_t bits = tcc_encode((tcc_cell){.i = edges[i]}, types[t]);
            ck_assert_int_eq(tcc_decode(bits, types[t]).i, edges[i]);
        }
    }
}
END_TEST

START_TEST(poison_goes_through_arithmetic_and_memory)
{
    static const tcc_scalar types[] = {TCC_f32, TCC_f16, TCC_bf16};
    double v = tcc_poison();
    ck_assert(isnan(v) && tcc_is_poison(v));
    ck_assert(!tcc_is_poison((double)NAN) && !tcc_is_poison((double)INFINITY));
    for (int i = 0; i < 3; i++) {
        double sum = tcc_round_float((v + 1) * -2, types[i]);
        ck_assert(tcc_is_poison(sum));
        ck_assert(tcc_is_poison(decode(tcc_encode((tcc_cell){.f = sum}, types[i]), types[i])));
        double other = decode(tcc_encode((tcc_cell){.f = (double)NAN}, types[i]), types[i]);
        ck_assert(isnan(other) && !tcc_is_poison(other));
    }
}
END_TEST

/* Bit patterns of all kinds: zeros, subnormal numbers, numbers, infinities and NaN, of both signs. */
START_TEST(elements_of_memory_are_decoded_and_encoded_as_single_ones)
{
    enum { N = 64, STEP = 3 };
    tcc_scalar s = (tcc_scalar)_i;
    size_t bits = tcc_scalar_bits(s), n = N * bits / 8;
    uint8_t bytes[N * 8], again[N * 8];
    tcc_cell cells[N * STEP];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 37 % 5 ? i * i * 29 + i / 8 : 0 - i % 2);
    tcc_decode_bytes(bytes, N, s, cells, STEP);
    tcc_encode_bytes(cells, STEP, N, s, again);
    for (size_t e = 0; e < N && bits >= 4; e++) {
        uint64_t element = 0, written = 0;
        memcpy(&element, bytes + e * bits / 8, (bits + 7) / 8);
        memcpy(&written, again + e * bits / 8, (bits + 7) / 8);
        if (bits == 4) {
            element = element >> e % 2 * 4 & 15;
            written = written >> e % 2 * 4 & 15;
        }
        tcc_cell one = tcc_decode(element, s);
        ck_assert_int_eq(cells[e * STEP].i, one.i);
        ck_assert_uint_eq(written, tcc_encode(one, s));
    }
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("number");
    TCase *t = tcase_create("number");
    tcase_add_loop_test(t, every_bit_pattern_survives_decoding_and_encoding, 0, N_SMALL);
    tcase_add_loop_test(t, numbers_of_a_type_round_to_themselves_and_midpoints_to_even, 0, N_SMALL);
    tcase_add_test(t, too_large_is_infinite_or_nan);
    tcase_add_test(t, floats_of_32_bits_are_the_machines);
    tcase_add_test(t, midpoints_of_tf32_round_away_from_zero);
    tcase_add_test(t, floats_of_64_bits_are_doubles);
    tcase_add_test(t, integers_survive_encoding);
    tcase_add_test(t, poison_goes_through_arithmetic_and_memory);
    tcase_add_loop_test(t, elements_of_memory_are_decoded_and_encoded_as_single_ones, 0, TCC_SCALAR_COUNT);
    suite_add_tcase(s, t);
    return s;
}
