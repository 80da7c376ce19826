/* cluster: CTAs of a cluster, followed together: as one with so many times the warps.
 *
 * Each has its own warps, mbarriers, named barriers, registers, and its own window of addresses. What copies
 * and arrivals do in another's window they do there as in their own, so nothing else is needed to see who
 * comes after whom. What the other files ask for is which CTA a warp or an address is of.
 *
 * A copy to several CTAs is one to each. An mbarrier's phase does not end before all its copies were started:
 * so a warp that waits for it comes after those that started them, and knows which phases had ended for them. In
 * memory that orders nothing but the copy.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/cluster.h"

bool tcc_p_is_own(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in, int64_t byte)
{
    if (p->ctas == 1 || tcc_p_cta_at(byte) == (int64_t)tcc_p_cta(p, warp))
        return true;
    tcc_p_wrong(p, s, warp, in, "%s: the address is in another CTA, and must be in its own",
                tcc_op_info_get(in->op->code)->name);
    return false;
}

tcc_pvalue tcc_p_mapped(const tcc_protocol *p, unsigned warp, const tcc_pvalue *address, const tcc_pvalue *rank)
{
    int64_t cta = tcc_p_cta(p, warp);
    bool known = tcc_p_is_exact(address) && tcc_p_is_exact(rank) && rank->v >= 0 && rank->v < p->ctas &&
                 tcc_p_cta_at(address->v - TCC_SMEM_BASE) == cta;
    return known ? tcc_p_known(address->v + (rank->v - cta) * TCC_P_WINDOW) : (tcc_pvalue){.kind = TCC_P_UNKNOWN};
}

/* ---- the cluster's barrier ------------------------------------------------------------------- */

/* Whether all mbarriers that a warp has initialised may be used by others once it has arrived. */
static bool are_released(const tcc_pstate *s, unsigned warp)
{
    for (unsigned b = 0; b < s->n_barriers; b++)
        if (s->barriers[b].init_warp == warp && !s->barriers[b].fence_clock)
            return false;
    return true;
}

bool tcc_p_is_split(const tcc_op *op)
{
    bool arrives = op->code == TCC_OP_nvvm_cluster_arrive;
    const tcc_op *other = arrives ? op->next : op->prev;
    return !other || other->code != (arrives ? TCC_OP_nvvm_cluster_wait : TCC_OP_nvvm_cluster_arrive);
}

/* Whether a warp has yet to wait for a phase that has ended: what the barrier knows is of that phase, so others do not
 * arrive in the next before. */
static bool is_left(const tcc_protocol *p, const tcc_pstate *s)
{
    bool left = true;
    for (unsigned w = 0; w < p->n_warps; w++)
        left &= !s->warps[w].depth || !s->warps[w].arrived || s->warps[w].arrived > s->named[p->n_named - 1].phase;
    return left;
}

/* It is the last of the named ones, of all warps. */
tcc_presult tcc_p_nvvm_cluster_arrive(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    /* A relaxed arrival tells of mbarriers that were released, and of no access: where there was none, it is as any. */
    if (tcc_attr_int(&in->op->attrs, "relaxed", 0)) {
        if (!tcc_only_initialises_before(in->op))
            return tcc_p_unsupported(p, in->op,
                                     "nvvm.cluster.arrive {relaxed} after more than the initialisation of mbarriers");
        if (!are_released(s, warp))
            return tcc_p_wrong(p, s, warp, in,
                               "nvvm.cluster.arrive {relaxed} with no fence.mbarrier_init since an mbarrier was "
                               "initialised");
    }
    if (s->warps[warp].arrived)
        return tcc_p_wrong(p, s, warp, in,
                           "nvvm.cluster.arrive for the second time, with no nvvm.cluster.wait between");
    if (!is_left(p, s))
        return tcc_p_wait_for(s, warp, TCC_P_ANYTHING);
    int64_t threads = (int64_t)p->ctas * p->cta_warps * p->n_lanes;
    bool waits = !tcc_p_is_split(in->op);
    return tcc_p_come_to(p, s, warp, in, p->n_named - 1, threads, waits) ? TCC_P_NEXT : TCC_P_FAILED;
}

tcc_presult tcc_p_nvvm_cluster_wait(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    unsigned id = p->n_named - 1, entity = tcc_p_named(p, id);
    if (!tcc_p_is_split(in->op))
        return tcc_p_leave_barrier(p, s, warp);
    if (!w->arrived)
        return tcc_p_wrong(p, s, warp, in, "nvvm.cluster.wait with no nvvm.cluster.arrive before");
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    if (s->named[id].phase < w->arrived)
        return tcc_p_wait_for(s, warp, entity);
    if (!tcc_p_learn(p, s, warp, in->op, entity))
        return TCC_P_FAILED;
    tcc_p_tick(p, s, warp);
    w->arrived = 0;
    return TCC_P_NEXT;
}

/* Whether nothing is done in other CTAs between a wait and the arrival in front of it. */
static bool follows_its_arrival(const tcc_op *wait)
{
    const tcc_op *op = wait->prev;
    while (op && op->code != TCC_OP_nvvm_cluster_arrive && !op->n_regions &&
           (!tcc_op_does(op->code, TCC_CLUSTER) || tcc_op_info_get(op->code)->flags & TCC_PURE))
        op = op->prev;
    return op && op->code == TCC_OP_nvvm_cluster_arrive;
}

bool tcc_p_ends_together(const tcc_func *f)
{
    const tcc_op *wait = f->body->last->prev;
    while (wait && (wait->code == TCC_OP_nvvm_warp_sync || tcc_op_does(wait->code, TCC_HINT) ||
                    tcc_op_info_get(wait->code)->flags & TCC_PURE))
        wait = wait->prev;
    return wait && wait->code == TCC_OP_nvvm_cluster_wait && follows_its_arrival(wait);
}

/* ---- what reaches other CTAs ------------------------------------------------------------------- */

/* Whether others than who initialised it may use the mbarrier. */
static bool is_fenced(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, const tcc_pbarrier *b)
{
    if (b->fence_clock &&
        tcc_p_knows(p, s, warp, s->warps[warp].mask, b->init_warp, b->init_lane, b->fence_clock))
        return true;
    tcc_p_wrong(p, s, warp, in, "%s of an mbarrier with no fence.mbarrier_init since it was initialised",
                tcc_op_info_get(in->op->code)->name);
    return false;
}

/* The number of the mbarrier that operand i is the address of; -1, reported: it may not be used from afar. */
static int barrier_from_afar(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned i)
{
    int64_t address;
    if (!tcc_p_operand(p, s, warp, in, i, &address))
        return -1;
    int b = tcc_p_barrier_of_cluster(p, s, warp, in, address);
    return b >= 0 && is_fenced(p, s, warp, in, &s->barriers[b]) ? b : -1;
}

static tcc_presult arrive_at(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    int64_t bytes = 0;
    int b = barrier_from_afar(p, s, warp, in, 0);
    if (b < 0 || (in->op->n_operands > 1 && !tcc_p_operand(p, s, warp, in, 1, &bytes)))
        return TCC_P_FAILED;
    tcc_pbarrier *bar = &s->barriers[b];
    bool afar = tcc_p_cta(p, warp) != tcc_p_cta_at(bar->address - TCC_SMEM_BASE);
    if (!p->ends_together && afar)
        bar->last_afar = bar->phase + 1;
    w->loaded_word &= !tcc_has_scope_of_cluster(in->op) && !tcc_word_before(in->op);
    if (w->loaded_word && afar)
        return tcc_p_wrong(p, s, warp, in,
                           "arrives at an mbarrier of another CTA after a load that need not be done: needs "
                           "nvvm.after, or scope = cluster");
    tcc_presult r = tcc_p_arrive(p, s, warp, in, (unsigned)b, bytes, (unsigned)__builtin_popcountll(w->mask), w->mask);
    tcc_p_tick(p, s, warp);
    return r;
}

static tcc_presult arrive(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return p->symmetry ? tcc_p_arrive_by_image(p, s, warp, in, arrive_at) : arrive_at(p, s, warp, in);
}

tcc_presult tcc_p_nvvm_mbarrier_arrive_cluster(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return arrive(p, s, warp, in);
}

tcc_presult tcc_p_nvvm_mbarrier_arrive_expect_tx_cluster(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                                         const tcc_pinst *in)
{
    return arrive(p, s, warp, in);
}

/* Who waits for barrier b comes after the copy was started, and after phases that had ended by then: of barriers on
 * which no copy completes, for the end of a copy is more than that. */
static void tell_phases(tcc_protocol *p, tcc_pstate *s, unsigned warp, tcc_lane_mask lane, unsigned b)
{
    const uint32_t *from = tcc_p_seen(p, s, tcc_p_entity(p, s, warp, lane));
    uint32_t *to = tcc_p_seen(p, s, tcc_p_arrivals(p, b));
    for (unsigned i = 0; i < s->n_barriers; i++) {
        unsigned actor = tcc_p_barrier_actor(p, i), home = tcc_p_home_clock(p, actor) - tcc_p_barrier_actor(p, 0);
        if (!s->barriers[home].last_copy && to[actor] < from[actor])
            to[actor] = from[actor];
    }
}

static tcc_presult load(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned lane)
{
    int64_t ctas, own = tcc_p_cta(p, warp);
    if (!tcc_p_operand(p, s, warp, in, 3, &ctas))
        return TCC_P_FAILED;
    if (ctas < 1 || ctas >> p->ctas)
        return tcc_p_wrong(p, s, warp, in, "a copy to CTAs %#llx of a cluster of %u", (unsigned long long)ctas,
                           p->ctas);
    for (unsigned c = 0; c < p->ctas; c++) {
        if (!(ctas >> c & 1))
            continue;
        int64_t further = ((int64_t)c - own) * TCC_P_WINDOW;
        tcc_presult r = p->symmetry ? tcc_p_load_by_image(p, s, warp, in, lane, c, tell_phases)
                                    : tcc_p_load_to(p, s, warp, in, lane, further, tell_phases);
        if (r != TCC_P_NEXT)
            return r;
    }
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_tma_load_multicast(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return tcc_p_by_lanes(p, s, warp, in, load);
}

/* A copy of a word, not through the async proxy. */
tcc_presult tcc_p_nvvm_st_async_word(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    enum { BYTES = 4 };
    const tcc_pwarp *w = &s->warps[warp];
    int64_t address;
    if (p->starts_apart)
        return tcc_p_wrong(p, s, warp, in, "%s with no cluster barrier before it: another CTA may not have begun",
                           tcc_op_info_get(in->op->code)->name);
    int b = barrier_from_afar(p, s, warp, in, 1);
    if (b < 0 || !tcc_p_operand(p, s, warp, in, 0, &address))
        return TCC_P_FAILED;
    tcc_pbarrier *bar = &s->barriers[b];
    int64_t byte = address - TCC_SMEM_BASE, at = byte & (TCC_P_WINDOW - 1);
    bool there = byte >= 0 && tcc_p_cta_at(byte) == tcc_p_cta_at(bar->address - TCC_SMEM_BASE);
    if (!there || address % BYTES || at > p->cta_bytes - BYTES)
        return tcc_p_wrong(p, s, warp, in, "a word at byte %lld, which is not aligned, or not where its mbarrier is",
                           (long long)at);
    if (w->mask & (w->mask - 1))
        return tcc_p_unsupported(p, in->op, "%s by more than one lane", tcc_op_info_get(in->op->code)->name);
    const int64_t key[] = {7, address, BYTES};
    uint64_t *print = tcc_p_footprint(p, key, sizeof key);
    const tcc_prange range = {byte, byte + BYTES};
    if (!*print && !tcc_p_footprint_set(p, s, print, &range, 1))
        return TCC_P_FAILED;
    const tcc_paccess by = {.warp = warp,
                            .actor = tcc_p_barrier_actor(p, (unsigned)b),
                            .lanes = w->mask,
                            .clock = bar->phase + 1,
                            .write = true,
                            .mark = TCC_P_ORDINARY};
    if (!tcc_p_access(p, s, in, &by, *print) || !tcc_p_keep_word(p, s, warp, in, 2, address) ||
        !tcc_p_phase_is_certain(p, s, warp, in, (unsigned)b))
        return TCC_P_FAILED;
    bar->issued += BYTES;
    bar->last_copy = bar->phase + 1;
    bar->words_from_afar |= tcc_p_cta(p, warp) != tcc_p_cta_at(byte);
    tell_phases(p, s, warp, by.lanes, (unsigned)b);
    tcc_p_log(p, s, warp, in, b, BYTES);
    return tcc_p_end_phase(p, s, warp, in, (unsigned)b) ? TCC_P_NEXT : TCC_P_FAILED;
}
