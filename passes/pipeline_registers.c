/* pipeline-registers: copy the operands of MMAs through registers to shared memory, and back.
 *
 * For matrix instructions that multiply registers, if only threads copy to shared memory.
 * Before:  scf.for %i = 0 … ceil(K / 32) (%c = 0.0) {
 *            %a = tile.load %A, %m, %i * 32 …    %b = tile.load %B, %i * 32, %n …
 *            scf.yield (tile.mma %a, %b, %c)
 *          }
 * After:   %ring = async.ring %sa, %sb {stages = 2, completion = barrier}
 *          (tiles 0 and 1, loaded early; tile 0 put into its stage; what the first MMA reads of it)
 *          scf.for %t … (%c, %a, %b: tile 1 on its way; %x, %y: what is multiplied next) {
 *            for each of the two stages:
 *              %c = tile.mma %x, %y, %c                       a round of tile i
 *              acquire i + 1; async.put %a, %b; commit i + 1
 *              %a = tile.load …    %b = tile.load …           of tile i + 2
 *              %x = async.read i …   %y = async.read i …      for each further round: a step ahead
 *              %c = tile.mma %x, %y, %c
 *              release i; async.barrier; wait i + 1
 *              %x = async.read i + 1 …   %y = async.read i + 1 …
 *              … %c = tile.mma, the last round, before its reads
 *          }
 *
 * An iteration takes as many tiles as there are stages, so that every address is a constant away from
 * one that is known. Where K is not as long, the sum begins that much before the tensor, in tiles 0 and
 * 1, not behind its end: in the loop nothing has to be looked at. Past the last tile that one is loaded
 * again, which nobody multiplies. Of a part of the tiles, every so-many-th one, tiles 0 and 1 are the last two.
 *
 * Where a warp multiplies by mma.sync or FMA, and in loops of copies in groups, rounds are read a step ahead as well
 * (pipeline_groups.c).
 *
 * MMAs of one block that share an operand, and sums of one loop, share the ring and what was read of it.
 * In other loops tile i + 1 is loaded while tile i, which the iteration before has loaded, is put and
 * multiplied; tiles that can only be copied element by element, or of which the next place is not known,
 * are loaded, put and read one after the other, where their MMA stands. An operand that is computed stays in
 * registers; its load is ahead like the others, and what is not computed goes through the ring, if there is any.
 *
 * Requires choose-mma, choose-layout and choose-pipeline.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/fragment.h"
#include "passes/passes.h"
#include "passes/pipeline_registers.h"
#include "passes/schedule.h"
#include "passes/tiling.h"
#include "support/map.h"

/* ---- pieces ---------------------------------------------------------------------------- */

static tcc_value *build_buffer(const tcc_group *g, tcc_builder *b, const tcc_op *load)
{
    const tcc_type *tile = load->results[0].type;
    b->loc = load->loc;
    const tcc_type *type =
        tcc_type_sized(g->ir, TCC_KIND_smem, tile->elem, 3,
                       (int64_t[]){g->stages, tile->dims[0].size, tile->dims[1].size});
    tcc_value *v = TCC_EMIT(b, async_alloc, type, NULL);
    static const char *const names[] = {"swizzle", "contiguous", "panel", "pad"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tcc_attr_find(&load->attrs, names[i]))
            tcc_attr_set_int(g->ir, &v->def->attrs, names[i], tcc_attr_int(&load->attrs, names[i], 0));
    return v;
}

void tcc_group_ring(tcc_group *g, tcc_builder *b)
{
    tcc_value **buffers = tcc_group_tiles(g, 1);
    size_t n = 0;
    for (size_t s = 0; s < g->sources.len; s++)
        if (!g->sources.data[s].computed)
            buffers[n++] = g->sources.data[s].buffer = build_buffer(g, b, g->sources.data[s].load);
    if (!n)
        return;
    b->loc = tcc_group_loc(g);
    const tcc_type *type = tcc_type_get(g->ir, TCC_KIND_ring, TCC_f32, 0, NULL);
    g->ring = &tcc_op_create(b, TCC_OP_async_ring, n, buffers, 1, &type)->results[0];
    tcc_attr_set_int(g->ir, &g->ring->def->attrs, "stages", g->stages);
    tcc_attr_set_str(g->ir, &g->ring->def->attrs, "completion", g->in_groups ? "group" : "barrier");
}

tcc_op *tcc_group_load(const tcc_group *g, tcc_builder *b, const tcc_op *load, const tcc_value_map *map)
{
    tcc_value **operands = TCC_NEW_ARRAY(g->ir->arena, tcc_value *, load->n_operands);
    for (unsigned i = 0; i < load->n_operands; i++)
        operands[i] = tcc_value_map_get(map, load->operands[i]);
    const tcc_type *type = load->results[0].type;
    tcc_loc loc = b->loc;
    b->loc = load->loc;
    tcc_op *op = tcc_op_create(b, TCC_OP_tile_load, load->n_operands, operands, 1, &type);
    b->loc = loc;
    for (size_t a = 0; a < load->attrs.len; a++)
        TCC_PUSH(g->ir->arena, &op->attrs, load->attrs.data[a]);
    return op;
}

void tcc_group_put(const tcc_group *g, tcc_builder *b, tcc_value *i, tcc_value *const *tiles)
{
    if (!g->ring)
        return;
    TCC_EMIT_V(b, async_acquire, g->ring, i);
    for (size_t s = 0; s < g->sources.len; s++)
        if (g->sources.data[s].buffer)
            TCC_EMIT_V(b, async_put, g->ring, i, g->sources.data[s].buffer, tiles[s]);
    TCC_EMIT_V(b, async_commit, g->ring, i);
}

/* The copy of a load into the stage of iteration i, its coordinates mapped. */
static void build_copy(const tcc_group *g, tcc_builder *b, tcc_value *i, const tcc_operand *of,
                       const tcc_value_map *map)
{
    const tcc_op *load = of->load;
    tcc_value **operands = TCC_NEW_ARRAY(g->ir->arena, tcc_value *, load->n_operands + 3);
    operands[0] = g->ring;
    operands[1] = i;
    operands[2] = of->buffer;
    for (unsigned o = 0; o < load->n_operands; o++)
        operands[3 + o] = tcc_value_map_get(map, load->operands[o]);
    b->loc = load->loc;
    tcc_op *copy = tcc_op_create(b, TCC_OP_async_copy, load->n_operands + 3, operands, 0, NULL);
    tcc_attr_set(g->ir, &copy->attrs, "dims", tcc_attr_list(&load->attrs, "dims"), (tcc_loc){0, 0});
    tcc_attr_set_str(g->ir, &copy->attrs, "copy", tcc_attr_str(&load->attrs, "copy", ""));
    b->loc = tcc_group_loc(g);
}

void tcc_group_copy(const tcc_group *g, tcc_builder *b, tcc_value *i, const tcc_value_map *map, size_t part,
                    size_t parts)
{
    if (part == 0)
        TCC_EMIT_V(b, async_acquire, g->ring, i);
    for (size_t s = 0; s < g->sources.len; s++)
        if (g->sources.data[s].buffer && s * parts / g->sources.len == part)
            build_copy(g, b, i, &g->sources.data[s], map);
    if (part == parts - 1)
        TCC_EMIT_V(b, async_commit, g->ring, i);
}

void tcc_group_wait(const tcc_group *g, tcc_builder *b, tcc_value *i, int64_t pending)
{
    tcc_op *wait = TCC_EMIT_V(b, async_wait, g->ring, i);
    tcc_attr_set_int(g->ir, &wait->attrs, "pending", pending);
    tcc_meet(b);
}

void tcc_group_read(const tcc_group *g, tcc_builder *b, tcc_value *i, int64_t round, tcc_value **parts)
{
    for (size_t s = g->sources.len; s--;) { /* a register of b is free when its column is multiplied */
        const tcc_operand *of = &g->sources.data[s];
        const tcc_type *tile = of->load->results[0].type;
        parts[s] = of->computed;
        if (of->computed)
            continue;
        int64_t sizes[] = {tile->dims[0].size, tile->dims[1].size}, at[] = {0, 0};
        sizes[!of->x] = g->round;
        at[!of->x] = round * g->round;
        const tcc_type *type = tcc_type_sized(g->ir, TCC_KIND_tile, tile->elem, 2, sizes);
        b->loc = of->load->loc;
        parts[s] = TCC_EMIT(b, async_read, type, g->ring, i, of->buffer);
        tcc_attr_set_ints(g->ir, &parts[s]->def->attrs, "at", 2, at);
    }
    b->loc = tcc_group_loc(g);
}

void tcc_group_multiply(const tcc_group *g, tcc_builder *b, tcc_value *const *parts, tcc_value **acc)
{
    for (size_t m = 0; m < g->products.len; m++) {
        const tcc_product *p = &g->products.data[m];
        b->loc = p->mma->loc;
        tcc_attr instr = tcc_attr_list(&p->mma->attrs, "instr");
        acc[m] = TCC_EMIT(b, tile_mma, acc[m]->type, parts[p->of[0]], parts[p->of[1]], acc[m]);
        tcc_attr_set(g->ir, &acc[m]->def->attrs, "instr", instr, (tcc_loc){0, 0});
    }
    b->loc = tcc_group_loc(g);
}

/* ---- any loop, or none ----------------------------------------------------------------- */

/* Multiplies the tiles of iteration i, of which those that have stages were put. */
static void multiply_stage(const tcc_group *g, tcc_builder *b, tcc_value *i)
{
    tcc_value **acc = tcc_group_accumulators(g), **parts = tcc_group_tiles(g, 1);
    if (g->in_groups) {
        tcc_group_wait(g, b, i, 0);
    } else if (g->ring) {
        tcc_meet(b);
        TCC_EMIT_V(b, async_wait, g->ring, i);
    }
    for (size_t m = 0; m < g->products.len; m++)
        acc[m] = TCC_VIEW(tile_mma, g->products.data[m].mma)->c;
    for (int64_t r = 0; r < g->depth / g->round; r++) {
        tcc_group_read(g, b, i, r, parts);
        tcc_group_multiply(g, b, parts, acc);
    }
    if (g->ring)
        TCC_EMIT_V(b, async_release, g->ring, i);
    for (size_t m = 0; m < g->products.len; m++)
        tcc_replace_uses(&g->products.data[m].mma->results[0], acc[m]);
}

void tcc_group_erase(tcc_group *g)
{
    for (size_t m = 0; m < g->products.len; m++)
        tcc_op_erase(g->products.data[m].mma);
    for (size_t s = 0; s < g->sources.len; s++)
        if (g->sources.data[s].load->block && !g->sources.data[s].load->results[0].n_uses)
            tcc_op_erase(g->sources.data[s].load);
}

/* The previous tiles are no longer read when these are put. */
static void copy_in_place(tcc_group *g)
{
    tcc_value **tiles = tcc_group_tiles(g, 1);
    tcc_builder b = tcc_builder_before(tcc_outermost(tcc_group_first(g)));
    tcc_value_map *same = tcc_value_map_create(g->ir->arena);
    g->stages = 1;
    tcc_group_ring(g, &b);
    for (size_t s = 0; s < g->sources.len && !g->copies; s++) {
        tcc_op *load = g->sources.data[s].load;
        if (g->sources.data[s].computed)
            continue;
        b = tcc_builder_before(load);
        tiles[s] = &tcc_group_load(g, &b, load, same)->results[0];
        tiles[s]->name = load->results[0].name;
    }
    b = tcc_builder_before(tcc_group_first(g));
    b.loc = tcc_group_loc(g);
    tcc_value *i = tcc_iteration_number(&b, tcc_group_loop(g));
    tcc_meet(&b);
    if (g->copies)
        tcc_group_copy(g, &b, i, same, 0, 1);
    else
        tcc_group_put(g, &b, i, tiles);
    multiply_stage(g, &b, i);
    tcc_group_erase(g);
}

/* ---- loads an iteration ahead ---------------------------------------------------------- */

/* Whether op can be executed for an iteration that does not exist. */
static bool can_speculate(const tcc_op *op)
{
    int64_t by;
    bool divides = op->code == TCC_OP_arith_div || op->code == TCC_OP_arith_rem;
    return !divides || (tcc_value_is_int(op->operands[1], &by) && by);
}

/* A value of the loop's body that is determined only by its index is entered in the map. */
static bool is_known(const tcc_map *of_index, const tcc_value *v, const tcc_op *loop)
{
    return tcc_is_invariant(v, loop) || tcc_map_get(of_index, v);
}

static bool are_known(const tcc_map *of_index, const tcc_op *op, const tcc_op *loop)
{
    bool all = true;
    for (unsigned i = 0; i < op->n_operands; i++)
        all &= is_known(of_index, op->operands[i], loop);
    return all;
}

tcc_map tcc_group_find_numbers(tcc_arena *scratch, const tcc_op *loop)
{
    tcc_map of_index = TCC_MAP(scratch);
    tcc_block *body = loop->regions[0];
    *tcc_map_at(&of_index, body->args[0]) = body->args[0];
    for (tcc_op *op = body->first; op; op = op->next)
        if (tcc_is_number(op) && can_speculate(op) && are_known(&of_index, op, loop))
            *tcc_map_at(&of_index, &op->results[0]) = op;
    return of_index;
}

static bool is_stored_in(const tcc_value *tensor, const tcc_op *loop)
{
    for (tcc_op *op = loop->regions[0]->first; op; op = tcc_walk_next(op, loop->regions[0]))
        if (op->code == TCC_OP_tile_store && TCC_VIEW(tile_store, op)->tensor == tensor)
            return true;
    return false;
}

bool tcc_group_can_load_ahead(const tcc_group *g, const tcc_map *of_index)
{
    const tcc_op *loop = tcc_group_loop(g);
    for (size_t s = 0; s < g->sources.len; s++) {
        const tcc_op *load = g->sources.data[s].load;
        if (!are_known(of_index, load, loop) || is_stored_in(load->operands[0], loop))
            return false;
    }
    return true;
}

tcc_value_map *tcc_group_numbers_of(const tcc_group *g, tcc_builder *b, const tcc_map *of_index,
                                    tcc_value *index)
{
    tcc_value_map *map = tcc_value_map_create(g->ir->arena);
    tcc_block *body = tcc_group_first(g)->block;
    tcc_value_map_set(map, body->args[0], index);
    for (tcc_op *op = body->first; op; op = op->next)
        if (op->n_results == 1 && tcc_map_get(of_index, &op->results[0]) == op)
            tcc_op_clone(b, op, map);
    return map;
}

void tcc_group_load_iteration(const tcc_group *g, tcc_builder *b, const tcc_map *of_index, tcc_value *index,
                              tcc_value **tiles)
{
    const tcc_value_map *map = tcc_group_numbers_of(g, b, of_index, index);
    for (size_t s = 0; s < g->sources.len; s++) {
        size_t same = 0; /* several tiles may be computed of one load */
        while (g->sources.data[same].load != g->sources.data[s].load)
            same++;
        tiles[s] = same < s ? tiles[same] : &tcc_group_load(g, b, g->sources.data[s].load, map)->results[0];
    }
}

tcc_op *tcc_group_carry(tcc_ir *ir, tcc_op *old, size_t n, tcc_value **values)
{
    size_t n_old = old->n_results, all = n_old + n;
    tcc_value **operands = TCC_NEW_ARRAY(ir->arena, tcc_value *, 3 + all);
    const tcc_type **types = TCC_NEW_ARRAY(ir->arena, const tcc_type *, all);
    memcpy(operands, old->operands, (3 + n_old) * sizeof *operands);
    memcpy(operands + 3 + n_old, values, n * sizeof *operands);
    for (size_t i = 0; i < all; i++)
        types[i] = operands[3 + i]->type;
    tcc_builder b = tcc_builder_before(old);
    b.loc = old->loc;
    tcc_op *loop = tcc_op_create(&b, TCC_OP_scf_for, 3 + all, operands, all, types);
    loop->attrs = old->attrs;
    tcc_block *from = old->regions[0], *to = loop->regions[0];
    for (unsigned i = 0; i < from->n_args; i++)
        tcc_replace_uses(from->args[i], tcc_block_add_arg(to, from->args[i]->type, from->args[i]->name));
    for (size_t i = 0; i < n; i++)
        values[i] = tcc_block_add_arg(to, types[n_old + i], NULL);
    tcc_builder in = tcc_builder_at_end(to);
    while (from->first)
        tcc_op_move(&in, from->first);
    for (size_t i = 0; i < n_old; i++) {
        tcc_replace_uses(&old->results[i], &loop->results[i]);
        loop->results[i].name = old->results[i].name;
    }
    tcc_op_erase(old);
    return loop;
}

void tcc_group_yield(tcc_ir *ir, tcc_block *body, size_t n, tcc_value *const *values)
{
    tcc_op *yield = tcc_block_yield(body);
    size_t n_old = yield ? yield->n_operands : 0;
    tcc_value **operands = TCC_NEW_ARRAY(ir->arena, tcc_value *, n_old + n);
    for (size_t i = 0; i < n_old; i++)
        operands[i] = yield->operands[i];
    memcpy(operands + n_old, values, n * sizeof *operands);
    tcc_builder b = tcc_builder_at_end(body);
    b.loc = values[0]->def->loc;
    if (yield)
        tcc_op_erase(yield);
    tcc_op_create(&b, TCC_OP_scf_yield, n_old + n, operands, 0, NULL);
}

/* The only barrier of an iteration ensures that its stage has been put, and that the previous one is no
 * longer read. */
static void load_ahead(tcc_group *g, const tcc_map *of_index)
{
    tcc_value **tiles = tcc_group_tiles(g, 1), **next = tcc_group_tiles(g, 1);
    tcc_op *loop = tcc_group_loop(g);
    tcc_builder b = tcc_builder_before(tcc_outermost(loop));
    tcc_group_ring(g, &b);
    b = tcc_builder_before(loop);
    b.loc = tcc_group_loc(g);
    tcc_group_load_iteration(g, &b, of_index, TCC_VIEW(scf_for, loop)->lo, tiles);
    loop = tcc_group_carry(g->ir, loop, g->sources.len, tiles);
    for (size_t s = 0; s < g->sources.len; s++)
        if (g->sources.data[s].computed)
            tcc_replace_uses(&g->sources.data[s].load->results[0], tiles[s]);
    b = tcc_builder_before(tcc_group_first(g));
    b.loc = tcc_group_loc(g);
    tcc_value *i = tcc_iteration_number(&b, loop);
    tcc_group_put(g, &b, i, tiles);
    tcc_value *step = TCC_VIEW(scf_for, loop)->step;
    tcc_group_load_iteration(g, &b, of_index, tcc_arith_bin(&b, TCC_OP_arith_add, loop->regions[0]->args[0], step),
                             next);
    multiply_stage(g, &b, i);
    tcc_group_yield(g->ir, loop->regions[0], g->sources.len, next);
    tcc_group_erase(g);
}

/* ---- the pass -------------------------------------------------------------------------- */

bool tcc_group_is_copied(const tcc_group *g, const char *ways)
{
    bool all = true;
    for (size_t s = 0; s < g->sources.len; s++) {
        const tcc_operand *of = &g->sources.data[s];
        all &= of->computed || tcc_has_word(ways, tcc_attr_str(&of->load->attrs, "copy", ""));
    }
    return all;
}

static bool by_element(const tcc_group *g)
{
    return !tcc_group_is_copied(g, "buffer unaligned vectors elements");
}

/* Whether all can be loaded from before their tensors, or this far beyond them. */
static bool can_begin_early(const tcc_group *g)
{
    return tcc_group_is_copied(g, "buffer unaligned");
}

static bool has_stages(const tcc_group *g)
{
    bool any = false;
    for (size_t s = 0; s < g->sources.len; s++)
        any |= !g->sources.data[s].computed;
    return any;
}

/* Whether all are copied by groups of threads' copies. */
static bool is_in_groups(const tcc_group *g)
{
    return has_stages(g) && tcc_group_is_copied(g, "cp_async cp_async_elements");
}

/* Whether a round is read before the previous one is multiplied, if tiles go through registers. Fragments of wmma are
 * held twice, and there is no room for a second round of them. */
static bool is_read_ahead(const tcc_group *g)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, tcc_group_first(g));
    const tcc_mma_sync *sync = tcc_mma_sync_find(tcc_func_target(tcc_group_first(g)->block->func), TCC_INSTR_COUNT,
                                                 o->a->type->elem, o->b->type->elem, o->c->type->elem);
    return sync && !tcc_mma_sync_is_opaque(sync) && g->stages >= TCC_STAGES && !by_element(g);
}

/* Whether a load that g computes a tile of is another group's, too, which finds it only where it is. */
static bool shares_loads(const tcc_groups *all, const tcc_group *g)
{
    for (size_t i = 0; i < all->len; i++)
        for (size_t o = 0; all->data[i] != g && o < all->data[i]->sources.len; o++)
            for (size_t s = 0; s < g->sources.len; s++)
                if (g->sources.data[s].computed && g->sources.data[s].load == all->data[i]->sources.data[o].load)
                    return true;
    return false;
}

static void put_through_registers(tcc_arena *scratch, tcc_group *g, const tcc_groups *all)
{
    tcc_tiles tiles;
    bool alone = all->len == 1;
    tcc_op *loop = tcc_is_loop(tcc_group_loop(g)) ? tcc_group_loop(g) : NULL;
    if (loop)
        tcc_attr_remove(&loop->attrs, "stages");
    const tcc_target *target = tcc_func_target(tcc_group_first(g)->block->func);
    g->in_groups = is_in_groups(g);
    g->copies = g->in_groups || (by_element(g) && !tcc_target_can(target, TCC_CAN_buffer));
    if (g->copies) {
        if (!alone || !tcc_copy_ahead(scratch, g))
            copy_in_place(g);
        return;
    }
    if (can_begin_early(g) && tcc_is_sum_over_tiles(g, &tiles)) {
        tcc_run_ahead(g, &tiles);
        return;
    }
    if (alone && is_read_ahead(g) && tcc_copy_ahead(scratch, g))
        return;
    tcc_map of_index = loop ? tcc_group_find_numbers(scratch, loop) : TCC_MAP(scratch);
    if (loop && g->stages >= TCC_STAGES && !by_element(g) && !shares_loads(all, g) &&
        tcc_group_can_load_ahead(g, &of_index))
        load_ahead(g, &of_index);
    else if (has_stages(g))
        copy_in_place(g);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = tcc_walk_next(op, f->body); /* in the loop, if it is one: what it becomes has its ops */
        if (tcc_is_loop(op) && tcc_attr_int(&op->attrs, "lanes", 0))
            *changed |= tcc_pipeline_stream(ctx->scratch, op);
    }
    tcc_groups all = tcc_groups_find(ctx->scratch, f);
    for (size_t i = 0; i < all.len; i++)
        put_through_registers(ctx->scratch, all.data[i], &all);
    *changed |= all.len != 0;
    return TCC_OK;
}

const tcc_pass tcc_pass_pipeline_registers = {
    "pipeline-registers", "copy the operands of MMAs through registers to shared memory", .run = run,
    .requires = TCC_UP_TO(stages),
    .leaves = TCC_STATE(rings)};
