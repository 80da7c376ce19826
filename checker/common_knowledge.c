/* common_knowledge: what all warps know, so that no barrier can tell it to any of them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

static void keep_least(uint32_t *least, uint32_t clock)
{
    *least = clock < *least ? clock : *least;
}

static bool is_last(const tcc_pinst *in, const tcc_pinst *end)
{
    return in + 1 == end || (in + 2 == end && in[1].op->code == TCC_OP_scf_yield);
}

/* Whether all that a warp still does is to leave branches. */
static bool is_at_end(const tcc_pwarp *w)
{
    bool at_end = true;
    for (uint32_t d = 0; d < w->depth && at_end; d++) {
        const tcc_pframe *f = &w->frames[d];
        const tcc_pinst *end = f->code->insts + f->code->n;
        bool inside = d + 1 < w->depth;
        at_end = !(f->of && f->of->op->code == TCC_OP_scf_for) &&
                 (inside ? is_last(f->code->insts + f->pc, end) && !tcc_p_may_part(f + 1) : f->pc == f->code->n);
    }
    return at_end;
}

/* Whether all lanes of a warp synchronize after an op of a block before they do anything else. */
static bool meet_behind(const tcc_pinst *in, const tcc_pinst *end)
{
    while (++in < end && !in->op->n_regions && !in->tensor && !tcc_op_does(in->op->code, TCC_P_FOLLOWED))
        ;
    return in < end && (in->op->code == TCC_OP_nvvm_warp_sync || in->op->code == TCC_OP_nvvm_barrier ||
                        (in->op->code == TCC_OP_nvvm_cluster_arrive && !tcc_p_is_split(in->op)));
}

/* The lanes that do something more: often one that fills stages, in a branch with nothing behind it; or, if `unmet`,
 * those that do so before all meet. */
static tcc_lane_mask find_alive(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, bool unmet)
{
    const tcc_pwarp *w = &s->warps[warp];
    tcc_lane_mask alive = tcc_p_all_lanes(p);
    for (uint32_t d = 0; d + 1 < w->depth; d++) {
        const tcc_pframe *f = &w->frames[d], *inner = f + 1;
        const tcc_pinst *in = &f->code->insts[f->pc], *end = f->code->insts + f->code->n;
        bool branch = in->op->code == TCC_OP_scf_if;
        bool is_behind = !is_last(in, end) && !(unmet && f->mask == tcc_p_all_lanes(p) && meet_behind(in, end));
        if (is_behind || (f->of && f->of->op->code == TCC_OP_scf_for) || inner->may ||
            (branch && inner->region == 0 && in->regions[1].n))
            break;
        alive = inner->mask;
    }
    return is_at_end(w) ? 0 : warp == p->aside ? alive & p->aside_lanes : alive;
}

/* Adds what an entity knows, of a warp or a part of it: what comes after its own past are its lanes' steps. */
static void add(const tcc_protocol *p, const tcc_pstate *s, uint32_t *common, unsigned e, unsigned warp,
                uint32_t synced)
{
    const uint32_t *row = s->clocks + (size_t)e * p->stride;
    for (size_t at = 0; at < p->stride; at += TCC_P_BLOCK)
        tcc_p_keep_earlier(common + at, row + at);
    keep_least(&common[warp], synced);
    keep_least(&common[p->n_actors + warp], synced);
}

static tcc_lane_mask lanes_of_parts(const tcc_pstate *s, unsigned warp)
{
    tcc_lane_mask lanes = 0;
    for (unsigned i = 0; i < s->n_parts; i++)
        lanes |= s->parts[i].warp == warp ? s->parts[i].lanes : 0;
    return lanes;
}

bool tcc_p_goes_on(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    bool part = entity >= p->n_entities;
    unsigned i = part ? s->parts[entity - p->n_entities].warp : entity;
    const tcc_pwarp *warp = &s->warps[i];
    if (!warp->depth)
        return i == p->aside && !s->has_begun;
    tcc_lane_mask lanes = find_alive(p, s, i, false);
    return lanes & (part ? s->parts[entity - p->n_entities].lanes : ~lanes_of_parts(s, i));
}

/* Whether all lanes of a warp wait for a barrier at which somebody has yet to arrive. */
static bool awaits_others(const tcc_protocol *p, const tcc_pstate *s, unsigned warp)
{
    const tcc_pwarp *w = &s->warps[warp];
    uint32_t waits_for = s->waits_for[warp];
    unsigned barrier = (waits_for - p->n_warps) / 2;
    if (!(s->blocked >> warp & 1) || w->mask != tcc_p_all_lanes(p) || lanes_of_parts(s, warp))
        return false;
    if (w->waits_at >= 0)
        return !w->released;
    return waits_for >= p->n_warps && barrier < s->n_barriers && waits_for == tcc_p_done(p, barrier) &&
           s->barriers[barrier].pending;
}

uint64_t tcc_p_told(const tcc_protocol *p, const tcc_pstate *s)
{
    uint64_t told = 0;
    bool acts = false; /* somebody does, who is not told */
    for (unsigned i = 0; i < p->n_warps && p->aside == TCC_P_NO_WARP && !p->amd; i++) {
        const tcc_pwarp *w = &s->warps[i];
        tcc_lane_mask acting = w->depth ? find_alive(p, s, i, true) : 0;
        bool waits = w->depth && awaits_others(p, s, i), rest = acting && !(acting & ~lanes_of_parts(s, i));
        told |= (uint64_t)(waits || rest) << i;
        acts |= acting && !waits;
    }
    return acts ? told : 0;
}

/* What all know who do something more, warps and parts of them: waiting for a barrier that knows no more tells
 * none of them anything, and every arrival passes it on. Of its own past a warp hands on, and is told, what
 * all of its lanes come after. */
void tcc_p_common(const tcc_protocol *p, const tcc_pstate *s, uint32_t *common)
{
    tcc_p_common_of(p, s, UINT64_MAX, s->told, common);
    tcc_p_symmetry_common(p, common);
}

void tcc_p_common_of(const tcc_protocol *p, const tcc_pstate *s, uint64_t warps, uint64_t told, uint32_t *common)
{
    for (unsigned i = 0; i < p->stride; i++)
        common[i] = INT32_MAX;
    for (unsigned i = 0; i < p->n_warps; i++) {
        const tcc_pwarp *warp = &s->warps[i];
        if (!(warps >> i & 1) || (!warp->depth && (i != p->aside || s->has_begun)))
            continue;
        bool is_told = told >> i & 1;
        tcc_lane_mask alive = find_alive(p, s, i, is_told), rest = alive;
        if (warp->depth && (!alive || (is_told && !lanes_of_parts(s, i))))
            continue;
        for (unsigned k = 0; k < s->n_parts; k++) {
            if (s->parts[k].warp != i || !(s->parts[k].lanes & alive))
                continue;
            add(p, s, common, p->n_entities + k, i, s->parts[k].synced);
            rest &= ~s->parts[k].lanes;
        }
        if (rest)
            add(p, s, common, i, i, warp->synced);
        if (p->groups)
            keep_least(&common[tcc_p_bulk_actor(p, i)], warp->met_groups);
        if (warp->fencing)
            keep_least(&common[p->n_actors + i], warp->fenced);
        if (warp->apart)
            keep_least(&common[p->n_actors + p->n_warps + i], warp->in_step);
    }
}
