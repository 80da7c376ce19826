/* pipeline_groups: loops whose tiles threads copy to shared memory in groups, stages - 1 iterations ahead.
 *
 * Before:  scf.for %i … (%c = 0.0) {
 *            %a = tile.load %A, %m, %i * 32 …    %b = tile.load %B, %i * 32, %n …
 *            scf.yield (tile.mma %a, %b, %c)
 *          }
 * After:   %ring = async.ring %sa, %sb {stages = 4, completion = group}
 *          (copies of iterations 0, 1, 2; wait for 0; %x, %y: what its first round multiplies)
 *          scf.for %i … (%c, %x, %y) {
 *            acquire i + 3; async.copy … of i + 3; commit i + 3
 *            for each further round: %x1, %y1 = async.read i …   %c = tile.mma %x, %y, %c
 *            release i
 *            async.wait i + 1 {pending = 2}; async.barrier
 *            %x1, %y1 = async.read i + 1 …   %c = tile.mma, the last round
 *          }
 *          async.wait {pending = 0}
 *
 * What is multiplied was read a round before. The one barrier of an iteration says that the copies of the next
 * tile are there, of all threads, and that nobody reads the stage any more that is filled next. Past the last
 * tile copies bring zeros, which are read and not multiplied: so the loop has no branch, and as many groups
 * are on their way in each iteration.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/pipeline_registers.h"

/* The copies of an iteration. */
static void copy_iteration(const tcc_group *g, tcc_builder *b, const tcc_map *of_index, tcc_value *i)
{
    tcc_group_copy(g, b, i, tcc_group_numbers_of(g, b, of_index, i));
}

/* The rounds of iteration i, each multiplying `parts`, which the one before has read; then those are the
 * first of the next iteration. */
static void multiply_rounds(const tcc_group *g, tcc_builder *b, tcc_value *i, tcc_value **parts, tcc_value **acc)
{
    tcc_value *next[TCC_MAX_LOADS];
    int64_t rounds = g->depth / g->round;
    for (int64_t r = 1; r <= rounds; r++) {
        if (r < rounds) {
            tcc_group_read(g, b, i, r, next);
        } else {
            tcc_value *then = tcc_arith_add(b, i, 1);
            TCC_EMIT_V(b, async_release, g->ring, i);
            tcc_group_wait(g, b, then, g->stages - 2);
            tcc_group_read(g, b, then, 0, next);
        }
        tcc_group_multiply(g, b, parts, acc);
        for (size_t s = 0; s < g->n_sources; s++)
            parts[s] = next[s];
    }
}

static bool can_copy_ahead(const tcc_group *g, const tcc_map *of_index)
{
    const tcc_op *loop = tcc_group_loop(g);
    for (size_t s = 0; s < g->n_sources; s++)
        if (g->sources[s].computed)
            return false;
    return g->in_groups && g->stages >= 2 && tcc_counts_iterations(loop) && !tcc_is_loop(loop->block->parent) &&
           tcc_group_can_load_ahead(g, of_index);
}

/* In front of the loop: the first copies, and what the first round multiplies. */
static void begin(tcc_group *g, const tcc_map *of_index, tcc_value **parts)
{
    tcc_builder b = tcc_builder_before(tcc_group_loop(g));
    tcc_group_ring(g, &b);
    b.loc = tcc_group_loc(g);
    for (int64_t t = 0; t < g->stages - 1; t++)
        copy_iteration(g, &b, of_index, tcc_build_i32(&b, t));
    tcc_value *first = tcc_build_i32(&b, 0);
    tcc_group_wait(g, &b, first, g->stages - 2);
    tcc_group_read(g, &b, first, 0, parts);
}

/* Behind it: nothing is on its way any more. With two stages the loop has waited for all. */
static void end(const tcc_group *g, tcc_op *loop)
{
    if (g->stages == 2)
        return;
    tcc_builder b = tcc_builder_after(loop);
    b.loc = loop->loc;
    tcc_value *last = tcc_arith_add(&b, TCC_VIEW(scf_for, loop)->hi, g->stages - 2);
    tcc_op *wait = TCC_EMIT_V(&b, async_wait, g->ring, last);
    tcc_attr_set_int(g->ir, &wait->attrs, "pending", 0);
}

bool tcc_copy_ahead(tcc_arena *scratch, tcc_group *g)
{
    tcc_value *parts[TCC_MAX_LOADS], *acc[TCC_MAX_MMAS];
    tcc_op *loop = tcc_group_loop(g);
    if (!tcc_is_loop(loop))
        return false;
    tcc_map of_index = tcc_group_find_numbers(scratch, loop);
    if (!can_copy_ahead(g, &of_index))
        return false;
    begin(g, &of_index, parts);
    loop = tcc_group_carry(g->ir, loop, g->n_sources, parts);
    tcc_value *i = loop->regions[0]->args[0];
    tcc_builder b = tcc_builder_before(g->mmas[0]);
    b.loc = tcc_group_loc(g);
    copy_iteration(g, &b, &of_index, tcc_arith_add(&b, i, g->stages - 1));
    for (size_t m = 0; m < g->n_mmas; m++)
        acc[m] = TCC_VIEW(tile_mma, g->mmas[m])->c;
    multiply_rounds(g, &b, i, parts, acc);
    for (size_t m = 0; m < g->n_mmas; m++)
        tcc_replace_uses(&g->mmas[m]->results[0], acc[m]);
    tcc_group_yield(g->ir, loop->regions[0], g->n_sources, parts);
    tcc_group_erase(g);
    end(g, loop);
    return true;
}
