/* Every allocation of a run fails once, at each level.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>

#include "tests/unit/interp/kernel.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

/* Runs f while the n-th allocation fails; false when it ran out of memory. */
static bool survives(const kernel *k, const tcc_func *f, long n)
{
    jmp_buf oom;
    tcc_diag diag = {0};
    tcc_arena *scratch = tcc_arena_create(&oom);
    if (setjmp(oom)) {
        oom_fail_after(-1);
        tcc_arena_destroy(scratch);
        return false;
    }
    tcc_interp_options o = {.dims = k->dims, .signature = k->signature};
    const tcc_trial_arg *a = k->trial.args;
    double *const args[] = {a[0].got, a[1].got, a[2].got};
    oom_fail_after(n);
    tcc_status status = tcc_interp_run(f, &o, args, scratch, &diag);
    oom_fail_after(-1);
    tcc_arena_destroy(scratch);
    ck_assert_int_eq(status, TCC_OK);
    return true;
}

START_TEST(memory_runs_out_at_any_point)
{
    static const char *const until[] = {"canonicalize", "choose-mma", "lower-to-nvvm", ""};
    kernel k;
    kernel_open(&k,
                "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
                "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
                "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; }\n",
                (extents){64, 16, 32, 1});
    char passes[512];
    const char *pipeline = tcc_pipeline(tcc_target_at(0));
    size_t n = *until[_i] ? (size_t)(strstr(pipeline, until[_i]) - pipeline) : strlen(pipeline) + 1;
    snprintf(passes, sizeof passes, "%.*s", (int)n - (n > 0), pipeline);
    ck_assert_int_eq(tcc_run_passes(k.ir, passes, NULL, &k.diag), TCC_OK);
    long failures = 0;
    while (!survives(&k, k.ir->first, failures))
        failures++;
    ck_assert_int_ge(failures, 1);
    kernel_close(&k);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("interp_out_of_memory");
    TCase *t = tcase_create("interp_out_of_memory");
    tcase_add_loop_test(t, memory_runs_out_at_any_point, 0, 4);
    suite_add_tcase(s, t);
    return s;
}
