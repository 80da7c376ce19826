/* tile_reads: elements of a tensor, wherever they are, and indices as numbers, as ops on tiles.
 *
 * A read is a window of the tensor (tile.load) if along each of the tile's directions a coordinate grows with it by 1,
 * and the other coordinates are the same in the whole tile; else every element has coordinates of its own
 * (tile.gather).
 *
 * A number is an i32 where it is the same in the whole tile, else a tile that has extent 1 along what it does not vary
 * with.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/access.h"
#include "passes/arith.h"
#include "passes/tiling.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* Along which of the tile's directions an index runs; -1: along none, it has one value. */
static int direction_of(const tcc_tiling *t, const char *index)
{
    for (int x = 0; x < 2; x++)
        if (t->sizes[x] > 1 && tcc_index_same(t->axes[x], index))
            return x;
    return -1;
}

static bool is_tile(const tcc_value *v)
{
    return v->type->kind == TCC_KIND_tile;
}

/* The tile of i32 as large as two types, scalars or tiles. */
static const tcc_type *join_types(const tcc_tiling *t, const tcc_type *a, const tcc_type *b)
{
    int64_t sizes[2];
    for (int x = 0; x < 2; x++) {
        int64_t of_a = a->kind == TCC_KIND_tile ? a->dims[x].size : 1;
        int64_t of_b = b->kind == TCC_KIND_tile ? b->dims[x].size : 1;
        sizes[x] = of_a > of_b ? of_a : of_b;
    }
    return tcc_type_sized(t->b.func->ir, TCC_KIND_tile, TCC_i32, 2, sizes);
}

/* a op b. */
static tcc_value *combine(tcc_tiling *t, tcc_opcode op, tcc_value *a, tcc_value *b)
{
    if (!is_tile(a) && !is_tile(b))
        return tcc_arith_bin(&t->b, op, a, b);
    const tcc_type *type = join_types(t, a->type, b->type);
    a = tcc_tiling_broadcast(t, a, type);
    b = tcc_tiling_broadcast(t, b, type);
    return tcc_arith_bin(&t->b, op, a, b);
}

static tcc_value *number_of_index(tcc_tiling *t, const char *index)
{
    tcc_ir *ir = t->b.func->ir;
    tcc_value *first = tcc_tiling_first(t, index);
    int x = direction_of(t, index);
    if (x < 0)
        return first;
    int64_t sizes[] = {1, 1};
    sizes[x] = t->sizes[x];
    tcc_value *own = TCC_EMIT(&t->b, tile_index, tcc_type_sized(ir, TCC_KIND_tile, TCC_i32, 2, sizes), NULL);
    tcc_attr_set_int(ir, &own->def->attrs, "dim", x);
    return combine(t, TCC_OP_arith_add, own, first);
}

/* a op b, either of which may be missing. */
static tcc_value *join(tcc_tiling *t, tcc_opcode op, tcc_value *a, tcc_value *b)
{
    return a && b ? combine(t, op, a, b) : a ? a : b;
}

/* An expression of indices, or of the first values that they have in the tile. */
static tcc_value *number_of(tcc_tiling *t, const tcc_index_expr *x, bool firsts);

static tcc_value *number_of_factor(tcc_tiling *t, const tcc_index_factor *f, bool firsts)
{
    switch (f->kind) {
    case TCC_FACTOR_INDEX: return firsts ? tcc_tiling_first(t, f->name) : number_of_index(t, f->name);
    case TCC_FACTOR_DIM: return tcc_build_extent(&t->b, (tcc_dim){.name = f->name});
    default: break;
    }
    tcc_value *of = number_of(t, f->of, firsts);
    return combine(t, TCC_OP_arith_floor_div, of, number_of(t, f->by, firsts));
}

static tcc_value *number_of_term(tcc_tiling *t, const tcc_index_term *term, bool firsts)
{
    tcc_value *same = NULL, *varies = NULL;
    if (term->number != 1 || !term->n)
        same = tcc_build_i32(&t->b, (int32_t)term->number);
    for (size_t i = 0; i < term->n; i++) {
        tcc_value *v = number_of_factor(t, &term->factors[i], firsts), **to = is_tile(v) ? &varies : &same;
        *to = join(t, TCC_OP_arith_mul, *to, v);
    }
    return join(t, TCC_OP_arith_mul, varies, same);
}

static tcc_value *number_of(tcc_tiling *t, const tcc_index_expr *x, bool firsts)
{
    tcc_value *same = NULL, *varies = NULL;
    for (size_t i = 0; i < x->n; i++) {
        tcc_value *v = number_of_term(t, &x->terms[i], firsts), **to = is_tile(v) ? &varies : &same;
        *to = join(t, TCC_OP_arith_add, *to, v);
    }
    tcc_value *all = join(t, TCC_OP_arith_add, varies, same);
    return all ? all : tcc_build_i32(&t->b, 0);
}

tcc_value *tcc_tiling_index(tcc_tiling *t, const tcc_op *op)
{
    const tcc_type *type = tcc_tiling_type(t, op->results[0].type, true);
    return tcc_tiling_broadcast(t, number_of_index(t, tcc_attr_str(&op->attrs, "name", "")), type);
}

tcc_value *tcc_tiling_number(tcc_tiling *t, const tcc_index_expr *x)
{
    tcc_require_reach(t->b.func, x);
    return number_of(t, x, true);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Whether an expression is 0 or more whatever values names have: nothing is subtracted. */
static bool is_never_negative(const tcc_index_expr *x)
{
    bool never = true;
    for (size_t i = 0; i < x->n && never; i++) {
        const tcc_index_term *term = &x->terms[i];
        never = term->number > 0;
        for (size_t f = 0; f < term->n && never; f++)
            never = term->factors[f].kind != TCC_FACTOR_QUOTIENT || is_never_negative(term->factors[f].of);
    }
    return never;
}

/* How a coordinate varies in the tile. */
typedef enum course {
    SAME,
    ALONG_ROWS_OR_COLUMNS, /* by 1 from one to the next, and never below 0 */
    ANYHOW
} course;

/* *x: along which direction. */
static course course_of(const tcc_tiling *t, const tcc_op *read, size_t d, int *x)
{
    const tcc_index_expr *e = tcc_access_expr(read, d);
    int n = 0;
    int64_t step;
    if (tcc_access_loaded(read, d))
        return ANYHOW;
    for (int y = 0; y < 2; y++)
        if (t->sizes[y] > 1 && tcc_index_has(e, TCC_FACTOR_INDEX, t->axes[y])) {
            *x = y;
            n++;
        }
    if (!n)
        return SAME;
    const tcc_index_expr *by = n == 1 ? tcc_index_stride(t->b.func->ir, e, t->axes[*x]) : NULL;
    bool steps = by && tcc_index_is_number(by, &step) && step == 1;
    return steps && is_never_negative(e) ? ALONG_ROWS_OR_COLUMNS : ANYHOW;
}

bool tcc_tiling_window(const tcc_tiling *t, const tcc_op *read, int64_t dims[2])
{
    dims[0] = dims[1] = -1;
    for (size_t d = 0; d < tcc_access_rank(read); d++) {
        int x = 0;
        course c = course_of(t, read, d, &x);
        if (c == ANYHOW || (c == ALONG_ROWS_OR_COLUMNS && dims[x] >= 0))
            return false;
        if (c == ALONG_ROWS_OR_COLUMNS)
            dims[x] = (int64_t)d;
    }
    return true;
}

/* Where a window begins along dimension d. Before the tensor it would not be allowed to: beyond it there is nothing,
 * too. */
static tcc_value *begin_of(tcc_tiling *t, const tcc_op *read, size_t d)
{
    const tcc_index_expr *e = tcc_access_expr(read, d);
    tcc_value *at = number_of(t, e, true);
    if (is_never_negative(e))
        return at;
    tcc_value *before = tcc_arith_cmp(&t->b, "lt", at, tcc_build_i32(&t->b, 0));
    tcc_value *end = tcc_build_extent(&t->b, tcc_accessed_tensor(read)->type->dims[d]);
    return TCC_EMIT(&t->b, arith_select, at->type, before, end, at);
}

/* ---- elements -------------------------------------------------------------------------------- */

static tcc_value *coordinate_of(tcc_tiling *t, const tcc_op *read, size_t d)
{
    tcc_value *loaded = tcc_access_loaded(read, d), *at = NULL;
    const tcc_index_expr *e = tcc_access_expr(read, d);
    if (e->n || !loaded)
        at = number_of(t, e, false);
    return join(t, TCC_OP_arith_add, loaded ? tcc_value_map_get(t->map, loaded) : NULL, at);
}

/* Loaded numbers may be those of an operand, which is whole also in a direction that it does not have: so is then what
 * is read there. */
static tcc_op *gather(tcc_tiling *t, const tcc_op *read, const tcc_type *tile)
{
    size_t n = 1 + tcc_access_rank(read);
    tcc_value **operands = TCC_NEW_ARRAY(t->b.func->ir->arena, tcc_value *, n);
    operands[0] = read->operands[0];
    for (size_t i = 1; i < n; i++) {
        operands[i] = coordinate_of(t, read, i - 1);
        if (is_tile(operands[i]))
            tile = tcc_type_with_elem(t->b.func->ir, join_types(t, tile, operands[i]->type), tile->elem);
    }
    for (size_t i = 1; i < n; i++)
        if (is_tile(operands[i]))
            operands[i] = tcc_tiling_broadcast(t, operands[i], tile);
    return tcc_op_create(&t->b, TCC_OP_tile_gather, n, operands, 1, &tile);
}

static tcc_op *load_window(tcc_tiling *t, const tcc_op *read, const tcc_type *tile, const int64_t dims[2])
{
    size_t n = 1 + tcc_access_rank(read);
    tcc_value **operands = TCC_NEW_ARRAY(t->b.func->ir->arena, tcc_value *, n);
    operands[0] = read->operands[0];
    for (size_t i = 1; i < n; i++)
        operands[i] = begin_of(t, read, i - 1);
    tcc_op *load = tcc_op_create(&t->b, TCC_OP_tile_load, n, operands, 1, &tile);
    tcc_attr_set_ints(t->b.func->ir, &load->attrs, "dims", 2, dims);
    return load;
}

tcc_op *tcc_tiling_read(tcc_tiling *t, tcc_op *read, const tcc_type *tile)
{
    int64_t dims[2];
    if (tcc_access_is_plain(read))
        return tcc_tiling_access(t, read, TCC_OP_tile_load, &read->operands[0], 1, 1, &tile);
    for (size_t d = 0; d < tcc_access_rank(read); d++)
        tcc_require_reach(t->b.func, tcc_access_expr(read, d));
    return tcc_tiling_window(t, read, dims) ? load_window(t, read, tile, dims) : gather(t, read, tile);
}
