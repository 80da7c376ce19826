/* partition: cut what one kernel cannot compute into steps, which hand fields on in the workspace.
 *
 * Before:  func @f(%X: …, %Y: …) {…} {
 *            … %m = tensor.reduce %x {over = [n], kind = max} : field<f32[m]>
 *            … %s = tensor.reduce %e {over = [n], kind = sum} : field<f32[m]>      // %e is computed of %m
 *            tensor.write %p, %Y {map = [m, n]}
 *          }
 * After:   func @f(…, %m: tensor<f32[M]>, %s: tensor<f32[M]>) {before = [f__m, f__s], …} {
 *            … %0 = tensor.read %m {map = [m]} …
 *          }
 *          func @f__m(…, %m: …) {step = 1, part = f__m, cut = nested, …} {
 *            … tensor.write …, %m {map = [m]}
 *          }
 *          func @f__s(…) {step = 1, part = f__s, cut = fewer, …} {…}
 *
 * One kernel computes either sums of products over one index space, which matrix instructions multiply, and what is
 * computed elementwise of these sums and of tensors in the same index space; or, elementwise in the index space of its
 * outputs, what may have reductions of such terms. What does not fit is cut off until the rest does, first what others
 * need: reductions within reductions; operands of products that vary with more indices than any tensor that they are
 * computed of; reductions that several kernels need, or that have fewer indices than the outputs, which would otherwise
 * be computed for each element; outputs of another index space; and sums of products of another one than the output's.
 * What is stored is what all that needs a reduction computes of it first, where that is no wider: f16(acc) for acc.
 * Elements of a tensor that is written are copied before where another step, or the same at other indices, still reads
 * them; a function reads what it writes before the write.
 *
 * Requires nothing. What is left of a function, and each step, is one kernel.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/cut.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/space.h"
#include "passes/passes.h"
#include "passes/rows.h"
#include "passes/stored_value.h"

enum {
    FEW_TERMS = 32, /* that each element may as well reduce itself */
    ROW_BYTES = 128 /* of which rows in the workspace are multiples: a line of L2 */
};

/* ---- what is computed of what --------------------------------------------------------------- */

/* The ops that values are computed of, their own included. */
static tcc_map find_slice(tcc_arena *arena, size_t n, tcc_value *const *values)
{
    TCC_VEC(const tcc_value *) left = {0};
    tcc_map ops = TCC_MAP(arena);
    for (size_t i = 0; i < n; i++)
        TCC_PUSH(arena, &left, values[i]);
    while (left.len) {
        tcc_op *op = left.data[--left.len]->def;
        if (!op || tcc_map_get(&ops, op))
            continue;
        *tcc_map_at(&ops, op) = op;
        for (unsigned i = 0; i < op->n_operands; i++)
            TCC_PUSH(arena, &left, op->operands[i]);
    }
    return ops;
}

/* Whether another op is computed of op. */
static bool needs(tcc_pass_ctx *ctx, const tcc_op *other, const tcc_op *op)
{
    tcc_map slice = find_slice(ctx->scratch, other->n_operands, other->operands);
    return tcc_map_get(&slice, op);
}

static bool is_reduction(const tcc_op *op)
{
    return op->code == TCC_OP_tensor_reduce;
}

/* The value that has v's name: v, or the wider one with the same numbers that expressions compute with; NULL: none has. */
static const tcc_value *named_value(const tcc_value *v)
{
    const tcc_op *cast = v->uses ? v->uses->op : NULL;
    bool widens = cast && cast->code == TCC_OP_arith_cast && tcc_scalar_widens(v->type->elem, cast->results[0].type->elem);
    return v->name ? v : widens && cast->results[0].name ? &cast->results[0] : NULL;
}

/* Whether the schedule names a value: in `separate` or `fuse`. */
static bool is_named(const tcc_func *f, tcc_schedule_key_id key, const tcc_value *v)
{
    tcc_attr names = tcc_attr_list(&f->attrs, tcc_schedule_keys[key].name);
    const tcc_value *named = named_value(v);
    bool found = false;
    for (size_t i = 0; named && i < names.list.n; i++)
        found |= !strcmp(names.list.items[i].s, named->name);
    return found;
}

static bool is_fused(const void *f, const tcc_value *v)
{
    return is_named(f, TCC_KEY_fuse, v);
}

static bool is_field(const tcc_op *op)
{
    return op->n_results && op->results[0].type->kind == TCC_KIND_field;
}

static tcc_value *find_separate(const tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (is_field(op) && is_named(f, TCC_KEY_separate, &op->results[0]))
            return &op->results[0];
    return NULL;
}

/* The first reduction that another one needs for its terms. */
static tcc_value *find_nested(tcc_pass_ctx *ctx, const tcc_func *f)
{
    tcc_map nested = TCC_MAP(ctx->scratch);
    for (tcc_op *op = f->body->first; op; op = op->next) {
        if (!is_reduction(op))
            continue;
        tcc_map slice = find_slice(ctx->scratch, op->n_operands, op->operands);
        for (tcc_op *in = f->body->first; in != op; in = in->next)
            if (is_reduction(in) && tcc_map_get(&slice, in))
                *tcc_map_at(&nested, in) = in;
    }
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (tcc_map_get(&nested, op))
            return &op->results[0];
    return NULL;
}

static tcc_value *find_uncovered(const tcc_func *f)
{
    tcc_value *found = NULL;
    for (tcc_op *op = f->body->first; op && !found; op = op->next)
        found = is_reduction(op) ? tcc_product_uncovered(op) : NULL;
    return found;
}

/* ---- outputs ------------------------------------------------------------------------------ */

static bool is_write(const tcc_op *op)
{
    return op->code == TCC_OP_tensor_write;
}

static tcc_op *last_write(const tcc_func *f)
{
    tcc_op *op = f->body->last;
    while (op && !is_write(op))
        op = op->prev;
    return op;
}

/* The first write of another index space than the last one's; NULL when all have one. */
static tcc_op *find_other_write(const tcc_func *f)
{
    const tcc_op *last = last_write(f);
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (is_write(op) && !tcc_writes_share_space(op, last))
            return op;
    return NULL;
}

/* Whether outputs of two index spaces need an op. */
static bool is_shared(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *op)
{
    const tcc_op *first = NULL;
    for (const tcc_op *write = f->body->first; write; write = write->next) {
        if (!is_write(write))
            continue;
        if (!needs(ctx, write, op))
            continue;
        if (first && !tcc_writes_share_space(first, write))
            return true;
        first = write;
    }
    return false;
}

static tcc_value *find_shared(tcc_pass_ctx *ctx, const tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (is_reduction(op) && !is_named(f, TCC_KEY_fuse, &op->results[0]) && is_shared(ctx, f, op))
            return &op->results[0];
    return NULL;
}

/* ---- tensors that are read and written ------------------------------------------------------------ */

static bool is_read_of(const tcc_op *op, const tcc_value *tensor)
{
    return op->code == TCC_OP_tensor_read && TCC_VIEW(tensor_read, op)->tensor == tensor;
}

/* Whether an output of another index space than a write's needs an op. */
static bool others_need(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *write, const tcc_op *op)
{
    bool need = false;
    for (const tcc_op *other = f->body->first; other && !need; other = other->next)
        need = is_write(other) && !tcc_writes_share_space(other, write) && needs(ctx, other, op);
    return need;
}

/* Whether a read is of other elements than a write where these are computed: at other indices, or in a reduction over
 * one of them. */
static bool is_elsewhere(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *write, const tcc_op *read)
{
    bool elsewhere = !tcc_access_same(write, read, NULL, NULL);
    for (const tcc_op *op = f->body->first; op && !elsewhere; op = op->next) {
        tcc_attr over = is_reduction(op) ? tcc_attr_list(&op->attrs, "over") : (tcc_attr){0};
        for (size_t i = 0; i < over.list.n && !elsewhere; i++)
            elsewhere = tcc_field_has_index(read->results[0].type, over.list.items[i].s) &&
                        needs(ctx, op, read);
    }
    return elsewhere;
}

/* The first read of a tensor that is written before it is read for the last time, if the outputs with the indices of
 * `cut` are written by an earlier step; cut NULL: if all are by one kernel. */
static tcc_value *find_overwritten(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *cut)
{
    for (tcc_op *write = f->body->first; write; write = write->next)
        for (tcc_op *read = f->body->first; is_write(write) && read; read = read->next) {
            if (!is_read_of(read, TCC_VIEW(tensor_write, write)->tensor))
                continue;
            if (cut ? tcc_writes_share_space(write, cut) && others_need(ctx, f, write, read)
                    : is_elsewhere(ctx, f, write, read))
                return &read->results[0];
        }
    return NULL;
}

/* ---- sums of products beside others -------------------------------------------------------------- */

/* How many terms a reduction has; INT64_MAX where that is not known. */
static int64_t count_terms(const tcc_func *f, const tcc_op *reduce)
{
    tcc_attr over = tcc_attr_list(&reduce->attrs, "over");
    int64_t n = 1;
    for (size_t i = 0; i < over.list.n; i++) {
        tcc_dim extent = tcc_index_extent(f, over.list.items[i].s);
        if (extent.name || n > FEW_TERMS)
            return INT64_MAX;
        n *= extent.size;
    }
    return n;
}

/* The sum of products that a kernel for the outputs is about: the first one that has their indices. */
static const tcc_op *find_product(const tcc_func *f, const tcc_op *write)
{
    const tcc_op *op = f->body->first;
    while (op && !(is_reduction(op) && tcc_product_is(op) && tcc_write_has_space(write, op->results[0].type)))
        op = op->next;
    return op;
}

/* The first reduction that the kernel cannot or should not compute. */
static tcc_value *find_other(const tcc_func *f, tcc_cut *why)
{
    const tcc_op *write = last_write(f), *product = write ? find_product(f, write) : NULL;
    for (tcc_op *op = f->body->first; write && op; op = op->next) {
        if (!is_reduction(op))
            continue;
        bool stays = product ? tcc_product_goes_with(op, product)
                     : tcc_product_is(op)
                         ? false
                         : tcc_write_has_space(write, op->results[0].type) || count_terms(f, op) <= FEW_TERMS ||
                               is_named(f, TCC_KEY_fuse, &op->results[0]);
        if (stays)
            continue;
        *why = product ? TCC_CUT_beside : TCC_CUT_fewer;
        return &op->results[0];
    }
    return NULL;
}

/* ---- what is cut off ------------------------------------------------------------------------------ */

/* A field, or the outputs of an index space. */
typedef struct part {
    tcc_value *value; /* NULL: none */
    tcc_op *write;    /* NULL: none */
    tcc_cut why;
} part;

/* What a function does not compute together with the rest; without value and write where there is no such thing. */
static part find_part(tcc_pass_ctx *ctx, const tcc_func *f)
{
    part p = {.value = find_separate(f), .why = TCC_CUT_separate};
    if (!p.value)
        p = (part){.value = find_nested(ctx, f), .why = TCC_CUT_nested};
    if (!p.value)
        p = (part){.value = find_uncovered(f), .why = TCC_CUT_uncovered};
    if (!p.value)
        p = (part){.value = find_shared(ctx, f), .why = TCC_CUT_shared};
    if (!p.value)
        p = (part){.write = find_other_write(f), .why = TCC_CUT_space};
    if (!p.value && !p.write)
        p.value = find_other(f, &p.why);
    tcc_value *read = p.value ? NULL : find_overwritten(ctx, f, p.write);
    return read ? (part){.value = read, .why = TCC_CUT_overwritten} : p;
}

/* ---- reductions over several indices ------------------------------------------------------------- */

static bool is_over(const tcc_op *reduce, const char *index)
{
    tcc_attr over = tcc_attr_list(&reduce->attrs, "over");
    bool is = false;
    for (size_t i = 0; i < over.list.n; i++)
        is |= !strcmp(over.list.items[i].s, index);
    return is;
}

/* The first tensor that has all indices of a reduction's terms. */
static const tcc_op *find_covering(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *reduce)
{
    tcc_attr over = tcc_attr_list(&reduce->attrs, "over");
    const tcc_type *terms = TCC_VIEW(tensor_reduce, reduce)->a->type;
    tcc_map slice = find_slice(ctx->scratch, 1, reduce->operands);
    bool all = terms->kind == TCC_KIND_field;
    for (size_t i = 0; i < over.list.n && all; i++)
        all &= tcc_field_has_index(terms, over.list.items[i].s);
    const tcc_op *op = all ? f->body->first : NULL;
    while (op && !(op->code == TCC_OP_tensor_read && tcc_map_get(&slice, op) &&
                   op->results[0].type->rank == terms->rank && tcc_access_is_plain(op)))
        op = op->next;
    return op;
}

/* Of the indices over which op reduces the innermost of a tensor that has all indices of the terms; NULL: there
 * is no such tensor, and what is reduced over one of them may be larger than all. */
static const char *find_row(const tcc_op *reduce, const tcc_op *covering)
{
    const char *row = NULL;
    for (size_t d = covering ? tcc_access_rank(covering) : 0; d-- && !row;)
        row = is_over(reduce, tcc_access_index(covering, d)) ? tcc_access_index(covering, d) : NULL;
    return row;
}

/* A field's type with more indices: all before `last`, if that is one. */
static const tcc_type *with_indices(tcc_ir *ir, const tcc_type *field, size_t n, const char *const *more, const char *last)
{
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, field->rank + n);
    unsigned rank = 0;
    for (size_t i = 0; i < n && last; i++)
        dims[rank++] = (tcc_dim){.name = more[i]};
    for (unsigned d = 0; d < field->rank; d++)
        if (!last || strcmp(field->dims[d].name, last))
            dims[rank++] = field->dims[d];
    for (size_t i = 0; i < n && !last; i++)
        dims[rank++] = (tcc_dim){.name = more[i]};
    if (last)
        dims[rank++] = (tcc_dim){.name = last};
    return tcc_type_get(ir, TCC_KIND_field, field->elem, rank, dims);
}

/* Lets another reduction take the index `row` before op takes the others: rows are reduced side by side. Where memory is
 * contiguous along another index, `beside`, what they are reduced to is, too. */
static void nest(tcc_func *f, tcc_op *op, const char *row, const char *beside)
{
    tcc_attr over = tcc_attr_list(&op->attrs, "over");
    const tcc_type *r = op->results[0].type;
    const char **others = TCC_NEW_ARRAY(f->ir->arena, const char *, over.list.n);
    size_t n = 0;
    for (size_t i = 0; i < over.list.n; i++)
        if (strcmp(over.list.items[i].s, row))
            others[n++] = over.list.items[i].s;
    const tcc_type *type = with_indices(f->ir, r, n, others, beside);
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    tcc_op *inner = tcc_op_create(&b, TCC_OP_tensor_reduce, op->n_operands, op->operands, 1, &type);
    tcc_op *outer = tcc_op_create(&b, TCC_OP_tensor_reduce, 1, (tcc_value *[]){&inner->results[0]}, 1, &r);
    for (size_t i = 0; i < op->attrs.len; i++) {
        TCC_PUSH(f->ir->arena, &inner->attrs, op->attrs.data[i]);
        TCC_PUSH(f->ir->arena, &outer->attrs, op->attrs.data[i]);
    }
    tcc_attr_set_strs(f->ir, &inner->attrs, "over", 1, &row);
    tcc_attr_set_strs(f->ir, &outer->attrs, "over", n, others);
    outer->results[0].name = op->results[0].name;
    tcc_replace_uses(&op->results[0], &outer->results[0]);
    tcc_op_erase(op);
}

/* Of the indices of a reduction's result the one along which such a tensor runs; NULL: there is none. */
static const char *find_beside(const tcc_op *reduce, const tcc_op *covering)
{
    const char *last = covering ? tcc_access_last(covering) : NULL;
    return last && tcc_field_has_index(reduce->results[0].type, last) ? last : NULL;
}

/* How a reduction is divided into parts: parts of so many terms in a row. */
typedef struct parting {
    int64_t count, depth; /* 0: it is not */
    const char *last;     /* index of the parts; NULL: they are numbers */
} parting;

/* Whether a field has few elements for each value of an index. */
static bool is_small_but(const tcc_func *f, const tcc_type *field, const char *index)
{
    enum { FEW = 16 };
    int64_t n = 1;
    for (unsigned d = 0; d < field->rank; d++) {
        tcc_dim extent = tcc_index_extent(f, field->dims[d].name);
        if (!strcmp(field->dims[d].name, index))
            continue;
        if (extent.name || extent.size > FEW)
            return false;
        n *= extent.size;
    }
    return n <= FEW;
}

/* Reductions of so many numbers of one tensor that a CTA should not combine them by itself: sums of everything, and those
 * of rows beside each other, of which few CTAs have all, but with so few others that parts take little memory. */
static parting find_parting(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *op)
{
    const parting none = {0};
    tcc_attr over = is_reduction(op) ? tcc_attr_list(&op->attrs, "over") : (tcc_attr){0};
    if (over.list.n != 1 || op->n_operands > 1 || is_named(f, TCC_KEY_fuse, &op->results[0]) || tcc_attr_find(&op->attrs, "parts") || tcc_product_is(op) ||
        tcc_reduction_is_place(tcc_reduction_of(op)))
        return none;
    for (const tcc_op *in = f->body->first; in != op; in = in->next)
        if (is_reduction(in) && needs(ctx, op, in))
            return none;
    tcc_dim extent = tcc_index_extent(f, over.list.items[0].s);
    bool is_number = !op->results[0].type->rank && tcc_reduction_of(op) == TCC_REDUCTION_SUM;
    const tcc_op *covering = find_covering(ctx, f, op);
    tcc_map of = find_slice(ctx->scratch, op->n_operands, op->operands);
    if (is_number && (extent.name || extent.size > TCC_ROWS_MOST_COLUMNS) && covering && tcc_rows_can_reduce(op, &of, false))
        return (parting){TCC_ROWS_PARTS, TCC_ROWS_SWEPT_COLUMNS, NULL};
    const char *beside = find_beside(op, covering);
    bool is_long = extent.name || extent.size > 2 * TCC_ROWS_BESIDE_DEPTH;
    bool tiled = tcc_attr_find(&f->attrs, tcc_schedule_keys[TCC_KEY_tile].name); /* by what computes it term by term */
    if (beside && is_long && !tiled && is_small_but(f, op->results[0].type, beside) && tcc_rows_can_reduce(op, &of, true))
        return (parting){TCC_ROWS_BESIDE_PARTS, TCC_ROWS_BESIDE_DEPTH, beside};
    return none;
}


/* The index of parts of a function that are such, or a new one. */
static const char *index_of_parts(tcc_func *f, const parting *p)
{
    tcc_ir *ir = f->ir;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        tcc_attr parts = is_reduction(op) ? tcc_attr_list(&op->attrs, "parts") : (tcc_attr){0};
        if (parts.list.n && parts.list.items[1].i == p->count && parts.list.items[2].i == p->depth)
            return parts.list.items[0].s;
    }
    const char *index = tcc_ir_name(ir, "part");
    for (int i = 2; tcc_index_extent(f, index).name || tcc_index_extent(f, index).size >= 0; i++)
        index = tcc_ir_name(ir, tcc_arena_printf(ir->arena, "part%d", i));
    tcc_attr *extent = TCC_NEW_ARRAY(ir->arena, tcc_attr, 2);
    extent[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = index};
    extent[1] = (tcc_attr){.kind = TCC_ATTR_INT, .i = p->count};
    tcc_attr_append(ir, &f->attrs, "extents", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {extent, 2}});
    return index;
}

/* Lets a reduction in parts, each by CTAs of its own, come before it. */
static void part_reduction(tcc_func *f, tcc_op *op, const parting *p)
{
    tcc_ir *ir = f->ir;
    const char *index = index_of_parts(f, p);
    tcc_attr *own = TCC_NEW_ARRAY(ir->arena, tcc_attr, 3);
    own[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = index};
    own[1] = (tcc_attr){.kind = TCC_ATTR_INT, .i = p->count};
    own[2] = (tcc_attr){.kind = TCC_ATTR_INT, .i = p->depth};
    const tcc_type *type = with_indices(ir, op->results[0].type, 1, &index, p->last);
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    tcc_op *inner = tcc_op_create(&b, TCC_OP_tensor_reduce, 1, op->operands, 1, &type);
    for (size_t i = 0; i < op->attrs.len; i++)
        TCC_PUSH(ir->arena, &inner->attrs, op->attrs.data[i]);
    tcc_attr_set(ir, &inner->attrs, "parts", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {own, 3}}, (tcc_loc){0, 0});
    tcc_attr_set_strs(ir, &op->attrs, "over", 1, &index);
    tcc_op_set_operand(op, 0, &inner->results[0]);
}

/* Where a reduction over several indices has more terms than a thread should take. */
static bool nest_reductions(tcc_pass_ctx *ctx, tcc_func *f)
{
    bool any = false;
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = op->next;
        parting p = find_parting(ctx, f, op);
        if (p.count) {
            part_reduction(f, op, &p);
            any = true;
            continue;
        }
        bool many = is_reduction(op) && tcc_attr_list(&op->attrs, "over").list.n > 1 && count_terms(f, op) > FEW_TERMS;
        if (!many || tcc_attr_find(&op->attrs, "parts") || tcc_reduction_is_place(tcc_reduction_of(op)))
            continue;
        const tcc_op *covering = find_covering(ctx, f, op);
        const char *row = find_row(op, covering);
        if (row)
            nest(f, op, row, find_beside(op, covering));
        any |= row != NULL;
    }
    return any;
}

/* ---- cuts --------------------------------------------------------------------------------------- */

static void drop_schedule(tcc_func *f)
{
    for (int i = 0; i < TCC_KEY_COUNT; i++)
        if (i != TCC_KEY_instr && i != TCC_KEY_fuse)
            tcc_attr_remove(&f->attrs, tcc_schedule_keys[i].name);
}

/* A copy of f that is a step before it, after the others. */
static tcc_func *add_step(tcc_func *f, const char *what, tcc_cut why)
{
    tcc_ir *ir = f->ir;
    tcc_attr before = tcc_attr_list(&f->attrs, "before");
    const char **names = TCC_NEW_ARRAY(ir->arena, const char *, before.list.n + 1);
    for (size_t i = 0; i < before.list.n; i++)
        names[i] = before.list.items[i].s;
    const char *name = tcc_arena_printf(ir->arena, "%s__%s", f->name, what);
    for (int i = 2; tcc_func_find(ir, name); i++)
        name = tcc_arena_printf(ir->arena, "%s__%s%d", f->name, what, i);
    tcc_func *step = tcc_func_clone(f, name);
    tcc_attr_remove(&step->attrs, "before");
    tcc_attr_set_int(ir, &step->attrs, "step", 1);
    tcc_attr_set_str(ir, &step->attrs, "kernel", tcc_func_kernel(f));
    tcc_attr_set_str(ir, &step->attrs, "part", step->name);
    tcc_cut_set(step, why);
    drop_schedule(step);
    names[before.list.n] = step->name;
    tcc_attr_set_strs(ir, &f->attrs, "before", before.list.n + 1, names);
    return step;
}

/* The op of a clone that is the same as one of f. */
static tcc_op *op_in(tcc_func *clone, const tcc_func *f, const tcc_op *op)
{
    tcc_op *in = clone->body->first;
    for (const tcc_op *of = f->body->first; of != op; of = of->next)
        in = in->next;
    return in;
}

/* A field's indices in the order in which it is stored: rows run along one that products can be copied along. */
static const tcc_type *stored_order(const tcc_func *f, const tcc_value *v)
{
    const tcc_type *field = v->type;
    const char *row = NULL;
    for (const tcc_op *op = f->body->first; op && !row; op = op->next)
        row = is_reduction(op) ? tcc_product_row_index(op, v) : NULL;
    tcc_dim *dims = TCC_NEW_ARRAY(f->ir->arena, tcc_dim, field->rank);
    unsigned n = 0;
    for (unsigned d = 0; d < field->rank; d++)
        if (!row || strcmp(field->dims[d].name, row))
            dims[n++] = field->dims[d];
    if (n < field->rank)
        dims[n] = (tcc_dim){.name = row};
    return tcc_type_get(f->ir, TCC_KIND_field, field->elem, field->rank, dims);
}

static const tcc_type *stored_type(const tcc_func *f, const tcc_type *field)
{
    tcc_dim *dims = TCC_NEW_ARRAY(f->ir->arena, tcc_dim, field->rank);
    for (unsigned d = 0; d < field->rank; d++)
        dims[d] = tcc_index_extent(f, field->dims[d].name);
    const tcc_type *t = tcc_type_get(f->ir, TCC_KIND_tensor, field->elem, field->rank, dims);
    return field->rank > 1 ? tcc_type_with_row_bytes(f->ir, t, ROW_BYTES) : t;
}

/* Lets what reads the same elements after a read use its value. */
static void join_reads(tcc_op *read)
{
    for (tcc_op *op = read->next; op; op = op->next)
        if (op->code == TCC_OP_tensor_read && tcc_access_same(read, op, NULL, NULL))
            tcc_replace_uses(&op->results[0], &read->results[0]);
}

/* What its tensor in the workspace is called. */
static const char *name_of(const tcc_value *v)
{
    const char *otherwise = is_reduction(v->def)                     ? tcc_attr_str(&v->def->attrs, "kind", "")
                            : v->def->code == TCC_OP_tensor_read     ? TCC_VIEW(tensor_read, v->def)->tensor->name
                                                                     : NULL;
    const tcc_value *named = named_value(v);
    return named ? named->name : otherwise ? otherwise : "value";
}

/* Whether one kernel can reduce the same parts as v is. */
static bool is_parted_with(const tcc_func *f, const tcc_value *v, const tcc_op *op)
{
    if (!is_reduction(v->def) || !is_reduction(op) || !tcc_attr_find(&v->def->attrs, "parts") ||
        !tcc_attr_find(&op->attrs, "parts"))
        return false;
    tcc_dim extent = tcc_index_extent(f, tcc_attr_list(&v->def->attrs, "over").list.items[0].s);
    return tcc_fields_share_space(v->type, op->results[0].type) &&
           tcc_dim_equal(extent, tcc_index_extent(f, tcc_attr_list(&op->attrs, "over").list.items[0].s));
}

/* A field that a step computes. */
typedef struct stored {
    tcc_value *v, *tensor, *same; /* same: in the step */
    const tcc_type *order;        /* of indices in memory */
} stored;

static void write_stored(tcc_func *step, const stored *s)
{
    tcc_builder b = tcc_builder_before(step->body->last);
    b.loc = s->v->def->loc;
    tcc_access_set_field(TCC_EMIT_V(&b, tensor_write, s->same, step->body->args[s->tensor->index]), s->order);
}

static void read_stored(const stored *s)
{
    tcc_builder b = tcc_builder_after(s->v->def);
    b.loc = s->v->def->loc;
    tcc_value *read = TCC_EMIT(&b, tensor_read, s->v->type, s->tensor);
    tcc_access_set_field(read->def, s->order);
    for (tcc_use *u = s->v->uses; u && named_value(s->v); u = u->next) /* it is no longer what the schedule names */
        if (u->op->n_results && &u->op->results[0] == named_value(s->v))
            u->op->results[0].name = NULL;
    tcc_replace_uses(s->v, read);
}

/* Elements of half a byte are not stored: a field of bytes, of which its users compute what they have of v. */
static tcc_value *in_bytes(tcc_value *v)
{
    enum { BYTE_BITS = 8 };
    if (tcc_scalar_bits(v->type->elem) >= BYTE_BITS)
        return v;
    tcc_builder b = tcc_builder_after(v->def);
    tcc_scalar elem = v->type->elem == TCC_u4 ? TCC_u8 : TCC_i8;
    b.loc = v->def->loc;
    const tcc_type *type = tcc_type_get(v->def->block->func->ir, TCC_KIND_field, elem, v->type->rank, v->type->dims);
    tcc_value *wide = TCC_EMIT(&b, arith_cast, type, v);
    for (tcc_use *u = v->uses, *next; u; u = next) {
        next = u->next;
        if (u->op->code == TCC_OP_arith_cast && u->op != wide->def)
            tcc_op_set_operand(u->op, 0, wide);
    }
    return wide;
}

/* Lets a step compute a field, and those that go with it, and f read them. */
static void cut_value(tcc_func *f, const part *p, tcc_arena *scratch)
{
    TCC_VEC(stored) all = {0};
    const tcc_value *cut = in_bytes(p->value);
    if (cut->def->code == TCC_OP_tensor_read)
        join_reads(cut->def);
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (op == cut->def || is_parted_with(f, cut, op)) {
            tcc_value *v = &op->results[0];
            stored s = {.v = v, .order = stored_order(f, v)};
            s.tensor = tcc_func_add_workspace(f, stored_type(f, s.order), name_of(v));
            TCC_PUSH(scratch, &all, s);
        }
    tcc_func *step = add_step(f, name_of(cut), p->why);
    for (size_t i = 0; i < all.len; i++)
        all.data[i].same = &op_in(step, f, all.data[i].v->def)->results[0];
    for (tcc_op *op = step->body->first, *next; op; op = next) {
        next = op->next;
        if (is_write(op))
            tcc_op_erase(op);
    }
    for (size_t i = 0; i < all.len; i++) {
        write_stored(step, &all.data[i]);
        read_stored(&all.data[i]);
    }
    tcc_erase_dead(step, scratch);
    tcc_erase_dead(f, scratch);
}

/* Lets a step write the outputs of an index space. */
static void cut_writes(tcc_func *f, const part *p, tcc_arena *scratch)
{
    tcc_op *write = p->write;
    const tcc_value *tensor = TCC_VIEW(tensor_write, write)->tensor;
    tcc_func *step = add_step(f, tensor->name ? tensor->name : "output", p->why);
    for (tcc_op *op = f->body->first, *in = step->body->first, *next, *next_in; op; op = next, in = next_in) {
        next = op->next;
        next_in = in->next;
        if (is_write(op) && op != write)
            tcc_op_erase(tcc_writes_share_space(op, write) ? op : in);
    }
    tcc_op_erase(write);
    tcc_erase_dead(step, scratch);
    tcc_erase_dead(f, scratch);
}

/* Whether what the schedule separates is there. */
static bool check_separate(tcc_pass_ctx *ctx, const tcc_func *f)
{
    const tcc_named_attr *given = tcc_attr_find(&f->attrs, tcc_schedule_keys[TCC_KEY_separate].name);
    tcc_attr names = tcc_attr_list(&f->attrs, tcc_schedule_keys[TCC_KEY_separate].name);
    for (size_t i = 0; i < names.list.n; i++) {
        const tcc_op *op = f->body->first;
        while (op && !(is_field(op) && op->results[0].name && !strcmp(op->results[0].name, names.list.items[i].s)))
            op = op->next;
        if (op)
            continue;
        tcc_error(ctx->diag, TCC_ERR_TYPE, given->loc, "'%s' cannot be stored: it is a number, or the same as something else",
                  names.list.items[i].s);
        return false;
    }
    return true;
}

/* Whether a value may be stored; if not, the schedule is wrong. */
static bool may_cut(tcc_pass_ctx *ctx, const tcc_func *f, const part *p)
{
    if (!p->value || !is_named(f, TCC_KEY_fuse, p->value))
        return true;
    tcc_error(ctx->diag, TCC_ERR_TYPE, tcc_attr_find(&f->attrs, tcc_schedule_keys[TCC_KEY_fuse].name)->loc,
              "'%s' must be stored: %s", named_value(p->value)->name, tcc_cut_meaning(p->why));
    return false;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    if (tcc_attr_find(&f->attrs, "assumes") || !last_write(f))
        return TCC_OK;
    if (!check_separate(ctx, f))
        return TCC_ERR_TYPE;
    for (part p;; *changed = true) {
        *changed |= nest_reductions(ctx, f);
        if (!find_separate(f) && tcc_rows_recognize(f)) {
            *changed = true;
            return tcc_pass_cse.run(ctx, f, changed); /* of what several names kept apart */
        }
        p = find_part(ctx, f);
        if (!p.value && !p.write)
            return TCC_OK;
        if (!may_cut(ctx, f, &p))
            return TCC_ERR_TYPE;
        if (p.value && is_reduction(p.value->def) && !tcc_attr_find(&p.value->def->attrs, "parts") &&
            p.why != TCC_CUT_separate)
            p.value = tcc_stored_value(ctx->scratch, p.value, p.why != TCC_CUT_nested, is_fused, f);
        if (p.value)
            cut_value(f, &p, ctx->scratch);
        else
            cut_writes(f, &p, ctx->scratch);
    }
}

const tcc_pass tcc_pass_partition = {"partition", "cut what one kernel cannot compute into steps", .run = run};
