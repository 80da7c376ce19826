/* renames: what a rotation of stages makes of mbarriers and bytes, op by op.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/rotate.h"

enum { UNSET = TCC_P_UNSET };

/* ---- mbarriers and bytes --------------------------------------------------------------- */

/* By how much further the CTAs are to which an op copies; false when that is not known. */
static bool find_reached(const walk *w, const tcc_pinst *in, int64_t further[TCC_P_CTAS], unsigned *n)
{
    further[0] = 0;
    *n = 1;
    if (in->op->code != TCC_OP_nvvm_tma_load_multicast || w->p->symmetry)
        return true;
    const tcc_pvalue *ctas = tcc_p_slot(w->p, w->s, w->warp, in->operands[3]);
    *n = 0;
    for (unsigned c = 0; c < w->p->ctas; c++)
        if (ctas->v >> c & 1)
            further[(*n)++] = (int64_t)c * TCC_P_WINDOW - tcc_p_window(w->p, w->warp);
    return tcc_p_is_exact(ctas);
}

/* How far the CTA of an address is from the one in whose place it is looked at. */
static int64_t window_of(const walk *w, int64_t address)
{
    return w->p->symmetry ? tcc_p_cta_at(address - TCC_SMEM_BASE) * TCC_P_WINDOW : 0;
}

static void move_barrier(walk *w, int64_t from, int64_t to, int flips)
{
    int64_t window = window_of(w, from);
    from -= window;
    to -= window;
    uint64_t *by_from = tcc_ptable_at(w->r->moves_from, &from, sizeof from);
    uint64_t *by_to = tcc_ptable_at(w->r->moves_to, &to, sizeof to);
    if (*by_from != *by_to) {
        fail(w);
    } else if (*by_from) {
        move *m = &w->r->moves.data[*by_from - 1];
        if (flips >= 0 && m->flips >= 0 && m->flips != flips)
            fail(w);
        m->flips = flips >= 0 ? flips : m->flips;
    } else {
        TCC_PUSH(w->p->scratch, &w->r->moves, (move){from, to, flips});
        *by_from = *by_to = w->r->moves.len;
    }
}

/* Whether a wait's parity is the other one. */
static int flips_at(walk *w, const tcc_pinst *wait, int64_t x)
{
    tcc_pvalue a = value_at(w, wait->operands[1], x), b = value_at(w, wait->operands[1], x + w->step);
    if (!tcc_p_is_exact(&a) || !tcc_p_is_exact(&b))
        fail(w);
    return a.v != b.v;
}

/* Whether it is known here which mbarrier an op names. A wait for one that is not must be for one parity. */
static bool knows_barrier(walk *w, const tcc_pinst *in, uint32_t slot)
{
    tcc_pvalue at = value_at(w, slot, 0);
    bool known = counter_of(w, slot) || tcc_p_is_exact(&at);
    if (!known && in->op->code == TCC_OP_nvvm_mbarrier_wait && varies(w, in->operands[1]))
        fail(w);
    return known;
}

static void move_barriers(walk *w, tcc_pinst *in, unsigned operand)
{
    bool waits = in->op->code == TCC_OP_nvvm_mbarrier_wait;
    uint32_t slot = in->operands[operand];
    tcc_pvalue from = value_at(w, slot, 0), to;
    bool known = knows_barrier(w, in, slot);
    in->stays_at_barrier |= !known;
    int64_t further[TCC_P_CTAS];
    unsigned n;
    if (!find_reached(w, in, further, &n))
        fail(w);
    for (int64_t x = 0; known && x < w->r->period; x++, from = to) {
        to = value_at(w, slot, x + 1);
        if (!tcc_p_is_exact(&from) || !tcc_p_is_exact(&to)) {
            fail(w);
            return;
        }
        for (unsigned i = 0; i < n; i++)
            move_barrier(w, from.v + further[i], to.v + further[i], waits ? flips_at(w, in, x) : -1);
    }
}

static bool move_bytes(walk *w, int64_t from, int64_t to, int64_t bytes)
{
    int64_t unit = w->p->granule, end = tcc_p_followed_bytes(w->p) - bytes, window = window_of(w, from);
    from -= TCC_SMEM_BASE + window;
    to -= TCC_SMEM_BASE + window;
    for (size_t i = 0; i < w->boxes.len; i++)
        if (w->boxes.data[i].from == from && w->boxes.data[i].to == to && w->boxes.data[i].bytes == bytes)
            return true;
    TCC_PUSH(w->p->scratch, &w->boxes, (box){from, to, bytes});
    if (from % unit || to % unit || bytes % unit || from < 0 || to < 0 || from > end || to > end)
        return false;
    for (int64_t i = 0; i < bytes; i += unit) {
        uint32_t *at = &w->r->granules[(from + i) / unit];
        if (*at != UNSET && *at != (uint32_t)((to + i) / unit))
            return false;
        w->moving += *at == UNSET && from != to;
        *at = (uint32_t)((to + i) / unit);
    }
    return true;
}

static void move_boxes(walk *w, tcc_pinst *in, unsigned operand)
{
    uint32_t slot = in->operands[operand];
    const tcc_pvalue *map = tcc_p_slot(w->p, w->s, w->warp, in->operands[1]);
    int64_t further[TCC_P_CTAS];
    unsigned n;
    in->stays |= !counter_of(w, slot);
    if (!find_reached(w, in, further, &n))
        fail(w);
    for (int64_t x = 0; counter_of(w, slot) && x < w->r->period; x++) {
        tcc_pvalue from = value_at(w, slot, x), to = value_at(w, slot, x + 1);
        bool known = tcc_p_is_exact(map) && tcc_p_is_exact(&from) && tcc_p_is_exact(&to);
        for (unsigned i = 0; known && i < n; i++)
            known = move_bytes(w, from.v + further[i], to.v + further[i], w->p->box_bytes[map->v]);
        if (!known)
            fail(w);
    }
}

/* Accesses that depend on a counter, or may: they are looked at when it is known what is renamed. */
static void claim_all(walk *w, const tcc_pinst *in, unsigned operand)
{
    uint32_t slot = in->operands[operand];
    for (int64_t x = 0; x < (counter_of(w, slot) ? w->r->period : 1); x++)
        TCC_PUSH(w->p->scratch, &w->claims,
                 (claim){in, operand, value_at(w, slot, x), value_at(w, slot, x + 1)});
}

static void claim_lanes(walk *w, tcc_pinst *in, unsigned operand)
{
    in->stays |= !counter_of(w, in->operands[operand]);
    if (counter_of(w, in->operands[operand]))
        claim_all(w, in, operand);
}

static bool holds_for_lanes(const walk *w, const claim *c)
{
    const tcc_op *op = c->in->op;
    int64_t bytes = tcc_p_lane_bytes(op), unit = w->p->granule, from, to;
    int64_t offset = tcc_attr_int(&op->attrs, "offset", 0) - TCC_SMEM_BASE;
    for (unsigned l = 0; l < w->p->n_lanes; l++) {
        if (!tcc_p_lane(w->p, &c->from, l, &from) || !tcc_p_lane(w->p, &c->to, l, &to))
            return false;
        from += offset;
        to += offset;
        if (from < 0 || from > tcc_p_followed_bytes(w->p) - bytes || (to - from) % unit)
            return false;
        for (int64_t g = from / unit; g * unit < from + bytes; g++)
            if (w->r->granules[g] != g + (to - from) / unit)
                return false;
    }
    return true;
}

static void find_ranges(const walk *w, const claim *c, int64_t bits, operand_ranges *ranges)
{
    if (ranges->in == c->in && ranges->operand == c->operand && ranges->bits == bits)
        return;
    *ranges = (operand_ranges){.in = c->in, .operand = c->operand, .bits = bits, .at = ranges->at};
    ranges->n = tcc_p_mma_ranges(w->p, c->in, c->operand, bits, ranges->at);
}

/* Whether the granules of some bytes become those from another byte on. */
static bool is_moved(const walk *w, int64_t first, int64_t end, int64_t to)
{
    uint32_t unit = (uint32_t)w->p->granule, from = (uint32_t)first / unit, last = ((uint32_t)end + unit - 1) / unit;
    uint32_t distance = (uint32_t)to / unit - from, differs = 0;
    for (uint32_t g = from; g < last; g++)
        differs |= w->r->granules[g] ^ (g + distance);
    return !differs;
}

static bool holds_for_operand(walk *w, const claim *c)
{
    tcc_protocol *p = w->p;
    operand_ranges *from = &w->ranges[0], *to = &w->ranges[1];
    if (!tcc_p_is_exact(&c->from) || !tcc_p_is_exact(&c->to))
        return false;
    const int64_t key[] = {7, c->from.v, c->to.v, (int64_t)(intptr_t)c->in, c->operand};
    uint64_t *known = tcc_ptable_at(p->memo, key, sizeof key);
    if (*known)
        return *known == 1;
    *known = 2;
    find_ranges(w, c, c->from.v, from);
    find_ranges(w, c, c->to.v, to);
    if (!from->n || from->n != to->n)
        return false;
    int64_t windows = (p->symmetry ? 1 : (int64_t)p->ctas) * TCC_P_WINDOW;
    for (int64_t window = 0; window < windows; window += TCC_P_WINDOW) /* whichever CTA it is that has the descriptor */
        for (size_t i = 0; i < from->n; i++)
            if (!is_moved(w, from->at[i].first + window, from->at[i].end + window, to->at[i].first + window))
                return false;
    operand_ranges last = *from; /* the next claim is most often of what comes after it */
    *from = *to;
    *to = last;
    *known = 1;
    return true;
}

/* ---- ops ------------------------------------------------------------------------------- */

typedef enum role { NOT_RENAMED, AT_BARRIER, PARITY, BOX, BY_LANES, OPERAND } role;

static const struct {
    tcc_opcode code;
    uint8_t roles[3];
} renamed[] = {
    {TCC_OP_nvvm_mbarrier_wait, {AT_BARRIER, PARITY}},
    {TCC_OP_nvvm_mbarrier_arrive, {AT_BARRIER}},
    {TCC_OP_nvvm_mbarrier_arrive_expect_tx, {AT_BARRIER}},
    {TCC_OP_nvvm_mbarrier_arrive_cluster, {AT_BARRIER}},
    {TCC_OP_nvvm_mbarrier_arrive_expect_tx_cluster, {AT_BARRIER}},
    {TCC_OP_nvvm_tma_load, {BOX, NOT_RENAMED, AT_BARRIER}},
    {TCC_OP_nvvm_tma_load_multicast, {BOX, NOT_RENAMED, AT_BARRIER}},
    {TCC_OP_nvvm_wgmma, {NOT_RENAMED, OPERAND, OPERAND}},
    {TCC_OP_nvvm_wgmma_a, {NOT_RENAMED, NOT_RENAMED, OPERAND}},
    {TCC_OP_nvvm_ld_shared, {BY_LANES}},
    {TCC_OP_nvvm_st_shared, {BY_LANES}},
    {TCC_OP_nvvm_ld_shared_word, {BY_LANES}},
    {TCC_OP_nvvm_st_shared_word, {BY_LANES}},
    {TCC_OP_nvvm_st_shared_cluster, {BY_LANES}},
    {TCC_OP_nvvm_st_async_word, {BY_LANES, AT_BARRIER}},
    {TCC_OP_nvvm_ldmatrix, {BY_LANES}},
    {TCC_OP_nvvm_stmatrix, {BY_LANES}},
};

static const uint8_t *roles_of(tcc_opcode code)
{
    static const uint8_t none[3];
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (renamed[i].code == code)
            return renamed[i].roles;
    return none;
}

/* An op behind the beginning of the first loop. */
void tcc_p_rename(walk *w, tcc_pinst *in)
{
    tcc_opcode code = in->op->code;
    const uint8_t *roles = roles_of(code);
    bool stays = true, shares = code == TCC_OP_nvvm_tma_load_multicast;
    if (w->warp >= w->p->n_followed && !shares)
        return;
    w->shares |= (uint64_t)shares << w->warp % w->p->spread;
    if ((tcc_op_does(code, TCC_BARRIER) && tcc_op_does(code, TCC_ALLOCATES)) || code == TCC_OP_nvvm_fence_mbarrier_init)
        fail(w); /* of mbarriers that it does not name */
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        role r = i < 3 ? (role)roles[i] : NOT_RENAMED;
        if (in->operands[i] == TCC_P_NO_SLOT)
            continue;
        switch (r) {
        case AT_BARRIER: move_barriers(w, in, i); break;
        case BOX: move_boxes(w, in, i); break;
        case BY_LANES: claim_lanes(w, in, i); break;
        case OPERAND: claim_all(w, in, i); break;
        case PARITY:
            tcc_p_find_dependence(w, in); /* on one counter */
            break;
        default:
            if (counter_of(w, in->operands[i]))
                fail(w);
        }
        stays &= r == NOT_RENAMED;
    }
    in->stays |= stays;
}

/* The same a lap later: nothing changes but the parity of mbarriers. Where it is waited for one whose address is not
 * known here, that is known in time. */
void tcc_p_flip(walk *w, tcc_pinst *in)
{
    tcc_opcode code = in->op->code;
    bool waits = code == TCC_OP_nvvm_mbarrier_wait;
    if ((tcc_op_does(code, TCC_BARRIER) && tcc_op_does(code, TCC_ALLOCATES)) || code == TCC_OP_nvvm_fence_mbarrier_init)
        fail(w); /* of mbarriers that it does not name */
    for (unsigned i = 0; i < in->op->n_operands; i++)
        if (!(waits && i == 1) && varies(w, in->operands[i]))
            fail(w);
    if (!waits || w->failed)
        return;
    uint32_t slot = in->operands[0], parity = in->operands[1];
    bool known = knows_barrier(w, in, slot);
    in->waits_anywhere |= !known;
    for (int64_t x = 0; known && x < w->r->period; x++) {
        tcc_pvalue at = value_at(w, slot, x);
        if (!tcc_p_is_exact(&at))
            fail(w);
        else
            move_barrier(w, at.v, at.v, counter_of(w, parity) && flips_at(w, in, x));
    }
}

/* ---- all of them ----------------------------------------------------------------------- */

static bool is_one_to_one(const tcc_protocol *p, rotation *r)
{
    uint8_t *taken = TCC_NEW_ARRAY(p->scratch, uint8_t, p->n_granules + 1);
    for (size_t g = 0; g < p->n_granules; g++) {
        r->granules[g] = r->granules[g] == UNSET ? (uint32_t)g : r->granules[g];
        if (taken[r->granules[g]]++)
            return false;
    }
    return true;
}

static bool all_claims_hold(walk *w)
{
    bool hold = true;
    for (size_t i = 0; hold && i < w->claims.len; i++) {
        const claim *c = &w->claims.data[i];
        hold = roles_of(c->in->op->code)[c->operand] == OPERAND ? holds_for_operand(w, c)
                                                                : holds_for_lanes(w, c);
    }
    return hold;
}

bool tcc_p_renames_one_to_one(walk *w)
{
    return is_one_to_one(w->p, w->r) && all_claims_hold(w);
}
