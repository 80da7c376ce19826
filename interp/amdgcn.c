/* amdgcn: RDNA's instructions except those of buffers (buffer.c) and matrices (wmma.c).
 *
 * LDS: a wave's stores are visible to itself at once, since its accesses are done in order, and to
 * others when it has waited for them and reached a barrier; likewise others may overwrite what it
 * has read (RDNA3 ISA, 5.6 "Data Dependency Resolution", LGKMcnt; RDNA4 ISA, DScnt). A load whose
 * result is used has been waited for by then, but nothing keeps that use before the barrier: so
 * only amdgcn.waitcnt counts.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/machine.h"

/* ---- positions of threads --------------------------------------------------------------- */

tcc_outcome tcc_eval_amdgcn_tid(tcc_thread *t, const tcc_inst *in)
{
    for (unsigned l = 0; l < t->x->lanes; l++)
        tcc_cells(t, in->results[0])[l].i = t->id * t->x->lanes + l;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_amdgcn_lane(tcc_thread *t, const tcc_inst *in)
{
    for (unsigned l = 0; l < t->x->lanes; l++)
        tcc_cells(t, in->results[0])[l].i = l;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_amdgcn_wgid(tcc_thread *t, const tcc_inst *in)
{
    return tcc_give(t, in, t->warp->cta->id);
}

tcc_outcome tcc_eval_amdgcn_readfirstlane(tcc_thread *t, const tcc_inst *in)
{
    return tcc_give(t, in, tcc_operand_int(t, in, 0));
}

tcc_outcome tcc_eval_amdgcn_lds_base(tcc_thread *t, const tcc_inst *in)
{
    return tcc_give(t, in, TCC_SMEM_BASE);
}

/* ---- registers ------------------------------------------------------------------------- */

tcc_outcome tcc_eval_amdgcn_perm(tcc_thread *t, const tcc_inst *in)
{
    enum { BYTES = 4, CHOICES = 8 };
    uint32_t sel = (uint32_t)tcc_attr_int(&in->op->attrs, "sel", 0);
    for (unsigned i = 0; i < BYTES; i++)
        if ((sel >> 8 * i & 0xff) >= CHOICES)
            return TCC_WRONG(t->x, in->op, "%s: byte %u of the selector is %u, expected 0 to 7",
                             tcc_op_info_get(in->op->code)->name, i, sel >> 8 * i & 0xff);
    for (unsigned l = 0; l < t->x->lanes; l++) {
        uint64_t both = (uint64_t)(uint32_t)tcc_lane_int(t, in, 0, l) << 32 |
                        (uint32_t)tcc_lane_int(t, in, 1, l);
        uint32_t r = 0;
        for (unsigned i = 0; i < BYTES; i++)
            r |= (uint32_t)(both >> 8 * (sel >> 8 * i & 7) & 0xff) << 8 * i;
        tcc_cells(t, in->results[0])[l] = tcc_decode(r, TCC_i32);
    }
    return TCC_NEXT;
}

/* What lanes that do not run hold is nothing that others may count on. */
tcc_outcome tcc_eval_amdgcn_lane_xor(tcc_thread *t, const tcc_inst *in)
{
    unsigned mask = (unsigned)tcc_attr_int(&in->op->attrs, "mask", 0);
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    if (mask >= t->x->lanes)
        return TCC_WRONG(t->x, in->op, "%s with lane xor %u in a wave of %u lanes",
                         tcc_op_info_get(in->op->code)->name, mask, t->x->lanes);
    for (unsigned l = 0; l < t->x->lanes; l++)
        tcc_cells(t, in->results[0])[l] = tcc_cells(t, in->operands[0])[l ^ mask];
    return TCC_NEXT;
}

/* ---- LDS ------------------------------------------------------------------------------- */

/* An access is the next tick of the wave's clock. */
static int64_t begin_access(tcc_thread *t, const tcc_inst *in)
{
    t->warp->order.seen[t->warp->actor]++;
    return tcc_attr_int(&in->op->attrs, "offset", 0);
}

tcc_outcome tcc_eval_amdgcn_ds_load(tcc_thread *t, const tcc_inst *in)
{
    return tcc_load_lanes(t, in, begin_access(t, in));
}

tcc_outcome tcc_eval_amdgcn_ds_store(tcc_thread *t, const tcc_inst *in)
{
    return tcc_store_lanes(t, in, begin_access(t, in));
}

/* Loads from memory complete at once, and stores to it are not observed here. */
tcc_outcome tcc_eval_amdgcn_waitcnt(tcc_thread *t, const tcc_inst *in)
{
    tcc_warp *w = t->warp;
    int64_t left = tcc_attr_int(&in->op->attrs, "ds", -1);
    int64_t done = (int64_t)w->order.seen[w->actor] - left;
    if (left >= 0 && done > (int64_t)w->lds_waited)
        w->lds_waited = (uint32_t)done;
    return TCC_NEXT;
}

/* ---- barrier --------------------------------------------------------------------------- */

/* Passes on the clock up to which the wave has waited; its other accesses are known only to
 * itself. */
static void arrive(tcc_cluster *k, tcc_warp *w)
{
    uint32_t begun = w->order.seen[w->actor];
    w->order.seen[w->actor] = w->lds_waited;
    tcc_order_join(k, &k->barrier.arrivals, &w->order);
    w->order.seen[w->actor] = begun;
    w->cluster_phase = k->barrier.phase + 1;
    if (++k->barrier.arrived == k->n_warps)
        tcc_cluster_end_phase(k);
}

/* The hardware does not wait for waves that have ended (RDNA3 ISA, 5.5 "Work-groups and
 * Barriers"). A wave that does not reach a barrier of the others is treated as a mistake
 * nevertheless: they wait forever. */
tcc_outcome tcc_eval_amdgcn_s_barrier(tcc_thread *t, const tcc_inst *in)
{
    tcc_cluster *k = t->x->cluster;
    tcc_warp *w = t->warp;
    if (!w->cluster_phase) {
        if (!tcc_converged(t, in))
            return TCC_FAILED;
        arrive(k, w);
    }
    if (k->barrier.phase < w->cluster_phase)
        return TCC_WAIT(t, NULL, "at amdgcn.s_barrier: %u of %u waves have arrived",
                        k->barrier.arrived, k->n_warps);
    tcc_order_join(k, &w->order, &k->barrier.done);
    w->cluster_phase = 0;
    return TCC_NEXT;
}
