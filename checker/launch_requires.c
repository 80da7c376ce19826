/* launch_requires: what the conditions of a plan leave of its dimensions. Each bounds a product of dimensions; with the
 * bounds of all others but one, it bounds that one. This is repeated until nothing changes any more.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "checker/launch.h"
#include "ir/signature.h"
#include "support/extent.h"
#include "support/gcd.h"

enum { MAX_UNIT = 4096, MAX_ROUNDS = 64 };

/* ---- whether one holds ----------------------------------------------------------------------- */

typedef enum condition_kind { LEAST, MOST, PITCH, SPAN, OTHER } condition_kind;

static condition_kind kind_of(tcc_attr c)
{
    return tcc_attr_is_record(c, "min", "di")      ? LEAST
           : tcc_attr_is_record(c, "max", "di")    ? MOST
           : tcc_attr_is_record(c, "pitch", "lii") ? PITCH
           : tcc_attr_is_record(c, "span", "lii")  ? SPAN
                                                   : OTHER;
}

/* unknown: what is said of a number that is too large, or of dimensions that these sizes lack. */
static bool holds(const tcc_lsizes *s, tcc_attr c, bool unknown)
{
    const tcc_attr *of = c.list.items;
    condition_kind kind = kind_of(c);
    if (kind == OTHER)
        return true;
    bool bound = kind == LEAST || kind == MOST;
    int64_t n = bound ? tcc_launch_extent(s, of[1]) : tcc_launch_multiply(s, of[1], of[2].i);
    if (n < 0)
        return unknown;
    if (bound)
        return kind == LEAST ? n >= of[2].i : n <= of[2].i;
    return kind == SPAN ? n <= of[3].i : of[3].i > 0 && n % of[3].i == 0;
}

tcc_attr tcc_launch_conditions(const tcc_func *variant, tcc_arena *scratch)
{
    TCC_VEC(tcc_attr) all = {0};
    for (size_t i = 0, n = tcc_func_step_count(variant); i < n; i++) {
        tcc_attr list = tcc_attr_list(&tcc_func_step_at(variant, i)->attrs, "requires");
        for (size_t c = 0; c < list.list.n; c++)
            TCC_PUSH(scratch, &all, list.list.items[c]);
    }
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {all.data, all.len}};
}

size_t tcc_launch_broken(const tcc_lsizes *s)
{
    size_t n = 0;
    for (size_t c = 0; c < s->conditions.list.n; c++)
        n += !holds(s, s->conditions.list.items[c], false);
    return n;
}

bool tcc_launch_holds(const tcc_lsizes *s, bool unknown)
{
    bool all = true;
    for (size_t c = 0; c < s->conditions.list.n && all; c++)
        all = holds(s, s->conditions.list.items[c], unknown);
    return all;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static int64_t times(int64_t a, int64_t b)
{
    int64_t n;
    return __builtin_mul_overflow(a, b, &n) ? INT64_MAX : n;
}

/* A product of dimensions and a number. */
typedef struct product {
    const tcc_lsizes *s;
    TCC_VEC(int) dims; /* several times if they are operands several times */
    int64_t number;
    bool sums;  /* an operand is a sum, of which nothing follows for one dimension */
    bool exact; /* false: an operand is rounded up, so that the product is at least this, at most an unknown more */
} product;

static void multiply_by(product *p, tcc_attr a, tcc_arena *scratch)
{
    tcc_extent_factor factor;
    for (size_t i = 0; a.kind == TCC_ATTR_LIST && i < a.list.n; i++)
        multiply_by(p, a.list.items[i], scratch);
    if (a.kind == TCC_ATTR_INT)
        p->number = times(p->number, a.i);
    p->sums |= a.kind == TCC_ATTR_STR && tcc_extent_is_sum(a.s);
    for (const char *left = a.kind == TCC_ATTR_STR ? a.s : ""; tcc_extent_take(&left, &factor);) {
        int d = factor.n ? tcc_dims_find(p->s->dims, &factor) : -1;
        if (d >= 0)
            TCC_PUSH(scratch, &p->dims, d);
        else
            p->number = times(p->number, factor.number);
    }
}

static product product_of(const tcc_lsizes *s, tcc_attr a, tcc_arena *scratch)
{
    product p = {.s = s, .number = 1, .exact = true};
    if (a.kind != TCC_ATTR_LIST) {
        multiply_by(&p, a, scratch);
        return p;
    }
    for (size_t i = 0; i < a.list.n; i++) {
        bool rounds = tcc_attr_is_record(a.list.items[i], "roundup", "di");
        p.exact &= !rounds;
        multiply_by(&p, rounds ? a.list.items[i].list.items[1] : a.list.items[i], scratch);
    }
    return p;
}

/* The bounds of all operands but one, multiplied. */
static void bounds_without(const product *p, const tcc_lbounds *all, size_t without, int64_t *least, int64_t *most)
{
    *least = *most = p->number;
    for (size_t i = 0; i < p->dims.len; i++) {
        *least = i == without ? *least : times(*least, all[p->dims.data[i]].least);
        *most = i == without ? *most : times(*most, all[p->dims.data[i]].most);
    }
}

static void raise_least(tcc_lbounds *d, int64_t least)
{
    if (least > INT64_MAX - d->unit)
        return;
    least = (least + d->unit - 1) / d->unit * d->unit;
    d->least = d->least > least ? d->least : least;
}

static void lower_most(tcc_lbounds *d, int64_t most)
{
    most = most < 0 ? most : most / d->unit * d->unit;
    d->most = d->most < most ? d->most : most;
}

/* What is left of the i-th operand of a product that is from `lo` to `hi`. */
static void narrow_operand(const product *p, size_t i, int64_t lo, int64_t hi, tcc_lbounds *all)
{
    int64_t least, most;
    tcc_lbounds *d = &all[p->dims.data[i]];
    bounds_without(p, all, i, &least, &most);
    if (p->exact && most > 0 && lo > 0)
        raise_least(d, lo / most + (lo % most != 0));
    if (least > 0)
        lower_most(d, hi / least);
    if (lo > 0 && !most)
        d->most = -1; /* 0 is not enough */
}

/* If a product is a multiple of a number, its only operand that is not fixed is one of another number. */
static void narrow_unit(const product *p, int64_t bytes, int64_t align, tcc_lbounds *all)
{
    int64_t scale = times(p->number, bytes);
    tcc_lbounds *d = NULL;
    unsigned n_free = 0;
    for (size_t i = 0; i < p->dims.len; i++) {
        tcc_lbounds *b = &all[p->dims.data[i]];
        bool fixed = b->least == b->most;
        n_free += !fixed;
        d = fixed ? d : b;
        scale = fixed ? times(scale, b->least) : scale;
    }
    if (n_free != 1 || !p->exact || scale < 1 || scale == INT64_MAX || align < 1)
        return;
    int64_t unit = align / tcc_gcd(scale, align), together = d->unit / tcc_gcd(d->unit, unit) * unit;
    if (together > MAX_UNIT)
        return;
    d->unit = together;
    raise_least(d, d->least);
    lower_most(d, d->most);
}

static void narrow_by(const tcc_lsizes *s, tcc_attr c, tcc_lbounds *all, tcc_arena *scratch)
{
    const tcc_attr *of = c.list.items;
    condition_kind kind = kind_of(c);
    if (kind == OTHER)
        return;
    product p = product_of(s, of[1], scratch);
    if (p.sums)
        return;
    if (kind == PITCH) {
        narrow_unit(&p, of[2].i, of[3].i, all);
        return;
    }
    if (kind == SPAN)
        p.number = times(p.number, of[2].i);
    int64_t lo = kind == LEAST ? of[2].i : 0, hi = kind == LEAST ? INT64_MAX : of[kind == MOST ? 2 : 3].i;
    for (size_t i = 0; i < p.dims.len; i++)
        narrow_operand(&p, i, lo, hi, all);
}

int tcc_launch_narrow(const tcc_lsizes *s, tcc_lbounds *all, tcc_arena *scratch)
{
    bool changed = true;
    tcc_lbounds *before = TCC_NEW_ARRAY(scratch, tcc_lbounds, s->dims.list.n);
    for (unsigned round = 0; changed && round < MAX_ROUNDS; round++) {
        changed = false;
        if (s->dims.list.n)
            memcpy(before, all, s->dims.list.n * sizeof *all);
        for (size_t c = 0; c < s->conditions.list.n; c++)
            narrow_by(s, s->conditions.list.items[c], all, scratch);
        for (size_t i = 0; i < s->dims.list.n; i++) {
            if (all[i].least > all[i].most)
                return (int)i;
            changed |= memcmp(&all[i], &before[i], sizeof *all) != 0;
        }
    }
    return -1;
}
