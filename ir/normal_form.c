/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/normal_form.h"

#include <math.h>
#include <string.h>

enum { MOST_MONOMIALS = 64, MOST_ARGS = 3 };

struct tcc_atom {
    size_t number; /* in the order in which they were made */
    const void *key;
    int tag;
    bool is_condition;
    size_t n;
    const tcc_normal_form *args[MOST_ARGS];
};

/* ---- order ---------------------------------------------------------------------------------- */

static int compare_sums(const tcc_normal_form *x, const tcc_normal_form *y);

static int compare_numbers(double x, double y)
{
    const double last_digits = 1e-13;
    if (fabs(x - y) <= last_digits * (fabs(x) + fabs(y)) / 2 || x == y)
        return 0;
    return x < y ? -1 : 1;
}

/* Of two monomials without their numbers. */
static int compare_monomials(const tcc_monomial *x, const tcc_monomial *y)
{
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    for (size_t i = 0; i < x->n; i++) {
        const tcc_atom_power *p = &x->factors[i], *q = &y->factors[i];
        if (p->atom != q->atom)
            return p->atom->number < q->atom->number ? -1 : 1;
        if (p->power != q->power)
            return p->power < q->power ? -1 : 1;
    }
    if (!x->exponent || !y->exponent)
        return (x->exponent != NULL) - (y->exponent != NULL);
    return compare_sums(x->exponent, y->exponent);
}

static int compare_sums(const tcc_normal_form *x, const tcc_normal_form *y)
{
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    int order = 0;
    for (size_t i = 0; i < x->n && !order; i++) {
        order = compare_monomials(&x->of[i], &y->of[i]);
        order = order ? order : compare_numbers(x->of[i].number, y->of[i].number);
    }
    return order;
}

bool tcc_nf_equal(const tcc_normal_forms *all, const tcc_normal_form *x, const tcc_normal_form *y)
{
    return !all->too_long && !compare_sums(x, y);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Adds a monomial to a sum that has room for it. */
static void insert(tcc_normal_form *sum, tcc_monomial m)
{
    size_t i = 0;
    while (i < sum->n && compare_monomials(&sum->of[i], &m) < 0)
        i++;
    bool is_there = i < sum->n && !compare_monomials(&sum->of[i], &m);
    if (is_there && compare_numbers(sum->of[i].number, -m.number)) {
        sum->of[i].number += m.number;
    } else if (is_there) { /* nothing is left */
        sum->n--;
        memmove(&sum->of[i], &sum->of[i + 1], (sum->n - i) * sizeof *sum->of);
    } else if (m.number != 0) {
        memmove(&sum->of[i + 1], &sum->of[i], (sum->n - i) * sizeof *sum->of);
        sum->of[i] = m;
        sum->n++;
    }
}

static tcc_normal_form *create(tcc_normal_forms *all, size_t most)
{
    tcc_normal_form *sum = TCC_NEW(all->arena, tcc_normal_form);
    sum->of = TCC_NEW_ARRAY(all->arena, tcc_monomial, most + 1);
    return sum;
}

static const tcc_normal_form *of_monomial(tcc_normal_forms *all, tcc_monomial m)
{
    tcc_normal_form *sum = create(all, 1);
    insert(sum, m);
    return sum;
}

const tcc_normal_form *tcc_nf_number(tcc_normal_forms *all, double x)
{
    return of_monomial(all, (tcc_monomial){.number = x});
}

const tcc_normal_form *tcc_nf_add(tcc_normal_forms *all, const tcc_normal_form *x, double scale,
                                  const tcc_normal_form *y)
{
    tcc_normal_form *sum = create(all, x->n + y->n);
    memcpy(sum->of, x->of, x->n * sizeof *x->of);
    sum->n = x->n;
    for (size_t i = 0; i < y->n; i++) {
        tcc_monomial m = y->of[i];
        m.number *= scale;
        insert(sum, m);
    }
    all->too_long |= sum->n > MOST_MONOMIALS;
    return sum;
}

/* ---- products -------------------------------------------------------------------------------- */

static const tcc_normal_form *add_exponents(tcc_normal_forms *all, const tcc_normal_form *x, const tcc_normal_form *y)
{
    const tcc_normal_form *sum = !x ? y : !y ? x : tcc_nf_add(all, x, 1, y);
    return sum && sum->n ? sum : NULL;
}

static tcc_monomial multiply(tcc_normal_forms *all, const tcc_monomial *x, const tcc_monomial *y)
{
    tcc_monomial m = {.number = x->number * y->number, .exponent = add_exponents(all, x->exponent, y->exponent)};
    m.factors = TCC_NEW_ARRAY(all->arena, tcc_atom_power, x->n + y->n + 1);
    for (size_t i = 0, j = 0; i < x->n || j < y->n;) {
        bool has_x = i < x->n && (j == y->n || x->factors[i].atom->number <= y->factors[j].atom->number);
        bool has_y = j < y->n && (i == x->n || y->factors[j].atom->number <= x->factors[i].atom->number);
        tcc_atom_power p = has_x ? x->factors[i] : y->factors[j];
        if (has_x && has_y)
            p.power += y->factors[j].power;
        if (p.atom->is_condition && p.power > 1)
            p.power = 1;
        if (p.power)
            m.factors[m.n++] = p;
        i += has_x;
        j += has_y;
    }
    return m;
}

const tcc_normal_form *tcc_nf_mul(tcc_normal_forms *all, const tcc_normal_form *x, const tcc_normal_form *y)
{
    if (all->too_long || x->n * y->n > MOST_MONOMIALS) {
        all->too_long = true;
        return tcc_nf_number(all, 0);
    }
    tcc_normal_form *sum = create(all, x->n * y->n);
    for (size_t i = 0; i < x->n; i++)
        for (size_t j = 0; j < y->n; j++)
            insert(sum, multiply(all, &x->of[i], &y->of[j]));
    return sum;
}

/* Whether a sum can be divided by: it is one monomial that is not 0 anywhere for a condition. */
static bool is_divisor(const tcc_normal_form *y)
{
    bool is = y->n == 1;
    for (size_t i = 0; is && i < y->of[0].n; i++)
        is = !y->of[0].factors[i].atom->is_condition;
    return is;
}

const tcc_normal_form *tcc_nf_div(tcc_normal_forms *all, const tcc_normal_form *x, const tcc_normal_form *y)
{
    if (!is_divisor(y)) { /* as one unknown, which is the same for the same sum */
        static const char divisor;
        y = tcc_nf_atom(all, &divisor, 0, false, 1, &y);
    }
    tcc_monomial m = y->of[0];
    m.number = 1 / m.number;
    m.exponent = m.exponent ? tcc_nf_add(all, tcc_nf_number(all, 0), -1, m.exponent) : NULL;
    m.factors = TCC_NEW_ARRAY(all->arena, tcc_atom_power, m.n + 1);
    for (size_t i = 0; i < m.n; i++)
        m.factors[i] = (tcc_atom_power){y->of[0].factors[i].atom, -y->of[0].factors[i].power};
    return tcc_nf_mul(all, x, of_monomial(all, m));
}

const tcc_normal_form *tcc_nf_exp(tcc_normal_forms *all, const tcc_normal_form *x)
{
    return of_monomial(all, (tcc_monomial){.number = 1, .exponent = x->n ? x : NULL});
}

/* ---- atoms ------------------------------------------------------------------------------------ */

static bool is_same(const tcc_atom *a, const void *key, int tag, size_t n, const tcc_normal_form *const *args)
{
    bool same = a->key == key && a->tag == tag && a->n == n;
    for (size_t i = 0; same && i < n; i++)
        same = !compare_sums(a->args[i], args[i]);
    return same;
}

const tcc_normal_form *tcc_nf_atom(tcc_normal_forms *all, const void *key, int tag, bool is_condition, size_t n,
                                   const tcc_normal_form *const *args)
{
    size_t i = 0;
    while (i < all->atoms.len && !is_same(all->atoms.data[i], key, tag, n, args))
        i++;
    if (i == all->atoms.len) {
        tcc_atom *a = TCC_NEW(all->arena, tcc_atom);
        *a = (tcc_atom){.number = i, .key = key, .tag = tag, .is_condition = is_condition, .n = n};
        for (size_t k = 0; k < n; k++)
            a->args[k] = args[k];
        TCC_PUSH(all->arena, &all->atoms, a);
    }
    tcc_atom_power *factor = TCC_NEW(all->arena, tcc_atom_power);
    *factor = (tcc_atom_power){all->atoms.data[i], 1};
    return of_monomial(all, (tcc_monomial){.number = 1, .n = 1, .factors = factor});
}
