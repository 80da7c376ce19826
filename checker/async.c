/* async: copies. They go on after the op that starts them, up to the moment that somebody waits
 * for; nothing else ends them for certain.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

/* ---- copies --------------------------------------------------------------------------------- */

/* The footprint of the box that a lane copies, so many bytes further; 0, reported, when it is wrong. */
static uint64_t box_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                       unsigned lane, int64_t further)
{
    const tcc_pvalue *map = tcc_p_slot(p, s, warp, in->operands[1]);
    int64_t address;
    if (!tcc_p_is_exact(map) || !p->box_bytes[map->v])
        return tcc_p_unsupported(p, in->op, "'params' has no tensor map for this"), 0;
    if (!tcc_p_lane(p, tcc_p_slot(p, s, warp, in->operands[0]), lane, &address))
        return tcc_p_unsupported(p, in->op, "the address is only known at run time"), 0;
    if (!tcc_p_is_own(p, s, warp, in, address - TCC_SMEM_BASE))
        return 0;
    address += further;
    int64_t bytes = p->box_bytes[map->v], byte = address - TCC_SMEM_BASE;
    int64_t at = byte - tcc_p_window(p, warp) - further; /* of its CTA's */
    if (address % TCC_P_COPY_ALIGN)
        return tcc_p_wrong(p, s, warp, in, "shared address %lld is not a multiple of %d",
                           (long long)address, TCC_P_COPY_ALIGN),
               0;
    if (at < 0 || at > p->cta_bytes - bytes)
        return tcc_p_wrong(p, s, warp, in,
                           "%lld bytes from byte %lld on are not in the %lld of "
                           "shared memory",
                           (long long)bytes, (long long)at, (long long)p->cta_bytes),
               0;
    const int64_t key[] = {3, address, bytes};
    uint64_t *print = tcc_p_footprint(p, key, sizeof key);
    const tcc_prange range = {byte, byte + bytes};
    if (!*print && !tcc_p_footprint_set(p, s, print, &range, 1))
        return 0;
    return *print;
}

tcc_presult tcc_p_by_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                           tcc_presult (*start)(tcc_protocol *, tcc_pstate *, unsigned, const tcc_pinst *, unsigned))
{
    tcc_presult r = TCC_P_NEXT;
    for (unsigned l = 0; l < p->n_lanes && r == TCC_P_NEXT; l++)
        if (s->warps[warp].mask >> l & 1)
            r = start(p, s, warp, in, l);
    return r;
}

tcc_presult tcc_p_load_to(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned lane,
                          int64_t further,
                          void (*tell)(tcc_protocol *, tcc_pstate *, unsigned, tcc_lane_mask, unsigned))
{
    uint64_t box = box_of(p, s, warp, in, lane, further);
    int64_t address;
    p->layouts |= !tcc_p_is_looked_at(p, s, warp, in);
    if (!box)
        return TCC_P_FAILED;
    if (!tcc_p_lane(p, tcc_p_slot(p, s, warp, in->operands[2]), lane, &address))
        return tcc_p_unsupported(p, in->op, "the mbarrier is only known at run time");
    if (!tcc_p_is_own(p, s, warp, in, address - TCC_SMEM_BASE))
        return TCC_P_FAILED;
    address += further;
    int b = tcc_p_barrier_of_cluster(p, s, warp, in, address);
    if (b < 0)
        return TCC_P_FAILED;
    tcc_pbarrier *bar = &s->barriers[b];
    if (!bar->fence_clock || !tcc_p_knows(p, s, warp, UINT64_C(1) << lane, bar->init_warp,
                                          bar->init_lane, bar->fence_clock))
        return tcc_p_wrong(p, s, warp, in,
                           "the mbarrier at byte %lld is used by the copy engine with no "
                           "fence.mbarrier_init since it was initialised",
                           tcc_p_byte(address));
    int64_t bytes = p->box_bytes[tcc_p_slot(p, s, warp, in->operands[1])->v];
    const tcc_paccess by = {.warp = warp,
                            .actor = tcc_p_barrier_actor(p, (unsigned)b),
                            .lanes = UINT64_C(1) << lane,
                            .clock = bar->phase + 1,
                            .async = true,
                            .write = true,
                            .mark = TCC_P_ASYNC};
    tcc_paccess reads = by;
    reads.write = false;
    if (!tcc_p_access(p, s, in, &by, box) || !tcc_p_global_copy(p, s, in, &reads) ||
        !tcc_p_phase_is_certain(p, s, warp, in, (unsigned)b))
        return TCC_P_FAILED;
    bar->issued += bytes;
    bar->last_copy = bar->phase + 1;
    if (tell)
        tell(p, s, warp, by.lanes, (unsigned)b);
    tcc_p_log(p, s, warp, in, b, bytes);
    return tcc_p_end_phase(p, s, warp, in, (unsigned)b) ? TCC_P_NEXT : TCC_P_FAILED;
}

static tcc_presult load(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned lane)
{
    return tcc_p_load_to(p, s, warp, in, lane, 0, NULL);
}

tcc_presult tcc_p_nvvm_tma_load(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return tcc_p_by_lanes(p, s, warp, in, load);
}

static tcc_presult store(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                         unsigned lane)
{
    tcc_pwarp *w = &s->warps[warp];
    uint64_t box = box_of(p, s, warp, in, lane, 0);
    if (!box)
        return TCC_P_FAILED;
    if ((w->open_bulk || w->bulk_groups) && w->bulk_lane != lane)
        return tcc_p_wrong(p, s, warp, in, "two lanes of a warp start copies to global memory");
    w->open_bulk = true;
    w->bulk_lane = lane;
    const tcc_paccess by = {.warp = warp,
                            .actor = tcc_p_bulk_actor(p, warp),
                            .lanes = UINT64_C(1) << lane,
                            .clock = w->bulk_groups + 1,
                            .async = true};
    tcc_paccess writes = by;
    writes.actor = tcc_p_writes_actor(p, warp);
    writes.write = true;
    if (!tcc_p_access(p, s, in, &by, box) || !tcc_p_global_copy(p, s, in, &writes))
        return TCC_P_FAILED;
    tcc_p_log(p, s, warp, in, -1, p->box_bytes[tcc_p_slot(p, s, warp, in->operands[1])->v]);
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_tma_store(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return tcc_p_by_lanes(p, s, warp, in, store);
}

/* Groups belong to a thread: lanes that started no copy have none to wait for. A group may be
 * empty, and counts, too. */
tcc_presult tcc_p_nvvm_bulk_commit(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                   const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    if ((w->open_bulk || w->bulk_groups) && w->mask >> w->bulk_lane & 1) {
        w->open_bulk = false;
        w->bulk_groups++;
        tcc_p_log(p, s, warp, in, -1, w->bulk_groups);
    }
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_bulk_wait(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    uint32_t pending = (uint32_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    uint32_t n = w->bulk_groups > pending ? w->bulk_groups - pending : 0;
    if (!p->stores || !(w->mask >> w->bulk_lane & 1))
        return TCC_P_NEXT;
    tcc_lane_mask lane = UINT64_C(1) << w->bulk_lane;
    if (n && !tcc_p_learn_end(p, s, warp, in->op, lane, tcc_p_bulk_actor(p, warp), n))
        return TCC_P_FAILED;
    if (n && p->writes && !tcc_attr_int(&in->op->attrs, "read", 0) &&
        !tcc_p_learn_end(p, s, warp, in->op, lane, tcc_p_writes_actor(p, warp), n))
        return TCC_P_FAILED;
    if (n && !tcc_attr_int(&in->op->attrs, "read", 0))
        tcc_p_sent_is_written(p, s, warp, n);
    tcc_p_log(p, s, warp, in, -1, n);
    return TCC_P_NEXT;
}

/* ---- copies of threads ---------------------------------------------------------------------- */

/* As interp/cp_async.c has them: ordinary writes, of a group, which a warp's lanes commit and wait for together.
 * What its other lanes have copied a lane knows of when they have met since. */
tcc_presult tcc_p_nvvm_cp_async(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    const tcc_pvalue *at = tcc_p_slot(p, s, warp, in->operands[0]);
    s->warps[warp].open_bulk = true;
    return tcc_p_access_lanes(p, s, warp, in, at, tcc_attr_int(&in->op->attrs, "bytes", 0), true, false)
               ? TCC_P_NEXT
               : TCC_P_FAILED;
}

tcc_presult tcc_p_nvvm_cp_async_commit(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    w->open_bulk = false;
    w->bulk_groups++;
    tcc_p_log(p, s, warp, in, -1, w->bulk_groups);
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_cp_async_wait(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    uint32_t pending = (uint32_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    uint32_t n = w->bulk_groups > pending ? w->bulk_groups - pending : 0;
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    if (n && !tcc_p_learn_end(p, s, warp, in->op, w->mask, tcc_p_bulk_actor(p, warp), n))
        return TCC_P_FAILED;
    tcc_p_log(p, s, warp, in, -1, n);
    return TCC_P_NEXT;
}
