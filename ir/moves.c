/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/moves.h"

const int64_t *tcc_moves_in_thread(tcc_arena *arena, const tcc_spread *from, const tcc_spread *to,
                                   const int64_t at[2])
{
    int64_t *source = TCC_NEW_ARRAY(arena, int64_t, (size_t)to->n_registers);
    for (int d = 0; d < 2; d++)
        if (from->extent[d] != 1 && !tcc_layout_same_threads(from, to, d))
            return NULL;
    for (int64_t i = 0; i < to->n_registers; i++) {
        int64_t place[2];
        for (int d = 0; d < 2; d++)
            place[d] = (tcc_digits_place(&to->registers, i, d) + at[d]) % from->extent[d];
        if ((source[i] = tcc_layout_register(from, place[0], place[1])) < 0)
            return NULL;
    }
    return source;
}

static bool same_warps(const tcc_spread *a, const tcc_spread *b)
{
    bool same = a->n_warps == b->n_warps;
    for (int d = 0; d < 2; d++)
        for (int64_t w = 0; same && w < a->n_warps; w++)
            same = tcc_digits_place(&a->warps, w, d) == tcc_digits_place(&b->warps, w, d);
    return same;
}

static bool find_sources(const tcc_spread *from, const tcc_spread *to, int64_t number, tcc_lane_sources *s)
{
    for (int64_t lane = 0; lane < to->n_lanes; lane++) {
        int64_t place[2], at = -1;
        for (int d = 0; d < 2; d++)
            place[d] =
                tcc_digits_place(&to->registers, number, d) + tcc_digits_place(&to->lanes, lane, d);
        for (int64_t i = 0; i < to->n_lanes && at < 0; i++) {
            int64_t other =
                lane ^ i; /* of those that hold the same, so that they follow from bits */
            at = tcc_layout_register(from, place[0] - tcc_digits_place(&from->lanes, other, 0),
                                     place[1] - tcc_digits_place(&from->lanes, other, 1));
            s->lane[lane] = other;
        }
        s->number[lane] = at;
        if (at < 0)
            return false;
    }
    return true;
}

bool tcc_moves_in_warp(const tcc_spread *from, const tcc_spread *to, int64_t number, tcc_lane_sources *s)
{
    if (!same_warps(from, to) || from->n_lanes != to->n_lanes || !find_sources(from, to, number, s))
        return false;
    for (int64_t lane = 0; lane < to->n_lanes; lane++) {
        int64_t sum = s->lane[0];
        for (int64_t bit = 1; bit < to->n_lanes; bit *= 2)
            sum ^= lane & bit ? s->lane[bit] ^ s->lane[0] : 0;
        if (sum != s->lane[lane])
            return false;
    }
    return true;
}

static bool adds_same(const tcc_digits *a, int64_t number_a, const tcc_digits *b, int64_t number_b)
{
    return tcc_digits_place(a, number_a, 0) == tcc_digits_place(b, number_b, 0) &&
           tcc_digits_place(a, number_a, 1) == tcc_digits_place(b, number_b, 1);
}

/* A lane of `to` differs from one of `from` in bits that are a register's there. */
static bool find_swaps(const tcc_spread *from, const tcc_spread *to, tcc_lane_swaps *swaps)
{
    *swaps = (tcc_lane_swaps){0};
    for (unsigned lane = 0; 1 << lane < from->n_lanes; lane++) {
        unsigned reg = 0;
        if (adds_same(&from->lanes, 1 << lane, &to->lanes, 1 << lane))
            continue;
        while (from->n_registers % (2 << reg) == 0 && !adds_same(&from->registers, 1 << reg, &to->lanes, 1 << lane))
            reg++;
        if (from->n_registers % (2 << reg) || swaps->n == TCC_FRAGMENT_BITS)
            return false;
        swaps->of[swaps->n].lane_bit = lane;
        swaps->of[swaps->n++].register_bit = reg;
    }
    return swaps->n > 0;
}

/* The register and the lane that had, before the swaps, what these have after them. */
static void before_swaps(const tcc_lane_swaps *swaps, int64_t *reg, int64_t *lane)
{
    for (unsigned i = swaps->n; i-- > 0;) {
        unsigned l = swaps->of[i].lane_bit, r = swaps->of[i].register_bit;
        int64_t differ = (*lane >> l ^ *reg >> r) & 1;
        *lane ^= differ << l;
        *reg ^= differ << r;
    }
}

/* Whether all lanes have, after the swaps, what is number i of `to` in register r. */
static bool holds_after(const tcc_spread *from, const tcc_spread *to, const tcc_lane_swaps *swaps, int64_t r, int64_t i)
{
    bool all = true;
    for (int64_t l = 0; l < to->n_lanes && all; l++) {
        int64_t reg = r, lane = l;
        before_swaps(swaps, &reg, &lane);
        for (int d = 0; d < 2; d++)
            all &= tcc_digits_place(&from->registers, reg, d) + tcc_digits_place(&from->lanes, lane, d) ==
                   tcc_digits_place(&to->registers, i, d) + tcc_digits_place(&to->lanes, l, d);
    }
    return all;
}

const int64_t *tcc_swaps_in_warp(tcc_arena *arena, const tcc_spread *from, const tcc_spread *to, unsigned bits,
                                 tcc_lane_swaps *swaps)
{
    enum { WORD_BITS = 32 };
    if (!bits || WORD_BITS % bits || !same_warps(from, to) || from->n_lanes != to->n_lanes ||
        from->n_registers != to->n_registers || !find_swaps(from, to, swaps))
        return NULL;
    int64_t *source = TCC_NEW_ARRAY(arena, int64_t, (size_t)to->n_registers), in_word = WORD_BITS / bits;
    bool can = to->n_registers % in_word == 0;
    for (unsigned i = 0; i < swaps->n; i++)
        can &= 1 << swaps->of[i].register_bit >= in_word;
    for (int64_t i = 0; i < to->n_registers && can; i++) {
        int64_t r = i % in_word ? source[i - 1] + 1 : 0;
        can = holds_after(from, to, swaps, r, i);
        while (!can && i % in_word == 0 && (r += in_word) < from->n_registers)
            can = holds_after(from, to, swaps, r, i);
        source[i] = r;
    }
    return can ? source : NULL;
}

bool tcc_can_convert_in_warp(tcc_arena *arena, const tcc_type *from, const tcc_type *to, bool lanes)
{
    static const int64_t at[2];
    tcc_spread a, b;
    tcc_lane_sources s;
    if (!tcc_layout_spread(from, &a) || !tcc_layout_spread(to, &b))
        return false;
    if (tcc_layout_is_opaque(from) || tcc_layout_is_opaque(to))
        return from == to;
    tcc_lane_swaps swaps;
    if (tcc_moves_in_thread(arena, &a, &b, at) ||
        (lanes && tcc_swaps_in_warp(arena, &a, &b, tcc_scalar_bits(from->elem), &swaps)))
        return true;
    bool can = lanes && tcc_scalar_bits(from->elem) == 32;
    for (int64_t i = 0; can && i < b.n_registers; i++)
        can = tcc_moves_in_warp(&a, &b, i, &s);
    return can;
}

bool tcc_can_reduce_in_warp(const tcc_type *tile, int dim)
{
    tcc_spread s;
    bool can = tcc_layout_spread(tile, &s);
    for (unsigned i = 0; can && i < s.warps.n; i++)
        can = s.warps.of[i].add[dim] == 0;
    return can;
}
