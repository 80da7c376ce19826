/* rotate: states that differ by the stage of a ring which comes next.
 *
 * A loop's iterations, and a persistent kernel's tiles, begin at any stage, and what happens from there on is the same
 * but for the names of stages. Let a rotation add one to the counters that loops carry, and rename with them: the
 * mbarriers and the bytes of a stage are those of the next one, and a phase is the other where the counter's quotient
 * is. When each op does in the state after it what it does in the state before, renamed, then so does every execution,
 * and of all rotations of a state one is enough.
 *
 * Whether that is so is found by trying it: ops that depend on a counter are computed for all of its values
 * (each stands for all numbers with that remainder, value.c). One rotation must take
 *   every mbarrier that an op names to one other, and the parity waited for always alike;
 *   every byte that a copy, an MMA or a thread accesses to one other;
 *   a counter that is carried to the one that the next iteration has;
 * and all else must not depend on counters: conditions, bounds, other operands. Only what is behind the
 * beginning of one loop is looked at, the first or the last whose index is a counter, and only states are rotated in
 * which all warps are there.
 * Accesses that do not depend on counters must leave the stages alone, or come when all stages are alike and no warp
 * will ever ask for the next (an epilogue that uses the ring's bytes, tcc_p_is_settled). Where they are is known when
 * they are made, so it is asked then; states that were taken for one and are not are followed again, without rotations.
 *
 * Where one CTA of a cluster is followed (symmetry.c), mbarriers and bytes of other CTAs stand for those of CTA 0 that
 * correspond. Of other CTAs' warps only copies to several CTAs are looked at: each copies another part.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/rotate.h"

enum { MAX_PERIOD = 512, KEPT = 8 /* operands */ };

/* ---- counters -------------------------------------------------------------------------- */

static bool is_loop(const tcc_pinst *in)
{
    return in->op->code == TCC_OP_scf_for;
}

/* Finds the indices of loops, and what they carry, of which a remainder is asked, the same of all; false when it is
 * not. */
static bool find_counters(const tcc_protocol *p, rotation *r, tcc_pcode *code)
{
    for (size_t i = code->n; i-- > 0;) {
        tcc_pinst *in = &code->insts[i];
        for (unsigned g = 0; g < in->op->n_regions; g++)
            if (!find_counters(p, r, &in->regions[g]))
                return false;
        for (size_t a = 0; is_loop(in) && a < in->regions[0].n_args; a++) {
            int64_t m = in->regions[0].moduli[a];
            if (in->regions[0].args[a] == TCC_P_NO_SLOT || m < 2)
                continue;
            if (!a && (p->symbol_data || in->tests)) /* it stays what it is */
                continue;
            if (r->period && m != r->period)
                return false;
            r->period = m;
            r->carried |= a > 0;
            TCC_PUSH(p->scratch, &r->counters, in->regions[0].args[a]);
            if (a && in->results[a - 1] != TCC_P_NO_SLOT)
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

/* States are rotated in the last loop of a block that has a counter for its index, and behind: a thread that fills
 * stages between other work fills the first ones in a loop of their own. Whether there is such a loop. */
static bool find_beginning(const rotation *r, tcc_pcode *code)
{
    bool found = false;
    for (size_t i = code->n; i-- > 0;) {
        const tcc_pinst *in = &code->insts[i];
        bool has = is_loop(in) && is_counter(r, in->regions[0].args[0]);
        for (unsigned g = 0; g < in->op->n_regions; g++)
            has |= find_beginning(r, &in->regions[g]);
        code->later = has && !found ? i + 1 : code->later;
        found |= has;
    }
    return found;
}

/* ---- what depends on them -------------------------------------------------------------- */

static void set_unknown(walk *w, uint32_t slot)
{
    if (slot == TCC_P_NO_SLOT)
        return;
    bool counts = is_counter(w->r, slot);
    w->by[slot] = counts ? slot + 1 : NO_COUNTER;
    *tcc_p_slot(w->p, w->s, w->warp, slot) = (tcc_pvalue){.kind = TCC_P_UNKNOWN};
}

/* The one counter that operands depend on. */
uint32_t tcc_p_find_dependence(walk *w, const tcc_pinst *in)
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

/* What an op's operands are for all values of a counter: warps most often compute the same. Gives where it is kept what
 * that comes to, 0 when it is new. */
static uint64_t *find_known(walk *w, const tcc_pinst *in, int64_t what)
{
    struct {
        const tcc_pinst *in;
        int64_t what;
        tcc_pvalue operands[KEPT];
    } key;
    memset(&key, 0, sizeof key);
    key.in = in;
    key.what = what;
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        uint32_t slot = in->operands[i], by = counter_of(w, slot);
        if (slot == TCC_P_NO_SLOT)
            continue;
        if (by)
            key.operands[i] =
                (tcc_pvalue){.v = (int64_t)(intptr_t)(by == slot + 1 ? NULL : w->tables[slot]), .delta = by};
        else
            key.operands[i] = *tcc_p_slot(w->p, w->s, w->warp, slot);
    }
    return tcc_ptable_at(w->known, &key, sizeof key);
}

/* An op that gives a number, for all values of the counter that it depends on. */
static tcc_pvalue *compute_all(walk *w, const tcc_pinst *in, uint32_t by)
{
    int64_t n = by ? w->r->period : 1;
    tcc_pvalue *table = TCC_NEW_ARRAY(w->p->scratch, tcc_pvalue, (size_t)n);
    for (int64_t x = 0; x < n; x++) {
        for (unsigned i = 0; by && i < in->op->n_operands; i++)
            if (counter_of(w, in->operands[i]))
                *tcc_p_slot(w->p, w->s, w->warp, in->operands[i]) = value_at(w, in->operands[i], x);
        if (tcc_p_give(w->p, w->s, w->warp, in, &table[x]) != TCC_P_NEXT)
            fail(w);
    }
    return table;
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

/* Whether an op compares a counter, plus a constant, with what depends on none. If that is the loop's index and its
 * bound, only the iterations that remain are asked for; if it turns out not to be, states are not rotated (step.c). */
static bool may_test_bound(const walk *w, const tcc_pinst *in)
{
    unsigned index = !counter_of(w, in->operands[0]);
    return in->op->code == TCC_OP_arith_cmp && is_shifted(w, in->operands[index]) &&
           !counter_of(w, in->operands[!index]);
}

static void compute(walk *w, tcc_pinst *in)
{
    uint32_t by = tcc_p_find_dependence(w, in), slot = in->results[0];
    tcc_pvalue *table = NULL;
    uint64_t *known = by && in->op->n_operands <= KEPT ? find_known(w, in, 8) : NULL;
    if (known && *known)
        table = (tcc_pvalue *)(uintptr_t)*known;
    else
        table = compute_all(w, in, by);
    if (known)
        *known = (uint64_t)(uintptr_t)table;
    bool same = true;
    for (int64_t x = 1; by && x < w->r->period; x++)
        same &= !memcmp(&table[x], &table[0], sizeof *table);
    tcc_pvalue v = table[by ? w->r->period - 1 : 0];
    /* What is not known here may be known there, and differ. */
    bool depends = by && !(same && tcc_p_is_exact(&v)), tests = depends && !w->laps && may_test_bound(w, in);
    in->tests_bound |= tests;
    w->by[slot] = depends && !tests ? by : NO_COUNTER;
    w->tables[slot] = by ? table : NULL;
    *tcc_p_slot(w->p, w->s, w->warp, slot) = tests ? (tcc_pvalue){.kind = TCC_P_UNKNOWN} : v;
}

static void walk_code(walk *w, const tcc_pinst *of, tcc_pcode *code, bool late);

/* Whether a loop's index is one more in each iteration. */
static bool counts_up(const walk *w, const tcc_pinst *loop)
{
    const tcc_pvalue *lo = tcc_p_slot(w->p, w->s, w->warp, loop->operands[0]);
    const tcc_pvalue *step = tcc_p_slot(w->p, w->s, w->warp, loop->operands[2]);
    return tcc_p_is_exact(lo) && lo->v >= 0 && tcc_p_is_exact(step) && step->v == 1;
}

static void walk_loop(walk *w, tcc_pinst *in, bool late, bool begins)
{
    tcc_pcode *body = &in->regions[0];
    for (unsigned i = 0; i < 3; i++)
        if (varies(w, in->operands[i]))
            fail(w);
    set_unknown(w, body->args[0]);
    if (counter_of(w, body->args[0]) && (late || !counts_up(w, in)))
        fail(w);
    for (unsigned i = 0; i < in->op->n_results; i++) {
        set_unknown(w, body->args[1 + i]);
        bool counts = counter_of(w, body->args[1 + i]);
        if (counts ? late && !is_shifted(w, in->operands[3 + i]) : varies(w, in->operands[3 + i]))
            fail(w);
    }
    walk_code(w, in, body, late || (begins && in->loops));
    for (unsigned i = 0; i < in->op->n_results; i++)
        set_unknown(w, in->results[i]);
}

static void walk_branch(walk *w, tcc_pinst *in, bool late)
{
    int64_t n = counter_of(w, in->operands[0]) ? w->r->period : 1;
    bool taken[2] = {false, false};
    if (varies(w, in->operands[0]))
        fail(w);
    for (int64_t x = 0; x < n; x++) {
        tcc_pvalue c = value_at(w, in->operands[0], x);
        for (unsigned l = 0; l < w->p->n_lanes; l++) {
            int64_t v = 0;
            bool known = tcc_p_lane(w->p, &c, l, &v);
            taken[0] |= !known || v;
            taken[1] |= !known || !v;
        }
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
        if (counts ? !is_shifted(w, yield->operands[i]) : varies(w, yield->operands[i]))
            fail(w);
    }
}

/* An op behind the beginning of the first loop. */
static void check_op(walk *w, tcc_pinst *in)
{
    if (in->op->n_operands > KEPT || !(*find_known(w, in, 9))++)
        (w->laps ? tcc_p_flip : tcc_p_rename)(w, in);
}

static void walk_op(walk *w, tcc_pinst *in, bool late)
{
    bool number = in->op->n_results == 1 && in->op->results[0].type->kind == TCC_KIND_scalar &&
                  in->results[0] != TCC_P_NO_SLOT;
    number = number && in->op->code != TCC_OP_nvvm_elect; /* it is chosen in each execution */
    bool follows = tcc_op_does(in->op->code, TCC_P_FOLLOWED & ~TCC_LANES);
    /* A place in a tensor depends on no counter, and a copy from there is not known by an mbarrier's name. */
    for (unsigned i = 0; in->tensor && i < in->place->n_terms; i++)
        if (varies(w, in->place->terms[i].slot) || in->does & TCC_P_NAMES)
            fail(w);
    if (late && follows)
        check_op(w, in);
    else if (!follows && number)
        compute(w, in);
    else
        for (unsigned i = 0; late && i < in->op->n_operands; i++)
            if (varies(w, in->operands[i]))
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
            walk_loop(w, in, behind, i + 1 >= code->later);
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
    for (uint32_t i = 0; i < w->p->n_slots; i++) {
        kinds[i] = !w->by[i] ? FIXED : w->by[i] == i + 1 ? COUNTER : FOLLOWS;
        if (kinds[i] != FIXED)
            TCC_PUSH(w->p->scratch, &w->r->moving, w->warp * w->p->n_slots + i);
    }
}

static void walk_warp(walk *w, unsigned warp)
{
    w->warp = warp;
    memset(w->by, 0, w->p->n_slots * sizeof *w->by);
    walk_code(w, NULL, &w->p->body, false);
    if (warp < w->p->n_followed)
        note_kinds(w);
}

static void create_state(const tcc_protocol *p, rotation *r)
{
    unsigned n = p->n_entities + tcc_p_max_parts(p);
    r->state.slots = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, ((size_t)p->n_followed + 1) * p->n_slots + 1);
    r->state.clocks = TCC_NEW_ARRAY(p->scratch, uint32_t, (size_t)n * p->stride);
    r->state.versions = TCC_NEW_ARRAY(p->scratch, uint64_t, n);
    r->state.barriers = TCC_NEW_ARRAY(p->scratch, tcc_pbarrier, p->max_barriers + 1);
    r->state.waits = TCC_NEW_ARRAY(p->scratch, tcc_pwait, (p->max_barriers + 1) * p->n_warps);
    r->barriers = TCC_NEW_ARRAY(p->scratch, uint32_t, p->max_barriers + 1);
    r->flips = TCC_NEW_ARRAY(p->scratch, bool, p->max_barriers + 1);
    r->to = TCC_NEW_ARRAY(p->scratch, uint32_t, p->max_barriers + 1);
}

void tcc_p_walk(walk *w)
{
    const tcc_protocol *p = w->p;
    tcc_arena *scratch = p->scratch;
    size_t n = ((size_t)p->n_followed + 1) * p->n_slots;
    w->r->kinds = TCC_NEW_ARRAY(scratch, uint8_t, n + 1);
    w->r->moves_from = tcc_ptable_create(scratch);
    w->r->moves_to = tcc_ptable_create(scratch);
    w->known = tcc_ptable_create(scratch);
    w->by = TCC_NEW_ARRAY(scratch, uint32_t, p->n_slots + 1);
    w->tables = TCC_NEW_ARRAY(scratch, tcc_pvalue *, p->n_slots + 1);
    tcc_pvalue *slots = TCC_NEW_ARRAY(scratch, tcc_pvalue, n + 1);
    memcpy(slots, w->s->slots, n * sizeof *slots);
    for (unsigned i = 0; i < p->n_warps && !w->failed; i++)
        if (i < p->n_followed || w->shares >> i % p->spread & 1)
            walk_warp(w, i);
    memcpy(w->s->slots, slots, n * sizeof *slots);
}

void tcc_p_rotation_find(tcc_protocol *p, tcc_pstate *first)
{
    rotation *r = TCC_NEW(p->scratch, rotation);
    if (p->amd || !find_counters(p, r, &p->body) || !r->period || r->period > MAX_PERIOD)
        return;
    if (!r->carried)
        find_beginning(r, &p->body);
    r->granules = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_granules + 1);
    memset(r->granules, 0xff, p->n_granules * sizeof *r->granules);
    walk w = {.p = p, .s = first, .r = r, .step = 1};
    for (unsigned i = 0; i < 2; i++)
        w.ranges[i].at = TCC_NEW_ARRAY(p->scratch, tcc_prange, TCC_P_MAX_CHUNKS);
    tcc_p_walk(&w);
    if (w.failed || !tcc_p_renames_one_to_one(&w))
        return;
    p->atom_infos.data[0].moving = w.moving; /* nothing was accessed yet: there is one atom */
    create_state(p, r);
    p->rotation = r;
}

bool tcc_p_rotates_later(const tcc_protocol *p, int64_t iterations)
{
    const rotation *r = p->rotation;
    return r && !r->carried && iterations < r->period / 2;
}

bool tcc_p_rotates_tiles(const tcc_protocol *p)
{
    return p->rotation && p->rotation->carried;
}

int64_t tcc_p_rotation_period(const tcc_protocol *p)
{
    return p->rotation ? p->rotation->period : 0;
}

static bool has_loops_in_loops(const tcc_pcode *code, bool inside)
{
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        if (!in->loops)
            continue;
        if (is_loop(in) && inside)
            return true;
        for (unsigned r = 0; r < in->op->n_regions; r++)
            if (has_loops_in_loops(&in->regions[r], inside || is_loop(in)))
                return true;
    }
    return false;
}

bool tcc_p_has_tiles(const tcc_protocol *p)
{
    return has_loops_in_loops(&p->body, false);
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

bool tcc_p_tell_apart_if(tcc_protocol *p, bool used)
{
    p->apart |= used;
    if (used)
        p->status = TCC_ERR_UNSUPPORTED;
    return used;
}

bool tcc_p_rotation_fails(tcc_protocol *p)
{
    bool used = p->rotation->used;
    p->rotation = NULL;
    return tcc_p_tell_apart_if(p, used);
}

bool tcc_p_rotation_ends(tcc_protocol *p, tcc_pstate *s, unsigned cta)
{
    s->settled |= (uint8_t)(1u << cta);
    return tcc_p_is_settled(p, s, cta) || tcc_p_tell_rotations_apart(p, s) || !tcc_p_rotation_fails(p);
}
