/* rotate: states that differ by the stage of a ring which comes next.
 *
 * A persistent kernel's tiles begin at any stage, and what happens from there on is the same but for the
 * names of stages. Let a rotation add one to the counters that loops carry, and rename with them: the mbarriers
 * and the bytes of a stage are those of the next one, and a phase is the other where the counter's quotient is.
 * When each op does in the state after it what it does in the state before, renamed, then so does every
 * execution, and of all rotations of a state one is enough.
 *
 * Whether that is so is found by trying it: ops that depend on a counter are computed for all of its values
 * (each stands for all numbers with that remainder, value.c). One rotation must take
 *   every mbarrier that an op names to one other, and the parity waited for always alike;
 *   every byte that a copy, an MMA or a thread accesses to one other;
 *   a counter that is carried to the one that the next iteration has;
 * and all else must not depend on counters: conditions, bounds, other operands. Only what is behind the
 * beginning of the first loop is looked at, and only states are rotated in which all warps are there.
 * Accesses that do not depend on counters must leave the stages alone; where those are is known when they
 * are made, so it is asked then, and when one does not, all is done again without rotations.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/rotate.h"

enum { MAX_PERIOD = 512, NO_COUNTER = 0, UNSET = UINT32_MAX };

/* That an access to `from` is one to `to` after a rotation. */
typedef struct claim {
    const tcc_pinst *in;
    unsigned operand;
    tcc_pvalue from, to;
} claim;

typedef struct walk {
    tcc_protocol *p;
    tcc_pstate *s;
    rotation *r;
    unsigned warp;
    bool failed;
    uint32_t *by;        /* of each slot: 1 + the counter on which it depends */
    tcc_pvalue **tables; /* for all values of that */
    TCC_VEC(claim) claims;
} walk;

/* ---- counters -------------------------------------------------------------------------- */

static bool is_loop(const tcc_pinst *in)
{
    return in->op->code == TCC_OP_scf_for;
}

/* Finds what loops carry of which a remainder is asked, the same of all; false when it is not. Indices stay what
 * they are. */
static bool find_counters(const tcc_protocol *p, rotation *r, const tcc_pcode *code)
{
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        for (unsigned g = 0; g < in->op->n_regions; g++)
            if (!find_counters(p, r, &in->regions[g]))
                return false;
        for (size_t a = 0; is_loop(in) && a < in->regions[0].n_args; a++) {
            int64_t m = in->regions[0].moduli[a];
            if (!a || in->regions[0].args[a] == TCC_P_NO_SLOT || m < 2)
                continue;
            if ((r->period && m != r->period))
                return false;
            r->period = m;
            TCC_PUSH(p->scratch, &r->counters, in->regions[0].args[a]);
            if (in->results[a - 1] != TCC_P_NO_SLOT)
                TCC_PUSH(p->scratch, &r->counters, in->results[a - 1]);
        }
    }
    return true;
}

static bool is_counter(const rotation *r, uint32_t slot)
{
    for (size_t i = 0; i < r->counters.len; i++)
        if (r->counters.data[i] == slot)
            return true;
    return false;
}

/* ---- what depends on them -------------------------------------------------------------- */

static uint32_t counter_of(const walk *w, uint32_t slot)
{
    return slot == TCC_P_NO_SLOT ? NO_COUNTER : w->by[slot];
}

static tcc_pvalue value_at(const walk *w, uint32_t slot, int64_t x)
{
    if (w->by[slot] == slot + 1)
        return counter_at(w->p, w->r, x);
    return w->by[slot] ? w->tables[slot][x % w->r->period] : *tcc_p_slot(w->p, w->s, w->warp, slot);
}

static void fail(walk *w)
{
    w->failed = true;
}

static void set_unknown(walk *w, uint32_t slot)
{
    if (slot == TCC_P_NO_SLOT)
        return;
    bool counts = is_counter(w->r, slot);
    w->by[slot] = counts ? slot + 1 : NO_COUNTER;
    *tcc_p_slot(w->p, w->s, w->warp, slot) = (tcc_pvalue){.kind = TCC_P_UNKNOWN};
}

/* The one counter that operands depend on. */
static uint32_t find_dependence(walk *w, const tcc_pinst *in)
{
    uint32_t by = NO_COUNTER;
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        uint32_t other = counter_of(w, in->operands[i]);
        if (by && other && by != other)
            fail(w);
        by = by ? by : other;
    }
    return by;
}

/* An op that gives a number, for all values of the counter that it depends on. */
static void compute(walk *w, const tcc_pinst *in)
{
    uint32_t by = find_dependence(w, in), slot = in->results[0];
    int64_t n = by ? w->r->period : 1;
    tcc_pvalue *table = by ? TCC_NEW_ARRAY(w->p->scratch, tcc_pvalue, (size_t)n) : NULL, v;
    bool same = true;
    for (int64_t x = 0; x < n; x++) {
        for (unsigned i = 0; by && i < in->op->n_operands; i++)
            if (counter_of(w, in->operands[i]))
                *tcc_p_slot(w->p, w->s, w->warp, in->operands[i]) = value_at(w, in->operands[i], x);
        if (tcc_p_give(w->p, w->s, w->warp, in, &v) != TCC_P_NEXT)
            fail(w);
        if (by)
            table[x] = v;
        same &= !x || !memcmp(&v, &table[0], sizeof v);
    }
    /* What is not known here may be known there, and differ. */
    w->by[slot] = by && same && tcc_p_is_exact(&v) ? NO_COUNTER : by;
    w->tables[slot] = table;
    *tcc_p_slot(w->p, w->s, w->warp, slot) = v;
}

/* Whether a slot is a counter plus a constant: then a rotation adds one to it, too. */
static bool is_shifted(const walk *w, uint32_t slot)
{
    if (!counter_of(w, slot))
        return false;
    for (int64_t x = 0, by = 0; x < w->r->period; x++) {
        tcc_pvalue v = tcc_p_forget(w->p, value_at(w, slot, x), w->r->period);
        by = x ? by : v.v;
        tcc_pvalue as = counter_at(w->p, w->r, by + x);
        if (memcmp(&v, &as, sizeof v) != 0)
            return false;
    }
    return true;
}

/* ---- what is renamed ------------------------------------------------------------------- */

static void move_barrier(walk *w, const tcc_pvalue *from, const tcc_pvalue *to, int flips)
{
    if (!tcc_p_is_exact(from) || !tcc_p_is_exact(to)) {
        fail(w);
        return;
    }
    for (size_t i = 0; i < w->r->moves.len; i++) {
        move *m = &w->r->moves.data[i];
        if ((m->from == from->v) != (m->to == to->v)) {
            fail(w);
        } else if (m->from == from->v) {
            if (flips >= 0 && m->flips >= 0 && m->flips != flips)
                fail(w);
            m->flips = flips >= 0 ? flips : m->flips;
            return;
        }
    }
    TCC_PUSH(w->p->scratch, &w->r->moves, (move){from->v, to->v, flips});
}

/* Whether a wait's parity is the other one. */
static int flips_at(walk *w, const tcc_pinst *wait, int64_t x)
{
    tcc_pvalue a = value_at(w, wait->operands[1], x), b = value_at(w, wait->operands[1], x + 1);
    if (!tcc_p_is_exact(&a) || !tcc_p_is_exact(&b))
        fail(w);
    return a.v != b.v;
}

static void move_barriers(walk *w, tcc_pinst *in, unsigned operand)
{
    bool waits = in->op->code == TCC_OP_nvvm_mbarrier_wait;
    uint32_t slot = in->operands[operand];
    tcc_pvalue from = value_at(w, slot, 0), to;
    bool known = counter_of(w, slot) || tcc_p_is_exact(&from);
    in->stays_at_barrier |= !known;
    for (int64_t x = 0; known && x < w->r->period; x++, from = to) {
        to = value_at(w, slot, x + 1);
        move_barrier(w, &from, &to, waits ? flips_at(w, in, x) : -1);
    }
}

static bool move_bytes(walk *w, int64_t from, int64_t to, int64_t bytes)
{
    int64_t unit = w->p->granule, end = w->p->smem_bytes - bytes;
    from -= TCC_SMEM_BASE;
    to -= TCC_SMEM_BASE;
    if (from % unit || to % unit || bytes % unit || from < 0 || to < 0 || from > end || to > end)
        return false;
    for (int64_t i = 0; i < bytes; i += unit) {
        uint32_t *at = &w->r->granules[(from + i) / unit];
        if (*at != UNSET && *at != (uint32_t)((to + i) / unit))
            return false;
        *at = (uint32_t)((to + i) / unit);
    }
    return true;
}

static void move_boxes(walk *w, tcc_pinst *in, unsigned operand)
{
    uint32_t slot = in->operands[operand];
    const tcc_pvalue *map = tcc_p_slot(w->p, w->s, w->warp, in->operands[1]);
    in->stays |= !counter_of(w, slot);
    for (int64_t x = 0; counter_of(w, slot) && x < w->r->period; x++) {
        tcc_pvalue from = value_at(w, slot, x), to = value_at(w, slot, x + 1);
        if (!tcc_p_is_exact(map) || !tcc_p_is_exact(&from) || !tcc_p_is_exact(&to) ||
            !move_bytes(w, from.v, to.v, w->p->box_bytes[map->v]))
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
    int64_t bytes = tcc_p_bytes_of(tcc_op_moves(op)), unit = w->p->granule, from, to;
    int64_t offset = tcc_attr_int(&op->attrs, "offset", 0) - TCC_SMEM_BASE;
    for (unsigned l = 0; l < w->p->n_lanes; l++) {
        if (!tcc_p_lane(w->p, &c->from, l, &from) || !tcc_p_lane(w->p, &c->to, l, &to))
            return false;
        from += offset;
        to += offset;
        if (from < 0 || from > w->p->smem_bytes - bytes || (to - from) % unit)
            return false;
        for (int64_t g = from / unit; g * unit < from + bytes; g++)
            if (w->r->granules[g] != g + (to - from) / unit)
                return false;
    }
    return true;
}

static bool holds_for_operand(const walk *w, const claim *c)
{
    tcc_protocol *p = w->p;
    tcc_prange from[TCC_P_MAX_CHUNKS], to[TCC_P_MAX_CHUNKS];
    if (!tcc_p_is_exact(&c->from) || !tcc_p_is_exact(&c->to))
        return false;
    const int64_t key[] = {7, c->from.v, c->to.v, (int64_t)(intptr_t)c->in, c->operand};
    uint64_t *known = tcc_ptable_at(p->memo, key, sizeof key);
    if (*known)
        return *known == 1;
    *known = 2;
    size_t n = tcc_p_mma_ranges(p, c->in, c->operand, c->from.v, from);
    if (!n || tcc_p_mma_ranges(p, c->in, c->operand, c->to.v, to) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        for (int64_t b = 0; from[i].first + b < from[i].end; b += p->granule)
            if (w->r->granules[(from[i].first + b) / p->granule] != (to[i].first + b) / p->granule)
                return false;
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
    {TCC_OP_nvvm_tma_load, {BOX, NOT_RENAMED, AT_BARRIER}},
    {TCC_OP_nvvm_wgmma, {NOT_RENAMED, OPERAND, OPERAND}},
    {TCC_OP_nvvm_wgmma_a, {NOT_RENAMED, NOT_RENAMED, OPERAND}},
    {TCC_OP_nvvm_ld_shared, {BY_LANES}},
    {TCC_OP_nvvm_st_shared, {BY_LANES}},
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
static void check_op(walk *w, tcc_pinst *in)
{
    tcc_opcode code = in->op->code;
    const uint8_t *roles = roles_of(code);
    bool stays = true;
    if (tcc_op_does(code, TCC_BARRIER) && (tcc_op_does(code, TCC_ALLOCATES) || tcc_op_does(code, TCC_FENCE)))
        fail(w);
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
            find_dependence(w, in); /* on one counter */
            break;
        default:
            if (counter_of(w, in->operands[i]))
                fail(w);
        }
        stays &= r == NOT_RENAMED;
    }
    in->stays |= stays;
}

static void walk_code(walk *w, const tcc_pinst *of, tcc_pcode *code, bool late);

static void walk_loop(walk *w, tcc_pinst *in, bool late)
{
    tcc_pcode *body = &in->regions[0];
    for (unsigned i = 0; i < 3; i++)
        if (counter_of(w, in->operands[i]))
            fail(w);
    set_unknown(w, body->args[0]);
    for (unsigned i = 0; i < in->op->n_results; i++) {
        set_unknown(w, body->args[1 + i]);
        bool counts = counter_of(w, body->args[1 + i]);
        if (counts ? late && !is_shifted(w, in->operands[3 + i]) : counter_of(w, in->operands[3 + i]))
            fail(w);
    }
    walk_code(w, in, body, late || in->loops);
    for (unsigned i = 0; i < in->op->n_results; i++)
        set_unknown(w, in->results[i]);
}

static void walk_branch(walk *w, tcc_pinst *in, bool late)
{
    const tcc_pvalue *c = tcc_p_slot(w->p, w->s, w->warp, in->operands[0]);
    bool taken[2] = {false, false};
    if (counter_of(w, in->operands[0]))
        fail(w);
    for (unsigned l = 0; l < w->p->n_lanes; l++) {
        int64_t v = 0;
        bool known = tcc_p_lane(w->p, c, l, &v);
        taken[0] |= !known || v;
        taken[1] |= !known || !v;
    }
    for (unsigned r = 0; r < 2; r++)
        if (taken[r])
            walk_code(w, in, &in->regions[r], late);
    for (unsigned i = 0; i < in->op->n_results; i++)
        set_unknown(w, in->results[i]);
}

static void walk_yield(walk *w, const tcc_pinst *of, const tcc_pcode *code, const tcc_pinst *yield)
{
    for (unsigned i = 0; of && i < of->op->n_results && i < yield->op->n_operands; i++) {
        bool counts = is_loop(of) && counter_of(w, code->args[1 + i]);
        if (counts ? !is_shifted(w, yield->operands[i]) : counter_of(w, yield->operands[i]))
            fail(w);
    }
}

static void walk_op(walk *w, tcc_pinst *in, bool late)
{
    bool number = in->op->n_results == 1 && in->op->results[0].type->kind == TCC_KIND_scalar &&
                  in->results[0] != TCC_P_NO_SLOT;
    bool follows = tcc_op_does(in->op->code, TCC_P_FOLLOWED & ~TCC_LANES);
    if (late && follows)
        check_op(w, in);
    else if (!follows && number)
        compute(w, in);
    else
        for (unsigned i = 0; i < in->op->n_operands; i++)
            if (counter_of(w, in->operands[i]))
                fail(w);
    for (unsigned i = 0; (follows || !number) && i < in->op->n_results; i++)
        set_unknown(w, in->results[i]);
}

static void walk_code(walk *w, const tcc_pinst *of, tcc_pcode *code, bool late)
{
    for (size_t i = 0; i < code->n && !w->failed; i++) {
        tcc_pinst *in = &code->insts[i];
        bool behind = late || i >= code->later;
        if (in->op->code == TCC_OP_scf_yield)
            walk_yield(w, of, code, in);
        else if (is_loop(in))
            walk_loop(w, in, behind);
        else if (in->op->n_regions)
            walk_branch(w, in, behind);
        else
            walk_op(w, in, behind);
    }
}

/* ---- the whole kernel ------------------------------------------------------------------ */

/* What is not a counter and depends on one follows from it, being computed anew in each iteration. */
static void note_kinds(walk *w)
{
    uint8_t *kinds = w->r->kinds + (size_t)w->warp * w->p->n_slots;
    for (uint32_t i = 0; i < w->p->n_slots; i++)
        kinds[i] = !w->by[i] ? FIXED : w->by[i] == i + 1 ? COUNTER : FOLLOWS;
}

static void walk_warp(walk *w, unsigned warp)
{
    w->warp = warp;
    memset(w->by, 0, w->p->n_slots * sizeof *w->by);
    walk_code(w, NULL, &w->p->body, false);
    note_kinds(w);
}

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

static bool all_claims_hold(const walk *w)
{
    bool hold = true;
    for (size_t i = 0; hold && i < w->claims.len; i++) {
        const claim *c = &w->claims.data[i];
        hold = roles_of(c->in->op->code)[c->operand] == OPERAND ? holds_for_operand(w, c)
                                                                : holds_for_lanes(w, c);
    }
    return hold;
}

static void create_state(const tcc_protocol *p, rotation *r)
{
    unsigned n = p->n_entities + tcc_p_max_parts(p);
    r->state.slots = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, (size_t)p->n_warps * p->n_slots + 1);
    r->state.clocks = TCC_NEW_ARRAY(p->scratch, uint32_t, (size_t)n * p->stride);
    r->state.versions = TCC_NEW_ARRAY(p->scratch, uint64_t, n);
    r->state.barriers = TCC_NEW_ARRAY(p->scratch, tcc_pbarrier, p->max_barriers + 1);
    r->state.waits = TCC_NEW_ARRAY(p->scratch, tcc_pwait, (p->max_barriers + 1) * p->n_warps);
    r->state.atoms = TCC_NEW_ARRAY(p->scratch, tcc_patom, TCC_P_MAX_ATOMS);
    r->barriers = TCC_NEW_ARRAY(p->scratch, uint32_t, p->max_barriers + 1);
    r->flips = TCC_NEW_ARRAY(p->scratch, bool, p->max_barriers + 1);
    r->atoms = TCC_NEW_ARRAY(p->scratch, uint32_t, TCC_P_MAX_ATOMS);
    r->to = TCC_NEW_ARRAY(p->scratch, uint32_t, TCC_P_MAX_ATOMS);
}

void tcc_p_rotation_find(tcc_protocol *p, tcc_pstate *first)
{
    rotation *r = TCC_NEW(p->scratch, rotation);
    if (p->amd || p->follows || !find_counters(p, r, &p->body) || !r->period || r->period > MAX_PERIOD)
        return;
    size_t n = (size_t)p->n_warps * p->n_slots;
    r->kinds = TCC_NEW_ARRAY(p->scratch, uint8_t, n + 1);
    r->granules = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_granules + 1);
    memset(r->granules, 0xff, p->n_granules * sizeof *r->granules);
    tcc_pvalue *slots = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, n + 1);
    memcpy(slots, first->slots, n * sizeof *slots);
    walk w = {.p = p, .s = first, .r = r};
    w.by = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_slots + 1);
    w.tables = TCC_NEW_ARRAY(p->scratch, tcc_pvalue *, p->n_slots + 1);
    for (unsigned i = 0; i < p->n_warps && !w.failed; i++)
        walk_warp(&w, i);
    memcpy(first->slots, slots, n * sizeof *slots);
    if (w.failed || !is_one_to_one(p, r) || !all_claims_hold(&w))
        return;
    create_state(p, r);
    p->rotation = r;
}

const uint32_t *tcc_p_rotated_granules(const tcc_protocol *p)
{
    return p->rotation ? p->rotation->granules : NULL;
}

bool tcc_p_is_rotated_barrier(const tcc_protocol *p, int64_t address)
{
    for (size_t i = 0; p->rotation && i < p->rotation->moves.len; i++)
        if (p->rotation->moves.data[i].from == address)
            return p->rotation->moves.data[i].to != address || p->rotation->moves.data[i].flips > 0;
    return false;
}

bool tcc_p_rotation_fails(tcc_protocol *p)
{
    bool used = p->rotation->used;
    p->rotation = NULL;
    p->rotation_failed = used;
    if (used)
        p->status = TCC_ERR_UNSUPPORTED;
    return used;
}
