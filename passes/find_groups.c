/* find_groups: which MMAs share a ring where operands go through registers.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"
#include "passes/pipeline_registers.h"
#include "passes/schedule.h"
#include "passes/tiling.h"

static bool is_decided(const tcc_value *v)
{
    return v->def && v->def->code == TCC_OP_tile_load && tcc_attr_find(&v->def->attrs, "copy");
}

/* The lanes per wave to which choose-pipeline has assigned the MMAs; 0: none. */
static int64_t lanes_of(const tcc_func *f)
{
    int64_t lanes = 0;
    for (tcc_op *op = f->body->first; op && !lanes; op = tcc_walk_next(op, f->body))
        if (tcc_is_loop(op))
            lanes = tcc_attr_int(&op->attrs, "lanes", 0);
    return lanes;
}

/* Whether a tile is computed, of a load in the MMA's block. */
static bool is_computed(const tcc_op *mma, unsigned i, tcc_arena *scratch)
{
    const tcc_op *load = tcc_tiled_load(mma, i, scratch);
    return load && load != mma->operands[i]->def;
}

/* The k that must be read at a time for the instruction; 0: there is none. */
static int64_t round_of_instruction(const tcc_op *mma, int64_t lanes)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, mma);
    tcc_scalar a = o->a->type->elem, b = o->b->type->elem, acc = o->c->type->elem;
    const tcc_target *target = tcc_func_target(mma->block->func);
    int64_t k = tcc_attr_list(&mma->attrs, "instr").list.items[2].i;
    const tcc_wmma *wmma = tcc_wmma_find(target, b, a, acc, k);
    return tcc_mma_sync_find(target, TCC_INSTR_COUNT, a, b, acc) ? k
           : wmma ? tcc_rdna_round(target, wmma, tcc_scalar_bits(a), lanes)
                  : 0;
}

/* k that is read at a time for an MMA, all of it where an operand is computed; 0: it stays as it is. */
static int64_t round_of(const tcc_op *mma, int64_t lanes, tcc_arena *scratch)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, mma);
    const tcc_op *loop = mma->block->parent;
    tcc_attr instr = tcc_attr_list(&mma->attrs, "instr");
    bool of_a = is_computed(mma, 0, scratch), of_b = is_computed(mma, 1, scratch), computed = of_a || of_b;
    if (!lanes || (!of_a && !is_decided(o->a)) || (!of_b && !is_decided(o->b)) || o->a == o->b || instr.list.n != 3 ||
        !tcc_has_iteration_number(mma->block) || tcc_mma_accumulate(mma) ||
        (tcc_is_loop(loop) && !tcc_attr_find(&loop->attrs, "stages")))
        return 0;
    int64_t round = round_of_instruction(mma, lanes);
    if (computed && round)
        return o->a->type->dims[1].size;
    return round && o->a->type->dims[1].size % round == 0 ? round : 0;
}

static size_t find_source(const tcc_group *g, const tcc_value *tile)
{
    size_t s = 0;
    while (s < g->sources.len && g->sources.data[s].load != tile->def && g->sources.data[s].computed != tile)
        s++;
    return s;
}

/* Whether a value that the group's block can use is there before its first MMA. */
static bool is_there(const tcc_group *g, const tcc_value *v)
{
    for (const tcc_op *op = tcc_group_first(g); op; op = op->next)
        if (v->def == op)
            return false;
    return true;
}

/* Whether an MMA adds to what a loop carries. */
static bool is_carried(const tcc_op *mma)
{
    return TCC_VIEW(tile_mma, mma)->c->block == mma->block;
}

/* Whether MMAs can be multiplied in rounds of one depth: that of the narrower elements, which is a multiple of the
 * other, but where all of a tile is multiplied at once. */
static bool can_share_rounds(const tcc_group *g, const tcc_op *mma, int64_t round)
{
    int64_t more = round > g->round ? round : g->round, less = round > g->round ? g->round : round;
    bool computed = !is_decided(mma->operands[0]) || !is_decided(mma->operands[1]);
    for (size_t s = 0; s < g->sources.len; s++)
        computed |= g->sources.data[s].computed != NULL;
    return more == less || (!computed && more % less == 0);
}

/* MMAs that share an operand, or that are sums of one loop. */
static bool can_join(const tcc_group *g, const tcc_op *mma, int64_t round)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, mma);
    tcc_value *const tiles[] = {o->a, o->b};
    bool together = is_carried(mma) && is_carried(tcc_group_first(g)), there = is_there(g, o->c);
    for (int x = 0; x < 2; x++) {
        size_t s = find_source(g, tiles[x]);
        bool found = s < g->sources.len;
        there &= is_there(g, tiles[x]) && (!found || g->sources.data[s].x == x);
        together |= found;
    }
    return mma->block == tcc_group_first(g)->block && together && there && can_share_rounds(g, mma, round) &&
           o->a->type->dims[1].size == g->depth;
}

static void join(tcc_group *g, tcc_op *mma)
{
    tcc_product product = {.mma = mma};
    for (int x = 0; x < 2; x++) {
        tcc_value *tile = mma->operands[x];
        size_t s = product.of[x] = find_source(g, tile);
        if (s == g->sources.len)
            TCC_PUSH(g->scratch, &g->sources,
                     (tcc_operand){.load = tcc_tiled_load(mma, (unsigned)x, g->scratch),
                                   .x = x,
                                   .computed = is_decided(tile) ? NULL : tile});
    }
    TCC_PUSH(g->scratch, &g->products, product);
}

static void add_mma(tcc_arena *scratch, tcc_groups *all, tcc_op *mma, int64_t round)
{
    tcc_group *g = NULL;
    for (size_t i = 0; i < all->len && !g; i++)
        if (can_join(all->data[i], mma, round))
            g = all->data[i];
    if (!g) {
        const tcc_op *loop = mma->block->parent;
        g = TCC_NEW(scratch, tcc_group);
        g->ir = mma->block->func->ir;
        g->scratch = scratch;
        g->round = round;
        g->depth = TCC_VIEW(tile_mma, mma)->a->type->dims[1].size;
        g->stages = tcc_is_loop(loop) ? tcc_attr_int(&loop->attrs, "stages", 1) : 1;
        TCC_PUSH(scratch, all, g);
    }
    g->round = round > g->round ? round : g->round;
    join(g, mma);
}

tcc_groups tcc_groups_find(tcc_arena *scratch, const tcc_func *f)
{
    tcc_groups all = {0};
    int64_t lanes = lanes_of(f);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        int64_t round = op->code == TCC_OP_tile_mma ? round_of(op, lanes, scratch) : 0;
        if (round)
            add_mma(scratch, &all, op, round);
    }
    return all;
}
