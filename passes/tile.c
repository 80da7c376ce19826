/* tile: compute a kernel tile by tile.
 *
 * Before:  %p = arith.mul %a, %b : field<f32[m, k, n]>
 *          %s = tensor.reduce %p {over = [k], kind = sum} : field<f32[m, n]>
 *          %b = tensor.read %bias {map = [n]} : field<f32[n]>
 *          %r = arith.add %s, %b : field<f32[m, n]>
 *          tensor.write %r, %C {map = [m, n]}
 * After:   tile.grid {axes = [m, n], …} {
 *          ^(%m: i32, %n: i32):
 *            %s = …                                              reductions: below
 *            %b = tile.load %bias, %n {dims = [-1, 0]} : tile<f32[1, 256]>
 *            %bb = tile.broadcast %b {dims = [0, 1]} : tile<f32[128, 256]>
 *            %r = arith.add %s, %bb : tile<f32[128, 256]>
 *            tile.store %r, %C, %m, %n {dims = [0, 1]}
 *          }
 *
 * A field becomes a tile whose extent is 1 along each of m and n that the field does not have (tiling.h). Only
 * those are computed that something is written of.
 *
 * How reductions are computed is a matter of their kind: sums of products by matrix instructions (tile_products.c; of
 * what is computed of others, tile_streams.c), along whole rows (tile_rows.c), or term by term (tile_terms.c). The axes say which kind a kernel has (space.h).
 *
 * Requires choose-schedule. After it no field is left.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/tile.h"

#include <string.h>

#include "ir/assume.h"
#include "ir/index_dim.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "passes/passes.h"

/* The first reduction; where there is none, the first op. */
static const tcc_op *find_start(const tcc_func *f)
{
    const tcc_op *op = f->body->first;
    while (op && !tcc_is_reduction(op))
        op = op->next;
    return op ? op : f->body->first;
}

/* ---- from what is written to what it is computed of --------------------------------------------- */

void tcc_tiler_need(const tcc_tiler *w, tcc_map *ops)
{
    for (tcc_op *op = w->f->body->last; op; op = op->prev) /* users come after what they use */
        for (unsigned i = 0; tcc_map_get(ops, op) && i < op->n_operands; i++) {
            tcc_op *of = op->operands[i]->def;
            if (of && tcc_has_field(of) && !tcc_is_reduction(of))
                *tcc_map_at(ops, of) = of;
        }
}

/* The ops of a code, and what these are computed of. */
static tcc_map find_all(const tcc_tiler *w, tcc_opcode code)
{
    tcc_map ops = TCC_MAP(w->ctx->scratch);
    for (tcc_op *op = w->f->body->first; op; op = op->next)
        if (op->code == code)
            *tcc_map_at(&ops, op) = op;
    tcc_tiler_need(w, &ops);
    return ops;
}

tcc_op *tcc_tiler_write(tcc_tiler *w, const tcc_op *op)
{
    tcc_value *tensor = TCC_VIEW(tensor_write, op)->tensor;
    tcc_value *v = tcc_value_map_get(w->t.map, TCC_VIEW(tensor_write, op)->a);
    int64_t sizes[] = {w->t.sizes[0], w->t.sizes[1]};
    if (w->space.row && tcc_map_position(op, w->space.row) < 0)
        sizes[w->space.along] = 1;
    if (w->space.streams && tcc_map_position(op, w->t.axes[1]) < 0)
        sizes[1] = 1;
    w->t.b.loc = op->loc;
    v = tcc_tiling_broadcast(&w->t, v, tcc_type_sized(w->f->ir, TCC_KIND_tile, v->type->elem, 2, sizes));
    return tcc_tiling_access(&w->t, op, TCC_OP_tile_store, (tcc_value *[]){v, tensor}, 2, 0, NULL);
}

void tcc_tiler_finish(tcc_tiler *w)
{
    for (tcc_op *op = w->f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write)
            tcc_tiler_write(w, op);
        else if (tcc_map_get(&w->written, op))
            tcc_tiling_op(&w->t, op);
}

/* ---- the grid ----------------------------------------------------------------------------------- */

/* The order in which tiles are taken. */
static void set_order(const tcc_func *f, tcc_op *grid)
{
    if (tcc_schedule_key_of(f, TCC_KEY_raster, TCC_RASTER_GROUPED) == TCC_RASTER_GROUPED)
        tcc_attr_set_int(f->ir, &grid->attrs, "group", tcc_schedule_key_of(f, TCC_KEY_group, 1));
    else
        tcc_attr_set_str(f->ir, &grid->attrs, "raster", tcc_attr_str(&f->attrs, "raster", ""));
}

/* Over all axes but that of rows, which a tile has whole. */
static void build_grid(tcc_tiler *w)
{
    const tcc_space *c = &w->space;
    tcc_ir *ir = w->f->ir;
    const char *axes[TCC_MAX_AXES];
    int64_t tile[TCC_MAX_AXES];
    tcc_attr *extents = TCC_NEW_ARRAY(ir->arena, tcc_attr, c->n_axes);
    tcc_builder b = tcc_builder_before(w->f->body->last);
    b.loc = find_start(w->f)->loc;
    w->grid = tcc_op_create(&b, TCC_OP_tile_grid, 0, NULL, 0, NULL);
    w->t.b = tcc_builder_at_end(w->grid->regions[0]);
    w->t.b.loc = b.loc;
    w->t.axes[0] = c->axes[0];
    w->t.axes[1] = c->axes[1];
    w->t.map = tcc_value_map_create(w->ctx->scratch);
    for (size_t i = 0; i < c->n_axes; i++) {
        bool is_row = c->row && i == (size_t)c->along;
        tcc_dim extent = is_row ? (tcc_dim){NULL, 1} : c->extents[i];
        axes[i] = is_row ? "" : c->axes[i];
        extents[i] = tcc_attr_of_index(tcc_index_of_dim(ir, extent));
        tile[i] = is_row || i >= 2 ? 1 : w->t.sizes[i];
        const char *name = *axes[i] ? axes[i] : NULL;
        tcc_tiling_place(&w->t, axes[i], tcc_block_add_arg(w->grid->regions[0], tcc_type_scalar(ir, TCC_i32), name));
    }
    tcc_attr_set_strs(ir, &w->grid->attrs, "axes", c->n_axes, axes);
    tcc_attr_set(ir, &w->grid->attrs, "extents",
                 (tcc_attr){.kind = TCC_ATTR_LIST, .list = {extents, c->n_axes}}, (tcc_loc){0, 0});
    tcc_attr_set_ints(ir, &w->grid->attrs, "tile", c->n_axes, tile);
    set_order(w->f, w->grid);
}

static void erase_fields(tcc_func *f)
{
    for (tcc_op *op = f->body->last, *prev; op; op = prev) {
        prev = op->prev;
        if (op->code == TCC_OP_tensor_write || tcc_has_field(op))
            tcc_op_erase(op);
    }
}

/* ---- what can be computed so -------------------------------------------------------------------- */

static const tcc_tile_kind *kind_of(const tcc_space *c)
{
    return c->n_sums     ? &tcc_tile_products
           : c->streams ? &tcc_tile_streams
           : c->row ? &tcc_tile_rows : &tcc_tile_terms;
}

static bool check(tcc_tiler *w, const tcc_tile_kind *kind)
{
    tcc_map terms = kind->check ? TCC_MAP(w->ctx->scratch) : find_all(w, TCC_OP_tensor_reduce);
    bool all = !kind->check || kind->check(w, &terms);
    for (tcc_op *op = w->f->body->first; op; op = op->next)
        if (tcc_map_get(&terms, op) || tcc_map_get(&w->written, op))
            all &= tcc_tiling_check_elements(w->ctx, op);
    return all;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_tiler w = {.ctx = ctx, .f = f};
    if (!tcc_func_is_variant(f) || !tcc_attr_find(&f->attrs, "axes"))
        return TCC_OK;
    *changed = tcc_erase_dead(f, ctx->scratch); /* it may have other indices than what is written */
    if (!tcc_space_of(f, &w.space))
        return TCC_OK;
    const tcc_tile_kind *kind = kind_of(&w.space);
    w.written = find_all(&w, TCC_OP_tensor_write);
    if (!kind->find_tile(&w))
        return TCC_OK;
    if (!check(&w, kind))
        return TCC_ERR_UNSUPPORTED;
    build_grid(&w);
    kind->build(&w);
    erase_fields(f);
    tcc_attr_remove(&f->attrs, "axes"); /* the grid has them */
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_tile = {
    "tile", "compute a kernel tile by tile", .run = run,
    .requires = TCC_UP_TO(schedule),
    .leaves = TCC_STATE(tiles)};
