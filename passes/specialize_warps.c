/* specialize-warps: give copies and MMAs to warps of their own, or interleave them.
 *
 * Before:  scf.for %i { acquire; copy…; commit; wait; mma; mma_wait; release }    (epilogue)
 * After, with a producer:
 *          async.roles { scf.for %i { acquire; copy…; commit } }
 *                      { scf.for %i { wait; mma; mma_wait; release }    (epilogue) }
 * After, with producer none:
 *          async.roles {} { scf.for %i = 0 … min(stages - 1, trips) { acquire; copy…; commit }
 *                           scf.for %i { wait; mma; mma_wait; release
 *                                        scf.if %i + stages - 1 < trips
 *                                          { acquire; copy…; commit }  of %i + stages - 1 }
 *                           (epilogue) }
 *
 * Without a producer the consumers run stages - 1 trips ahead with their copies; the stage that
 * is acquired in a trip is the one that the trip has just released. With one stage there is no
 * running ahead: the copies stay in front of their product. Tiles that go through registers
 * (async.put) are ahead already.
 *
 * Requires pipeline-copies.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/passes.h"
#include "passes/schedule.h"

static tcc_op *find_ring(const tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_async_ring)
            return op;
    return NULL;
}

static tcc_op *ring_loop(const tcc_op *ring)
{
    for (tcc_op *op = ring->next; op; op = op->next)
        if (op->code == TCC_OP_scf_for)
            return op;
    return NULL;
}

static bool is_copy_side(const tcc_op *op)
{
    return op->code == TCC_OP_async_acquire || op->code == TCC_OP_async_copy ||
           op->code == TCC_OP_async_commit;
}

static bool is_pure(const tcc_op *op)
{
    return tcc_op_info_get(op->code)->flags & TCC_PURE;
}

/* Clones the copy side of a loop's body for iteration i. What only the product needs is pure and
 * stays unused: dce. */
static void clone_copies(tcc_builder *b, const tcc_op *loop, tcc_value *i, tcc_arena *scratch)
{
    tcc_value_map *map = tcc_value_map_create(scratch);
    tcc_value_map_set(map, loop->regions[0]->args[0], i);
    for (tcc_op *op = loop->regions[0]->first; op; op = op->next)
        if (is_copy_side(op) || is_pure(op))
            tcc_op_clone(b, op, map);
}

/* for i = 0; i < hi: the copies of iteration i. */
static void build_copy_loop(tcc_builder *b, const tcc_op *loop, tcc_value *hi, bool at_least_once,
                            tcc_arena *scratch)
{
    tcc_value *bounds[] = {tcc_build_i32(b, 0), hi, NULL};
    bounds[2] = tcc_build_i32(b, 1);
    tcc_op *copies = tcc_op_create(b, TCC_OP_scf_for, 3, bounds, 0, NULL);
    if (at_least_once)
        tcc_attr_set_int(b->func->ir, &copies->attrs, "at_least_once", 1);
    tcc_value *i = tcc_block_add_arg(copies->regions[0], bounds[0]->type, "trip");
    tcc_builder in = tcc_builder_at_end(copies->regions[0]);
    in.loc = b->loc;
    clone_copies(&in, loop, i, scratch);
    tcc_op_create(&in, TCC_OP_scf_yield, 0, NULL, 0, NULL);
}

static void erase_copies(tcc_op *loop)
{
    for (tcc_op *op = loop->regions[0]->first, *next; op; op = next) {
        next = op->next;
        if (is_copy_side(op))
            tcc_op_erase(op);
    }
}

static bool has_copies(const tcc_op *loop)
{
    for (const tcc_op *op = loop->regions[0]->first; op; op = op->next)
        if (op->code == TCC_OP_async_copy)
            return true;
    return false;
}

/* Moves the copies of a loop without producer ahead of their products, `ahead` trips. */
static void skew(tcc_op *loop, int64_t ahead, tcc_arena *scratch)
{
    const tcc_type *i32 = loop->regions[0]->args[0]->type;
    const tcc_type *i1 = tcc_type_scalar(loop->block->func->ir, TCC_i1);
    tcc_value *trips = TCC_VIEW(scf_for, loop)->hi;
    tcc_builder b = tcc_builder_before(loop);
    tcc_value *first = TCC_EMIT(&b, arith_min, i32, trips, tcc_build_i32(&b, ahead));
    build_copy_loop(&b, loop, first, true, scratch);

    b = tcc_builder_before(loop->regions[0]->last);
    tcc_value *i =
        TCC_EMIT(&b, arith_add, i32, loop->regions[0]->args[0], tcc_build_i32(&b, ahead));
    tcc_value *more = TCC_EMIT(&b, arith_cmp, i1, i, trips);
    tcc_attr_set_str(b.func->ir, &more->def->attrs, "pred", "lt");
    tcc_op *then = tcc_op_create(&b, TCC_OP_scf_if, 1, &more, 0, NULL);
    tcc_builder in = tcc_builder_at_end(then->regions[0]);
    in.loc = b.loc;
    clone_copies(&in, loop, i, scratch);
    /* The clones are in the loop now: erase only those that stand in its own block. */
    erase_copies(loop);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_op *ring = find_ring(f);
    tcc_op *loop = ring ? ring_loop(ring) : NULL;
    const tcc_op *parent = loop ? loop->block->parent : NULL;
    if (!parent || parent->code != TCC_OP_tile_grid || parent->n_results)
        return TCC_OK;
    tcc_schedule s = tcc_schedule_of(f);

    tcc_builder b = tcc_builder_after(ring);
    tcc_op *roles = tcc_op_create(&b, TCC_OP_async_roles, 0, NULL, 0, NULL);
    tcc_attr_set_int(ctx->ir, &roles->attrs, "warpgroups", s.warpgroups);
    tcc_attr_set_str(ctx->ir, &roles->attrs, "producer", tcc_producer_name(s.producer));
    if (s.producer != TCC_PRODUCER_NONE) {
        tcc_builder p = tcc_builder_at_end(roles->regions[0]);
        p.loc = loop->loc;
        build_copy_loop(&p, loop, TCC_VIEW(scf_for, loop)->hi, true, ctx->scratch);
        erase_copies(loop);
    } else if (s.stages > 1 && has_copies(loop)) {
        skew(loop, s.stages - 1, ctx->scratch);
    }
    /* Scalars that both roles may use go in front, the rest is the consumers'. */
    tcc_builder front = tcc_builder_before(roles), consumer = tcc_builder_at_end(roles->regions[1]);
    for (tcc_op *op = roles->next, *next; op; op = next) {
        next = op->next;
        bool scalar = op->n_results == 1 && op->results[0].type->kind == TCC_KIND_scalar;
        tcc_op_move(is_pure(op) && scalar ? &front : &consumer, op);
    }
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_specialize_warps = {
    "specialize-warps", "give copies and MMAs to warps of their own, or interleave them", run};
