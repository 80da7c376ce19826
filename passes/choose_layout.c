/* choose-layout: decide the layout of each operand in shared memory and how tiles are copied.
 *
 * Before:  %a = tile.load %A, … : tile<f16[128, 64]>
 *          tile.store %r, %C, …
 * After:   %a = tile.load %A, … {copy = tma, contiguous = 1, swizzle = 128}
 *          tile.store %r, %C, … {copy = tma}
 *
 * An operand of a product, or what one is computed of, keeps the direction that is contiguous in memory, cut into
 * panels as wide as the swizzle: the widest that the schedule allows and that divides the tile. A result
 * goes through shared memory and TMA where its last index is n or m, its rows can be a multiple
 * of 16 bytes and its staging fits; where only the rows are not, in words of all threads; else straight from
 * registers.
 *
 * Requires choose-schedule and tile. Preserves everything but the attributes.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/assume.h"
#include "ir/cluster.h"
#include "ir/schedule_key.h"
#include "passes/families.h"
#include "passes/passes.h"
#include "passes/room.h"
#include "passes/tiling.h"

enum {
    WIDE = 16,      /* bytes of the longest access of a lane */
    WORD = 4
};

/* The tile dimension that runs along the tensor's last dimension, or -1. */
static int contiguous_dim(const tcc_op *op, const tcc_type *tensor)
{
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    for (size_t i = 0; i < dims.list.n; i++)
        if (dims.list.items[i].i == (int64_t)tensor->rank - 1 && tcc_type_has_rows(tensor))
            return (int)i;
    return -1;
}

/* In panels of at most this many elements along m or n, swizzled as widely as that allows. */
static void lay_out(tcc_ir *ir, tcc_op *load, int k_dim, int64_t most, int64_t swizzle, const char *copy)
{
    const tcc_type *tile = load->results[0].type;
    int contiguous = contiguous_dim(load, TCC_VIEW(tile_load, load)->tensor->type);
    if (contiguous < 0 || tcc_scalar_bits(tile->elem) < 8)
        contiguous = k_dim; /* element-wise copies may lay it out as they like */
    int64_t elems = contiguous == k_dim ? tile->dims[k_dim].size : most;
    int64_t bytes = elems * tcc_scalar_bits(tile->elem) / 8;
    tcc_attr_set_str(ir, &load->attrs, "copy", copy);
    tcc_attr_set_int(ir, &load->attrs, "contiguous", contiguous);
    tcc_attr_set_int(ir, &load->attrs, "swizzle", tcc_swizzle_of(bytes, swizzle));
}

/* An instruction's operand must begin at a panel, so a panel along m or n must not be wider than the
 * operand; along k an instruction may begin inside one. */
void tcc_lay_out_swizzled(tcc_ir *ir, const tcc_schedule *s, tcc_op *load, int k_dim, int64_t instr,
                          const char *copy)
{
    lay_out(ir, load, k_dim, instr, s->swizzle, copy);
}

/* Lanes that take outer products read 4 elements along m or n of every k, up to 16 bytes at a time: panels of that
 * width or, of narrow elements, of what is copied at a time, padded so that those of 8 lanes are in different banks. So
 * k is a constant in an address, and words are transposed while they are copied. */
static void lay_out_for_lanes(tcc_ir *ir, tcc_op *load, int k_dim, const char *copy)
{
    enum { ELEMS = 4, PAD = 16 };
    tcc_attrs *attrs = &load->attrs;
    int64_t taken = ELEMS * tcc_scalar_bits(load->results[0].type->elem) / 8;
    tcc_attr_set_str(ir, attrs, "copy", copy);
    tcc_attr_set_int(ir, attrs, "contiguous", !k_dim);
    tcc_attr_set_int(ir, attrs, "swizzle", 0);
    tcc_attr_set_int(ir, attrs, "panel", taken > WIDE ? taken : WIDE);
    tcc_attr_set_int(ir, attrs, "pad", PAD);
}

/* wmma.load takes lines of an instruction's operand at a fixed pitch: panels of this width, padded so that threads that
 * store to several of them use all banks. Lines shorter than k would not be aligned as the instruction requires: then
 * they run along k. */
static void lay_out_for_fragments(tcc_ir *ir, tcc_op *load, int k_dim, int64_t instr, int64_t instr_k, const char *copy)
{
    int contiguous = contiguous_dim(load, TCC_VIEW(tile_load, load)->tensor->type);
    if (contiguous < 0 || instr < instr_k)
        contiguous = k_dim;
    int64_t bytes = (contiguous == k_dim ? instr_k : instr) * tcc_scalar_bits(load->results[0].type->elem) / 8;
    tcc_attrs *attrs = &load->attrs;
    tcc_attr_set_str(ir, attrs, "copy", copy);
    tcc_attr_set_int(ir, attrs, "contiguous", contiguous);
    tcc_attr_set_int(ir, attrs, "swizzle", 0);
    tcc_attr_set_int(ir, attrs, "panel", bytes);
    tcc_attr_set_int(ir, attrs, "pad", bytes);
}

/* Warps read lines of 16 bytes at any address: 8 consecutive ones use all banks. */
void tcc_lay_out_for_warps(tcc_ir *ir, const tcc_schedule *s, tcc_op *load, int k_dim, int64_t instr,
                           const char *copy)
{
    enum { WIDEST = 128 };
    unsigned bits = tcc_scalar_bits(load->results[0].type->elem);
    tcc_mma_block block = {0, 0};
    tcc_mma_sync_block(s->target, s->instr, 0, &block);
    tcc_fragment_id held = tcc_mma_sync_held(s->target, s->instr, block, TCC_AS_A, bits);
    if (s->instr == TCC_INSTR_FMA)
        lay_out_for_lanes(ir, load, k_dim, copy);
    else if (held != TCC_FRAGMENT_COUNT && tcc_warps_hold_opaque(s))
        lay_out_for_fragments(ir, load, k_dim, instr, tcc_fragments[held].cols, copy);
    else
        lay_out(ir, load, k_dim, load->results[0].type->dims[!k_dim].size, WIDEST, copy);
}

/* Operands go through registers, and are in LDS as a lane reads them: panels of 16 bytes along k, or
 * of two 8-byte halves if rows are interleaved while they are copied. In that case the 16 bytes that a
 * lane stores at a time are in the banks of other lanes': so places are exchanged. */
void tcc_lay_out_in_panels(tcc_ir *ir, const tcc_schedule *s, tcc_op *load, int k_dim, int64_t instr,
                           const char *copy)
{
    (void)instr;
    const tcc_type *tile = load->results[0].type;
    int contiguous = contiguous_dim(load, TCC_VIEW(tile_load, load)->tensor->type);
    bool transposed = strcmp(copy, "predicated") && contiguous == !k_dim;
    tcc_attrs *attrs = &load->attrs;
    tcc_attr_set_str(ir, attrs, "copy", copy);
    tcc_attr_set_int(ir, attrs, "contiguous", k_dim);
    int64_t panel = transposed ? 8 : 16;
    tcc_rdna_unit unit =
        tcc_rdna_unit_of(tcc_schedule_threads(s), tile->dims[!k_dim].size, tile->dims[k_dim].size,
                         tcc_scalar_bits(tile->elem), transposed);
    int64_t stored = unit.cols * panel;
    tcc_attr_set_int(ir, attrs, "swizzle", transposed && stored > 16 ? stored : 0);
    tcc_attr_set_int(ir, attrs, "panel", panel);
    tcc_attr_set_int(ir, attrs, "pad", transposed ? 0 : TCC_RDNA_PAD_BYTES);
}

static const tcc_value *tensor_of(const tcc_op *load)
{
    return TCC_VIEW(tile_load, load)->tensor;
}

/* Whether an operand goes through shared memory as it is loaded, or the tiles that it is computed from
 * do. */
static bool is_staged_operand(const tcc_schedule *s, const tcc_op *mma, unsigned i, const tcc_op *load)
{
    return mma->operands[i]->def == load || tcc_target_can(s->target, TCC_CAN_wgmma);
}

/* How the operands of a function's MMAs are copied: all in one way. */
static const char *copy_of_operands(const tcc_func *f, const tcc_schedule *s, const tcc_copying *how,
                                    tcc_arena *scratch)
{
    TCC_VEC(const tcc_value *) tensors = {0};
    tcc_dim k = {0};
    bool all = true; /* go through shared memory */
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        for (unsigned i = 0; op->code == TCC_OP_tile_mma && i < 2; i++) {
            const tcc_op *load = tcc_tiled_load(op, i, scratch);
            if (!load)
                continue;
            if (contiguous_dim(load, tensor_of(load)->type) < 0)
                return "predicated";
            TCC_PUSH(scratch, &tensors, tensor_of(load));
            k = tensor_of(load)->type->dims[tcc_attr_list(&load->attrs, "dims").list.items[!i].i];
            all &= is_staged_operand(s, op, i, load);
        }
    const char *copy = tcc_copying_of(how, f, tensors.data, tensors.len, k);
    /* Rows of any length end with the sum: only loops that do nothing else know where. */
    return copy && (all || strcmp(copy, "unaligned")) ? copy : "predicated";
}

/* CTAs of a cluster along m load the same of B, along n the same of A. */
static void share_loads(const tcc_schedule *s, tcc_op *a, tcc_op *b)
{
    tcc_peers_set(b, (tcc_peers){s->cluster_m, 1});
    tcc_peers_set(a, (tcc_peers){s->cluster_n, s->cluster_m});
}

/* How long L2 should keep what the copy engine moves, as given for tensors by the key `cache`. */
static void set_cache(tcc_func *f, tcc_op *op, const tcc_value *tensor)
{
    tcc_attr pairs = tcc_attr_list(&f->attrs, tcc_schedule_keys[TCC_KEY_cache].name);
    for (size_t i = 0; i + 1 < pairs.list.n; i += 2)
        if (!strcmp(pairs.list.items[i].s, tensor->name))
            tcc_attr_set_str(f->ir, &op->attrs, "cache", pairs.list.items[i + 1].s);
}

bool tcc_lay_out_operands(tcc_pass_ctx *ctx, tcc_func *f, const tcc_schedule *s)
{
    const tcc_family_passes *passes = tcc_family_passes_of(s->target);
    bool any = false;
    const char *copy = copy_of_operands(f, s, passes->copying, ctx->scratch);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        tcc_attr instr = tcc_attr_list(&op->attrs, "instr");
        if (op->code != TCC_OP_tile_mma || instr.list.n != 3)
            continue;
        tcc_op *a = tcc_tiled_load(op, 0, ctx->scratch), *b = tcc_tiled_load(op, 1, ctx->scratch);
        tcc_op *const loads[] = {a, b};
        for (unsigned i = 0; i < 2; i++) {
            if (!loads[i])
                continue;
            if (is_staged_operand(s, op, i, loads[i]))
                passes->lay_out(ctx->ir, s, loads[i], !i, instr.list.items[i].i, copy);
            if (!strcmp(copy, "tma"))
                set_cache(f, loads[i], tensor_of(loads[i]));
            any = true;
        }
        if (a && b && !strcmp(copy, "tma"))
            share_loads(s, a, b);
    }
    return any;
}

static bool feeds_mma(const tcc_op *load)
{
    for (const tcc_use *u = load->results[0].uses; u; u = u->next)
        if (u->op->code == TCC_OP_tile_mma)
            return true;
    return false;
}

static bool is_aligned(const tcc_func *f, const tcc_value *tensor, int64_t bytes)
{
    return tcc_assumes_align(f, tensor, bytes) && tcc_assumes_pitch(f, tensor, bytes);
}

static bool is_spread(const tcc_op *op)
{
    while (op->block->parent)
        op = op->block->parent;
    return tcc_attr_find(&op->attrs, "spread");
}

/* Whether an unaligned row runs along the tile's rows, in elements that can be combined into words. What follows a row
 * is then undefined: the tile must be in step with it, so that nothing else is there. */
static bool can_take_words(const tcc_func *f, const tcc_target *target, const tcc_op *load, const tcc_value *tensor)
{
    unsigned bits = tcc_scalar_bits(tensor->type->elem);
    bool runs = !tcc_target_can(target, TCC_CAN_buffer) && (bits == 8 || bits == 16) &&
                contiguous_dim(load, tensor->type) == 1 && tcc_assumes_align(f, tensor, WORD);
    return runs && !load->operands[tensor->type->rank]->def; /* an index, and nothing computed of it */
}

/* Whether rows end at multiples of this many bytes; the padding after a row is not used. */
static bool ends_with(const tcc_func *f, const tcc_type *t, int64_t bytes)
{
    const tcc_value *rows;
    if (!tcc_type_has_gaps(t))
        return true;
    tcc_dim last = t->dims[t->rank - 1];
    return (t->strides || !last.name) && tcc_assumes_multiple(f, last, bytes * 8 / tcc_scalar_bits(t->elem), &rows);
}

/* Whether a load may take what follows a row with its end: padding, but nothing of the caller's. */
static bool may_load(const tcc_func *f, const tcc_type *t, int64_t bytes)
{
    return !t->strides || ends_with(f, t, bytes);
}

/* Whether op stores rows of what warps have multiplied in fragments, for which lanes may exchange elements: not where
 * they would store what others have read. */
static bool stores_rows(const tcc_schedule *s, const tcc_op *op, const tcc_value *tensor)
{
    return op->code == TCC_OP_tile_store && tcc_warps_sum(s) != TCC_FRAGMENT_COUNT &&
           contiguous_dim(op, tensor->type) == 1 && !tcc_value_is_used_by(tensor, TCC_OP_tile_load);
}

/* Whether op loads rows of what a warpgroup's threads hold few neighbours of, for which lanes can exchange words: not
 * where others store what they have loaded. */
static bool loads_rows(const tcc_schedule *s, const tcc_op *op, const tcc_value *tensor)
{
    enum { BITS = 16 };
    if (op->code != TCC_OP_tile_load || s->instr != TCC_INSTR_WGMMA || contiguous_dim(op, tensor->type) != 1 ||
        tcc_value_is_used_by(tensor, TCC_OP_tile_store))
        return false;
    const tcc_type *t = op->results[0].type;
    return t->dims[0].size > 1 && t->dims[1].size % tcc_fragments[TCC_FRAGMENT_rows8].cols == 0 &&
           tcc_scalar_bits(t->elem) == BITS;
}

/* Whether operands are copied element by element: then results may be, too. */
static bool copies_elements(const tcc_func *f)
{
    bool any = false;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        any |= op->code == TCC_OP_tile_load && tcc_attr_is(&op->attrs, "copy", "predicated");
    return any;
}

/* Lets an access of registers take several neighbours at a time, if they can be aligned: as many as a thread
 * holds in a row. */
static void widen(tcc_func *f, const tcc_schedule *s, tcc_op *op, const tcc_value *tensor)
{
    const tcc_target *target = s->target;
    int64_t bits = tcc_scalar_bits(tensor->type->elem);
    if (bits < 8 && !tcc_target_can(target, TCC_CAN_wmma)) /* half by half */
        return;
    if (tcc_attr_find(&op->attrs, "groups"))
        return;
    if (is_spread(op)) {
        int64_t bytes = WIDE;
        while (bytes > 1 && !(is_aligned(f, tensor, bytes) && may_load(f, tensor->type, bytes)))
            bytes /= 2;
        if (bytes * 8 > (bits < 8 ? 8 : bits)) /* rows may begin within a byte */
            tcc_attr_set_int(f->ir, &op->attrs, "wide", bytes);
        else if (op->code == TCC_OP_tile_load && can_take_words(f, target, op, tensor))
            tcc_attr_set_int(f->ir, &op->attrs, "words", WORD);
        return;
    }
    bool rows = stores_rows(s, op, tensor), trade = rows && tcc_warps_sum(s) == TCC_FRAGMENT_mma_d;
    bool aligned = is_aligned(f, tensor, WIDE) && ends_with(f, tensor->type, WIDE);
    bool wide = tcc_target_can(target, TCC_CAN_wmma) || tcc_warps_hold_opaque(s) ||
                ((trade || loads_rows(s, op, tensor)) && aligned);
    int64_t bytes = wide ? WIDE : 2 * bits / 8;
    if (is_aligned(f, tensor, bytes) &&
        (op->code == TCC_OP_tile_store ? ends_with : may_load)(f, tensor->type, bytes))
        tcc_attr_set_int(f->ir, &op->attrs, wide ? "wide" : "pairs", wide ? WIDE : 1);
    else if (rows && bits < 8 * WORD && !tcc_type_has_gaps(tensor->type) && !copies_elements(f))
        tcc_attr_set_int(f->ir, &op->attrs, "words", WORD);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    if (!tcc_func_is_variant(f))
        return TCC_OK;
    const tcc_target *target = tcc_func_target(f);
    const tcc_family_passes *passes = tcc_family_passes_wanted(target, ctx->diag, f->loc);
    if (!passes)
        return TCC_ERR_UNSUPPORTED;
    tcc_schedule s = tcc_schedule_of(f);
    *changed |= tcc_lay_out_operands(ctx, f, &s);
    const tcc_room r = tcc_room_of(f, &s, ctx->scratch);
    int64_t room = tcc_room_for_results(&r, &s);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        if (op->code == TCC_OP_tile_load && !feeds_mma(op) && !tcc_attr_find(&op->attrs, "copy")) {
            widen(f, &s, op, tensor_of(op));
            *changed = true;
        } else if (op->code == TCC_OP_tile_store) {
            tcc_storing how = tcc_storing_wanted(f, op, &s);
            how = tcc_staged_bytes(op, &s) <= room ? how : TCC_STORING_INTERLEAVED;
            bool tma = how == TCC_STORING_TMA, words = how == TCC_STORING_WORDS;
            if (tma || words)
                room -= tcc_staged_bytes(op, &s);
            const tcc_schedule_key *key = &tcc_schedule_keys[TCC_KEY_epilogue];
            tcc_attr_set_str(ctx->ir, &op->attrs, "copy", tcc_schedule_key_word(key, how));
            if (tma)
                set_cache(f, op, TCC_VIEW(tile_store, op)->tensor);
            if ((tma || words) && s.staging)
                tcc_attr_set_int(ctx->ir, &op->attrs, "staged", s.staging);
            if ((tma || words) && s.staging && s.strips != tcc_schedule_keys[TCC_KEY_strips].min)
                tcc_attr_set_int(ctx->ir, &op->attrs, "strips", s.strips);
            if (!tma && !words)
                widen(f, &s, op, TCC_VIEW(tile_store, op)->tensor);
            *changed = true;
        }
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_layout = {
    "choose-layout", "decide shared-memory layouts and how tiles are copied", .run = run,
    .requires = TCC_UP_TO(instructions),
    .leaves = TCC_STATE(copies)};
