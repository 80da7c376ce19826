/* nvvm_vectors: vectors of rows that begin anywhere.
 *
 * A vector that begins `behind` elements after an aligned one consists of elements of that one and of the next: both are
 * loaded, where the row has elements in them, and the words shifted down by as many as the bits of `behind` say. What
 * follows the end of a row is undefined. To store vectors, each lane takes the next lane's, too, and stores the aligned
 * one that begins `skip` elements after its own. What is in no such vector is stored one by one by the last lane, which
 * has the first lane's behind its own: the elements before the first vector, and those behind the last; and by the lane
 * in whose vector the row ends.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

enum { WORD_BYTES = 4, MOST_WORDS = 4 };

static int64_t bytes_of(const tcc_vector *v)
{
    return tcc_scalar_bits(v->elem) / 8;
}

static int64_t words_of(const tcc_vector *v)
{
    return v->n * bytes_of(v) / WORD_BYTES;
}

/* By how many elements the vector is behind an aligned one. */
static tcc_value *find_behind(tcc_lowering *low, const tcc_vector *v)
{
    int64_t mask = v->n - 1;
    tcc_value *base = tcc_low_div(low, TCC_EMIT(&low->b, nvvm_phase, low->i32, v->base), bytes_of(v));
    tcc_value *at = tcc_low_bin_const(low, TCC_OP_arith_and, tcc_low_add(low, v->offset, v->disp & mask), mask);
    at = tcc_low_bin(low, TCC_OP_arith_add, base, tcc_low_cast(low, low->i32, at));
    return tcc_low_bin_const(low, TCC_OP_arith_and, at, mask);
}

/* The vector from element `by` of two on, of which words are given; its words take their place. */
static void shift(tcc_lowering *low, const tcc_vector *v, tcc_value **words, tcc_value *by)
{
    int64_t n = words_of(v), bytes = bytes_of(v);
    for (int64_t step = n / 2; step * WORD_BYTES >= bytes; step /= 2) {
        tcc_value *bit = tcc_low_bin_const(low, TCC_OP_arith_and, by, step * WORD_BYTES / bytes);
        tcc_value *further = tcc_low_cmp(low, "ne", bit, tcc_low_c32(low, 0));
        for (int64_t i = 0; i < n + step; i++)
            words[i] = TCC_EMIT(&low->b, arith_select, low->i32, further, words[i + step], words[i]);
        if (step == 1)
            break;
    }
    tcc_value *bits = tcc_low_mul(low, by, bytes * 8);
    for (int64_t i = 0; i < n && bytes < WORD_BYTES; i++)
        words[i] = TCC_EMIT(&low->b, nvvm_shf, low->i32, words[i], words[i + 1], bits);
}

static void split(tcc_lowering *low, const tcc_vector *v, tcc_value *vec, tcc_value **words)
{
    int64_t n = words_of(v);
    vec = TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, TCC_i32, n), vec);
    for (int64_t i = 0; i < n; i++)
        words[i] = tcc_low_extract(low, vec, i);
}

static tcc_value *join(tcc_lowering *low, const tcc_vector *v, tcc_value **words)
{
    int64_t n = words_of(v);
    return TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, v->elem, v->n),
                    tcc_low_pack(low, TCC_i32, (size_t)n, words, n));
}

static void set_place(tcc_lowering *low, tcc_op *op, int64_t align, int64_t disp)
{
    if (align)
        tcc_attr_set_int(low->ir, &op->attrs, "align", align);
    if (disp)
        tcc_attr_set_int(low->ir, &op->attrs, "disp", disp);
}

tcc_value *tcc_nvvm_load_vector(tcc_lowering *low, const tcc_vector *v)
{
    tcc_value *words[2 * MOST_WORDS], *behind = find_behind(low, v), *zero = tcc_low_c32(low, 0);
    tcc_value *from = tcc_low_bin(low, TCC_OP_arith_sub, v->offset, tcc_low_cast(low, low->i64, behind));
    tcc_value *of_first = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_c32(low, v->n), behind);
    tcc_value *inside[2];
    inside[0] = tcc_low_cmp(low, "gt", v->room, zero);
    inside[1] = tcc_low_cmp(low, "gt", v->room, of_first);
    inside[1] = tcc_low_bin(low, TCC_OP_arith_and, inside[1], tcc_low_cmp(low, "ne", behind, zero));
    for (int i = 0; i < 2; i++) {
        tcc_value *wanted = tcc_low_bin(low, TCC_OP_arith_and, v->inside, inside[i]);
        tcc_value *vec =
            TCC_EMIT(&low->b, nvvm_ld_global, tcc_low_vec(low, v->elem, v->n), v->base, from, wanted);
        set_place(low, vec->def, v->n * bytes_of(v), v->disp + i * v->n);
        tcc_attr_set_int(low->ir, &vec->def->attrs, "over", 1);
        split(low, v, vec, words + i * words_of(v));
    }
    shift(low, v, words, behind);
    return join(low, v, words);
}

/* Stores element e of a vector where `when` holds. */
static void store_one(tcc_lowering *low, const tcc_vector *v, tcc_value *vec, int64_t e, tcc_value *offset, int64_t disp,
                      tcc_value *when)
{
    when = tcc_low_bin(low, TCC_OP_arith_and, v->inside, when);
    tcc_op *op = TCC_EMIT_V(&low->b, nvvm_st_global, v->base, offset, when, tcc_low_slice(low, vec, e, 1));
    set_place(low, op, 0, disp);
}

void tcc_nvvm_store_vector(tcc_lowering *low, const tcc_vector *v, tcc_value *own, int64_t lanes)
{
    tcc_value *words[2 * MOST_WORDS], *zero = tcc_low_c32(low, 0);
    int64_t n = words_of(v);
    tcc_value *lane = low->vendor->lane(low), *number = tcc_low_rem(low, lane, lanes);
    tcc_value *is_last = tcc_low_cmp(low, "eq", number, tcc_low_c32(low, lanes - 1));
    tcc_value *first = tcc_low_bin(low, TCC_OP_arith_sub, lane, number);
    tcc_value *next = TCC_EMIT(&low->b, arith_select, low->i32, is_last, first, tcc_low_add(low, lane, 1));
    tcc_value *skip = tcc_low_bin(low, TCC_OP_arith_sub, zero, find_behind(low, v));
    skip = tcc_low_bin_const(low, TCC_OP_arith_and, skip, v->n - 1);
    split(low, v, own, words);
    for (int64_t i = 0; i < n; i++)
        words[n + i] = low->vendor->from_lane(low, words[i], next);
    shift(low, v, words, skip);
    tcc_value *vec = join(low, v, words);
    tcc_value *alone = tcc_low_bin_const(low, TCC_OP_arith_min, v->room, v->n);
    tcc_value *left = TCC_EMIT(&low->b, arith_select, low->i32, is_last, alone, v->room);
    left = tcc_low_bin(low, TCC_OP_arith_sub, left, skip);
    tcc_value *offset = tcc_low_bin(low, TCC_OP_arith_add, v->offset, tcc_low_cast(low, low->i64, skip));
    tcc_value *is_whole = tcc_low_cmp(low, "gt", left, tcc_low_c32(low, v->n - 1));
    tcc_value *when = tcc_low_bin(low, TCC_OP_arith_and, v->inside, is_whole);
    set_place(low, TCC_EMIT_V(&low->b, nvvm_st_global, v->base, offset, when, vec), v->n * bytes_of(v), v->disp);
    tcc_op *rest = tcc_low_if(low, tcc_low_cmp(low, "lt", left, tcc_low_c32(low, v->n)));
    for (int64_t e = 0; e < v->n - 1; e++)
        store_one(low, v, vec, e, offset, v->disp + e, tcc_low_cmp(low, "gt", left, tcc_low_c32(low, e)));
    /* the first lane's elements before its vector end where the row does */
    tcc_value *of_first = tcc_low_add(low, v->room, (lanes - 1) * v->n);
    of_first = tcc_low_bin(low, TCC_OP_arith_min, of_first, skip);
    tcc_value *end = tcc_low_bin(low, TCC_OP_arith_sub, of_first, skip);
    for (int64_t e = 1; e < v->n; e++) { /* element e of the vector is the first lane's e - (n - skip) */
        tcc_value *begins = tcc_low_cmp(low, "gt", skip, tcc_low_c32(low, v->n - 1 - e));
        tcc_value *ends = tcc_low_cmp(low, "gt", end, tcc_low_c32(low, e - v->n));
        tcc_value *has = tcc_low_bin(low, TCC_OP_arith_and, begins, ends);
        has = tcc_low_bin(low, TCC_OP_arith_and, has, is_last);
        store_one(low, v, vec, e, offset, v->disp + e - lanes * v->n, has);
    }
    tcc_low_end(low, rest);
}
