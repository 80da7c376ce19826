/* estimate-cost: say what a variant costs a launch, to compare it with the kernel's others.
 *
 * Before:  func @f(…) {…}   After:  func @f(…) {cost = [add, [mul, 32, M, N], …]}
 *
 * What variants differ in is how they move elements. So the cost is the number of accesses of
 * global memory that lanes make, in 32nds of one, for an access has up to 32 elements: every
 * element of a tensor once for each tile of the axes that it does not have. What TMA copies costs
 * nothing. The estimate says nothing of time; it orders variants of one kernel, and a launch runs
 * the cheapest that is valid.
 *
 * Requires choose-layout and tile.grid. Preserves everything else.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/assume.h"
#include "ir/plan.h"
#include "passes/passes.h"
#include "support/map.h"

enum { ACCESS = 32, ACCESS_BYTES = 16, MAX_FACTORS = 64 };
static const int64_t MAX_NUMBER = INT64_C(1) << 50; /* a double holds 8 of them */

/* So many 32nds of an access for each element of a product of extents. */
typedef struct term {
    int64_t times;
    tcc_attr extents[MAX_FACTORS];
    size_t n;
} term;

typedef struct estimate {
    tcc_ir *ir;
    const tcc_op *grid;
    tcc_map axes; /* value -> bits of the axes that it depends on */
    TCC_VEC(term) terms;
} estimate;

static uintptr_t axes_of(const estimate *e, const tcc_value *v)
{
    return (uintptr_t)tcc_map_get(&e->axes, v);
}

static void find_axes(estimate *e)
{
    tcc_block *region = e->grid->regions[0];
    for (size_t i = 0; i < region->n_args; i++)
        *tcc_map_at(&e->axes, region->args[i]) = (void *)((uintptr_t)1 << i);
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region)) {
        uintptr_t axes = 0;
        for (unsigned i = 0; i < op->n_operands; i++)
            axes |= axes_of(e, op->operands[i]);
        for (unsigned i = 0; axes && i < op->n_results; i++)
            *tcc_map_at(&e->axes, &op->results[i]) = (void *)axes;
    }
}

/* 32nds of an access that an element takes. */
static int64_t share_of(const tcc_op *op, const tcc_type *tensor)
{
    const char *copy = tcc_attr_str(&op->attrs, "copy", "");
    int64_t bits = tcc_scalar_bits(tensor->elem), wide = tcc_attr_int(&op->attrs, "wide", 0);
    int64_t n = wide * 8 > bits ? wide * 8 / bits : tcc_attr_int(&op->attrs, "pairs", 0) ? 2 : 1;
    if (!strcmp(copy, "tma"))
        return 0;
    if (!strcmp(copy, "buffer") || !strcmp(copy, "unaligned"))
        n = ACCESS_BYTES * 8 / bits;
    return ACCESS / n;
}

/* Numbers that get too long for JSON stay factors. */
static void multiply(term *t, tcc_attr factor)
{
    int64_t times;
    if (factor.kind == TCC_ATTR_INT && !__builtin_mul_overflow(t->times, factor.i, &times) &&
        times <= MAX_NUMBER)
        t->times = times;
    else
        t->extents[t->n++] = factor;
}

static tcc_attr extent_attr(tcc_dim d)
{
    return d.name ? (tcc_attr){.kind = TCC_ATTR_STR, .s = d.name}
                  : (tcc_attr){.kind = TCC_ATTR_INT, .i = d.size};
}

static tcc_attr tiles_of(estimate *e, tcc_attr extent, tcc_attr tile)
{
    if (extent.kind == TCC_ATTR_INT)
        return (tcc_attr){.kind = TCC_ATTR_INT, .i = (extent.i + tile.i - 1) / tile.i};
    return tile.i == 1 ? extent
                       : tcc_expr_attr(e->ir, TCC_EXPR_ceildiv, 2, (tcc_attr[]){extent, tile}, 1);
}

static bool same_extents(const term *a, const term *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = tcc_attr_equal(&a->extents[i], &b->extents[i]);
    return same;
}

/* op: a load or a store, whose coordinates are its operands from `first` on */
static void add_access(estimate *e, const tcc_op *op, const tcc_type *tensor, unsigned first)
{
    tcc_attr extents = tcc_attr_list(&e->grid->attrs, "extents");
    tcc_attr tiles = tcc_attr_list(&e->grid->attrs, "tile");
    term t = {.times = share_of(op, tensor)};
    uintptr_t axes = 0;
    if (!t.times || tensor->rank + extents.list.n > MAX_FACTORS)
        return;
    for (unsigned i = first; i < op->n_operands; i++)
        axes |= axes_of(e, op->operands[i]);
    for (unsigned d = 0; d < tensor->rank; d++)
        multiply(&t, extent_attr(tensor->dims[d]));
    for (size_t i = 0; i < extents.list.n && i < tiles.list.n; i++)
        if (!(axes >> i & 1))
            multiply(&t, tiles_of(e, extents.list.items[i], tiles.list.items[i]));
    for (size_t i = 0; i < e->terms.len; i++)
        if (same_extents(&e->terms.data[i], &t) && e->terms.data[i].times <= MAX_NUMBER) {
            e->terms.data[i].times += t.times;
            return;
        }
    TCC_PUSH(e->ir->arena, &e->terms, t);
}

static tcc_attr sum_of(estimate *e)
{
    tcc_attr *terms = TCC_NEW_ARRAY(e->ir->arena, tcc_attr, e->terms.len);
    for (size_t i = 0; i < e->terms.len; i++) {
        const term *t = &e->terms.data[i];
        tcc_attr factors[MAX_FACTORS + 1] = {{.kind = TCC_ATTR_INT, .i = t->times}};
        memcpy(factors + 1, t->extents, t->n * sizeof *factors);
        terms[i] = tcc_expr_attr(e->ir, TCC_EXPR_mul, t->n + 1, factors, 1);
    }
    return tcc_expr_attr(e->ir, TCC_EXPR_add, e->terms.len, terms, 0);
}

static const tcc_op *find_grid(const tcc_func *f)
{
    const tcc_op *op = f->body->first;
    while (op && op->code != TCC_OP_tile_grid)
        op = op->next;
    return op;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    estimate e = {.ir = ctx->ir, .grid = find_grid(f), .axes = TCC_MAP(ctx->scratch)};
    if (!e.grid || !tcc_func_is_variant(f) || tcc_attr_find(&f->attrs, "cost"))
        return TCC_OK;
    find_axes(&e);
    tcc_block *region = e.grid->regions[0];
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region))
        if (op->code == TCC_OP_tile_load)
            add_access(&e, op, TCC_VIEW(tile_load, op)->tensor->type, 1);
        else if (op->code == TCC_OP_tile_store)
            add_access(&e, op, TCC_VIEW(tile_store, op)->tensor->type, 2);
    tcc_attr_set(ctx->ir, &f->attrs, "cost", sum_of(&e), (tcc_loc){0, 0});
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_estimate_cost = {
    "estimate-cost", "say what a variant costs a launch", .run = run,
    .requires = TCC_UP_TO(copies) | TCC_STATE(grid)};
