/* fuse-epilogue: move everything beside tiled sums into their tiles.
 *
 * Before:  %s = tile.grid … { … scf.yield %acc }
 *          %b = tensor.read %bias {map = [n]} : field<f32[n]>
 *          %r = arith.add %s, %b : field<f32[m, n]>
 *          tensor.write %r, %C {map = [m, n]}
 * After:   tile.grid … {
 *            …
 *            %b = tile.load %bias, %n {dims = [-1, 0]} : tile<f32[1, 256]>
 *            %bb = tile.broadcast %b {dims = [0, 1]} : tile<f32[128, 256]>
 *            %r = arith.add %acc, %bb : tile<f32[128, 256]>
 *            tile.store %r, %C, %m, %n {dims = [0, 1]}
 *          }
 *
 * A field becomes a tile whose extent is 1 along each of m and n that the field does not have (tiling.h).
 *
 * Requires tile-contraction and dce. After it no field is left.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/target.h"
#include "passes/space.h"
#include "passes/passes.h"
#include "passes/tiling.h"

typedef struct fusion {
    tcc_ir *ir;
    tcc_op *grid;
    const char *axes[TCC_MAX_AXES];
    size_t n_axes;
    tcc_tiling t; /* builds at the end of the grid's region */
} fusion;

static tcc_value *first_of_axis(void *user, const char *index)
{
    const fusion *fu = user;
    size_t x = 0;
    while (strcmp(fu->axes[x], index))
        x++;
    return fu->grid->regions[0]->args[x];
}

static void fuse_write(fusion *fu, tcc_op *op)
{
    tcc_value *tensor = TCC_VIEW(tensor_write, op)->tensor;
    tcc_value *v = tcc_value_map_get(fu->t.map, TCC_VIEW(tensor_write, op)->a);
    const tcc_type *full = tcc_type_sized(fu->ir, TCC_KIND_tile, v->type->elem, 2, fu->t.sizes);
    fu->t.b.loc = op->loc;
    tcc_tiling_access(&fu->t, op, TCC_OP_tile_store,
                      (tcc_value *[]){tcc_tiling_broadcast(&fu->t, v, full), tensor}, 2, 0, NULL);
}

/* Whether every field varies over axes of the grid only: one that does not, a product that was
 * summed, has no place in a tile. */
static bool can_fuse(const fusion *fu, const tcc_func *f)
{
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        const tcc_type *t = op->n_results ? op->results[0].type : NULL;
        for (unsigned i = 0; t && t->kind == TCC_KIND_field && i < t->rank; i++) {
            size_t x = 0;
            while (x < fu->n_axes && strcmp(fu->axes[x], t->dims[i].name))
                x++;
            if (x == fu->n_axes)
                return false;
        }
    }
    return true;
}

static tcc_op *find_grid(const tcc_func *f)
{
    tcc_op *grid = NULL;
    for (tcc_op *op = f->body->first; op; op = op->next) {
        grid = !grid && op->code == TCC_OP_tile_grid ? op : grid;
        if (grid && (grid->n_results || op->code == TCC_OP_tensor_write))
            return grid;
    }
    return NULL;
}

/* The grid without its results: region and attributes move over. */
static void drop_results(tcc_op *grid)
{
    tcc_builder b = tcc_builder_before(grid);
    tcc_op *bare = tcc_op_create(&b, TCC_OP_tile_grid, 0, NULL, 0, NULL);
    bare->attrs = grid->attrs;
    tcc_block *empty = bare->regions[0];
    bare->regions[0] = grid->regions[0];
    bare->regions[0]->parent = bare;
    grid->regions[0] = empty;
    tcc_op_erase(grid);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    fusion fu = {.ir = ctx->ir, .grid = find_grid(f)};
    if (!fu.grid)
        return TCC_OK;
    tcc_block *region = fu.grid->regions[0];
    tcc_attr axes = tcc_attr_list(&fu.grid->attrs, "axes");
    tcc_attr tile = tcc_attr_list(&fu.grid->attrs, "tile");
    fu.n_axes = axes.list.n;
    for (size_t i = 0; i < axes.list.n; i++)
        fu.axes[i] = axes.list.items[i].s;
    if (!can_fuse(&fu, f))
        return TCC_OK;
    if (!tcc_tiling_check_function(ctx, f))
        return TCC_ERR_UNSUPPORTED;
    fu.t = (tcc_tiling){.b = tcc_builder_at_end(region),
                        .axes = {fu.axes[0], fu.axes[1]},
                        .sizes = {tile.list.items[0].i, tile.list.items[1].i},
                        .at = first_of_axis,
                        .user = &fu,
                        .map = tcc_value_map_create(ctx->scratch)};
    tcc_op *yield = tcc_block_yield(region) ? region->last : NULL;
    for (unsigned i = 0; i < fu.grid->n_results; i++)
        tcc_value_map_set(fu.t.map, &fu.grid->results[i], yield->operands[i]);
    if (yield)
        tcc_op_erase(yield);

    for (tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write)
            fuse_write(&fu, op);
        else if (op != fu.grid)
            tcc_tiling_op(&fu.t, op);
    tcc_tiling_erase_fields(f);
    tcc_tiling_hoist(fu.grid);
    if (fu.grid->n_results)
        drop_results(fu.grid);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_fuse_epilogue = {
    "fuse-epilogue", "move everything after tiled sums into their tiles", .run = run,
    .requires = TCC_UP_TO(swept),
    .leaves = TCC_STATE(fused)};
