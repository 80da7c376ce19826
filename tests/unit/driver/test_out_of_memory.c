/* Every allocation of a compilation, and of laying a program out, fails once. It then returns TCC_ERR_MEMORY, leaks nothing (the
 * address sanitizer looks), or does without what it was for: a result is the whole result.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc.h>

#include <check.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static const char program[] =
    "const TILE = 128;\n"
    "kernel layer(X: f16[B, M, K], W: f16[K, N], bias: f32[N], alpha: f32)\n"
    "    -> (Y: f16[B, M, N], Z: f32[B, N, M])\n"
    "{\n"
    "    acc[b, m, n] = alpha * sum(k) X[b, m, k] * W[k, n];\n"
    "    pre[b, m, n] = gelu(acc[b, m, n] + bias[n]);\n"
    "    Y[b, m, n]   = where(pre[b, m, n] > 1, 1, pre[b, m, n]);\n"
    "    Z[b, n, m]   = pre[b, m, n];\n"
    "}\n"
    "schedule layer for sm_90a { tile m TILE, n 32, k 32; stages 3; producer none; }\n"
    "kernel plain(A: bf16[K, M + 7], B: bf16[N, K]) -> (C: bf16[M + 7, N])\n"
    "{\n"
    "    C[m, n] = sum(k) A[k, m] * B[n, k];\n"
    "}\n";
static const char small[] =
    "kernel f(A: f16[M, K, B], W: f16[K, N, B]) -> (C: f16[B, M, N])\n"
    "{\n"
    "    C[b, m, n] = sum(k) A[m, k, b] * W[k, n, b];\n"
    "}\n";
static const char vectors[] =
    "kernel f(x: f16[K], B: f16[8, K]) -> (C: f16[8])\n"
    "{\n"
    "    C[n] = gelu(sum(k) x[k] * B[n, k]);\n"
    "}\n"
    "schedule f for sm_90a { tile n 8, k 64; stages 1; producer none; }\n";
static const char wrong[] =
    "kernel layer(X: f16[B, M, K], W: f16[K, N]) -> (Y: f16[B, M, N])\n"
    "{\n"
    "    Y[b, m, n] = sum(k) X[b, m, k] * V[k, n];\n"
    "}\n"
    "schedule layer for sm_90a { stages 3; stages 4; }\n";
static const char too_large[] =
    "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }\n"
    "schedule f for sm_90a { stages 900; }\n";

static void ignore_diagnostic(const tcc_diagnostic *d, void *user)
{
    (void)d, (void)user;
}

static void ignore_text(const char *text, void *user)
{
    (void)text, (void)user;
}

/* *failed: whether there were allocations enough for one to fail */
static tcc_status compile(const char *source, tcc_emit emit, bool check_passes, long fail_after,
                          tcc_module **mod, bool *failed)
{
    const tcc_define k = {"K", 64};
    const tcc_compile_options o = {.struct_size = sizeof o, .target = "sm_90a",
                                   .file = "a.tile", .emit = emit, .defines = &k, .n_defines = 1,
                                   .print_after = "choose-mma", .time_passes = true,
                                   .verify_each = true, .print = ignore_text,
                                   .check_passes = check_passes};
    tcc_context *ctx = tcc_context_create();
    tcc_context_on_diagnostic(ctx, ignore_diagnostic, NULL);
    oom_fail_after(fail_after);
    tcc_status status = tcc_compile_with(ctx, source, strlen(source), &o, mod);
    *failed = !oom_is_armed();
    oom_fail_after(-1);
    tcc_context_destroy(ctx);
    return status;
}

static void check_same(const tcc_module *mod, const tcc_module *whole)
{
    /* not ck_assert_str_eq, which has no room for messages of this length */
    ck_assert(!strcmp(tcc_module_output(mod, NULL), tcc_module_output(whole, NULL)));
    ck_assert(!strcmp(tcc_module_manifest(mod), tcc_module_manifest(whole)));
    ck_assert(!strcmp(tcc_module_schedule(mod), tcc_module_schedule(whole)));
    ck_assert(!strcmp(tcc_module_plan(mod), tcc_module_plan(whole)));
}

#ifdef TCC_SANITIZED
enum { EACH_OF_THE_FIRST = 4 }; /* compilations are several times as slow */
#else
enum { EACH_OF_THE_FIRST = 12 };
#endif

/* Fails the first allocation, the second, and so on until there is none left to fail, at growing distances. */
static void fail_each(const char *source, tcc_emit emit, bool check_passes, tcc_status expected)
{
    tcc_module *whole = NULL, *mod = NULL;
    bool failed = true;
    ck_assert_int_eq(compile(source, emit, check_passes, -1, &whole, &failed), expected);
    long failures = 0;
    failed = true;
    for (long n = 0; failed; n += 1 + n / EACH_OF_THE_FIRST) {
        tcc_status status = compile(source, emit, check_passes, n, &mod, &failed);
        ck_assert(status ? !mod : mod != NULL);
        ck_assert_msg(status == expected || (failed && status == TCC_ERR_MEMORY),
                      "allocation %ld: %s", n, tcc_status_name(status));
        failures += status == TCC_ERR_MEMORY;
        if (mod)
            check_same(mod, whole);
        tcc_module_destroy(mod);
    }
    ck_assert_int_ge(failures, 3);
    tcc_module_destroy(whole);
}

START_TEST(to_tensor_ir) { fail_each(program, TCC_EMIT_IR, false, TCC_OK); }
END_TEST
START_TEST(to_target_ir) { fail_each(program, TCC_EMIT_TIR, false, TCC_OK); }
END_TEST
START_TEST(to_a_manifest) { fail_each(program, TCC_EMIT_MANIFEST, false, TCC_OK); }
END_TEST
START_TEST(to_llvm_ir) { fail_each(small, TCC_EMIT_LLVM, false, TCC_OK); }
END_TEST
START_TEST(to_ptx) { fail_each(small, TCC_EMIT_PTX, false, TCC_OK); }
END_TEST
START_TEST(to_checked_passes) { fail_each(vectors, TCC_EMIT_TIR, true, TCC_OK); }
END_TEST
START_TEST(to_a_type_error) { fail_each(wrong, TCC_EMIT_TIR, false, TCC_ERR_TYPE); }
END_TEST
START_TEST(to_a_schedule_error) { fail_each(too_large, TCC_EMIT_TIR, false, TCC_ERR_TARGET); }
END_TEST

START_TEST(to_a_layout)
{
    bool failed = true;
    for (long i = 0; failed; i++) {
        char *text = NULL;
        oom_fail_after(i);
        tcc_status status = tcc_format(NULL, program, strlen(program), NULL, &text);
        failed = !oom_is_armed();
        oom_fail_after(-1);
        ck_assert_int_eq(status, failed ? TCC_ERR_MEMORY : TCC_OK);
        ck_assert(failed == !text);
        tcc_text_destroy(text);
    }
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("out of memory");
    TCase *t = tcase_create("out of memory");
    tcase_add_test(t, to_tensor_ir);
    tcase_add_test(t, to_target_ir);
    tcase_add_test(t, to_a_manifest);
    tcase_add_test(t, to_llvm_ir);
    tcase_add_test(t, to_ptx);
    tcase_add_test(t, to_checked_passes);
    tcase_add_test(t, to_a_type_error);
    tcase_add_test(t, to_a_schedule_error);
    tcase_add_test(t, to_a_layout);
    suite_add_tcase(s, t);
    return s;
}
