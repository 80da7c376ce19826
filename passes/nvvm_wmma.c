/* nvvm_wmma: fragments of wmma.load, wmma.mma and wmma.store: which lane has which element of them nobody knows but
 * these, and what was loaded in rows is another one than what was loaded in columns.
 *
 * A tile is a vec for each fragment. Where its elements have to be known, tile.convert has become async.exchange: the
 * fragments are stored to shared memory, and it is read as is wanted.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

/* As what a tile's fragments are held. */
static bool is_held_as(const tcc_nvvm_lowering *l, const tcc_type *tile, tcc_hold_as as)
{
    unsigned bits = tcc_scalar_bits(tile->elem);
    return tcc_layout_fragment(tile) == tcc_mma_sync_held(l->target, TCC_INSTR_MMA, as, bits);
}

static const char *layout_of(int contiguous)
{
    return contiguous ? "row" : "col";
}

tcc_value *tcc_nvvm_wmma_load(tcc_nvvm_lowering *l, const tcc_type *tile, tcc_value *address, int contiguous, int64_t stride)
{
    enum { WORD_BITS = 32 };
    tcc_lowering *low = &l->low;
    int64_t elems = tcc_fragment_elements(&tcc_fragments[tcc_layout_fragment(tile)], 0);
    const tcc_type *words = tcc_low_vec(low, TCC_i32, elems * tcc_scalar_bits(tile->elem) / WORD_BITS);
    tcc_value *v = TCC_EMIT(&low->b, nvvm_wmma_load, words, address);
    tcc_attrs *attrs = &v->def->attrs;
    tcc_attr_set_str(low->ir, attrs, "of", is_held_as(l, tile, TCC_AS_A) ? "a" : "b");
    tcc_attr_set_str(low->ir, attrs, "elem", tcc_scalar_name(tile->elem));
    tcc_attr_set_str(low->ir, attrs, "layout", layout_of(contiguous));
    tcc_attr_set_int(low->ir, attrs, "stride", stride);
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
    return r;
}

/* ---- by way of rows in shared memory ------------------------------------------------------- */

/* The address of a tile's fragment, from which on its rows are `pitch` bytes apart. */
static tcc_value *address_of(tcc_lowering *low, const tcc_type *tile, const tcc_held *held, size_t number, tcc_value *base,
                             int64_t pitch)
{
    int64_t bytes = tcc_scalar_bits(tile->elem) / 8, first = (int64_t)number * held->in_one;
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
    if (!is_held_as(l, tile->type, TCC_AS_A) && !is_held_as(l, tile->type, TCC_AS_B)) {
        TCC_LOW_REFUSE(low, op, "sums in fragments of wmma that begin with what is computed");
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
    const tcc_value *tile = op->operands[0];
    if (!is_held_as((tcc_nvvm_lowering *)low, tile->type, TCC_AS_SUM)) {
        TCC_LOW_REFUSE(low, op, "operands in fragments of wmma that are used otherwise");
        return;
    }
    for (size_t i = 0; i < held->n; i++) {
        tcc_value *at = address_of(low, tile->type, held, i, base, pitch);
        tcc_op *store = TCC_EMIT_V(&low->b, nvvm_wmma_store, at, tcc_low_parts(low, tile)->values[i]);
        tcc_attr_set_int(low->ir, &store->attrs, "stride", pitch * 8 / tcc_scalar_bits(tile->type->elem));
    }
}
