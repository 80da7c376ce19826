/* spans: loads, or stores, of a warp between two ops that synchronize, taken for one that accesses the bytes of all.
 *
 * An epilogue stores and loads a tile element by element, and atoms would be as small as what one store and one load
 * have in common, many times as many as those of a whole tile. All of these accesses come after the same, and have the
 * same clock. So if every byte that one of them accesses may be accessed, each access is right. What is remembered is
 * more than what happened, lanes are not told apart, and an access that finds this in its way may be right. So what
 * fails is followed again, access by access (tcc_p_prove), and only that is reported.
 *
 * Stores must be of different bytes, since the second would have to come after the first; loads must find that all
 * bytes were written, since each must find some.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

bool tcc_p_is_spanned(const tcc_pinst *in)
{
    switch (in->op->code) {
    case TCC_OP_nvvm_ld_shared: return in->results[0] == TCC_P_NO_SLOT && !in->tensor;
    case TCC_OP_nvvm_st_shared:
    case TCC_OP_nvvm_stmatrix: return !in->tensor;
    default: return false;
    }
}

static bool writes(const tcc_pspan *span)
{
    return tcc_op_does(span->insts[0]->op->code, TCC_WRITES_SHARED);
}

/* Whether no byte is in two ranges. */
static bool are_apart(tcc_protocol *p, const tcc_prange *ranges, size_t n)
{
    enum { BITS = 64 };
    uint64_t both = 0;
    if (!p->span_bytes)
        p->span_bytes = TCC_NEW_ARRAY(p->scratch, uint64_t, (size_t)p->smem_bytes / BITS + 1);
    uint64_t *taken = p->span_bytes;
    for (size_t i = 0; i < n; i++)
        for (uint64_t b = (uint64_t)ranges[i].first, end = (uint64_t)ranges[i].end; b < end;) {
            uint64_t next = (b / BITS + 1) * BITS, to = next < end ? next : end;
            uint64_t bits = UINT64_MAX >> (BITS - (to - b)) << b % BITS;
            both |= taken[b / BITS] & bits;
            taken[b / BITS] |= bits;
            b = to;
        }
    for (size_t i = 0; i < n; i++)
        for (int64_t w = ranges[i].first / BITS; w <= (ranges[i].end - 1) / BITS; w++)
            taken[w] = 0;
    return !both;
}

tcc_prange *tcc_p_room_for_ranges(tcc_protocol *p, size_t n)
{
    if (p->span_room < n) {
        p->span_room = 2 * n;
        p->span_ranges = TCC_NEW_ARRAY(p->scratch, tcc_prange, p->span_room);
    }
    return p->span_ranges;
}

uint64_t tcc_p_span_footprint(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pspan *span, const void *key,
                              size_t bytes)
{
    uint64_t *print = tcc_p_footprint(p, key, bytes);
    tcc_plane lanes[TCC_MAX_LANES];
    size_t n = 0, n_lanes;
    if (*print)
        return *print;
    tcc_prange *ranges = tcc_p_room_for_ranges(p, span->n * p->n_lanes);
    for (size_t i = 0; i < span->n; i++) {
        if (!tcc_p_lanes_of(p, s, warp, span->insts[i], lanes, &n_lanes))
            return 0;
        for (size_t l = 0; l < n_lanes; l++)
            ranges[n++] = lanes[l].range;
    }
    bool may = (!writes(span) || are_apart(p, ranges, n)) && tcc_p_footprint_set(p, s, print, ranges, n);
    return may ? *print : 0;
}

/* One of whose access the address depends on no counter, if there is one (rotate.c). */
static const tcc_pinst *who_stays(const tcc_pspan *span)
{
    size_t i = 0;
    while (i < span->n - 1 && !span->insts[i]->stays)
        i++;
    return span->insts[i];
}

static bool do_each(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pspan *span)
{
    bool done = true;
    for (size_t i = 0; i < span->n && done; i++)
        done = tcc_p_do(p, s, warp, span->insts[i]) == TCC_P_NEXT;
    return done;
}

/* Checks the registers that are stored, and notes what must be fenced. */
static bool take_registers(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pspan *span)
{
    bool may = true;
    for (size_t i = 0; i < span->n && may; i++) {
        s->warps[warp].touched |= span->insts[i]->touches;
        may = tcc_p_may_read(p, s, warp, span->insts[i], 0) && tcc_p_may_read(p, s, warp, span->insts[i], 1);
    }
    return may;
}

bool tcc_p_span_access(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pspan *span, uint64_t footprint)
{
    tcc_pwarp *w = &s->warps[warp];
    bool write = writes(span);
    if (!footprint || (!write && !tcc_p_is_all_written(p, s, footprint)))
        return !p->status && do_each(p, s, warp, span);
    if (span->insts[0]->op->code == TCC_OP_nvvm_stmatrix && !tcc_p_converged(p, s, warp, span->insts[0]))
        return false;
    if (write && !take_registers(p, s, warp, span))
        return false;
    const tcc_paccess by = {.warp = warp,
                            .actor = warp,
                            .lanes = w->mask,
                            .clock = tcc_p_clocks(p, s, warp)[warp],
                            .write = write,
                            .mark = TCC_P_ORDINARY};
    w->accessed |= w->mask;
    w->unsynced |= w->mask;
    p->spanned = true;
    return tcc_p_access(p, s, who_stays(span), &by, footprint);
}
