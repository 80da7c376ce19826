/* turns: let two roles take the tiles of a persistent CTA in turn: while one multiplies, the other stores
 * its results (pingpong).
 *
 * Before:  async.role {name = consumer, warps = 4} {
 *            scf.for %t { %before = %t * %n   (main loop, of iterations %before + %i)   (epilogue) }
 *          }
 * After:   %turn = async.ring {stages = 2, completion = turns}
 *          async.role {name = even, warps = 4} {
 *            async.acquire %turn, 0
 *            scf.for %t {
 *              %before = %t * %n
 *              scf.if %t % 2 == 0 {
 *                (main loop, in the last iteration: async.release %turn, %t)   (epilogue)
 *              } else {
 *                async.acquire %turn, %t + 1
 *              }
 *            }
 *          }
 *          async.role {name = odd, warps = 4} { (the same with %t % 2 == 1, and no first turn) }
 *
 * Both iterate over all tiles, so that the iteration number of the operands' ring continues across those of
 * the other role: all its MMAs have been started when the turn comes, and their number is known. The turn is
 * passed on before they have ended, so that the other's MMAs follow without a gap. What only the epilogue
 * needs, such as the tile's position, is computed there and delays no role.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/turns.h"

#include "ir/machine.h"
#include "passes/arith.h"
#include "passes/loops.h"
#include "support/map.h"

static const char *const names[] = {"even", "odd"};
enum { N_ROLES = sizeof names / sizeof *names };

/* ---- what of a tile is done in turn --------------------------------------------------------- */

/* Whether an op waits for stages or reads them. */
static bool takes_stages(const tcc_op *op)
{
    return op->code == TCC_OP_async_wait || op->code == TCC_OP_async_mma || op->code == TCC_OP_async_read;
}

/* The last op of a block that takes stages, or has one in it that does. */
static tcc_op *last_to_take(const tcc_block *block)
{
    tcc_op *last = NULL;
    for (tcc_op *op = block->first; op; op = tcc_walk_next(op, block))
        last = takes_stages(op) ? op : last;
    return last ? tcc_ancestor_in(last, block) : NULL;
}

/* Finds what is done in turn: the ops up to `last`, and of numbers those that they need. */
static void find_main(const tcc_block *body, tcc_op *last, tcc_map *main)
{
    for (tcc_op *op = last; op; op = op->prev) {
        bool wanted = !tcc_is_number(op);
        for (const tcc_use *u = wanted ? NULL : op->results[0].uses; u && !wanted; u = u->next)
            wanted = tcc_map_get(main, tcc_ancestor_in(u->op, body));
        if (wanted)
            *tcc_map_at(main, op) = op;
    }
}

/* Whether an op after the MMAs completes them: it waits for them, releases stages, or computes a number for
 * that. */
static bool ends_mmas(const tcc_op *op, const tcc_map *later)
{
    bool ends = op->code == TCC_OP_async_mma_wait || op->code == TCC_OP_async_release || tcc_is_number(op);
    for (unsigned i = 0; i < op->n_operands; i++)
        ends &= !op->operands[i]->def || !tcc_map_get(later, op->operands[i]->def);
    return ends;
}

/* Passes the turn on when all MMAs of a tile have been started: in the loop's last iteration, as ptxas requires
 * the wait for them directly after the loop. */
static void pass_on(tcc_op *last, tcc_value *turn, tcc_value *t)
{
    tcc_builder b = tcc_builder_after(last);
    tcc_op *mma = tcc_is_loop(last) ? last_to_take(last->regions[0]) : NULL, *test = NULL;
    b.loc = last->loc;
    if (mma && mma->code == TCC_OP_async_mma && tcc_counts_iterations(last)) {
        b = tcc_builder_after(mma);
        b.loc = mma->loc;
        tcc_value *next = tcc_arith_add(&b, last->regions[0]->args[0], 1);
        test = tcc_begin_if(&b, tcc_arith_cmp(&b, "eq", next, TCC_VIEW(scf_for, last)->hi));
    }
    TCC_EMIT_V(&b, async_release, turn, t);
    if (test)
        tcc_end_if(&b, test);
}

/* ---- roles ----------------------------------------------------------------------------- */

/* The loop over tiles that a role is, beside numbers; NULL when it is not. */
static tcc_op *loop_of(const tcc_op *role)
{
    tcc_op *loop = NULL;
    for (tcc_op *op = role->regions[0]->first; op; op = op->next) {
        if (tcc_is_number(op))
            continue;
        if (loop || !tcc_is_loop(op) || !tcc_counts_iterations(op) || op->n_results)
            return NULL;
        loop = op;
    }
    return loop;
}

/* Lets one role take every tile whose number is `number` modulo N_ROLES. */
static void take_turns(tcc_pass_ctx *ctx, tcc_op *role, int64_t number, tcc_value *turn)
{
    tcc_op *loop = loop_of(role);
    tcc_block *body = loop->regions[0];
    tcc_value *t = body->args[0];
    tcc_op *last = last_to_take(body);
    tcc_map main = TCC_MAP(ctx->scratch), later = TCC_MAP(ctx->scratch);
    TCC_VEC(tcc_op *) moved = {0}, numbers = {0};
    find_main(body, last, &main);
    for (tcc_op *op = body->first; op != last->next; op = op->next)
        if (!tcc_map_get(&main, op)) {
            TCC_PUSH(ctx->scratch, &numbers, op);
            *tcc_map_at(&later, op) = op;
        } else if (!tcc_is_number(op)) {
            TCC_PUSH(ctx->scratch, &moved, op);
        }
    tcc_op *behind = last->next;
    for (; behind != body->last && ends_mmas(behind, &later); behind = behind->next)
        TCC_PUSH(ctx->scratch, &moved, behind);
    for (size_t i = 0; i < numbers.len; i++)
        TCC_PUSH(ctx->scratch, &moved, numbers.data[i]);
    for (; behind != body->last; behind = behind->next)
        TCC_PUSH(ctx->scratch, &moved, behind);

    tcc_builder b = tcc_builder_before(body->last);
    b.loc = loop->loc;
    tcc_value *whose = tcc_arith_rem(&b, t, N_ROLES);
    tcc_op *test = tcc_begin_if(&b, tcc_arith_cmp(&b, "eq", whose, tcc_build_i32(&b, number)));
    for (size_t i = 0; i < moved.len; i++)
        tcc_op_move(&b, moved.data[i]);
    pass_on(last, turn, t);
    b = tcc_builder_at_end(test->regions[1]);
    b.loc = loop->loc;
    TCC_EMIT_V(&b, async_acquire, turn, tcc_arith_add(&b, t, 1));
    if (number)
        return;
    b = tcc_builder_before(loop);
    b.loc = loop->loc;
    TCC_EMIT_V(&b, async_acquire, turn, tcc_build_i32(&b, 0));
}

tcc_status tcc_take_turns(tcc_pass_ctx *ctx, tcc_op *role, int64_t n)
{
    tcc_ir *ir = ctx->ir;
    const tcc_op *loop = loop_of(role);
    if (n != N_ROLES || !loop || !last_to_take(loop->regions[0])) {
        tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, role->loc,
                  "not supported yet: %lld consumers that take turns outside a loop over tiles",
                  (long long)n);
        return TCC_ERR_UNSUPPORTED;
    }
    tcc_builder b = tcc_builder_before(role);
    b.loc = loop->loc;
    const tcc_type *type = tcc_type_get(ir, TCC_KIND_ring, TCC_f32, 0, NULL);
    tcc_op *ring = tcc_op_create(&b, TCC_OP_async_ring, 0, NULL, 1, &type);
    tcc_attr_set_int(ir, &ring->attrs, "stages", n);
    tcc_attr_set_str(ir, &ring->attrs, "completion", "turns");
    tcc_attr_set_int(ir, &ring->attrs, "releases",
                     tcc_attr_int(&role->attrs, "warps", 0) / TCC_WARPGROUP_WARPS);
    tcc_op *roles[N_ROLES] = {role};
    for (int64_t i = 1; i < n; i++) {
        b = tcc_builder_after(roles[i - 1]);
        roles[i] = tcc_op_clone(&b, role, tcc_value_map_create(ctx->scratch));
    }
    for (int64_t i = 0; i < n; i++) {
        tcc_attr_set_str(ir, &roles[i]->attrs, "name", names[i]);
        take_turns(ctx, roles[i], i, &ring->results[0]);
    }
    return TCC_OK;
}
