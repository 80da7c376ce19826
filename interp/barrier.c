/* barrier: mbarriers in shared memory, and the named barriers of a CTA.
 *
 * PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier": a phase completes
 * when no arrival is pending and the transaction count is zero; try_wait.parity holds when the
 * phase before the current one has that parity, and before the first phase for parity 1.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/machine.h"

enum { MBARRIER_BYTES = 8, MAX_ARRIVALS = (1 << 20) - 1, MAX_TX = (1 << 20) - 1 };

static int64_t offset_of(const tcc_mbarrier *b)
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

tcc_mbarrier *tcc_mbarrier_at(tcc_thread *t, const tcc_op *op, int64_t address)
{
    tcc_mbarrier *b = find(t->x->cta, address);
    const char *name = tcc_op_info_get(op->code)->name;
    if (!b)
        TCC_WRONG(t->x, op, "%s: there is no mbarrier at byte %lld of shared memory", name,
                  (long long)(address - TCC_SMEM_BASE));
    else if (t->warp->order.seen[b->init_warp] < b->init_clock)
        TCC_WRONG(t->x, op, "%s: warp %u may still be initialising the mbarrier at byte %lld", name,
                  b->init_warp, (long long)offset_of(b));
    else
        return b;
    return NULL;
}

tcc_outcome tcc_eval_nvvm_mbarrier_init(tcc_thread *t, const tcc_inst *in)
{
    tcc_exec *x = t->x;
    tcc_cta *c = x->cta;
    int64_t address = tcc_operand_int(t, in, 0), count = tcc_operand_int(t, in, 1);
    if (t->mask & (t->mask - 1))
        return TCC_WRONG(x, in->op, "several lanes initialise one mbarrier");
    if (count < 1 || count > MAX_ARRIVALS)
        return TCC_WRONG(x, in->op, "an mbarrier of %lld arrivals", (long long)count);
    if (find(c, address))
        return TCC_WRONG(x, in->op, "the mbarrier at byte %lld is initialised twice",
                         (long long)(address - TCC_SMEM_BASE));
    if (c->n_mbarriers == TCC_MAX_MBARRIERS)
        return TCC_WRONG(x, in->op, "more than %d mbarriers", TCC_MAX_MBARRIERS);
    tcc_accessor by = tcc_warp_accessor(t);
    if (!tcc_smem_at(x, in->op, address, MBARRIER_BYTES, MBARRIER_BYTES) ||
        !tcc_smem_take(x, in->op, &by, address))
        return TCC_FAILED;
    tcc_mbarrier *b = &c->mbarriers[c->n_mbarriers++];
    tcc_mbarrier kept = *b; /* its clocks, of another CTA's barrier */
    *b = (tcc_mbarrier){.address = address,
                        .expected = (uint32_t)count,
                        .pending = (uint32_t)count,
                        .init_warp = by.actor,
                        .init_clock = by.clock,
                        .arrivals = kept.arrivals,
                        .done = {kept.done[0], kept.done[1]}};
    tcc_order *orders[] = {&b->arrivals, &b->done[0], &b->done[1]};
    for (int i = 0; i < 3; i++) {
        if (!orders[i]->seen)
            *orders[i] = tcc_order_create(c);
        tcc_order_clear(c, orders[i]);
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_fence_mbarrier_init(tcc_thread *t, const tcc_inst *in)
{
    (void)in;
    tcc_cta *c = t->x->cta;
    for (size_t i = 0; i < c->n_mbarriers; i++)
        if (c->mbarriers[i].init_warp == t->id)
            c->mbarriers[i].fenced = true;
    return TCC_NEXT;
}

static tcc_outcome end_phase(tcc_exec *x, const tcc_op *op, tcc_mbarrier *b)
{
    if (b->pending || b->tx)
        return TCC_NEXT;
    if (b->in_flight)
        return TCC_WRONG(x, op,
                         "a phase of the mbarrier at byte %lld ends while %u of its copies are on "
                         "their way: it expected too few bytes",
                         (long long)offset_of(b), b->in_flight);
    tcc_cta *c = x->cta;
    unsigned actor = tcc_actor_mbarrier(c, (size_t)(b - c->mbarriers));
    tcc_order *done = &b->done[b->phase % 2];
    b->phase++;
    b->pending = b->expected;
    b->arrivals.seen[actor] = b->arrivals.fenced[actor] = b->phase;
    tcc_order_join(c, done, &b->arrivals);
    return TCC_NEXT;
}

static tcc_outcome arrive(tcc_thread *t, const tcc_op *op, int64_t address, int64_t bytes)
{
    tcc_mbarrier *b = tcc_mbarrier_at(t, op, address);
    if (!b)
        return TCC_FAILED;
    if (!b->pending)
        return TCC_WRONG(t->x, op,
                         "the mbarrier at byte %lld gets more than %u arrivals in a phase",
                         (long long)offset_of(b), b->expected);
    b->tx += bytes;
    if (bytes < 0 || b->tx > MAX_TX)
        return TCC_WRONG(t->x, op, "the mbarrier at byte %lld expects %lld bytes",
                         (long long)offset_of(b), (long long)b->tx);
    b->pending--;
    tcc_order_join(t->x->cta, &b->arrivals, &t->warp->order);
    return end_phase(t->x, op, b);
}

/* Every lane arrives by itself; what the warp does from now on is not released. */
static tcc_outcome arrive_lanes(tcc_thread *t, const tcc_inst *in)
{
    for (unsigned l = 0; l < TCC_WARP_LANES; l++) {
        if (!(t->mask >> l & 1))
            continue;
        int64_t bytes = in->op->n_operands > 1 ? tcc_lane_int(t, in, 1, l) : 0;
        if (arrive(t, in->op, tcc_lane_int(t, in, 0, l), bytes) == TCC_FAILED)
            return TCC_FAILED;
    }
    t->warp->order.seen[t->id]++;
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

tcc_outcome tcc_mbarrier_complete(tcc_exec *x, const tcc_op *op, tcc_mbarrier *b, int64_t n)
{
    b->tx -= n;
    b->in_flight--;
    return end_phase(x, op, b);
}

tcc_outcome tcc_eval_nvvm_mbarrier_wait(tcc_thread *t, const tcc_inst *in)
{
    tcc_cta *c = t->x->cta;
    for (unsigned l = 0; l < TCC_WARP_LANES; l++) {
        if (!(t->mask >> l & 1))
            continue;
        tcc_mbarrier *b = tcc_mbarrier_at(t, in->op, tcc_lane_int(t, in, 0, l));
        int64_t parity = tcc_lane_int(t, in, 1, l);
        if (!b)
            return TCC_FAILED;
        if (parity != 0 && parity != 1)
            return TCC_WRONG(t->x, in->op, "waits for parity %lld", (long long)parity);
        if (b->phase % 2 == (uint32_t)parity)
            return TCC_WAIT(t, in,
                            "warp %u waits for parity %lld of the mbarrier at byte %lld: in phase "
                            "%u, %u arrivals and %lld bytes are missing",
                            t->id, (long long)parity, (long long)offset_of(b), b->phase, b->pending,
                            (long long)b->tx);
        if (b->phase)
            tcc_order_join(c, &t->warp->order, &b->done[parity]);
    }
    return TCC_NEXT;
}

/* ---- named barriers -------------------------------------------------------------------- */

static void release_all(tcc_exec *x, int id)
{
    tcc_cta *c = x->cta;
    tcc_named_barrier *b = &c->named[id];
    for (unsigned w = 0; w < c->n_warps; w++)
        if (c->warps[w].waits_at == id) {
            tcc_order_join(c, &c->warps[w].order, &b->arrivals);
            c->warps[w].order.seen[w]++;
            c->warps[w].released = true;
        }
    tcc_order_clear(c, &b->arrivals);
    b->threads = b->arrived = 0;
}

tcc_outcome tcc_eval_nvvm_barrier(tcc_thread *t, const tcc_inst *in)
{
    tcc_warp *w = t->warp;
    tcc_cta *c = t->x->cta;
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
        if (!b->arrivals.seen)
            b->arrivals = tcc_order_create(c);
        tcc_order_join(c, &b->arrivals, &w->order);
        b->threads = threads;
        b->arrived += TCC_WARP_LANES;
        w->waits_at = (int)id;
        w->released = false;
        if (b->arrived == threads)
            release_all(t->x, (int)id);
    }
    if (!w->released)
        return TCC_WAIT(t, in, "warp %u waits at barrier %lld: %lld of %lld threads have come",
                        t->id, (long long)id, (long long)c->named[id].arrived, (long long)threads);
    w->waits_at = -1;
    return TCC_NEXT;
}
