/* What a trial's data bring to light.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>

#include "driver/trial.h"
#include "frontend/frontend.h"
#include "support/arena.h"
#include "tests/unit/interp/kernel.h"
#include "tests/unit/suite.h"

#define ARGS "(A: f16[M, K], B: f16[K, N], D: f16[M, N], w: u8[M, N], s: f32[N]) -> (C: f32[M, N])"

/* As if D's elements lay behind the last k of A, where B has zeros, or were no part of it. */
static const char source[] =
    "kernel meant" ARGS "{ C[m, n] = sum(k) A[m, k] * B[k, n] + s[n] + f32(w[m, n]) + relu(D[m, n]); }"
    "kernel meets_neighbours" ARGS
    "{ C[m, n] = sum(k) A[m, k] * B[k, n] + s[n] + f32(w[m, n]) + relu(D[m, n]) + D[m, n] * 0; }";

static int64_t count_infinite(const tcc_trial_arg *a)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->count; i++)
        n += isinf(a->input[i]) != 0;
    return n;
}

/* Of A, B and D, not of bytes, vectors and outputs. */
START_TEST(zero_times_a_neighbour_is_found_by_odd_seeds)
{
    kernel k;
    tcc_trial t;
    tcc_difference d;
    uint64_t seed = (uint64_t)_i;
    kernel_open(&k, source, (extents){.m = 20, .n = 24, .k = 33});
    const tcc_func *wrong = k.signature->next;
    ck_assert(!tcc_trial_prepare(&t, k.arena, k.signature, k.dims, seed, &k.diag));
    for (size_t i = 0; i < t.n_args; i++)
        ck_assert_int_eq(count_infinite(&t.args[i]), i < 3 ? _i % 2 : 0);
    ck_assert(!tcc_trial_run(&t, k.signature, 0, &k.diag) && tcc_trial_agrees(&t, k.signature, &d));
    ck_assert(!tcc_trial_run(&t, wrong, 0, &k.diag));
    ck_assert(tcc_trial_agrees(&t, wrong, &d) == (_i % 2 == 0));
    kernel_close(&k);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trial");
    TCase *t = tcase_create("trial");
    tcase_add_loop_test(t, zero_times_a_neighbour_is_found_by_odd_seeds, 0, 8);
    suite_add_tcase(s, t);
    return suite_exit_status(s);
}
