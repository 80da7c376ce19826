/* amdgcn_ragged: the two tiles ahead of the loop.
 *
 * They may begin before the tensor, where K is not a multiple of what an iteration takes: what lies
 * at negative k is loaded as 0. Where rows are not aligned, the last chunk of K may be a part of
 * one. It lies in front of the others then, as k = -chunk … -1 (tcc_ragged), so that the loop has
 * whole chunks alone and never loads the last row of k:
 *   - Along k a lane loads the last chunk that is whole, from K - chunk on, which is within its
 * row, and masks what the loop takes as well. Both operands are masked: 0 times infinity is NaN.
 *   - Across k the neighbours of the last columns run into the next row, and what is behind the
 *     row is multiplied into columns that nobody stores. The last row has no next one: there a lane
 *     loads the last neighbours that are whole, and shifts them down.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/amdgcn.h"

enum { WORD_BITS = 32, WORD_BYTES = 4, ALL_BITS = -1 };

static tcc_value *bin(tcc_amdgcn_lowering *l, tcc_opcode op, tcc_value *a, tcc_value *b)
{
    return tcc_low_bin(&l->low, op, a, b);
}

static tcc_value *is_at(tcc_amdgcn_lowering *l, const char *pred, tcc_value *k, int64_t at)
{
    return tcc_low_cmp(&l->low, pred, k, tcc_low_c32(&l->low, at));
}

/* v where cond holds, else this number. */
static tcc_value *only_where(tcc_amdgcn_lowering *l, tcc_value *cond, tcc_value *v, int64_t other)
{
    return TCC_EMIT(&l->low.b, arith_select, l->low.i32, cond, v, tcc_low_c32(&l->low, other));
}

/* Clears the lowest bits of a word, as many as there are from its first on: 32 and more clear all.
 */
static tcc_value *mask_of(tcc_amdgcn_lowering *l, tcc_value *n_bits)
{
    tcc_lowering *low = &l->low;
    tcc_value *n = tcc_low_bin_const(low, TCC_OP_arith_max, n_bits, 0);
    n = tcc_low_bin_const(low, TCC_OP_arith_min, n, WORD_BITS);
    tcc_value *first = tcc_low_bin_const(low, TCC_OP_arith_min, n, WORD_BITS - 1);
    tcc_value *all = bin(l, TCC_OP_arith_shl, tcc_low_c32(low, ALL_BITS), first);
    return bin(l, TCC_OP_arith_shl, all, bin(l, TCC_OP_arith_sub, n, first));
}

void tcc_amdgcn_cut(tcc_amdgcn_lowering *l)
{
    tcc_lowering *low = &l->low;
    const tcc_operand *o = l->operands;
    tcc_ragged *r = &l->ragged;
    tcc_dim k = o->tensor->type->dims[o->k_dim];
    if (o->aligned || o->kind == TCC_COPY_ELEMENTS)
        return;
    int64_t chunk = TCC_UNIT_BYTES * 8 / o->bits;
    tcc_low_require_min(low, k, chunk);
    tcc_value *extent = tcc_low_extent(low, k);
    tcc_value *rest = tcc_low_rem(low, tcc_low_add(low, extent, -1), chunk);
    *r = (tcc_ragged){.extent = extent, .rest = tcc_low_add(low, rest, 1), .chunk = chunk};
    r->main = bin(l, TCC_OP_arith_sub, extent, r->rest);
    if (!k.name && k.size % chunk == 0)
        return;
    tcc_value *missing = bin(l, TCC_OP_arith_sub, tcc_low_c32(low, chunk), r->rest);
    tcc_value *n_bits = tcc_low_mul(low, missing, o->bits);
    for (int64_t w = 0; w < TCC_UNIT_BYTES / WORD_BYTES; w++)
        r->mask[w] = mask_of(l, tcc_low_add(low, n_bits, -w * WORD_BITS));
}

tcc_value *tcc_amdgcn_load_ahead(tcc_amdgcn_lowering *l, const tcc_operand *o, int64_t i,
                                 tcc_value *k)
{
    tcc_lowering *low = &l->low;
    tcc_value *at = o->voffset[i], *from = tcc_amdgcn_add(l, o->k_first[i], k);
    tcc_value *least = tcc_low_c32(low, 0);
    tcc_value *in_row = is_at(l, "ge", at, 0);
    at = tcc_amdgcn_add(l, at, tcc_amdgcn_bytes_to(l, o, k));
    if (!o->aligned) {
        tcc_value *whole = tcc_amdgcn_bytes_to(l, o, l->ragged.extent);
        at = tcc_amdgcn_add(l, at, only_where(l, is_at(l, "lt", from, 0), whole, 0));
        least = o->kind == TCC_COPY_ROWS ? tcc_low_c32(low, -l->ragged.chunk)
                                         : bin(l, TCC_OP_arith_sub, least, l->ragged.rest);
    }
    tcc_value *beyond = o->kind == TCC_COPY_ROWS ? NULL : o->beyond[i / o->of.depth];
    if (beyond)
        at = bin(l, TCC_OP_arith_sub, at, only_where(l, is_at(l, "eq", from, -1), beyond, 0));
    tcc_value *inside = tcc_amdgcn_and(l, in_row, tcc_low_cmp(low, "ge", from, least));
    at = tcc_amdgcn_offset(l, inside, at);
    tcc_value *zero = tcc_low_c32(low, 0);
    tcc_amdgcn_pin(l);
    return tcc_amdgcn_load(l, o, o->descriptor_ahead, at, zero);
}

/* Words shifted down by a number of bytes, less than there are; what comes in from above is no
 * matter. */
static void shift_down(tcc_amdgcn_lowering *l, tcc_value **words, int64_t n, tcc_value *bytes)
{
    tcc_lowering *low = &l->low;
    for (int64_t step = n / 2; step; step /= 2) {
        tcc_value *bit = tcc_low_bin_const(low, TCC_OP_arith_and, bytes, step * WORD_BYTES);
        tcc_value *moves = is_at(l, "ne", bit, 0);
        for (int64_t i = 0; i + step < n; i++)
            words[i] = TCC_EMIT(&low->b, arith_select, low->i32, moves, words[i + step], words[i]);
    }
    tcc_value *bits = tcc_low_bin_const(low, TCC_OP_arith_and, bytes, WORD_BYTES - 1);
    bits = tcc_low_mul(low, bits, 8);
    tcc_value *up = bin(l, TCC_OP_arith_sub, tcc_low_c32(low, WORD_BITS - 1), bits);
    for (int64_t i = 0; i < n; i++) {
        tcc_value *word = bin(l, TCC_OP_arith_shr, words[i], bits);
        if (i + 1 < n) { /* in two steps: one by 32 is not defined */
            tcc_value *next = tcc_low_bin_const(low, TCC_OP_arith_shl, words[i + 1], 1);
            word = bin(l, TCC_OP_arith_or, word, bin(l, TCC_OP_arith_shl, next, up));
        }
        words[i] = word;
    }
}

tcc_value *tcc_amdgcn_mend(tcc_amdgcn_lowering *l, const tcc_operand *o, int64_t i, tcc_value *k,
                           tcc_value *loaded)
{
    tcc_lowering *low = &l->low;
    bool rows = o->kind == TCC_COPY_ROWS;
    tcc_value *beyond = rows ? NULL : o->beyond[i / o->of.depth];
    if (rows ? !l->ragged.mask[0] : !beyond)
        return loaded;
    low->b.loc = o->loc;
    tcc_value *from = tcc_amdgcn_add(l, o->k_first[i], k);
    tcc_value *words[TCC_UNIT_BYTES / WORD_BYTES];
    int64_t n = o->of.words;
    for (int64_t w = 0; w < n; w++)
        words[w] = tcc_low_extract(low, loaded, w);
    if (rows) {
        tcc_value *is_last = is_at(l, "eq", from, -l->ragged.chunk);
        for (int64_t w = 0; w < n; w++)
            words[w] =
                tcc_amdgcn_and(l, words[w], only_where(l, is_last, l->ragged.mask[w], ALL_BITS));
    } else {
        shift_down(l, words, n, only_where(l, is_at(l, "eq", from, -1), beyond, 0));
    }
    return tcc_low_pack(low, TCC_i32, (size_t)n, words, n);
}
