/* pipeline-copies: put the operands of a tiled product through a ring of shared-memory stages.
 *
 * Before:  scf.for %i … (%c = 0.0) {
 *            %a = tile.load %A …    %b = tile.load %B …
 *            scf.yield (tile.mma %a, %b, %c)
 *          }
 * After:   %sa = async.alloc …    %sb = async.alloc …    %ring = async.ring %sa, %sb {completion = bytes}
 *          scf.for %i … (%c = 0.0) {
 *            async.acquire %ring, %i
 *            async.copy %ring, %i, %sa, %A …    async.copy %ring, %i, %sb, %B …
 *            async.commit %ring, %i {bytes = …}
 *            async.wait %ring, %i
 *            %r = async.mma %ring, %i, %sa, %sb, %c
 *            %w = async.mma_wait %r {pending = 1}
 *            async.release %ring, (%i - 1)
 *            scf.yield %w
 *          }
 *          async.mma_wait … {pending = 0}
 *
 * On RDNA nothing copies to LDS but the threads themselves. Where they can do it 16 bytes at a time
 * they load a tile into registers a trip before they put it into its stage, and put it there a trip
 * before it is multiplied:
 *          acquire; async.put 0 (tile.load … 0); commit
 *          scf.for %i … (%c = 0.0, %a = tile.load … 1, %b = tile.load … 1) {
 *            acquire; async.put %i + 1, %sa, %a; async.put %i + 1, %sb, %b; commit
 *            %a2 = tile.load … %i + 2    %b2 = tile.load … %i + 2
 *            wait; async.mma; mma_wait; release
 *            scf.yield %r, %a2, %b2
 *          }
 * Past the last trip the loads give zeros, which nobody multiplies.
 *
 * A trip's product may run on while the next trip begins, if nothing but that reads it, so it is the
 * stage of the trip before that is released. With one stage that would wait for itself: then nothing is
 * left pending.
 * The copies and the product still follow each other here; specialize-warps takes them apart.
 *
 * Requires choose-mma, choose-layout and choose-pipeline.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/target.h"
#include "passes/arith.h"
#include "passes/passes.h"

/* Whether v is a load of which choose-layout has decided. */
static bool is_decided(const tcc_value *v)
{
    return v->def && v->def->code == TCC_OP_tile_load && tcc_attr_find(&v->def->attrs, "copy");
}

static tcc_op *find_mma(const tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_tile_mma && tcc_attr_find(&op->attrs, "instr") &&
            is_decided(TCC_VIEW(tile_mma, op)->a) && is_decided(TCC_VIEW(tile_mma, op)->b))
            return op;
    return NULL;
}

/* The stages that a load goes through. */
static tcc_value *build_alloc(tcc_builder *b, const tcc_op *load, int64_t stages)
{
    const tcc_type *tile = load->results[0].type;
    int64_t sizes[] = {stages, tile->dims[0].size, tile->dims[1].size};
    b->loc = load->loc;
    tcc_value *v = TCC_EMIT(b, async_alloc,
                            tcc_type_sized(b->func->ir, TCC_KIND_smem, tile->elem, 3, sizes), NULL);
    tcc_attr_set_int(b->func->ir, &v->def->attrs, "swizzle",
                     tcc_attr_int(&load->attrs, "swizzle", 0));
    tcc_attr_set_int(b->func->ir, &v->def->attrs, "contiguous",
                     tcc_attr_int(&load->attrs, "contiguous", 1));
    static const char *const rdna[] = {"panel", "pad"};
    for (int i = 0; i < 2; i++)
        if (tcc_attr_find(&load->attrs, rdna[i]))
            tcc_attr_set_int(b->func->ir, &v->def->attrs, rdna[i],
                             tcc_attr_int(&load->attrs, rdna[i], 0));
    return v;
}

static void build_copy(tcc_builder *b, const tcc_op *load, tcc_value *ring, tcc_value *i,
                       tcc_value *buffer)
{
    tcc_ir *ir = b->func->ir;
    unsigned n = load->n_operands + 3;
    tcc_value **operands = TCC_NEW_ARRAY(ir->arena, tcc_value *, n);
    operands[0] = ring;
    operands[1] = i;
    operands[2] = buffer;
    for (unsigned o = 0; o < load->n_operands; o++) /* the tensor and its coordinates */
        operands[3 + o] = load->operands[o];
    b->loc = load->loc;
    tcc_op *copy = tcc_op_create(b, TCC_OP_async_copy, n, operands, 0, NULL);
    tcc_attr_set(ir, &copy->attrs, "dims", tcc_attr_list(&load->attrs, "dims"), (tcc_loc){0, 0});
    tcc_attr_set_str(ir, &copy->attrs, "copy", tcc_attr_str(&load->attrs, "copy", "predicated"));
}

static void set_pending(tcc_ir *ir, tcc_value *wait, int64_t pending)
{
    tcc_attr_set_int(ir, &wait->def->attrs, "pending", pending);
}

/* A product that is to be pipelined. */
typedef struct pipeline {
    tcc_func *f;
    tcc_op *mma, *loop, *loads[2];
    tcc_value *ring, *buffers[2];
    const char *completion; /* of the ring */
    tcc_arena *scratch;
} pipeline;

static tcc_value *sum(tcc_builder *b, tcc_value *i, int64_t n)
{
    return n ? TCC_EMIT(b, arith_add, i->type, i, tcc_build_i32(b, n)) : i;
}

static void build_ring(pipeline *p, int64_t stages)
{
    tcc_ir *ir = p->f->ir;
    tcc_builder b = tcc_builder_before(p->loop);
    for (int i = 0; i < 2; i++)
        p->buffers[i] = build_alloc(&b, p->loads[i], stages);
    b.loc = p->loop->loc;
    const tcc_type *type = tcc_type_get(ir, TCC_KIND_ring, TCC_f32, 0, NULL);
    p->ring = &tcc_op_create(&b, TCC_OP_async_ring, 2, p->buffers, 1, &type)->results[0];
    tcc_attr_set_int(ir, &p->ring->def->attrs, "stages", stages);
    tcc_attr_set_str(ir, &p->ring->def->attrs, "completion", p->completion);
}

static void build_commit(pipeline *p, tcc_builder *b, tcc_value *i)
{
    tcc_op *commit = TCC_EMIT_V(b, async_commit, p->ring, i);
    if (strcmp(p->completion, "bytes"))
        return;
    int64_t bytes = 0;
    for (int l = 0; l < 2; l++) {
        const tcc_type *t = p->loads[l]->results[0].type;
        bytes += tcc_type_count(t) * tcc_scalar_bits(t->elem) / 8;
    }
    tcc_attr_set_int(p->f->ir, &commit->attrs, "bytes", bytes);
}

/* The product of iteration i, from its stage, waited for until `pending` are unfinished. */
static tcc_value *build_product(pipeline *p, tcc_builder *b, tcc_value *i, int64_t pending)
{
    tcc_op *mma = p->mma;
    b->loc = mma->loc;
    TCC_EMIT_V(b, async_wait, p->ring, i);
    tcc_value *r = TCC_EMIT(b, async_mma, mma->results[0].type, p->ring, i, p->buffers[0],
                            p->buffers[1], TCC_VIEW(tile_mma, mma)->c);
    tcc_attr_set(p->f->ir, &r->def->attrs, "instr", tcc_attr_list(&mma->attrs, "instr"),
                 (tcc_loc){0, 0});
    tcc_value *w = TCC_EMIT(b, async_mma_wait, r->type, r);
    set_pending(p->f->ir, w, pending);
    TCC_EMIT_V(b, async_release, p->ring,
               pending ? TCC_EMIT(b, arith_sub, i->type, i, tcc_build_i32(b, pending)) : i);
    return w;
}

static void erase_loads(pipeline *p)
{
    for (int l = 0; l < 2; l++)
        if (!p->loads[l]->results[0].n_uses)
            tcc_op_erase(p->loads[l]);
}

/* How many iterations there were before this one. */
static tcc_value *iteration(tcc_builder *b, const tcc_op *loop)
{
    tcc_value *i = loop->regions[0]->args[0];
    if (tcc_counts_iterations(loop))
        return i;
    tcc_value *from_first = TCC_EMIT(b, arith_sub, i->type, i, TCC_VIEW(scf_for, loop)->lo);
    return TCC_EMIT(b, arith_div, i->type, from_first, TCC_VIEW(scf_for, loop)->step);
}

/* By the copy engine, or by threads that need not wait for their loads. */
static void copy_to_stages(pipeline *p, int64_t pending)
{
    tcc_builder b = tcc_builder_before(p->mma);
    tcc_value *i = iteration(&b, p->loop);
    TCC_EMIT_V(&b, async_acquire, p->ring, i);
    for (int l = 0; l < 2; l++)
        build_copy(&b, p->loads[l], p->ring, i, p->buffers[l]);
    b.loc = p->mma->loc;
    build_commit(p, &b, i);
    tcc_value *w = build_product(p, &b, i, pending);
    tcc_replace_uses(&p->mma->results[0], w);
    tcc_op_erase(p->mma);
    erase_loads(p);
}

/* ---- through registers ------------------------------------------------------------------ */

static void put_tiles(pipeline *p, tcc_builder *b, tcc_value *i, tcc_value *const *tiles)
{
    b->loc = p->mma->loc;
    TCC_EMIT_V(b, async_acquire, p->ring, i);
    for (int l = 0; l < 2; l++)
        TCC_EMIT_V(b, async_put, p->ring, i, p->buffers[l], tiles[l]);
    build_commit(p, b, i);
}

/* The loads of iteration i, with all that they compute their coordinates from. */
static void load_tiles(pipeline *p, tcc_builder *b, tcc_value *i, tcc_value **tiles)
{
    tcc_value_map *map = tcc_value_map_create(p->scratch);
    tcc_value_map_set(map, p->loop->regions[0]->args[0], i);
    const tcc_op *last = p->mma->prev; /* the clones may come after it */
    for (tcc_op *op = p->loop->regions[0]->first, *next; op; op = next) {
        next = op == last ? NULL : op->next;
        if (op == p->loads[0] || op == p->loads[1] ||
            (op->n_results == 1 && op->results[0].type->kind == TCC_KIND_scalar))
            tcc_op_clone(b, op, map);
    }
    for (int l = 0; l < 2; l++)
        tiles[l] = tcc_value_map_get(map, &p->loads[l]->results[0]);
}

/* The loop again, with two more values that it carries. Returns it, its body empty. */
static tcc_op *carry_tiles(pipeline *p, tcc_value *const *tiles)
{
    const tcc_op *old = p->loop;
    tcc_value *operands[6] = {old->operands[0], old->operands[1], old->operands[2],
                              old->operands[3], tiles[0],         tiles[1]};
    const tcc_type *types[3] = {old->results[0].type, tiles[0]->type, tiles[1]->type};
    tcc_builder b = tcc_builder_before(p->loop);
    b.loc = old->loc;
    tcc_op *loop = tcc_op_create(&b, TCC_OP_scf_for, 6, operands, 3, types);
    for (size_t a = 0; a < old->attrs.len; a++)
        TCC_PUSH(p->f->ir->arena, &loop->attrs, old->attrs.data[a]);
    const tcc_block *from = old->regions[0];
    for (size_t a = 0; a < 2; a++)
        tcc_replace_uses(from->args[a], tcc_block_add_arg(loop->regions[0], from->args[a]->type,
                                                          from->args[a]->name));
    for (int l = 0; l < 2; l++)
        tcc_block_add_arg(loop->regions[0], types[1 + l], NULL);
    return loop;
}

static void put_into_stages(pipeline *p)
{
    tcc_value *tiles[2], *next[2];
    tcc_builder b = tcc_builder_before(p->loop);
    b.loc = p->mma->loc;
    tcc_value *zero = tcc_build_i32(&b, 0);
    load_tiles(p, &b, zero, tiles);
    put_tiles(p, &b, zero, tiles);
    load_tiles(p, &b, tcc_build_i32(&b, 1), tiles);

    tcc_builder in = tcc_builder_before(p->mma);
    in.loc = p->mma->loc;
    tcc_value *i = p->loop->regions[0]->args[0];
    load_tiles(p, &in, sum(&in, i, 2), next);
    tcc_value *w = build_product(p, &in, i, 0);

    tcc_op *old = p->loop, *loop = carry_tiles(p, tiles);
    tcc_op_erase(old->regions[0]->last);
    tcc_op_erase(p->mma);
    erase_loads(p);
    tcc_builder body = tcc_builder_at_end(loop->regions[0]);
    body.loc = old->loc;
    put_tiles(p, &body, sum(&body, loop->regions[0]->args[0], 1), loop->regions[0]->args + 2);
    while (old->regions[0]->first)
        tcc_op_move(&body, old->regions[0]->first);
    tcc_op_create(&body, TCC_OP_scf_yield, 3, (tcc_value *[]){w, next[0], next[1]}, 0, NULL);
    tcc_replace_uses(&old->results[0], &loop->results[0]);
    tcc_op_erase(old);
    p->loop = loop;
}

/* How stages of what is copied in this way become full. */
static const char *completion_of(const tcc_target *target, const char *copy)
{
    if (!tcc_target_can(target, TCC_CAN_mbarrier))
        return "barrier";
    return !strcmp(copy, "tma") ? "bytes" : "arrivals";
}

/* Which of the values that its loop carries the MMA's result is, if that is all there is of it and what
 * it adds to is what the loop carried there: then it may run on into the next iteration. -1: it may not. */
static int carried_at(const tcc_op *mma)
{
    const tcc_block *body = mma->block;
    const tcc_value *r = &mma->results[0];
    if (r->n_uses != 1 || r->uses->op != body->last)
        return -1;
    for (unsigned i = 0; i < body->last->n_operands; i++)
        if (body->last->operands[i] == r)
            return body->args[1 + i] == TCC_VIEW(tile_mma, mma)->c ? (int)i : -1;
    return -1;
}

/* What the loop gives may be read when the MMAs have ended. */
static void wait_behind(tcc_value *result)
{
    tcc_builder b = tcc_builder_after(result->def);
    b.loc = result->def->loc;
    tcc_value *last = TCC_EMIT(&b, async_mma_wait, result->type, result);
    set_pending(b.func->ir, last, 0);
    tcc_replace_uses(result, last);
    tcc_op_set_operand(last->def, 0, result);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_op *mma = find_mma(f);
    if (!mma || !mma->block->parent || mma->block->parent->code != TCC_OP_scf_for)
        return TCC_OK;
    int64_t stages = tcc_attr_int(&mma->block->parent->attrs, "stages", 0);
    if (!stages)
        return TCC_OK;
    const tcc_tile_mma_operands *m = TCC_VIEW(tile_mma, mma);
    pipeline p = {.f = f,
                  .mma = mma,
                  .loop = mma->block->parent,
                  .loads = {m->a->def, m->b->def},
                  .scratch = ctx->scratch};
    const char *copy = tcc_attr_str(&p.loads[0]->attrs, "copy", "");
    bool by_registers = tcc_has_word("buffer unaligned", copy);
    if (by_registers && (!tcc_counts_iterations(p.loop) || carried_at(mma) != 0))
        return TCC_OK;
    p.completion = completion_of(tcc_target_of(ctx->ir), copy);
    tcc_attr_remove(&p.loop->attrs, "stages");
    build_ring(&p, stages);
    int carried = carried_at(mma);
    if (by_registers)
        put_into_stages(&p);
    else
        copy_to_stages(&p, carried >= 0 && stages > 1);
    if (carried >= 0)
        wait_behind(&p.loop->results[carried]);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_pipeline_copies = {
    "pipeline-copies", "put the operands of an MMA through a ring of shared-memory stages", run};
