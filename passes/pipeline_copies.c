/* pipeline-copies: put the operands of a tiled product through a ring of shared-memory stages.
 *
 * Before:  scf.for %i … (%c = 0.0) {
 *            %a = tile.load %A …    %b = tile.load %B …
 *            scf.yield (tile.mma %a, %b, %c)
 *          }
 * After:   %sa = async.alloc …    %sb = async.alloc …    %ring = async.ring %sa, %sb
 *          scf.for %i … (%c = 0.0) {
 *            async.acquire %ring, %i
 *            async.copy %ring, %i, %sa, %A …    async.copy %ring, %i, %sb, %B …
 *            async.commit %ring, %i
 *            async.wait %ring, %i
 *            %r = async.mma %ring, %i, %sa, %sb, %c
 *            %w = async.mma_wait %r {pending = 1}
 *            async.release %ring, (%i - 1)
 *            scf.yield %w
 *          }
 *          async.mma_wait … {pending = 0}
 *
 * A trip's product may run on while the next trip begins, so it is the stage of the trip before
 * that is released. With one stage that would wait for itself: then nothing is left pending.
 * The copies and the product still follow each other here; specialize-warps takes them apart.
 *
 * Requires choose-mma and choose-layout.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/passes.h"
#include "passes/schedule.h"

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

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_op *mma = find_mma(f);
    if (!mma || !mma->block->parent || mma->block->parent->code != TCC_OP_scf_for)
        return TCC_OK;
    tcc_ir *ir = ctx->ir;
    tcc_op *loop = mma->block->parent;
    const tcc_tile_mma_operands *m = TCC_VIEW(tile_mma, mma);
    tcc_op *loads[] = {m->a->def, m->b->def};
    int64_t stages = tcc_schedule_of(f).stages, pending = stages > 1;

    tcc_builder b = tcc_builder_before(loop);
    tcc_value *buffers[2];
    for (int i = 0; i < 2; i++)
        buffers[i] = build_alloc(&b, loads[i], stages);
    b.loc = loop->loc;
    const tcc_type *ring_type = tcc_type_get(ir, TCC_KIND_ring, TCC_f32, 0, NULL);
    tcc_value *ring = &tcc_op_create(&b, TCC_OP_async_ring, 2, buffers, 1, &ring_type)->results[0];
    tcc_attr_set_int(ir, &ring->def->attrs, "stages", stages);

    tcc_value *i = loop->regions[0]->args[0];
    b = tcc_builder_before(mma);
    TCC_EMIT_V(&b, async_acquire, ring, i);
    for (int l = 0; l < 2; l++)
        build_copy(&b, loads[l], ring, i, buffers[l]);
    b.loc = mma->loc;
    TCC_EMIT_V(&b, async_commit, ring, i);
    TCC_EMIT_V(&b, async_wait, ring, i);
    tcc_value *r =
        TCC_EMIT(&b, async_mma, mma->results[0].type, ring, i, buffers[0], buffers[1], m->c);
    tcc_attr_set(ir, &r->def->attrs, "instr", tcc_attr_list(&mma->attrs, "instr"), (tcc_loc){0, 0});
    tcc_value *w = TCC_EMIT(&b, async_mma_wait, r->type, r);
    set_pending(ir, w, pending);
    tcc_value *done = i;
    if (pending)
        done = TCC_EMIT(&b, arith_sub, i->type, i, tcc_build_i32(&b, pending));
    TCC_EMIT_V(&b, async_release, ring, done);
    tcc_replace_uses(f, &mma->results[0], w);
    tcc_op_erase(mma);
    for (int l = 0; l < 2; l++)
        if (!loads[l]->results[0].n_uses)
            tcc_op_erase(loads[l]);

    b = tcc_builder_after(loop);
    tcc_value *last = TCC_EMIT(&b, async_mma_wait, loop->results[0].type, &loop->results[0]);
    set_pending(ir, last, 0);
    tcc_replace_uses(f, &loop->results[0], last);
    tcc_op_set_operand(last->def, 0, &loop->results[0]);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_pipeline_copies = {
    "pipeline-copies", "put the operands of a product through a ring of shared-memory stages", run};
