/* elect: which lane of a warp nvvm.elect picks.
 *
 * That is the hardware's choice, the same each time (PTX ISA, "elect.sync"): any lane, lane 0 too. It need not be
 * followed for each. Lanes of a warp that nothing tells apart could be renamed: then one stands for all. So at first a
 * warp's lanes are taken to be alike, and its last one is picked. While executions are followed it is noted what tells
 * lanes apart, in a warp that picks one:
 *   a branch that some of them take, but for what the choice itself decides;
 *   numbers that differ by lane, where they are combined with the choice, where only some lanes access memory by them,
 *   or arrive at mbarriers, and where the order of accesses is that of a lane's own.
 * If lanes were told apart that were taken to be alike, the kernel is followed again, one lane of each kind being picked
 * in turn, in each warp by itself: which kind is a number that is chosen like others (explore.c).
 *
 * Numbers that depend on the choice are marked; of the others from which they are computed it is noted how they tell
 * lanes apart, so what depends on both does not do so further.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

/* Kinds of lanes, by lane, from 0 on without a gap. */
typedef struct kinds {
    uint8_t of[TCC_MAX_LANES], n;
} kinds;

struct tcc_pelections {
    kinds taken[TCC_P_WARPS + 1]; /* to be alike, while this attempt goes on; */
    kinds found[TCC_P_WARPS + 1]; /* to be alike so far; finer */
    bool elect[TCC_P_WARPS + 1];  /* whether a warp picks a lane; */
    int64_t symbols[TCC_P_WARPS + 1]; /* by warp: stands for the kind of lane elected, if not all are alike */
};

void tcc_p_elections_create(tcc_protocol *p)
{
    p->elections = TCC_NEW(p->scratch, struct tcc_pelections);
    for (unsigned w = 0; w <= TCC_P_WARPS; w++)
        p->elections->taken[w].n = p->elections->found[w].n = 1;
}

/* The warp whose lanes these are. */
static unsigned warp_of(const tcc_protocol *p, unsigned warp)
{
    return warp == p->aside ? 0 : warp;
}

/* ---- what tells lanes apart ------------------------------------------------------------- */

static void tell_apart(const tcc_protocol *p, kinds *k, const int64_t *numbers)
{
    kinds finer = {.n = 0};
    for (unsigned l = 0; l < p->n_lanes; l++) {
        unsigned like = 0;
        while (like < l && (k->of[like] != k->of[l] || numbers[like] != numbers[l]))
            like++;
        finer.of[l] = like < l ? finer.of[like] : finer.n++;
    }
    *k = finer;
}

void tcc_p_lanes_differ(const tcc_protocol *p, unsigned warp, const tcc_pvalue *v)
{
    int64_t numbers[TCC_MAX_LANES];
    if (p->amd || v->kind != TCC_P_LANES || v->offset == TCC_P_ELECTED)
        return;
    for (unsigned l = 0; l < p->n_lanes; l++)
        tcc_p_lane(p, v, l, &numbers[l]);
    tell_apart(p, &p->elections->found[warp_of(p, warp)], numbers);
}

void tcc_p_lane_differs(const tcc_protocol *p, unsigned warp, unsigned lane)
{
    int64_t numbers[TCC_MAX_LANES] = {0};
    numbers[lane] = 1;
    if (!p->amd)
        tell_apart(p, &p->elections->found[warp_of(p, warp)], numbers);
}

void tcc_p_all_lanes_differ(const tcc_protocol *p, unsigned warp)
{
    for (unsigned l = 1; l < p->n_lanes; l++)
        tcc_p_lane_differs(p, warp, l);
}

void tcc_p_lanes_differ_by(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    bool some = s->warps[warp].mask != tcc_p_all_lanes(p);
    if (!some && !tcc_op_does(in->op->code, TCC_BARRIER))
        return;
    for (unsigned i = 0; i < in->op->n_operands; i++)
        if (in->operands[i] != TCC_P_NO_SLOT)
            tcc_p_lanes_differ(p, warp, tcc_p_slot(p, s, warp, in->operands[i]));
    for (unsigned i = 0; in->tensor && i < in->place->n_terms; i++)
        tcc_p_lanes_differ(p, warp, tcc_p_slot(p, s, warp, in->place->terms[i].slot));
}

/* ---- the choice -------------------------------------------------------------------------- */

/* Which kind of lane it is in this execution; false if that must be chosen. */
static bool find_kind(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op, unsigned n, unsigned *kind)
{
    const tcc_pvalue of = tcc_p_known(warp);
    int64_t *symbol = &p->elections->symbols[warp];
    unsigned n_records = s->n_records;
    *kind = 0;
    if (n == 1)
        return true;
    *symbol = tcc_p_symbol(p, "elected", &of, 1).v;
    int r = tcc_p_record_of(p, s, warp, op, *symbol, true), more = r < 0 ? -1 : 1;
    if (r >= 0 && s->n_records > n_records)
        s->records[r].most = n - 1;
    while (more > 0 && *kind < n - 1 && (more = tcc_p_is_more(p, s, r, *kind)) > 0)
        ++*kind;
    return more >= 0;
}

static unsigned lane_of(const tcc_protocol *p, const kinds *k, unsigned kind)
{
    unsigned lane = p->n_lanes - 1;
    while (k->of[lane] != kind)
        lane--;
    return lane;
}

const char *tcc_p_elected_text(const tcc_protocol *p, const tcc_precord *r)
{
    unsigned w = 0;
    while (w < TCC_P_WARPS && !(p->elections->taken[w].n > 1 && p->elections->symbols[w] == (int64_t)r->symbol))
        w++;
    return tcc_arena_printf(p->scratch, "warp %u elects lane %u", w,
                            lane_of(p, &p->elections->taken[w], (unsigned)r->least));
}

tcc_presult tcc_p_elect(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, tcc_pvalue *out)
{
    unsigned of = warp_of(p, warp), kind;
    const kinds *k = &p->elections->taken[of];
    int64_t lanes[TCC_MAX_LANES] = {0};
    *out = (tcc_pvalue){.kind = TCC_P_UNKNOWN};
    if (!s) /* what is computed beforehand does not depend on it */
        return TCC_P_NEXT;
    p->elections->elect[of] = true;
    if (!find_kind(p, s, of, in->op, k->n, &kind))
        return p->status ? TCC_P_FAILED : TCC_P_CHOICE;
    lanes[lane_of(p, k, kind)] = 1;
    *out = tcc_p_lanes(p, lanes);
    out->offset = TCC_P_ELECTED;
    return TCC_P_NEXT;
}

void tcc_p_elect_passes_on(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                           tcc_pvalue *v)
{
    bool depends = false;
    for (unsigned i = 0; i < in->op->n_operands; i++)
        depends |= in->operands[i] != TCC_P_NO_SLOT && tcc_p_is_elected(tcc_p_slot(p, s, warp, in->operands[i]));
    for (unsigned i = 0; i < in->op->n_operands && depends; i++)
        if (in->operands[i] != TCC_P_NO_SLOT)
            tcc_p_lanes_differ(p, warp, tcc_p_slot(p, s, warp, in->operands[i]));
    if (depends && v->kind == TCC_P_LANES)
        v->offset = TCC_P_ELECTED;
}

/* ---- attempts ---------------------------------------------------------------------------- */

bool tcc_p_elections_hold(const tcc_protocol *p)
{
    struct tcc_pelections *e = p->elections;
    bool hold = true;
    for (unsigned w = 0; w <= TCC_P_WARPS; w++) {
        if (!e->elect[w] || e->found[w].n == e->taken[w].n)
            continue;
        e->taken[w] = e->found[w];
        hold = false;
    }
    return hold;
}

bool tcc_p_lanes_are_alike(const tcc_protocol *p)
{
    bool alike = true;
    for (unsigned w = 0; w <= TCC_P_WARPS; w++)
        alike &= p->elections->taken[w].n == 1;
    return alike;
}
