/* specialize-warps: give copies and MMAs to warps of their own, or interleave them.
 *
 * Before:  scf.for %i … {warps = [8, 1]} { acquire; copy…; commit; wait; mma; mma_wait; release }
 *          (epilogue)
 * After, with a producer:
 *          async.role {name = consumer, warps = 8}
 *              { scf.for %i { wait; mma; mma_wait; release }    (epilogue) }
 *          async.role {name = producer, warps = 1} { async.one { scf.for %i { acquire; copy…; commit } } }
 * After, with warps = [8, 0]:
 *          async.role {name = consumer, warps = 8}
 *              { scf.for %i = 0 … min(stages - 1, trips) { async.one { acquire; copy…; commit } }
 *                scf.for %i { wait; mma; mma_wait; release
 *                             scf.if %i + stages - 1 < trips
 *                               { async.one { acquire; copy…; commit } }  of %i + stages - 1 }
 *                (epilogue) }
 *
 * One thread is enough for the copy engine; what threads copy themselves (predicated) all of the role
 * copy. The ring learns how many commit and release.
 *
 * Without a producer the consumers run stages - 1 iterations ahead with their copies; the stage that
 * is acquired in an iteration is the one that it has just released. With one stage there is no
 * running ahead: the copies stay in front of their MMA. Tiles that go through registers
 * (async.put) are ahead already.
 *
 * Requires pipeline-copies.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/machine.h"
#include "passes/arith.h"
#include "passes/passes.h"

/* A loop whose copies are to be done by others, or ahead. */
typedef struct split {
    tcc_op *ring, *loop;
    bool by_one; /* thread */
    int64_t consumers, producers; /* warps */
    int64_t registers[2];         /* 0: as launched */
    tcc_arena *scratch;
} split;

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
        if (op->code == TCC_OP_scf_for && tcc_attr_find(&op->attrs, "warps"))
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

/* What copies may be computed from, and both roles may use. */
static bool is_number(const tcc_op *op)
{
    return is_pure(op) && op->n_results == 1 && op->results[0].type->kind == TCC_KIND_scalar;
}

/* Where copies go: into async.one, or to b itself. */
static tcc_builder begin_copies(const split *s, tcc_builder *b)
{
    if (!s->by_one)
        return *b;
    tcc_builder in =
        tcc_builder_at_end(tcc_op_create(b, TCC_OP_async_one, 0, NULL, 0, NULL)->regions[0]);
    in.loc = b->loc;
    return in;
}

/* Clones the copy side of the loop's body for iteration i. Numbers that only others need stay unused:
 * dce. */
static void clone_copies(const split *s, tcc_builder *b, tcc_value *i, bool begin)
{
    tcc_value_map *map = tcc_value_map_create(s->scratch);
    const tcc_block *body = s->loop->regions[0];
    tcc_value_map_set(map, body->args[0], i);
    for (tcc_op *op = body->first; op; op = op->next)
        if (is_number(op))
            tcc_op_clone(b, op, map);
    tcc_builder in = begin ? begin_copies(s, b) : *b;
    for (tcc_op *op = body->first; op; op = op->next)
        if (is_copy_side(op))
            tcc_op_clone(&in, op, map);
}

/* The copies of the loop's iterations up to hi, which `begin` puts into async.one each. */
static void build_copy_loop(const split *s, tcc_builder *b, tcc_value *hi, bool begin)
{
    const tcc_scf_for_operands *of = TCC_VIEW(scf_for, s->loop);
    tcc_value *bounds[] = {of->lo, hi, of->step};
    tcc_op *copies = tcc_op_create(b, TCC_OP_scf_for, 3, bounds, 0, NULL);
    if (tcc_attr_int(&s->loop->attrs, "at_least_once", 0))
        tcc_attr_set_int(b->func->ir, &copies->attrs, "at_least_once", 1);
    tcc_value *i = tcc_block_add_arg(copies->regions[0], bounds[0]->type, "trip");
    tcc_builder in = tcc_builder_at_end(copies->regions[0]);
    in.loc = b->loc;
    clone_copies(s, &in, i, begin);
    tcc_op_create(&in, TCC_OP_scf_yield, 0, NULL, 0, NULL);
}

static void erase_copies(const split *s)
{
    for (tcc_op *op = s->loop->regions[0]->first, *next; op; op = next) {
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

/* Moves the copies of a loop without producer ahead of their MMAs, `ahead` iterations. */
static void skew(const split *s, int64_t ahead)
{
    tcc_op *loop = s->loop;
    tcc_value *trips = TCC_VIEW(scf_for, loop)->hi;
    tcc_builder b = tcc_builder_before(loop);
    build_copy_loop(s, &b, tcc_arith_bin_const(&b, TCC_OP_arith_min, trips, ahead), true);

    b = tcc_builder_before(loop->regions[0]->last);
    tcc_value *i = tcc_arith_add(&b, loop->regions[0]->args[0], ahead);
    tcc_op *then = tcc_begin_if(&b, tcc_arith_cmp(&b, "lt", i, trips));
    clone_copies(s, &b, i, true);
    tcc_end_if(&b, then);
    /* The clones are in the loop now: erase only those that stand in its own block. */
    erase_copies(s);
}

/* Puts the copies, which stay where they are, into async.one. */
static void enclose(const split *s)
{
    tcc_op *op = s->loop->regions[0]->first;
    while (!is_copy_side(op))
        op = op->next;
    tcc_builder b = tcc_builder_before(op);
    tcc_builder in = begin_copies(s, &b);
    for (tcc_op *next; op; op = next) {
        next = op->next;
        if (is_copy_side(op))
            tcc_op_move(&in, op);
    }
}

static tcc_op *build_role(tcc_builder *b, const char *name, int64_t warps, int64_t registers)
{
    tcc_ir *ir = b->func->ir;
    tcc_op *role = tcc_op_create(b, TCC_OP_async_role, 0, NULL, 0, NULL);
    tcc_attr_set_str(ir, &role->attrs, "name", name);
    tcc_attr_set_int(ir, &role->attrs, "warps", warps);
    if (registers)
        tcc_attr_set_int(ir, &role->attrs, "registers", registers);
    return role;
}

static void build_producer(const split *s, tcc_builder *b)
{
    tcc_op *role = build_role(b, "producer", s->producers, s->registers[1]);
    tcc_builder in = tcc_builder_at_end(role->regions[0]);
    in.loc = s->loop->loc;
    in = begin_copies(s, &in);
    build_copy_loop(s, &in, TCC_VIEW(scf_for, s->loop)->hi, false);
    erase_copies(s);
}

/* How many fill a stage, and empty it. */
static void count(const split *s, tcc_ir *ir)
{
    tcc_attrs *attrs = &s->ring->attrs;
    if (!strcmp(tcc_attr_str(attrs, "completion", ""), "barrier"))
        return;
    int64_t warps = s->producers ? s->producers : s->consumers;
    tcc_attr_set_int(ir, attrs, "commits", s->by_one ? 1 : warps * TCC_WARP_LANES);
    tcc_attr_set_int(ir, attrs, "releases", s->consumers / TCC_WARPGROUP_WARPS);
}

static bool find_split(tcc_pass_ctx *ctx, const tcc_func *f, split *s)
{
    *s = (split){.ring = find_ring(f), .scratch = ctx->scratch};
    s->loop = s->ring ? ring_loop(s->ring) : NULL;
    const tcc_op *grid = s->loop ? s->loop->block->parent : NULL;
    if (!grid || grid->n_results ||
        (grid->code != TCC_OP_tile_grid && grid->code != TCC_OP_tile_ctas))
        return false;
    tcc_attr warps = tcc_attr_list(&s->loop->attrs, "warps");
    tcc_attr registers = tcc_attr_list(&s->loop->attrs, "registers");
    s->consumers = warps.list.items[0].i;
    s->producers = warps.list.items[1].i;
    for (int i = 0; i < 2 && registers.list.n == 2; i++)
        s->registers[i] = registers.list.items[i].i;
    s->by_one = !strcmp(tcc_attr_str(&s->ring->attrs, "completion", ""), "bytes");
    return s->consumers > 0;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    split s;
    if (!find_split(ctx, f, &s))
        return TCC_OK;
    count(&s, ctx->ir);
    tcc_attrs *of_loop = &s.loop->attrs;
    int64_t separate = tcc_attr_int(of_loop, "separate", 0);
    tcc_builder b = tcc_builder_after(s.ring);
    tcc_op *consumer = build_role(&b, "consumer", s.consumers, s.registers[0]), *last = consumer;
    if (separate)
        tcc_attr_set_int(ctx->ir, &consumer->attrs, "separate", separate);
    const char *const decided[] = {"warps", "registers", "separate"};
    for (int i = 0; i < 3; i++)
        tcc_attr_remove(of_loop, decided[i]);

    int64_t stages = tcc_attr_int(&s.ring->attrs, "stages", 1);
    if (s.producers) {
        build_producer(&s, &b);
        last = consumer->next;
    } else if (has_copies(s.loop)) {
        if (stages > 1 && tcc_counts_iterations(s.loop))
            skew(&s, stages - 1);
        else if (s.by_one)
            enclose(&s);
    }
    /* Scalars that both roles may use go in front, tiles and the rest are the consumers'. */
    tcc_builder front = tcc_builder_before(consumer);
    tcc_builder inside = tcc_builder_at_end(consumer->regions[0]);
    for (tcc_op *op = s.ring->block->first, *next; op != s.ring; op = next) {
        next = op->next;
        if (is_pure(op) && op->n_results == 1 && op->results[0].type->kind == TCC_KIND_tile)
            tcc_op_move(&inside, op);
    }
    for (tcc_op *op = last->next, *next; op; op = next) {
        next = op->next;
        tcc_op_move(is_number(op) ? &front : &inside, op);
    }
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_specialize_warps = {
    "specialize-warps", "give copies and MMAs to warps of their own, or interleave them", run};
