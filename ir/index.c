/* index: the normal form of index expressions, and what is built of it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/index.h"

#include <string.h>

#include "ir/ir.h"
#include "support/map.h"

/* ---- order ----------------------------------------------------------------------------- */

static int compare(const tcc_index_expr *x, const tcc_index_expr *y);

static int by_number(int64_t x, int64_t y)
{
    return (x > y) - (x < y);
}

static int compare_factors(const tcc_index_factor *x, const tcc_index_factor *y)
{
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->kind != TCC_FACTOR_QUOTIENT)
        return x->name == y->name ? 0 : strcmp(x->name, y->name);
    int order = compare(x->of, y->of);
    return order ? order : compare(x->by, y->by);
}

/* By their factors alone; a term with more comes before one that has no others, so that the constant is last. */
static int compare_terms(const tcc_index_term *x, const tcc_index_term *y)
{
    for (size_t i = 0; i < x->n && i < y->n; i++) {
        int order = compare_factors(&x->factors[i], &y->factors[i]);
        if (order)
            return order;
    }
    return by_number((int64_t)y->n, (int64_t)x->n);
}

static int compare(const tcc_index_expr *x, const tcc_index_expr *y)
{
    for (size_t i = 0; x != y && i < x->n && i < y->n; i++) {
        int order = compare_terms(&x->terms[i], &y->terms[i]);
        order = order ? order : by_number(x->terms[i].number, y->terms[i].number);
        if (order)
            return order;
    }
    return x == y ? 0 : by_number((int64_t)x->n, (int64_t)y->n);
}

/* ---- interning ------------------------------------------------------------------------- */

static uint64_t hash(size_t n, const tcc_index_term *terms)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        h = tcc_hash_mix(h, (uint64_t)terms[i].number);
        for (size_t f = 0; f < terms[i].n; f++) {
            const tcc_index_factor *factor = &terms[i].factors[f];
            h = tcc_hash_mix(tcc_hash_mix(h, (uintptr_t)factor->name), (uintptr_t)factor->of);
            h = tcc_hash_mix(tcc_hash_mix(h, factor->kind), (uintptr_t)factor->by);
        }
    }
    return h;
}

static bool is_made_of(const tcc_index_expr *x, size_t n, const tcc_index_term *terms)
{
    bool same = x->n == n;
    for (size_t i = 0; same && i < n; i++)
        same = x->terms[i].number == terms[i].number && !compare_terms(&x->terms[i], &terms[i]);
    return same;
}

static const tcc_index_expr **slot_of(tcc_ir *ir, size_t n, const tcc_index_term *terms)
{
    size_t i = hash(n, terms) & (ir->cap_indices - 1);
    while (ir->indices[i] && !is_made_of(ir->indices[i], n, terms))
        i = (i + 1) & (ir->cap_indices - 1);
    return &ir->indices[i];
}

static void grow(tcc_ir *ir)
{
    const tcc_index_expr **old = ir->indices;
    size_t n = ir->cap_indices;
    ir->cap_indices = n ? n * 2 : 64;
    ir->indices = TCC_NEW_ARRAY(ir->kept, const tcc_index_expr *, ir->cap_indices);
    for (size_t i = 0; i < n; i++)
        if (old[i])
            *slot_of(ir, old[i]->n, old[i]->terms) = old[i];
}

static bool varies(size_t n, const tcc_index_term *terms)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < terms[i].n; f++) {
            const tcc_index_factor *factor = &terms[i].factors[f];
            any |= factor->kind == TCC_FACTOR_INDEX || (factor->kind == TCC_FACTOR_QUOTIENT && factor->of->varies);
        }
    return any;
}

/* The expression of these terms, which are in normal form and in the arena. */
static const tcc_index_expr *intern(tcc_ir *ir, size_t n, const tcc_index_term *terms)
{
    if (ir->n_indices * 2 >= ir->cap_indices)
        grow(ir);
    const tcc_index_expr **slot = slot_of(ir, n, terms);
    if (*slot)
        return *slot;
    tcc_index_expr *x = TCC_NEW(ir->kept, tcc_index_expr);
    *x = (tcc_index_expr){n, terms, varies(n, terms)};
    ir->n_indices++;
    return *slot = x;
}

/* ---- sums ------------------------------------------------------------------------------ */

/* What terms are added up in; n is TCC_INDEX_MAX_TERMS + 1 once something did not fit. */
typedef struct sum {
    size_t n;
    tcc_index_term terms[TCC_INDEX_MAX_TERMS];
} sum;

static void add_term(sum *s, tcc_index_term term)
{
    size_t at = 0;
    while (at < s->n && at < TCC_INDEX_MAX_TERMS && compare_terms(&s->terms[at], &term) < 0)
        at++;
    bool fits = s->n <= TCC_INDEX_MAX_TERMS;
    if (fits && at < s->n && !compare_terms(&s->terms[at], &term)) {
        fits = !__builtin_add_overflow(s->terms[at].number, term.number, &s->terms[at].number) &&
               s->terms[at].number != INT64_MIN;
        if (fits && !s->terms[at].number)
            memmove(&s->terms[at], &s->terms[at + 1], (--s->n - at) * sizeof term);
    } else if (fits && term.number) {
        fits = s->n < TCC_INDEX_MAX_TERMS && term.number != INT64_MIN;
        if (fits) {
            memmove(&s->terms[at + 1], &s->terms[at], (s->n++ - at) * sizeof term);
            s->terms[at] = term;
        }
    }
    if (!fits)
        s->n = TCC_INDEX_MAX_TERMS + 1;
}

static void add_expr(sum *s, const tcc_index_expr *x)
{
    for (size_t i = 0; i < x->n; i++)
        add_term(s, x->terms[i]);
}

static const tcc_index_expr *finish(tcc_ir *ir, const sum *s)
{
    if (s->n > TCC_INDEX_MAX_TERMS)
        return NULL;
    tcc_index_term *terms = TCC_NEW_ARRAY(ir->kept, tcc_index_term, s->n);
    if (s->n)
        memcpy(terms, s->terms, s->n * sizeof *terms);
    return intern(ir, s->n, terms);
}

static const tcc_index_expr *of_factor(tcc_ir *ir, tcc_index_factor factor)
{
    tcc_index_factor *own = TCC_NEW(ir->kept, tcc_index_factor);
    tcc_index_term *term = TCC_NEW(ir->kept, tcc_index_term);
    *own = factor;
    *term = (tcc_index_term){1, 1, own};
    return intern(ir, 1, term);
}

const tcc_index_expr *tcc_index_number(tcc_ir *ir, int64_t number)
{
    if (number == INT64_MIN) /* whose magnitude does not fit */
        return NULL;
    tcc_index_term *term = TCC_NEW(ir->kept, tcc_index_term);
    *term = (tcc_index_term){.number = number};
    return intern(ir, number != 0, term);
}

const tcc_index_expr *tcc_index_name(tcc_ir *ir, const char *index)
{
    return of_factor(ir, (tcc_index_factor){.kind = TCC_FACTOR_INDEX, .name = tcc_ir_name(ir, index)});
}

const tcc_index_expr *tcc_index_dim(tcc_ir *ir, const char *dim)
{
    return of_factor(ir, (tcc_index_factor){.kind = TCC_FACTOR_DIM, .name = tcc_ir_name(ir, dim)});
}

const tcc_index_expr *tcc_index_add(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y)
{
    if (!x || !y)
        return NULL;
    sum s = {0};
    add_expr(&s, x);
    add_expr(&s, y);
    return finish(ir, &s);
}

const tcc_index_expr *tcc_index_sub(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y)
{
    return tcc_index_add(ir, x, tcc_index_mul(ir, tcc_index_number(ir, -1), y));
}

/* ---- products -------------------------------------------------------------------------- */

static bool multiply_terms(tcc_ir *ir, const tcc_index_term *x, const tcc_index_term *y, tcc_index_term *out)
{
    size_t n = x->n + y->n;
    tcc_index_factor *factors = TCC_NEW_ARRAY(ir->kept, tcc_index_factor, n);
    for (size_t i = 0, j = 0; i + j < n;) {
        bool first = j == y->n || (i < x->n && compare_factors(&x->factors[i], &y->factors[j]) <= 0);
        factors[i + j] = first ? x->factors[i] : y->factors[j];
        *(first ? &i : &j) += 1;
    }
    *out = (tcc_index_term){0, n, factors};
    return n <= TCC_INDEX_MAX_TERMS && !__builtin_mul_overflow(x->number, y->number, &out->number);
}

const tcc_index_expr *tcc_index_mul(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y)
{
    if (!x || !y || (x->varies && y->varies))
        return NULL;
    sum s = {0};
    for (size_t i = 0; i < x->n; i++)
        for (size_t j = 0; j < y->n; j++) {
            tcc_index_term term;
            if (!multiply_terms(ir, &x->terms[i], &y->terms[j], &term))
                return NULL;
            add_term(&s, term);
        }
    return finish(ir, &s);
}

/* ---- quotients ------------------------------------------------------------------------- */

static int64_t gcd(int64_t x, int64_t y)
{
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x < 0 ? -x : x;
}

/* x / by where by is one term and x a multiple of it; the factors of x that by has are left out. */
static bool divide_term(tcc_ir *ir, const tcc_index_term *x, const tcc_index_term *by, tcc_index_term *out)
{
    if (x->number % by->number || x->n < by->n)
        return false;
    size_t n = 0, j = 0;
    tcc_index_factor *factors = TCC_NEW_ARRAY(ir->kept, tcc_index_factor, x->n);
    for (size_t i = 0; i < x->n; i++)
        if (j < by->n && !compare_factors(&x->factors[i], &by->factors[j]))
            j++;
        else
            factors[n++] = x->factors[i];
    *out = (tcc_index_term){x->number / by->number, n, factors};
    return j == by->n;
}

/* Moves multiples of y from x to `whole`, and of a constant what is one. */
static const tcc_index_expr *take_multiples(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y, sum *whole)
{
    sum rest = {0};
    for (size_t i = 0; i < x->n; i++) {
        tcc_index_term term = x->terms[i], part;
        if (y->n == 1 && divide_term(ir, &term, &y->terms[0], &part)) {
            add_term(whole, part);
            continue;
        }
        if (!term.n && y->n == 1 && !y->terms[0].n) {
            int64_t by = y->terms[0].number;
            add_term(whole, (tcc_index_term){.number = tcc_floor_div(term.number, by)});
            term.number -= tcc_floor_div(term.number, by) * by;
        }
        add_term(&rest, term);
    }
    return finish(ir, &rest);
}

/* x / g and y / g where g divides y and all of x but its constant, of which the rest does not count. */
static void reduce(tcc_ir *ir, const tcc_index_expr **x, const tcc_index_expr **y)
{
    int64_t g = 0;
    for (size_t i = 0; i < (*y)->n; i++)
        g = gcd(g, (*y)->terms[i].number);
    bool is_number = (*y)->n == 1 && !(*y)->terms[0].n;
    for (size_t i = 0; i < (*x)->n; i++)
        if ((*x)->terms[i].n || !is_number)
            g = gcd(g, (*x)->terms[i].number);
    if (g < 2)
        return;
    sum of = {0}, by = {0};
    for (size_t i = 0; i < (*x)->n; i++) {
        tcc_index_term term = (*x)->terms[i];
        term.number = tcc_floor_div(term.number, g);
        add_term(&of, term);
    }
    for (size_t i = 0; i < (*y)->n; i++) {
        tcc_index_term term = (*y)->terms[i];
        term.number /= g;
        add_term(&by, term);
    }
    *x = finish(ir, &of);
    *y = finish(ir, &by);
}

/* Where x is floor(a / b) + c, for which floor(x / y) is floor((a + b * c) / (b * y)): that quotient's operands. */
static bool is_nested(tcc_ir *ir, const tcc_index_expr **x, const tcc_index_expr **y)
{
    const tcc_index_term *t = (*x)->terms;
    bool is = (*x)->n && t->number == 1 && t->n == 1 && t->factors->kind == TCC_FACTOR_QUOTIENT;
    for (size_t i = 1; is && i < (*x)->n; i++)
        is = !t[i].n;
    if (!is)
        return false;
    const tcc_index_expr *c = tcc_index_number(ir, (*x)->n > 1 ? t[1].number : 0);
    const tcc_index_expr *of = tcc_index_add(ir, t->factors->of, tcc_index_mul(ir, t->factors->by, c));
    const tcc_index_expr *by = tcc_index_mul(ir, t->factors->by, *y);
    if (!of || !by)
        return false;
    *x = of;
    *y = by;
    return true;
}

const tcc_index_expr *tcc_index_div(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y)
{
    int64_t by;
    if (!x || !y || y->varies || !y->n || (y->n == 1 && y->terms[0].number < 1))
        return NULL;
    if (x == y)
        return tcc_index_number(ir, 1);
    sum whole = {0};
    do {
        x = take_multiples(ir, x, y, &whole);
        if (x && x->n)
            reduce(ir, &x, &y);
    } while (x && y && x->n && is_nested(ir, &x, &y));
    if (!x || !y)
        return NULL;
    if (tcc_index_is_number(y, &by) && by == 1)
        add_expr(&whole, x);
    else if (x->n && !(tcc_index_is_number(x, &by) && tcc_index_is_number(y, &by)))
        add_expr(&whole, of_factor(ir, (tcc_index_factor){.kind = TCC_FACTOR_QUOTIENT, .of = x, .by = y}));
    return finish(ir, &whole);
}

const tcc_index_expr *tcc_index_mod(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y)
{
    return tcc_index_sub(ir, x, tcc_index_mul(ir, y, tcc_index_div(ir, x, y)));
}

const tcc_index_expr *tcc_index_ceildiv(tcc_ir *ir, const tcc_index_expr *x, int64_t n)
{
    return tcc_index_div(ir, tcc_index_add(ir, x, tcc_index_number(ir, n - 1)), tcc_index_number(ir, n));
}

/* ---- what there is in one -------------------------------------------------------------- */

bool tcc_index_equal(const tcc_index_expr *x, const tcc_index_expr *y)
{
    return !compare(x, y);
}

bool tcc_index_is_number(const tcc_index_expr *x, int64_t *out)
{
    bool is = !x->n || (x->n == 1 && !x->terms[0].n);
    if (is)
        *out = x->n ? x->terms[0].number : 0;
    return is;
}

const char *tcc_index_plain(const tcc_index_expr *x)
{
    bool is =
        x->n == 1 && x->terms[0].number == 1 && x->terms[0].n == 1 && x->terms[0].factors[0].kind == TCC_FACTOR_INDEX;
    return is ? x->terms[0].factors[0].name : NULL;
}

static bool factor_has(const tcc_index_factor *f, tcc_index_factor_kind kind, const char *name)
{
    return f->kind == TCC_FACTOR_QUOTIENT ? tcc_index_has(f->of, kind, name) || tcc_index_has(f->by, kind, name)
                                          : f->kind == kind && !strcmp(f->name, name);
}

bool tcc_index_has(const tcc_index_expr *x, tcc_index_factor_kind kind, const char *name)
{
    bool has = false;
    for (size_t i = 0; !has && i < x->n; i++)
        for (size_t f = 0; !has && f < x->terms[i].n; f++)
            has = factor_has(&x->terms[i].factors[f], kind, name);
    return has;
}

const tcc_index_expr *tcc_index_stride(tcc_ir *ir, const tcc_index_expr *x, const char *index)
{
    sum s = {0};
    for (size_t i = 0; i < x->n; i++) {
        tcc_index_term term = x->terms[i];
        size_t at = 0;
        while (at < term.n && !factor_has(&term.factors[at], TCC_FACTOR_INDEX, index))
            at++;
        if (at == term.n)
            continue;
        if (term.factors[at].kind == TCC_FACTOR_QUOTIENT)
            return NULL;
        term.factors++; /* an index is the first factor */
        term.n--;
        add_term(&s, term);
    }
    return finish(ir, &s);
}

static const tcc_index_expr *replace_factor(tcc_ir *ir, const tcc_index_factor *f, tcc_index_factor_kind kind,
                                            const char *name, const tcc_index_expr *by)
{
    if (!factor_has(f, kind, name))
        return of_factor(ir, *f);
    return f->kind == TCC_FACTOR_QUOTIENT ? tcc_index_div(ir, tcc_index_replace(ir, f->of, kind, name, by),
                                                          tcc_index_replace(ir, f->by, kind, name, by))
                                          : by;
}

const tcc_index_expr *tcc_index_replace(tcc_ir *ir, const tcc_index_expr *x, tcc_index_factor_kind kind,
                                        const char *name, const tcc_index_expr *by)
{
    const tcc_index_expr *r = tcc_index_number(ir, 0);
    for (size_t i = 0; r && i < x->n; i++) {
        const tcc_index_expr *term = tcc_index_number(ir, x->terms[i].number);
        for (size_t f = 0; f < x->terms[i].n; f++)
            term = tcc_index_mul(ir, term, replace_factor(ir, &x->terms[i].factors[f], kind, name, by));
        r = tcc_index_add(ir, r, term);
    }
    return r;
}
