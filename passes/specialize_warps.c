/* specialize-warps: assign copies and MMAs to separate warps, or interleave them.
 *
 * Before:  scf.for %i … {warps = [8, 1]} { acquire; copy…; commit; wait; mma; mma_wait; release }
 *          (epilogue)
 * After, with a producer:
 *          async.role {name = consumer, warps = 8}
 *              { scf.for %i { wait; mma; mma_wait; release }    (epilogue) }
 *          async.role {name = producer, warps = 1} { async.one { scf.for %i { acquire; copy…; commit } } }
 * After, with warps = [8, 0]:
 *          async.role {name = consumer, warps = 8}
 *              { scf.for %i = 0 … min(stages - 1, iterations) { async.one { acquire; copy…; commit } }
 *                scf.for %i { wait; mma; mma_wait; release
 *                             scf.if %i + stages - 1 < iterations
 *                               { async.one { acquire; copy…; commit } }  of %i + stages - 1 }
 *                (epilogue) }
 *
 * One thread is enough for the copy engine; copies by threads (predicated) are made by all of the
 * role. The ring learns how many commit and release.
 *
 * Without a producer the consumers run stages - 1 iterations ahead with their copies; the stage that
 * is acquired in an iteration is the one that it has just released. With one stage they cannot run
 * ahead: the copies stay before their MMA. Ops that fill stages without mbarriers
 * (pipeline-registers) are ahead already.
 *
 * Rings of computed tiles (async.put) belong to the consumers, which fill and empty them.
 *
 * The barriers of a cluster at the beginning and at the end are outside the roles; all roles reach those in
 * between.
 *
 * A CTA that copies nothing, or that multiplies nothing either but has tiles spread over warps, is one role.
 *
 * Requires pipeline-copies.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/cluster.h"
#include "ir/machine.h"
#include "ir/shared.h"
#include "passes/arith.h"
#include "passes/loops.h"
#include "passes/passes.h"
#include "passes/turns.h"

/* What is divided among roles: the body of a grid. */
typedef struct split {
    tcc_block *body;
    tcc_op *loop; /* the first that choose-pipeline has decided of */
    tcc_op *meeting; /* the barrier of the cluster before the roles; or NULL */
    bool by_one;  /* thread */
    int64_t consumers, producers; /* warps */
    int64_t registers[2];         /* 0: as launched */
    int64_t turns;                /* consumers that take tiles in turn */
    tcc_arena *scratch;
} split;

/* The decisions of choose-pipeline; from OF_ROLE on they concern the consumers. */
static const char *const decided[] = {"warps", "registers", "turns", "chunks", "ahead",
                                      "waves", "lanes",     "instr", "block"};
enum { N_DECIDED = sizeof decided / sizeof *decided, OF_ROLE = 3 };

/* Whether consumers fill a ring's stages, with what they compute. */
static bool is_own(const tcc_op *ring)
{
    bool own = false;
    for (const tcc_use *u = ring->results[0].uses; u; u = u->next)
        own |= u->op->code == TCC_OP_async_put;
    return own;
}

static bool is_copy_side(const tcc_op *op)
{
    bool fills = op->code == TCC_OP_async_acquire || op->code == TCC_OP_async_copy || op->code == TCC_OP_async_commit;
    return fills && !is_own(op->operands[0]->def);
}

/* Whether op, or one in it, is of the copies. */
static bool has_copies(const tcc_op *op)
{
    bool found = is_copy_side(op);
    for (unsigned r = 0; r < op->n_regions && !found; r++)
        for (tcc_op *in = op->regions[r]->first; in && !found;
             in = tcc_walk_next(in, op->regions[r]))
            found = is_copy_side(in);
    return found;
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

static void build_copy_loop(const split *s, tcc_builder *b, const tcc_op *loop, tcc_value *hi,
                            bool begin, tcc_value_map *map);

/* Clones the copy side of a loop's body for iteration i. Numbers that only others need stay unused:
 * dce. */
static void clone_copies(const split *s, tcc_builder *b, const tcc_op *loop, tcc_value *i,
                         bool begin, tcc_value_map *map)
{
    const tcc_block *body = loop->regions[0];
    tcc_value_map_set(map, body->args[0], i);
    for (tcc_op *op = body->first; op; op = op->next)
        if (tcc_is_number(op))
            tcc_op_clone(b, op, map);
    tcc_builder in = begin ? begin_copies(s, b) : *b;
    for (tcc_op *op = body->first; op; op = op->next)
        if (is_copy_side(op))
            tcc_op_clone(&in, op, map);
        else if (tcc_is_loop(op) && has_copies(op))
            build_copy_loop(s, &in, op, TCC_VIEW(scf_for, op)->hi, false, map);
}

/* The copies of a loop's iterations up to hi, which `begin` puts into async.one each. */
static void build_copy_loop(const split *s, tcc_builder *b, const tcc_op *loop, tcc_value *hi,
                            bool begin, tcc_value_map *map)
{
    const tcc_scf_for_operands *of = TCC_VIEW(scf_for, loop);
    tcc_value *bounds[] = {tcc_value_map_get(map, of->lo), tcc_value_map_get(map, hi),
                           tcc_value_map_get(map, of->step)};
    tcc_op *copies = tcc_op_create(b, TCC_OP_scf_for, 3, bounds, 0, NULL);
    if (tcc_attr_int(&loop->attrs, "at_least_once", 0))
        tcc_attr_set_int(b->func->ir, &copies->attrs, "at_least_once", 1);
    tcc_value *i = tcc_block_add_arg(copies->regions[0], bounds[0]->type, "iteration");
    tcc_builder in = tcc_builder_at_end(copies->regions[0]);
    in.loc = b->loc;
    clone_copies(s, &in, loop, i, begin, map);
    tcc_op_create(&in, TCC_OP_scf_yield, 0, NULL, 0, NULL);
}

static void erase_copies(tcc_block *block)
{
    for (tcc_op *op = block->first, *next; op; op = next) {
        next = op->next;
        if (is_copy_side(op))
            tcc_op_erase(op);
        else if (tcc_is_loop(op))
            erase_copies(op->regions[0]);
    }
}

/* How many iterations ahead the copies of a loop's body can be done: as many as its rings have stages, but
 * one. */
static int64_t most_ahead(const tcc_op *loop)
{
    int64_t stages = 1;
    for (const tcc_op *op = loop->regions[0]->first; op; op = op->next)
        if (op->code == TCC_OP_async_copy && tcc_has_mbarriers(TCC_VIEW(async_copy, op)->ring->def))
            stages = tcc_attr_int(&TCC_VIEW(async_copy, op)->ring->def->attrs, "stages", 1);
        else if (!is_copy_side(op) && has_copies(op))
            return 0;
    return tcc_counts_iterations(loop) ? stages - 1 : 0;
}

/* Moves the copies of a loop without producer ahead of their MMAs, `ahead` iterations. */
static void skew(const split *s, tcc_op *loop, int64_t ahead)
{
    tcc_value *iterations = TCC_VIEW(scf_for, loop)->hi;
    tcc_builder b = tcc_builder_before(loop);
    build_copy_loop(s, &b, loop, tcc_arith_bin_const(&b, TCC_OP_arith_min, iterations, ahead), true,
                    tcc_value_map_create(s->scratch));

    b = tcc_builder_before(loop->regions[0]->last);
    tcc_value *i = tcc_arith_add(&b, loop->regions[0]->args[0], ahead);
    tcc_op *then = tcc_begin_if(&b, tcc_arith_cmp(&b, "lt", i, iterations));
    clone_copies(s, &b, loop, i, true, tcc_value_map_create(s->scratch));
    tcc_end_if(&b, then);
    erase_copies(loop->regions[0]); /* the clones are in scf.if */
}

/* Puts the copies, which stay where they are, into async.one. */
static void enclose(const split *s, tcc_block *block)
{
    for (tcc_op *op = block->first, *next; op; op = next) {
        next = op->next;
        if (tcc_is_loop(op))
            enclose(s, op->regions[0]);
        if (!is_copy_side(op))
            continue;
        tcc_builder b = tcc_builder_before(op), in = begin_copies(s, &b);
        for (; op && is_copy_side(op); op = next) {
            next = op->next;
            tcc_op_move(&in, op);
        }
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

static bool is_meeting(const tcc_op *op)
{
    return op->code == TCC_OP_async_cluster_barrier;
}

/* Whether op is a barrier of the cluster between ops on tiles. */
static bool is_inner_meeting(const split *s, const tcc_op *op)
{
    return is_meeting(op) && op->next && op != s->meeting;
}

static void build_producer(const split *s, tcc_builder *b)
{
    tcc_op *role = build_role(b, "producer", s->producers, s->registers[1]);
    tcc_builder in = tcc_builder_at_end(role->regions[0]);
    tcc_value_map *map = tcc_value_map_create(s->scratch);
    in.loc = s->loop->loc;
    in = begin_copies(s, &in);
    for (tcc_op *op = s->body->first; op; op = op->next)
        if (is_copy_side(op))
            tcc_op_clone(&in, op, map);
        else if (tcc_is_loop(op) && has_copies(op))
            build_copy_loop(s, &in, op, TCC_VIEW(scf_for, op)->hi, false, map);
        else if (is_inner_meeting(s, op)) {
            in = tcc_builder_at_end(role->regions[0]);
            in.loc = op->loc;
            tcc_op_clone(&in, op, map);
        }
    erase_copies(s->body);
}

/* The consumers do the copies as well: ahead, where they can. */
static void interleave(const split *s)
{
    for (tcc_op *op = s->body->first; op; op = op->next)
        if (tcc_is_loop(op) && most_ahead(op))
            skew(s, op, most_ahead(op));
    if (s->by_one)
        enclose(s, s->body);
}

/* How many fill the stages of a ring, and empty them. */
static void count(const split *s, tcc_op *ring)
{
    tcc_ir *ir = ring->block->func->ir;
    if (!tcc_has_mbarriers(ring))
        return;
    bool own = is_own(ring);
    int64_t warps = s->producers && !own ? s->producers : s->consumers;
    tcc_attr_set_int(ir, &ring->attrs, "commits", s->by_one && !own ? 1 : warps * TCC_WARP_LANES);
    tcc_fillers fillers = tcc_fillers_of(ring);
    tcc_attr_set_int(ir, &ring->attrs, "releases", s->consumers / TCC_WARPGROUP_WARPS * tcc_fillers_count(&fillers));
}

/* Whether copies depend only on numbers: loops around them carry only tiles. */
static bool can_take_apart(const tcc_op *op)
{
    if (is_copy_side(op) || !has_copies(op))
        return true;
    if (!tcc_is_loop(op))
        return false;
    for (unsigned i = 0; i < op->n_results; i++)
        if (op->results[i].type->kind == TCC_KIND_scalar)
            return false;
    for (const tcc_op *in = op->regions[0]->first; in; in = in->next)
        if (!can_take_apart(in))
            return false;
    return true;
}

static bool same_decisions(const tcc_op *a, const tcc_op *b)
{
    for (int i = 0; i < N_DECIDED; i++) {
        const tcc_named_attr *x = tcc_attr_find(&a->attrs, decided[i]);
        const tcc_named_attr *y = tcc_attr_find(&b->attrs, decided[i]);
        if (!x != !y || (x && !tcc_attr_equal(&x->value, &y->value)))
            return false;
    }
    return true;
}

static bool find_split(tcc_pass_ctx *ctx, tcc_func *f, split *s)
{
    *s = (split){.scratch = ctx->scratch};
    const tcc_op *ring = NULL;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        const char *completion = tcc_attr_str(&op->attrs, "completion", "");
        if (op->code == TCC_OP_async_role)
            return false;
        if (op->code == TCC_OP_async_ring) {
            if (is_own(op))
                continue;
            if (ring && (op->block != ring->block ||
                         strcmp(completion, tcc_attr_str(&ring->attrs, "completion", ""))))
                return false;
            ring = op;
            s->by_one = !strcmp(completion, "bytes");
        } else if (tcc_is_loop(op) && tcc_attr_find(&op->attrs, "warps")) {
            if (s->loop && !same_decisions(op, s->loop))
                return false;
            s->loop = s->loop ? s->loop : op;
        }
    }
    s->body = ring ? ring->block : s->loop ? tcc_outermost(s->loop)->block : NULL;
    const tcc_op *grid = s->body ? s->body->parent : NULL;
    if (!s->loop || !grid || grid->n_results ||
        (grid->code != TCC_OP_tile_grid && grid->code != TCC_OP_tile_ctas))
        return false;
    for (const tcc_op *op = s->body->first; op; op = op->next)
        if (!can_take_apart(op))
            return false;
    tcc_attr warps = tcc_attr_list(&s->loop->attrs, "warps");
    tcc_attr registers = tcc_attr_list(&s->loop->attrs, "registers");
    s->consumers = warps.list.items[0].i;
    s->producers = warps.list.items[1].i;
    for (int i = 0; i < 2 && registers.list.n == 2; i++)
        s->registers[i] = registers.list.items[i].i;
    s->turns = tcc_attr_int(&s->loop->attrs, "turns", 1);
    return s->consumers > 0 && (ring || !s->producers);
}

static bool is_object(const tcc_op *op)
{
    return op->code == TCC_OP_async_ring || op->code == TCC_OP_async_alloc;
}

/* Whether an op may be before the roles: it computes a number from such numbers. */
static bool can_go_in_front(const tcc_op *op, const tcc_op *consumer)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        tcc_op *def = op->operands[i]->def;
        if (def && tcc_ancestor_in(def, consumer->regions[0]))
            return false;
    }
    return tcc_is_number(op);
}

/* A CTA whose tiles are spread over warps, and that has no roles yet. */
static tcc_op *find_spread(const tcc_func *f)
{
    tcc_op *ctas = f->body->first;
    while (ctas && !tcc_attr_find(&ctas->attrs, "spread"))
        ctas = ctas->next;
    for (const tcc_op *op = ctas ? ctas->regions[0]->first : NULL; op; op = op->next)
        if (op->code == TCC_OP_async_role)
            return NULL;
    return ctas;
}

static void enclose_all(tcc_op *ctas)
{
    tcc_block *body = ctas->regions[0];
    tcc_attr spread = tcc_attr_list(&ctas->attrs, "spread");
    tcc_builder b = body->first ? tcc_builder_before(body->first) : tcc_builder_at_end(body);
    b.loc = ctas->loc;
    tcc_op *role = build_role(&b, "consumer", spread.list.items[1].i * spread.list.items[2].i, 0);
    tcc_attr_set(b.func->ir, &role->attrs, "spread", spread, (tcc_loc){0, 0});
    tcc_attr_remove(&ctas->attrs, "spread");
    tcc_builder inside = tcc_builder_at_end(role->regions[0]);
    while (role->next)
        tcc_op_move(&inside, role->next);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    split s;
    tcc_op *ctas = find_spread(f);
    if (ctas) {
        enclose_all(ctas);
        *changed = true;
        return TCC_OK;
    }
    if (!find_split(ctx, f, &s))
        return TCC_OK;
    tcc_op *ring = NULL; /* the last */
    for (tcc_op *op = s.body->first; op; op = op->next) {
        if (op->code == TCC_OP_async_ring)
            count(&s, ring = op);
        if (is_meeting(op) && !s.meeting)
            s.meeting = op;
    }
    tcc_builder b = ring ? tcc_builder_after(ring) : tcc_builder_before(s.body->first);
    tcc_op *consumer = build_role(&b, "consumer", s.consumers, s.registers[0]), *last = consumer;
    for (int i = OF_ROLE; i < N_DECIDED; i++) {
        const tcc_named_attr *a = tcc_attr_find(&s.loop->attrs, decided[i]);
        if (a)
            tcc_attr_set(ctx->ir, &consumer->attrs, decided[i], a->value, (tcc_loc){0, 0});
    }
    for (tcc_op *op = s.body->first; op; op = tcc_walk_next(op, s.body))
        for (int i = 0; tcc_is_loop(op) && i < N_DECIDED; i++)
            tcc_attr_remove(&op->attrs, decided[i]);
    if (s.producers) {
        build_producer(&s, &b);
        last = consumer->next;
    } else {
        interleave(&s);
    }
    /* Numbers that both roles may use go in front, tiles and the rest are the consumers'. */
    tcc_builder front = tcc_builder_before(consumer);
    tcc_builder inside = tcc_builder_at_end(consumer->regions[0]);
    for (tcc_op *op = s.body->first, *next; op != consumer; op = next) {
        next = op->next;
        if (!is_object(op) && !is_meeting(op) && !can_go_in_front(op, consumer))
            tcc_op_move(&inside, op);
    }
    for (tcc_op *op = last->next, *next; op; op = next) {
        next = op->next;
        if (!is_meeting(op) || is_inner_meeting(&s, op))
            tcc_op_move(can_go_in_front(op, consumer) ? &front : &inside, op);
    }
    *changed = true;
    tcc_status status = s.turns > 1 ? tcc_take_turns(ctx, consumer, s.turns) : TCC_OK;
    b = tcc_builder_before(consumer);
    if (s.meeting)
        tcc_op_move(&b, s.meeting);
    return status;
}

const tcc_pass tcc_pass_specialize_warps = {
    "specialize-warps", "assign copies and MMAs to separate warps, or interleave them", .run = run,
    .requires = TCC_UP_TO(rings) & ~TCC_STATE(ctas),
    .leaves = TCC_STATE(roles)};
