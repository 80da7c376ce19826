/* pipeline_streams: loops in which an MMA multiplies what is computed of another one's result.
 *
 * Before:  %q = tile.load %Q …
 *          scf.for %i … (%acc = 0.0) {
 *            %k = tile.load %K, %i * 64 …   %s = tile.mma %q, %k, 0.0    … %p, of %s …
 *            %v = tile.load %V, %i * 64 …   scf.yield (tile.mma %p, %v, %acc)
 *          }
 * After:   %once = async.ring %sq {stages = 1, completion = group}       (the copy of %Q)
 *          %ring = async.ring %sk, %sv {stages = 2, completion = group}  (copies of iteration 0)
 *          async.wait %once, 0 {pending = 1}
 *          scf.for %i … (%acc = 0.0) {
 *            async.wait %ring, %i {pending = 0}; async.barrier
 *            acquire i + 1; async.copy %K, %V … of i + 1; commit i + 1
 *            for each round: %s = tile.mma (async.read %once, 0 …), (async.read %ring, %i …), %s
 *            …
 *            for each round: %acc = tile.mma (tile.slice %p …), (async.read %ring, %i …), %acc
 *            release i
 *          }
 *          async.wait {pending = 0}
 *
 * The barrier of an iteration ensures that all threads' copies of its tiles have arrived, and that the stage which is
 * filled next is no longer read. Beyond the last tile there are zeros, as in other loops of copies in groups.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/pipeline_registers.h"

typedef struct streaming {
    tcc_group *loop, *once; /* what every iteration copies, and what is copied before them */
    tcc_op *of;
    TCC_VEC(tcc_op *) mmas;
    tcc_map computed; /* values of the loop's body that are computed of an MMA's result */
} streaming;

static void find_computed(streaming *r)
{
    tcc_block *body = r->of->regions[0];
    for (tcc_op *op = body->first; op; op = tcc_walk_next(op, body)) {
        bool is = op->code == TCC_OP_tile_mma;
        for (unsigned i = 0; i < op->n_operands && !is; i++)
            is = tcc_map_get(&r->computed, op->operands[i]);
        for (tcc_op *in = op; is && in != r->of; in = in->block->parent)
            for (unsigned i = 0; i < in->n_results; i++)
                *tcc_map_at(&r->computed, &in->results[i]) = in;
    }
}

static tcc_operand *find_source(tcc_group *g, const tcc_op *load)
{
    for (size_t s = 0; s < g->sources.len; s++)
        if (g->sources.data[s].load == load)
            return &g->sources.data[s];
    return NULL;
}

static tcc_group *create_group(tcc_arena *scratch, const tcc_op *loop, int64_t stages)
{
    tcc_group *g = TCC_NEW(scratch, tcc_group);
    *g = (tcc_group){.ir = loop->block->func->ir, .scratch = scratch, .stages = stages};
    return g;
}

/* Whether an operand is computed of another MMA's result, or multiplied from a stage. */
static bool add_operand(streaming *r, tcc_op *mma, int x)
{
    tcc_op *load = mma->operands[x]->def;
    if (tcc_map_get(&r->computed, mma->operands[x]))
        return true;
    if (!load || load->code != TCC_OP_tile_load)
        return false;
    bool is_once = tcc_is_invariant(&load->results[0], r->of);
    tcc_group *g = load->block == r->of->regions[0] ? r->loop : is_once ? r->once : NULL;
    if (!g)
        return false;
    if (!find_source(g, load))
        TCC_PUSH(g->scratch, &g->sources, (tcc_operand){.load = load, .x = x});
    return find_source(g, load)->x == x;
}

static bool find(streaming *r, tcc_op *loop, tcc_arena *scratch)
{
    tcc_block *body = loop->regions[0];
    bool all = tcc_counts_iterations(loop) && !tcc_is_loop(loop->block->parent), any = false;
    *r = (streaming){.loop = create_group(scratch, loop, tcc_attr_int(&loop->attrs, "stages", 1)),
                     .once = create_group(scratch, loop, 1),
                     .of = loop,
                     .computed = TCC_MAP(scratch)};
    find_computed(r);
    for (tcc_op *op = body->first; op && all; op = tcc_walk_next(op, body)) {
        if (op->code != TCC_OP_tile_mma)
            continue;
        all = op->block == body && !tcc_mma_accumulate(op) && add_operand(r, op, 0) && add_operand(r, op, 1);
        any |= tcc_map_get(&r->computed, op->operands[0]) || tcc_map_get(&r->computed, op->operands[1]);
        TCC_PUSH(scratch, &r->mmas, op);
        TCC_PUSH(scratch, &r->loop->products, (tcc_product){.mma = op});
    }
    r->once->products = r->loop->products;
    const char *const in_groups = "cp_async cp_async_elements", *const by_registers = "vectors buffer unaligned";
    bool groups = tcc_group_is_copied(r->loop, in_groups) && tcc_group_is_copied(r->once, in_groups);
    bool registers = tcc_group_is_copied(r->loop, by_registers) && tcc_group_is_copied(r->once, by_registers);
    r->loop->in_groups = r->once->in_groups = r->loop->copies = r->once->copies = groups;
    return all && any && r->loop->sources.len && r->loop->stages >= 2 && (groups || registers);
}

/* A round of an operand of the MMA: k elements from `from` on. */
static tcc_value *build_part(const streaming *r, tcc_builder *b, const tcc_op *mma, int x, int64_t from, int64_t k)
{
    tcc_value *tile = mma->operands[x], *i = r->of->regions[0]->args[0];
    int64_t sizes[] = {tile->type->dims[0].size, tile->type->dims[1].size}, at[] = {0, 0};
    sizes[!x] = k;
    at[!x] = from;
    const tcc_type *type = tcc_type_sized(r->loop->ir, TCC_KIND_tile, tile->type->elem, 2, sizes);
    tcc_operand *own = find_source(r->loop, tile->def), *once = find_source(r->once, tile->def);
    tcc_value *part = own    ? TCC_EMIT(b, async_read, type, r->loop->ring, i, own->buffer)
                      : once ? TCC_EMIT(b, async_read, type, r->once->ring, tcc_build_i32(b, 0), once->buffer)
                             : TCC_EMIT(b, tile_slice, type, tile);
    tcc_attr_set_ints(r->loop->ir, &part->def->attrs, "at", 2, at);
    return part;
}

static void multiply(const streaming *r, tcc_op *mma)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, mma);
    tcc_attr instr = tcc_attr_list(&mma->attrs, "instr");
    int64_t depth = o->a->type->dims[1].size, k = instr.list.items[2].i;
    tcc_value *acc = o->c;
    tcc_builder b = tcc_builder_before(mma);
    b.loc = mma->loc;
    for (int64_t from = 0; from < depth; from += k) {
        tcc_value *y = build_part(r, &b, mma, 1, from, k), *x = build_part(r, &b, mma, 0, from, k);
        acc = TCC_EMIT(&b, tile_mma, acc->type, x, y, acc);
        tcc_attr_set(r->loop->ir, &acc->def->attrs, "instr", instr, (tcc_loc){0, 0});
    }
    tcc_replace_uses(&mma->results[0], acc);
}

/* Fills the only stage of what is copied before the loop. */
static void fill_once(const streaming *r, tcc_builder *b)
{
    tcc_group *g = r->once;
    tcc_value *first = tcc_build_i32(b, 0), **tiles = tcc_group_tiles(g, 1);
    tcc_value_map *same = tcc_value_map_create(g->scratch);
    tcc_group_ring(g, b);
    for (size_t s = 0; s < g->sources.len && !g->in_groups; s++)
        tiles[s] = &tcc_group_load(g, b, g->sources.data[s].load, same)->results[0];
    if (g->in_groups)
        tcc_group_copy(g, b, first, same, 0, 1);
    else
        tcc_group_put(g, b, first, tiles);
}

/* Until it is there; for other threads' copies at the loop's first barrier. */
static void wait_once(const streaming *r, tcc_builder *b)
{
    if (!r->once->in_groups)
        tcc_meet(b);
    tcc_op *wait = TCC_EMIT_V(b, async_wait, r->once->ring, tcc_build_i32(b, 0));
    if (r->once->in_groups)
        tcc_attr_set_int(r->once->ir, &wait->attrs, "pending", tcc_group_ahead(r->loop));
}

static void erase(streaming *r)
{
    tcc_group_erase(r->loop);
    for (size_t s = 0; s < r->once->sources.len; s++)
        if (!r->once->sources.data[s].load->results[0].n_uses)
            tcc_op_erase(r->once->sources.data[s].load);
}

bool tcc_pipeline_stream(tcc_arena *scratch, tcc_op *loop)
{
    streaming r;
    if (!find(&r, loop, scratch))
        return false;
    tcc_group *g = r.loop;
    tcc_map of_index = tcc_group_find_numbers(scratch, loop);
    if (!tcc_group_can_load_ahead(g, &of_index))
        return false;
    tcc_value **tiles = tcc_group_tiles(g, 1);
    tcc_builder b = tcc_builder_before(loop);
    b.loc = loop->loc;
    if (r.once->sources.len)
        fill_once(&r, &b);
    tcc_group_begin(g, &b, &of_index, tiles);
    if (r.once->ring)
        wait_once(&r, &b);
    if (!g->in_groups)
        r.of = loop = tcc_group_carry(g->ir, loop, g->sources.len, tiles);
    tcc_attr_remove(&loop->attrs, "stages");
    tcc_value *i = loop->regions[0]->args[0];
    b = tcc_builder_before(loop->regions[0]->first);
    b.loc = loop->loc;
    tcc_group_wait_for(g, &b, i);
    tcc_group_fill(g, &b, &of_index, tcc_arith_add(&b, i, tcc_group_ahead(g)), tiles, 0, 1);
    for (size_t m = 0; m < r.mmas.len; m++)
        multiply(&r, r.mmas.data[m]);
    b = tcc_builder_before(tcc_block_yield(loop->regions[0]));
    b.loc = loop->loc;
    TCC_EMIT_V(&b, async_release, g->ring, i);
    if (!g->in_groups)
        tcc_group_yield(g->ir, loop->regions[0], g->sources.len, tiles);
    tcc_group_end(g, loop);
    erase(&r);
    return true;
}
