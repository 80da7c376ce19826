/* lanes: what lanes of a warp know apart from the others.
 *
 * Lanes run at their own pace (CUDA C++ Programming Guide, "Independent Thread Scheduling"): what
 * one has waited for the others do not know, nor what it has written. A warp's order is what all of
 * its lanes know; lanes that know more have a part of their own, until a barrier that orders memory
 * among them makes it everybody's: bar.warp.sync, bar.sync. Shuffles, elect.sync and other
 * instructions that wait for the lanes do not (PTX ISA, "bar.warp.sync", "shfl.sync").
 *
 * Of its own accesses a lane knows its own, and those of others up to `synced`. The entry of the
 * warp itself in its order is its clock, and in those of its parts nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"

static tcc_lane_mask all_lanes(const tcc_warp *w)
{
    return tcc_all_lanes(w->cta->cluster->x);
}

tcc_lane_mask tcc_acting_lanes(const tcc_thread *t)
{
    return t->x->lane < 0 ? t->mask : UINT64_C(1) << t->x->lane;
}

/* The part that has all of the lanes; NULL when there is none. */
static tcc_lanes_part *part_of(const tcc_warp *w, tcc_lane_mask lanes)
{
    for (size_t i = 0; i < w->n_parts; i++)
        if (!(lanes & ~w->parts.data[i].lanes))
            return &w->parts.data[i];
    return NULL;
}

tcc_accessor tcc_warp_accessor(const tcc_thread *t, tcc_lane_mask lanes)
{
    const tcc_warp *w = t->warp;
    const tcc_lanes_part *p = part_of(w, lanes);
    return (tcc_accessor){.warp = w,
                          .lanes = lanes,
                          .actor = w->actor,
                          .clock = w->order.seen[w->actor],
                          .synced = p ? p->synced : w->synced,
                          .after = p ? &p->order : &w->order};
}

bool tcc_comes_after(const tcc_accessor *by, unsigned actor, uint32_t clock, tcc_lane_mask lanes)
{
    const tcc_warp *w = by->warp;
    bool one = !(lanes & (lanes - 1));
    if (actor == tcc_actor_groups(w->cta, w->thread->id)) /* which each lane waits for by itself */
        return by->after->seen[actor] >= clock && (w->copying.met >= clock || (one && lanes == by->lanes));
    if (actor != w->actor)
        return by->after->seen[actor] >= clock;
    return w->in_step || by->synced >= clock || (one && lanes == by->lanes);
}

uint32_t tcc_own_fence(const tcc_warp *w, tcc_lane_mask lanes)
{
    return w->fencing & ~lanes ? w->fenced : w->order.fenced[w->actor];
}

/* ---- parts ----------------------------------------------------------------------------- */

static void copy_order(const tcc_cluster *k, tcc_order *to, const tcc_order *from)
{
    memcpy(to->seen, from->seen, k->n_actors * sizeof *to->seen);
    memcpy(to->fenced, from->fenced, k->n_actors * sizeof *to->fenced);
}

static void add_part(tcc_warp *w, tcc_lane_mask lanes, uint32_t synced, const tcc_order *order)
{
    tcc_cluster *k = w->cta->cluster;
    if (w->n_parts == w->parts.len)
        TCC_PUSH(k->x->run->scratch, &w->parts, (tcc_lanes_part){.order = tcc_order_create(k)});
    tcc_lanes_part *p = &w->parts.data[w->n_parts++];
    p->lanes = lanes;
    p->synced = synced;
    copy_order(k, &p->order, order);
}

/* Makes parts of which each has all or none of the lanes. */
static void divide(tcc_warp *w, tcc_lane_mask lanes)
{
    tcc_lane_mask rest = lanes;
    for (size_t i = 0, n = w->n_parts; i < n; i++) {
        tcc_lane_mask both = w->parts.data[i].lanes & lanes;
        rest &= ~both;
        if (!both || both == w->parts.data[i].lanes)
            continue;
        tcc_lanes_part p = w->parts.data[i];
        w->parts.data[i].lanes &= ~both;
        add_part(w, both, p.synced, &p.order);
    }
    if (rest)
        add_part(w, rest, w->synced, &w->order);
}

/* Parts that know no more than all lanes do are none. */
static void unite(tcc_warp *w)
{
    size_t left = 0, bytes = w->cta->cluster->n_actors * sizeof(uint32_t);
    for (size_t i = 0; i < w->n_parts; i++) {
        tcc_lanes_part *p = &w->parts.data[i];
        p->order.seen[w->actor] = w->order.seen[w->actor];
        p->order.fenced[w->actor] = w->order.fenced[w->actor];
        if (p->synced == w->synced && !memcmp(p->order.seen, w->order.seen, bytes) &&
            !memcmp(p->order.fenced, w->order.fenced, bytes))
            continue;
        tcc_lanes_part kept = w->parts.data[left];
        w->parts.data[left++] = *p;
        w->parts.data[i] = kept;
    }
    w->n_parts = left;
}

/* Changes what lanes know. */
typedef void order_change(const tcc_warp *w, tcc_order *order, uint32_t *synced, const void *data);
static void change_lanes(tcc_warp *w, tcc_lane_mask lanes, order_change *change, const void *data)
{
    if (lanes == all_lanes(w))
        change(w, &w->order, &w->synced, data);
    else
        divide(w, lanes);
    for (size_t i = 0; i < w->n_parts; i++)
        if (!(w->parts.data[i].lanes & ~lanes))
            change(w, &w->parts.data[i].order, &w->parts.data[i].synced, data);
    if (w->n_parts)
        unite(w);
}

/* ---- learning and telling -------------------------------------------------------------- */

static void join(const tcc_warp *w, tcc_order *order, uint32_t *synced, const void *data)
{
    const tcc_order *from = data;
    tcc_order_join(w->cta->cluster, order, from);
    if (*synced < from->seen[w->actor])
        *synced = from->seen[w->actor];
}

void tcc_lanes_learn(tcc_warp *w, tcc_lane_mask lanes, const tcc_order *from)
{
    change_lanes(w, lanes, join, from);
}

typedef struct knowledge {
    unsigned actor;
    uint32_t clock;
} knowledge;

static void end_of(const tcc_warp *w, tcc_order *order, uint32_t *synced, const void *data)
{
    const knowledge *k = data;
    (void)w, (void)synced;
    if (order->seen[k->actor] < k->clock)
        order->seen[k->actor] = order->fenced[k->actor] = k->clock;
}

void tcc_lanes_learn_end(tcc_warp *w, tcc_lane_mask lanes, unsigned actor, uint32_t clock)
{
    change_lanes(w, lanes, end_of, &(knowledge){actor, clock});
}

/* Barriers that lanes have used: from now on the warp's clock includes that. */
static void settle_uses(tcc_warp *w)
{
    tcc_cta *c = w->cta;
    unsigned id = w->thread->id;
    for (size_t b = 0; w->used && b < c->n_mbarriers; b++)
        if (c->mbarriers[b].users[id] == TCC_IN_USE)
            c->mbarriers[b].users[id] = w->order.seen[w->actor];
    w->used = 0;
}

static void tell(const tcc_warp *w, tcc_lane_mask lanes, const tcc_order *order, uint32_t clock,
                 tcc_order *to)
{
    uint32_t seen = to->seen[w->actor], fenced = to->fenced[w->actor];
    uint32_t own = tcc_own_fence(w, lanes);
    own = own < clock ? own : clock;
    tcc_order_join(w->cta->cluster, to, order);
    to->seen[w->actor] = clock > seen ? clock : seen;
    to->fenced[w->actor] = own > fenced ? own : fenced;
}

void tcc_lanes_tell(tcc_warp *w, tcc_lane_mask lanes, tcc_order *to)
{
    bool all = !(w->unsynced & ~lanes);
    uint32_t clock = w->order.seen[w->actor];
    tcc_lane_mask rest = lanes;
    for (size_t i = 0; i < w->n_parts; i++) {
        const tcc_lanes_part *p = &w->parts.data[i];
        if (p->lanes & lanes)
            tell(w, lanes, &p->order, all ? clock : p->synced, to);
        rest &= ~p->lanes;
    }
    if (rest)
        tell(w, lanes, &w->order, all ? clock : w->synced, to);
    if (!(w->used & ~lanes))
        settle_uses(w);
}

void tcc_lanes_sync(tcc_warp *w)
{
    uint32_t *clock = &w->order.seen[w->actor], before = *clock;
    for (size_t i = 0; i < w->n_parts; i++)
        tcc_order_join(w->cta->cluster, &w->order, &w->parts.data[i].order);
    w->n_parts = 0;
    settle_uses(w);
    w->unsynced = w->fencing = 0;
    w->fenced = w->order.fenced[w->actor];
    w->copying.met = w->order.seen[tcc_actor_groups(w->cta, w->thread->id)];
    w->synced = *clock = before;
    ++*clock;
}

tcc_outcome tcc_eval_nvvm_warp_sync(tcc_thread *t, const tcc_inst *in)
{
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    tcc_lanes_sync(t->warp);
    return TCC_NEXT;
}
