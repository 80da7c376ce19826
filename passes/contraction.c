/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/contraction.h"

#include <string.h>

int tcc_map_position(const tcc_op *access, const char *name)
{
    tcc_attr map = tcc_attr_list(&access->attrs, "map");
    for (size_t i = 0; i < map.list.n; i++)
        if (!strcmp(map.list.items[i].s, name))
            return (int)i;
    return -1;
}

bool tcc_field_has_index(const tcc_type *field, const char *name)
{
    for (unsigned i = 0; i < field->rank; i++)
        if (!strcmp(field->dims[i].name, name))
            return true;
    return false;
}

bool tcc_read_is_contiguous_in(const tcc_op *read, const char *x, const char *y)
{
    tcc_attr map = tcc_attr_list(&read->attrs, "map");
    if (!map.list.n)
        return false;
    const char *last = map.list.items[map.list.n - 1].s;
    return !strcmp(last, x) || !strcmp(last, y);
}

/* The tensor.read behind v, through casts that keep every number. */
static tcc_op *read_of(const tcc_value *v)
{
    while (v->def && v->def->code == TCC_OP_arith_cast) {
        const tcc_value *a = TCC_VIEW(arith_cast, v->def)->a;
        if (!tcc_scalar_widens(a->type->elem, v->type->elem))
            return NULL;
        v = a;
    }
    return v->def && v->def->code == TCC_OP_tensor_read ? v->def : NULL;
}

static tcc_dim extent_in(const tcc_op *read, const char *index)
{
    return TCC_VIEW(tensor_read, read)->tensor->type->dims[tcc_map_position(read, index)];
}

/* The indices of the sum in the order in which an output stores them: of the first write that
 * has all of them, else of the sum itself. */
static tcc_attr output_order(const tcc_func *f, const tcc_op *sum)
{
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write) {
            tcc_attr map = tcc_attr_list(&op->attrs, "map");
            if (map.list.n == sum->results[0].type->rank)
                return map;
        }
    const tcc_type *t = sum->results[0].type;
    tcc_attr *items = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, t->rank);
    for (unsigned i = 0; i < t->rank; i++)
        items[i] = (tcc_attr){.kind = TCC_ATTR_STR, .s = t->dims[i].name};
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, t->rank}};
}

/* Whether the schedule names a tile size for this index. */
static bool is_tiled(const tcc_func *f, const char *index)
{
    tcc_attr tile = tcc_attr_list(&f->attrs, "tile");
    for (size_t i = 0; i + 1 < tile.list.n; i += 2)
        if (!strcmp(tile.list.items[i].s, index))
            return true;
    return false;
}

/* The innermost output index that `own` has and `other` has not; one that the schedule tiles comes
 * before all others. NULL when there is none. */
static const char *own_index(const tcc_func *f, tcc_attr order, const tcc_op *own,
                             const tcc_op *other)
{
    const char *found = NULL;
    for (size_t i = 0; i < order.list.n; i++) {
        const char *x = order.list.items[i].s;
        if (tcc_map_position(own, x) >= 0 && tcc_map_position(other, x) < 0 &&
            !(found && is_tiled(f, found) && !is_tiled(f, x)))
            found = x;
    }
    return found;
}

/* Place of an index in the output, -1 for no index. */
static int place_in(tcc_attr order, const char *x)
{
    for (size_t i = 0; x && i < order.list.n; i++)
        if (!strcmp(order.list.items[i].s, x))
            return (int)i;
    return -1;
}

bool tcc_contraction_find(const tcc_func *f, tcc_contraction *out)
{
    *out = (tcc_contraction){0};
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_sum) {
            if (out->sum)
                return false;
            out->sum = op;
        }
    if (!out->sum)
        return false;
    const tcc_op *product = TCC_VIEW(tensor_sum, out->sum)->a->def;
    tcc_attr over = tcc_attr_list(&out->sum->attrs, "over");
    if (!product || product->code != TCC_OP_arith_mul || over.list.n != 1)
        return false;
    out->k = over.list.items[0].s;
    out->products = product->results[0].type->elem;
    out->a = read_of(TCC_VIEW(arith_mul, product)->a);
    out->b = read_of(TCC_VIEW(arith_mul, product)->b);
    if (!out->a || !out->b || tcc_map_position(out->a, out->k) < 0 ||
        tcc_map_position(out->b, out->k) < 0)
        return false;
    out->k_extent = extent_in(out->a, out->k);

    tcc_attr order = output_order(f, out->sum);
    const char *m = own_index(f, order, out->a, out->b), *n = own_index(f, order, out->b, out->a);
    if (place_in(order, m) > place_in(order, n)) { /* n lies inside m, and B has it */
        tcc_op *a = out->a;
        const char *x = m;
        out->a = out->b;
        out->b = a;
        m = n;
        n = x;
    }
    out->axes[0] = m ? m : "";
    out->extents[0] = m ? extent_in(out->a, m) : (tcc_dim){NULL, 1};
    out->axes[1] = n ? n : "";
    out->extents[1] = n ? extent_in(out->b, n) : (tcc_dim){NULL, 1};
    out->n_axes = 2;
    for (size_t i = 0; i < order.list.n; i++) {
        const char *x = order.list.items[i].s;
        if ((m && !strcmp(x, m)) || (n && !strcmp(x, n)))
            continue;
        if (out->n_axes == TCC_MAX_AXES)
            return false;
        out->axes[out->n_axes] = x;
        out->extents[out->n_axes++] =
            extent_in(tcc_map_position(out->a, x) >= 0 ? out->a : out->b, x);
    }
    return true;
}
