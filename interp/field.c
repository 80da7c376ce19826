/* field: runs functions of whole tensors, row by row of each output, as field_plan.h has it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "interp/field_plan.h"
#include "interp/interval.h"
#include "ir/elementwise.h"

/* ---- running --------------------------------------------------------------------------- */

static size_t row_length(const tcc_row_plan *p, const tcc_row *r)
{
    return r->step ? (size_t)p->row->extent : 1;
}

static void run_index(const tcc_row_plan *p, const tcc_row_step *s)
{
    for (size_t i = 0, n = row_length(p, s->result); i < n; i++)
        s->result->cells[i].i = s->index == p->row ? (int64_t)i : s->index->at;
}

static void run_read(tcc_fields *fs, const tcc_row_plan *p, const tcc_row_step *s)
{
    if (s->coordinates) {
        tcc_read_elements(fs, p, s, row_length(p, s->result));
        return;
    }
    int64_t base = tcc_access_base(&s->access, &p->row, 1);
    int64_t stride = tcc_access_stride(&s->access, p->row);
    tcc_param as_read = *s->access.param;
    as_read.data = (double *)s->access.data;
    for (size_t i = 0, n = row_length(p, s->result); i < n; i++)
        s->result->cells[i] = tcc_param_load(&as_read, base + (int64_t)i * stride);
}

/* Steps `over` to its next value; false when there is none. The last index runs fastest. */
static bool next_value(tcc_index *const *over, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        if (++over[i]->at < over[i]->extent)
            return true;
        over[i]->at = 0;
    }
    return false;
}

static bool run_plan(tcc_fields *fs, const tcc_row_plan *p);

/* Counts a step; false when the run ends there. */
static bool may_run(tcc_fields *fs, const tcc_op *op)
{
    if (!tcc_run_must_end(fs->run, ++fs->steps))
        return true;
    fs->status = fs->status ? fs->status : tcc_run_end(fs->run, fs->steps, op);
    return false;
}

/* Combines r[i] with term[i], if there is one: if there is a condition, it holds. */
static void add_terms(tcc_reduction kind, tcc_cell *r, const tcc_row *term, const tcc_row *condition, size_t n,
                      bool ints)
{
    for (size_t i = 0; i < n; i++)
        if (!condition || condition->cells[i * condition->step].i)
            r[i] = tcc_reduction_combine(kind, r[i], term->cells[i * term->step], ints);
}

/* Gives sums the type that they have: integers wrap, and the machine rounds. */
static void finish_sums(const tcc_fields *fs, tcc_cell *r, size_t n, tcc_scalar elem)
{
    if (tcc_scalar_classify(elem) != TCC_CLASS_FLOAT)
        for (size_t i = 0; i < n; i++)
            r[i].i = tcc_int_wrap(elem, r[i].i);
    else if (fs->run->machine)
        for (size_t i = 0; i < n; i++)
            r[i].f = tcc_round_float(r[i].f, elem);
}

/* How many sums of a row of n a term belongs to, and which is the first: all of them, or of sums in parts
 * those of its own. */
static size_t sums_of_term(const tcc_row_plan *p, const tcc_row_step *s, size_t n, size_t *first)
{
    *first = 0;
    if (!s->part)
        return n;
    int64_t part = s->over[0]->at / s->depth % s->part->extent;
    if (s->part != p->row)
        return part == s->part->at ? n : 0;
    *first = (size_t)part;
    return 1;
}

/* The intervals of n extremes of terms so far. */
static void combine_intervals(const tcc_row_step *s, const tcc_row *term, const tcc_row *condition, size_t n, bool ints)
{
    bool rises = s->kind == TCC_REDUCTION_MAX;
    for (size_t i = 0; i < n; i++) {
        tcc_cell low = term->low[i * term->step], high = term->high[i * term->step];
        tcc_cell least = {.f = s->lows[i]}, most = {.f = s->highs[i]};
        if (ints) {
            low.f = (double)low.i;
            high.f = (double)high.i;
        }
        if (rises ? tcc_term_must_be(condition, i) : tcc_term_may_be(condition, i))
            s->lows[i] = tcc_reduction_combine(s->kind, least, low, false).f;
        if (rises ? tcc_term_may_be(condition, i) : tcc_term_must_be(condition, i))
            s->highs[i] = tcc_reduction_combine(s->kind, most, high, false).f;
    }
}

/* Adds the intervals of terms, and the most that each may be, to n sums from `first` on. */
static void add_intervals(const tcc_row_step *s, const tcc_row *term, const tcc_row *condition, size_t first, size_t n,
                          bool ints)
{
    for (size_t i = first; i < first + n; i++) {
        size_t at = (i - first) * term->step;
        tcc_cell low = term->low[at], high = term->high[at];
        bool sure = tcc_term_must_be(condition, i - first);
        bool exact = ints ? sure && low.i == high.i : isfinite(low.f) && isfinite(high.f);
        if (!tcc_term_may_be(condition, i - first))
            continue;
        if (!ints && !sure) {
            low.f = fmin(low.f, 0);
            high.f = fmax(high.f, 0);
        }
        s->lows[i] += ints || !exact ? 0 : low.f;
        s->highs[i] += ints || !exact ? 0 : high.f;
        s->magnitudes[i] += !exact ? (double)INFINITY : ints ? 0 : fmax(fabs(low.f), fabs(high.f));
    }
}

static void finish_extremes(const tcc_row_step *s, size_t n, bool ints)
{
    const tcc_row *r = s->result;
    for (size_t i = 0; i < n; i++) {
        r->low[i] = ints ? (tcc_cell){.i = (int64_t)s->lows[i]} : (tcc_cell){.f = s->lows[i]};
        r->high[i] = ints ? (tcc_cell){.i = (int64_t)s->highs[i]} : (tcc_cell){.f = s->highs[i]};
    }
}

static double count_terms(const tcc_row_step *s)
{
    double n = 1;
    for (size_t i = 0; i < s->n_over; i++)
        n *= (double)s->over[i]->extent;
    double turn = s->part ? (double)(s->part->extent * s->depth) : n;
    return s->part ? ceil(n / turn) * (double)s->depth : n;
}

/* The intervals of sums that are there. Integers are exact where every term is. */
static void finish_intervals(const tcc_fields *fs, const tcc_row_step *s, size_t n, tcc_scalar elem)
{
    const tcc_row *r = s->result;
    bool ints = tcc_scalar_classify(elem) != TCC_CLASS_FLOAT, of_8_bits = tcc_adds_8_bit_products(s->op);
    bool exact_sums = fs->run->options->exact_sums && (elem == TCC_f32 || elem == TCC_f64);
    double n_terms = exact_sums ? 0 : count_terms(s);
    for (size_t i = 0; i < n; i++) {
        if (ints) {
            bool exact = s->magnitudes[i] == 0;
            r->low[i].i = exact ? r->cells[i].i : tcc_int_saturate(elem, INT64_MIN);
            r->high[i].i = exact ? r->cells[i].i : tcc_int_saturate(elem, INT64_MAX);
        } else {
            r->low[i].f = s->lows[i];
            r->high[i].f = s->highs[i];
            tcc_interval_of_sum(elem, of_8_bits, n_terms, s->magnitudes[i], &r->low[i].f, &r->high[i].f);
        }
    }
}

static void keep_interval(tcc_row_operand *c, size_t at, double low, double high, double value)
{
    bool exact = low == high || (isnan(low) && isnan(high));
    c->errors[at] = exact ? 0 : fmax(value - low, high - value);
    c->largest[at] = fmax(fabs(low), fabs(high));
}

/* Keeps where indices are; whether what was computed last is for the same place. */
static bool holds(tcc_memo *memo)
{
    bool stayed = true;
    for (size_t i = 0; i < memo->n; i++) {
        stayed &= memo->at[i] == memo->indices[i]->at;
        memo->at[i] = memo->indices[i]->at;
    }
    return stayed && memo->is_known;
}

/* Computes an operand, unless its indices have the values of the last time; false: it cannot. */
static bool compute(tcc_fields *fs, tcc_row_operand *c)
{
    if (holds(&c->memo))
        return true;
    int64_t before = c->along ? c->along->at : 0, n = c->along ? c->along->extent : 1;
    size_t n_k = (size_t)c->k->extent;
    for (int64_t x = 0; x < n; x++) {
        if (c->along)
            c->along->at = x;
        if (!run_plan(fs, c->body))
            return false;
        const tcc_row *r = c->result;
        for (size_t k = 0, at = (size_t)x * n_k; k < n_k; k++, at++) {
            size_t i = k * r->step;
            c->values[at] = r->cells[i].f;
            if (fs->intervals)
                keep_interval(c, at, r->low[i].f, r->high[i].f, r->cells[i].f);
        }
    }
    if (c->along)
        c->along->at = before;
    c->memo.is_known = true;
    return true;
}

static bool compute_operands(tcc_fields *fs, const tcc_row_step *s)
{
    bool done = true;
    for (unsigned i = 0; i < 2 && done; i++)
        done = !s->computed[i] || compute(fs, s->computed[i]);
    return done;
}

/* Adds products of two operands to r, those of a part where the sums have parts, or their magnitudes. */
static void add_products(const tcc_row_step *s, const tcc_access *factors, const tcc_index *along, double *r,
                         bool magnitudes)
{
    tcc_index *k = s->over[s->n_over - 1];
    int64_t all = k->extent, most = s->part ? s->depth : all;
    int64_t from = s->part ? s->part->at * most : 0, turn = s->part ? s->part->extent * most : all;
    for (; from < all; from += turn) {
        tcc_access operands[] = {factors[0], factors[1]};
        for (int i = 0; i < 2; i++)
            operands[i].data += from * tcc_access_stride(&operands[i], k);
        k->extent = all - from < most ? all - from : most;
        tcc_product_row(&(tcc_product){&operands[0], &operands[1], k}, along, r, s->buffer, magnitudes);
    }
    k->extent = all;
}

/* Adds the magnitudes of a product's terms, or how far they may be off, to r. */
static void add_magnitudes(const tcc_row_step *s, const tcc_index *along, bool errors, double *r)
{
    tcc_access factors[] = {s->factors[0], s->factors[1]};
    for (unsigned i = 0; i < 2; i++)
        if (s->computed[i])
            factors[i].data = errors ? s->computed[i]->errors : s->computed[i]->largest;
    add_products(s, factors, along, r, true);
}

/* The intervals of a product's exact sums, and the magnitudes of its terms. */
static void run_magnitudes(tcc_fields *fs, const tcc_row_plan *p, const tcc_row_step *s, size_t n)
{
    const tcc_index *along = s->result->step ? p->row : NULL;
    bool is_computed = s->computed[0] || s->computed[1];
    memset(s->errors, 0, n * sizeof *s->errors);
    do {
        if (!compute_operands(fs, s))
            break;
        add_magnitudes(s, along, false, s->magnitudes);
        if (is_computed)
            add_magnitudes(s, along, true, s->errors);
    } while (next_value(s->over, s->n_over - 1) && may_run(fs, s->op));
    for (size_t i = 0; i < n; i++) {
        bool known = isfinite(s->errors[i]);
        s->lows[i] = known ? s->sums[i] - s->errors[i] : 0;
        s->highs[i] = known ? s->sums[i] + s->errors[i] : 0;
        if (!known)
            s->magnitudes[i] = (double)INFINITY;
    }
}

/* ---- places of extrema ------------------------------------------------------------------- */

enum { FIND, WIDEN };

static void sweep_places(tcc_fields *fs, const tcc_row_step *s, int what, size_t n)
{
    const tcc_value *a = TCC_VIEW(tensor_reduce, s->op)->a;
    const tcc_row *term = tcc_map_get(&s->body->rows, a);
    const tcc_row *condition = s->op->n_operands > 1 ? tcc_map_get(&s->body->rows, s->op->operands[1]) : NULL;
    bool ints = tcc_scalar_classify(a->type->elem) != TCC_CLASS_FLOAT;
    s->over[0]->at = 0;
    do {
        if (!run_plan(fs, s->body))
            return;
        if (what == WIDEN)
            tcc_widen_places(s, term, condition, n, ints);
        else
            tcc_find_places(s, term, condition, s->result->cells, n, ints);
        if (what == FIND && fs->intervals)
            tcc_bound_extrema(s, term, condition, n, ints);
    } while (next_value(s->over, 1) && may_run(fs, s->op));
}

static void run_place(tcc_fields *fs, const tcc_row_plan *p, const tcc_row_step *s)
{
    size_t n = row_length(p, s->result);
    int64_t outer = s->over[0]->at;
    const tcc_cell none = {.i = TCC_NO_PLACE};
    for (size_t i = 0; i < n; i++) {
        s->result->cells[i] = none;
        if (!fs->intervals)
            continue;
        s->result->low[i] = s->result->high[i] = none;
        s->magnitudes[i] = 0;
        s->highs[i] = NAN;
    }
    for (int sweep = FIND; s->over[0]->extent && sweep <= (fs->intervals ? WIDEN : FIND); sweep++)
        sweep_places(fs, s, sweep, n);
    s->over[0]->at = outer;
}

/* ---- steps --------------------------------------------------------------------------------- */

/* What terms of another reduction need is computed once, unless it varies with an index of that one. */
static void run_sum(tcc_fields *fs, const tcc_row_plan *p, tcc_row_step *s)
{
    if (holds(&s->memo))
        return;
    s->memo.is_known = true;
    size_t n = row_length(p, s->result);
    tcc_cell *r = s->result->cells;
    tcc_scalar elem = s->op->results[0].type->elem;
    bool empty = false, ints = tcc_scalar_classify(elem) != TCC_CLASS_FLOAT;
    if (tcc_reduction_is_place(s->kind)) {
        run_place(fs, p, s);
        return;
    }
    tcc_cell start = tcc_reduction_start(s->kind, elem);
    for (size_t i = 0; i < n; i++)
        r[i] = start;
    for (size_t i = 0; fs->intervals && i < n; i++) {
        s->lows[i] = s->highs[i] = ints ? (double)start.i : start.f;
        s->magnitudes[i] = 0;
    }
    for (size_t i = 0; i < s->n_over; i++) {
        empty |= s->over[i]->extent == 0;
        s->outer[i] = s->over[i]->at; /* a sum around this one may have an index of that name */
        s->over[i]->at = 0;
    }
    if (s->is_product && !empty) {
        memset(s->sums, 0, n * sizeof *s->sums);
        do {
            if (!compute_operands(fs, s))
                break;
            add_products(s, s->factors, s->result->step ? p->row : NULL, s->sums, false);
        } while (next_value(s->over, s->n_over - 1) && may_run(fs, s->op));
        for (size_t i = 0; i < n; i++)
            r[i] = ints ? (tcc_cell){.i = (int64_t)s->sums[i]} : (tcc_cell){.f = s->sums[i]};
        if (fs->intervals && !ints)
            run_magnitudes(fs, p, s, n);
    } else if (!empty) {
        const tcc_row *term = tcc_map_get(&s->body->rows, TCC_VIEW(tensor_reduce, s->op)->a);
        const tcc_row *condition = s->op->n_operands > 1 ? tcc_map_get(&s->body->rows, s->op->operands[1]) : NULL;
        do {
            size_t first, of = sums_of_term(p, s, n, &first);
            if (of && !run_plan(fs, s->body))
                break;
            add_terms(s->kind, r + first, term, condition, of, ints);
            if (fs->intervals && s->kind != TCC_REDUCTION_SUM)
                combine_intervals(s, term, condition, n, ints);
            else if (fs->intervals)
                add_intervals(s, term, condition, first, of, ints);
        } while (next_value(s->over, s->n_over));
    }
    for (size_t i = 0; i < s->n_over; i++)
        s->over[i]->at = s->outer[i];
    finish_sums(fs, r, n, elem);
    if (fs->intervals && s->kind != TCC_REDUCTION_SUM)
        finish_extremes(s, n, ints);
    else if (fs->intervals)
        finish_intervals(fs, s, n, elem);
}

static void run_intervals(const tcc_row_step *s, const tcc_elements *e)
{
    tcc_interval_row r = {.op = e->op, .r = e->r, .low = s->result->low, .high = s->result->high, .n = e->n,
                          .in_step = s->in_step};
    for (unsigned i = 0; i < e->op->n_operands; i++) {
        r.a_low[i] = s->operands[i]->low;
        r.a_high[i] = s->operands[i]->high;
        r.step[i] = e->step[i];
    }
    tcc_intervals(&r);
}

/* Reductions have all their terms at once. */
static void run_copy(const tcc_fields *fs, const tcc_row_plan *p, const tcc_row_step *s)
{
    size_t n = row_length(p, s->result);
    memcpy(s->result->cells, s->operands[0]->cells, n * sizeof *s->result->cells);
    if (fs->intervals) {
        memcpy(s->result->low, s->operands[0]->low, n * sizeof *s->result->low);
        memcpy(s->result->high, s->operands[0]->high, n * sizeof *s->result->high);
    }
}

static void run_step(tcc_fields *fs, const tcc_row_plan *p, tcc_row_step *s)
{
    const tcc_op *op = s->op;
    if (op->code == TCC_OP_tensor_read) {
        run_read(fs, p, s);
    } else if (op->code == TCC_OP_tensor_index) {
        run_index(p, s);
    } else if (op->code == TCC_OP_tensor_reduce) {
        run_sum(fs, p, s);
    } else if (op->code == TCC_OP_tensor_before || op->code == TCC_OP_tensor_rescale) {
        run_copy(fs, p, s);
    } else if (op->code != TCC_OP_tensor_dim) {
        tcc_elements e = {.op = op, .r = s->result->cells, .n = row_length(p, s->result)};
        for (unsigned i = 0; i < op->n_operands; i++) {
            e.a[i] = s->operands[i]->cells;
            e.step[i] = s->operands[i]->step;
        }
        tcc_elementwise(&e, fs->run->machine);
        if (fs->intervals)
            run_intervals(s, &e);
    }
}

static bool run_plan(tcc_fields *fs, const tcc_row_plan *p)
{
    for (size_t i = 0; i < p->n_steps && may_run(fs, p->steps[i].op); i++)
        run_step(fs, p, &p->steps[i]);
    return !fs->status;
}

/* ---- outputs --------------------------------------------------------------------------- */

/* Gives every index of the output but the last its value in a row. */
static void enter_row(const tcc_access *to, int64_t flat)
{
    for (size_t d = to->n ? to->n - 1 : 0; d-- > 0;) {
        tcc_index *index = to->terms[d].index;
        index->at = flat % index->extent;
        flat /= index->extent;
    }
}

static void store_intervals(const tcc_fields *fs, const tcc_access *to, int64_t base, int64_t stride, const tcc_row *r,
                            size_t n)
{
    size_t arg = (size_t)(to->param - fs->run->params);
    double *low = fs->run->options->low[arg] + base, *high = fs->run->options->high[arg] + base;
    bool floats = tcc_scalar_classify(to->param->type->elem) == TCC_CLASS_FLOAT;
    for (size_t i = 0; i < n; i++) {
        tcc_cell l = r->low[i * r->step], h = r->high[i * r->step];
        low[(int64_t)i * stride] = floats ? l.f : (double)l.i;
        high[(int64_t)i * stride] = floats ? h.f : (double)h.i;
    }
}

static bool run_row(tcc_fields *fs, const tcc_row_plan *p, const tcc_access *to, const tcc_row *r)
{
    if (!run_plan(fs, p))
        return false;
    int64_t base = tcc_access_base(to, &p->row, 1), n = p->row ? p->row->extent : 1;
    int64_t stride = tcc_access_stride(to, p->row);
    for (int64_t i = 0; i < n; i++)
        tcc_param_store(fs->run, to->param, base + i * stride, r->cells[(size_t)i * r->step]);
    if (fs->intervals)
        store_intervals(fs, to, base, stride, r, (size_t)n);
    return true;
}

static int64_t count_rows(const tcc_param *p)
{
    int64_t n = 1;
    for (unsigned d = 0; d + 1 < p->type->rank; d++)
        n *= p->extents[d];
    return n;
}

static tcc_status run_write(tcc_fields *fs, const tcc_op *op)
{
    const tcc_interp_options *o = fs->run->options;
    const tcc_value *value = TCC_VIEW(tensor_write, op)->a;
    tcc_access to = tcc_plan_access(fs, op);
    tcc_row_plan p = {.row = to.n ? to.terms[to.n - 1].index : NULL};
    if (!to.param->count)
        return TCC_OK;
    tcc_status status = tcc_plan_row(fs, &p, 1, &value);
    if (status)
        return status;
    const tcc_row *r = tcc_row_of(fs, &p, value);
    int64_t n_rows = count_rows(to.param);
    for (size_t i = 0; o->rows && i < o->n_rows; i++) {
        if (o->rows[i] < 0)
            return TCC_FAIL(fs->run, TCC_ERR_ARGUMENT, op, "row %lld is not in an output", (long long)o->rows[i]);
        if (o->rows[i] < n_rows) {
            enter_row(&to, o->rows[i]);
            if (!run_row(fs, &p, &to, r))
                return fs->status;
        }
    }
    for (int64_t i = 0; !o->rows && i < n_rows; i++) {
        enter_row(&to, i);
        if (!run_row(fs, &p, &to, r))
            return fs->status;
    }
    return TCC_OK;
}

tcc_status tcc_run_fields(tcc_run *run)
{
    tcc_fields fs = {.run = run, .intervals = run->options->low != NULL};
    tcc_status status = tcc_collect_indices(&fs);
    if (!status)
        status = tcc_keep_originals(&fs);
    for (const tcc_op *op = run->f->body->first; op && !status; op = op->next)
        if (op->code == TCC_OP_tensor_write)
            status = run_write(&fs, op);
    return status;
}
