/* partition: rows of several heads as rows of one tile, where these heads multiply the same elements.
 *
 * Before:  func @f(%Q: tensor<bf16[B, H, S, D]>, %K: tensor<bf16[B, G, T, D]>, …) {…} {
 *            %q = tensor.read %Q {map = [b, h, i, d]} : field<bf16[b, h, i, d]>
 *            %k = tensor.read %K {map = [b, h / ($H / $G), j, d]} : field<bf16[b, h, j, d]>
 * After:   func @f(%Q: tensor<bf16[B, (H / (H / G)), (H / G) * S, D]>, …) {args = [[Q, bf16, [B, H, S, D]], …], …} {
 *            %q = tensor.read %Q {map = [b, group, row, d]} : field<bf16[b, group, row, d]>
 *            %k = tensor.read %K {map = [b, group, j, d]} : field<bf16[b, group, j, d]>
 *
 * A head is group * (H / G) + row / S, and i is row - row / S * S: what is computed of these is, of the new indices. A
 * tensor that has both has them side by side, so that one dimension has the rows of a group; groups are whole, which a
 * launch is checked for.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/pack_rows.h"

#include "ir/access.h"
#include "ir/index_dim.h"
#include "ir/index_value.h"
#include "ir/reduction.h"
#include "ir/signature.h"
#include "passes/arith.h"
#include "passes/cascade.h"
#include "passes/products.h"

typedef struct packing {
    tcc_func *f;
    const char *head, *row;               /* indices that there are */
    const char *group, *packed;           /* that there will be */
    const tcc_index_expr *by;             /* heads of a group */
    tcc_dim heads, rows, groups, in_group; /* extents of the four */
} packing;

static bool is_head(const packing *p, const char *x)
{
    return x && tcc_index_same(x, p->head);
}

static bool is_row(const packing *p, const char *x)
{
    return x && tcc_index_same(x, p->row);
}

/* ---- what can be packed ---------------------------------------------------------------------- */

/* The dimension at which an access has the head, and the row after it; -1: it does not. */
static int place_of(const packing *p, const tcc_op *access)
{
    for (size_t d = 0; d + 1 < tcc_access_rank(access); d++)
        if (is_head(p, tcc_access_index(access, d)) && is_row(p, tcc_access_index(access, d + 1)))
            return (int)d;
    return -1;
}

/* How many of an access's coordinates have an index. */
static size_t count(const tcc_op *access, const char *index)
{
    size_t n = 0;
    for (size_t d = 0; d < tcc_access_rank(access); d++)
        n += tcc_index_has(tcc_access_expr(access, d), TCC_FACTOR_INDEX, index);
    return n;
}

/* The divisor of a head by which one of a read's coordinates is a quotient; NULL: it is none. */
static const tcc_index_expr *divisor_of(const packing *p, const tcc_op *read)
{
    const tcc_index_expr *by = NULL;
    for (size_t d = 0; d < tcc_access_rank(read) && !by; d++) {
        const tcc_index_expr *x = tcc_access_expr(read, d);
        const tcc_index_factor *q = x->n == 1 && x->terms[0].n == 1 ? &x->terms[0].factors[0] : NULL;
        if (q && x->terms[0].number == 1 && q->kind == TCC_FACTOR_QUOTIENT && is_head(p, tcc_index_plain(q->of)))
            by = q->by;
    }
    return by;
}

/* Whether an access has neither index, both side by side, or, as a read, the head divided alone. */
static bool can_pack_access(const packing *p, const tcc_op *access)
{
    size_t heads = count(access, p->head), rows = count(access, p->row);
    const tcc_value *tensor = tcc_accessed_tensor(access);
    bool is_plain = heads == 1 && rows == 1 && place_of(p, access) >= 0 && !tensor->type->strides;
    bool is_divided = heads == 1 && !rows && access->code == TCC_OP_tensor_read && divisor_of(p, access) &&
                      tcc_index_equal(divisor_of(p, access), p->by);
    for (unsigned i = 1; access->code == TCC_OP_tensor_read && i < access->n_operands; i++)
        is_plain = is_divided = false;
    return (!heads && !rows) || is_divided || is_plain;
}

/* Whether all that accesses a tensor has the indices where this does. */
static bool is_alike(const packing *p, const tcc_op *access)
{
    bool alike = true;
    for (const tcc_use *u = tcc_accessed_tensor(access)->uses; u && alike; u = u->next)
        alike = tcc_accessed_tensor(u->op) == tcc_accessed_tensor(access) && place_of(p, u->op) == place_of(p, access);
    return alike;
}

/* The index by which the tensors that scores and sums read along the stream have heads in groups. */
static bool find_head(packing *p, const tcc_cascade *c)
{
    const tcc_op *read = c->scores[0].of[1].value->def;
    for (unsigned d = 0; d < read->results[0].type->rank && !p->by; d++) {
        p->head = read->results[0].type->dims[d].name;
        p->by = divisor_of(p, read);
    }
    return p->by;
}

static bool find_extents(packing *p)
{
    tcc_ir *ir = p->f->ir;
    p->heads = tcc_index_extent(p->f, p->head);
    p->rows = tcc_index_extent(p->f, p->row);
    const tcc_index_expr *heads = tcc_index_of_dim(ir, p->heads), *rows = tcc_index_of_dim(ir, p->rows);
    const tcc_index_expr *groups = heads ? tcc_index_div(ir, heads, p->by) : NULL;
    const tcc_index_expr *in_group = rows ? tcc_index_mul(ir, p->by, rows) : NULL;
    return groups && in_group && tcc_dim_of_index(ir, groups, &p->groups) &&
           tcc_dim_of_index(ir, in_group, &p->in_group);
}

static bool can_pack(packing *p, const tcc_cascade *c)
{
    bool all = find_head(p, c) && find_extents(p);
    for (const tcc_op *op = p->f->body->first; op && all; op = op->next)
        if (tcc_accessed_tensor(op))
            all = can_pack_access(p, op) && (place_of(p, op) < 0 || is_alike(p, op));
        else if (tcc_is_reduction(op))
            all = !is_head(p, tcc_attr_list(&op->attrs, "over").list.items[0].s);
    return all;
}

/* ---- the change ------------------------------------------------------------------------------ */

/* Whole groups: all heads but those of whole groups are none. */
static void require_whole(const packing *p)
{
    tcc_ir *ir = p->f->ir;
    const tcc_index_expr *heads = tcc_index_of_dim(ir, p->heads);
    const tcc_index_expr *whole = tcc_index_mul(ir, tcc_index_div(ir, heads, p->by), p->by);
    tcc_dim rest;
    if (!tcc_dim_of_index(ir, tcc_index_sub(ir, heads, whole), &rest) || !rest.name)
        return;
    tcc_attr *items = TCC_NEW_ARRAY(ir->arena, tcc_attr, 5);
    items[4] = (tcc_attr){.kind = TCC_ATTR_STR, .s = rest.name};
    items[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(ir, "span")};
    items[1] = (tcc_attr){.kind = TCC_ATTR_LIST, .list = {&items[4], 1}};
    items[2] = (tcc_attr){.kind = TCC_ATTR_INT, .i = 1};
    items[3] = (tcc_attr){.kind = TCC_ATTR_INT, .i = 0};
    tcc_attr_append(ir, &p->f->attrs, "requires", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, 4}});
}

static void add_extent(const packing *p, const char *index, tcc_dim extent)
{
    tcc_attr *pair = TCC_NEW_ARRAY(p->f->ir->arena, tcc_attr, 2);
    pair[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = index};
    pair[1] = tcc_attr_of_dim(extent);
    tcc_attr_append(p->f->ir, &p->f->attrs, "extents", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {pair, 2}});
}

static void pack_tensor(const packing *p, tcc_value *tensor, size_t at)
{
    tcc_ir *ir = p->f->ir;
    const tcc_type *t = tensor->type;
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, t->rank);
    for (unsigned d = 0; d < t->rank; d++)
        dims[d] = d == at ? p->groups : d == at + 1 ? p->in_group : t->dims[d];
    tensor->type = tcc_type_with_row_bytes(ir, tcc_type_get(ir, t->kind, t->elem, t->rank, dims), t->row_bytes);
}

/* A field with the new indices in the old ones' places. */
static const tcc_type *packed_type(const packing *p, const tcc_type *t)
{
    tcc_dim *dims = TCC_NEW_ARRAY(p->f->ir->arena, tcc_dim, t->rank);
    for (unsigned d = 0; d < t->rank; d++) {
        dims[d] = t->dims[d];
        dims[d].name = is_head(p, dims[d].name) ? p->group : is_row(p, dims[d].name) ? p->packed : dims[d].name;
    }
    return tcc_type_get(p->f->ir, TCC_KIND_field, t->elem, t->rank, dims);
}

/* An operand may have got the rows of a group, or lost the head. */
static void adapt_type(const packing *p, tcc_op *op)
{
    tcc_ir *ir = p->f->ir;
    const tcc_type *t = packed_type(p, op->results[0].type);
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, t->rank + 2u);
    const char *const both[] = {p->group, p->packed};
    unsigned n = 0;
    for (unsigned d = 0; d < t->rank; d++)
        if (!tcc_index_same(t->dims[d].name, p->group) && !tcc_index_same(t->dims[d].name, p->packed))
            dims[n++] = t->dims[d];
    for (int x = 0; x < 2; x++) {
        bool has = false;
        for (unsigned i = 0; i < op->n_operands; i++)
            has |= op->operands[i]->type->kind == TCC_KIND_field && tcc_field_has_index(op->operands[i]->type, both[x]);
        unsigned at = 0; /* where it was, else before the last */
        while (at < t->rank && !tcc_index_same(t->dims[at].name, both[x]))
            at++;
        at = at < n ? at : n;
        for (unsigned d = n; has && d > at; d--)
            dims[d] = dims[d - 1];
        if (has)
            dims[at] = (tcc_dim){.name = both[x]};
        n += has;
    }
    op->results[0].type = tcc_type_get(ir, TCC_KIND_field, t->elem, n, dims);
}

static tcc_value *build_index(tcc_builder *b, const char *name)
{
    const tcc_dim dim = {.name = name};
    tcc_value *v = TCC_EMIT(b, tensor_index, tcc_type_get(b->func->ir, TCC_KIND_field, TCC_i32, 1, &dim), NULL);
    tcc_attr_set_str(b->func->ir, &v->def->attrs, "name", name);
    return v;
}

/* The number of what is now an index of groups and of rows in these. */
static void replace_index(const packing *p, tcc_op *op)
{
    tcc_ir *ir = p->f->ir;
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    tcc_value *row = build_index(&b, p->packed), *rows = tcc_build_extent(&b, p->rows);
    tcc_value *of_group = TCC_EMIT(&b, arith_floor_div, row->type, row, rows), *v;
    if (is_row(p, tcc_attr_str(&op->attrs, "name", NULL))) {
        v = TCC_EMIT(&b, arith_mul, row->type, of_group, rows);
        v = TCC_EMIT(&b, arith_sub, row->type, row, v);
    } else {
        tcc_value *group = build_index(&b, p->group);
        tcc_dim by;
        tcc_dim_of_index(ir, p->by, &by);
        v = TCC_EMIT(&b, arith_mul, group->type, group, tcc_build_extent(&b, by));
        const tcc_dim dims[] = {{.name = p->group}, {.name = p->packed}};
        v = TCC_EMIT(&b, arith_add, tcc_type_get(ir, TCC_KIND_field, TCC_i32, 2, dims), v, of_group);
    }
    tcc_replace_uses(&op->results[0], v);
}

/* Lets what divides the head as tensors in groups are read be the group. */
static void replace_groups(const packing *p)
{
    const tcc_index_expr *group = tcc_index_div(p->f->ir, tcc_index_name(p->f->ir, p->head), p->by);
    for (tcc_op *op = p->f->body->first; op; op = op->next) {
        const tcc_index_expr *x = op->code == TCC_OP_arith_floor_div ? tcc_index_of_value(&op->results[0]) : NULL;
        tcc_builder b = tcc_builder_before(op);
        b.loc = op->loc;
        if (x && tcc_index_equal(x, group))
            tcc_replace_uses(&op->results[0], build_index(&b, p->group));
    }
}

static void pack_op(const packing *p, tcc_op *op)
{
    int at = tcc_accessed_tensor(op) ? place_of(p, op) : -1;
    if (tcc_accessed_tensor(op)) {
        if (at < 0 && count(op, p->head))
            tcc_access_replace(op, p->head, tcc_index_mul(p->f->ir, tcc_index_name(p->f->ir, p->group), p->by));
        tcc_access_rename(op, p->head, p->group);
        tcc_access_rename(op, p->row, p->packed);
        if (op->n_results)
            op->results[0].type = packed_type(p, op->results[0].type);
    } else if (op->code == TCC_OP_tensor_index) {
        const char *name = tcc_attr_str(&op->attrs, "name", NULL);
        if (is_head(p, name) || is_row(p, name))
            replace_index(p, op);
    } else if (tcc_has_field(op)) {
        adapt_type(p, op);
    }
}

bool tcc_pack_rows(tcc_func *f)
{
    tcc_cascade c;
    packing p = {.f = f};
    if (!tcc_cascade_of(f, &c))
        return false;
    p.row = c.rows;
    if (!can_pack(&p, &c))
        return false;
    p.group = tcc_free_index(f, "group");
    p.packed = tcc_free_index(f, "row");
    tcc_func_record_args(f);
    require_whole(&p);
    add_extent(&p, p.group, p.groups);
    add_extent(&p, p.packed, p.in_group);
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_use *u = f->body->args[i]->uses;
        int at = u && tcc_accessed_tensor(u->op) == f->body->args[i] ? place_of(&p, u->op) : -1;
        if (at >= 0)
            pack_tensor(&p, f->body->args[i], (size_t)at);
    }
    replace_groups(&p);
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = op->next;
        pack_op(&p, op);
    }
    return true;
}
