/* partition: the terms of a function that one loop computes (streams.h) in parts, each of which has CTAs of its own,
 * and another kernel that puts together what these give.
 *
 * Before:  func @f(…) {stream = j} {
 *            %m = tensor.reduce %s {over = [j], kind = max} : field<f32[i]>
 *            … %p = math.exp … : field<f32[i, j]>                                              // of %s and %m
 *            %o = tensor.reduce … {over = [j], kind = sum} : field<f32[i, e]>                  // of %p and %V
 *            … %o …
 * After:   func @f__split__parts(…, %m: tensor<f32[32, S]>, %o: tensor<f32[32, S, E]>) {step = 1, stream = j, …} {
 *            … %c = arith.cmp (j / (…)), part {pred = eq} : field<i1[part, j]>
 *            %m = tensor.reduce %s, %c {over = [j], kind = max} : field<f32[part, i]>
 *            … %o = tensor.reduce … : field<f32[part, i, e]>
 *            tensor.write …
 *          }
 *          func @f__split(…) {before = [f__split__parts], merges = [f__split__parts, part], row = part, …} {
 *            %mp = tensor.read %m : field<f32[part, i]>
 *            %m = tensor.reduce %mp {over = [part], kind = max} : field<f32[i]>
 *            … %a …                                              // by what pass stream multiplies: of %mp and %m
 *            %t = arith.mul (tensor.read %o), %a : field<f32[part, i, e]>
 *            %o = tensor.reduce %t {over = [part], kind = sum} : field<f32[i, e]>
 *            … %o …
 *          }
 *
 * Few rows are few CTAs: parts are many. What a part gives is right for its own maximum; the law of streaming says how
 * it is put together with the others (ir/streaming.h), in the order of the parts, always the same. All have as many of
 * the terms, which follow each other. The verifier proves it again from both functions.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/split_streams.h"

#include "ir/cut.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/arith.h"
#include "passes/cascade.h"
#include "passes/in_step.h"
#include "passes/pack_rows.h"
#include "passes/partition.h"
#include "passes/passes.h"
#include "passes/slice.h"
#include "passes/stream.h"

enum {
    PARTS = 32,       /* a kernel of rows holds so many at once */
    DEPTH = 128,      /* terms, of which a part has a multiple: a tile */
    FEWEST = 1024,    /* terms; fewer are not divided */
    MOST_ROWS = 1024, /* more are as many CTAs as there need be */
};

typedef struct splitting {
    tcc_arena *scratch;
    tcc_cascade c;
    const char *part; /* index of parts */
    size_t n;         /* reductions over terms, in the function's order; their tensors are its last parameters */
} splitting;

static bool is_over(const tcc_op *reduce, const char *index)
{
    return tcc_index_same(tcc_attr_list(&reduce->attrs, "over").list.items[0].s, index);
}

/* A reduction over the streamed index that is kept. */
static bool is_kept(const splitting *s, const tcc_op *op)
{
    return tcc_is_reduction(op) && is_over(op, s->c.along);
}

static const tcc_type *with_index(const splitting *s, tcc_ir *ir, const tcc_type *field, const char *index)
{
    if (tcc_field_has_index(field, index))
        return field;
    bool is_part = tcc_index_same(index, s->part);
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, field->rank + 1u);
    unsigned n = is_part;
    for (unsigned d = 0; d < field->rank; d++)
        dims[n++] = field->dims[d];
    dims[is_part ? 0 : n] = (tcc_dim){.name = index};
    return tcc_type_get(ir, TCC_KIND_field, field->elem, field->rank + 1u, dims);
}

/* Gives an op's result the indices that its operands have got. */
static void spread(const splitting *s, tcc_op *op)
{
    tcc_ir *ir = op->block->func->ir;
    for (unsigned i = 0; i < op->n_operands && tcc_has_field(op); i++) {
        const tcc_type *t = op->operands[i]->type;
        for (unsigned d = 0; t->kind == TCC_KIND_field && d < t->rank; d++)
            if (!tcc_is_reduction(op) || !is_over(op, t->dims[d].name))
                op->results[0].type = with_index(s, ir, op->results[0].type, t->dims[d].name);
    }
}

/* ---- the parts ---------------------------------------------------------------------------------- */

static tcc_value *build_index(tcc_builder *b, const char *name)
{
    const tcc_dim dim = {.name = name};
    tcc_value *v = TCC_EMIT(b, tensor_index, tcc_type_get(b->func->ir, TCC_KIND_field, TCC_i32, 1, &dim), NULL);
    tcc_attr_set_str(b->func->ir, &v->def->attrs, "name", name);
    return v;
}

/* Which terms a part has: of parts of ((T - 1) / (PARTS * DEPTH) + 1) * DEPTH terms, also where `inside` says which
 * there are. */
static tcc_value *build_condition(const splitting *s, tcc_builder *b, tcc_value *inside)
{
    tcc_ir *ir = b->func->ir;
    tcc_value *terms = tcc_build_extent(b, tcc_index_extent(b->func, s->c.along));
    tcc_value *depth = tcc_arith_bin_const(b, TCC_OP_arith_floor_div, tcc_arith_add(b, terms, -1), PARTS * DEPTH);
    depth = tcc_arith_mul(b, tcc_arith_add(b, depth, 1), DEPTH);
    tcc_value *j = build_index(b, s->c.along);
    tcc_value *of = TCC_EMIT(b, arith_floor_div, j->type, j, depth);
    const tcc_dim dims[] = {{.name = s->part}, {.name = s->c.along}};
    const tcc_type *type = tcc_type_get(ir, TCC_KIND_field, TCC_i1, 2, dims);
    tcc_value *is = TCC_EMIT(b, arith_cmp, type, of, build_index(b, s->part));
    tcc_attr_set_str(ir, &is->def->attrs, "pred", "eq");
    tcc_value *both = inside ? TCC_EMIT(b, arith_and, is->type, inside, is) : is;
    if (inside)
        spread(s, both->def);
    return both;
}

/* The i-th tensor of parts among a function's parameters. */
static tcc_value *tensor_of(const splitting *s, const tcc_func *f, size_t i)
{
    return f->body->args[f->body->n_args - s->n + i];
}

/* Makes a reduction one of the parts' terms, and stores it. */
static void part_reduction(const splitting *s, tcc_op *op, tcc_value *condition, tcc_value *tensor)
{
    tcc_func *f = op->block->func;
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    const tcc_type *type = with_index(s, f->ir, op->results[0].type, s->part);
    tcc_op *of_part = tcc_op_create(&b, op->code, 2, (tcc_value *[]){op->operands[0], condition}, 1, &type);
    for (size_t i = 0; i < op->attrs.len; i++)
        TCC_PUSH(f->ir->arena, &of_part->attrs, op->attrs.data[i]);
    of_part->results[0].name = op->results[0].name;
    tcc_replace_uses(&op->results[0], &of_part->results[0]);
    b = tcc_builder_before(f->body->last);
    b.loc = op->loc;
    tcc_access_set_field(TCC_EMIT_V(&b, tensor_write, &of_part->results[0], tensor), type);
    tcc_op_erase(op);
}

static void make_parts(const splitting *s, tcc_func *f)
{
    tcc_value *condition = NULL;
    size_t n = 0;
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = op->next;
        if (op->code == TCC_OP_tensor_write)
            tcc_op_erase(op);
    }
    for (tcc_op *op = f->body->first, *last = f->body->last, *next; op != last; op = next) {
        next = op->next;
        if (!is_kept(s, op)) {
            if (op->code != TCC_OP_tensor_write)
                spread(s, op);
            continue;
        }
        tcc_builder b = tcc_builder_before(op);
        b.loc = op->loc;
        condition = condition ? condition : build_condition(s, &b, op->n_operands > 1 ? op->operands[1] : NULL);
        part_reduction(s, op, condition, tensor_of(s, f, n++));
    }
    tcc_erase_dead(f, s->scratch);
}

/* ---- what merges them --------------------------------------------------------------------------- */

static tcc_value *compare(tcc_builder *b, const char *pred, tcc_value *x, tcc_value *y)
{
    tcc_value *is = TCC_EMIT(b, arith_cmp, tcc_type_with_elem(b->func->ir, x->type, TCC_i1), x, y);
    tcc_attr_set_str(b->func->ir, &is->def->attrs, "pred", pred);
    return is;
}

/* Where an extremum of a part is what no terms give: 1 where all are, and else 0. */
static tcc_value *guard(const splitting *s, tcc_builder *b, tcc_value *of_part, tcc_value *whole, tcc_value *factor)
{
    const tcc_type *scalar = tcc_type_scalar(b->func->ir, whole->type->elem);
    tcc_value *none = tcc_build_float(b, scalar, tcc_reduction_start(tcc_reduction_of(whole->def), scalar->elem).f);
    tcc_value *one = tcc_build_float(b, scalar, 1), *zero = tcc_build_float(b, scalar, 0);
    tcc_value *otherwise = TCC_EMIT(b, arith_select, whole->type, compare(b, "eq", whole, none), one, zero);
    tcc_value *v = TCC_EMIT(b, arith_select, factor->type, compare(b, "eq", of_part, none), otherwise, factor);
    spread(s, v->def);
    return v;
}

/* By what a part's sum is multiplied: pass stream's factor, with what reductions are in the part for what they were. */
static tcc_value *build_factor(const splitting *s, tcc_builder *b, tcc_op *rescale, const tcc_value_map *of_part)
{
    tcc_value *by = rescale->operands[1];
    tcc_value_map *map = tcc_value_map_create(s->scratch);
    tcc_map slice = tcc_slice_of(s->scratch, 1, &by);
    TCC_VEC(tcc_op *) ops = {0};
    for (tcc_op *op = b->func->body->first; op != rescale; op = op->next)
        if (tcc_map_get(&slice, op) && tcc_has_field(op) && op->code != TCC_OP_tensor_read && !tcc_is_reduction(op))
            TCC_PUSH(s->scratch, &ops, op);
    for (size_t i = 0; i < ops.len; i++) {
        tcc_op *op = ops.data[i];
        bool is_before = op->code == TCC_OP_tensor_before;
        if (is_before)
            tcc_value_map_set(map, &op->results[0], tcc_value_map_get(of_part, op->operands[0]));
        else
            spread(s, tcc_op_clone(b, op, map));
    }
    tcc_value *factor = tcc_value_map_get(map, by);
    for (size_t i = 0; i < ops.len; i++)
        if (ops.data[i]->code == TCC_OP_tensor_before) {
            tcc_value *whole = ops.data[i]->operands[0];
            factor = guard(s, b, tcc_value_map_get(of_part, whole), whole, factor);
        }
    return factor;
}

/* What a reduction's parts give together, where op, which has that result, stands. */
static void merge_reduction(const splitting *s, tcc_op *op, tcc_op *reduce, tcc_value *tensor, tcc_value_map *of_part)
{
    tcc_ir *ir = op->block->func->ir;
    tcc_builder b = tcc_builder_before(op);
    b.loc = reduce->loc;
    const tcc_type *type = with_index(s, ir, reduce->results[0].type, s->part);
    tcc_value *read = TCC_EMIT(&b, tensor_read, type, tensor), *term = read;
    tcc_access_set_field(read->def, type);
    if (op != reduce)
        term = TCC_EMIT(&b, arith_mul, type, read, build_factor(s, &b, op, of_part));
    tcc_value *merged = TCC_EMIT(&b, tensor_reduce, reduce->results[0].type, term);
    tcc_attr_set_strs(ir, &merged->def->attrs, "over", 1, &s->part);
    tcc_attr_carry(ir, &merged->def->attrs, &reduce->attrs, "kind");
    merged->name = op->results[0].name;
    tcc_value_map_set(of_part, merged, read);
    tcc_replace_uses(&op->results[0], merged);
}

static void make_merging(const splitting *s, tcc_func *f)
{
    tcc_value_map *of_part = tcc_value_map_create(s->scratch);
    tcc_map tensors = TCC_MAP(s->scratch);
    size_t n = 0;
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (is_kept(s, op))
            *tcc_map_at(&tensors, op) = tensor_of(s, f, n++);
    for (tcc_op *op = f->body->first; op; op = op->next) {
        tcc_op *reduce = tcc_reduced_at(op);
        if (reduce && tcc_map_get(&tensors, reduce))
            merge_reduction(s, op, reduce, tcc_map_get(&tensors, reduce), of_part);
    }
    tcc_erase_dead(f, s->scratch);
}

/* Lets all reductions of a function have the index of columns where its output does: they are of the same rows then. */
static void widen_rows(const splitting *s, tcc_func *f)
{
    bool has_columns = false;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        has_columns |= op->code == TCC_OP_tensor_write && tcc_map_position(op, s->c.columns) >= 0;
    for (tcc_op *op = f->body->first; op && has_columns; op = op->next) {
        spread(s, op);
        bool is = op->code == TCC_OP_tensor_read && tcc_field_has_index(op->results[0].type, s->part) &&
                  !tcc_field_has_index(op->results[0].type, s->c.columns);
        if (!is)
            continue;
        tcc_builder b = tcc_builder_after(op);
        b.loc = op->loc;
        tcc_value *v = &op->results[0], *column = build_index(&b, s->c.columns);
        tcc_value *all = compare(&b, "ge", column, tcc_build_i32(&b, 0));
        tcc_value *wide = TCC_EMIT(&b, arith_select, with_index(s, f->ir, v->type, s->c.columns), all, v, v);
        tcc_replace_uses(v, wide);
        tcc_op_set_operand(wide->def, 1, v);
        tcc_op_set_operand(wide->def, 2, v);
    }
}

/* ---- which are split ---------------------------------------------------------------------------- */

/* Whether what the terms of each reduction need are extrema: a sum of no terms is a number like others, by which a
 * part's factor could be too large. */
static bool needs_extrema(const splitting *s, const tcc_func *f)
{
    bool all = true;
    for (const tcc_op *op = f->body->first; op && all; op = op->next)
        for (const tcc_op *of = f->body->first; is_kept(s, op) && of != op && all; of = of->next)
            all = !is_kept(s, of) || tcc_reduction_of(of) != TCC_REDUCTION_SUM || !tcc_slice_has(s->scratch, op, of);
    return all;
}

bool tcc_streams_may_have_few_rows(const tcc_func *f)
{
    tcc_cascade c;
    bool is_scheduled = false;
    for (int key = 0; key < TCC_KEY_COUNT; key++)
        is_scheduled |= tcc_attr_find(&f->attrs, tcc_schedule_keys[key].name) != NULL;
    if (is_scheduled || !tcc_cascade_of(f, &c))
        return false;
    tcc_dim rows = tcc_index_extent(f, c.rows);
    return rows.name || rows.size <= MOST_ROWS;
}

/* Whether terms may be so many that parts of them leave no multiprocessor idle. */
static bool has_many_terms(const tcc_func *f, const tcc_cascade *c)
{
    tcc_dim terms = tcc_index_extent(f, c->along);
    return terms.name || terms.size >= FEWEST;
}

/* Adds what a part of each reduction gives to a function's parameters. */
static void add_tensors(splitting *s, tcc_func *f)
{
    tcc_attr *extent = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, 2);
    s->part = tcc_free_index(f, "part");
    extent[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = s->part};
    extent[1] = (tcc_attr){.kind = TCC_ATTR_INT, .i = PARTS};
    tcc_attr_append(f->ir, &f->attrs, "extents", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {extent, 2}});
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (is_kept(s, op)) {
            const tcc_type *type = with_index(s, f->ir, op->results[0].type, s->part);
            tcc_func_add_workspace(f, tcc_partition_stored_type(f, type), tcc_partition_name_of(&op->results[0]));
            s->n++;
        }
}

tcc_func *tcc_streams_split(tcc_pass_ctx *ctx, tcc_func *f)
{
    splitting s = {.scratch = ctx->scratch};
    if (!tcc_streams_may_have_few_rows(f) || !tcc_cascade_of(f, &s.c) || !has_many_terms(f, &s.c) ||
        !needs_extrema(&s, f))
        return NULL;
    tcc_func *merging = tcc_partition_add_form(f, "split");
    if (tcc_pack_rows(merging))
        tcc_erase_dead(merging, ctx->scratch);
    tcc_cascade_of(merging, &s.c);
    add_tensors(&s, merging);
    tcc_func *parts = tcc_partition_add_step(merging, "parts", TCC_CUT_part);
    tcc_attr_remove(&merging->attrs, "stream");
    tcc_stream_keep_in_step(ctx->scratch, merging, s.c.along);
    tcc_attr *of = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, 2);
    of[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = parts->name};
    of[1] = (tcc_attr){.kind = TCC_ATTR_STR, .s = s.part};
    make_parts(&s, parts);
    if (!tcc_cascade_of(parts, &s.c)) { /* one index more made it something else */
        tcc_func_remove(parts);
        tcc_func_remove(merging);
        return NULL;
    }
    make_merging(&s, merging);
    tcc_attr_set(f->ir, &merging->attrs, "merges", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {of, 2}}, (tcc_loc){0, 0});
    for (tcc_func *step; (step = tcc_partition_cut_outputs(ctx, merging));)
        widen_rows(&s, step);
    widen_rows(&s, merging);
    return merging;
}
