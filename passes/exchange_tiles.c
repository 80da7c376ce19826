/* exchange-tiles: allocate buffers for exchanges between warps.
 *
 * Before:  async.role {waves = [2, 2], …}
 *            %s = tile.reduce %x {dim = 1, kind = sum} : tile<f32[128, 1], …>
 *            %a = tile.convert %p : tile<f16[128, 64], gfx11_operand_32(…)>
 * After:   %b = async.alloc : smem<f32[1, 128, 4]>
 *          %c = async.alloc : smem<f16[1, 128, 72]>
 *          async.role {waves = [2, 2], …}
 *            %s = async.combine %x, %b {dim = 1, kind = sum} : tile<f32[128, 1], …>
 *            %a = async.exchange %p, %c : tile<f16[128, 64], gfx11_operand_32(…)>
 *
 * What a warp has of its own, in registers or in lanes that can give it to each other, stays as it is.
 *
 * Requires assign-layouts and chunk-epilogue. Preserves all else.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/moves.h"
#include "ir/shared.h"
#include "passes/families.h"
#include "passes/loops.h"
#include "passes/passes.h"

typedef struct exchanging {
    tcc_ir *ir;
    bool lanes; /* can exchange elements */
    tcc_op *role;
    TCC_VEC(tcc_value *) buffers; /* of the role */
} exchanging;

static tcc_value *build_buffer(const tcc_op *op, tcc_op *role, const tcc_type *type)
{
    tcc_builder b = tcc_builder_before(tcc_first_role(role));
    b.loc = op->loc;
    tcc_value *v = TCC_EMIT(&b, async_alloc, type, NULL);
    tcc_attr_set_int(op->block->func->ir, &v->def->attrs, "swizzle", 0);
    tcc_attr_set_int(op->block->func->ir, &v->def->attrs, "contiguous", 1);
    return v;
}

static int64_t bytes_of(const tcc_type *buffer)
{
    return tcc_exchange_bytes(buffer->dims[1].size, buffer->dims[2].size, tcc_scalar_bits(buffer->elem));
}

/* A buffer with the element type of another, and this many rows and columns. */
static const tcc_type *grown(const exchanging *e, const tcc_type *buffer, int64_t rows, int64_t cols)
{
    int64_t sizes[] = {1, buffer->dims[1].size, buffer->dims[2].size};
    sizes[1] = rows > sizes[1] ? rows : sizes[1];
    sizes[2] = cols > sizes[2] ? cols : sizes[2];
    return tcc_type_sized(e->ir, TCC_KIND_smem, buffer->elem, 3, sizes);
}

/* Ops share buffers, for they begin with a barrier: one with another as long as that takes no more than two. */
static tcc_value *buffer_for(exchanging *e, const tcc_op *op, int64_t rows, int64_t cols)
{
    tcc_scalar elem = op->operands[0]->type->elem;
    cols = tcc_whole_columns(cols, tcc_scalar_bits(elem));
    const tcc_type *own = tcc_type_sized(e->ir, TCC_KIND_smem, elem, 3, (int64_t[]){1, rows, cols});
    for (size_t i = 0; i < e->buffers.len; i++) {
        tcc_value *buffer = e->buffers.data[i];
        const tcc_type *both = grown(e, buffer->type, rows, cols);
        if (buffer->type->elem != elem || bytes_of(both) > bytes_of(buffer->type) + bytes_of(own))
            continue;
        buffer->type = both;
        return buffer;
    }
    tcc_value *buffer = build_buffer(op, e->role, own);
    TCC_PUSH(e->ir->arena, &e->buffers, buffer);
    return buffer;
}

static bool put_in_place(tcc_op *op, tcc_value *by)
{
    tcc_replace_uses(&op->results[0], by);
    tcc_op_erase(op);
    return true;
}

static bool exchange(exchanging *e, tcc_op *op)
{
    const tcc_type *from = op->operands[0]->type, *to = op->results[0].type;
    if (!from->layout || !to->layout || tcc_can_convert_in_warp(e->ir->arena, from, to, e->lanes))
        return false;
    bool opaque = tcc_layout_is_opaque(from) || tcc_layout_is_opaque(to);
    int64_t cols = from->dims[1].size * tcc_layout_apart(from) * tcc_layout_apart(to);
    tcc_value *buffer =
        buffer_for(e, op, from->dims[0].size, tcc_exchange_columns(cols, tcc_scalar_bits(from->elem), opaque));
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    return put_in_place(op, TCC_EMIT(&b, async_exchange, to, op->operands[0], buffer));
}

static bool combine(exchanging *e, tcc_op *op)
{
    const tcc_type *from = op->operands[0]->type, *to = op->results[0].type;
    int dim = (int)tcc_attr_int(&op->attrs, "dim", 0);
    tcc_spread s;
    if (from == to || !tcc_layout_spread(from, &s) || !to->layout || tcc_can_reduce_in_warp(from, dim))
        return false;
    int64_t sizes[] = {from->dims[0].size, from->dims[1].size};
    sizes[dim] = 1;
    for (unsigned i = 0; i < s.warps.n; i++)
        sizes[dim] *= s.warps.of[i].add[dim] ? s.warps.of[i].n : 1;
    tcc_value *buffer = buffer_for(e, op, sizes[0], sizes[1]);
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    tcc_value *r = TCC_EMIT(&b, async_combine, to, op->operands[0], buffer);
    r->def->attrs = op->attrs;
    return put_in_place(op, r);
}

static bool exchange_role(tcc_ir *ir, bool lanes, tcc_op *role)
{
    exchanging e = {.ir = ir, .lanes = lanes, .role = role};
    tcc_block *region = role->regions[0];
    bool changed = false;
    for (tcc_op *op = region->first, *next; op; op = next) {
        next = tcc_walk_next(op, region);
        if (op->code == TCC_OP_tile_convert)
            changed |= exchange(&e, op);
        else if (op->code == TCC_OP_tile_reduce)
            changed |= combine(&e, op);
    }
    return changed;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_family_passes *passes = tcc_family_passes_of(tcc_func_target(f));
    for (tcc_op *op = f->body->first; op && passes; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_async_role)
            *changed |= exchange_role(ctx->ir, passes->lanes_give, op);
    return TCC_OK;
}

const tcc_pass tcc_pass_exchange_tiles = {
    "exchange-tiles", "allocate buffers for exchanges between warps", .run = run,
    .requires = TCC_UP_TO(layouts),
    .undoes = TCC_STATE(places)};
