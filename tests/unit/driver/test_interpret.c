/* Kernels interpreted through the public API: results, variants, and what is refused.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc.h>

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/clock.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static const char source[] =
    "kernel layer(A: f16[M, K], B: f16[K, N], bias: f32[N], alpha: f32) -> (C: f32[M, N])\n"
    "{\n"
    "    C[m, n] = alpha * sum(k) A[m, k] * B[k, n] + bias[n];\n"
    "}\n"
    "schedule layer for sm_90a { tile m 64, n 8, k 16; stages 2; }\n";
static const char other[] = "kernel other(A: f16[M, 4], B: f16[N, 4]) -> (C: f16[M, N])\n"
                            "{\n"
                            "    C[m, n] = sum(k) A[m, k] * B[n, k];\n"
                            "}\n";

enum { M = 5, K = 24, N = 8 };

static const int64_t dims[] = {M, K, N};
static double a[M][K], b[K][N], bias[N], alpha, c[M][N];
static double *const args[] = {a[0], b[0], bias, &alpha, c[0]};
static tcc_context *ctx;
static tcc_module *mod;
static char said[1024];

static void listen(const tcc_diagnostic *d, void *user)
{
    size_t n = strlen(said);
    (void)user;
    snprintf(said + n, sizeof said - n, "%s", d->text);
}

static tcc_module *compile(const char *text, tcc_emit emit)
{
    tcc_module *made;
    bool is_amd = emit == TCC_EMIT_OBJ || emit == TCC_EMIT_HSACO;
    const tcc_compile_options o = {.struct_size = sizeof o,
                                   .target = is_amd ? "gfx1100" : "sm_90a",
                                   .file = "a.tile",
                                   .emit = emit};
    ck_assert_int_eq(tcc_compile_with(ctx, text, strlen(text), &o, &made), TCC_OK);
    return made;
}

static void fill(double *to, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)((int)(i * 7 + (size_t)seed) % 11 - 5);
}

static void forget_result(void)
{
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            c[m][n] = -99;
}

static void setup(void)
{
    ctx = tcc_context_create();
    tcc_context_on_diagnostic(ctx, listen, NULL);
    *said = 0;
    fill(a[0], M * K, 1);
    fill(b[0], K * N, 2);
    fill(bias, N, 3);
    alpha = -0.5;
    forget_result();
    mod = compile(source, TCC_EMIT_TIR);
}

static void teardown(void)
{
    tcc_module_destroy(mod);
    tcc_context_destroy(ctx);
}

static double expected(int m, int n)
{
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += a[m][k] * b[k][n];
    return alpha * sum + bias[n];
}

static void check_result(void)
{
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            ck_assert_double_eq(c[m][n], expected(m, n));
}

static tcc_status interpret(const tcc_interpret_options *o)
{
    return tcc_interpret(ctx, mod, "layer", dims, args, o);
}

/* ---- interrupting ---------------------------------------------------------------------- */

static void *interpret_for_long(void *status)
{
    enum { SIZE = 512 };
    static double big[3][SIZE * SIZE], no_bias[SIZE];
    double *const these[] = {big[0], big[1], no_bias, &alpha, big[2]};
    *(tcc_status *)status = tcc_interpret(ctx, mod, "layer", (int64_t[]){SIZE, SIZE, SIZE}, these, NULL);
    return NULL;
}

START_TEST(an_interrupted_context_ends_its_calls)
{
    tcc_status status = TCC_OK;
    pthread_t thread;
    ck_assert(!pthread_create(&thread, NULL, interpret_for_long, &status));
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    double start = tcc_now_ms();
    tcc_context_interrupt(ctx);
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, TCC_ERR_INTERRUPTED);
    ck_assert_double_lt(tcc_now_ms() - start, 1000);
    tcc_module *made;
    ck_assert_int_eq(tcc_compile(ctx, source, "sm_90a", &made), TCC_ERR_INTERRUPTED);
    ck_assert_ptr_null(made);
    ck_assert_str_eq(said, "");
    tcc_context_interrupt(NULL);
}
END_TEST

/* ---- results --------------------------------------------------------------------------- */

START_TEST(modules_of_every_kind_run)
{
    tcc_module_destroy(mod);
    mod = compile(source, (tcc_emit)_i);
    ck_assert_int_eq(interpret(NULL), TCC_OK);
    ck_assert_str_eq(said, "");
    check_result();
}
END_TEST

START_TEST(emitted_ir_runs)
{
    static const tcc_emit kinds[] = {TCC_EMIT_IR, TCC_EMIT_TILE, TCC_EMIT_ASYNC, TCC_EMIT_TIR};
    tcc_module_destroy(mod);
    tcc_module *emitted = compile(source, kinds[_i]);
    size_t size;
    const char *text = tcc_module_output(emitted, &size);
    ck_assert_int_eq(tcc_module_parse(ctx, text, size, "a.tir", &mod), TCC_OK);
    ck_assert_str_eq(tcc_module_output(mod, NULL), text);
    ck_assert_uint_eq(tcc_module_kernel_count(mod), 1);
    ck_assert_str_eq(tcc_module_kernel_name(mod, 0), "layer");
    tcc_module_destroy(emitted);
    ck_assert_int_eq(interpret(NULL), TCC_OK);
    check_result();
    forget_result();
    ck_assert_int_eq(tcc_reference(ctx, tcc_module_manifest(mod), "layer", dims, args, NULL, 0),
                     TCC_OK);
    check_result();
}
END_TEST

START_TEST(every_order_gives_the_same)
{
    for (int order = TCC_INTERPRET_RANDOM; order <= TCC_INTERPRET_LATE; order++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            const tcc_interpret_options o = {
                .struct_size = sizeof o, .order = (tcc_interpret_order)order, .seed = seed};
            memset(c, 0, sizeof c);
            ck_assert_int_eq(interpret(&o), TCC_OK);
            check_result();
        }
}
END_TEST

START_TEST(an_older_caller_gets_defaults)
{
    tcc_interpret_options o = {.variant = "none"};
    o.struct_size = offsetof(tcc_interpret_options, variant);
    ck_assert_int_eq(interpret(&o), TCC_OK);
    check_result();
}
END_TEST

/* Whatever bits a NaN has: signalling, or those that the interpreter gives to what nobody wrote. */
static const uint32_t nans[] = {0x7fef0000, 0x7fefffff, 0xffef0001, 0x7f800001,
                                0xff800001, 0x7fc00000, 0xffffffff};

static double nan_of(uint32_t bits)
{
    const uint64_t wide =
        (uint64_t)(bits >> 31) << 63 | UINT64_C(0x7ff) << 52 | (uint64_t)(bits & 0x7fffff) << 29;
    double v;
    memcpy(&v, &wide, sizeof v);
    return v;
}

/* It is a NaN like any other, and min, max and relu give the other number. */
START_TEST(every_nan_is_an_ordinary_one)
{
    static const char text[] = "kernel nans(A: f16[M, K], B: f16[K, N], x: f32[N], y: f16[N])\n"
                               "    -> (C: f32[M, N], D: f32[M, N], E: f16[M, N])\n"
                               "{\n"
                               "    acc[m, n] = sum(k) A[m, k] * B[k, n];\n"
                               "    C[m, n] = acc[m, n] + x[n];\n"
                               "    D[m, n] = acc[m, n] + relu(x[n]) + max(min(x[n], 1), y[n]);\n"
                               "    E[m, n] = y[n] * acc[m, n];\n"
                               "}\n"
                               "schedule nans for sm_90a { tile m 64, n 8, k 16; stages 2; }\n";
    static const struct {
        const char *target;
        tcc_emit emit;
    } levels[] = {{"sm_90a", TCC_EMIT_IR},  {"sm_90a", TCC_EMIT_TILE}, {"sm_90a", TCC_EMIT_ASYNC},
                  {"sm_90a", TCC_EMIT_TIR}, {"gfx1100", TCC_EMIT_TIR}, {"gfx1200", TCC_EMIT_TIR}};
    double x[N], y[N], d[M][N], e[M][N];
    tcc_module *made;
    const tcc_compile_options o = {
        .struct_size = sizeof o, .target = levels[_i].target, .emit = levels[_i].emit};
    ck_assert_int_eq(tcc_compile_with(ctx, text, sizeof text - 1, &o, &made), TCC_OK);
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        for (int n = 0; n < N; n++) {
            x[n] = nan_of(nans[i]);
            y[n] = nan_of((nans[i] & 0xffffe000) | 0x2000); /* an f16 has 10 bits of it */
        }
        ck_assert_msg(!tcc_interpret(ctx, made, NULL, dims,
                                     (double *[]){a[0], b[0], x, y, c[0], d[0], e[0]}, NULL),
                      "%s", said);
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                ck_assert(isnan(c[m][n]) && isnan(e[m][n]));
                ck_assert_double_eq(d[m][n], (expected(m, n) - bias[n]) / alpha + 1);
            }
    }
    tcc_module_destroy(made);
}
END_TEST

/* ---- variants -------------------------------------------------------------------------- */

START_TEST(the_first_valid_variant_runs)
{
    int64_t alignments[] = {16, 16, 16, 0, 16};
    const char *ran = NULL;
    const tcc_interpret_options o = {
        .struct_size = sizeof o, .alignments = alignments, .ran = &ran};
    ck_assert_int_eq(interpret(&o), TCC_OK);
    ck_assert_str_eq(ran, "layer");
    alignments[1] = 2;
    ck_assert_int_eq(interpret(&o), TCC_OK);
    ck_assert_str_eq(ran, "layer__padded");
    check_result();
    const tcc_interpret_options by_name = {
        .struct_size = sizeof o, .variant = "layer__generic", .ran = &ran};
    ran = NULL;
    ck_assert_int_eq(interpret(&by_name), TCC_OK);
    ck_assert_str_eq(ran, "layer__generic");
}
END_TEST

START_TEST(no_valid_variant_says_why)
{
    static const char text[] = "module {file = \"a.tile\"}\n"
                               "func @f(%x: tensor<f32[N]>) {kernel = k, requires = [[min, N, 8]]} "
                               "loc(2:3) {\n  return\n}\n"
                               "func @g(%x: tensor<f32[N]>) {kernel = k, requires = [[align, x, "
                               "16]]} loc(2:4) {\n  return\n}\n";
    double x[5] = {0};
    const tcc_interpret_options o = {.struct_size = sizeof o, .alignments = (int64_t[]){4}};
    tcc_module_destroy(mod);
    ck_assert_int_eq(tcc_module_parse(ctx, text, sizeof text - 1, "a.tir", &mod), TCC_OK);
    ck_assert_int_eq(tcc_interpret(ctx, mod, "k", (int64_t[]){5}, (double *[]){x}, &o),
                     TCC_ERR_NO_VARIANT);
    ck_assert_str_eq(said, "a.tile: error: kernel 'k': no variant is valid for these extents and "
                           "alignments\n"
                           "a.tile:2:3: note: f: N is 5, expected at least 8\n"
                           "a.tile:2:4: note: g: 'x' is aligned to 4 bytes, expected 16\n");
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------- */

START_TEST(bad_arguments_are_refused)
{
    const tcc_interpret_options variant = {.struct_size = sizeof variant, .variant = "other"};
    const tcc_interpret_options order = {.struct_size = sizeof order,
                                         .order = (tcc_interpret_order)7};
    double *no_data[] = {a[0], NULL, bias, &alpha, c[0]};
    const int64_t negative[] = {M, -1, N};
    ck_assert_int_eq(tcc_interpret(ctx, mod, "none", dims, args, NULL), TCC_ERR_ARGUMENT);
    ck_assert_int_eq(interpret(&variant), TCC_ERR_ARGUMENT);
    ck_assert_int_eq(interpret(&order), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(said, "a.tile: error: the module has no kernel 'none'; it has 'layer'\n"
                           "a.tile: error: the kernel has no variant 'other'\n"
                           "a.tile: error: no order has number 7\n");
    *said = 0;
    ck_assert_int_eq(tcc_interpret(ctx, mod, NULL, dims, no_data, NULL), TCC_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(said, "a.tile:1:8: error: no data for 'B'"));
    *said = 0;
    ck_assert_int_eq(tcc_interpret(ctx, mod, NULL, negative, args, NULL), TCC_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(said, "a.tile:1:8: error: K is -1, expected 0 to 2147450880"));
    ck_assert_double_eq(c[0][0], -99);
}
END_TEST

START_TEST(one_of_several_kernels_is_named)
{
    char both[1024];
    snprintf(both, sizeof both, "%s%s", source, other);
    tcc_module_destroy(mod);
    mod = compile(both, TCC_EMIT_TIR);
    ck_assert_int_eq(interpret(NULL), TCC_OK);
    check_result();
    ck_assert_int_eq(tcc_interpret(ctx, mod, NULL, dims, args, NULL), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(said, "a.tile: error: name the kernel; the module has 'layer', 'other'\n");
}
END_TEST

static const struct {
    const char *text, *message;
    tcc_status status;
} faults[] = {
    {"func @f(", "expected", TCC_ERR_SYNTAX},
    {"module {target = sm_1}\n", "no target is named 'sm_1'", TCC_ERR_TARGET},
    {"func @f() {\n}\n", "does not end in 'return'", TCC_ERR_TYPE},
    {"func @f(%x: ring) {\n  return\n}\n", "neither tensors nor scalars", TCC_ERR_TYPE},
    {"func @f(%x: ptr<f32>) {params = [[pointer, x]]} {\n  return\n}\n", "args = [[NAME",
     TCC_ERR_TYPE},
    {"func @f() {params = [], args = [[x, f32, [-1]]]} {\n  return\n}\n",
     "malformed entry in 'args'", TCC_ERR_TYPE},
    {"func @f() {params = [], args = [[x, f32], [x, f16]]} {\n  return\n}\n",
     "two arguments have one name", TCC_ERR_TYPE},
    {"func @f(%x: tensor<f32[N]>) {dims = [M]} {\n  return\n}\n", "a dimension that is not in",
     TCC_ERR_TYPE},
    {"func @f(%x: tensor<f32[N]>) {dims = [N, N]} {\n  return\n}\n", "'dims' needs names",
     TCC_ERR_TYPE},
    {"func @f(%x: tensor<f32[N]>) {roles = [scalar]} {\n  return\n}\n", "'roles' needs in, out",
     TCC_ERR_TYPE},
    {"func @f(%x: tensor<f32[N]>) {kernel = k} {\n  return\n}\n"
     "func @g(%x: tensor<f16[N]>) {kernel = k} {\n  return\n}\n",
     "other arguments than its kernel 'k'", TCC_ERR_TYPE},
};

START_TEST(bad_ir_is_refused)
{
    tcc_module *made;
    const char *text = faults[_i].text;
    ck_assert_int_eq(tcc_module_parse(ctx, text, strlen(text), "b.tir", &made), faults[_i].status);
    ck_assert_ptr_null(made);
    ck_assert_msg(strstr(said, faults[_i].message) && !strncmp(said, "b.tir:", 6), "%s", said);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------- */

START_TEST(parsing_survives_every_allocation_that_fails)
{
    size_t size;
    const char *text = tcc_module_output(mod, &size);
    tcc_status status = TCC_ERR_MEMORY;
    long n = 0;
    for (; status == TCC_ERR_MEMORY; n++) {
        tcc_module *made;
        oom_fail_after(n);
        status = tcc_module_parse(ctx, text, size, "a.tir", &made);
        oom_fail_after(-1);
        ck_assert((status == TCC_OK) == (made != NULL));
        tcc_module_destroy(made);
    }
    ck_assert_int_eq(status, TCC_OK);
    ck_assert_int_ge(n, 4);
}
END_TEST

START_TEST(interpreting_survives_every_allocation_that_fails)
{
    const tcc_interpret_options o = {.struct_size = sizeof o, .threads = 1};
    tcc_status status = TCC_ERR_MEMORY;
    long n = 0;
    for (; status == TCC_ERR_MEMORY; n++) {
        oom_fail_after(n);
        status = interpret(&o);
        oom_fail_after(-1);
    }
    ck_assert_int_eq(status, TCC_OK);
    ck_assert_int_ge(n, 4);
    check_result();
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("interpret");
    TCase *t = tcase_create("interpret");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_interrupted_context_ends_its_calls);
    tcase_add_loop_test(t, modules_of_every_kind_run, TCC_EMIT_IR, TCC_EMIT_CUBIN);
    tcase_add_loop_test(t, modules_of_every_kind_run, TCC_EMIT_MANIFEST, TCC_EMIT_SASS);
    tcase_add_loop_test(t, modules_of_every_kind_run, TCC_EMIT_PTX, TCC_EMIT_PTX + 1);
    tcase_add_loop_test(t, emitted_ir_runs, 0, 4);
    tcase_add_test(t, every_order_gives_the_same);
    tcase_add_test(t, an_older_caller_gets_defaults);
    tcase_add_loop_test(t, every_nan_is_an_ordinary_one, 0, 6);
    tcase_add_test(t, the_first_valid_variant_runs);
    tcase_add_test(t, no_valid_variant_says_why);
    tcase_add_test(t, bad_arguments_are_refused);
    tcase_add_test(t, one_of_several_kernels_is_named);
    tcase_add_loop_test(t, bad_ir_is_refused, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_test(t, parsing_survives_every_allocation_that_fails);
    tcase_add_test(t, interpreting_survives_every_allocation_that_fails);
    suite_add_tcase(s, t);
    return s;
}
