/* cluster: what the CTAs of a cluster share, a barrier and each other's shared memory; and what
 * must be complete when they end.
 *
 * PTX ISA, "barrier.cluster", "mapa". A CTA's shared memory exists only as long as one of its
 * threads runs: accesses by others must come before that.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/machine.h"

/* ---- positions of threads --------------------------------------------------------------- */

tcc_outcome tcc_eval_nvvm_clusterid(tcc_thread *t, const tcc_inst *in)
{
    const tcc_cta *c = t->warp->cta;
    return tcc_give(t, in, c->id / c->cluster->n_ctas);
}

tcc_outcome tcc_eval_nvvm_nclusterid(tcc_thread *t, const tcc_inst *in)
{
    const tcc_cluster *k = t->warp->cta->cluster;
    return tcc_give(t, in, k->n_launched / k->n_ctas);
}

tcc_outcome tcc_eval_nvvm_cluster_ctarank(tcc_thread *t, const tcc_inst *in)
{
    return tcc_give(t, in, t->warp->cta->rank);
}

tcc_outcome tcc_eval_nvvm_mapa(tcc_thread *t, const tcc_inst *in)
{
    const tcc_cta *c = t->warp->cta;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        int64_t address = tcc_lane_int(t, in, 0, l), rank = tcc_lane_int(t, in, 1, l);
        if (rank < 0 || rank >= c->cluster->n_ctas)
            return TCC_WRONG(t->x, in->op, "nvvm.mapa: there is no CTA %lld in a cluster of %u",
                             (long long)rank, c->cluster->n_ctas);
        if (!tcc_smem_at(t->warp->cta, in->op, address, 1, 1))
            return TCC_FAILED;
        tcc_cells(t, in->results[0])[l].i = address + (rank + 1) * TCC_CLUSTER_WINDOW;
    }
    return TCC_NEXT;
}

tcc_cta *tcc_cluster_find(tcc_thread *t, const tcc_op *op, int64_t *address)
{
    tcc_cluster *k = t->x->cluster;
    int64_t rank = *address / TCC_CLUSTER_WINDOW - 1;
    if (rank < 0 || rank >= k->n_ctas) {
        TCC_WRONG(t->x, op, "%s: %lld is not an address of the cluster as given by nvvm.mapa",
                  tcc_op_info_get(op->code)->name, (long long)*address);
        return NULL;
    }
    *address %= TCC_CLUSTER_WINDOW;
    return &k->ctas[rank];
}

/* ---- the barrier of a cluster ---------------------------------------------------------- */

static unsigned running_warps(const tcc_cluster *k)
{
    unsigned n = 0;
    for (size_t i = 0; i < k->x->threads.len; i++)
        n += k->x->threads.data[i]->depth > 0;
    return n;
}

void tcc_cluster_end_phase(tcc_cluster *k)
{
    tcc_order_join(k, &k->barrier.done, &k->barrier.arrivals);
    k->barrier.arrived = 0;
    k->barrier.phase++;
}

/* Warps that have ended are not waited for: they cannot have arrived in this phase and not waited.
 */
static void end_phase(tcc_cluster *k)
{
    if (!k->barrier.arrived || k->barrier.arrived < running_warps(k))
        return;
    tcc_cluster_end_phase(k);
}

/* A relaxed arrival tells of nothing but the mbarriers that a fence.mbarrier_init has released (PTX ISA,
 * "membar/fence"). */
static void tell_of_barriers(tcc_warp *w)
{
    for (size_t i = 0; i < w->cta->n_mbarriers; i++) {
        tcc_mbarrier *b = &w->cta->mbarriers[i];
        if (b->init.warp == w && b->fence_clock && !b->told_in)
            b->told_in = w->cluster_phase;
    }
}

tcc_outcome tcc_eval_nvvm_cluster_arrive(tcc_thread *t, const tcc_inst *in)
{
    tcc_cluster *k = t->x->cluster;
    tcc_warp *w = t->warp;
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    if (w->cluster_phase)
        return TCC_WRONG(
            t->x, in->op,
            "nvvm.cluster.arrive for the second time, with no nvvm.cluster.wait between");
    w->cluster_phase = k->barrier.phase + 1;
    if (tcc_attr_int(&in->op->attrs, "relaxed", 0)) {
        tell_of_barriers(w);
    } else {
        tcc_lanes_tell(w, t->mask, &k->barrier.arrivals);
        w->order.seen[w->actor]++;
    }
    k->barrier.arrived++;
    end_phase(k);
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_cluster_wait(tcc_thread *t, const tcc_inst *in)
{
    tcc_cluster *k = t->x->cluster;
    tcc_warp *w = t->warp;
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    if (!w->cluster_phase)
        return TCC_WRONG(t->x, in->op, "nvvm.cluster.wait with no nvvm.cluster.arrive before");
    end_phase(k);
    if (k->barrier.phase < w->cluster_phase)
        return TCC_WAIT(t, NULL, "at the cluster's barrier: %u of %u warps have arrived",
                        k->barrier.arrived, running_warps(k));
    tcc_lanes_learn(w, t->mask, &k->barrier.done);
    w->met_cluster = w->cluster_phase;
    w->cluster_phase = 0;
    return TCC_NEXT;
}

/* ---- what others do in a CTA's shared memory ------------------------------------------- */

static bool has_ended(const tcc_cta *c)
{
    for (unsigned w = 0; w < c->cluster->n_warps; w++)
        if (c->warps[w].thread->depth)
            return false;
    return true;
}

bool tcc_reach(tcc_thread *t, const tcc_cta *c, const tcc_op *op)
{
    if (c == t->warp->cta || !has_ended(c))
        return true;
    TCC_WRONG(t->x, op, "%s reaches into the shared memory of CTA %lld, which has ended",
              tcc_op_info_get(op->code)->name, (long long)c->id);
    return false;
}

void tcc_remember_arrival(tcc_thread *t, tcc_cta *c, const tcc_op *op)
{
    const tcc_warp *w = t->warp;
    tcc_smem_access access = {
        .op = op, .warp = w, .actor = (uint16_t)w->actor, .clock = w->order.seen[w->actor]};
    size_t i = 0;
    if (c == w->cta)
        return;
    while (i < c->remote.len && c->remote.data[i].actor != access.actor)
        i++;
    if (i == c->remote.len)
        TCC_PUSH(t->x->run->scratch, &c->remote, access);
    c->remote.data[i] = access;
}

tcc_cta *tcc_cluster_store(tcc_thread *t, const tcc_op *op, int64_t *address)
{
    tcc_cta *c = tcc_cluster_find(t, op, address);
    if (!c || !tcc_reach(t, c, op))
        return NULL;
    if (c != t->warp->cta && !t->warp->met_cluster) {
        TCC_WRONG(t->x, op, "%s reaches into the shared memory of CTA %lld, which may not have begun",
                  tcc_op_info_get(op->code)->name, (long long)c->id);
        return NULL;
    }
    tcc_remember_arrival(t, c, op);
    return c;
}

/* ---- the end --------------------------------------------------------------------------- */

static const char *cta_name(const tcc_cta *c)
{
    return c->cluster->one_of_many
               ? tcc_arena_printf(c->cluster->x->run->scratch, "CTA %lld", (long long)c->id)
               : "the CTA";
}

/* Whether groups with copies to global memory follow the first n. */
static bool has_copies_after(const tcc_warp *w, size_t n)
{
    while (n < w->bulk.groups.len && !w->bulk.groups.data[n].left)
        n++;
    return n < w->bulk.groups.len;
}

static tcc_status check_warp(const tcc_warp *w)
{
    tcc_run *run = w->cta->cluster->x->run;
    unsigned id = w->thread->id;
    const tcc_warpgroup *g = &w->cta->groups[id / TCC_WARPGROUP_WARPS];
    if (w->open_group || w->thread->waited < w->last_group) {
        const tcc_op *op = w->issued ? g->mmas.data[w->issued - 1].op : NULL;
        return TCC_FAIL(run, TCC_ERR_INTERNAL, op, "%s ends before its MMAs", tcc_warp_name(w));
    }
    if (w->resized < g->resizes.len)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, g->resizes.data[w->resized].op,
                        "%s ends without this, which others of its warpgroup ran",
                        tcc_warp_name(w));
    if (w->bulk.open.left || has_copies_after(w, w->order.seen[tcc_actor_copies(w->cta, id)]))
        return TCC_FAIL(run, TCC_ERR_INTERNAL, w->bulk.op,
                        "%s ends while its copies may still be reading shared memory",
                        tcc_warp_name(w));
    if (w->copying.open || w->order.seen[tcc_actor_groups(w->cta, id)] < w->copying.groups.len)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, w->copying.op,
                        "%s ends while its copies may still be writing shared memory", tcc_warp_name(w));
    return TCC_OK;
}

/* The last warpgroup may be of fewer than four warps, and then runs no setmaxnreg. */
static tcc_status check_last_warpgroup(const tcc_cta *c)
{
    const tcc_warp *last = &c->warps[c->cluster->n_warps - 1];
    const tcc_warpgroup *g = &c->groups[last->thread->id / TCC_WARPGROUP_WARPS];
    if (!last->resized || c->cluster->n_warps % TCC_WARPGROUP_WARPS == 0)
        return TCC_OK;
    return TCC_FAIL(c->cluster->x->run, TCC_ERR_INTERNAL, g->resizes.data[0].op,
                    "%s is in an incomplete warpgroup", tcc_warp_name(last));
}

/* `seen` is what the threads of the CTA have seen at their end. */
static tcc_status check_barrier(const tcc_cta *c, const tcc_mbarrier *b, const uint32_t *seen)
{
    tcc_run *run = c->cluster->x->run;
    if (b->address < 0) /* invalidated, when nothing was left to do */
        return TCC_OK;
    long long at = b->address - TCC_SMEM_BASE;
    if (b->tx)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, b->arrived,
                        "%s ends while the mbarrier at byte %lld expects %lld bytes that no copy transfers",
                        cta_name(c), at, (long long)b->tx);
    if (b->copy.op && seen[b->copy.actor] < b->copy.clock)
        return TCC_FAIL(
            run, TCC_ERR_INTERNAL, b->copy.op,
            "%s ends while copies may still be writing shared memory: no warp has waited for "
            "phase %u of the mbarrier at byte %lld",
            cta_name(c), b->copy.clock - b->before - 1, at);
    return TCC_OK;
}

static tcc_status check_cta(const tcc_cta *c, tcc_order *end)
{
    const tcc_cluster *k = c->cluster;
    tcc_status status = TCC_OK;
    tcc_order_clear(k, end);
    for (unsigned w = 0; w < k->n_warps && !status; w++) {
        status = check_warp(&c->warps[w]);
        tcc_order_join(k, end, &c->warps[w].order);
    }
    status = status ? status : check_last_warpgroup(c);
    for (size_t i = 0; i < c->n_mbarriers && !status; i++)
        status = check_barrier(c, &c->mbarriers[i], end->seen);
    for (size_t i = 0; i < c->remote.len && !status; i++) {
        const tcc_smem_access *a = &c->remote.data[i];
        if (end->seen[a->actor] < a->clock)
            status =
                TCC_FAIL(k->x->run, TCC_ERR_INTERNAL, a->op,
                         "%s of %s may still reach into the shared memory of %s when that "
                         "ends",
                         tcc_op_info_get(a->op->code)->name, tcc_warp_name(a->warp), cta_name(c));
    }
    return status;
}

tcc_status tcc_cluster_check_end(tcc_cluster *k)
{
    tcc_status status = TCC_OK;
    for (unsigned r = 0; r < k->n_ctas; r++)
        for (unsigned w = 0; w < k->n_warps; w++)
            tcc_lanes_sync(&k->ctas[r].warps[w]);
    for (unsigned r = 0; r < k->n_ctas && !status; r++)
        status = check_cta(&k->ctas[r], &k->end);
    return status;
}
