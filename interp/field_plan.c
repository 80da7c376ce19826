/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/field_plan.h"

#include <string.h>

#include "ir/streaming.h"

enum { MAX_NESTED_SUMS = 8 };

/* ---- indices --------------------------------------------------------------------------- */

tcc_index *tcc_index_find(const tcc_fields *fs, const char *name)
{
    for (size_t i = 0; i < fs->n_indices; i++)
        if (!strcmp(fs->indices[i].name, name))
            return &fs->indices[i];
    return NULL;
}

static const tcc_param *param_of(const tcc_fields *fs, const tcc_value *tensor)
{
    return &fs->run->params[tensor->index];
}

static tcc_status collect_index(tcc_fields *fs, const tcc_op *op, const char *name, int64_t extent)
{
    const tcc_index *index = tcc_index_find(fs, name);
    if (!index)
        fs->indices[fs->n_indices++] = (tcc_index){name, extent, 0};
    else if (index->extent != extent)
        return TCC_FAIL(fs->run, TCC_ERR_ARGUMENT, op, "index %s ranges over %lld and over %lld elements", name,
                        (long long)index->extent, (long long)extent);
    return TCC_OK;
}

static bool is_declared(const tcc_attr *extents, const char *index)
{
    bool is = false;
    for (size_t i = 0; i < extents->list.n && !is; i++) {
        const char *name;
        tcc_dim extent;
        is = tcc_extents_read(&extents->list.items[i], &name, &extent) && !strcmp(name, index);
    }
    return is;
}

/* Those that are only in expressions, whose extents the function gives. */
static void collect_declared(tcc_fields *fs, const tcc_attr *extents)
{
    for (size_t i = 0; i < extents->list.n; i++) {
        const char *name;
        tcc_dim extent;
        if (tcc_extents_read(&extents->list.items[i], &name, &extent) && !tcc_index_find(fs, name))
            fs->indices[fs->n_indices++] = (tcc_index){name, tcc_run_extent(fs->run, extent), 0};
    }
}

tcc_status tcc_collect_indices(tcc_fields *fs)
{
    const tcc_run *run = fs->run;
    tcc_attr extents = tcc_attr_list(&run->f->attrs, "extents");
    size_t cap = extents.list.n;
    for (const tcc_op *op = run->f->body->first; op; op = op->next)
        cap += tcc_access_rank(op) + 1;
    fs->indices = TCC_NEW_ARRAY(run->scratch, tcc_index, cap);
    tcc_status status = TCC_OK;
    for (const tcc_op *op = run->f->body->first; op; op = op->next) {
        tcc_attr parts = tcc_attr_list(&op->attrs, "parts");
        for (size_t d = 0; d < tcc_access_rank(op) && !status; d++)
            if (tcc_access_index(op, d))
                status = collect_index(fs, op, tcc_access_index(op, d),
                                       param_of(fs, tcc_accessed_tensor(op))->extents[d]);
        bool has_parts = op->code == TCC_OP_tensor_reduce && parts.list.n == 3;
        if (has_parts && !is_declared(&extents, parts.list.items[0].s) && !status) /* else there may be fewer */
            status = collect_index(fs, op, parts.list.items[0].s, parts.list.items[1].i);
    }
    collect_declared(fs, &extents);
    return status;
}

/* ---- accesses -------------------------------------------------------------------------- */

/* Whether every coordinate is an index; each then has a stride. */
static bool has_strides(const tcc_op *access)
{
    bool has = true;
    for (size_t d = 0; d < tcc_access_rank(access) && has; d++)
        has = tcc_access_index(access, d);
    return has;
}

tcc_access tcc_plan_access(tcc_fields *fs, const tcc_op *op)
{
    const tcc_param *p = param_of(fs, tcc_accessed_tensor(op));
    tcc_access a = {.param = p, .data = p->data, .n = tcc_access_rank(op)};
    a.terms = tcc_arena_alloc(fs->run->scratch, a.n * sizeof *a.terms);
    for (size_t d = 0; d < a.n && has_strides(op); d++) {
        a.terms[d].index = tcc_index_find(fs, tcc_access_index(op, d));
        a.terms[d].stride = p->strides[d];
    }
    return a;
}

tcc_status tcc_keep_originals(tcc_fields *fs)
{
    const tcc_run *run = fs->run;
    bool *is_read = TCC_NEW_ARRAY(run->scratch, bool, run->n_params);
    fs->originals = TCC_NEW_ARRAY(run->scratch, const double *, run->n_params);
    for (const tcc_op *op = run->f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_read)
            is_read[tcc_accessed_tensor(op)->index] = true;
    for (size_t i = 0; i < run->n_params; i++)
        fs->originals[i] = run->params[i].data;
    for (const tcc_op *op = run->f->body->first; op; op = op->next) {
        if (op->code != TCC_OP_tensor_write || !is_read[tcc_accessed_tensor(op)->index])
            continue;
        const tcc_param *p = param_of(fs, tcc_accessed_tensor(op));
        tcc_status status = tcc_run_check_room(run, op, (uint64_t)p->count, sizeof(double));
        if (status)
            return status;
        double *copy = TCC_NEW_ARRAY(run->scratch, double, (size_t)p->count);
        if (p->count)
            memcpy(copy, p->data, (size_t)p->count * sizeof *copy);
        fs->originals[tcc_accessed_tensor(op)->index] = copy;
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
    return op->code != TCC_OP_tensor_read && op->code != TCC_OP_tensor_dim && op->code != TCC_OP_tensor_index;
}

tcc_row *tcc_row_of(tcc_fields *fs, tcc_row_plan *p, const tcc_value *v)
{
    void **place = tcc_map_at(&p->rows, v);
    if (*place)
        return *place;
    tcc_row *r = TCC_NEW(fs->run->scratch, tcc_row);
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

/* The tensor.read with strides behind v, through casts that keep every number of its type. */
static const tcc_op *exact_read(const tcc_value *v)
{
    const tcc_op *op = v->def;
    while (op && op->code == TCC_OP_arith_cast) {
        const tcc_value *a = TCC_VIEW(arith_cast, op)->a;
        if (!tcc_scalar_widens(a->type->elem, op->results[0].type->elem))
            return NULL;
        op = a->def;
    }
    return op && op->code == TCC_OP_tensor_read && has_strides(op) ? op : NULL;
}

/* Whether sums of a read's products are those of doubles: floats as exact as can be, and small
 * integers, of which no sum that ends comes near 2^53. */
static bool has_short_elements(const tcc_op *read)
{
    enum { MOST_BITS = 8 };
    tcc_scalar s = read->results[0].type->elem;
    return tcc_scalar_classify(s) == TCC_CLASS_FLOAT || tcc_scalar_bits(s) <= MOST_BITS;
}

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

/* Whether v can be computed once for a whole row of sums: its products with another number like it
 * are exact in f32, and there is room. */
static bool may_be_kept(const tcc_fields *fs, const tcc_value *v, const tcc_index *along, const tcc_index *k)
{
    enum { MOST_BITS = 16, MOST_KEPT = 1 << 22 };
    tcc_scalar s = v->type->elem;
    return v->def && v->type->kind == TCC_KIND_field && tcc_scalar_bits(s) <= MOST_BITS &&
           tcc_scalar_classify(s) == TCC_CLASS_FLOAT && fs->depth < MAX_NESTED_SUMS &&
           k->extent <= MOST_KEPT / (along && along->extent ? along->extent : 1);
}

static double *room_for(tcc_fields *fs, const tcc_op *op, uint64_t n, tcc_status *status)
{
    if (!*status)
        *status = tcc_run_check_room(fs->run, op, n, sizeof(double));
    return *status ? NULL : TCC_NEW_ARRAY(fs->run->scratch, double, n);
}

/* Lets a memo look at a field's indices but these two. */
static void watch(tcc_fields *fs, tcc_memo *memo, const tcc_type *field, const tcc_index *along, const tcc_index *k)
{
    memo->indices = TCC_NEW_ARRAY(fs->run->scratch, tcc_index *, field->rank);
    memo->at = TCC_NEW_ARRAY(fs->run->scratch, int64_t, field->rank);
    for (unsigned d = 0; d < field->rank; d++) {
        tcc_index *index = tcc_index_find(fs, field->dims[d].name);
        if (index && index != along && index != k)
            memo->indices[memo->n++] = index;
    }
}

/* Plans an operand that is computed, and its access; `along` is the index along the row of sums. */
static tcc_status plan_computed(tcc_fields *fs, tcc_row_step *s, const tcc_index *along, tcc_index *k,
                                const tcc_value *v, tcc_row_operand **out, tcc_access *access)
{
    tcc_arena *scratch = fs->run->scratch;
    tcc_row_operand *c = *out = TCC_NEW(scratch, tcc_row_operand);
    c->k = k;
    c->along = has_index(v->type, along) ? tcc_index_find(fs, along->name) : NULL;
    watch(fs, &c->memo, v->type, along, k);
    uint64_t n = (uint64_t)k->extent * (uint64_t)(c->along ? c->along->extent : 1);
    tcc_status status = TCC_OK;
    c->values = room_for(fs, s->op, n + 1, &status);
    c->errors = fs->intervals ? room_for(fs, s->op, n + 1, &status) : NULL;
    c->largest = fs->intervals ? room_for(fs, s->op, n + 1, &status) : NULL;
    c->body = TCC_NEW(scratch, tcc_row_plan);
    c->body->row = k;
    fs->depth++;
    *access = (tcc_access){.data = c->values, .n = c->along ? 2 : 1};
    access->terms = tcc_arena_alloc(scratch, 2 * sizeof *access->terms);
    access->terms[0].index = k;
    access->terms[0].stride = 1;
    access->terms[1].index = c->along;
    access->terms[1].stride = k->extent;
    if (!status)
        status = tcc_plan_row(fs, c->body, 1, &v);
    fs->depth--;
    c->result = status ? NULL : tcc_row_of(fs, c->body, v);
    return status;
}

/* With intervals at least one operand must be exact. */
static tcc_status plan_product(tcc_fields *fs, const tcc_row_plan *outer, tcc_row_step *s)
{
    const tcc_op *mul = TCC_VIEW(tensor_reduce, s->op)->a->def;
    bool part_a_row = s->part && s->part == outer->row;
    if (s->kind != TCC_REDUCTION_SUM || s->op->n_operands > 1 || !mul || mul->code != TCC_OP_arith_mul || !s->n_over || part_a_row ||
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
            accesses[i] = tcc_plan_access(fs, reads[i]);
            accesses[i].data = fs->originals[tcc_accessed_tensor(reads[i])->index];
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

static tcc_status plan_sum(tcc_fields *fs, tcc_row_plan *outer, tcc_row_step *s)
{
    tcc_arena *scratch = fs->run->scratch;
    tcc_attr over = tcc_attr_list(&s->op->attrs, "over");
    s->kind = tcc_reduction_of(s->op);
    s->n_over = over.list.n;
    s->over = TCC_NEW_ARRAY(scratch, tcc_index *, s->n_over);
    tcc_attr parts = tcc_attr_list(&s->op->attrs, "parts");
    s->part = parts.list.n == 3 ? tcc_index_find(fs, parts.list.items[0].s) : NULL;
    s->depth = s->part ? parts.list.items[2].i : 1;
    s->outer = TCC_NEW_ARRAY(scratch, int64_t, s->n_over);
    s->body = TCC_NEW(scratch, tcc_row_plan);
    s->body->row = outer->row;
    for (size_t i = 0; i < s->n_over; i++) {
        s->over[i] = tcc_index_find(fs, over.list.items[i].s);
        if (!s->over[i])
            return TCC_FAIL(fs->run, TCC_ERR_ARGUMENT, s->op, "no tensor has index %s", over.list.items[i].s);
        if (s->over[i] == outer->row) /* another index of the same name */
            s->body->row = NULL;
    }
    watch(fs, &s->memo, s->op->results[0].type, outer->row, NULL);
    size_t n = s->result->step ? (size_t)outer->row->extent : 1;
    s->sums = TCC_NEW_ARRAY(scratch, double, n);
    if (tcc_reduction_is_place(s->kind))
        s->best = TCC_NEW_ARRAY(scratch, tcc_cell, n);
    if (fs->intervals) {
        s->lows = TCC_NEW_ARRAY(scratch, double, n);
        s->highs = TCC_NEW_ARRAY(scratch, double, n);
        s->magnitudes = TCC_NEW_ARRAY(scratch, double, n);
    }
    tcc_status status = plan_product(fs, outer, s);
    if (status || s->is_product)
        return status;
    if (fs->depth == MAX_NESTED_SUMS)
        return TCC_FAIL(fs->run, TCC_ERR_UNSUPPORTED, s->op, "more than %d sums within another", MAX_NESTED_SUMS);
    fs->depth++;
    status = tcc_plan_row(fs, s->body, s->op->n_operands, (const tcc_value *const *)s->op->operands);
    fs->depth--;
    return status;
}

/* Marks the ops that goals need, and counts them; what only a sum's operands need is left out. */
static size_t mark_needed(tcc_fields *fs, tcc_map *needed, size_t n_goals, const tcc_value *const *goals)
{
    TCC_VEC(const tcc_op *) work = {0};
    size_t n = 0;
    for (size_t i = 0; i < n_goals; i++)
        if (goals[i]->def)
            TCC_PUSH(fs->run->scratch, &work, goals[i]->def);
    while (work.len) {
        const tcc_op *op = work.data[--work.len];
        void **mark = tcc_map_at(needed, op);
        if (*mark)
            continue;
        *mark = needed;
        n++;
        for (unsigned i = 0; op->code != TCC_OP_tensor_reduce && i < op->n_operands; i++)
            if (op->operands[i]->def)
                TCC_PUSH(fs->run->scratch, &work, op->operands[i]->def);
    }
    return n;
}

static tcc_status plan_dim(tcc_fields *fs, tcc_row_step *s, const tcc_op *op)
{
    tcc_dim dim = {tcc_attr_str(&op->attrs, "name", ""), 0};
    s->result->cells[0].i = tcc_run_extent(fs->run, dim);
    return s->result->cells[0].i >= 0
               ? TCC_OK
               : TCC_FAIL(fs->run, TCC_ERR_ARGUMENT, op, "%s is not one of the function's dims", dim.name);
}

static tcc_status plan_index(tcc_fields *fs, tcc_row_step *s)
{
    const char *name = tcc_attr_str(&s->op->attrs, "name", "");
    s->index = tcc_index_find(fs, name);
    return s->index ? TCC_OK : TCC_FAIL(fs->run, TCC_ERR_ARGUMENT, s->op, "no tensor has index %s", name);
}

/* An op of one result, of which s is the step. */
static tcc_status plan_op(tcc_fields *fs, tcc_row_plan *p, tcc_row_step *s)
{
    const tcc_op *op = s->op;
    switch (op->code) {
    case TCC_OP_tensor_read:
        s->access = tcc_plan_access(fs, op);
        s->access.data = fs->originals[tcc_accessed_tensor(op)->index];
        if (!has_strides(op))
            tcc_plan_coordinates(fs, p, s);
        return TCC_OK;
    case TCC_OP_tensor_index: return plan_index(fs, s);
    case TCC_OP_tensor_reduce: return plan_sum(fs, p, s);
    case TCC_OP_tensor_dim: return plan_dim(fs, s, op);
    default:
        if (op->n_regions)
            return TCC_FAIL(fs->run, TCC_ERR_UNSUPPORTED, op, "a field is computed by %s",
                            tcc_op_info_get(op->code)->name);
        for (unsigned i = 0; i < op->n_operands; i++)
            s->operands[i] = tcc_row_of(fs, p, op->operands[i]);
        return TCC_OK;
    }
}

tcc_status tcc_plan_row(tcc_fields *fs, tcc_row_plan *p, size_t n_goals, const tcc_value *const *goals)
{
    tcc_arena *scratch = fs->run->scratch;
    tcc_map needed = TCC_MAP(scratch);
    p->rows = TCC_MAP(scratch);
    size_t n = mark_needed(fs, &needed, n_goals, goals);
    uint64_t row_bytes = (p->row ? (uint64_t)p->row->extent : 1) * sizeof(tcc_cell);
    row_bytes *= fs->intervals ? 3 : 1;
    tcc_status status = tcc_run_check_room(fs->run, goals[0]->def, n + 1, sizeof(tcc_row_step) + row_bytes);
    if (status)
        return status;
    p->steps = TCC_NEW_ARRAY(scratch, tcc_row_step, n);
    for (const tcc_op *op = fs->run->f->body->first; op && !status; op = op->next) {
        if (!tcc_map_get(&needed, op))
            continue;
        tcc_row_step *s = &p->steps[p->n_steps++];
        s->op = op;
        s->result = tcc_row_of(fs, p, &op->results[0]);
        s->in_step = fs->intervals && tcc_streaming_rounds(op, scratch);
        status = plan_op(fs, p, s);
    }
    return status;
}
