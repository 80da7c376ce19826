/* amdgcn_ragged: tiles that begin before the tensor, or end beyond it.
 *
 * Elements at negative k are loaded as 0, as are those from K on. If rows are not aligned, the last chunk of K may
 * be partial, and no load may end outside the tensor:
 *   - Along k a lane loads the last chunk that is whole, from K - chunk on, which is within its row, and shifts
 *     down what belongs to its own chunk; zeros follow.
 *   - Across k the neighbours of the last columns run into the next row, and elements beyond the
 *     row are multiplied into columns that are not stored. The last row has no next one: there a lane
 *     loads the last neighbours that are whole, and shifts them down.
 * In a tile that begins early the last chunk precedes the others, as k = -chunk … -1, so that these are whole and
 * never load the last row of k. Along k its elements stay where they are, at its end, and those that come again later
 * are masked. Both operands are masked: 0 times infinity is NaN.
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

/* Clears the lowest bits of a word, as many as are counted from its first on: 32 and more clear
 * all.
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

/* The bytes by which what was loaded for a piece is shifted down. */
static tcc_value *bytes_to_shift(tcc_amdgcn_lowering *l, const tcc_source *s, const tcc_piece *piece)
{
    tcc_value *from = tcc_amdgcn_add(l, piece->k, s->k);
    return only_where(l, tcc_low_cmp(&l->low, "eq", from, s->last), piece->beyond, 0);
}

tcc_value *tcc_amdgcn_load_checked(tcc_amdgcn_lowering *l, const tcc_source *s,
                                   tcc_value *descriptor, const tcc_piece *piece)
{
    tcc_lowering *low = &l->low;
    tcc_value *from = tcc_amdgcn_add(l, piece->k, s->k), *inside = is_at(l, "ge", piece->offset, 0);
    tcc_value *end = tcc_low_extent(low, s->tensor->type->dims[s->along_k]);
    if (!tcc_is_not_negative(s->op->operands[1 + s->along_k]))
        inside = tcc_amdgcn_and(l, inside, is_at(l, "ge", from, 0));
    inside = tcc_amdgcn_and(l, inside, tcc_low_cmp(low, "lt", from, end));
    tcc_value *at = tcc_amdgcn_add(l, piece->offset, tcc_amdgcn_bytes_to(l, s, s->k));
    if (piece->beyond)
        at = bin(l, TCC_OP_arith_sub, at, bytes_to_shift(l, s, piece));
    tcc_value *zero = tcc_low_c32(low, 0);
    return tcc_amdgcn_load(l, s, descriptor, tcc_amdgcn_offset(l, inside, at), zero);
}

tcc_value *tcc_amdgcn_load_early(tcc_amdgcn_lowering *l, const tcc_source *s,
                                 tcc_value *descriptor, const tcc_piece *piece)
{
    tcc_lowering *low = &l->low;
    tcc_value *at = piece->offset, *from = tcc_amdgcn_add(l, piece->k, s->k);
    tcc_value *least = tcc_low_c32(low, 0);
    tcc_value *in_row = is_at(l, "ge", at, 0);
    at = tcc_amdgcn_add(l, at, tcc_amdgcn_bytes_to(l, s, s->k));
    if (!s->aligned) {
        tcc_value *extent = tcc_low_extent(low, s->tensor->type->dims[s->along_k]);
        tcc_value *whole = tcc_amdgcn_bytes_to(l, s, extent);
        at = tcc_amdgcn_add(l, at, only_where(l, is_at(l, "lt", from, 0), whole, 0));
        least = s->units.transposed
                    ? bin(l, TCC_OP_arith_sub, least, tcc_amdgcn_rest(l, s))
                    : tcc_low_c32(low, -tcc_amdgcn_chunk(s));
    }
    if (piece->beyond)
        at = bin(l, TCC_OP_arith_sub, at, bytes_to_shift(l, s, piece));
    tcc_value *inside = tcc_amdgcn_and(l, in_row, tcc_low_cmp(low, "ge", from, least));
    at = tcc_amdgcn_offset(l, inside, at);
    tcc_value *zero = tcc_low_c32(low, 0);
    tcc_amdgcn_pin(l);
    return tcc_amdgcn_load(l, s, descriptor, at, zero);
}

/* Words shifted down by a number of bytes, fewer than they have. The bits shifted in are zeros, unless they do not
 * matter. */
static void shift_down(tcc_amdgcn_lowering *l, tcc_value **words, int64_t n, tcc_value *bytes, bool zeros)
{
    tcc_lowering *low = &l->low;
    for (int64_t step = n / 2; step; step /= 2) {
        tcc_value *bit = tcc_low_bin_const(low, TCC_OP_arith_and, bytes, step * WORD_BYTES);
        tcc_value *moves = is_at(l, "ne", bit, 0);
        for (int64_t i = 0; i + step < n || (zeros && i < n); i++)
            words[i] = TCC_EMIT(&low->b, arith_select, low->i32, moves,
                                i + step < n ? words[i + step] : tcc_low_c32(low, 0), words[i]);
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

/* Remaining work on pieces of a source: shift down the last ones, or mask those at k = -chunk. */
struct tcc_mending {
    tcc_source of;
    tcc_value *mask[TCC_UNIT_BYTES / WORD_BYTES]; /* of a row's words; NULL: they are shifted */
    const tcc_piece *pieces;
};

const struct tcc_mending *tcc_amdgcn_mending(tcc_amdgcn_lowering *l, const tcc_source *s, size_t n,
                                             const tcc_piece *pieces)
{
    tcc_lowering *low = &l->low;
    const tcc_dim *k = &s->tensor->type->dims[s->along_k];
    bool masked = s->early && !s->units.transposed && !s->aligned && (k->name || k->size % tcc_amdgcn_chunk(s));
    bool needed = masked;
    for (size_t i = 0; i < n; i++)
        needed |= pieces[i].beyond != NULL;
    if (!needed)
        return NULL;
    struct tcc_mending *m = TCC_NEW(low->ctx->scratch, struct tcc_mending);
    *m = (struct tcc_mending){.of = *s, .pieces = pieces};
    tcc_value *n_bits = masked ? tcc_low_mul(low, tcc_amdgcn_missing(l, s), s->units.bits) : NULL;
    for (int64_t w = 0; masked && w < TCC_UNIT_BYTES / WORD_BYTES; w++)
        m->mask[w] = mask_of(l, tcc_low_add(low, n_bits, -w * WORD_BITS));
    return m;
}

static tcc_value *mend(tcc_amdgcn_lowering *l, const struct tcc_mending *m, const tcc_piece *piece,
                       tcc_value *loaded)
{
    tcc_lowering *low = &l->low;
    const tcc_source *s = &m->of;
    tcc_value *words[TCC_UNIT_BYTES / WORD_BYTES];
    int64_t n = s->units.of.words;
    if (!m->mask[0] && !piece->beyond)
        return loaded;
    for (int64_t w = 0; w < n; w++)
        words[w] = tcc_low_extract(low, loaded, w);
    if (m->mask[0]) {
        tcc_value *is_last = is_at(l, "eq", tcc_amdgcn_add(l, piece->k, s->k), -tcc_amdgcn_chunk(s));
        for (int64_t w = 0; w < n; w++)
            words[w] = tcc_amdgcn_and(l, words[w], only_where(l, is_last, m->mask[w], ALL_BITS));
    } else {
        shift_down(l, words, n, bytes_to_shift(l, s, piece), !s->units.transposed);
    }
    return tcc_low_pack(low, TCC_i32, (size_t)n, words, n);
}

void tcc_amdgcn_mend(tcc_amdgcn_lowering *l, tcc_parts *parts)
{
    const struct tcc_mending *m = parts->mending;
    tcc_loc loc = l->low.b.loc;
    l->low.b.loc = m->of.op->loc;
    for (size_t i = 0; i < parts->n; i++)
        parts->values[i] = mend(l, m, &m->pieces[i], parts->values[i]);
    l->low.b.loc = loc;
    parts->mending = NULL;
}
