/* field: runs functions of whole tensors, row by row of each output.
 *
 * For each tensor.write a plan is made: the ops that its value needs, in order. A sum's operand
 * has a plan of its own, which runs inside the sum.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/field.h"

#include <math.h>
#include <string.h>

#include "interp/interval.h"
#include "ir/elementwise.h"
#include "support/map.h"

enum { MAX_NESTED_SUMS = 8 };

/* A field in the current row of the output: numbers `step` apart, 0 if it is one number. */
typedef struct row {
    tcc_cell *cells;
    tcc_cell *low, *high; /* the numbers' intervals, where they are wanted; cells: exact ones */
    size_t step;
} row;

typedef struct plan plan;

/* An operand of a product that is computed: along k, and along the row where it has that index, for
 * the values that its other indices have at present. */
typedef struct computed {
    plan *body;           /* a row along k */
    const row *result;    /* of the body */
    tcc_index *k, *along; /* NULL: it does not have the row's index */
    tcc_index **others;
    int64_t *at; /* of the others, when it was computed last */
    size_t n_others;
    bool is_known;
    double *values, *errors, *largest; /* how far its interval reaches from a value, and from 0 */
} computed;

typedef struct step {
    const tcc_op *op;
    row *operands[3];
    row *result;
    tcc_access access; /* of tensor.read */
    plan *body;        /* of tensor.sum */
    tcc_index **over;  /* what it sums over */
    size_t n_over;
    int64_t *outer;  /* and where these indices were before it */
    const tcc_index *part;     /* it has parts: which one; or NULL */
    int64_t depth;             /* and so many terms in a row are of one */
    bool is_product; /* a fast path fits: */
    const tcc_access *factors;
    computed *computed[2]; /* the two, where they are not read; NULL */
    double *sums, *buffer;
    double *lows, *highs, *magnitudes; /* of sums with intervals */
    double *errors;                    /* and of products with a computed operand */
} step;

struct plan {
    const tcc_index *row; /* NULL: no index has more than one value at a time */
    tcc_map rows;         /* value -> row */
    step *steps;
    size_t n_steps;
};

typedef struct fields {
    tcc_run *run;
    tcc_index *indices;
    size_t n_indices;
    const double **originals; /* of each parameter: inputs as they were before any write */
    bool intervals;           /* are wanted */
    int depth;
    uint64_t steps; /* ops run, each for one row */
    tcc_status status;
} fields;

/* ---- indices --------------------------------------------------------------------------- */

static tcc_index *find_index(const fields *fs, const char *name)
{
    for (size_t i = 0; i < fs->n_indices; i++)
        if (!strcmp(fs->indices[i].name, name))
            return &fs->indices[i];
    return NULL;
}

static const tcc_param *param_of(const fields *fs, const tcc_value *tensor)
{
    return &fs->run->params[tensor->index];
}

static const tcc_value *accessed(const tcc_op *op)
{
    return op->code == TCC_OP_tensor_read    ? TCC_VIEW(tensor_read, op)->tensor
           : op->code == TCC_OP_tensor_write ? TCC_VIEW(tensor_write, op)->tensor
                                             : NULL;
}

static tcc_status collect_index(fields *fs, const tcc_op *op, const char *name, int64_t extent)
{
    const tcc_index *index = find_index(fs, name);
    if (!index)
        fs->indices[fs->n_indices++] = (tcc_index){name, extent, 0};
    else if (index->extent != extent)
        return TCC_FAIL(fs->run, TCC_ERR_ARGUMENT, op, "index %s runs over %lld and over %lld elements", name,
                        (long long)index->extent, (long long)extent);
    return TCC_OK;
}

/* Every index has the extent of the dimensions along which it runs, that of a sum's parts their number. */
static tcc_status collect_indices(fields *fs)
{
    const tcc_run *run = fs->run;
    size_t cap = 0;
    for (const tcc_op *op = run->f->body->first; op; op = op->next)
        cap += accessed(op) ? accessed(op)->type->rank : 1;
    fs->indices = TCC_NEW_ARRAY(run->scratch, tcc_index, cap);
    tcc_status status = TCC_OK;
    for (const tcc_op *op = run->f->body->first; op; op = op->next) {
        tcc_attr map = tcc_attr_list(&op->attrs, "map"), parts = tcc_attr_list(&op->attrs, "parts");
        for (size_t d = 0; accessed(op) && d < map.list.n && !status; d++)
            status = collect_index(fs, op, map.list.items[d].s, param_of(fs, accessed(op))->extents[d]);
        if (op->code == TCC_OP_tensor_sum && parts.list.n == 3 && !status)
            status = collect_index(fs, op, parts.list.items[0].s, parts.list.items[1].i);
    }
    return status;
}

/* ---- accesses -------------------------------------------------------------------------- */

static tcc_access plan_access(fields *fs, const tcc_op *op)
{
    const tcc_param *p = param_of(fs, accessed(op));
    tcc_attr map = tcc_attr_list(&op->attrs, "map");
    tcc_access a = {.param = p, .data = p->data, .n = map.list.n};
    a.terms = tcc_arena_alloc(fs->run->scratch, a.n * sizeof *a.terms);
    for (size_t d = 0; d < a.n; d++) {
        a.terms[d].index = find_index(fs, map.list.items[d].s);
        a.terms[d].stride = p->strides[d];
    }
    return a;
}

/* A tensor that is read and written is read as it was at first. */
static tcc_status keep_originals(fields *fs)
{
    const tcc_run *run = fs->run;
    bool *is_read = TCC_NEW_ARRAY(run->scratch, bool, run->n_params);
    fs->originals = TCC_NEW_ARRAY(run->scratch, const double *, run->n_params);
    for (const tcc_op *op = run->f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_read)
            is_read[accessed(op)->index] = true;
    for (size_t i = 0; i < run->n_params; i++)
        fs->originals[i] = run->params[i].data;
    for (const tcc_op *op = run->f->body->first; op; op = op->next) {
        if (op->code != TCC_OP_tensor_write || !is_read[accessed(op)->index])
            continue;
        const tcc_param *p = param_of(fs, accessed(op));
        tcc_status status = tcc_run_check_room(run, op, (uint64_t)p->count, sizeof(double));
        if (status)
            return status;
        double *copy = TCC_NEW_ARRAY(run->scratch, double, (size_t)p->count);
        if (p->count)
            memcpy(copy, p->data, (size_t)p->count * sizeof *copy);
        fs->originals[accessed(op)->index] = copy;
    }
    return TCC_OK;
}

/* ---- plans ----------------------------------------------------------------------------- */

static bool has_index(const tcc_type *t, const tcc_index *index)
{
    for (unsigned d = 0; index && t->kind == TCC_KIND_field && d < t->rank; d++)
        if (!strcmp(t->dims[d].name, index->name))
            return true;
    return false;
}

/* Whether an op's results may be inexact: they are not read, or known. */
static bool is_computed(const tcc_op *op)
{
    return op->code != TCC_OP_tensor_read && op->code != TCC_OP_tile_grid &&
           op->code != TCC_OP_tensor_dim;
}

static row *row_of(fields *fs, plan *p, const tcc_value *v)
{
    void **place = tcc_map_at(&p->rows, v);
    if (*place)
        return *place;
    row *r = TCC_NEW(fs->run->scratch, row);
    *place = r;
    r->step = has_index(v->type, p->row);
    r->cells = TCC_NEW_ARRAY(fs->run->scratch, tcc_cell, r->step ? (size_t)p->row->extent : 1);
    r->low = r->high = r->cells;
    if (fs->intervals && v->def && is_computed(v->def)) {
        size_t n = r->step ? (size_t)p->row->extent : 1;
        r->low = TCC_NEW_ARRAY(fs->run->scratch, tcc_cell, n);
        r->high = TCC_NEW_ARRAY(fs->run->scratch, tcc_cell, n);
    }
    if (!v->def) /* a scalar parameter */
        r->cells[0] = tcc_param_load(&fs->run->params[v->index], 0);
    return r;
}

/* The tensor.read behind v, through casts that keep every number of its type. */
static const tcc_op *exact_read(const tcc_value *v)
{
    const tcc_op *op = v->def;
    while (op && op->code == TCC_OP_arith_cast) {
        const tcc_value *a = TCC_VIEW(arith_cast, op)->a;
        if (!tcc_scalar_widens(a->type->elem, op->results[0].type->elem))
            return NULL;
        op = a->def;
    }
    return op && op->code == TCC_OP_tensor_read ? op : NULL;
}

/* Whether sums of a read's products are those of doubles: floats as exact as can be, and small
 * integers, of which no sum that ends comes near 2^53. */
static bool has_short_elements(const tcc_op *read)
{
    enum { MOST_BITS = 8 };
    tcc_scalar s = read->results[0].type->elem;
    return tcc_scalar_classify(s) == TCC_CLASS_FLOAT || tcc_scalar_bits(s) <= MOST_BITS;
}

static tcc_status make_plan(fields *fs, plan *p, const tcc_value *goal);

/* What v is before casts that keep every number of its type. */
static const tcc_value *narrow_value(const tcc_value *v)
{
    while (v->def && v->def->code == TCC_OP_arith_cast) {
        const tcc_value *a = TCC_VIEW(arith_cast, v->def)->a;
        if (!tcc_scalar_widens(a->type->elem, v->type->elem))
            break;
        v = a;
    }
    return v;
}

/* Whether v can be computed once for a whole row of sums: its products with another number like it are
 * exact in f32, and there is room. */
static bool may_be_kept(const fields *fs, const tcc_value *v, const tcc_index *along,
                        const tcc_index *k)
{
    enum { MOST_BITS = 16, MOST_KEPT = 1 << 22 };
    tcc_scalar s = v->type->elem;
    return v->def && v->type->kind == TCC_KIND_field && tcc_scalar_bits(s) <= MOST_BITS &&
           tcc_scalar_classify(s) == TCC_CLASS_FLOAT && fs->depth < MAX_NESTED_SUMS &&
           k->extent <= MOST_KEPT / (along && along->extent ? along->extent : 1);
}

static double *room_for(fields *fs, const tcc_op *op, uint64_t n, tcc_status *status)
{
    if (!*status)
        *status = tcc_run_check_room(fs->run, op, n, sizeof(double));
    return *status ? NULL : TCC_NEW_ARRAY(fs->run->scratch, double, n);
}

/* Plans an operand that is computed, and its access; `along` is the index along the row of sums. */
static tcc_status plan_computed(fields *fs, step *s, const tcc_index *along, tcc_index *k,
                                const tcc_value *v, computed **out, tcc_access *access)
{
    tcc_arena *scratch = fs->run->scratch;
    computed *c = *out = TCC_NEW(scratch, computed);
    c->k = k;
    c->others = TCC_NEW_ARRAY(scratch, tcc_index *, v->type->rank);
    c->at = TCC_NEW_ARRAY(scratch, int64_t, v->type->rank);
    for (unsigned d = 0; d < v->type->rank; d++) {
        tcc_index *index = find_index(fs, v->type->dims[d].name);
        if (index == along) {
            c->along = index;
        } else if (index != k) {
            c->others[c->n_others++] = index;
        }
    }
    uint64_t n = (uint64_t)k->extent * (uint64_t)(c->along ? c->along->extent : 1);
    tcc_status status = TCC_OK;
    c->values = room_for(fs, s->op, n + 1, &status);
    c->errors = fs->intervals ? room_for(fs, s->op, n + 1, &status) : NULL;
    c->largest = fs->intervals ? room_for(fs, s->op, n + 1, &status) : NULL;
    c->body = TCC_NEW(scratch, plan);
    c->body->row = k;
    fs->depth++;
    *access = (tcc_access){.data = c->values, .n = c->along ? 2 : 1};
    access->terms = tcc_arena_alloc(scratch, 2 * sizeof *access->terms);
    access->terms[0].index = k;
    access->terms[0].stride = 1;
    access->terms[1].index = c->along;
    access->terms[1].stride = k->extent;
    if (!status)
        status = make_plan(fs, c->body, v);
    fs->depth--;
    c->result = status ? NULL : row_of(fs, c->body, v);
    return status;
}

/* With intervals one operand at least has to be exact. */
static tcc_status plan_product(fields *fs, const plan *outer, step *s)
{
    const tcc_op *mul = TCC_VIEW(tensor_sum, s->op)->a->def;
    bool part_a_row = s->part && s->part == outer->row;
    if (!mul || mul->code != TCC_OP_arith_mul || !s->n_over || part_a_row ||
        tcc_scalar_bits(mul->results[0].type->elem) < 32) /* which would round products, or wrap */
        return TCC_OK;
    const tcc_index *along = s->result->step ? outer->row : NULL;
    tcc_index *k = s->over[s->n_over - 1];
    const tcc_op *reads[2];
    const tcc_value *values[2];
    for (unsigned i = 0; i < 2; i++) {
        reads[i] = exact_read(mul->operands[i]);
        values[i] = narrow_value(mul->operands[i]);
        if (reads[i] ? !has_short_elements(reads[i]) : !may_be_kept(fs, values[i], along, k))
            return TCC_OK;
    }
    if (fs->intervals && !reads[0] && !reads[1])
        return TCC_OK;
    tcc_access *accesses = TCC_NEW_ARRAY(fs->run->scratch, tcc_access, 2);
    tcc_status status = TCC_OK;
    for (int i = 0; i < 2 && !status; i++) {
        if (reads[i]) {
            accesses[i] = plan_access(fs, reads[i]);
            accesses[i].data = fs->originals[accessed(reads[i])->index];
        } else {
            status = plan_computed(fs, s, along, k, values[i], &s->computed[i], &accesses[i]);
        }
    }
    s->buffer = room_for(fs, s->op, (uint64_t)k->extent, &status);
    if (fs->intervals)
        s->errors = room_for(fs, s->op, along ? (uint64_t)along->extent : 1, &status);
    s->is_product = !status;
    s->factors = accesses;
    return status;
}

static tcc_status plan_sum(fields *fs, plan *outer, step *s)
{
    tcc_arena *scratch = fs->run->scratch;
    tcc_attr over = tcc_attr_list(&s->op->attrs, "over");
    s->n_over = over.list.n;
    s->over = TCC_NEW_ARRAY(scratch, tcc_index *, s->n_over);
    tcc_attr parts = tcc_attr_list(&s->op->attrs, "parts");
    s->part = parts.list.n == 3 ? find_index(fs, parts.list.items[0].s) : NULL;
    s->depth = s->part ? parts.list.items[2].i : 1;
    s->outer = TCC_NEW_ARRAY(scratch, int64_t, s->n_over);
    s->body = TCC_NEW(scratch, plan);
    s->body->row = outer->row;
    for (size_t i = 0; i < s->n_over; i++) {
        s->over[i] = find_index(fs, over.list.items[i].s);
        if (!s->over[i])
            return TCC_FAIL(fs->run, TCC_ERR_ARGUMENT, s->op, "no tensor has index %s",
                            over.list.items[i].s);
        if (s->over[i] == outer->row) /* another index of the same name */
            s->body->row = NULL;
    }
    size_t n = s->result->step ? (size_t)outer->row->extent : 1;
    s->sums = TCC_NEW_ARRAY(scratch, double, n);
    if (fs->intervals) {
        s->lows = TCC_NEW_ARRAY(scratch, double, n);
        s->highs = TCC_NEW_ARRAY(scratch, double, n);
        s->magnitudes = TCC_NEW_ARRAY(scratch, double, n);
    }
    tcc_status status = plan_product(fs, outer, s);
    if (status || s->is_product)
        return status;
    if (fs->depth == MAX_NESTED_SUMS)
        return TCC_FAIL(fs->run, TCC_ERR_UNSUPPORTED, s->op, "more than %d sums within another",
                        MAX_NESTED_SUMS);
    fs->depth++;
    status = make_plan(fs, s->body, TCC_VIEW(tensor_sum, s->op)->a);
    fs->depth--;
    return status;
}

/* Marks the ops that `goal` needs, and counts them; what only a sum's operand needs is left out. */
static size_t mark_needed(fields *fs, tcc_map *needed, const tcc_value *goal)
{
    TCC_VEC(const tcc_op *) work = {0};
    size_t n = 0;
    if (goal->def)
        TCC_PUSH(fs->run->scratch, &work, goal->def);
    while (work.len) {
        const tcc_op *op = work.data[--work.len];
        void **mark = tcc_map_at(needed, op);
        if (*mark)
            continue;
        *mark = needed;
        n += op->n_results;
        for (unsigned i = 0; op->code != TCC_OP_tensor_sum && i < op->n_operands; i++)
            if (op->operands[i]->def)
                TCC_PUSH(fs->run->scratch, &work, op->operands[i]->def);
    }
    return n;
}

/* A field that tile.grid has put together is read like a tensor. */
static tcc_status plan_grid(fields *fs, step *s, const tcc_op *op, const tcc_value *v)
{
    const tcc_param *p = tcc_map_get(&fs->run->fields, v);
    s->access = (tcc_access){.param = p, .data = p->data, .n = v->type->rank};
    s->access.terms = tcc_arena_alloc(fs->run->scratch, s->access.n * sizeof *s->access.terms);
    for (size_t d = 0; d < s->access.n; d++) {
        s->access.terms[d].index = find_index(fs, v->type->dims[d].name);
        s->access.terms[d].stride = p->strides[d];
        if (!s->access.terms[d].index)
            return TCC_FAIL(fs->run, TCC_ERR_UNSUPPORTED, op, "no tensor has index %s",
                            v->type->dims[d].name);
    }
    return TCC_OK;
}

static tcc_status plan_dim(fields *fs, step *s, const tcc_op *op)
{
    tcc_dim dim = {tcc_attr_str(&op->attrs, "name", ""), 0};
    s->result->cells[0].i = tcc_run_extent(fs->run, dim);
    return s->result->cells[0].i >= 0 ? TCC_OK
                                      : TCC_FAIL(fs->run, TCC_ERR_ARGUMENT, op,
                                                 "%s is none of the function's dims", dim.name);
}

static tcc_status make_plan(fields *fs, plan *p, const tcc_value *goal)
{
    tcc_arena *scratch = fs->run->scratch;
    tcc_map needed = TCC_MAP(scratch);
    p->rows = TCC_MAP(scratch);
    size_t n = mark_needed(fs, &needed, goal);
    uint64_t row_bytes = (p->row ? (uint64_t)p->row->extent : 1) * sizeof(tcc_cell);
    row_bytes *= fs->intervals ? 3 : 1;
    tcc_status status = tcc_run_check_room(fs->run, goal->def, n + 1, sizeof(step) + row_bytes);
    if (status)
        return status;
    p->steps = TCC_NEW_ARRAY(scratch, step, n);
    for (const tcc_op *op = fs->run->f->body->first; op && !status; op = op->next) {
        if (!tcc_map_get(&needed, op))
            continue;
        step *s = &p->steps[p->n_steps];
        p->n_steps += op->n_results;
        for (unsigned r = 0; r < op->n_results; r++) {
            s[r].op = op;
            s[r].result = row_of(fs, p, &op->results[r]);
        }
        if (op->code == TCC_OP_tensor_read) {
            s->access = plan_access(fs, op);
            s->access.data = fs->originals[accessed(op)->index];
        } else if (op->code == TCC_OP_tile_grid) {
            for (unsigned r = 0; r < op->n_results && !status; r++)
                status = plan_grid(fs, &s[r], op, &op->results[r]);
        } else if (op->code == TCC_OP_tensor_sum) {
            status = plan_sum(fs, p, s);
        } else if (op->code == TCC_OP_tensor_dim) {
            status = plan_dim(fs, s, op);
        } else {
            for (unsigned i = 0; i < op->n_operands; i++)
                s->operands[i] = row_of(fs, p, op->operands[i]);
        }
    }
    return status;
}

/* ---- running --------------------------------------------------------------------------- */

static size_t row_length(const plan *p, const row *r)
{
    return r->step ? (size_t)p->row->extent : 1;
}

static void run_read(const plan *p, const step *s)
{
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

static bool run_plan(fields *fs, const plan *p);

/* Counts a step; false, reported, when it is one too many. */
static bool may_run(fields *fs, const tcc_op *op)
{
    if (++fs->steps <= fs->run->max_steps)
        return true;
    fs->status = fs->status ? fs->status : tcc_run_too_long(fs->run, op);
    return false;
}

/* r[i] += term[i] */
static void add_terms(tcc_cell *r, const row *term, size_t n, bool ints)
{
    for (size_t i = 0; i < n; i++)
        if (ints)
            r[i].i = (int64_t)((uint64_t)r[i].i + (uint64_t)term->cells[i * term->step].i);
        else
            r[i].f += term->cells[i * term->step].f;
}

/* Gives sums the type that they have: integers wrap, and the machine rounds. */
static void finish_sums(const fields *fs, tcc_cell *r, size_t n, tcc_scalar elem)
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
static size_t sums_of_term(const plan *p, const step *s, size_t n, size_t *first)
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

/* Adds the intervals of terms, and the most that each may be, to n sums from `first` on. */
static void add_intervals(const step *s, const row *term, size_t first, size_t n, bool ints)
{
    for (size_t i = first; i < first + n; i++) {
        size_t at = (i - first) * term->step;
        tcc_cell low = term->low[at], high = term->high[at];
        bool exact = ints ? low.i == high.i : isfinite(low.f) && isfinite(high.f);
        s->lows[i] += ints || !exact ? 0 : low.f;
        s->highs[i] += ints || !exact ? 0 : high.f;
        s->magnitudes[i] += !exact ? (double)INFINITY : ints ? 0 : fmax(fabs(low.f), fabs(high.f));
    }
}

static double count_terms(const step *s)
{
    double n = 1;
    for (size_t i = 0; i < s->n_over; i++)
        n *= (double)s->over[i]->extent;
    double turn = s->part ? (double)(s->part->extent * s->depth) : n;
    return s->part ? ceil(n / turn) * (double)s->depth : n;
}

/* The intervals of sums that are there. Integers are exact where every term is. */
static void finish_intervals(const step *s, size_t n, tcc_scalar elem)
{
    const row *r = s->result;
    bool ints = tcc_scalar_classify(elem) != TCC_CLASS_FLOAT;
    for (size_t i = 0; i < n; i++) {
        if (ints) {
            bool exact = s->magnitudes[i] == 0;
            r->low[i].i = exact ? r->cells[i].i : tcc_int_saturate(elem, INT64_MIN);
            r->high[i].i = exact ? r->cells[i].i : tcc_int_saturate(elem, INT64_MAX);
        } else {
            r->low[i].f = s->lows[i];
            r->high[i].f = s->highs[i];
            tcc_interval_of_sum(elem, count_terms(s), s->magnitudes[i], &r->low[i].f,
                                &r->high[i].f);
        }
    }
}

static void keep_interval(computed *c, size_t at, double low, double high, double value)
{
    bool exact = low == high || (isnan(low) && isnan(high));
    c->errors[at] = exact ? 0 : fmax(value - low, high - value);
    c->largest[at] = fmax(fabs(low), fabs(high));
}

/* Computes an operand, unless its indices have the values of the last time; false: it cannot. */
static bool compute(fields *fs, computed *c)
{
    bool is_known = c->is_known;
    for (size_t i = 0; i < c->n_others; i++) {
        is_known &= c->at[i] == c->others[i]->at;
        c->at[i] = c->others[i]->at;
    }
    if (is_known)
        return true;
    int64_t before = c->along ? c->along->at : 0, n = c->along ? c->along->extent : 1;
    size_t n_k = (size_t)c->k->extent;
    for (int64_t x = 0; x < n; x++) {
        if (c->along)
            c->along->at = x;
        if (!run_plan(fs, c->body))
            return false;
        const row *r = c->result;
        for (size_t k = 0, at = (size_t)x * n_k; k < n_k; k++, at++) {
            size_t i = k * r->step;
            c->values[at] = r->cells[i].f;
            if (fs->intervals)
                keep_interval(c, at, r->low[i].f, r->high[i].f, r->cells[i].f);
        }
    }
    if (c->along)
        c->along->at = before;
    c->is_known = true;
    return true;
}

static bool compute_operands(fields *fs, const step *s)
{
    bool done = true;
    for (unsigned i = 0; i < 2 && done; i++)
        done = !s->computed[i] || compute(fs, s->computed[i]);
    return done;
}

/* Adds products of two operands to r, those of a part where the sums have parts, or their magnitudes. */
static void add_products(const step *s, const tcc_access *factors, const tcc_index *along, double *r,
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
static void add_magnitudes(const step *s, const tcc_index *along, bool errors, double *r)
{
    tcc_access factors[] = {s->factors[0], s->factors[1]};
    for (unsigned i = 0; i < 2; i++)
        if (s->computed[i])
            factors[i].data = errors ? s->computed[i]->errors : s->computed[i]->largest;
    add_products(s, factors, along, r, true);
}

/* The intervals of a product's exact sums, and the magnitudes of its terms. */
static void run_magnitudes(fields *fs, const plan *p, const step *s, size_t n)
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

static void run_sum(fields *fs, const plan *p, const step *s)
{
    size_t n = row_length(p, s->result);
    tcc_cell *r = s->result->cells;
    tcc_scalar elem = s->op->results[0].type->elem;
    bool empty = false, ints = tcc_scalar_classify(elem) != TCC_CLASS_FLOAT;
    for (size_t i = 0; i < n; i++)
        r[i] = tcc_decode(0, elem);
    if (fs->intervals) {
        memset(s->lows, 0, n * sizeof *s->lows);
        memset(s->highs, 0, n * sizeof *s->highs);
        memset(s->magnitudes, 0, n * sizeof *s->magnitudes);
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
        const row *term = tcc_map_get(&s->body->rows, TCC_VIEW(tensor_sum, s->op)->a);
        do {
            size_t first, of = sums_of_term(p, s, n, &first);
            if (of && !run_plan(fs, s->body))
                break;
            add_terms(r + first, term, of, ints);
            if (fs->intervals)
                add_intervals(s, term, first, of, ints);
        } while (next_value(s->over, s->n_over));
    }
    for (size_t i = 0; i < s->n_over; i++)
        s->over[i]->at = s->outer[i];
    finish_sums(fs, r, n, elem);
    if (fs->intervals)
        finish_intervals(s, n, elem);
}

static void run_intervals(const step *s, const tcc_elements *e)
{
    tcc_interval_row r = {
        .op = e->op, .r = e->r, .low = s->result->low, .high = s->result->high, .n = e->n};
    for (unsigned i = 0; i < e->op->n_operands; i++) {
        r.a_low[i] = s->operands[i]->low;
        r.a_high[i] = s->operands[i]->high;
        r.step[i] = e->step[i];
    }
    tcc_intervals(&r);
}

static void run_step(fields *fs, const plan *p, const step *s)
{
    const tcc_op *op = s->op;
    if (op->code == TCC_OP_tensor_read || op->code == TCC_OP_tile_grid) {
        run_read(p, s);
    } else if (op->code == TCC_OP_tensor_sum) {
        run_sum(fs, p, s);
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

static bool run_plan(fields *fs, const plan *p)
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

static void store_intervals(const fields *fs, const tcc_access *to, int64_t base, int64_t stride,
                            const row *r, size_t n)
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

static bool run_row(fields *fs, const plan *p, const tcc_access *to, const row *r)
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

static tcc_status run_write(fields *fs, const tcc_op *op)
{
    const tcc_interp_options *o = fs->run->options;
    const tcc_value *value = TCC_VIEW(tensor_write, op)->a;
    tcc_access to = plan_access(fs, op);
    plan p = {.row = to.n ? to.terms[to.n - 1].index : NULL};
    if (!to.param->count)
        return TCC_OK;
    tcc_status status = make_plan(fs, &p, value);
    if (status)
        return status;
    const row *r = row_of(fs, &p, value);
    int64_t n_rows = count_rows(to.param);
    for (size_t i = 0; o->rows && i < o->n_rows; i++) {
        if (o->rows[i] < 0)
            return TCC_FAIL(fs->run, TCC_ERR_ARGUMENT, op, "row %lld is none of an output",
                            (long long)o->rows[i]);
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
    fields fs = {.run = run, .intervals = run->options->low != NULL};
    tcc_status status = collect_indices(&fs);
    if (!status)
        status = keep_originals(&fs);
    for (const tcc_op *op = run->f->body->first; op && !status; op = op->next)
        if (op->code == TCC_OP_tensor_write)
            status = run_write(&fs, op);
    return status;
}
