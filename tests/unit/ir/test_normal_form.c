/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/normal_form.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "tests/unit/suite.h"

static tcc_normal_forms all;

static void setup(void)
{
    all = (tcc_normal_forms){.arena = tcc_arena_create(NULL)};
}

static void teardown(void)
{
    tcc_arena_destroy(all.arena);
}

/* ---- drawn expressions, with their values at a few points -------------------------------------------- */

enum { UNKNOWNS = 2, CONDITIONS = 1, POINTS = 5, DEPTH = 3, EXPRESSIONS = 400 };

/* Of unknowns x and y and a condition. */
static const double points[POINTS][UNKNOWNS + CONDITIONS] = {
    {0.7, -1.3, 0}, {1.1, 0.4, 1}, {-0.6, 2.2, 0}, {0.31, 0.93, 1}, {-1.7, -0.2, 1}};

typedef struct expression {
    const tcc_normal_form *form;
    double at[POINTS];
    bool is_whole; /* it divides by monomials only, and has no function: equal values have equal forms */
} expression;

static expression unknown(int i)
{
    expression e = {tcc_nf_atom(&all, points[0] + i, 0, i >= UNKNOWNS, 0, NULL), {0}, true};
    for (int p = 0; p < POINTS; p++)
        e.at[p] = points[p][i];
    return e;
}

static expression number(double x)
{
    expression e = {tcc_nf_number(&all, x), {0}, true};
    for (int p = 0; p < POINTS; p++)
        e.at[p] = x;
    return e;
}

static expression draw(unsigned *seed, int depth)
{
    static const char square_root;
    int kind = (int)(rand_r(seed) % (depth ? 9 : 4));
    if (kind < UNKNOWNS + CONDITIONS)
        return unknown(kind);
    if (kind == UNKNOWNS + CONDITIONS)
        return number((double)(rand_r(seed) % 5) - 2);
    expression a = draw(seed, depth - 1), b = draw(seed, depth - 1), r = {NULL, {0}, a.is_whole && b.is_whole};
    const tcc_normal_form *arg = a.form;
    switch (kind) {
    case 4: r.form = tcc_nf_add(&all, a.form, 1, b.form); break;
    case 5: r.form = tcc_nf_add(&all, a.form, -1, b.form); break;
    case 6: r.form = tcc_nf_mul(&all, a.form, b.form); break;
    case 7:
        r.form = tcc_nf_div(&all, a.form, b.form);
        r.is_whole = false;
        break;
    default:
        r.form = depth == 1 ? tcc_nf_atom(&all, &square_root, 0, false, 1, &arg) : tcc_nf_exp(&all, a.form);
        r.is_whole = false;
    }
    for (int p = 0; p < POINTS; p++)
        r.at[p] = kind == 4    ? a.at[p] + b.at[p]
                  : kind == 5  ? a.at[p] - b.at[p]
                  : kind == 6  ? a.at[p] * b.at[p]
                  : kind == 7  ? a.at[p] / b.at[p]
                  : depth == 1 ? sqrt(fabs(a.at[p]))
                               : exp(a.at[p]);
    return r;
}

/* Values that are defined, and equal but for rounding. */
static bool have_equal_values(const expression *a, const expression *b)
{
    bool equal = true;
    for (int p = 0; p < POINTS; p++)
        equal &= fabs(a->at[p] - b->at[p]) <= 1e-9 * (fabs(a->at[p]) + fabs(b->at[p])) + 1e-12;
    return equal;
}

static bool are_defined(const expression *e)
{
    bool defined = true;
    for (int p = 0; p < POINTS; p++)
        defined &= isfinite(e->at[p]) && fabs(e->at[p]) < 1e6;
    return defined;
}

START_TEST(equal_forms_are_of_equal_expressions_and_sums_of_products_with_equal_values_have_equal_forms)
{
    unsigned seed = (unsigned)_i + 1;
    static expression drawn[EXPRESSIONS];
    int equal = 0, n = 0;
    while (n < EXPRESSIONS) {
        drawn[n] = draw(&seed, DEPTH);
        all.too_long = false; /* of this one */
        n += are_defined(&drawn[n]);
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            bool same = tcc_nf_equal(&all, drawn[i].form, drawn[j].form);
            equal += same;
            if (same)
                ck_assert_msg(have_equal_values(&drawn[i], &drawn[j]), "expressions %d and %d", i, j);
            else if (drawn[i].is_whole && drawn[j].is_whole)
                ck_assert_msg(!have_equal_values(&drawn[i], &drawn[j]), "expressions %d and %d", i, j);
        }
    ck_assert_int_gt(equal, EXPRESSIONS);
}
END_TEST

START_TEST(exponents_are_added_and_quotients_cancel)
{
    const tcc_normal_form *x = unknown(0).form, *y = unknown(1).form;
    const tcc_normal_form *difference = tcc_nf_exp(&all, tcc_nf_add(&all, x, -1, y));
    ck_assert(tcc_nf_equal(&all, tcc_nf_div(&all, tcc_nf_exp(&all, x), tcc_nf_exp(&all, y)), difference));
    ck_assert(!tcc_nf_equal(&all, tcc_nf_div(&all, tcc_nf_exp(&all, y), tcc_nf_exp(&all, x)), difference));
    const tcc_normal_form *sum = tcc_nf_add(&all, x, 1, y);
    ck_assert(tcc_nf_equal(&all, tcc_nf_mul(&all, tcc_nf_div(&all, x, sum), y),
                           tcc_nf_div(&all, tcc_nf_mul(&all, y, x), sum)));
}
END_TEST

START_TEST(what_is_too_long_is_equal_to_nothing)
{
    const tcc_normal_form *sum = tcc_nf_add(&all, unknown(0).form, 1, unknown(1).form), *x = sum;
    for (int i = 0; i < 10; i++)
        x = tcc_nf_mul(&all, x, tcc_nf_add(&all, x, 1, tcc_nf_exp(&all, x)));
    ck_assert(all.too_long);
    ck_assert(!tcc_nf_equal(&all, x, x));
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("normal_form");
    TCase *cases = tcase_create("normal_form");
    tcase_add_checked_fixture(cases, setup, teardown);
    suite_add_sampled(cases,
                      equal_forms_are_of_equal_expressions_and_sums_of_products_with_equal_values_have_equal_forms, 8);
    tcase_add_test(cases, exponents_are_added_and_quotients_cancel);
    tcase_add_test(cases, what_is_too_long_is_equal_to_nothing);
    suite_add_tcase(suite, cases);
    return suite;
}
