/* What a trial's data bring to light.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>

#include "driver/trial.h"
#include "frontend/frontend.h"
#include "ir/number.h"
#include "support/arena.h"
#include "tests/unit/interp/kernel.h"
#include "tests/unit/suite.h"

#define ARGS "(A: f16[M, K], B: f16[K, N], D: f16[M, N], w: u8[M, N], s: f32[N]) -> (C: f32[M, N])"

/* As if D's elements lay behind the last k of A, where B has zeros, or were not part of it. */
static const char source[] =
    "kernel meant" ARGS
    "{ C[m, n] = sum(k) A[m, k] * B[k, n] + s[n] + f32(w[m, n]) + relu(D[m, n]); }"
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
    ck_assert(!tcc_trial_prepare(&t, k.arena, k.scratch, k.signature, k.dims, seed, &k.diag));
    for (size_t i = 0; i < t.n_args; i++)
        ck_assert_int_eq(count_infinite(&t.args[i]), i < 3 ? _i % 2 : 0);
    ck_assert(!tcc_trial_run(&t, k.signature, 0, &k.diag) && tcc_trial_agrees(&t, k.signature, &d));
    ck_assert(!tcc_trial_run(&t, wrong, 0, &k.diag));
    ck_assert(tcc_trial_agrees(&t, wrong, &d) == (_i % 2 == 0));
    kernel_close(&k);
}
END_TEST

/* ---- sums that round --------------------------------------------------------------------- */

#define COMPUTED "kernel f(A: f16[M, K], B: f16[K, N], D: f16[M, N]) -> (C: f32[M, N])"

static const struct {
    const char *source;
    bool rounds;
} sums[] = {
    {COMPUTED "{ C[m, n] = D[m, n] + sum(k) A[m, k] * B[k, n]; }", false},
    {COMPUTED "{ C[m, n] = D[m, n] + sum(k) relu(0.5 * A[m, k] - 3) * B[k, n]; }", false},
    {COMPUTED "{ C[m, n] = D[m, n] + sum(k) f16(A[m, k] / 3) * B[k, n]; }", true},
    {COMPUTED "{ C[m, n] = D[m, n] + sum(k) (0.1 * A[m, k]) * B[k, n]; }", true},
    {COMPUTED "{ C[m, n] = D[m, n] + sum(k) (8192 * A[m, k] + 0.125) * B[k, n]; }", true},
    {COMPUTED "{ C[m, n] = D[m, n] + sum(k) exp(A[m, k]) * B[k, n]; }", true},
    {COMPUTED "{ C[m, n] = D[m, n] + sum(k) where(exp(A[m, k]) > 1, 1, 2) * B[k, n]; }", true},
};

/* The largest of the products that are added up for an element of C. */
static double largest_term(const tcc_trial *t, double (*f)(double), int64_t m, int64_t n)
{
    int64_t n_k = t->dims[1], n_n = t->dims[2];
    double largest = 0;
    for (int64_t k = 0; k < n_k; k++)
        largest =
            fmax(largest, fabs(f(t->args[0].input[m * n_k + k]) * t->args[1].input[k * n_n + n]));
    return largest;
}

START_TEST(sums_that_round_are_told_from_those_that_do_not)
{
    kernel k;
    tcc_trial t;
    kernel_open(&k, sums[_i].source, (extents){.m = 20, .n = 24, .k = 33});
    ck_assert(!tcc_trial_prepare(&t, k.arena, k.scratch, k.signature, k.dims, 0, &k.diag));
    ck_assert(t.sums == sums[_i].rounds);
    kernel_close(&k);
}
END_TEST

/* One term more or less in any element, however much of the sum cancels. */
START_TEST(one_term_too_many_is_found)
{
    kernel k;
    tcc_trial t;
    tcc_difference d;
    kernel_open(&k, COMPUTED "{ C[m, n] = D[m, n] + sum(k) exp(A[m, k]) * B[k, n]; }",
                (extents){.m = 20, .n = 24, .k = 33});
    ck_assert(!tcc_trial_prepare(&t, k.arena, k.scratch, k.signature, k.dims, (uint64_t)_i * 2, &k.diag));
    ck_assert(!tcc_trial_run(&t, k.signature, 0, &k.diag) && tcc_trial_agrees(&t, k.signature, &d));
    tcc_trial_arg *c = &t.args[3];
    for (int64_t i = 0; i < c->count; i++) {
        double right = c->got[i], term = largest_term(&t, exp, i / 24, i % 24);
        c->got[i] = nextafterf((float)right, INFINITY); /* as another order may have it */
        ck_assert(tcc_trial_agrees(&t, k.signature, &d));
        for (int sign = -1; sign <= 1; sign += 2) {
            c->got[i] = right + sign * term;
            ck_assert(!tcc_trial_agrees(&t, k.signature, &d) && d.at == i);
        }
        c->got[i] = tcc_poison();
        ck_assert(!tcc_trial_agrees(&t, k.signature, &d));
        c->got[i] = right;
    }
    kernel_close(&k);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("trial");
    TCase *t = tcase_create("trial");
    tcase_add_loop_test(t, zero_times_a_neighbour_is_found_by_odd_seeds, 0, 8);
    tcase_add_loop_test(t, sums_that_round_are_told_from_those_that_do_not, 0,
                        sizeof sums / sizeof *sums);
    tcase_add_loop_test(t, one_term_too_many_is_found, 0, 4);
    suite_add_tcase(s, t);
    return s;
}
