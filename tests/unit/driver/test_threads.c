/* Threads compile at once, each in a context of its own, and get what one thread gets alone; and a
 * kernel that several threads interpret does what it does in one. Built with the thread sanitizer,
 * too.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc.h>

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

enum { THREADS = 4, ROUNDS = 6 }; /* twice each program below */

static const char *const programs[] = {
    "kernel a(A: f16[M, K], B: f16[N, K], bias: f32[N]) -> (C: f16[M, N])\n"
    "{\n"
    "    C[m, n] = gelu(sum(k) A[m, k] * B[n, k] + bias[n]);\n"
    "}\n"
    "schedule a for sm_90a { tile m 64, n 32, k 32; stages 3; }\n",
    "kernel b(A: bf16[K, H, M], B: bf16[K, H, N]) -> (C: f32[H, M, N])\n"
    "{\n"
    "    C[h, m, n] = sum(k) A[k, h, m] * B[k, h, n];\n"
    "}\n"
    "schedule b for sm_90a { tile m 128, n 16, k 16; stages 2; producer none; }\n",
    "kernel wrong(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
    "{\n"
    "    C[m, n] = sum(k) A[m, k] * B[n, m];\n"
    "}\n",
};
enum { N_PROGRAMS = sizeof programs / sizeof *programs };

typedef struct result {
    tcc_status status;
    char *ptx, *schedule;
    unsigned n_diagnostics;
} result;

static result expected[N_PROGRAMS];

static void count_diagnostic(const tcc_diagnostic *d, void *user)
{
    unsigned *n = user;
    *n += *d->text != 0;
}

static result compile(tcc_context *ctx, const char *source)
{
    result r = {0};
    tcc_module *mod;
    tcc_context_on_diagnostic(ctx, count_diagnostic, &r.n_diagnostics);
    r.status = tcc_compile(ctx, source, "sm_90a", &mod);
    if (mod) {
        r.ptx = strdup(tcc_module_output(mod, NULL));
        r.schedule = strdup(tcc_module_schedule(mod));
    }
    tcc_module_destroy(mod);
    return r;
}

static void result_free(result *r)
{
    free(r->ptx);
    free(r->schedule);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool is_same(const result *a, const result *b)
{
    return a->status == b->status && a->n_diagnostics == b->n_diagnostics &&
           same_text(a->ptx, b->ptx) && same_text(a->schedule, b->schedule);
}

typedef struct worker {
    pthread_t thread;
    unsigned first;     /* the first program */
    bool keeps_context; /* false: a new context each time */
    unsigned n_wrong;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    tcc_context *ctx = tcc_context_create();
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (!w->keeps_context) {
            tcc_context_destroy(ctx);
            ctx = tcc_context_create();
        }
        unsigned p = (w->first + i) % N_PROGRAMS;
        result r = compile(ctx, programs[p]);
        w->n_wrong += !is_same(&r, &expected[p]);
        result_free(&r);
    }
    tcc_context_destroy(ctx);
    return NULL;
}

static unsigned run_threads(void)
{
    worker workers[THREADS] = {0};
    unsigned n_wrong = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].first = i;
        workers[i].keeps_context = i % 2;
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        n_wrong += workers[i].n_wrong;
    }
    return n_wrong;
}

/* Before anything else was compiled, so that threads also meet in what LLVM does once. */
START_TEST(threads_compile_at_once)
{
    unsigned n_wrong = run_threads(); /* nothing is expected yet: all are wrong */
    ck_assert_uint_eq(n_wrong, THREADS * ROUNDS);
    tcc_context *ctx = tcc_context_create();
    for (unsigned p = 0; p < N_PROGRAMS; p++)
        expected[p] = compile(ctx, programs[p]);
    tcc_context_destroy(ctx);
    ck_assert_int_eq(expected[0].status, TCC_OK);
    ck_assert_int_eq(expected[1].status, TCC_OK);
    ck_assert_int_eq(expected[2].status, TCC_ERR_TYPE);
    ck_assert_uint_eq(run_threads(), 0);
    for (unsigned p = 0; p < N_PROGRAMS; p++)
        result_free(&expected[p]);
}
END_TEST

/* ---- interpreting ---------------------------------------------------------------------- */

enum { M = 200, N = 70, K = 50, H = 3 };

/* What one run of program b leaves: its result, or what is said. */
typedef struct outcome {
    tcc_status status;
    double c[H * M * N];
    char said[4096];
} outcome;

static void keep_text(const tcc_diagnostic *d, void *user)
{
    outcome *o = user;
    size_t n = strlen(o->said);
    snprintf(o->said + n, sizeof o->said - n, "%s", d->text);
}

static void interpret(const char *ir, tcc_interpret_order order, unsigned threads, outcome *out)
{
    static double a[K * H * M], b[K * H * N];
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = (double)(i % 7) - 3;
    for (size_t i = 0; i < sizeof b / sizeof *b; i++)
        b[i] = (double)(i % 5) - 2;
    memset(out, 0, sizeof *out);
    tcc_context *ctx = tcc_context_create();
    tcc_context_on_diagnostic(ctx, keep_text, out);
    tcc_module *mod;
    ck_assert_int_eq(tcc_module_parse(ctx, ir, strlen(ir), "b.tir", &mod), TCC_OK);
    const tcc_interpret_options o = {
        .struct_size = sizeof o, .order = order, .seed = 3, .threads = threads};
    out->status =
        tcc_interpret(ctx, mod, "b", (int64_t[]){K, H, M, N}, (double *[]){a, b, out->c}, &o);
    tcc_module_destroy(mod);
    tcc_context_destroy(ctx);
}

static char *target_level(const char *source)
{
    tcc_context *ctx = tcc_context_create();
    tcc_module *mod;
    const tcc_compile_options o = {
        .struct_size = sizeof o, .target = "sm_90a", .emit = TCC_EMIT_TIR};
    ck_assert_int_eq(tcc_compile_with(ctx, source, strlen(source), &o, &mod), TCC_OK);
    char *ir = strdup(tcc_module_output(mod, NULL));
    tcc_module_destroy(mod);
    tcc_context_destroy(ctx);
    return ir;
}

static const tcc_interpret_order orders[] = {TCC_INTERPRET_RANDOM, TCC_INTERPRET_EARLY,
                                             TCC_INTERPRET_LATE};

START_TEST(threads_interpret_as_one_does)
{
    static outcome one, four;
    char *ir = target_level(programs[1]);
    interpret(ir, orders[_i], 1, &one);
    interpret(ir, orders[_i], 4, &four);
    ck_assert_msg(one.status == TCC_OK, "%s", one.said);
    ck_assert(!memcmp(&one, &four, sizeof one));
    double sum = 0;
    for (size_t i = 0; i < sizeof one.c / sizeof *one.c; i++)
        sum += one.c[i] * one.c[i];
    ck_assert(sum > 0);
    free(ir);
}
END_TEST

/* No warp waits for its products, in any of the CTAs: the first one is reported. */
START_TEST(threads_report_what_one_does)
{
    static outcome one, four;
    static const char right[] = "pending = 0", wrong[] = "pending = 7";
    char *ir = target_level(programs[1]);
    for (char *p = ir; (p = strstr(p, right)); p++)
        memcpy(p, wrong, strlen(wrong));
    interpret(ir, orders[_i], 1, &one);
    interpret(ir, orders[_i], 4, &four);
    ck_assert_int_eq(one.status, TCC_ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(one.said, "<source>:3:"));
    ck_assert_int_eq(four.status, one.status);
    ck_assert_str_eq(four.said, one.said);
    free(ir);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("threads");
    TCase *t = tcase_create("threads");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, threads_compile_at_once);
    tcase_add_loop_test(t, threads_interpret_as_one_does, 0, 3);
    tcase_add_loop_test(t, threads_report_what_one_does, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
