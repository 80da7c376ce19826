/* aside: a thread that fills stages between a warp's other work, followed as a warp of its
 * own.
 *
 * Before:                               After, a warp:            and another:
 *   if (first)                            wait(full[i])             wait(empty[j])
 *     wait(empty[j]), copy to stage j     ...                       copy to stage j
 *   wait(full[i])
 *   ...
 *
 * Without a producer warp some threads of warp 0 start the copies, many iterations ahead of those
 * that read them. To follow the warp as it is means that each number of iterations is known that
 * far ahead, and has an end of its own. Followed separately, the copies start when no other warp can
 * proceed.
 *
 * That leaves out the order between the two. What is then proven holds for more executions than
 * there are, except that an order which is left out might block: a warp may wait for what it would
 * itself do only later. So what is set aside, and what is between, is counted, and neither may come
 * after what is later than it in the warp's own order (docs/protocol-checker.md).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

enum { WARP = 0 }; /* of the thread that is set aside */

/* ---- what can be set aside ------------------------------------------------------------- */

static bool synchronizes(tcc_opcode code)
{
    return tcc_op_does(code, TCC_P_FOLLOWED & ~TCC_LANES);
}

/* What filling a stage takes. */
static bool fills(tcc_opcode code)
{
    return tcc_op_does(code, TCC_BY_MBARRIER);
}

typedef struct contents {
    bool waits, copies;
    bool other;  /* something else, or by threads of which there is no condition */
    uint32_t by; /* the slot of the condition by which all of it is done */
} contents;

static void find_contents(const tcc_pinst *in, uint32_t by, contents *c)
{
    tcc_opcode code = in->op->code;
    if (synchronizes(code)) {
        c->other |= !fills(code) || by == TCC_P_NO_SLOT || (c->by != TCC_P_NO_SLOT && c->by != by);
        c->waits |= tcc_op_does(code, TCC_WAITS);
        c->copies |= tcc_op_does(code, TCC_WRITES_SHARED);
        c->by = by;
    }
    c->other |= in->touches || (in->op->n_results && in->op->n_regions);
    for (unsigned r = 0; r < in->op->n_regions; r++)
        for (size_t i = 0; i < in->regions[r].n; i++) {
            bool branch = code == TCC_OP_scf_if;
            uint32_t inside = !branch ? by : r ? TCC_P_NO_SLOT : in->operands[0];
            find_contents(&in->regions[r].insts[i], inside, c);
        }
}

static bool can_be_aside(tcc_pinst *in)
{
    contents c = {.by = TCC_P_NO_SLOT};
    if (!in->op->n_regions)
        return false;
    find_contents(in, TCC_P_NO_SLOT, &c);
    for (unsigned r = 0; r < in->op->n_regions; r++)
        c.other |=
            in->regions[r].n && c.by >= in->regions[r].first_slot && c.by < in->regions[r].end_slot;
    in->by = c.by;
    return c.waits && c.copies && !c.other;
}

/* Marks what can be set aside, the outermost ops; gives whether any is in a loop that does more. */
static bool mark(tcc_pcode *code, bool in_loop)
{
    bool found = false;
    for (size_t i = 0; i < code->n; i++) {
        tcc_pinst *in = &code->insts[i];
        in->aside = can_be_aside(in);
        found |= in->aside && in_loop;
        for (unsigned r = 0; !in->aside && r < in->op->n_regions; r++)
            if (in->regions[r].n)
                found |= mark(&in->regions[r], in_loop || in->op->code == TCC_OP_scf_for);
    }
    return found;
}

/* ---- what that needs ------------------------------------------------------------------- */

/* By the warp that fills stages, or by the others. */
typedef struct wanting {
    bool alone, changed;
    bool *slots;
} wanting;

static bool is_wanted(const wanting *w, uint32_t slot)
{
    return slot < TCC_P_FIXED && w->slots[slot];
}

static void want(wanting *w, uint32_t slot)
{
    w->changed |= slot < TCC_P_FIXED && !w->slots[slot];
    if (slot < TCC_P_FIXED)
        w->slots[slot] = true;
}

static void want_carried(wanting *w, const tcc_pinst *loop)
{
    const uint32_t *args = loop->regions[0].args;
    for (unsigned i = 0; i < loop->op->n_results; i++) {
        if (is_wanted(w, loop->results[i]))
            want(w, args[1 + i]);
        if (is_wanted(w, args[1 + i]))
            want(w, loop->operands[3 + i]);
    }
}

static void want_yielded(wanting *w, const tcc_pinst *of, const tcc_pcode *code,
                         const tcc_pinst *yield)
{
    bool loop = of->op->code == TCC_OP_scf_for;
    for (unsigned i = 0; i < yield->op->n_operands && i < of->op->n_results; i++)
        if (is_wanted(w, loop ? code->args[1 + i] : of->results[i]))
            want(w, yield->operands[i]);
}

/* Walks a region backwards; gives whether anything in it is needed. */
static bool find_needed(wanting *w, const tcc_pinst *of, tcc_pcode *code, bool inside)
{
    bool any = false;
    for (size_t k = code->n; k-- > 0;) {
        tcc_pinst *in = &code->insts[k];
        bool needed = w->alone ? inside || in->aside : !of || !in->given;
        if (in->op->code == TCC_OP_scf_yield && of) {
            want_yielded(w, of, code, in);
            in->alone = in->others = true;
            continue;
        }
        if (in->aside && !w->alone) { /* they pass it */
            want(w, in->by);
            in->others = true;
            continue;
        }
        for (unsigned i = 0; i < in->op->n_results; i++)
            needed |= is_wanted(w, in->results[i]) && !synchronizes(in->op->code);
        for (unsigned r = 0; r < in->op->n_regions; r++)
            if (in->regions[r].n)
                needed |= find_needed(w, in, &in->regions[r], inside || in->aside);
        bool loop = in->op->code == TCC_OP_scf_for;
        for (unsigned i = 0; needed && i < (loop ? 3 : in->op->n_operands); i++)
            want(w, in->operands[i]);
        if (needed && loop)
            want_carried(w, in);
        *(w->alone ? &in->alone : &in->others) = needed;
        any |= needed;
    }
    return any;
}

/* ---- where it ends --------------------------------------------------------------------- */

static bool is_inside(const tcc_pcode *body, uint32_t slot)
{
    return slot >= body->first_slot && slot < body->end_slot;
}

static const tcc_pinst *definition_in(const tcc_pcode *body, uint32_t slot)
{
    for (size_t i = 0; i < body->n; i++)
        for (unsigned r = 0; r < body->insts[i].op->n_results; r++)
            if (body->insts[i].results[r] == slot)
                return &body->insts[i];
    return NULL;
}

/* Whether a number grows with the loop's index: that, or its sum with what does not change. */
static bool grows(const tcc_pcode *body, uint32_t slot)
{
    if (slot == TCC_P_NO_SLOT || slot == body->args[0])
        return slot != TCC_P_NO_SLOT;
    const tcc_pinst *in = definition_in(body, slot);
    return in && in->op->code == TCC_OP_arith_add && in->operands[1] != TCC_P_NO_SLOT &&
           !is_inside(body, in->operands[1]) && grows(body, in->operands[0]);
}

/* Whether a condition that does not hold in an iteration holds in none that follows. */
static bool stays_false(const tcc_pcode *body, uint32_t slot)
{
    if (slot == TCC_P_NO_SLOT || !is_inside(body, slot))
        return slot != TCC_P_NO_SLOT;
    const tcc_pinst *in = definition_in(body, slot);
    if (in && in->op->code == TCC_OP_arith_and)
        return stays_false(body, in->operands[0]) && stays_false(body, in->operands[1]);
    return in && in->op->code == TCC_OP_arith_cmp &&
           !strcmp(tcc_attr_str(&in->op->attrs, "pred", ""), "lt") &&
           grows(body, in->operands[0]) && in->operands[1] != TCC_P_NO_SLOT &&
           !is_inside(body, in->operands[1]);
}

/* Whether the thread does nothing in a loop after an iteration in which it did nothing: all that it
 * does is behind conditions that stay false, and hands nothing on. */
static bool runs_out(const wanting *w, const tcc_pinst *loop)
{
    const tcc_pcode *body = &loop->regions[0];
    for (unsigned i = 0; i < loop->op->n_results; i++)
        if (is_wanted(w, body->args[1 + i]))
            return false;
    for (size_t i = 0; i < body->n; i++) {
        const tcc_pinst *in = &body->insts[i];
        tcc_opcode code = in->op->code;
        bool branch = code == TCC_OP_scf_if && !in->regions[1].n;
        if (in->alone && code != TCC_OP_scf_yield &&
            !(branch ? stays_false(body, in->operands[0]) : in->given != NULL))
            return false;
    }
    return true;
}

static bool has_aside(const tcc_pinst *in)
{
    bool any = in->aside;
    for (unsigned r = 0; r < in->op->n_regions; r++)
        for (size_t i = 0; i < in->regions[r].n; i++)
            any |= has_aside(&in->regions[r].insts[i]);
    return any;
}

/* The last op of the kernel that fills stages, where it is such a loop: what is not begun in it is
 * not missed in the counts below. */
static void find_end(const wanting *w, tcc_pcode *body)
{
    size_t i = body->n;
    while (i && !has_aside(&body->insts[i - 1]))
        i--;
    tcc_pinst *last = i ? &body->insts[i - 1] : NULL;
    if (last && !last->aside && last->op->code == TCC_OP_scf_for)
        last->runs_out = runs_out(w, last);
}

static bool changes_registers(const tcc_pcode *code)
{
    bool any = false;
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        any |= tcc_op_does(in->op->code, TCC_REGISTERS);
        for (unsigned r = 0; r < in->op->n_regions; r++)
            any |= changes_registers(&in->regions[r]);
    }
    return any;
}

bool tcc_p_aside_find(tcc_protocol *p)
{
    if (p->amd || p->n_warps % TCC_WARPGROUP_WARPS || p->n_warps >= TCC_P_WARPS ||
        !mark(&p->body, false) || changes_registers(&p->body))
        return false;
    for (int alone = 0; alone < 2; alone++) {
        wanting w = {.alone = alone, .slots = TCC_NEW_ARRAY(p->scratch, bool, p->n_slots + 1)};
        do {
            w.changed = false;
            find_needed(&w, NULL, &p->body, false);
        } while (w.changed);
        if (alone)
            find_end(&w, &p->body);
    }
    p->aside = p->n_warps++;
    p->n_steps = p->n_warps + 2;
    p->n_groups = (p->n_warps + TCC_WARPGROUP_WARPS - 1) / TCC_WARPGROUP_WARPS;
    return true;
}

/* The lanes by which ops of a block are done that are set aside: all, unless they are the same in every state. */
static tcc_lane_mask lanes_in(const tcc_protocol *p, const tcc_pcode *code)
{
    tcc_lane_mask lanes = 0;
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        bool fixed = in->by >= TCC_P_FIXED;
        for (unsigned l = 0; in->aside && l < p->n_lanes; l++) {
            int64_t v = 1;
            bool does = !fixed || !tcc_p_lane(p, tcc_p_slot(p, NULL, p->aside, in->by), l, &v) || v;
            lanes |= (tcc_lane_mask)does << l;
        }
        for (unsigned r = 0; r < in->op->n_regions && !in->aside; r++)
            lanes |= lanes_in(p, &in->regions[r]);
    }
    return lanes;
}

void tcc_p_aside_find_lanes(tcc_protocol *p)
{
    p->aside_lanes = lanes_in(p, &p->body);
}

/* ---- the warp's own order -------------------------------------------------------------- */

/* Two counts, kept where steps are: how often the warp has passed what is set aside, and how often
 * that was begun. What comes after the n-th passing has a count of n or more. */
typedef enum count { PASSED, BEGUN } count;

static uint32_t *count_of(const tcc_protocol *p, const tcc_pstate *s, unsigned entity, count c)
{
    return tcc_p_passed(p, s, entity) + p->n_warps + c;
}

/* The greatest that any lanes of a warp come after. */
static uint32_t known_count(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, count c)
{
    uint32_t n = *count_of(p, s, warp, c);
    for (unsigned i = 0; i < s->n_parts; i++)
        if (s->parts[i].warp == warp && *count_of(p, s, p->n_entities + i, c) > n)
            n = *count_of(p, s, p->n_entities + i, c);
    return n;
}

static void set_count(const tcc_protocol *p, tcc_pstate *s, unsigned warp, count c, uint32_t n)
{
    *count_of(p, s, warp, c) = n;
    for (unsigned i = 0; i < s->n_parts; i++)
        if (s->parts[i].warp == warp)
            *count_of(p, s, p->n_entities + i, c) = n;
}

/* It is not reported: the kernel is then followed as it is. */
static tcc_presult give_up(tcc_protocol *p)
{
    p->status = TCC_ERR_UNSUPPORTED;
    return TCC_P_FAILED;
}

bool tcc_p_aside_is_in_order(tcc_protocol *p, const tcc_pstate *s)
{
    if (!s->begun || known_count(p, s, p->aside, PASSED) < s->begun)
        return true;
    give_up(p);
    return false;
}

/* ---- steps ----------------------------------------------------------------------------- */

/* The thread knows what its warp does, of other lanes what all do. */
static void begin(tcc_protocol *p, tcc_pstate *s)
{
    tcc_pwarp *of = &s->warps[WARP], *w = &s->warps[p->aside];
    uint32_t own = tcc_p_seen(p, s, p->aside)[p->aside];
    *w = *of;
    w->registers = 0;
    w->unsynced = w->apart = w->accessed = w->fencing = 0;
    w->synced = w->in_step = own;
    memcpy(tcc_p_slot(p, s, p->aside, 0), tcc_p_slot(p, s, WARP, 0),
           p->n_slots * sizeof(tcc_pvalue));
    memcpy(tcc_p_seen(p, s, p->aside), tcc_p_seen(p, s, WARP), p->stride * sizeof(uint32_t));
    tcc_p_seen(p, s, p->aside)[WARP] = of->synced;
    if (tcc_p_fenced(p, s, p->aside)[WARP] > of->synced)
        tcc_p_fenced(p, s, p->aside)[WARP] = of->synced;
    if (of->apart)
        tcc_p_passed(p, s, p->aside)[WARP] = of->in_step;
    tcc_p_seen(p, s, p->aside)[p->aside] = tcc_p_passed(p, s, p->aside)[p->aside] = own;
    tcc_p_fenced(p, s, p->aside)[p->aside] = 0;
    s->has_begun = true;
    tcc_p_tick(p, s, WARP);
}

/* The lanes by which it is done, of warp 0; no others do it. */
static bool find_lanes(const tcc_protocol *p, const tcc_pstate *s, unsigned warp,
                       const tcc_pinst *in, tcc_lane_mask *lanes)
{
    const tcc_pvalue *by = tcc_p_slot(p, s, warp, in->by);
    int64_t v;
    *lanes = 0;
    for (unsigned l = 0; l < p->n_lanes; l++) {
        if (!tcc_p_lane(p, by, l, &v))
            return false;
        *lanes |= v ? UINT64_C(1) << l : 0;
    }
    return warp == WARP || !*lanes;
}

/* A warp passes what is set aside; its lanes wait there as they do at an mbarrier. */
static tcc_presult pass(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_lane_mask lanes;
    if (!find_lanes(p, s, warp, in, &lanes))
        return give_up(p);
    if (warp == WARP) {
        if (known_count(p, s, WARP, BEGUN) > s->passed)
            return give_up(p);
        set_count(p, s, WARP, PASSED, ++s->passed);
        if (!w->apart)
            w->in_step = tcc_p_passed(p, s, WARP)[WARP];
        w->apart |= lanes;
        tcc_p_tick(p, s, WARP);
    }
    return TCC_P_NEXT;
}

tcc_phook *tcc_p_aside_hook(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    const tcc_pwarp *w = &s->warps[warp];
    if (warp == WARP && !s->has_begun && w->depth == 1 && in->alone && in->op->n_regions)
        begin(p, s);
    return in->aside && warp != p->aside ? pass : NULL;
}

void tcc_p_aside_skip(const tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_pframe *f = &w->frames[w->depth - 1];
    for (; f->pc < f->code->n; f->pc++)
        if (warp == p->aside ? f->code->insts[f->pc].alone : f->code->insts[f->pc].others)
            return;
}

bool tcc_p_aside_begin(tcc_protocol *p, tcc_pstate *s)
{
    if (!tcc_p_aside_is_in_order(p, s))
        return false;
    set_count(p, s, p->aside, BEGUN, ++s->begun);
    return true;
}
