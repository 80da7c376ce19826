/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/access.h"

const tcc_value *tcc_accessed_tensor(const tcc_op *op)
{
    return op->code == TCC_OP_tensor_read    ? TCC_VIEW(tensor_read, op)->tensor
           : op->code == TCC_OP_tensor_write ? TCC_VIEW(tensor_write, op)->tensor
                                             : NULL;
}

static tcc_attr map_of(const tcc_op *access)
{
    return tcc_attr_list(&access->attrs, "map");
}

size_t tcc_access_rank(const tcc_op *access)
{
    return tcc_accessed_tensor(access) ? map_of(access).list.n : 0;
}

/* ---- one coordinate ---------------------------------------------------------------------- */

const tcc_index_expr *tcc_access_expr(const tcc_op *access, size_t d)
{
    return tcc_index_of_attr(access->block->func->ir, map_of(access).list.items[d]);
}

static int loaded_at(const tcc_attr *loaded, size_t d)
{
    for (size_t i = 0; i < loaded->list.n; i++)
        if (loaded->list.items[i].i == (int64_t)d)
            return (int)i;
    return -1;
}

tcc_value *tcc_access_loaded(const tcc_op *access, size_t d)
{
    tcc_attr loaded = tcc_attr_list(&access->attrs, "loaded");
    int at = loaded_at(&loaded, d);
    return at < 0 ? NULL : access->operands[1 + at]; /* after the tensor */
}

static const char *index_in(const tcc_attr *map, const tcc_attr *loaded, size_t d)
{
    return map->list.items[d].kind == TCC_ATTR_STR && loaded_at(loaded, d) < 0 ? map->list.items[d].s : NULL;
}

const char *tcc_access_index(const tcc_op *access, size_t d)
{
    tcc_attr map = map_of(access), loaded = tcc_attr_list(&access->attrs, "loaded");
    return index_in(&map, &loaded, d);
}

const char *tcc_access_last(const tcc_op *access)
{
    size_t n = tcc_access_rank(access);
    return n && tcc_type_has_rows(tcc_accessed_tensor(access)->type) ? tcc_access_index(access, n - 1) : NULL;
}

/* ---- all of them --------------------------------------------------------------------------- */

bool tcc_access_is_plain(const tcc_op *access)
{
    bool plain = true; /* also of other ops */
    for (size_t d = 0; d < tcc_access_rank(access) && plain; d++) {
        const char *index = tcc_access_index(access, d);
        plain = index && tcc_map_position(access, index) == (int)d;
    }
    return plain;
}

int tcc_map_position(const tcc_op *access, const char *index)
{
    if (!tcc_accessed_tensor(access))
        return -1;
    tcc_attr map = map_of(access), loaded = tcc_attr_list(&access->attrs, "loaded");
    for (size_t d = 0; d < map.list.n; d++) {
        const char *own = index_in(&map, &loaded, d);
        if (own && tcc_index_same(own, index))
            return (int)d;
    }
    return -1;
}

bool tcc_access_computes_with(const tcc_op *access, const char *index)
{
    bool has = false;
    for (size_t d = 0; d < tcc_access_rank(access) && !has; d++)
        has = !tcc_access_index(access, d) && tcc_index_has(tcc_access_expr(access, d), TCC_FACTOR_INDEX, index);
    return has;
}

bool tcc_access_same(const tcc_op *x, const tcc_op *y, const char *x_index, const char *y_index)
{
    tcc_ir *ir = y->block->func->ir;
    bool same = tcc_accessed_tensor(x) == tcc_accessed_tensor(y);
    for (size_t d = 0; d < tcc_access_rank(x) && same; d++) {
        const tcc_index_expr *own = tcc_access_expr(y, d);
        if (y_index)
            own = tcc_index_replace(ir, own, TCC_FACTOR_INDEX, y_index, tcc_index_name(ir, x_index));
        same = own && tcc_index_equal(tcc_access_expr(x, d), own) &&
               tcc_access_loaded(x, d) == tcc_access_loaded(y, d);
    }
    return same;
}

void tcc_access_remove(tcc_op *access, size_t d)
{
    tcc_ir *ir = access->block->func->ir;
    tcc_attr map = map_of(access), loaded = tcc_attr_list(&access->attrs, "loaded");
    tcc_attr *left = TCC_NEW_ARRAY(ir->arena, tcc_attr, map.list.n);
    int64_t *dims = TCC_NEW_ARRAY(ir->arena, int64_t, loaded.list.n + 1);
    for (size_t i = 0; i + 1 < map.list.n; i++)
        left[i] = map.list.items[i + (i >= d)];
    map = (tcc_attr){.kind = TCC_ATTR_LIST, .list = {left, map.list.n - 1}};
    tcc_attr_set(ir, &access->attrs, "map", map, (tcc_loc){0, 0});
    for (size_t i = 0; i < loaded.list.n; i++)
        dims[i] = loaded.list.items[i].i - (loaded.list.items[i].i > (int64_t)d);
    if (loaded.list.n)
        tcc_attr_set_ints(ir, &access->attrs, "loaded", loaded.list.n, dims);
}

tcc_attr tcc_access_indices(const tcc_op *write)
{
    return map_of(write);
}

void tcc_access_set_indices(tcc_op *access, size_t n, const char *const *indices)
{
    tcc_attr_set_strs(access->block->func->ir, &access->attrs, "map", n, indices);
}

void tcc_access_set_field(tcc_op *access, const tcc_type *field)
{
    const char **names = TCC_NEW_ARRAY(access->block->func->ir->arena, const char *, field->rank);
    for (unsigned d = 0; d < field->rank; d++)
        names[d] = field->dims[d].name;
    tcc_access_set_indices(access, field->rank, names);
}

static tcc_attr renamed(tcc_ir *ir, const tcc_attr *coordinate, const char *index, const char *as)
{
    tcc_attr a = *coordinate;
    if (a.kind == TCC_ATTR_STR)
        a.s = tcc_index_same(a.s, index) ? as : a.s;
    else if (a.kind == TCC_ATTR_INDEX)
        a.index = tcc_index_replace(ir, a.index, TCC_FACTOR_INDEX, index, tcc_index_name(ir, as));
    return a;
}

void tcc_access_rename(tcc_op *access, const char *index, const char *as)
{
    tcc_ir *ir = access->block->func->ir;
    tcc_attr map = map_of(access);
    tcc_attr *items = TCC_NEW_ARRAY(ir->arena, tcc_attr, map.list.n);
    for (size_t d = 0; d < map.list.n; d++)
        items[d] = renamed(ir, &map.list.items[d], index, as);
    map = (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, map.list.n}};
    tcc_attr_set(ir, &access->attrs, "map", map, (tcc_loc){0, 0});
}

void tcc_access_replace(tcc_op *access, const char *index, const tcc_index_expr *by)
{
    tcc_ir *ir = access->block->func->ir;
    size_t rank = tcc_access_rank(access);
    tcc_attr *items = TCC_NEW_ARRAY(ir->arena, tcc_attr, rank);
    for (size_t d = 0; d < rank; d++)
        items[d] = tcc_attr_of_index(tcc_index_replace(ir, tcc_access_expr(access, d), TCC_FACTOR_INDEX, index, by));
    tcc_attr map = {.kind = TCC_ATTR_LIST, .list = {items, rank}};
    tcc_attr_set(ir, &access->attrs, "map", map, (tcc_loc){0, 0});
}

/* ---- extents --------------------------------------------------------------------------------- */

bool tcc_extents_read(const tcc_attr *pair, const char **index, tcc_dim *extent)
{
    const tcc_attr *items = pair->list.items;
    bool is = pair->kind == TCC_ATTR_LIST && pair->list.n == 2 && items[0].kind == TCC_ATTR_STR &&
              (items[1].kind == TCC_ATTR_STR || (items[1].kind == TCC_ATTR_INT && items[1].i >= 0));
    if (is) {
        *index = items[0].s;
        *extent = items[1].kind == TCC_ATTR_STR ? (tcc_dim){.name = items[1].s} : (tcc_dim){.size = items[1].i};
    }
    return is;
}

static tcc_dim declared_extent(const tcc_func *f, const char *index)
{
    tcc_attr extents = tcc_attr_list(&f->attrs, "extents");
    for (size_t i = 0; i < extents.list.n; i++) {
        const char *name;
        tcc_dim extent;
        if (tcc_extents_read(&extents.list.items[i], &name, &extent) && tcc_index_same(name, index))
            return extent;
    }
    return (tcc_dim){.size = -1};
}

tcc_dim tcc_index_extent(const tcc_func *f, const char *index)
{
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        int at = tcc_map_position(op, index);
        if (at >= 0)
            return tcc_accessed_tensor(op)->type->dims[at];
    }
    return declared_extent(f, index);
}
