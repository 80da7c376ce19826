/* linear: sums of symbols, and how often a loop runs that goes by one.
 *
 * A role may go through its tiles by a stride, from the number of its CTA on, or count them:
 * (tiles - cta + stride - 1) / stride. For both to make as many iterations, sums are one symbol however they are put
 * together, and the rounded quotient is known as the number of iterations of the loop.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

enum { MAX_CONSTANT = 1 << 16 };

/* Symbols times numbers, in `delta`, in the order of their numbers; and a constant. */
typedef struct sum {
    tcc_pvalue terms[TCC_P_SUMMANDS];
    unsigned n;
    int64_t constant;
} sum;

static bool add_symbol(sum *s, int64_t symbol, int64_t times)
{
    unsigned i = 0;
    while (i < s->n && s->terms[i].v < symbol)
        i++;
    bool found = i < s->n && s->terms[i].v == symbol;
    if (!found && s->n == TCC_P_SUMMANDS)
        return false;
    if (!found) {
        memmove(&s->terms[i + 1], &s->terms[i], (s->n++ - i) * sizeof *s->terms);
        s->terms[i] = (tcc_pvalue){.kind = TCC_P_SYMBOL, .v = symbol};
    }
    s->terms[i].delta += times;
    if (!s->terms[i].delta)
        memmove(&s->terms[i], &s->terms[i + 1], (--s->n - i) * sizeof *s->terms);
    return true;
}

/* Adds a value, once or -1 times; false if the result is not such a sum. Those of another type are taken as they
 * are. */
static bool add(const tcc_protocol *p, sum *s, const tcc_pvalue *v, int64_t times, tcc_scalar elem)
{
    bool exact = tcc_p_is_exact(v) && !v->loop, symbol = v->kind == TCC_P_SYMBOL && v->delta == INT64_MAX;
    int64_t constant = exact ? v->v : v->offset;
    if ((!exact && !symbol) || constant > MAX_CONSTANT || constant < -MAX_CONSTANT)
        return false;
    s->constant += times * constant;
    const tcc_psymbol *of = symbol ? tcc_p_symbol_get(p, v->v) : NULL;
    if (symbol && (!of->n_terms || of->elem != elem))
        return add_symbol(s, v->v, times);
    bool fits = true;
    for (unsigned i = 0; symbol && i < of->n_terms && fits; i++)
        fits = add_symbol(s, of->terms[i].v, times * of->terms[i].delta);
    return fits;
}

static tcc_pvalue symbol_of(tcc_protocol *p, sum *s, tcc_scalar elem)
{
    tcc_pvalue r = {.kind = TCC_P_SYMBOL, .delta = INT64_MAX, .offset = (int32_t)s->constant};
    if (s->constant > MAX_CONSTANT || s->constant < -MAX_CONSTANT)
        return (tcc_pvalue){0};
    if (!s->n)
        return tcc_p_known(s->constant);
    r.v = s->terms[0].v;
    if (s->n == 1 && s->terms[0].delta == 1)
        return r;
    s->terms[0].offset = (int32_t)elem + 1; /* sums of another type are other symbols */
    r.v = tcc_p_symbol(p, "sum", s->terms, s->n).v;
    s->terms[0].offset = 0;
    tcc_psymbol *of = tcc_p_symbol_change(p, r.v);
    of->elem = elem;
    of->n_terms = s->n;
    memcpy(of->terms, s->terms, sizeof of->terms);
    return r;
}

tcc_pvalue tcc_p_sum(tcc_protocol *p, const tcc_pvalue *a, const tcc_pvalue *b, bool minus, int64_t constant,
                     tcc_scalar elem)
{
    sum s = {.constant = constant};
    bool may = add(p, &s, a, 1, elem) && add(p, &s, b, minus ? -1 : 1, elem);
    return may ? symbol_of(p, &s, elem) : (tcc_pvalue){0};
}

tcc_pvalue tcc_p_iterations(tcc_protocol *p, tcc_pvalue distance, tcc_pvalue step)
{
    return tcc_p_symbol_from(p, 0, "iterations", (tcc_pvalue[]){distance, step}, 2);
}

void tcc_p_find_count(tcc_protocol *p, int64_t symbol, const tcc_pvalue *of, const tcc_pvalue *by, tcc_scalar elem)
{
    if (of->kind != TCC_P_SYMBOL || by->kind != TCC_P_SYMBOL || by->delta != INT64_MAX)
        return;
    tcc_pvalue distance = tcc_p_sum(p, of, by, true, 1, elem);
    if (distance.kind == TCC_P_SYMBOL) {
        int64_t count = tcc_p_iterations(p, distance, *by).v;
        tcc_p_symbol_change(p, symbol)->count = (uint32_t)count + 1;
    }
}
