/* amdgcn_mma: how waves hold tiles, and multiply them.
 *
 * A tile becomes a vec for each block of 16 x 16 that a wave has of it. The matrix instruction
 * computes the transposed product: its A is the operand b of tile.mma and its B the operand a, so
 * that what a lane holds of D are neighbours along n, as results are stored. Operands, all k of a
 * block, and sums of 16 bits are words.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/amdgcn.h"

/* ---- what a wave holds ------------------------------------------------------------------- */

const tcc_type *tcc_hold_by_waves(tcc_ir *ir, const tcc_type *t, const tcc_op *role, tcc_hold_as as)
{
    const tcc_target *target = tcc_target_of(ir);
    unsigned bits = tcc_scalar_bits(t->elem);
    tcc_fragment_id id =
        tcc_wmma_held(target, as, bits, (unsigned)tcc_attr_int(&role->attrs, "lanes", 32));
    bool halves = as == TCC_AS_SUM && bits == 16 && tcc_wmma_sums_in_halves(target, t->elem);
    return tcc_hold_in_blocks(ir, t, role, as, id, halves);
}

static bool cut(tcc_lowering *low, const tcc_type *tile, tcc_held *held)
{
    enum { WORD_BITS = 32 };
    const tcc_amdgcn_lowering *l = (tcc_amdgcn_lowering *)low;
    tcc_hold_as as;
    const tcc_fragment *f = &tcc_fragments[tcc_layout_fragment(tile)];
    bool packed = tcc_wmma_is_packed(l->target, tcc_layout_fragment(tile), &as);
    held->in_one = held->spread.n_fragment;
    if (packed && as != TCC_AS_SUM)
        held->in_one *=
            as == TCC_AS_A ? tile->dims[1].size / f->cols : tile->dims[0].size / f->rows;
    int64_t bits = held->in_one * tcc_scalar_bits(tile->elem);
    bool halves = tcc_scalar_bits(tile->elem) == 4; /* of bytes: LLVM keeps vectors of them in memory */
    held->n = (size_t)(held->spread.n_registers / held->in_one);
    held->each = packed || (halves && bits % WORD_BITS == 0) ? tcc_low_vec(low, TCC_i32, bits / WORD_BITS)
                 : halves && bits % 8 == 0                   ? tcc_low_vec(low, TCC_u8, bits / 8)
                                                             : tcc_low_vec(low, tile->elem, held->in_one);
    return !packed || tile == tcc_hold_by_waves(low->ir, tile, l->by.role, as);
}

static tcc_value *wave_of(tcc_lowering *low)
{
    return ((tcc_amdgcn_lowering *)low)->wave;
}

static tcc_value *lane_of(tcc_lowering *low)
{
    tcc_amdgcn_lowering *l = (tcc_amdgcn_lowering *)low;
    if (l->lane_of != low->b.block)
        l->lane = TCC_EMIT(&low->b, amdgcn_lane, low->i32, NULL);
    l->lane_of = low->b.block;
    return l->lane;
}

static tcc_value *from_xor(tcc_lowering *low, tcc_value *v, int64_t mask)
{
    tcc_value *r = TCC_EMIT(&low->b, amdgcn_lane_xor, v->type, v);
    tcc_attr_set_int(low->ir, &r->def->attrs, "mask", mask);
    return r;
}

static void lower_block(tcc_lowering *low, tcc_block *block)
{
    tcc_amdgcn_block((tcc_amdgcn_lowering *)low, block);
}

static void mend(tcc_lowering *low, tcc_parts *parts)
{
    tcc_amdgcn_mend((tcc_amdgcn_lowering *)low, parts);
}

static tcc_value *shared(tcc_lowering *low)
{
    return ((tcc_amdgcn_lowering *)low)->lds;
}

static tcc_value *load_shared(tcc_lowering *low, tcc_value *address, int64_t offset, const tcc_type *vec)
{
    tcc_value *r = TCC_EMIT(&low->b, amdgcn_ds_load, vec, address);
    tcc_attr_set_int(low->ir, &r->def->attrs, "offset", offset);
    return r;
}

static void store_shared(tcc_lowering *low, tcc_value *address, int64_t offset, tcc_value *v)
{
    tcc_op *op = TCC_EMIT_V(&low->b, amdgcn_ds_store, address, v);
    tcc_attr_set_int(low->ir, &op->attrs, "offset", offset);
}

static void meet(tcc_lowering *low, const tcc_op *op)
{
    (void)op;
    tcc_amdgcn_meet((tcc_amdgcn_lowering *)low);
}

const tcc_low_vendor tcc_low_amdgcn = {.name = "lower-to-amdgcn",
                                       .warps = "waves",
                                       .cta = TCC_OP_amdgcn_wgid,
                                       .launched = TCC_OP_COUNT,
                                       .block = lower_block,
                                       .cut = cut,
                                       .warp = wave_of,
                                       .lane = lane_of,
                                       .from_xor = from_xor,
                                       .mend = mend,
                                       .shared = shared,
                                       .load_shared = load_shared,
                                       .store_shared = store_shared,
                                       .meet = meet,
                                       .plan = tcc_amdgcn_plan,
                                       .load = tcc_amdgcn_load_registers,
                                       .store = tcc_amdgcn_store_registers,
                                       .locate = tcc_amdgcn_locate,
                                       .load_one = tcc_amdgcn_load_one};

/* ---- MMAs -------------------------------------------------------------------------------- */

static tcc_value *multiply(tcc_amdgcn_lowering *l, const tcc_op *op, tcc_value *m, tcc_value *n,
                           tcc_value *c, int64_t k, bool high)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    tcc_value *r = TCC_EMIT(&l->low.b, amdgcn_wmma, c->type, n, m, c);
    tcc_attrs *attrs = &r->def->attrs;
    tcc_attr_set_str(l->low.ir, attrs, "a", tcc_scalar_name(o->b->type->elem));
    tcc_attr_set_str(l->low.ir, attrs, "b", tcc_scalar_name(o->a->type->elem));
    tcc_attr_set_str(l->low.ir, attrs, "acc", tcc_scalar_name(o->c->type->elem));
    tcc_attr_set_int(l->low.ir, attrs, "k", k);
    if (high)
        tcc_attr_set_int(l->low.ir, attrs, "high", 1);
    return r;
}

void tcc_amdgcn_mma(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    tcc_attr instr = tcc_attr_list(&op->attrs, "instr");
    int64_t k = instr.list.n == 3 ? instr.list.items[2].i : 0;
    unsigned bits = tcc_scalar_bits(o->a->type->elem);
    const tcc_wmma *w =
        tcc_wmma_find(l->target, o->b->type->elem, o->a->type->elem, o->c->type->elem, k);
    tcc_held a, b, c;
    if (tcc_mma_accumulate(op)) {
        TCC_LOW_REFUSE(low, op, "tile.mma that may not add");
        return;
    }
    if (!tcc_mma_is_held(low->ir, op, l->by.role, tcc_hold_by_waves)) {
        TCC_LOW_REFUSE(low, op,
                       "tile.mma of tiles without the instruction's layout");
        return;
    }
    if (!tcc_low_held(low, op, o->a->type, &a) || !tcc_low_held(low, op, o->b->type, &b) ||
        !tcc_low_held(low, op, o->c->type, &c))
        return;
    int64_t words = w && k ? tcc_wmma_operand_words(l->target, k, bits, low->lanes) : 0;
    int64_t steps = k ? o->a->type->dims[1].size / k : 0;
    if (!words || instr.list.items[0].i != TCC_BLOCK || instr.list.items[1].i != TCC_BLOCK ||
        tcc_scalar_bits(o->b->type->elem) != bits || steps * words != tcc_type_count(a.each)) {
        TCC_LOW_REFUSE(low, op, "this instruction for %s by %s in %s",
                       tcc_scalar_name(o->a->type->elem), tcc_scalar_name(o->b->type->elem),
                       tcc_scalar_name(o->c->type->elem));
        return;
    }
    tcc_value *const *of_m = tcc_low_parts(low, o->a)->values, *const *of_n =
                                                                   tcc_low_parts(low, o->b)->values;
    tcc_value **acc = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, c.n);
    memcpy(acc, tcc_low_parts(low, o->c)->values, c.n * sizeof *acc);
    size_t together =
        b.n * a.n / c.n; /* blocks along n that share their registers, each in its half */
    for (int64_t s = 0; s < steps; s++)
        for (size_t j = 0; j < b.n; j++)
            for (size_t i = 0; i < a.n; i++) {
                tcc_value **r = &acc[i * (b.n / together) + j / together];
                tcc_value *n = tcc_low_slice(low, of_n[j], s * words, words);
                tcc_value *m = tcc_low_slice(low, of_m[i], s * words, words);
                *r = multiply(l, op, m, n, *r, k, together > 1 && j % together);
            }
    tcc_low_set(low, &op->results[0], c.n, acc);
}
