/* Kernels on tensors in their own element types: what they are taken for, what is written, what is refused.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

/* Every type as an operand; sums of each, so that what is read shows in exact numbers. */
static const char source[] =
    "kernel widen(A: f16[M, N], B: bf16[M, N], C: f32[M, N], D: e4m3[M, N], E: e5m2[M, N], F: i8[M, N],\n"
    "             G: u8[M, N], H: i4[M, N], I: u4[M, N], J: i32[M, N], s: f16) -> (S: f32[M, N])\n"
    "{\n"
    "    S[m, n] = f32(A[m, n]) + f32(B[m, n]) + C[m, n] + f32(D[m, n]) + f32(E[m, n]) + f32(F[m, n])\n"
    "            + f32(G[m, n]) + f32(H[m, n]) + f32(I[m, n]) + f32(J[m, n]) + f32(s);\n"
    "}\n"
    "kernel narrow(X: f32[M, N], inout U: f16[M, N])\n"
    "    -> (A: f16[M, N], B: bf16[M, N], D: e4m3[M, N], E: e5m2[M, N], F: i8[M, N], G: u8[M, N], J: i32[M, N])\n"
    "{\n"
    "    U[m, n] = U[m, n] + f16(X[m, n]);\n"
    "    A[m, n] = X[m, n];\n"
    "    B[m, n] = X[m, n];\n"
    "    D[m, n] = X[m, n];\n"
    "    E[m, n] = X[m, n];\n"
    "    F[m, n] = i8(X[m, n]);\n"
    "    G[m, n] = u8(X[m, n]);\n"
    "    J[m, n] = i32(X[m, n]);\n"
    "}\n"
    "kernel doubles(X: f64[M, N], s: f64) -> (Y: f64[M, N], Z: f32[M, N])\n"
    "{\n"
    "    Y[m, n] = X[m, n] * s;\n"
    "    Z[m, n] = f32(X[m, n]);\n"
    "}\n";

enum { M = 2, N = 2, COUNT = M * N };

static const int64_t dims[] = {M, N};
static tcc_context *ctx;
static tcc_module *mod;
static char said[512];

static void listen(const tcc_diagnostic *d, void *user)
{
    (void)user;
    snprintf(said, sizeof said, "%s", d->message);
}

static void setup(void)
{
    ctx = tcc_context_create();
    tcc_context_on_diagnostic(ctx, listen, NULL);
    *said = 0;
    const tcc_compile_options o = {
        .struct_size = sizeof o, .target = "sm_90a", .emit = TCC_EMIT_IR}; /* which has all types */
    ck_assert_int_eq(tcc_compile_with(ctx, source, sizeof source - 1, &o, &mod), TCC_OK);
}

static void teardown(void)
{
    tcc_module_destroy(mod);
    tcc_context_destroy(ctx);
}

/* ---- reading ---------------------------------------------------------------------------- */

/* Bits of 1.5, 1, 0.25 and -2 or so, by hand. */
static uint16_t f16[COUNT] = {0x3e00, 0x0001, 0xc000, 0x0000}; /* 1.5, 2^-24, -2, 0 */
static uint16_t bf16[COUNT] = {0x3f80, 0x0000, 0xc000, 0x4000}; /* 1, 0, -2, 2 */
static float f32[COUNT] = {100, 0, -0.5f, 3};
static uint8_t e4m3[COUNT] = {0x38, 0x00, 0xb0, 0x08}; /* 1, 0, -0.5, 2^-6 */
static uint8_t e5m2[COUNT] = {0x3c, 0x00, 0xc0, 0x40}; /* 1, 0, -2, 2 */
static int8_t i8[COUNT] = {-128, 0, 127, 5};
static uint8_t u8[COUNT] = {255, 0, 128, 5};
static uint8_t i4[COUNT / 2] = {0x08, 0xf7}; /* -8, 0, 7, -1 */
static uint8_t u4[COUNT / 2] = {0x08, 0xf7}; /* 8, 0, 7, 15 */
static int32_t i32[COUNT] = {-1000, 0, 70000, 1};
static double scalar = 0.1; /* 0x1.998p-4 as f16 */
static float sums[COUNT];
static void *const read_args[] = {f16, bf16, f32, e4m3, e5m2, i8, u8, i4, u4, i32, &scalar, sums};

static void check_sums(void)
{
    static const double s = 0x1.998p-4;
    static const double expected[COUNT] = {
        1.5 + 1 + 100 + 1 + 1 - 128 + 255 - 8 + 8 - 1000 + s, 0x1p-24 + s,
        -2.0 - 2 - 0.5 - 0.5 - 2 + 127 + 128 + 7 + 7 + 70000 + s, 2.0 + 3 + 0x1p-6 + 2 + 5 + 5 - 1 + 15 + 1 + s};
    for (int i = 0; i < COUNT; i++)
        ck_assert_double_eq_tol(sums[i], expected[i], 0x1p-24 * 70000);
    memset(sums, 0, sizeof sums);
}

START_TEST(every_type_is_read)
{
    ck_assert_int_eq(tcc_interpret_elements(ctx, mod, "widen", dims, read_args, NULL), TCC_OK);
    check_sums();
    ck_assert_int_eq(tcc_reference_elements(ctx, tcc_module_manifest(mod), "widen", dims, read_args,
                                            NULL, 0),
                     TCC_OK);
    check_sums();
    ck_assert_str_eq(said, "");
}
END_TEST

/* ---- writing ---------------------------------------------------------------------------- */

static uint16_t inout[COUNT], a[COUNT], b[COUNT];
static uint8_t d[COUNT], e[COUNT], g[COUNT];
static int8_t f[COUNT];
static int32_t j[COUNT];
static float x[COUNT] = {1.00048828125f, -300, 1e9f, 2.5f}; /* 1 + 2^-11: halfway between two of f16 */
static void *const write_args[] = {x, inout, a, b, d, e, f, g, j};

static void forget(void)
{
    for (int i = 0; i < COUNT; i++) {
        inout[i] = 0x3c00; /* 1 */
        a[i] = b[i] = 0x5555;
        d[i] = e[i] = g[i] = 0x55;
        f[i] = 0x55;
        j[i] = 0x5555;
    }
}

static void check_row(int i, uint16_t want_inout, uint16_t want_a, uint16_t want_b, uint8_t want_d, uint8_t want_e)
{
    ck_assert_uint_eq(inout[i], want_inout);
    ck_assert_uint_eq(a[i], want_a);
    ck_assert_uint_eq(b[i], want_b);
    ck_assert_uint_eq(d[i], want_d);
    ck_assert_uint_eq(e[i], want_e);
}

static void check_written(void)
{
    check_row(0, 0x4000, 0x3c00, 0x3f80, 0x38, 0x3c);
    check_row(1, 0xdcac, 0xdcb0, 0xc396, 0xf9, 0xdd); /* -299, -300, -300, -288, -320 */
    ck_assert_int_eq(f[1], -128);
    ck_assert_int_eq(g[1], 0);
    ck_assert_int_eq(j[1], -300);
}

static void check_second_row(void)
{
    check_row(2, 0x7c00, 0x7c00, 0x4e6e, 0x7f, 0x7c); /* inf, inf, 1e9, NaN, inf */
    check_row(3, 0x4300, 0x4100, 0x4020, 0x42, 0x41);
    ck_assert_int_eq(f[2], 127);
    ck_assert_int_eq(g[2], 255);
    ck_assert_int_eq(j[2], 1000000000);
}

START_TEST(every_type_is_written)
{
    forget();
    ck_assert_int_eq(tcc_interpret_elements(ctx, mod, "narrow", dims, write_args, NULL), TCC_OK);
    check_written();
    check_second_row();
    forget();
    ck_assert_int_eq(tcc_reference_elements(ctx, tcc_module_manifest(mod), "narrow", dims,
                                            write_args, NULL, 0),
                     TCC_OK);
    check_written();
    check_second_row();
}
END_TEST

/* 64 bits, and 32, whatever was there before. */
START_TEST(wide_types_are_written)
{
    double in[COUNT] = {0.1, -2, 1e300, 0}, two = 2, out[COUNT];
    float narrow[COUNT];
    void *const args[] = {in, &two, out, narrow};
    for (int by_reference = 0; by_reference < 2; by_reference++) {
        memset(out, 0x55, sizeof out);
        memset(narrow, 0x55, sizeof narrow);
        tcc_status status = by_reference ? tcc_reference_elements(ctx, tcc_module_manifest(mod), "doubles", dims, args,
                                                                  NULL, 0)
                                         : tcc_interpret_elements(ctx, mod, "doubles", dims, args, NULL);
        ck_assert_int_eq(status, TCC_OK);
        for (int i = 0; i < COUNT; i++) {
            ck_assert_double_eq(out[i], 2 * in[i]);
            ck_assert_float_eq(narrow[i], (float)in[i]);
        }
    }
}
END_TEST

START_TEST(rows_that_are_not_asked_for_stay)
{
    forget();
    ck_assert_int_eq(tcc_reference_elements(ctx, tcc_module_manifest(mod), "narrow", dims,
                                            write_args, (int64_t[]){0}, 1),
                     TCC_OK);
    check_written();
    check_row(2, 0x3c00, 0x5555, 0x5555, 0x55, 0x55);
    check_row(3, 0x3c00, 0x5555, 0x5555, 0x55, 0x55);
    ck_assert_int_eq(f[3], 0x55);
    ck_assert_int_eq(j[3], 0x5555);
}
END_TEST

/* ---- refusals --------------------------------------------------------------------------- */

static tcc_status interpret(const int64_t *extents, void *const *args)
{
    return tcc_interpret_elements(ctx, mod, "narrow", extents, args, NULL);
}

START_TEST(what_cannot_be_is_refused)
{
    void *some[sizeof write_args / sizeof write_args[0]];
    memcpy(some, write_args, sizeof some);
    some[2] = NULL;
    ck_assert_int_eq(interpret(dims, some), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(said, "kernel 'narrow': 'A' has no data");
    ck_assert_int_eq(interpret((int64_t[]){-1, 2}, write_args), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(said, "kernel 'narrow': 'X' has a negative extent");
    ck_assert_int_eq(interpret((int64_t[]){INT64_MAX / 8, 2}, write_args), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(said, "kernel 'narrow': 'X' has too many elements");
    ck_assert_int_eq(tcc_interpret_elements(ctx, mod, "q", dims, some, NULL), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(said, "the program has no kernel 'q'; it has 'widen', 'narrow', 'doubles'");
    ck_assert_int_eq(tcc_interpret_elements(ctx, mod, NULL, dims, some, NULL), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(said, "name the kernel; the program has 'widen', 'narrow', 'doubles'");
    ck_assert_int_eq(tcc_interpret_elements(ctx, NULL, "q", dims, some, NULL), TCC_ERR_ARGUMENT);
    ck_assert_int_eq(tcc_reference_elements(ctx, "{}", "q", dims, some, NULL, 0), TCC_ERR_SYNTAX);
}
END_TEST

START_TEST(scalars_must_fit_in_their_type)
{
    static double too_large = 65520;
    void *args[sizeof read_args / sizeof *read_args];
    memcpy(args, read_args, sizeof args);
    args[10] = &too_large;
    for (int reference = 0; reference < 2; reference++) {
        tcc_status status = reference
                                ? tcc_reference_elements(ctx, tcc_module_manifest(mod), "widen", dims, args, NULL, 0)
                                : tcc_interpret_elements(ctx, mod, "widen", dims, args, NULL);
        ck_assert_int_eq(status, TCC_ERR_ARGUMENT);
        ck_assert_str_eq(said, "kernel 'widen': scalar 's' is 65520, which f16 cannot hold");
    }
}
END_TEST

START_TEST(nothing_is_written_where_it_fails)
{
    const tcc_interpret_options o = {.struct_size = sizeof o, .variant = "none"};
    forget();
    ck_assert_int_eq(tcc_interpret_elements(ctx, mod, "narrow", dims, write_args, &o),
                     TCC_ERR_ARGUMENT);
    tcc_status status = TCC_ERR_MEMORY;
    for (long n = 0; n < 10; n++) {
        oom_fail_after(n);
        status = interpret(dims, write_args);
        oom_fail_after(-1);
        ck_assert_int_eq(status, TCC_ERR_MEMORY);
    }
    check_row(0, 0x3c00, 0x5555, 0x5555, 0x55, 0x55);
    ck_assert_int_eq(interpret((int64_t[]){0, 2}, write_args), TCC_OK);
    check_row(0, 0x3c00, 0x5555, 0x5555, 0x55, 0x55);
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("elements");
    TCase *tcase = tcase_create("elements");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, every_type_is_read);
    tcase_add_test(tcase, every_type_is_written);
    tcase_add_test(tcase, wide_types_are_written);
    tcase_add_test(tcase, rows_that_are_not_asked_for_stay);
    tcase_add_test(tcase, what_cannot_be_is_refused);
    tcase_add_test(tcase, scalars_must_fit_in_their_type);
    tcase_add_test(tcase, nothing_is_written_where_it_fails);
    suite_add_tcase(suite, tcase);
    return suite;
}
