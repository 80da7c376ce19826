/* nvvm_words: rows that begin anywhere in a word, stored in aligned words.
 *
 * A part of a row begins `skip` elements before an aligned word. What is stored there consists of elements of two words
 * that hold the row from its first element on, unless skip is 0 (nvvm.shf). The skipped elements, and those after the
 * last whole word, are stored one by one.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

enum { WORD_BYTES = 4 };

int64_t tcc_nvvm_in_word(tcc_scalar elem)
{
    return WORD_BYTES * 8 / tcc_scalar_bits(elem);
}

tcc_value *tcc_nvvm_skip(tcc_lowering *low, const tcc_words *w, tcc_value *offset, int64_t disp)
{
    int64_t mask = tcc_nvvm_in_word(w->elem) - 1;
    tcc_value *base = TCC_EMIT(&low->b, nvvm_phase, low->i32, w->base);
    tcc_value *behind = tcc_low_div(low, base, tcc_scalar_bits(w->elem) / 8);
    tcc_value *in_word = tcc_low_bin_const(low, TCC_OP_arith_and, tcc_low_add(low, offset, disp & mask), mask);
    behind = tcc_low_bin(low, TCC_OP_arith_add, behind, tcc_low_cast(low, low->i32, in_word));
    tcc_value *skip = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_c32(low, 0), behind);
    return tcc_low_bin_const(low, TCC_OP_arith_and, skip, mask);
}

/* Stores `n` elements of a word, from this one on. */
static void store_elements(tcc_lowering *low, const tcc_words *w, tcc_value *word, int64_t first, int64_t n,
                           tcc_value *offset, int64_t disp, tcc_value *when)
{
    int64_t in_word = tcc_nvvm_in_word(w->elem);
    tcc_value *v = tcc_low_pack(low, TCC_i32, 1, &word, 1);
    v = TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, w->elem, in_word), v);
    tcc_op *op = TCC_EMIT_V(&low->b, nvvm_st_global, w->base, offset, when, tcc_low_slice(low, v, first, n));
    if (n == in_word)
        tcc_attr_set_int(low->ir, &op->attrs, "align", WORD_BYTES);
    if (disp)
        tcc_attr_set_int(low->ir, &op->attrs, "disp", disp);
}

void tcc_nvvm_store_word(tcc_lowering *low, const tcc_words *w, tcc_value *word, tcc_value *offset, int64_t disp,
                         tcc_value *col, tcc_value *room)
{
    int64_t in_word = tcc_nvvm_in_word(w->elem);
    tcc_value *last = tcc_low_add(low, col, in_word - 1);
    tcc_value *whole = tcc_low_bin(low, TCC_OP_arith_and, w->inside, tcc_low_cmp(low, "lt", last, room));
    store_elements(low, w, word, 0, in_word, offset, disp, whole);
    for (int64_t e = 0; e < in_word - 1; e++) {
        tcc_value *has = tcc_low_cmp(low, "lt", tcc_low_add(low, col, e), room);
        has = tcc_low_bin(low, TCC_OP_arith_and, w->inside, has);
        store_elements(low, w, word, e, 1, offset, disp + e,
                       tcc_low_bin(low, TCC_OP_arith_xor, has, whole)); /* has it where whole holds */
    }
}

void tcc_nvvm_store_skipped(tcc_lowering *low, const tcc_words *w, tcc_value *word, tcc_value *offset, int64_t disp,
                            tcc_value *skipped, tcc_value *least)
{
    for (int64_t e = 0; e < tcc_nvvm_in_word(w->elem) - 1; e++) {
        tcc_value *has = tcc_low_cmp(low, "gt", skipped, tcc_low_add(low, least, e));
        store_elements(low, w, word, e, 1, offset, disp + e, tcc_low_bin(low, TCC_OP_arith_and, w->inside, has));
    }
}
