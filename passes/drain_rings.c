/* drain-rings: let the CTAs of a cluster end without a barrier, once all have released their stages.
 *
 * Before:  %ring = async.ring … {stages = 4, cluster = 2}
 *          async.cluster_barrier
 *          async.role {name = consumer, …} { scf.for %i = 0 … %n { … async.release %ring, (%i - 1) } … }
 *          async.role {name = producer, …} { async.one { scf.for %i = 0 … %n { async.acquire %ring, %i … } } }
 *          async.cluster_barrier
 * After:   …
 *          async.role {name = producer, …} { async.one {
 *            %m = scf.for %i = 0 … %n (%k = 0) { async.acquire %ring, %i …  scf.yield (%k + 1) }
 *            scf.for %j = 0 … 3 (%k = %m) { async.acquire %ring, %k   scf.yield (%k + 1) }
 *          } }
 *
 * The barrier keeps a CTA's shared memory until no other copies to it, or releases its stages there. What is copied,
 * consumers have waited for. What is released, the producer waits for here, by acquiring once more the stages of the
 * iterations that are: consumers need not wait for other CTAs once they have stored their results.
 *
 * A persistent CTA, whose loop is in another, ends once for many tiles and keeps the barrier, and so do CTAs that pass
 * each other what they have computed.
 *
 * Requires specialize-warps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/cluster.h"
#include "ir/shared.h"
#include "passes/arith.h"
#include "passes/loops.h"
#include "passes/lowering.h"
#include "passes/passes.h"

enum { NOT_FOLLOWED = -1 };

/* A ring whose stages several CTAs fill, the loop that fills them, and how many of its last iterations are not
 * released. */
typedef struct shared_ring {
    tcc_value *ring;
    tcc_op *loop;
    int64_t kept;
} shared_ring;

typedef struct draining {
    tcc_arena *scratch;
    tcc_block *body; /* of the CTAs */
    TCC_VEC(shared_ring) rings;
} draining;

/* The loop of which op is in the body, if it counts iterations and is in a role, or in its async.one, but in no other
 * loop; else NULL. */
static tcc_op *loop_of(const draining *d, const tcc_op *op)
{
    tcc_op *loop = op->block->parent;
    const tcc_op *role = loop ? loop->block->parent : NULL;
    if (role && role->code == TCC_OP_async_one)
        role = role->block->parent;
    bool is_simple = role && role->code == TCC_OP_async_role && role->block == d->body && tcc_is_loop(loop) &&
                     tcc_counts_iterations(loop);
    return is_simple ? loop : NULL;
}

/* How many iterations of its loop op is behind with the one that it names: 0, or 1. */
static int64_t iterations_behind(const tcc_op *op, const tcc_op *loop)
{
    const tcc_value *i = op->operands[1], *index = loop->regions[0]->args[0];
    int64_t number;
    if (i == index)
        return 0;
    bool is_last = i->def && i->def->code == TCC_OP_arith_sub && i->def->operands[0] == index &&
                   tcc_value_is_int(i->def->operands[1], &number) && number == 1;
    return is_last ? 1 : NOT_FOLLOWED;
}

/* False if it is not known when all of the ring's stages have been released. */
static bool follow_ring(draining *d, tcc_op *ring)
{
    shared_ring r = {.ring = &ring->results[0], .kept = NOT_FOLLOWED};
    const tcc_op *releases = NULL;
    for (const tcc_use *u = r.ring->uses; u; u = u->next) {
        if (u->op->code != TCC_OP_async_acquire && u->op->code != TCC_OP_async_release)
            continue;
        tcc_op *loop = loop_of(d, u->op);
        int64_t behind = loop ? iterations_behind(u->op, loop) : NOT_FOLLOWED;
        if (u->op->code == TCC_OP_async_acquire) {
            if (r.loop || behind)
                return false;
            r.loop = loop;
        } else {
            if (releases || behind < 0)
                return false;
            releases = loop;
            r.kept = behind;
        }
    }
    if (!r.loop || !releases || r.loop->operands[1] != releases->operands[1] || r.loop->n_results)
        return false;
    TCC_PUSH(d->scratch, &d->rings, r);
    return true;
}

/* Whether the CTAs synchronize before their roles and at their end only, and the end can do without. */
static bool can_drain(draining *d)
{
    unsigned meetings = 0;
    bool can = true;
    for (tcc_op *op = d->body->first; op && can; op = tcc_walk_next(op, d->body)) {
        meetings += op->code == TCC_OP_async_cluster_barrier;
        if (op->code == TCC_OP_async_ring && tcc_attr_find(&op->attrs, "cluster"))
            can = !tcc_is_of_words(op) && follow_ring(d, op);
    }
    return can && meetings == 2 && d->rings.len && d->body->last->code == TCC_OP_async_cluster_barrier;
}

/* Acquires so many stages from the iteration on that would be the next, in a loop that carries its number. */
static void build_drain(const shared_ring *r, const tcc_op *filled, int64_t n)
{
    tcc_value *from = &filled->results[filled->n_results - 1];
    tcc_builder b = tcc_builder_at_end(filled->block);
    b.loc = filled->loc;
    if (n == 1) {
        TCC_EMIT_V(&b, async_acquire, r->ring, from);
        return;
    }
    tcc_value *lo = tcc_build_i32(&b, 0), *hi = tcc_build_i32(&b, n), *step = tcc_build_i32(&b, 1);
    tcc_op *loop = tcc_op_create(&b, TCC_OP_scf_for, 4, (tcc_value *[]){lo, hi, step, from}, 1, &from->type);
    tcc_attr_set_int(b.func->ir, &loop->attrs, "at_least_once", 1);
    tcc_block_add_arg(loop->regions[0], from->type, "stage");
    tcc_value *k = tcc_block_add_arg(loop->regions[0], from->type, "iteration");
    b = tcc_builder_at_end(loop->regions[0]);
    b.loc = filled->loc;
    TCC_EMIT_V(&b, async_acquire, r->ring, k);
    tcc_value *next = tcc_arith_add(&b, k, 1);
    tcc_op_create(&b, TCC_OP_scf_yield, 1, &next, 0, NULL);
}

/* The loop counts its iterations for those behind it. */
static tcc_op *count_iterations(tcc_op *loop)
{
    tcc_builder b = tcc_builder_before(loop);
    b.loc = loop->loc;
    loop = tcc_carry(loop, tcc_build_i32(&b, 0));
    tcc_block *body = loop->regions[0];
    b = tcc_builder_before(body->last);
    b.loc = loop->loc;
    tcc_carry_next(loop, tcc_arith_add(&b, body->args[body->n_args - 1], 1));
    return loop;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_op *ctas = tcc_low_find_ctas(f);
    draining d = {.scratch = ctx->scratch, .body = ctas ? ctas->regions[0] : NULL};
    if (!ctas || !can_drain(&d))
        return TCC_OK;
    for (size_t i = 0; i < d.rings.len; i++) {
        shared_ring *r = &d.rings.data[i];
        int64_t n = tcc_attr_int(&r->ring->def->attrs, "stages", 1) - r->kept;
        tcc_op *old = r->loop, *filled = old->n_results ? old : count_iterations(old);
        for (size_t j = i; j < d.rings.len; j++)
            if (d.rings.data[j].loop == old)
                d.rings.data[j].loop = filled;
        if (n > 0)
            build_drain(r, filled, n);
    }
    tcc_op_erase(d.body->last);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_drain_rings = {
    "drain-rings", "let the CTAs of a cluster end without a barrier, once their stages are released", .run = run,
    .requires = TCC_UP_TO(roles)};
