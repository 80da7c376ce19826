/* partition: divide reductions that one sweep should not compute, so that cuts come between.
 *
 * Before:  %s = tensor.reduce %x {over = [m, n], kind = sum} : field<f32[b]>
 * After:   %r = tensor.reduce %x {over = [n], kind = sum} : field<f32[b, m]>       // rows side by side
 *          %s = tensor.reduce %r {over = [m], kind = sum} : field<f32[b]>
 * or, of one index:
 *          %r = tensor.reduce %x {over = [n], parts = [part, 1024, 4096], kind = sum} : field<f32[part]>
 *          %s = tensor.reduce %r {over = [part], kind = sum} : field<f32[]>
 *
 * argmax and argmin of rows become two reductions (places.c).
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/index_dim.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/partition.h"
#include "passes/rows.h"
#include "passes/slice.h"
#include "passes/space.h"

enum { FEW_TERMS = 32 /* that each element may as well reduce itself */ };

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

bool tcc_has_few_terms(const tcc_func *f, const tcc_op *reduce)
{
    return count_terms(f, reduce) <= FEW_TERMS;
}

static bool is_over(const tcc_op *reduce, const char *index)
{
    tcc_attr over = tcc_attr_list(&reduce->attrs, "over");
    bool is = false;
    for (size_t i = 0; i < over.list.n; i++)
        is |= tcc_index_same(over.list.items[i].s, index);
    return is;
}

/* The first tensor that has all indices of a reduction's terms. */
static const tcc_op *find_covering(tcc_arena *scratch, const tcc_func *f, const tcc_op *reduce)
{
    tcc_attr over = tcc_attr_list(&reduce->attrs, "over");
    const tcc_type *terms = TCC_VIEW(tensor_reduce, reduce)->a->type;
    tcc_map slice = tcc_slice_of(scratch, 1, reduce->operands);
    bool all = terms->kind == TCC_KIND_field;
    for (size_t i = 0; i < over.list.n && all; i++)
        all &= tcc_field_has_index(terms, over.list.items[i].s);
    const tcc_op *op = all ? f->body->first : NULL;
    while (op && !(op->code == TCC_OP_tensor_read && tcc_map_get(&slice, op) &&
                   op->results[0].type->rank == terms->rank && tcc_access_is_plain(op)))
        op = op->next;
    return op;
}

/* Of the indices over which op reduces the innermost of a tensor that has all indices of the terms; NULL: no
 * tensor has them, and what is reduced over one of them may be larger than all. */
static const char *find_row(const tcc_op *reduce, const tcc_op *covering)
{
    const char *row = NULL;
    for (size_t d = covering ? tcc_access_rank(covering) : 0; d-- && !row;)
        row = is_over(reduce, tcc_access_index(covering, d)) ? tcc_access_index(covering, d) : NULL;
    return row;
}

const tcc_type *tcc_field_with_indices(tcc_ir *ir, const tcc_type *field, size_t n, const char *const *more,
                                       const char *last)
{
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, field->rank + n);
    unsigned rank = 0;
    for (size_t i = 0; i < n && last; i++)
        dims[rank++] = (tcc_dim){.name = more[i]};
    for (unsigned d = 0; d < field->rank; d++)
        if (!last || !tcc_index_same(field->dims[d].name, last))
            dims[rank++] = field->dims[d];
    for (size_t i = 0; i < n && !last; i++)
        dims[rank++] = (tcc_dim){.name = more[i]};
    if (last)
        dims[rank++] = (tcc_dim){.name = last};
    return tcc_type_get(ir, TCC_KIND_field, field->elem, rank, dims);
}

/* Lets another reduction take the index `row` before op takes the others: rows are reduced side by side. Where memory
 * is contiguous along another index, `beside`, what they are reduced to is, too. */
static void nest(tcc_func *f, tcc_op *op, const char *row, const char *beside)
{
    tcc_attr over = tcc_attr_list(&op->attrs, "over");
    const tcc_type *r = op->results[0].type;
    const char **others = TCC_NEW_ARRAY(f->ir->arena, const char *, over.list.n);
    size_t n = 0;
    for (size_t i = 0; i < over.list.n; i++)
        if (!tcc_index_same(over.list.items[i].s, row))
            others[n++] = over.list.items[i].s;
    const tcc_type *type = tcc_field_with_indices(f->ir, r, n, others, beside);
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
    tcc_dim extent;       /* of the parts' index: if there are more parts, the others have no terms */
    const char *last;     /* index of the parts; NULL: they are numbers */
} parting;

/* As many parts of rows beside each other as there are terms for. */
static tcc_dim extent_of_parts(tcc_ir *ir, tcc_dim terms)
{
    const tcc_index_expr *of = tcc_index_of_dim(ir, terms), *depth = tcc_index_number(ir, TCC_ROWS_BESIDE_DEPTH);
    tcc_dim extent = {NULL, 0};
    of = of ? tcc_index_add(ir, of, tcc_index_number(ir, TCC_ROWS_BESIDE_DEPTH - 1)) : NULL;
    of = of ? tcc_index_div(ir, of, depth) : NULL;
    return of && tcc_dim_of_index(ir, of, &extent) ? extent : (tcc_dim){NULL, TCC_ROWS_PARTS};
}

/* Whether an extent is that of the parts of something, which are not divided again. */
static bool is_of_parts(const tcc_func *f, tcc_dim extent)
{
    bool is = false;
    for (size_t i = 0; i < f->body->n_args && !is; i++) {
        const tcc_type *t = f->body->args[i]->type;
        for (unsigned d = 0; d < t->rank && t->kind == TCC_KIND_tensor && !is; d++)
            is = t->dims[d].name && tcc_dim_equal(extent, extent_of_parts(f->ir, t->dims[d]));
    }
    return is;
}

/* Whether a field has few elements for each value of an index. */
static bool is_small_but(const tcc_func *f, const tcc_type *field, const char *index)
{
    enum { FEW = 16 };
    int64_t n = 1;
    for (unsigned d = 0; d < field->rank; d++) {
        tcc_dim extent = tcc_index_extent(f, field->dims[d].name);
        if (tcc_index_same(field->dims[d].name, index))
            continue;
        if (extent.name || extent.size > FEW)
            return false;
        n *= extent.size;
    }
    return n <= FEW;
}

/* Reductions of so many numbers of one tensor that a CTA should not combine them by itself: sums of everything, and
 * those of rows beside each other, of which few CTAs have all, but with so few others that parts take little memory. */
static parting find_parting(tcc_arena *scratch, const tcc_func *f, const tcc_op *op)
{
    const parting none = {0};
    tcc_attr over = tcc_is_reduction(op) ? tcc_attr_list(&op->attrs, "over") : (tcc_attr){0};
    if (over.list.n != 1 || op->n_operands > 1 || tcc_schedule_names(f, TCC_KEY_fuse, &op->results[0]) ||
        tcc_attr_find(&op->attrs, "parts") || tcc_product_is(op) || tcc_reduction_is_place(tcc_reduction_of(op)))
        return none;
    for (const tcc_op *in = f->body->first; in != op; in = in->next)
        if (tcc_is_reduction(in) && tcc_slice_has(scratch, op, in))
            return none;
    tcc_dim extent = tcc_index_extent(f, over.list.items[0].s);
    bool is_number = !op->results[0].type->rank;
    const tcc_op *covering = find_covering(scratch, f, op);
    tcc_map of = tcc_slice_of(scratch, op->n_operands, op->operands);
    bool exceeds_row = extent.name || extent.size > TCC_ROWS_MOST_COLUMNS;
    if (is_number && exceeds_row && covering && tcc_rows_can_reduce(op, &of, false))
        return (parting){TCC_ROWS_PARTS, TCC_ROWS_SWEPT_COLUMNS, {NULL, TCC_ROWS_PARTS}, NULL};
    const char *beside = find_beside(op, covering);
    bool is_long = extent.name ? !is_of_parts(f, extent) : extent.size > TCC_ROWS_BESIDE_DEPTH;
    bool tiled = tcc_attr_find(&f->attrs, tcc_schedule_keys[TCC_KEY_tile].name); /* by what computes it term by term */
    if (beside && is_long && !tiled && is_small_but(f, op->results[0].type, beside) &&
        tcc_rows_can_reduce(op, &of, true))
        return (parting){TCC_ROWS_BESIDE_PARTS, TCC_ROWS_BESIDE_DEPTH, extent_of_parts(f->ir, extent), beside};
    return none;
}

/* The index of parts of a function that are such, or a new one. */
static const char *index_of_parts(tcc_func *f, const parting *p)
{
    tcc_ir *ir = f->ir;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        tcc_attr parts = tcc_is_reduction(op) ? tcc_attr_list(&op->attrs, "parts") : (tcc_attr){0};
        if (parts.list.n && parts.list.items[1].i == p->count && parts.list.items[2].i == p->depth &&
            tcc_dim_equal(p->extent, tcc_index_extent(f, parts.list.items[0].s)))
            return parts.list.items[0].s;
    }
    const char *index = tcc_free_index(f, "part");
    tcc_attr *extent = TCC_NEW_ARRAY(ir->arena, tcc_attr, 2);
    extent[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = index};
    extent[1] = tcc_attr_of_dim(p->extent);
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
    const tcc_type *type = tcc_field_with_indices(ir, op->results[0].type, 1, &index, p->last);
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    tcc_op *inner = tcc_op_create(&b, TCC_OP_tensor_reduce, 1, op->operands, 1, &type);
    for (size_t i = 0; i < op->attrs.len; i++)
        TCC_PUSH(ir->arena, &inner->attrs, op->attrs.data[i]);
    tcc_attr_set(ir, &inner->attrs, "parts", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {own, 3}}, (tcc_loc){0, 0});
    tcc_attr_set_strs(ir, &op->attrs, "over", 1, &index);
    tcc_op_set_operand(op, 0, &inner->results[0]);
}

/* Whether an argmax is of rows, or of rows beside each other that a thread should not read from end to end. */
static bool should_expand(tcc_arena *scratch, const tcc_func *f, const tcc_op *op)
{
    if (!tcc_is_reduction(op) || !tcc_reduction_is_place(tcc_reduction_of(op)) || tcc_is_naive(f))
        return false;
    tcc_map of = tcc_slice_of(scratch, op->n_operands, op->operands);
    tcc_dim extent = tcc_index_extent(f, tcc_attr_list(&op->attrs, "over").list.items[0].s);
    if (tcc_rows_can_reduce(op, &of, false))
        return extent.name || extent.size >= TCC_ROWS_FEWEST;
    bool is_long = extent.name || extent.size > TCC_ROWS_BESIDE_DEPTH;
    return is_long && find_beside(op, find_covering(scratch, f, op)) && tcc_rows_can_reduce(op, &of, true);
}

static bool expand_places(tcc_arena *scratch, tcc_func *f)
{
    bool any = false;
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = op->next;
        if (!should_expand(scratch, f, op))
            continue;
        tcc_place_expand(op);
        any = true;
    }
    return any;
}

bool tcc_nest_reductions(tcc_arena *scratch, tcc_func *f)
{
    bool any = expand_places(scratch, f);
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = op->next;
        parting p = find_parting(scratch, f, op);
        if (p.count) {
            part_reduction(f, op, &p);
            any = true;
            continue;
        }
        bool many = tcc_is_reduction(op) && tcc_attr_list(&op->attrs, "over").list.n > 1 && !tcc_has_few_terms(f, op);
        if (!many || tcc_attr_find(&op->attrs, "parts") || tcc_reduction_is_place(tcc_reduction_of(op)))
            continue;
        const tcc_op *covering = find_covering(scratch, f, op);
        const char *row = find_row(op, covering);
        if (row)
            nest(f, op, row, find_beside(op, covering));
        any |= row != NULL;
    }
    return any;
}
