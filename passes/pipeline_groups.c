/* pipeline_groups: loops whose rounds are read ahead of their MMAs. Tiles are copied to shared memory in groups, stages
 * - 1 iterations ahead, or loaded to registers two iterations ahead and put there in the one before.
 *
 * Before:  scf.for %i … (%c = 0.0) {
 *            %a = tile.load %A, %m, %i * 32 …    %b = tile.load %B, %i * 32, %n …
 *            scf.yield (tile.mma %a, %b, %c)
 *          }
 * After:   %ring = async.ring %sa, %sb {stages = 4, completion = group}
 *          (copies of iterations 0, 1, 2; wait for 0; %x, %y: what its first round multiplies)
 *          scf.for %i … (%c, %x, %y) {
 *            %x1, %y1 = async.read i …, the second round
 *            acquire i + 3; async.copy %A … of i + 3
 *            %c = tile.mma %x, %y, %c
 *            for each further round: %x1, %y1 = async.read i …   %c = tile.mma %x, %y, %c
 *            (in the second, if it is not the last, async.copy %B …; commit i + 3)
 *            release i
 *            async.wait i + 1 {pending = 2}; async.barrier
 *            %x1, %y1 = async.read i + 1 …   %c = tile.mma, the last round
 *          }
 *          async.wait {pending = 0}
 * Or:      (tile 0 put into its stage; %a, %b: tile 1; %x, %y)
 *          scf.for %i … (%c, %x, %y, %a, %b) {
 *            %x1, %y1 = async.read i …
 *            acquire i + 1; async.put %a, %b; commit i + 1
 *            %a, %b = tile.load … of i + 2
 *            %c = tile.mma %x, %y, %c
 *            … as above, async.barrier and async.wait i + 1 in front of the last round
 *          }
 *
 * Operands are read one round ahead. The one barrier of an iteration ensures that all threads' copies of the next tile
 * have arrived, and that the stage which is filled next is no longer read. Beyond the last tile there are zeros, which
 * are read but not multiplied: so the loop has no branch, and the same number of groups is in flight in each iteration.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/pipeline_registers.h"

void tcc_group_fill(const tcc_group *g, tcc_builder *b, const tcc_map *of_index, tcc_value *i, tcc_value **tiles,
                    size_t part, size_t parts)
{
    if (g->in_groups) {
        tcc_group_copy(g, b, i, tcc_group_numbers_of(g, b, of_index, i), part, parts);
        return;
    }
    tcc_group_put(g, b, i, tiles);
    tcc_group_load_iteration(g, b, of_index, tcc_arith_add(b, i, 1), tiles);
}

/* In how many rounds: what is copied is done before the last, which waits. */
static int64_t parts_of(const tcc_group *g, int64_t rounds)
{
    int64_t n = (int64_t)g->sources.len;
    return !g->in_groups || rounds <= 2 ? 1 : rounds - 1 < n ? rounds - 1 : n;
}

int64_t tcc_group_ahead(const tcc_group *g)
{
    return g->in_groups ? g->stages - 1 : 1;
}

void tcc_group_wait_for(const tcc_group *g, tcc_builder *b, tcc_value *i)
{
    if (g->in_groups) {
        tcc_group_wait(g, b, i, g->stages - 2);
        return;
    }
    tcc_meet(b);
    TCC_EMIT_V(b, async_wait, g->ring, i);
}

/* The rounds of iteration i, each multiplying `parts`, which the one before has read; then those are the
 * first of the next iteration. The stage ahead is filled after the reads of the first rounds, one operand in each:
 * addresses of copies take long to compute, and reads must not wait for them. */
static void multiply_rounds(const tcc_group *g, tcc_builder *b, const tcc_map *of_index, tcc_value *i,
                            tcc_value **parts, tcc_value **tiles, tcc_value **acc)
{
    tcc_value **next = tcc_group_tiles(g, 1), *ahead = tcc_arith_add(b, i, tcc_group_ahead(g));
    int64_t rounds = g->depth / g->round, n_parts = parts_of(g, rounds);
    for (int64_t r = 1; r <= rounds; r++) {
        if (r < rounds)
            tcc_group_read(g, b, i, r, next);
        if (r <= n_parts)
            tcc_group_fill(g, b, of_index, ahead, tiles, (size_t)r - 1, (size_t)n_parts);
        if (r == rounds) {
            tcc_value *then = tcc_arith_add(b, i, 1);
            TCC_EMIT_V(b, async_release, g->ring, i);
            tcc_group_wait_for(g, b, then);
            tcc_group_read(g, b, then, 0, next);
        }
        tcc_group_multiply(g, b, parts, acc);
        for (size_t s = 0; s < g->sources.len; s++)
            parts[s] = next[s];
    }
}

static bool can_run_ahead(const tcc_group *g, const tcc_map *of_index)
{
    const tcc_op *loop = tcc_group_loop(g);
    for (size_t s = 0; s < g->sources.len; s++)
        if (g->sources.data[s].computed)
            return false;
    return g->stages >= 2 && tcc_counts_iterations(loop) && !tcc_is_loop(loop->block->parent) &&
           tcc_group_can_load_ahead(g, of_index);
}

void tcc_group_begin(tcc_group *g, tcc_builder *b, const tcc_map *of_index, tcc_value **tiles)
{
    tcc_group_ring(g, b);
    b->loc = tcc_group_loc(g);
    if (!g->in_groups)
        tcc_group_load_iteration(g, b, of_index, tcc_build_i32(b, 0), tiles);
    for (int64_t t = 0; t < tcc_group_ahead(g); t++)
        tcc_group_fill(g, b, of_index, tcc_build_i32(b, t), tiles, 0, 1);
}

void tcc_group_end(const tcc_group *g, tcc_op *loop)
{
    if (!g->in_groups)
        return;
    tcc_builder b = tcc_builder_after(loop);
    b.loc = loop->loc;
    tcc_value *last = tcc_arith_add(&b, TCC_VIEW(scf_for, loop)->hi, g->stages - 2);
    tcc_op *wait = TCC_EMIT_V(&b, async_wait, g->ring, last);
    tcc_attr_set_int(g->ir, &wait->attrs, "pending", 0);
}

bool tcc_copy_ahead(tcc_arena *scratch, tcc_group *g)
{
    tcc_value **carried = tcc_group_tiles(g, 2), **parts = carried, **acc = tcc_group_accumulators(g);
    tcc_op *loop = tcc_group_loop(g);
    if (!tcc_is_loop(loop))
        return false;
    tcc_map of_index = tcc_group_find_numbers(scratch, loop);
    if (!can_run_ahead(g, &of_index))
        return false;
    tcc_value **tiles = carried + g->sources.len;
    size_t n = (g->in_groups ? 1 : 2) * g->sources.len;
    tcc_builder b = tcc_builder_before(loop);
    tcc_group_begin(g, &b, &of_index, tiles);
    tcc_value *first = tcc_build_i32(&b, 0);
    tcc_group_wait_for(g, &b, first);
    tcc_group_read(g, &b, first, 0, parts); /* what the first round multiplies */
    loop = tcc_group_carry(g->ir, loop, n, carried);
    tcc_value *i = loop->regions[0]->args[0];
    b = tcc_builder_before(tcc_group_first(g));
    b.loc = tcc_group_loc(g);
    for (size_t m = 0; m < g->products.len; m++)
        acc[m] = TCC_VIEW(tile_mma, g->products.data[m].mma)->c;
    multiply_rounds(g, &b, &of_index, i, parts, tiles, acc);
    for (size_t m = 0; m < g->products.len; m++)
        tcc_replace_uses(&g->products.data[m].mma->results[0], acc[m]);
    tcc_group_yield(g->ir, loop->regions[0], n, carried);
    tcc_group_erase(g);
    if (g->stages > 2) /* else the loop has waited for all copies */
        tcc_group_end(g, loop);
    return true;
}
