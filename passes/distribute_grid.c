/* distribute-grid: decide which tiles each CTA computes.
 *
 * Before:  tile.grid {axes = [m, n], extents = [$M, $N], tile = [128, 256], group = 16} {
 *          ^(%m: i32, %n: i32): … }
 * After:   tile.ctas {grid = [($M + 127) / 128, ($N + 255) / 256]} {
 *          ^(%cta: i32):
 *            %m, %n from %cta …
 *          }
 * With persistent = 1:
 *          tile.ctas {grid = [($M + 127) / 128, ($N + 255) / 256]} {
 *          ^(%cta: i32, %ctas: i32):
 *            scf.for %i = 0 to as many tiles %cta + %i * %ctas as there are { %m, %n of them … }
 *          }
 * With persistent = 2:
 *            scf.for %i = 0 to tile.takes %cta, %ctas, %all {
 *              %t = tile.take %cta, %ctas, %all, %i   %m, %n of it …
 *            }
 *
 * With cluster = [2, 1] the CTAs of a cluster take vertically adjacent tiles; tiles beyond the last ones load
 * zeros and store nothing.
 *          tile.ctas {grid = [($M + 255) / 256, ($N + 255) / 256], cluster = 2} {
 *          ^(%cta: i32, %rank: i32):
 *            %m, %n of the cluster from %cta; %m + %rank * 128 …
 *          }
 * With cluster = [2, 2] it is %m + %rank % 2 * 128, %n + %rank / 2 * 256.
 *
 * If CTAs share the iterations of a loop (those that also share operands are adjacent), each takes every n-th of the n
 * CTAs' iterations, so that they read adjacent memory, and the sums that they carry, which begin at 0, are added in the
 * CTA of rank 0. Only that one stores: for the others the ops after the loop are beyond the end of the first axis that
 * has an index. All make the same number of iterations; elements beyond the last one are zero.
 *          scf.for %i = 0 to %n, %acc = 0 {ranks = 2} { … %i … }   becomes
 *          async.cluster_barrier
 *          %s = scf.for %j = 0 to (%n + 1) / 2, %acc = 0 { … %j * 2 + %rank … }
 *          async.contribute %s, %b, %rank   async.cluster_barrier   %t = async.collect %s, %b, %rank
 *          … %t, %rank == 0 ? %m : M …   async.cluster_barrier
 *
 * Tiles of the first axis are taken in groups, down the group first: CTAs that run at the same time then read few
 * rows of A and columns of B. `raster` selects other orders (raster.c). All further axes are outside, the last of
 * them varying fastest.
 *
 * Requires tile. Preserves the grid's body.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/grid.h"
#include "ir/schedule_key.h"
#include "passes/arith.h"
#include "passes/loops.h"
#include "passes/passes.h"
#include "passes/raster.h"

enum { MAX_AXES = 32 };

static tcc_attr extent_of(const tcc_op *grid, size_t axis)
{
    return tcc_attr_list(&grid->attrs, "extents").list.items[axis];
}

static tcc_value *build_extent(tcc_builder *b, const tcc_op *grid, size_t axis)
{
    tcc_dim extent = {0};
    tcc_grid_dim(b->func->ir, extent_of(grid, axis), &extent);
    return tcc_build_extent(b, extent);
}

static int64_t size_of(const tcc_op *grid, size_t axis)
{
    return tcc_attr_list(&grid->attrs, "tile").list.items[axis].i;
}

/* CTAs of a cluster along an axis. */
static int64_t cluster_along(const tcc_op *grid, size_t axis)
{
    tcc_attr cluster = tcc_attr_list(&grid->attrs, "cluster");
    return axis < cluster.list.n ? cluster.list.items[axis].i : 1;
}

/* The loop whose iterations CTAs share; or NULL. */
static tcc_op *find_shared_loop(const tcc_op *grid)
{
    tcc_op *op = grid->regions[0]->first;
    while (op && !(tcc_is_loop(op) && tcc_attr_find(&op->attrs, "ranks")))
        op = op->next;
    return op;
}

static int64_t cluster_of(const tcc_op *grid)
{
    const tcc_op *shared = find_shared_loop(grid);
    return cluster_along(grid, 0) * cluster_along(grid, 1) * (shared ? tcc_attr_int(&shared->attrs, "ranks", 1) : 1);
}

/* The part of an axis that a cluster takes; without one, a CTA. */
static int64_t taken(const tcc_op *grid, size_t axis)
{
    return size_of(grid, axis) * cluster_along(grid, axis);
}

/* How many clusters there are along an axis. */
static tcc_value *count_tiles(tcc_builder *b, const tcc_op *grid, size_t axis)
{
    int64_t size = taken(grid, axis);
    return tcc_arith_div(b, tcc_arith_add(b, build_extent(b, grid, axis), size - 1), size);
}

/* The order of the tiles: without one they are in groups. */
static tcc_raster raster_of(const tcc_op *grid)
{
    const tcc_named_attr *raster = tcc_attr_find(&grid->attrs, "raster");
    int64_t order = TCC_RASTER_GROUPED;
    if (raster)
        tcc_schedule_key_read(&tcc_schedule_keys[TCC_KEY_raster], &raster->value, &order);
    return (tcc_raster)order;
}

/* The distance of the CTA's tile from that of the first of its cluster along the first two axes, in column-major
 * order; NULL: 0. */
static void place_in_cluster(tcc_builder *b, const tcc_op *grid, tcc_value *rank, tcc_value *behind[2])
{
    int64_t rows = cluster_along(grid, 0), columns = cluster_along(grid, 1), all = cluster_of(grid);
    behind[0] = rows == 1 ? NULL : rows == all ? rank : tcc_arith_rem(b, rank, rows);
    behind[1] = columns == 1 ? NULL : tcc_arith_div(b, rank, rows);
    if (behind[1] && rows * columns < all)
        behind[1] = tcc_arith_rem(b, behind[1], columns);
    for (size_t x = 0; x < 2; x++)
        if (behind[x])
            behind[x] = tcc_arith_mul(b, behind[x], size_of(grid, x));
}

/* The first index of each axis of a tile, given its cluster's number and its place there. */
static void place_tile(tcc_builder *b, const tcc_op *grid, size_t n, tcc_value *const *tiles,
                       tcc_value *number, tcc_value *const behind[2], tcc_value **at)
{
    if (n > 2) {
        tcc_value *plane = tcc_arith_bin(b, TCC_OP_arith_mul, tiles[0], tiles[1]);
        tcc_value *rest = tcc_arith_bin(b, TCC_OP_arith_div, number, plane);
        number = tcc_arith_bin(b, TCC_OP_arith_rem, number, plane);
        for (size_t x = n; x-- > 2;) {
            at[x] = tcc_arith_bin(b, TCC_OP_arith_rem, rest, tiles[x]);
            rest = tcc_arith_bin(b, TCC_OP_arith_div, rest, tiles[x]);
        }
    }
    if (n > 1)
        tcc_raster_place(b, raster_of(grid), tcc_attr_int(&grid->attrs, "group", 1) / cluster_along(grid, 0), number,
                         tiles, at);
    else
        at[0] = number;
    for (size_t x = 0; x < n; x++) {
        tcc_value *first = tcc_arith_mul(b, at[x], taken(grid, x));
        at[x] = x < 2 && behind[x] ? tcc_arith_bin(b, TCC_OP_arith_add, first, behind[x]) : first;
    }
}

/* ---- sums that CTAs share ------------------------------------------------------------------ */

static bool is_zero(const tcc_value *v)
{
    const tcc_named_attr *a =
        v->def && v->def->code == TCC_OP_arith_const ? tcc_attr_find(&v->def->attrs, "value") : NULL;
    return a && (a->value.kind == TCC_ATTR_INT ? !a->value.i : a->value.kind == TCC_ATTR_FLOAT && a->value.f == 0);
}

/* Whether all that a loop carries are sums of products, from 0 on: then they can be added up at the end. */
static bool carries_sums(const tcc_op *loop)
{
    const tcc_op *yield = loop->regions[0]->last;
    bool sums = tcc_counts_iterations(loop);
    for (unsigned i = 0; sums && i < loop->n_results; i++) {
        const tcc_op *mma = yield->operands[i]->def;
        sums = is_zero(loop->operands[3 + i]) && mma && mma->code == TCC_OP_tile_mma && mma->n_operands == 3 &&
               TCC_VIEW(tile_mma, mma)->c == loop->regions[0]->args[1 + i] &&
               loop->regions[0]->args[1 + i]->n_uses == 1;
    }
    return sums;
}

/* The first axis along which tiles are arranged, of rows or columns; 2: there is none. */
static size_t axis_of_tiles(const tcc_op *grid)
{
    tcc_attr axes = tcc_attr_list(&grid->attrs, "axes");
    size_t x = 0;
    while (x < 2 && (x >= axes.list.n || !*axes.list.items[x].s))
        x++;
    return x;
}

/* Why a grid's loop cannot be shared; NULL: it can, or there is none. */
static const char *why_not_shared(const tcc_op *grid)
{
    const tcc_op *loop = find_shared_loop(grid);
    if (!loop)
        return NULL;
    for (const tcc_op *op = loop->next; op; op = op->next)
        if (tcc_attr_find(&op->attrs, "ranks"))
            return "two loops in a tile";
    if (tcc_attr_int(&grid->attrs, "persistent", 0))
        return "a loop for one tile after the other";
    if (axis_of_tiles(grid) == 2)
        return "a loop for one element";
    return carries_sums(loop) ? NULL : "a loop that carries values other than sums of products";
}

/* The loop makes every n-th iteration. */
static void take_share(tcc_op *loop, tcc_value *rank, int64_t ranks)
{
    tcc_builder b = tcc_builder_before(loop);
    b.loc = loop->loc;
    tcc_value *n = tcc_arith_add(&b, TCC_VIEW(scf_for, loop)->hi, ranks - 1);
    tcc_op_set_operand(loop, 1, tcc_arith_div(&b, n, ranks));
    tcc_value *own = loop->regions[0]->args[0];
    b = tcc_builder_before(loop->regions[0]->first);
    b.loc = loop->loc;
    tcc_value *step = tcc_build_i32(&b, ranks), *first = TCC_EMIT(&b, arith_mul, own->type, step, step);
    tcc_replace_uses(own, TCC_EMIT(&b, arith_add, own->type, first, rank));
    tcc_op_set_operand(first->def, 0, own);
    tcc_attr_remove(&loop->attrs, "ranks");
}

/* The final values of the loop are passed to the first CTA, which adds them. The ranks of those that share it
 * differ by `apart`. */
static void add_up(tcc_op *loop, tcc_value *rank, int64_t ranks, int64_t apart)
{
    tcc_ir *ir = loop->block->func->ir;
    tcc_value **buffers = TCC_NEW_ARRAY(ir->arena, tcc_value *, loop->n_results);
    tcc_builder front = tcc_builder_before(loop), b = tcc_builder_after(loop);
    front.loc = b.loc = loop->loc;
    tcc_op *last = loop;
    for (unsigned i = 0; i < loop->n_results; i++) {
        const tcc_type *t = loop->results[i].type;
        const int64_t dims[] = {ranks - 1, t->dims[0].size, t->dims[1].size};
        buffers[i] = TCC_EMIT(&front, async_alloc, tcc_type_sized(ir, TCC_KIND_smem, t->elem, 3, dims), NULL);
        tcc_attr_set_int(ir, &buffers[i]->def->attrs, "swizzle", 0);
        tcc_attr_set_int(ir, &buffers[i]->def->attrs, "contiguous", 1);
    }
    TCC_EMIT_V(&front, async_cluster_barrier, NULL);
    tcc_op *meeting = TCC_EMIT_V(&b, async_cluster_barrier, NULL);
    tcc_builder between = tcc_builder_before(meeting);
    between.loc = loop->loc;
    for (unsigned i = 0; i < loop->n_results; i++) {
        tcc_value *sum = TCC_EMIT(&b, async_collect, loop->results[i].type, &loop->results[i], buffers[i], rank);
        tcc_replace_uses(&loop->results[i], sum);
        tcc_op_set_operand(sum->def, 0, &loop->results[i]);
        tcc_op *hand = TCC_EMIT_V(&between, async_contribute, &loop->results[i], buffers[i], rank);
        if (apart > 1)
            tcc_attr_set_int(ir, &hand->attrs, "apart", apart);
        last = sum->def;
    }
    b = tcc_builder_at_end(last->block);
    b.loc = loop->loc;
    TCC_EMIT_V(&b, async_cluster_barrier, NULL);
}

/* Behind the loop the tiles of others than the first begin where the axis of tiles ends. */
static void store_once(tcc_builder *b, const tcc_op *grid, tcc_value *const *at, tcc_value *rank)
{
    size_t x = axis_of_tiles(grid);
    tcc_block *body = grid->regions[0];
    tcc_value *is_first = tcc_arith_cmp(b, "eq", rank, tcc_build_i32(b, 0));
    tcc_value *once = TCC_EMIT(b, arith_select, at[x]->type, is_first, at[x], build_extent(b, grid, x));
    for (tcc_op *op = find_shared_loop(grid)->next; op; op = tcc_walk_next(op, body))
        for (unsigned i = 0; i < op->n_operands; i++)
            if (op->operands[i] == body->args[x])
                tcc_op_set_operand(op, i, once);
}

/* ---- the CTAs ------------------------------------------------------------------------------ */

/* A loop over the tiles of a persistent CTA, the first having its own number, the others at a fixed stride, or drawn:
 * returns the tile's number, and the builder is in the loop. A counter from 0 by 1 can serve as an iteration
 * number. */
static tcc_value *begin_loop(tcc_builder *b, size_t n, tcc_value *const *tiles, const tcc_block *ctas, bool draws)
{
    tcc_value *all = tiles[0], *cta = ctas->args[0], *launched = ctas->args[1];
    for (size_t x = 1; x < n; x++)
        all = tcc_arith_bin(b, TCC_OP_arith_mul, all, tiles[x]);
    tcc_value *left = NULL;
    if (!draws) {
        left = tcc_arith_bin(b, TCC_OP_arith_sub, all, cta);
        left = tcc_arith_add(b, tcc_arith_bin(b, TCC_OP_arith_add, left, launched), -1);
    }
    tcc_value *bounds[] = {tcc_build_i32(b, 0), NULL, NULL};
    bounds[1] = draws ? TCC_EMIT(b, tile_takes, all->type, cta, launched, all)
                      : tcc_arith_bin(b, TCC_OP_arith_div, left, launched);
    bounds[2] = tcc_build_i32(b, 1);
    tcc_op *loop = tcc_op_create(b, TCC_OP_scf_for, 3, bounds, 0, NULL);
    tcc_attr_set_int(b->func->ir, &loop->attrs, "at_least_once", 1);
    tcc_value *i = tcc_block_add_arg(loop->regions[0], bounds[0]->type, "i");
    tcc_loc loc = b->loc;
    *b = tcc_builder_at_end(loop->regions[0]);
    b->loc = loc;
    if (draws)
        return TCC_EMIT(b, tile_take, i->type, cta, launched, all, i);
    return tcc_arith_bin(b, TCC_OP_arith_add, cta, tcc_arith_bin(b, TCC_OP_arith_mul, i, launched));
}

/* Whether an op is a number that does not depend on the tile: rings want to know how many iterations the
 * loops inside have. */
static bool is_same_for_all(const tcc_op *op, const tcc_op *loop)
{
    bool same = tcc_op_info_get(op->code)->flags & TCC_PURE && op->n_results == 1 &&
                op->results[0].type->kind == TCC_KIND_scalar;
    for (unsigned i = 0; same && i < op->n_operands; i++)
        same = tcc_is_invariant(op->operands[i], loop);
    return same;
}

/* How many CTAs, or clusters, there are along each axis. */
static tcc_attr launched(tcc_ir *ir, const tcc_op *grid, size_t n)
{
    tcc_attr *axes = TCC_NEW_ARRAY(ir->arena, tcc_attr, n);
    for (size_t x = 0; x < n; x++) {
        const tcc_index_expr *extent = tcc_index_of_attr(ir, extent_of(grid, x));
        axes[x] = tcc_attr_of_index(tcc_index_ceildiv(ir, extent, taken(grid, x)));
    }
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {axes, n}};
}

static tcc_op *find_grid(const tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tile_grid)
            return op;
    return NULL;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_op *grid = find_grid(f);
    size_t n = grid ? tcc_attr_list(&grid->attrs, "axes").list.n : 0;
    if (n < 1 || n > MAX_AXES)
        return TCC_OK;
    const char *why = why_not_shared(grid);
    if (why) {
        tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, grid->loc, "not supported yet: CTAs that share %s", why);
        return TCC_ERR_UNSUPPORTED;
    }
    tcc_builder b = tcc_builder_before(grid);
    tcc_op *ctas = tcc_op_create(&b, TCC_OP_tile_ctas, 0, NULL, 0, NULL);
    tcc_attr_set(ctx->ir, &ctas->attrs, "grid", launched(ctx->ir, grid, n), (tcc_loc){0, 0});
    if (tcc_attr_find(&grid->attrs, "spread"))
        tcc_attr_set(ctx->ir, &ctas->attrs, "spread", tcc_attr_list(&grid->attrs, "spread"), (tcc_loc){0, 0});
    const tcc_type *i32 = tcc_type_scalar(ctx->ir, TCC_i32);
    tcc_value *number = tcc_block_add_arg(ctas->regions[0], i32, "cta"), *tiles[MAX_AXES];
    tcc_builder in = tcc_builder_at_end(ctas->regions[0]);
    in.loc = grid->loc;
    for (size_t x = 0; x < n; x++)
        tiles[x] = count_tiles(&in, grid, x);
    bool persistent = tcc_attr_int(&grid->attrs, "persistent", 0);
    if (persistent)
        tcc_block_add_arg(ctas->regions[0], i32, "ctas");
    tcc_value *rank = NULL, *behind[2];
    if (cluster_of(grid) > 1) {
        tcc_attr_set_int(ctx->ir, &ctas->attrs, "cluster", cluster_of(grid));
        rank = tcc_block_add_arg(ctas->regions[0], i32, "rank");
    }
    place_in_cluster(&in, grid, rank, behind);
    int64_t sharing_operands = cluster_along(grid, 0) * cluster_along(grid, 1);
    tcc_op *shared = find_shared_loop(grid);
    if (shared) /* they are consecutive in the cluster, those that share operands first */
        rank = tcc_arith_div(&in, rank, sharing_operands);
    if (persistent)
        number = begin_loop(&in, n, tiles, ctas->regions[0], tcc_attr_int(&grid->attrs, "persistent", 0) > 1);
    tcc_value *at[MAX_AXES];
    place_tile(&in, grid, n, tiles, number, behind, at);
    if (shared)
        store_once(&in, grid, at, rank);
    for (size_t x = 0; x < n; x++)
        tcc_replace_uses(grid->regions[0]->args[x], at[x]);
    tcc_op *loop = persistent ? in.block->parent : NULL;
    tcc_builder front = loop ? tcc_builder_before(loop) : in;
    for (tcc_op *op; (op = grid->regions[0]->first);)
        tcc_op_move(loop && is_same_for_all(op, loop) ? &front : &in, op);
    if (loop)
        tcc_op_create(&in, TCC_OP_scf_yield, 0, NULL, 0, NULL);
    tcc_op_erase(grid);
    if (shared) {
        int64_t ranks = tcc_attr_int(&shared->attrs, "ranks", 1);
        take_share(shared, rank, ranks);
        add_up(shared, rank, ranks, sharing_operands);
    }
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_distribute_grid = {
    "distribute-grid", "decide which tiles each CTA computes", .run = run,
    .requires = TCC_UP_TO(tiles),
    .leaves = TCC_STATE(ctas),
    .undoes = TCC_STATE(grid)};
