/* Every pass preserves what kernels compute, and what it makes is free of races.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/interp/kernel.h"

static void check(const char *source, const int64_t *dims, double tolerance, uint64_t seed)
{
    kernel k;
    kernel_open(&k, source, dims);
    k.tolerance = tolerance;
    kernel_check_passes(&k, seed);
    kernel_close(&k);
}

static char *source_of(char *out, size_t size, const char *kernel_text, const char *schedule)
{
    snprintf(out, size, "%s\nschedule f for sm_90a { %s }\n", kernel_text, schedule);
    return out;
}

START_TEST(smoke)
{
    char text[1024];
    check(source_of(text, sizeof text,
                    "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
                    "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}",
                    "tile m 64, n 16, k 16; stages 2; warpgroups 1;"),
          (int64_t[]){72, 40, 24}, 0, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("passes_preserve");
    TCase *t = tcase_create("passes_preserve");
    tcase_add_test(t, smoke);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
