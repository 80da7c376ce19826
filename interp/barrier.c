/* barrier: mbarriers in shared memory, and the named barriers of a CTA.
 *
 * PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier": a phase completes
 * when no arrival is pending and the transaction count is zero; try_wait.parity holds when the
 * phase before the current one has that parity, and before the first phase for parity 1.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include "interp/machine.h"
#include "ir/cluster.h"

static const int64_t NO_ADDRESS = INT64_MIN / 2; /* of a barrier that was invalidated */
enum { MAX_ARRIVALS = (1 << 20) - 1, MAX_TX = (1 << 20) - 1 };

static long long offset_of(const tcc_mbarrier *b)
{
    return b->address - TCC_SMEM_BASE;
}

/* ---- mbarriers ------------------------------------------------------------------------- */

static tcc_mbarrier *find(tcc_cta *c, int64_t address)
{
    for (size_t i = 0; i < c->n_mbarriers; i++)
        if (c->mbarriers[i].address == address)
            return &c->mbarriers[i];
    return NULL;
}

/* Whether the thread has met the cluster since b was initialised, and was told by a relaxed arrival. */
static bool is_told(const tcc_thread *t, const tcc_mbarrier *b)
{
    return b->told_in && t->warp->met_cluster >= b->told_in;
}

/* The barrier of CTA c at an address, that a thread may use; NULL, reported, when there is none. */
static tcc_mbarrier *mbarrier_at(tcc_thread *t, tcc_cta *c, const tcc_op *op, int64_t address)
{
    tcc_exec *x = t->x;
    tcc_mbarrier *b = find(c, address);
    const tcc_accessor by = tcc_warp_accessor(t, tcc_acting_lanes(t));
    const char *name = tcc_op_info_get(op->code)->name;
    if (!b && address >= TCC_CLUSTER_WINDOW)
        TCC_WRONG(x, op, "%s: the address is one of the cluster's, and must be one of its own CTA",
                  name);
    else if (!b)
        TCC_WRONG(x, op, "%s: there is no mbarrier at byte %lld of shared memory", name,
                  (long long)(address - TCC_SMEM_BASE));
    else if (!is_told(t, b) && !tcc_comes_after(&by, b->init.actor, b->init.clock, b->init.lanes)) {
        TCC_WRONG(x, op, "%s: %s may still be initialising the mbarrier at byte %lld", name,
                  tcc_warp_name(b->init.warp), offset_of(b));
        tcc_note_access(c->cluster, &b->init, "initialises");
    } else
        return b;
    return NULL;
}

/* The same for what is not of this CTA's own threads: the copy engine and other CTAs. */
static bool is_fenced(const tcc_thread *t, const tcc_op *op, const tcc_mbarrier *b, const char *by)
{
    tcc_exec *x = t->x;
    tcc_accessor lanes = tcc_warp_accessor(t, tcc_acting_lanes(t));
    if (b->fence_clock &&
        (is_told(t, b) || tcc_comes_after(&lanes, b->init.actor, b->fence_clock, b->init.lanes)))
        return true;
    TCC_WRONG(x, op,
              "the mbarrier at byte %lld is used by %s with no fence.mbarrier_init since it was "
              "initialised",
              offset_of(b), by);
    tcc_note_access(x->cluster, &b->init, "initialises");
    return false;
}

/* Gives a barrier its clocks, which were another's perhaps. */
static void clear_orders(const tcc_cluster *k, tcc_mbarrier *b)
{
    tcc_order *orders[] = {&b->arrivals, &b->done[0], &b->done[1]};
    for (int i = 0; i < 3; i++) {
        if (!orders[i]->seen)
            *orders[i] = tcc_order_create(k);
        tcc_order_clear(k, orders[i]);
    }
}

tcc_outcome tcc_eval_nvvm_mbarrier_init(tcc_thread *t, const tcc_inst *in)
{
    tcc_exec *x = t->x;
    tcc_cta *c = t->warp->cta;
    int64_t address = tcc_operand_int(t, in, 0), count = tcc_operand_int(t, in, 1);
    if (t->mask & (t->mask - 1))
        return TCC_WRONG(x, in->op, "several lanes initialise one mbarrier");
    if (count < 1 || count > MAX_ARRIVALS)
        return TCC_WRONG(x, in->op, "an mbarrier of %lld arrivals", (long long)count);
    const tcc_mbarrier *other = find(c, address);
    if (other) {
        TCC_WRONG(x, in->op, "the mbarrier at byte %lld is initialised twice", offset_of(other));
        tcc_note_access(c->cluster, &other->init, "initialises");
        return TCC_FAILED;
    }
    tcc_mbarrier *b = find(c, NO_ADDRESS);
    if (!b && c->n_mbarriers == TCC_MAX_MBARRIERS)
        return TCC_WRONG(x, in->op, "more than %d mbarriers", TCC_MAX_MBARRIERS);
    tcc_accessor by = tcc_warp_accessor(t, t->mask);
    t->warp->unsynced |= t->mask;
    if (!tcc_smem_at(c, in->op, address, TCC_MBARRIER_BYTES, TCC_MBARRIER_BYTES) ||
        !tcc_smem_take(c, in->op, &by, address))
        return TCC_FAILED;
    if (!b)
        b = &c->mbarriers[c->n_mbarriers++];
    *b = (tcc_mbarrier){.address = address,
                        .expected = (uint32_t)count,
                        .pending = (uint32_t)count,
                        .init = {.op = in->op,
                                 .warp = t->warp,
                                 .lanes = t->mask,
                                 .actor = (uint16_t)by.actor,
                                 .clock = by.clock},
                        .before = b->before,
                        .arrivals = b->arrivals,
                        .done = {b->done[0], b->done[1]}};
    clear_orders(c->cluster, b);
    return TCC_NEXT;
}

/* The place in the table can be taken again, by a barrier that counts on from its clock. */
tcc_outcome tcc_eval_nvvm_mbarrier_inval(tcc_thread *t, const tcc_inst *in)
{
    tcc_cta *c = t->warp->cta;
    if (t->mask & (t->mask - 1))
        return TCC_WRONG(t->x, in->op, "several lanes invalidate one mbarrier");
    tcc_mbarrier *b = mbarrier_at(t, c, in->op, tcc_operand_int(t, in, 0));
    if (!b)
        return TCC_FAILED;
    unsigned actor = tcc_actor_mbarrier(c, (size_t)(b - c->mbarriers));
    if (b->pending != b->expected || b->tx || b->in_flight)
        return TCC_WRONG(t->x, in->op,
                         "the mbarrier at byte %lld is invalidated in the middle of phase %u: %u "
                         "arrivals and %lld bytes are missing",
                         offset_of(b), b->phase, b->pending, (long long)b->tx);
    tcc_accessor by = tcc_warp_accessor(t, t->mask);
    for (unsigned w = 0; w < c->cluster->n_warps; w++)
        if (!tcc_comes_after(&by, tcc_actor_warp(c, w), b->users[w], t->warp->used))
            return TCC_WRONG(t->x, in->op,
                             "the mbarrier at byte %lld is invalidated while %s may still be using "
                             "it",
                             offset_of(b), tcc_warp_name(&c->warps[w]));
    if (by.after->seen[actor] < b->before + b->phase)
        return TCC_WRONG(t->x, in->op,
                         "the mbarrier at byte %lld is invalidated and %s has not waited for phase "
                         "%u",
                         offset_of(b), tcc_warp_name(t->warp), b->phase - 1);
    tcc_smem_give_back(c, in->op, &by, b->address);
    t->warp->unsynced |= t->mask;
    t->warp->accessed |= t->mask;
    b->before += b->phase;
    b->address = NO_ADDRESS;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_fence_mbarrier_init(tcc_thread *t, const tcc_inst *in)
{
    (void)in;
    tcc_cta *c = t->warp->cta;
    for (size_t i = 0; i < c->n_mbarriers; i++)
        if (c->mbarriers[i].init.warp == t->warp && !c->mbarriers[i].fence_clock &&
            !(c->mbarriers[i].init.lanes & ~t->mask))
            c->mbarriers[i].fence_clock = t->warp->order.seen[t->warp->actor];
    return TCC_NEXT;
}

static tcc_outcome end_phase(tcc_cta *c, const tcc_op *op, tcc_mbarrier *b)
{
    if (b->pending || b->tx)
        return TCC_NEXT;
    if (b->in_flight) {
        TCC_WRONG(
            c->cluster->x, op,
            "a phase of the mbarrier at byte %lld ends while %u of its copies are in flight: it expected too few bytes",
            offset_of(b), b->in_flight);
        tcc_note_access(c->cluster, &b->copy, "copies");
        return TCC_FAILED;
    }
    unsigned actor = tcc_actor_mbarrier(c, (size_t)(b - c->mbarriers));
    tcc_order *done = &b->done[b->phase % 2];
    b->phase++;
    b->pending = b->expected;
    b->arrivals.seen[actor] = b->arrivals.fenced[actor] = b->before + b->phase;
    tcc_order_join(c->cluster, done, &b->arrivals);
    return TCC_NEXT;
}

/* The lanes that arrive by the same instruction where lane l does. */
static tcc_lane_mask arriving_with(const tcc_thread *t, const tcc_inst *in, unsigned l)
{
    tcc_lane_mask lanes = 0;
    for (unsigned i = 0; i < t->x->lanes; i++)
        if (t->mask >> i & 1 && tcc_lane_int(t, in, 0, i) == tcc_lane_int(t, in, 0, l))
            lanes |= UINT64_C(1) << i;
    return lanes;
}

static tcc_outcome arrive(tcc_thread *t, tcc_cta *c, const tcc_inst *in, tcc_mbarrier *b,
                          int64_t bytes, unsigned lane)
{
    const tcc_op *op = in->op;
    if (!b->pending)
        return TCC_WRONG(t->x, op,
                         "the mbarrier at byte %lld gets more than %u arrivals in a phase",
                         offset_of(b), b->expected);
    b->tx += bytes;
    if (bytes < 0 || b->tx > MAX_TX)
        return TCC_WRONG(t->x, op, "the mbarrier at byte %lld expects %lld bytes", offset_of(b),
                         (long long)b->tx);
    b->pending--;
    b->arrived = op;
    tcc_lanes_tell(t->warp, arriving_with(t, in, lane), &b->arrivals);
    return end_phase(c, op, b);
}

/* Every lane arrives by itself; what the warp does from now on is not released. */
static tcc_outcome arrive_lanes(tcc_thread *t, const tcc_inst *in)
{
    const tcc_mbarrier *first = NULL;
    uint32_t phase = 0;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        tcc_cta *c = t->warp->cta;
        int64_t bytes = in->op->n_operands > 1 ? tcc_lane_int(t, in, 1, l) : 0;
        tcc_mbarrier *b = mbarrier_at(t, c, in->op, tcc_lane_int(t, in, 0, l));
        if (b && !first)
            first = b, phase = b->phase;
        if (b && b == first && b->phase != phase) /* which of them counts for which is chance */
            return TCC_WRONG(t->x, in->op,
                             "lanes of one instruction arrive at the mbarrier at byte %lld in "
                             "several phases, of %u arrivals each",
                             offset_of(b), b->expected);
        if (!b || arrive(t, c, in, b, bytes, l) == TCC_FAILED)
            return TCC_FAILED;
        b->users[t->id] = TCC_IN_USE;
    }
    t->warp->used |= t->mask;
    t->warp->order.seen[t->warp->actor]++;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_mbarrier_arrive(tcc_thread *t, const tcc_inst *in)
{
    return arrive_lanes(t, in);
}

tcc_outcome tcc_eval_nvvm_mbarrier_arrive_expect_tx(tcc_thread *t, const tcc_inst *in)
{
    return arrive_lanes(t, in);
}

/* Whether what a warp has loaded is known elsewhere to have been when it arrives there. */
static bool is_loaded(tcc_thread *t, const tcc_inst *in, const tcc_cta *c)
{
    if (tcc_has_scope_of_cluster(in->op) || tcc_word_before(in->op) == t->warp->word)
        t->warp->word = NULL;
    if (!t->warp->word || c == t->warp->cta)
        return true;
    TCC_WRONG(t->x, in->op,
              "arrives at an mbarrier of another CTA after a load that need not be done: needs nvvm.after, or scope = "
              "cluster");
    return false;
}

static tcc_outcome arrive_in_cluster(tcc_thread *t, const tcc_inst *in)
{
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        int64_t address = tcc_lane_int(t, in, 0, l), bytes = in->op->n_operands > 1 ? tcc_lane_int(t, in, 1, l) : 0;
        tcc_cta *c = tcc_cluster_find(t, in->op, &address);
        tcc_mbarrier *b = c ? mbarrier_at(t, c, in->op, address) : NULL;
        if (!b || !is_fenced(t, in->op, b, "the cluster") || !tcc_reach(t, c, in->op) || !is_loaded(t, in, c) ||
            arrive(t, c, in, b, bytes, l) == TCC_FAILED)
            return TCC_FAILED;
        tcc_remember_arrival(t, c, in->op);
    }
    t->warp->order.seen[t->warp->actor]++;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_mbarrier_arrive_cluster(tcc_thread *t, const tcc_inst *in)
{
    return arrive_in_cluster(t, in);
}

tcc_outcome tcc_eval_nvvm_mbarrier_arrive_expect_tx_cluster(tcc_thread *t, const tcc_inst *in)
{
    return arrive_in_cluster(t, in);
}

tcc_mbarrier *tcc_mbarrier_of_copy(tcc_thread *t, tcc_cta *c, const tcc_op *op, int64_t address)
{
    tcc_mbarrier *b = mbarrier_at(t, c, op, address);
    return b && is_fenced(t, op, b, "the copy engine") ? b : NULL;
}

tcc_outcome tcc_mbarrier_complete(tcc_cta *c, const tcc_op *op, tcc_mbarrier *b, int64_t n)
{
    b->tx -= n;
    b->in_flight--;
    return end_phase(c, op, b);
}

/* What the transaction count says. */
static const char *missing_bytes(const tcc_exec *x, const tcc_mbarrier *b)
{
    const char *what = b->tx < 0      ? "more bytes have arrived than were expected"
                       : b->in_flight ? "bytes are missing, with copies in flight"
                       : b->tx        ? "bytes are missing, with no copy in flight"
                                      : "bytes are missing";
    return tcc_arena_printf(x->run->scratch, "%lld %s", llabs(b->tx), what);
}

static tcc_outcome wait_for_phase(tcc_thread *t, const tcc_mbarrier *b, int64_t parity)
{
    return TCC_WAIT(t, b->arrived,
                    "for parity %lld of the mbarrier at byte %lld: in phase %u, %u arrivals and %s",
                    (long long)parity, offset_of(b), b->phase, b->pending, missing_bytes(t->x, b));
}

/* Whether the phase whose end a lane has waited for is the one that the wait is for in every execution. The lane may
 * be here as soon as those phases have ended that it knows of: of these and the next one, the wait is for the last
 * that has the parity. */
static bool is_intended(tcc_thread *t, const tcc_inst *in, tcc_cta *c, const tcc_mbarrier *b, unsigned lane)
{
    tcc_accessor by = tcc_warp_accessor(t, UINT64_C(1) << lane);
    uint32_t seen = by.after->seen[tcc_actor_mbarrier(c, (size_t)(b - c->mbarriers))];
    int64_t known = seen > b->before ? seen - b->before : 0, ended = (int64_t)b->phase - 1;
    int64_t meant = (known - ended) % 2 ? known - 1 : known;
    if (ended == meant)
        return true;
    const char *then = "at once";
    if (meant == known)
        then = tcc_arena_printf(t->x->run->scratch, "at the end of phase %lld", (long long)meant);
    TCC_WRONG(t->x, in->op,
              "passes the mbarrier at byte %lld at the end of phase %lld, but may be here when %lld phases have ended, "
              "and then passes %s",
              offset_of(b), (long long)ended, (long long)known, then);
    return false;
}

/* Whether a wait's scope has in it whoever stores what it is for: st.async's complete_tx releases at the cluster's scope,
 * and try_wait acquires at the CTA's unless told otherwise (PTX ISA, "mbarrier.try_wait", "st.async"). */
static bool is_wide_enough(tcc_thread *t, const tcc_inst *in, const tcc_mbarrier *b)
{
    if (!b->words_from_afar || tcc_has_scope_of_cluster(in->op))
        return true;
    TCC_WRONG(t->x, in->op,
              "waits at the CTA's scope for the mbarrier at byte %lld, on which words of another CTA complete: needs "
              "scope = cluster",
              offset_of(b));
    return false;
}

tcc_outcome tcc_eval_nvvm_mbarrier_wait(tcc_thread *t, const tcc_inst *in)
{
    tcc_cta *c = t->warp->cta;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        tcc_mbarrier *b = mbarrier_at(t, c, in->op, tcc_lane_int(t, in, 0, l));
        int64_t parity = tcc_lane_int(t, in, 1, l);
        if (!b)
            return TCC_FAILED;
        if (parity != 0 && parity != 1)
            return TCC_WRONG(t->x, in->op, "waits for parity %lld", (long long)parity);
        if (b->phase % 2 == (uint32_t)parity)
            return wait_for_phase(t, b, parity);
        if (!is_intended(t, in, c, b, l) || !is_wide_enough(t, in, b))
            return TCC_FAILED;
        if (b->phase)
            tcc_lanes_learn(t->warp, t->mask, &b->done[parity]);
        b->users[t->id] = TCC_IN_USE;
        t->warp->used |= t->mask;
    }
    return TCC_NEXT;
}

/* ---- named barriers -------------------------------------------------------------------- */

static void release_all(tcc_cta *c, int id)
{
    tcc_named_barrier *b = &c->named[id];
    b->arrivals.seen[tcc_actor_named(c, id)] = ++b->phase;
    for (unsigned i = 0; i < c->cluster->n_warps; i++) {
        tcc_warp *w = &c->warps[i];
        if (w->waits_at != id || w->released) /* by a phase before: it has not gone on yet */
            continue;
        tcc_order_join(c->cluster, &w->order, &b->arrivals);
        w->order.seen[w->actor]++;
        w->released = true;
    }
    tcc_order_clear(c->cluster, &b->arrivals);
    b->threads = b->arrived = 0;
}

tcc_outcome tcc_eval_nvvm_barrier(tcc_thread *t, const tcc_inst *in)
{
    tcc_warp *w = t->warp;
    tcc_cta *c = w->cta;
    int64_t id = tcc_operand_int(t, in, 0), threads = tcc_operand_int(t, in, 1);
    if (w->waits_at < 0) {
        if (!tcc_converged(t, in))
            return TCC_FAILED;
        if (id < 0 || id >= TCC_NAMED_BARRIERS || threads < TCC_WARP_LANES ||
            threads % TCC_WARP_LANES)
            return TCC_WRONG(t->x, in->op, "barrier %lld of %lld threads", (long long)id,
                             (long long)threads);
        tcc_named_barrier *b = &c->named[id];
        if (b->threads && b->threads != threads)
            return TCC_WRONG(t->x, in->op, "barrier %lld is of %lld threads and of %lld",
                             (long long)id, (long long)b->threads, (long long)threads);
        tcc_lanes_sync(w);
        if (w->order.seen[tcc_actor_named(c, id)] != b->phase)
            return TCC_WRONG(t->x, in->op,
                             "%s may reach barrier %lld together with other warps than here",
                             tcc_warp_name(w), (long long)id);
        if (!b->arrivals.seen)
            b->arrivals = tcc_order_create(c->cluster);
        tcc_order_join(c->cluster, &b->arrivals, &w->order);
        b->threads = threads;
        b->arrived += TCC_WARP_LANES;
        w->waits_at = (int)id;
        w->released = false;
        if (b->arrived == threads)
            release_all(c, (int)id);
    }
    if (!w->released)
        return TCC_WAIT(t, NULL, "at barrier %lld: %lld of %lld threads have arrived", (long long)id,
                        (long long)c->named[id].arrived, (long long)threads);
    w->waits_at = -1;
    return TCC_NEXT;
}
