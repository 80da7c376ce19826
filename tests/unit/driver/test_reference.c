/* The CPU's reference of a kernel against loops written by hand.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

static const char source[] =
    "kernel layer(X: f16[B, M, K], W: f16[K, N], bias: f32[N], alpha: f32) -> (Y: f32[B, M, N])\n"
    "{\n"
    "    acc[b, m, n] = sum(k) X[b, m, k] * W[k, n];\n"
    "    Y[b, m, n]   = relu(alpha * acc[b, m, n] + bias[n]);\n"
    "}\n"
    "kernel update(A: f16[M, 3], B: f16[N, 3], inout C: f32[M, N], beta: f32) -> (D: f32[N, M])\n"
    "{\n"
    "    acc[m, n] = sum(k) A[m, k] * B[n, k];\n"
    "    C[m, n]   = acc[m, n] + beta * C[m, n];\n"
    "    D[n, m]   = where(acc[m, n] > 0, tanh(acc[m, n]), acc[m, n]);\n"
    "}\n";

static tcc_context *ctx;
static tcc_module *mod;
static const char *manifest;
static char said[256];

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
        .struct_size = sizeof o, .target = "sm_90a", .emit = TCC_EMIT_MANIFEST};
    ck_assert_int_eq(tcc_compile_with(ctx, source, sizeof source - 1, &o, &mod), TCC_OK);
    manifest = tcc_module_manifest(mod);
}

static void teardown(void)
{
    tcc_module_destroy(mod);
    tcc_context_destroy(ctx);
}

enum { B = 2, M = 5, K = 4, N = 3 };

static double x[B][M][K], w[K][N], bias[N], alpha = -0.75, y[B][M][N];

/* Small numbers with few bits: every order of summation gives the same. */
static void fill(double *to, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)((int)(i * 7 + (size_t)seed) % 11 - 5) / 8;
}

static void fill_layer(void)
{
    fill(&x[0][0][0], B * M * K, 1);
    fill(&w[0][0], K * N, 2);
    fill(bias, N, 3);
    for (int i = 0; i < B * M * N; i++)
        (&y[0][0][0])[i] = -99;
}

static double layer_at(int b, int m, int n, int depth)
{
    double acc = 0;
    for (int k = 0; k < depth; k++)
        acc += x[b][m][k] * w[k][n];
    double r = alpha * acc + bias[n];
    return r > 0 ? r : 0;
}

START_TEST(all_of_a_kernel)
{
    const int64_t dims[] = {B, M, K, N};
    double *args[] = {&x[0][0][0], &w[0][0], bias, &alpha, &y[0][0][0]};
    fill_layer();
    ck_assert_int_eq(tcc_reference(ctx, manifest, "layer", dims, args, NULL, 0), TCC_OK);
    for (int b = 0; b < B; b++)
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++)
                ck_assert_double_eq_tol(y[b][m][n], layer_at(b, m, n, K), 1e-12);
}
END_TEST

START_TEST(some_rows_only)
{
    const int64_t dims[] = {B, M, K, N}, rows[] = {7, 0};
    double *args[] = {&x[0][0][0], &w[0][0], bias, &alpha, &y[0][0][0]};
    fill_layer();
    ck_assert_int_eq(tcc_reference(ctx, manifest, "layer", dims, args, rows, 2), TCC_OK);
    for (int i = 0; i < 3; i++) {
        const int64_t wrong[] = {0, (int64_t[]){100, B * M, -1}[i]};
        ck_assert_int_eq(tcc_reference(ctx, manifest, "layer", dims, args, wrong, 2),
                         TCC_ERR_ARGUMENT);
    }
    for (int b = 0; b < B; b++)
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                bool chosen = b * M + m == 7 || b * M + m == 0;
                ck_assert_double_eq_tol(y[b][m][n], chosen ? layer_at(b, m, n, K) : -99, 1e-12);
            }
}
END_TEST

START_TEST(an_empty_sum_is_zero)
{
    const int64_t dims[] = {B, M, 0, N};
    double *args[] = {&x[0][0][0], &w[0][0], bias, &alpha, &y[0][0][0]};
    fill_layer();
    ck_assert_int_eq(tcc_reference(ctx, manifest, "layer", dims, args, NULL, 0), TCC_OK);
    for (int n = 0; n < N; n++)
        ck_assert_double_eq_tol(y[1][2][n], layer_at(1, 2, n, 0), 1e-12);
}
END_TEST

START_TEST(an_empty_output_is_left_alone)
{
    const int64_t dims[] = {B, 0, K, N};
    double *args[] = {&x[0][0][0], &w[0][0], bias, &alpha, &y[0][0][0]};
    fill_layer();
    ck_assert_int_eq(tcc_reference(ctx, manifest, "layer", dims, args, NULL, 0), TCC_OK);
    ck_assert_double_eq(y[0][0][0], -99);
}
END_TEST

START_TEST(in_place_and_several_outputs)
{
    const int64_t dims[] = {M, N};
    double a[M][3], b[N][3], c[M][N], before[M][N], beta = 0.5, d[N][M];
    double *args[] = {&a[0][0], &b[0][0], &c[0][0], &beta, &d[0][0]};
    fill(&a[0][0], M * 3, 4);
    fill(&b[0][0], N * 3, 5);
    fill(&c[0][0], M * N, 6);
    memcpy(before, c, sizeof c);
    ck_assert_int_eq(tcc_reference(ctx, manifest, "update", dims, args, NULL, 0), TCC_OK);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double acc = a[m][0] * b[n][0] + a[m][1] * b[n][1] + a[m][2] * b[n][2];
            ck_assert_double_eq_tol(c[m][n], acc + beta * before[m][n], 1e-12);
            ck_assert_double_eq_tol(d[n][m], acc > 0 ? tanh(acc) : acc, 1e-12);
        }
}
END_TEST

START_TEST(the_kernel_and_the_manifest_must_exist)
{
    const int64_t dims[] = {B, M, K, N};
    double *args[] = {&x[0][0][0], &w[0][0], bias, &alpha, &y[0][0][0]};
    ck_assert_int_eq(tcc_reference(ctx, manifest, "nobody", dims, args, NULL, 0),
                     TCC_ERR_ARGUMENT);
    ck_assert_str_eq(said, "the manifest has no reference for a kernel 'nobody'; it has 'layer', 'update'");
    ck_assert_int_eq(tcc_reference(ctx, manifest, NULL, dims, args, NULL, 0), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(said, "name the kernel to compute; the manifest has 'layer', 'update'");
    *said = 0;
    ck_assert_int_ne(tcc_reference(ctx, NULL, "layer", dims, args, NULL, 0), TCC_OK);
    ck_assert_str_ne(said, "");
    *said = 0;
    ck_assert_int_ne(tcc_reference(ctx, "{}", "layer", dims, args, NULL, 0), TCC_OK);
    ck_assert_str_ne(said, "");
    *said = 0;
    ck_assert_int_ne(tcc_reference(ctx, "", "layer", dims, args, NULL, 0), TCC_OK);
    ck_assert_str_ne(said, "");
}
END_TEST

START_TEST(the_only_kernel_needs_no_name)
{
    const int64_t dims[] = {1};
    double a[] = {3}, b[] = {5}, c = 0, *args[] = {a, b, &c};
    tcc_module *one;
    ck_assert_int_eq(tcc_compile(ctx,
                                 "kernel one(A: f16[M, 1], B: f16[M, 1]) -> (C: f32[M])\n"
                                 "{ C[m] = sum(k) A[m, k] * B[m, k]; }\n",
                                 "sm_90a", &one),
                     TCC_OK);
    ck_assert_int_eq(tcc_reference(ctx, tcc_module_manifest(one), NULL, dims, args, NULL, 0), TCC_OK);
    ck_assert_double_eq(c, 15);
    tcc_module_destroy(one);
}
END_TEST

/* What the arguments are, the caller reads in the manifest: the reference must agree. */
START_TEST(the_reference_has_the_parameters_of_its_kernel)
{
    static const char *const changes[][3] = {
        {"%W: tensor<", "%W: tensor<f16[K, M]>, %V: tensor<", "'roles' needs one for each argument"},
        {"{dims = [", "{dims = [Q, ", "other parameters"}};
    const int64_t dims[] = {B, M, K, N};
    double *args[] = {&x[0][0][0], &w[0][0], bias, &alpha, &y[0][0][0]};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        static char text[1 << 17];
        const char *at = strstr(manifest, changes[i][0]);
        ck_assert_ptr_nonnull(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - manifest), manifest, changes[i][1],
                 at + strlen(changes[i][0]));
        *said = 0;
        ck_assert_int_eq(tcc_reference(ctx, text, "layer", dims, args, NULL, 0), TCC_ERR_TYPE);
        ck_assert_ptr_nonnull(strstr(said, changes[i][2]));
    }
}
END_TEST

START_TEST(the_head_of_ptx_will_do)
{
    const int64_t dims[] = {B, M, K, N};
    double *args[] = {&x[0][0][0], &w[0][0], bias, &alpha, &y[0][0][0]};
    tcc_module *ptx;
    fill_layer();
    ck_assert_int_eq(tcc_compile(ctx, source, "sm_90a", &ptx), TCC_OK);
    ck_assert_int_eq(tcc_reference(ctx, tcc_module_manifest(ptx), "layer", dims, args, NULL, 0),
                     TCC_OK);
    ck_assert_double_eq_tol(y[1][4][2], layer_at(1, 4, 2, K), 1e-12);
    tcc_module_destroy(ptx);
}
END_TEST

/* ---- intervals ------------------------------------------------------------------------------ */

enum { TERMS = 64 };

typedef tcc_status intervals(tcc_context *, const char *, const char *, const int64_t *, double *const *,
                             double *const *, double *const *, const int64_t *, size_t);

/* The width of the interval of a sum of 64 products, written as `term` of operands of these types. */
static double width_by(intervals *reference, const char *types, const char *term, double *value)
{
    static double a[TERMS], b[TERMS], c[1], low[1], high[1];
    char text[256];
    tcc_module *product;
    snprintf(text, sizeof text, "kernel p(%s) -> (C: f32[M]) { C[m] = sum(k) %s; }", types, term);
    const tcc_compile_options o = {.struct_size = sizeof o, .target = "sm_90a", .emit = TCC_EMIT_MANIFEST};
    ck_assert_int_eq(tcc_compile_with(ctx, text, strlen(text), &o, &product), TCC_OK);
    for (int i = 0; i < TERMS; i++) {
        a[i] = 0.34375; /* exact in 8 bits */
        b[i] = i % 2 ? 1 : -0.5;
    }
    double *const args[] = {a, b, c}, *const lows[] = {NULL, NULL, low}, *const highs[] = {NULL, NULL, high};
    const int64_t extents[] = {1, TERMS};
    const char *text_of = tcc_module_manifest(product);
    ck_assert_int_eq(reference(ctx, text_of, "p", extents, args, lows, highs, NULL, 0), TCC_OK);
    tcc_module_destroy(product);
    *value = c[0];
    ck_assert(low[0] <= c[0] && c[0] <= high[0]);
    return high[0] - low[0];
}

static double width_of(const char *types, const char *term, double value)
{
    double result, width = width_by(tcc_reference_intervals, types, term, &result);
    ck_assert_double_eq(result, value);
    ck_assert_double_gt(width, 0);
    return width;
}

/* 0.34375 times this number is 2 + 49 * 2^-10, halfway between two numbers of f16: each term may be one or the other.
 * 0.34375 itself is exact, and so are the sums. */
START_TEST(roundings_are_those_of_what_may_be_rounded_either_way)
{
    static const char *const types = "A: f16[M, K], B: f16[M, K]";
    static const char *const exact[] = {"A[m, k] * B[m, k]", "f16(f32(A[m, k]) * 3.0) * B[m, k]"};
    const double ulp = 0x1p-9;
    double sum, width;
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq(width_by(tcc_reference_roundings, types, exact[i], &sum), 0);
    width = width_by(tcc_reference_roundings, types, "f16(f32(A[m, k]) * 5.957386363636363) * B[m, k]", &sum);
    ck_assert(width >= TERMS * 0.75 * ulp && width <= 2 * TERMS * ulp);
}
END_TEST

/* Tensor cores add products of 8-bit floats with 14 bits: the interval has room for it, and none for one product too
 * many. Products of what is converted to 16 bits are added in f32. */
START_TEST(sums_of_8_bit_products_have_wider_intervals)
{
    const double value = TERMS / 2 * (0.34375 - 0.171875), product = 0.171875;
    static const char *const wide[] = {"A: e4m3[M, K], B: e4m3[M, K]", "A: e4m3[M, K], B: e5m2[M, K]"};
    static const char *const eighths = "A: e4m3[M, K], B: e5m2[M, K]", *const mixed = "A: e4m3[M, K], B: f16[M, K]";
    for (int i = 0; i < 2; i++) {
        double width = width_of(wide[i], "A[m, k] * B[m, k]", value);
        ck_assert(width > 0x1p-13 * TERMS * value && width < 2 * product);
    }
    ck_assert(width_of(eighths, "f16(A[m, k]) * f16(B[m, k])", value) < 0x1p-16 * TERMS * value);
    ck_assert(width_of(mixed, "f16(A[m, k]) * B[m, k]", value) < 0x1p-16 * TERMS * value);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("reference");
    TCase *t = tcase_create("reference");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, all_of_a_kernel);
    tcase_add_test(t, some_rows_only);
    tcase_add_test(t, an_empty_sum_is_zero);
    tcase_add_test(t, an_empty_output_is_left_alone);
    tcase_add_test(t, in_place_and_several_outputs);
    tcase_add_test(t, the_kernel_and_the_manifest_must_exist);
    tcase_add_test(t, the_only_kernel_needs_no_name);
    tcase_add_test(t, the_reference_has_the_parameters_of_its_kernel);
    tcase_add_test(t, the_head_of_ptx_will_do);
    tcase_add_test(t, sums_of_8_bit_products_have_wider_intervals);
    tcase_add_test(t, roundings_are_those_of_what_may_be_rounded_either_way);
    suite_add_tcase(s, t);
    return s;
}
