/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/room.h"

#include "ir/assume.h"
#include "passes/tiling.h"
#include "support/map.h"

enum { TMA_BYTES = 16 }; /* of which addresses and strides are multiples */

static int64_t bytes_of(const tcc_type *tile)
{
    return tcc_stage_bytes(tcc_type_count(tile) * tcc_scalar_bits(tile->elem) / 8);
}

/* What CTAs that share a loop hand to the first of them. */
static int64_t handed_bytes(const tcc_op *loop)
{
    int64_t ranks = tcc_attr_int(&loop->attrs, "ranks", 1), bytes = 0;
    for (unsigned i = 0; ranks > 1 && i < loop->n_results; i++)
        bytes += (ranks - 1) * bytes_of(loop->results[i].type);
    return bytes;
}

/* Of the largest exchange of computed operands, by side and element: those of a kind share a buffer. */
typedef struct exchanges {
    int64_t bytes[2][TCC_SCALAR_COUNT];
} exchanges;

/* Warps and waves exchange what they compute, if not all hold it themselves. */
static void add_exchange(exchanges *x, const tcc_schedule *s, unsigned side, const tcc_type *tile, int64_t columns)
{
    unsigned bits = tcc_scalar_bits(tile->elem);
    int64_t cols = tcc_exchange_columns(columns, bits, tcc_warps_hold_opaque(s));
    int64_t bytes = tcc_exchange_bytes(tile->dims[0].size, cols, bits), *most = &x->bytes[side][tile->elem];
    *most = bytes > *most ? bytes : *most;
}

static void add_operands(tcc_room *r, exchanges *x, const tcc_schedule *s, const tcc_op *mma, tcc_map *seen,
                         tcc_arena *scratch)
{
    for (unsigned i = 0; i < 2; i++) {
        const tcc_value *v = mma->operands[i];
        bool in_rounds = s->wave && !tcc_tiled_load(mma, i, scratch); /* what is computed of another product */
        if ((!in_rounds && !tcc_mma_computes(mma, i, scratch)) || tcc_map_get(seen, v))
            continue;
        *tcc_map_at(seen, v) = v->def;
        if (in_rounds)
            add_exchange(x, s, i, v->type, tcc_attr_list(&mma->attrs, "instr").list.items[2].i);
        else if (!tcc_target_can(s->target, TCC_CAN_wgmma))
            add_exchange(x, s, i, v->type, v->type->dims[1].size);
        else if (tcc_mma_puts(mma, i, scratch))
            r->own += TCC_OWN_STAGES * bytes_of(v->type);
    }
}

/* Whether a load serves a whole loop. */
static bool is_once(const tcc_op *load)
{
    return load->block->parent && load->block->parent->code == TCC_OP_tile_grid;
}

tcc_room tcc_room_of(tcc_func *f, const tcc_schedule *s, tcc_arena *scratch)
{
    bool has_barriers = tcc_target_can(s->target, TCC_CAN_wgmma);
    tcc_room r = {.all = s->target->smem_bytes, .barriers = has_barriers ? tcc_ring_bytes(1) : 0};
    int64_t once = 0; /* of what is copied for a whole loop */
    exchanges x = {0};
    tcc_map seen = TCC_MAP(scratch);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_tile_load && tcc_attr_find(&op->attrs, "copy"))
            *(is_once(op) ? &once : &r.stage) += tcc_panels_of(op).stage_bytes;
        else if (op->code == TCC_OP_tile_mma)
            add_operands(&r, &x, s, op, &seen, scratch);
        else if (op->code == TCC_OP_scf_for)
            r.others += handed_bytes(op);
    r.others += once ? once + r.barriers : 0;
    r.own += r.own ? tcc_ring_bytes(TCC_OWN_STAGES) : 0;
    for (int e = 0; e < TCC_SCALAR_COUNT; e++)
        r.others += x.bytes[0][e] + x.bytes[1][e];
    if (s->persistent == TCC_PERSISTENT_DYNAMIC)
        r.others += tcc_stage_bytes(TCC_DRAWN_STAGES * TCC_DRAWN_BYTES) + tcc_ring_bytes(TCC_DRAWN_STAGES);
    if (tcc_schedule_turns(s) > 1)
        r.others += tcc_ring_bytes(tcc_schedule_turns(s));
    return r;
}

int64_t tcc_room_taken(const tcc_room *r, int64_t stages)
{
    int64_t beside = r->own + r->others, bytes = stages * r->stage;
    return (beside ? tcc_stage_bytes(bytes) : bytes) + beside + stages * r->barriers;
}

int64_t tcc_room_stages(const tcc_room *r)
{
    int64_t stage = r->stage + r->barriers;
    return stage ? (r->all - r->own - r->others) / stage : INT64_MAX;
}

int64_t tcc_room_for_results(const tcc_room *r, const tcc_schedule *s)
{
    int64_t room = r->all - r->others - s->stages * r->barriers;
    return s->persistent ? room - s->stages * r->stage - r->own : room;
}

/* ---- results --------------------------------------------------------------------------------- */

/* TMA does not store a tensor that is also read where the next tile's elements are read while these are in flight; nor
 * do other threads than those that may have read the elements, in words. */
tcc_storing tcc_storing_wanted(const tcc_func *f, const tcc_op *store, const tcc_schedule *s)
{
    tcc_attr dims = tcc_attr_list(&store->attrs, "dims");
    const tcc_tile_store_operands *o = TCC_VIEW(tile_store, store);
    const tcc_type *t = o->tensor->type;
    bool aligned = tcc_assumes_align(f, o->tensor, TMA_BYTES) &&
                   (t->rank == 1 || tcc_assumes_pitch(f, o->tensor, TMA_BYTES));
    tcc_storing how = tcc_storing_of(s, t, (int)dims.list.items[0].i, (int)dims.list.items[1].i,
                                     o->a->type->dims[1].size, aligned);
    bool can = !tcc_value_is_used_by(o->tensor, TCC_OP_tile_load) || (how == TCC_STORING_TMA && !s->persistent);
    return can ? how : TCC_STORING_INTERLEAVED;
}

int64_t tcc_staged_bytes(const tcc_op *store, const tcc_schedule *s)
{
    const tcc_tile_store_operands *o = TCC_VIEW(tile_store, store);
    int64_t rows = o->a->type->dims[0].size, cols = s->staging ? s->staging : o->a->type->dims[1].size;
    int64_t one = tcc_stage_bytes(rows * cols * tcc_scalar_bits(o->tensor->type->elem) / 8);
    return tcc_schedule_turns(s) * (s->staging ? s->strips : 1) * one;
}

int64_t tcc_staged_by(tcc_func *f, const tcc_schedule *s)
{
    int64_t bytes = 0;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_tile_store && tcc_storing_wanted(f, op, s) != TCC_STORING_INTERLEAVED)
            bytes += tcc_staged_bytes(op, s);
    return bytes;
}
