/* nvvm_wmma: fragments of wmma.load, wmma.mma and wmma.store: only these know which lane has which element, and a
 * fragment loaded by rows differs from one loaded by columns.
 *
 * A tile is a vec for each fragment. If the positions of its elements must be known, tile.convert has become
 * async.exchange: the fragments are stored to shared memory, and read from there in the required layout.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

/* The instruction for a tile's fragments, if they are fragments of wmma; else NULL. */
static const tcc_mma_sync *held_as(const tcc_nvvm_lowering *l, const tcc_type *tile, tcc_hold_as as)
{
    return tcc_mma_sync_with(l->target, as, tcc_scalar_bits(tile->elem), tcc_layout_fragment(tile));
}

/* Where it is not the first of its target's. */
static void set_shape(tcc_nvvm_lowering *l, tcc_attrs *attrs, const tcc_mma_sync *mma)
{
    tcc_mma_block first;
    if (tcc_mma_sync_block(l->target, TCC_INSTR_MMA, 0, &first) && (mma->m != first.m || mma->n != first.n))
        tcc_attr_set_str(l->low.ir, attrs, "shape",
                         tcc_arena_printf(l->low.ctx->scratch, "m%lldn%lldk%lld", (long long)mma->m, (long long)mma->n,
                                          (long long)mma->k));
}

static const char *layout_of(int contiguous)
{
    return contiguous ? "row" : "col";
}

tcc_value *tcc_nvvm_wmma_load(tcc_nvvm_lowering *l, const tcc_type *tile, tcc_value *address, int contiguous,
                              int64_t stride)
{
    enum { WORD_BITS = 32 };
    tcc_lowering *low = &l->low;
    int64_t elems = tcc_fragment_elements(&tcc_fragments[tcc_layout_fragment(tile)], 0);
    const tcc_type *words = tcc_low_vec(low, TCC_i32, elems * tcc_scalar_bits(tile->elem) / WORD_BITS);
    tcc_value *v = TCC_EMIT(&low->b, nvvm_wmma_load, words, address);
    tcc_attrs *attrs = &v->def->attrs;
    const tcc_mma_sync *of_a = held_as(l, tile, TCC_AS_A);
    tcc_attr_set_str(low->ir, attrs, "of", of_a ? "a" : "b");
    tcc_attr_set_str(low->ir, attrs, "elem", tcc_scalar_name(tile->elem));
    tcc_attr_set_str(low->ir, attrs, "layout", layout_of(contiguous));
    tcc_attr_set_int(low->ir, attrs, "stride", stride);
    set_shape(l, attrs, of_a ? of_a : held_as(l, tile, TCC_AS_B));
    return v;
}

void tcc_nvvm_wmma_set(tcc_nvvm_lowering *l, const tcc_value *tile, size_t n, tcc_value *const *parts, int contiguous)
{
    const tcc_units u = {.elem = tile->type->elem, .contiguous = contiguous};
    tcc_low_set(&l->low, tile, n, parts)->units = tcc_nvvm_units(l, &u);
}

bool tcc_nvvm_wmma_is_loaded(tcc_nvvm_lowering *l, const tcc_op *mma)
{
    return tcc_low_parts(&l->low, mma->operands[0])->units && tcc_low_parts(&l->low, mma->operands[1])->units;
}

tcc_value *tcc_nvvm_wmma_multiply(tcc_nvvm_lowering *l, const tcc_op *mma, tcc_value *a, tcc_value *b, tcc_value *c)
{
    static const char *const names[] = {"a", "b", "acc"}, *const layouts[] = {"layout_a", "layout_b"};
    tcc_value *r = TCC_EMIT(&l->low.b, nvvm_wmma_mma, c->type, a, b, c);
    tcc_attrs *attrs = &r->def->attrs;
    for (int i = 0; i < 3; i++)
        tcc_attr_set_str(l->low.ir, attrs, names[i], tcc_scalar_name(mma->operands[i]->type->elem));
    for (int i = 0; i < 2; i++)
        tcc_attr_set_str(l->low.ir, attrs, layouts[i],
                         layout_of(tcc_low_parts(&l->low, mma->operands[i])->units->contiguous));
    set_shape(l, attrs, held_as(l, mma->operands[2]->type, TCC_AS_SUM));
    return r;
}

/* ---- through rows in shared memory ------------------------------------------------------- */

/* The address of a tile's fragment, from which on its rows are `pitch` bytes apart. Its column is a multiple of a
 * fragment's width. */
static tcc_value *address_of(tcc_lowering *low, const tcc_type *tile, const tcc_held *held, size_t number,
                             tcc_value *base, int64_t pitch)
{
    int64_t bytes = tcc_layout_apart(tile) * tcc_scalar_bits(tile->elem) / 8, first = (int64_t)number * held->in_one;
    tcc_value *row = tcc_low_digits(low, &held->spread.warps, low->vendor->warp(low), 0);
    tcc_value *col = tcc_low_digits(low, &held->spread.warps, low->vendor->warp(low), 1);
    row = tcc_low_mul(low, row, pitch);
    tcc_value *at = tcc_low_bin(low, TCC_OP_arith_add, row, tcc_low_mul(low, col, bytes));
    return tcc_low_add(low, tcc_low_bin(low, TCC_OP_arith_add, base, at),
                       tcc_digits_place(&held->spread.registers, first, 0) * pitch +
                           tcc_digits_place(&held->spread.registers, first, 1) * bytes);
}

void tcc_nvvm_load_opaque(tcc_lowering *low, const tcc_op *op, const tcc_held *held, tcc_value *base, int64_t pitch)
{
    tcc_nvvm_lowering *l = (tcc_nvvm_lowering *)low;
    const tcc_value *tile = &op->results[0];
    if (!held_as(l, tile->type, TCC_AS_A) && !held_as(l, tile->type, TCC_AS_B)) {
        TCC_LOW_REFUSE(low, op, "accumulators in wmma fragments that are initialised with computed values");
        return;
    }
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, held->n);
    for (size_t i = 0; i < held->n; i++)
        parts[i] = tcc_nvvm_wmma_load(l, tile->type, address_of(low, tile->type, held, i, base, pitch), 1,
                                      pitch * 8 / tcc_scalar_bits(tile->type->elem));
    tcc_nvvm_wmma_set(l, tile, held->n, parts, 1);
}

void tcc_nvvm_store_opaque(tcc_lowering *low, const tcc_op *op, const tcc_held *held, tcc_value *base, int64_t pitch)
{
    tcc_nvvm_lowering *l = (tcc_nvvm_lowering *)low;
    const tcc_value *tile = op->operands[0];
    const tcc_mma_sync *mma = held_as(l, tile->type, TCC_AS_SUM);
    if (!mma) {
        TCC_LOW_REFUSE(low, op, "operands in wmma fragments with other uses");
        return;
    }
    for (size_t i = 0; i < held->n; i++) {
        tcc_value *at = address_of(low, tile->type, held, i, base, pitch);
        tcc_op *store = TCC_EMIT_V(&low->b, nvvm_wmma_store, at, tcc_low_parts(low, tile)->values[i]);
        tcc_attr_set_int(low->ir, &store->attrs, "stride", pitch * 8 / tcc_scalar_bits(tile->type->elem));
        set_shape(l, &store->attrs, mma);
    }
}
