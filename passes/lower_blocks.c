/* lower_blocks: what becomes of values, of control flow, and of the ops that are the same for all
 * vendors. A scalar stays one value, a tile becomes several.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/counting.h"
#include "passes/lowering.h"

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_tile(const tcc_value *v)
{
    return v->type->kind == TCC_KIND_tile;
}

tcc_value *tcc_low_scalar(tcc_lowering *l, const tcc_value *v)
{
    return tcc_value_map_get(l->map, (tcc_value *)v);
}

const tcc_parts *tcc_low_parts(tcc_lowering *l, const tcc_value *v)
{
    tcc_parts *parts = tcc_map_get(&l->tiles, v);
    if (parts->mending)
        l->vendor->mend(l, parts);
    return parts;
}

tcc_parts *tcc_low_set(tcc_lowering *l, const tcc_value *v, size_t n, tcc_value *const *values)
{
    tcc_arena *scratch = l->ctx->scratch;
    tcc_parts *parts = TCC_NEW(scratch, tcc_parts);
    *parts = (tcc_parts){.n = n, .values = TCC_NEW_ARRAY(scratch, tcc_value *, n)};
    memcpy(parts->values, values, n * sizeof *values);
    *tcc_map_at(&l->tiles, v) = parts;
    return parts;
}

typedef TCC_VEC(tcc_value *) values;
typedef TCC_VEC(const tcc_type *) types;

/* Appends what an operand has become. */
static void append(tcc_lowering *l, const tcc_value *v, values *to)
{
    const tcc_parts *parts = is_tile(v) ? tcc_low_parts(l, v) : NULL;
    for (size_t i = 0; parts && i < parts->n; i++)
        TCC_PUSH(l->ctx->scratch, to, parts->values[i]);
    if (!parts)
        TCC_PUSH(l->ctx->scratch, to, tcc_low_scalar(l, v));
}

/* v is made of n new values; `like` what its tile was before, or NULL. */
static void bind(tcc_lowering *l, const tcc_value *v, size_t n, tcc_value *const *from,
                 const tcc_value *like)
{
    if (!is_tile(v))
        tcc_value_map_set(l->map, (tcc_value *)v, *from);
    else
        tcc_low_set(l, v, n, from)->units = like ? tcc_low_parts(l, like)->units : NULL;
}

static size_t count_values(tcc_lowering *l, const tcc_value *v)
{
    return is_tile(v) ? tcc_low_parts(l, v)->n : 1;
}

/* ---- control flow ---------------------------------------------------------------------------- */

static void lower_region(tcc_lowering *l, tcc_op *op, unsigned region, tcc_op *to)
{
    tcc_builder outer = l->b;
    l->b = tcc_builder_at_end(to->regions[region]);
    l->vendor->block(l, op->regions[region]);
    l->b = outer;
}

/* False, refused, if a loop carries, or an scf.if returns, a value that is neither a scalar nor a
 * tile. */
static bool check_kinds(tcc_lowering *l, const tcc_op *op)
{
    for (unsigned i = 0; i < op->n_results; i++)
        if (op->results[i].type->kind != TCC_KIND_scalar && !is_tile(&op->results[i])) {
            TCC_LOW_REFUSE(l, op, "a value of this kind as a result of %s",
                           tcc_op_info_get(op->code)->name);
            return false;
        }
    return true;
}

/* Whether what a region yields is what its loop carries. */
static bool yields_alike(tcc_lowering *l, const tcc_op *loop, const tcc_op *yield)
{
    for (unsigned i = 0; i < loop->n_results; i++) {
        const tcc_value *a = loop->operands[3 + i], *b = yield->operands[i];
        if (!is_tile(a))
            continue;
        const tcc_parts *x = tcc_low_parts(l, a), *y = tcc_low_parts(l, b);
        bool same = x->n == y->n && x->units == y->units;
        for (size_t p = 0; same && p < x->n; p++)
            same = x->values[p]->type == y->values[p]->type;
        if (!same) {
            TCC_LOW_REFUSE(l, yield, "a loop that carries tiles in several ways");
            return false;
        }
    }
    return true;
}

static void lower_for(tcc_lowering *l, tcc_op *op)
{
    enum { BOUNDS = 3 };
    tcc_block *from = op->regions[0];
    values all = {0}, args = {0};
    types carried = {0};
    if (!check_kinds(l, op))
        return;
    for (unsigned i = 0; i < op->n_operands; i++)
        append(l, op->operands[i], &all);
    for (size_t i = BOUNDS; i < all.len; i++)
        TCC_PUSH(l->ctx->scratch, &carried, all.data[i]->type);
    tcc_op *loop =
        tcc_op_create(&l->b, TCC_OP_scf_for, all.len, all.data, carried.len, carried.data);
    if (tcc_attr_int(&op->attrs, "at_least_once", 0))
        tcc_attr_set_int(l->ir, &loop->attrs, "at_least_once", 1);
    if (tcc_loop_tests(op))
        tcc_attr_set_int(l->ir, &loop->attrs, "while", 1);
    tcc_value_map_set(
        l->map, from->args[0],
        tcc_block_add_arg(loop->regions[0], from->args[0]->type, from->args[0]->name));
    for (size_t i = 1; i < from->n_args; i++) {
        size_t n = count_values(l, op->operands[2 + i]), first = args.len;
        for (size_t p = 0; p < n; p++)
            TCC_PUSH(l->ctx->scratch, &args,
                     tcc_block_add_arg(loop->regions[0], carried.data[first + p],
                                       n == 1 ? from->args[i]->name : NULL));
        bind(l, from->args[i], n, args.data + first, op->operands[2 + i]);
    }
    lower_region(l, op, 0, loop);
    if (l->failed || !yields_alike(l, op, from->last))
        return;
    for (size_t i = 0; i < args.len; i++)
        args.data[i] = &loop->results[i];
    for (unsigned i = 0, at = 0; i < op->n_results; i++) {
        size_t n = count_values(l, op->operands[BOUNDS + i]);
        bind(l, &op->results[i], n, args.data + at, op->operands[BOUNDS + i]);
        at += (unsigned)n;
    }
}

static void lower_if(tcc_lowering *l, tcc_op *op)
{
    values given = {0};
    types all = {0};
    if (!check_kinds(l, op))
        return;
    for (unsigned i = 0; i < op->n_results; i++) {
        const tcc_type *t = op->results[i].type;
        tcc_held held = {.n = 1, .each = t};
        if (is_tile(&op->results[i]) && !tcc_low_held(l, op, t, &held))
            return;
        for (size_t p = 0; p < held.n; p++)
            TCC_PUSH(l->ctx->scratch, &all, held.each);
    }
    tcc_value *cond = tcc_low_scalar(l, op->operands[0]);
    tcc_op *r = tcc_op_create(&l->b, TCC_OP_scf_if, 1, &cond, all.len, all.data);
    for (size_t i = 0; i < all.len; i++)
        TCC_PUSH(l->ctx->scratch, &given, &r->results[i]);
    for (unsigned i = 0; i < 2; i++)
        lower_region(l, op, i, r);
    for (unsigned i = 0, at = 0; i < op->n_results; i++) {
        tcc_held held = {.n = 1};
        if (is_tile(&op->results[i]))
            tcc_low_held(l, op, op->results[i].type, &held);
        bind(l, &op->results[i], held.n, given.data + at, NULL);
        at += (unsigned)held.n;
    }
}

static void lower_yield(tcc_lowering *l, tcc_op *op)
{
    values all = {0};
    for (unsigned i = 0; i < op->n_operands; i++)
        append(l, op->operands[i], &all);
    tcc_op_create(&l->b, TCC_OP_scf_yield, all.len, all.data, 0, NULL);
}

/* How many CTAs there are: each cluster has several. */
static tcc_attr launched(tcc_lowering *l, const tcc_op *ctas, int64_t cluster)
{
    tcc_attr grid = tcc_attr_list(&ctas->attrs, "grid");
    if (cluster == 1)
        return grid;
    tcc_attr *axes = TCC_NEW_ARRAY(l->ir->arena, tcc_attr, grid.list.n + 1);
    memcpy(axes, grid.list.items, grid.list.n * sizeof *axes);
    axes[grid.list.n] = tcc_low_int(cluster);
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {axes, grid.list.n + 1}};
}

/* Its arguments are the number of the CTA or cluster; of a persistent one, how many there are; the CTA's place in
 * its cluster. The launch counts CTAs. */
static void lower_ctas(tcc_lowering *l, tcc_op *op)
{
    const tcc_low_vendor *vendor = l->vendor;
    const tcc_block *body = op->regions[0];
    int64_t cluster = tcc_attr_int(&op->attrs, "cluster", 1);
    bool clusters = cluster > 1, fewer = body->n_args > (clusters ? 2 : 1);
    tcc_opcode ids[3] = {clusters ? vendor->cluster : vendor->cta};
    unsigned n = 1;
    if (fewer)
        ids[n++] = clusters ? vendor->clusters : vendor->launched;
    if (clusters)
        ids[n++] = vendor->rank;
    tcc_attr_set(l->ir, &l->f->attrs, "grid", launched(l, op, cluster), (tcc_loc){0, 0});
    if (clusters)
        tcc_attr_set_int(l->ir, &l->f->attrs, "cluster_ctas", cluster);
    if (fewer)
        tcc_attr_set_int(l->ir, &l->f->attrs, "fewer_ctas", 1);
    for (unsigned i = 0; i < n; i++) {
        if (ids[i] == TCC_OP_COUNT) {
            TCC_LOW_REFUSE(l, op, "tile.ctas %s", clusters ? "of clusters" : "for any number of workgroups");
            return;
        }
        tcc_value_map_set(l->map, body->args[i],
                          &tcc_op_create(&l->b, ids[i], 0, NULL, 1, &l->i32)->results[0]);
    }
    vendor->block(l, op->regions[0]);
}

/* ---- other ops ------------------------------------------------------------------------------- */

static void lower_dim(tcc_lowering *l, tcc_op *op)
{
    const char *name = tcc_attr_str(&op->attrs, "name", "");
    tcc_value_map_set(l->map, &op->results[0], tcc_low_extent(l, (tcc_dim){name, 0}));
}

/* Ops that stay what they are, their operands mapped. */
static void lower_same(tcc_lowering *l, tcc_op *op)
{
    tcc_op_clone(&l->b, op, l->map);
}

static void lower_nothing(tcc_lowering *l, tcc_op *op)
{
    (void)l, (void)op;
}

typedef enum runner { ANYBODY, ALL /* threads of a role */ } runner;

/* Whether an op asks where elements are; or only that fragments are whole. */
typedef enum places { NO_PLACES, PLACES, FRAGMENTS } places;

static const struct {
    void (*lower)(tcc_lowering *, tcc_op *);
    runner runner;
    places places;
} lowerings[TCC_OP_COUNT] = {
    [TCC_OP_tensor_dim] = {lower_dim, ANYBODY, NO_PLACES},
    [TCC_OP_scf_for] = {lower_for, ANYBODY, NO_PLACES},
    [TCC_OP_scf_if] = {lower_if, ANYBODY, NO_PLACES},
    [TCC_OP_scf_yield] = {lower_yield, ANYBODY, NO_PLACES},
    [TCC_OP_func_return] = {lower_same, ANYBODY, NO_PLACES},
    [TCC_OP_tile_ctas] = {lower_ctas, ANYBODY, NO_PLACES},
    [TCC_OP_tile_load] = {tcc_low_load, ALL, PLACES},
    [TCC_OP_tile_gather] = {tcc_low_gather, ALL, PLACES},
    [TCC_OP_tile_store] = {tcc_low_store, ALL, PLACES},
    [TCC_OP_tile_slice] = {tcc_low_regroup, ALL, FRAGMENTS},
    [TCC_OP_tile_rotate] = {tcc_low_regroup, ALL, FRAGMENTS},
    [TCC_OP_tile_convert] = {tcc_low_regroup, ALL, PLACES},
    [TCC_OP_tile_broadcast] = {tcc_low_broadcast, ALL, PLACES},
    [TCC_OP_tile_index] = {tcc_low_index, ALL, PLACES},
    [TCC_OP_tile_reduce] = {tcc_low_reduce, ALL, PLACES},
    [TCC_OP_async_alloc] = {lower_nothing, ANYBODY, NO_PLACES},
    [TCC_OP_async_exchange] = {tcc_low_exchange, ALL, NO_PLACES},
    [TCC_OP_async_combine] = {tcc_low_combine, ALL, PLACES},
};

/* Whether op needs the element positions of an opaque layout. They differ between element types. */
static bool wants_secret(const tcc_op *op)
{
    places asks = lowerings[op->code].places;
    bool opaque = false, alike = true, whole = asks == FRAGMENTS;
    bool elementwise = tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    for (unsigned i = 0; i < op->n_operands; i++) {
        opaque |= is_tile(op->operands[i]) && tcc_layout_is_opaque(op->operands[i]->type);
        alike &= !is_tile(op->operands[i]) || (op->n_results && op->operands[i]->type == op->results[0].type);
    }
    for (unsigned i = 0; i < op->n_results; i++)
        opaque |= is_tile(&op->results[i]) && tcc_layout_is_opaque(op->results[i].type);
    if (!opaque || elementwise || asks == NO_PLACES)
        return opaque && elementwise && !alike;
    tcc_attr at = tcc_attr_list(&op->attrs, op->code == TCC_OP_tile_rotate ? "by" : "at");
    for (size_t d = 0; whole && d < at.list.n; d++) {
        const tcc_fragment *f = &tcc_fragments[tcc_layout_fragment(op->operands[0]->type)];
        whole = at.list.items[d].i % (d ? f->cols : f->rows) == 0;
    }
    return !whole || op->operands[0]->type->layout != op->results[0].type->layout;
}

void tcc_low_op(tcc_lowering *l, tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    bool elementwise = info->flags & TCC_ELEMENTWISE || op->code == TCC_OP_arith_const;
    if (lowerings[op->code].runner == ALL && !l->warps)
        TCC_LOW_REFUSE(l, op, "%s where not all threads of a role run", info->name);
    else if (wants_secret(op))
        TCC_LOW_REFUSE(l, op, "%s of a tile with an opaque layout", info->name);
    else if (lowerings[op->code].lower)
        lowerings[op->code].lower(l, op);
    else if (elementwise)
        (is_tile(&op->results[0]) ? tcc_low_tile_op : lower_same)(l, op);
    else
        TCC_LOW_REFUSE(l, op, "%s, by %s", info->name, l->vendor->name);
}
