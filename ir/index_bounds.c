/* index_bounds: which values index expressions have, at a point and over a box.
 *
 * Over a box there are three ways, the first that applies: where x is monotone in each name its ends are at two
 * corners; where it is not in some, these are tried one by one if they take few values together, with the others at
 * corners; else terms are taken to be independent, but for x - y * floor(x / y), which is one thing.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/index.h"
#include "ir/ir.h"

enum { MAX_NAMES = 64, MAX_TRIED = 4096 };

/* ---- intervals: false where a number does not fit 64 bits ---------------------------------------- */

static bool add(tcc_index_range *r, tcc_index_range x)
{
    return !__builtin_add_overflow(r->least, x.least, &r->least) && !__builtin_add_overflow(r->most, x.most, &r->most);
}

static void widen(tcc_index_range *r, int64_t v)
{
    r->least = v < r->least ? v : r->least;
    r->most = v > r->most ? v : r->most;
}

static bool multiply(tcc_index_range *r, tcc_index_range x)
{
    const int64_t a[] = {r->least, r->most}, b[] = {x.least, x.most};
    for (int i = 0; i < 4; i++) {
        int64_t v;
        if (__builtin_mul_overflow(a[i / 2], b[i % 2], &v))
            return false;
        if (i)
            widen(r, v);
        else
            *r = (tcc_index_range){v, v};
    }
    return true;
}

/* A divisor below 1 counts as 1. */
static void divide(tcc_index_range *r, tcc_index_range by)
{
    by = (tcc_index_range){by.least < 1 ? 1 : by.least, by.most < 1 ? 1 : by.most};
    *r = (tcc_index_range){tcc_floor_div(r->least, r->least < 0 ? by.least : by.most),
                           tcc_floor_div(r->most, r->most < 0 ? by.most : by.least)};
}

/* ---- interval arithmetic ----------------------------------------------------------------- */

/* Names of the box, with what they are set to. */
typedef struct name {
    tcc_index_factor_kind kind;
    const char *name;
    tcc_index_range all, now;
    int direction; /* of x with it: 1 never falls, -1 never rises, 0 neither is known */
} name;

typedef struct box {
    tcc_ir *ir;
    name names[MAX_NAMES];
    size_t n;
} box;

static name *find(box *b, const tcc_index_factor *f)
{
    size_t i = 0;
    while (b->names[i].kind != f->kind || b->names[i].name != f->name)
        i++;
    return &b->names[i];
}

static bool interval(box *b, const tcc_index_expr *x, tcc_index_range *out);

static bool interval_of_factors(box *b, const tcc_index_term *term, const tcc_index_factor *but, tcc_index_range *out)
{
    *out = (tcc_index_range){term->number, term->number};
    bool ok = true;
    for (size_t i = 0; ok && i < term->n; i++) {
        const tcc_index_factor *f = &term->factors[i];
        tcc_index_range r, by;
        if (f == but)
            continue;
        if (f->kind != TCC_FACTOR_QUOTIENT)
            r = find(b, f)->now;
        else
            ok = interval(b, f->of, &r) && interval(b, f->by, &by);
        if (ok && f->kind == TCC_FACTOR_QUOTIENT)
            divide(&r, by);
        ok = ok && multiply(out, r);
    }
    return ok;
}

static bool interval(box *b, const tcc_index_expr *x, tcc_index_range *out)
{
    *out = (tcc_index_range){0, 0};
    bool ok = true;
    for (size_t i = 0; ok && i < x->n; i++) {
        tcc_index_range r;
        ok = interval_of_factors(b, &x->terms[i], NULL, &r) && add(out, r);
    }
    return ok;
}

/* ---- directions -------------------------------------------------------------------------- */

enum { NONE = 2 }; /* it does not have the name */

static int both(int x, int y)
{
    return x == NONE ? y : y == NONE || x == y ? x : 0;
}

static int sign_of(tcc_index_range r)
{
    return r.least >= 0 ? 1 : r.most <= 0 ? -1 : 0;
}

static int direction(box *b, const tcc_index_expr *x, const name *n);

static int direction_of_factor(box *b, const tcc_index_factor *f, const name *n)
{
    if (f->kind != TCC_FACTOR_QUOTIENT)
        return f->kind == n->kind && f->name == n->name ? 1 : NONE;
    int of = direction(b, f->of, n), by = direction(b, f->by, n);
    tcc_index_range r;
    if (by == NONE)
        return of;
    if (!interval(b, f->of, &r))
        return 0;
    return both(of, -by * sign_of(r));
}

static int direction(box *b, const tcc_index_expr *x, const name *n)
{
    int found = NONE;
    for (size_t i = 0; i < x->n && found; i++)
        for (size_t f = 0; f < x->terms[i].n && found; f++) {
            const tcc_index_term *term = &x->terms[i];
            int own = direction_of_factor(b, &term->factors[f], n);
            tcc_index_range rest;
            if (own == NONE)
                continue;
            if (!interval_of_factors(b, term, &term->factors[f], &rest))
                return 0;
            found = both(found, own * sign_of(rest));
        }
    return found;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Collects the names of x; false where a range is not known or empty. */
static bool collect(box *b, const tcc_index_expr *x, tcc_index_lookup *lookup, void *user)
{
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < x->terms[i].n; k++) {
            const tcc_index_factor *f = &x->terms[i].factors[k];
            if (f->kind == TCC_FACTOR_QUOTIENT) {
                if (!collect(b, f->of, lookup, user) || !collect(b, f->by, lookup, user))
                    return false;
                continue;
            }
            size_t at = 0;
            while (at < b->n && (b->names[at].kind != f->kind || b->names[at].name != f->name))
                at++;
            name new = {.kind = f->kind, .name = f->name};
            if (at < b->n)
                continue;
            if (at == MAX_NAMES || !lookup(user, f->kind, f->name, &new.all) || new.all.least > new.all.most)
                return false;
            new.now = new.all;
            b->names[b->n++] = new;
        }
    return true;
}

bool tcc_index_value(const tcc_index_expr *x, tcc_index_lookup *lookup, void *user, int64_t *out)
{
    box b = {0};
    tcc_index_range r;
    bool ok = collect(&b, x, lookup, user);
    for (size_t i = 0; i < b.n; i++)
        b.names[i].now.most = b.names[i].now.least;
    ok = ok && interval(&b, x, &r);
    if (ok)
        *out = r.least;
    return ok;
}

/* Adds to *out the values at the two corners where monotone names are, the others being set. */
static bool try_corners(box *b, const tcc_index_expr *x, bool first, tcc_index_range *out)
{
    for (int high = 0; high < 2; high++) {
        tcc_index_range r;
        for (size_t i = 0; i < b->n; i++) {
            name *n = &b->names[i];
            if (n->direction)
                n->now.least = n->now.most = (n->direction > 0) == high ? n->all.most : n->all.least;
        }
        if (!interval(b, x, &r))
            return false;
        if (first && !high)
            *out = r;
        widen(out, r.least);
    }
    return true;
}

/* Sets those that are not monotone to their next values; false after the last. */
static bool next(box *b)
{
    for (size_t i = 0; i < b->n; i++) {
        name *n = &b->names[i];
        if (n->direction)
            continue;
        if (n->now.least < n->all.most) {
            n->now.most = ++n->now.least;
            return true;
        }
        n->now.least = n->now.most = n->all.least;
    }
    return false;
}

static bool try_all(box *b, const tcc_index_expr *x, tcc_index_range *out)
{
    for (size_t i = 0; i < b->n; i++)
        b->names[i].now.least = b->names[i].now.most = b->names[i].all.least;
    bool ok = try_corners(b, x, true, out);
    while (ok && next(b))
        ok = try_corners(b, x, false, out);
    return ok;
}

/* How many combinations of values those have that are not monotone, at most MAX_TRIED + 1. */
static int64_t count_to_try(const box *b)
{
    int64_t n = 1;
    for (size_t i = 0; i < b->n && n <= MAX_TRIED; i++) {
        int64_t values = (int64_t)((uint64_t)b->names[i].all.most - (uint64_t)b->names[i].all.least);
        if (b->names[i].direction)
            continue;
        n = values < 0 || values >= MAX_TRIED ? MAX_TRIED + 1 : n * (values + 1);
    }
    return n;
}

int tcc_index_direction(tcc_ir *ir, const tcc_index_expr *x, tcc_index_factor_kind kind, const char *which,
                        tcc_index_lookup *lookup, void *user)
{
    box b = {.ir = ir};
    const name n = {.kind = kind, .name = which};
    int found = collect(&b, x, lookup, user) ? direction(&b, x, &n) : 0;
    return found == NONE ? 0 : found;
}

/* ---- remainders -------------------------------------------------------------------------- */

/* A quotient floor(a / y) of x such that x is c * (a % y) and a rest of fewer terms; NULL where there is none. */
static const tcc_index_factor *find_remainder(tcc_ir *ir, const tcc_index_expr *x, int64_t *c,
                                              const tcc_index_expr **rest)
{
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < x->terms[i].n; k++) {
            const tcc_index_factor *q = &x->terms[i].factors[k];
            if (q->kind != TCC_FACTOR_QUOTIENT || !q->of->varies)
                continue;
            *c = -(x->terms[i].number / q->by->terms[0].number);
            *rest = tcc_index_sub(ir, x, tcc_index_mul(ir, tcc_index_number(ir, *c), tcc_index_mod(ir, q->of, q->by)));
            if (*c && *rest && (*rest)->n < x->n)
                return q;
        }
    return NULL;
}

/* Whether x takes all values between its ends: an index, and a number. */
static bool is_dense(const tcc_index_expr *x)
{
    return x->n && x->terms[0].number == 1 && x->terms[0].n == 1 && x->terms[0].factors[0].kind == TCC_FACTOR_INDEX &&
           (x->n == 1 || (x->n == 2 && !x->terms[1].n));
}

static bool share_names(const box *b, const tcc_index_expr *x, const tcc_index_expr *y)
{
    bool share = false;
    for (size_t i = 0; i < b->n; i++)
        share |= b->names[i].all.least < b->names[i].all.most && tcc_index_has(x, b->names[i].kind, b->names[i].name) &&
                 tcc_index_has(y, b->names[i].kind, b->names[i].name);
    return share;
}

static tcc_bounds of_remainder(box *b, const tcc_index_factor *q, tcc_index_range *out)
{
    tcc_index_range by;
    if (!interval(b, q->of, out) || !interval(b, q->by, &by) || by.least < 1)
        return TCC_BOUNDS_NONE;
    if (by.least < by.most) {
        *out = (tcc_index_range){0, by.most - 1};
        return TCC_BOUNDS_OUTER;
    }
    bool one_lap = tcc_floor_div(out->least, by.least) == tcc_floor_div(out->most, by.least);
    int64_t start = tcc_floor_div(out->least, by.least) * by.least;
    *out = one_lap ? (tcc_index_range){out->least - start, out->most - start} : (tcc_index_range){0, by.least - 1};
    return is_dense(q->of) ? TCC_BOUNDS_EXACT : TCC_BOUNDS_OUTER;
}

tcc_bounds tcc_index_bounds(tcc_ir *ir, const tcc_index_expr *x, tcc_index_lookup *lookup, void *user,
                            tcc_index_range *out)
{
    box b = {.ir = ir};
    if (!collect(&b, x, lookup, user) || !interval(&b, x, out))
        return TCC_BOUNDS_NONE;
    for (size_t i = 0; i < b.n; i++)
        b.names[i].direction = direction(&b, x, &b.names[i]);
    if (count_to_try(&b) <= MAX_TRIED)
        return try_all(&b, x, out) ? TCC_BOUNDS_EXACT : TCC_BOUNDS_NONE;
    const tcc_index_expr *rest;
    int64_t c;
    const tcc_index_factor *q = find_remainder(ir, x, &c, &rest);
    if (!q)
        return TCC_BOUNDS_OUTER;
    tcc_index_range r;
    tcc_bounds of_mod = of_remainder(&b, q, &r), of_rest = tcc_index_bounds(ir, rest, lookup, user, out);
    if (!of_mod || !of_rest || !multiply(&r, (tcc_index_range){c, c}) || !add(out, r))
        return TCC_BOUNDS_NONE;
    bool exact = of_mod == TCC_BOUNDS_EXACT && of_rest == TCC_BOUNDS_EXACT && !share_names(&b, q->of, rest);
    return exact ? TCC_BOUNDS_EXACT : TCC_BOUNDS_OUTER;
}
