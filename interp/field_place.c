/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>

#include "interp/field_plan.h"

static bool is_beyond(const tcc_row_step *s, double x, double y)
{
    return s->kind == TCC_REDUCTION_ARGMAX ? x > y : x < y;
}

static double number_at(const tcc_cell *cells, const tcc_row *row, size_t i, bool ints)
{
    return ints ? (double)cells[i * row->step].i : cells[i * row->step].f;
}

void tcc_find_places(const tcc_row_step *s, const tcc_row *term, const tcc_row *condition, tcc_cell *r, size_t n,
                     bool ints)
{
    for (size_t i = 0; i < n; i++) {
        double x = number_at(term->cells, term, i, ints);
        bool exists = !isnan(x) && (!condition || condition->cells[i * condition->step].i);
        if (!exists || (r[i].i != TCC_NO_PLACE && !is_beyond(s, x, s->best[i].f)))
            continue;
        s->best[i].f = x;
        r[i].i = s->over[0]->at;
    }
}

/* The ends of a term's interval: what is at least and at most reached in the direction of the extremum. False where it
 * may be a NaN. */
static bool ends_of(const tcc_row_step *s, const tcc_row *term, size_t i, bool ints, double *near, double *far)
{
    double low = number_at(term->low, term, i, ints), high = number_at(term->high, term, i, ints);
    bool rises = s->kind == TCC_REDUCTION_ARGMAX;
    *near = rises ? low : high;
    *far = rises ? high : low;
    return !isnan(low) && !(isinf(low) && isinf(high) && low < high);
}

void tcc_bound_extrema(const tcc_row_step *s, const tcc_row *term, const tcc_row *condition, size_t n, bool ints)
{
    for (size_t i = 0; i < n; i++) {
        double near, far;
        if (!ends_of(s, term, i, ints, &near, &far) || !tcc_term_must_be(condition, i))
            continue;
        if (!s->magnitudes[i] || is_beyond(s, near, s->lows[i]))
            s->lows[i] = near;
        s->magnitudes[i] = 1;
    }
}

void tcc_widen_places(const tcc_row_step *s, const tcc_row *term, const tcc_row *condition, size_t n, bool ints)
{
    const tcc_row *r = s->result;
    for (size_t i = 0; i < n; i++) {
        double near, far;
        bool sure = ends_of(s, term, i, ints, &near, &far) && tcc_term_must_be(condition, i);
        bool may = !isnan(far) && tcc_term_may_be(condition, i) && (isnan(s->highs[i]) || is_beyond(s, far, s->highs[i])) &&
                   !(s->magnitudes[i] && is_beyond(s, s->lows[i], far));
        if (may && r->high[i].i == TCC_NO_PLACE && s->magnitudes[i])
            r->low[i].i = s->over[0]->at;
        if (may)
            r->high[i].i = s->over[0]->at;
        if (sure && (isnan(s->highs[i]) || is_beyond(s, near, s->highs[i])))
            s->highs[i] = near;
    }
}
