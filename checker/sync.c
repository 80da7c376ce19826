/* sync: barriers and fences, as interp/barrier.c and warp.c have them, and what makes one order
 * of events stand for all.
 *
 * A wait names a phase by its parity alone, and an arrival goes to whatever phase is current. Of
 * each barrier a warp knows how many phases have ended for certain: those whose end comes before
 * it through what it has waited for. That number says which phase a wait means and which one an
 * arrival must fall in, and whether any order of events could make it another (see
 * docs/protocol-checker.md).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/cluster.h"

enum { BARRIER_BYTES = 8, MAX_ARRIVALS = (1 << 20) - 1, MAX_TX = (1 << 20) - 1 };
enum { REGISTER_UNIT = 8 };

/* ---- order ---------------------------------------------------------------------------------- */

void tcc_p_join(const tcc_protocol *p, tcc_pstate *s, unsigned to, unsigned from)
{
    uint32_t *a = tcc_p_seen(p, s, to);
    const uint32_t *b = tcc_p_clocks(p, s, from);
    assert(to != from);
    for (size_t at = 0; at < p->stride; at += TCC_P_BLOCK)
        tcc_p_keep_later(a + at, b + at);
}

tcc_presult tcc_p_wait_for(tcc_pstate *s, unsigned warp, unsigned entity)
{
    s->waits_for[warp] = entity;
    return TCC_P_BLOCKED;
}

void tcc_p_wake(tcc_pstate *s, unsigned entity)
{
    for (uint64_t rest = s->blocked; rest; rest &= rest - 1)
        if (s->waits_for[__builtin_ctzll(rest)] == entity)
            s->blocked ^= rest & -rest;
}

void tcc_p_tick(const tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    uint32_t clock = ++tcc_p_seen(p, s, warp)[warp];
    tcc_p_passed(p, s, warp)[warp] = clock;
}

bool tcc_p_converged(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    if (s->warps[warp].mask == tcc_p_all_lanes(p)) {
        if (!p->amd)
            tcc_p_step_together(p, s, warp);
        return true;
    }
    tcc_p_wrong(p, s, warp, in, "%s in %d of a %s's %u lanes", tcc_op_info_get(in->op->code)->name,
                __builtin_popcountll(s->warps[warp].mask), tcc_p_warp_word(p), p->n_lanes);
    return false;
}

/* ---- mbarriers ------------------------------------------------------------------------------- */

static long long offset_of(const tcc_pbarrier *b)
{
    return tcc_p_byte(b->address);
}

static int find(const tcc_protocol *p, const tcc_pstate *s, int64_t address)
{
    /* Most often they are initialised in the order of their addresses. */
    int64_t first = (address - s->barriers[0].address) / BARRIER_BYTES * (p->symmetry ? p->ctas : 1);
    if (first >= 0 && first < s->n_barriers && s->barriers[first].address == address)
        return (int)first;
    for (unsigned i = 0; i < s->n_barriers; i++)
        if (s->barriers[i].address == address)
            return (int)i;
    return -1;
}

int tcc_p_barrier_at(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                     int64_t address)
{
    bool own = tcc_p_is_own(p, s, warp, in, address - TCC_SMEM_BASE);
    return own ? tcc_p_barrier_of_cluster(p, s, warp, in, address) : -1;
}

int tcc_p_barrier_of_cluster(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, int64_t address)
{
    int b = find(p, s, address);
    const char *name = tcc_op_info_get(in->op->code)->name;
    if (in->stays_at_barrier && tcc_p_is_rotated_barrier(p, address) && tcc_p_rotation_fails(p))
        return -1;
    if (in->waits_anywhere && tcc_p_is_flipped_barrier(p, address) && tcc_p_laps_fail(p))
        return -1;
    if (b < 0) {
        tcc_p_wrong(p, s, warp, in,
                    "%s: there may be no mbarrier yet at byte %lld of shared memory", name, tcc_p_byte(address));
    } else if (!tcc_p_knows(p, s, warp, s->warps[warp].mask, s->barriers[b].init_warp,
                            s->barriers[b].init_lane, s->barriers[b].init_clock)) {
        tcc_p_wrong(p, s, warp, in,
                    "%s: warp %u may still be initialising the mbarrier at byte %lld", name,
                    s->barriers[b].init_warp, offset_of(&s->barriers[b]));
        b = -1;
    }
    return b;
}

tcc_presult tcc_p_nvvm_mbarrier_init(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                     const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    int64_t address, count;
    if (!tcc_p_operand(p, s, warp, in, 0, &address) || !tcc_p_operand(p, s, warp, in, 1, &count))
        return TCC_P_FAILED;
    int64_t byte = address - TCC_SMEM_BASE;
    if (!tcc_p_is_own(p, s, warp, in, byte))
        return TCC_P_FAILED;
    int64_t at = byte - tcc_p_window(p, warp); /* of the CTA's */
    if (w->mask & (w->mask - 1))
        return tcc_p_wrong(p, s, warp, in, "several lanes initialise one mbarrier");
    if (count < 1 || count > MAX_ARRIVALS)
        return tcc_p_wrong(p, s, warp, in, "an mbarrier of %lld arrivals", (long long)count);
    if (find(p, s, address) >= 0)
        return tcc_p_wrong(p, s, warp, in, "the mbarrier at byte %lld is initialised twice",
                           (long long)at);
    if (s->n_barriers == p->max_barriers)
        return tcc_p_unsupported(p, in->op, "mbarriers are initialised in a loop");
    if (at < 0 || at % BARRIER_BYTES || at > p->cta_bytes - BARRIER_BYTES)
        return tcc_p_wrong(p, s, warp, in, "an mbarrier at byte %lld of %lld", (long long)at,
                           (long long)p->cta_bytes);
    const int64_t key[] = {2, address};
    uint64_t *print = tcc_p_footprint(p, key, sizeof key);
    const tcc_plane lane = {(unsigned)__builtin_ctzll(w->mask), {byte, byte + BARRIER_BYTES}};
    if (!*print && !tcc_p_footprint_of_lanes(p, s, print, &lane, 1))
        return TCC_P_FAILED;
    uint32_t clock = tcc_p_seen(p, s, warp)[warp];
    const tcc_paccess by = {.warp = warp,
                            .actor = warp,
                            .lanes = w->mask,
                            .clock = clock,
                            .write = true,
                            .mark = TCC_P_BARRIER};
    w->unsynced |= w->mask;
    if (!tcc_p_access(p, s, in, &by, *print))
        return TCC_P_FAILED;
    tcc_pbarrier bar = {.address = address,
                        .expected = (uint32_t)count,
                        .pending = (uint32_t)count,
                        .init_warp = warp,
                        .init_lane = w->mask,
                        .init_clock = clock};
    unsigned n = p->symmetry ? p->ctas : 1;
    memset(tcc_p_wait(p, s, s->n_barriers, 0), 0, n * p->n_warps * sizeof *s->waits);
    for (unsigned c = 0; c < n; c++, bar.address += TCC_P_WINDOW)
        s->barriers[s->n_barriers++] = bar;
    tcc_p_log(p, s, warp, in, (int)(s->n_barriers - n), count);
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_fence_mbarrier_init(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                           const tcc_pinst *in)
{
    (void)in;
    for (unsigned b = 0; b < s->n_barriers; b++)
        if (s->barriers[b].init_warp == warp && !s->barriers[b].fence_clock &&
            !(s->barriers[b].init_lane & ~s->warps[warp].mask))
            s->barriers[b].fence_clock = tcc_p_seen(p, s, warp)[warp];
    return TCC_P_NEXT;
}

bool tcc_p_phase_is_certain(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                            unsigned b)
{
    unsigned self = tcc_p_entity(p, s, warp, s->warps[warp].mask);
    uint32_t known = tcc_p_seen(p, s, self)[tcc_p_barrier_actor(p, b)];
    if (known == s->barriers[b].phase)
        return true;
    tcc_p_wrong(p, s, warp, in,
                "%s may be a phase too early or too late for the mbarrier at byte %lld: warp %u "
                "knows the end of %u of its phases, %u have ended",
                tcc_op_info_get(in->op->code)->name, offset_of(&s->barriers[b]), warp,
                known, s->barriers[b].phase);
    return false;
}

/* A warp that waited for the phase before must be past that wait whenever this phase ends: else it
 * finds a parity that says that the phase before has not. */
static bool all_passed(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                       unsigned b)
{
    const tcc_pbarrier *bar = &s->barriers[b];
    const uint32_t *passed = tcc_p_clocks(p, s, tcc_p_arrivals(p, b)) + p->n_actors + p->n_warps;
    for (unsigned w = 0; w < p->n_warps; w++) {
        const tcc_pwait *wait = tcc_p_wait(p, s, b, w);
        if (wait->clock && wait->phase == bar->phase && passed[w] < wait->clock) {
            tcc_p_wrong(p, s, warp, in,
                        "phase %u of the mbarrier at byte %lld may end while warp %u still waits "
                        "for the one before: it would then wait for the next",
                        bar->phase, offset_of(bar), w);
            return false;
        }
    }
    return true;
}

bool tcc_p_end_phase(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned b)
{
    tcc_pbarrier *bar = &s->barriers[b];
    if (bar->pending)
        return true;
    if (bar->issued > bar->bytes) {
        tcc_p_wrong(
            p, s, warp, in,
            "a phase of the mbarrier at byte %lld expects %lld bytes and gets %lld: it may end "
            "while copies are in flight",
            offset_of(bar), (long long)bar->bytes, (long long)bar->issued);
        return false;
    }
    if (bar->issued < bar->bytes)
        return true;
    if (!all_passed(p, s, warp, in, b))
        return false;
    unsigned actor = tcc_p_barrier_actor(p, b), arrivals = tcc_p_arrivals(p, b);
    bar->phase++;
    bar->pending = bar->expected;
    bar->bytes = bar->issued = 0;
    tcc_p_seen(p, s, arrivals)[actor] = bar->phase;
    memcpy(tcc_p_seen(p, s, tcc_p_done(p, b)), tcc_p_seen(p, s, arrivals),
           p->stride * sizeof(uint32_t));
    tcc_p_wake(s, tcc_p_done(p, b));
    return true;
}

tcc_presult tcc_p_arrive(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned b,
                         int64_t bytes, unsigned times, tcc_lane_mask lanes)
{
    if (!tcc_p_phase_is_certain(p, s, warp, in, b))
        return TCC_P_FAILED;
    tcc_pbarrier *bar = &s->barriers[b];
    if (bar->pending < times)
        return tcc_p_wrong(p, s, warp, in,
                           "the mbarrier at byte %lld gets more than %u arrivals in a phase",
                           offset_of(bar), bar->expected);
    bar->bytes += bytes * times;
    if (bytes < 0 || bar->bytes > MAX_TX)
        return tcc_p_wrong(p, s, warp, in, "the mbarrier at byte %lld expects %lld bytes",
                           offset_of(bar), (long long)bar->bytes);
    bar->pending -= times;
    tcc_p_tell(p, s, warp, lanes, tcc_p_arrivals(p, b));
    tcc_p_log(p, s, warp, in, (int)b, bytes);
    return tcc_p_end_phase(p, s, warp, in, b) ? TCC_P_NEXT : TCC_P_FAILED;
}

static tcc_presult arrive(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                          int64_t address, int64_t bytes, unsigned times, tcc_lane_mask lanes)
{
    int b = tcc_p_barrier_at(p, s, warp, in, address);
    return b < 0 ? TCC_P_FAILED : tcc_p_arrive(p, s, warp, in, (unsigned)b, bytes, times, lanes);
}

/* The lanes that arrive by the same instruction where lane l does. */
static tcc_lane_mask arriving_with(const tcc_protocol *p, const tcc_pvalue *at, tcc_lane_mask mask,
                                   int64_t address)
{
    tcc_lane_mask lanes = 0;
    int64_t other;
    for (unsigned l = 0; l < p->n_lanes; l++)
        if (mask >> l & 1 && tcc_p_lane(p, at, l, &other) && other == address)
            lanes |= UINT64_C(1) << l;
    return lanes;
}

/* Every lane arrives by itself. */
static tcc_presult arrive_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    const tcc_pwarp *w = &s->warps[warp];
    const tcc_pvalue *at = tcc_p_slot(p, s, warp, in->operands[0]);
    int64_t bytes = 0, address;
    tcc_presult r = TCC_P_NEXT;
    if (in->op->n_operands > 1 && !tcc_p_operand(p, s, warp, in, 1, &bytes))
        return TCC_P_FAILED;
    if (tcc_p_is_exact(at)) {
        r = arrive(p, s, warp, in, at->v, bytes, (unsigned)__builtin_popcountll(w->mask), w->mask);
    } else {
        for (unsigned l = 0; l < p->n_lanes && r == TCC_P_NEXT; l++) {
            if (!(w->mask >> l & 1))
                continue;
            if (!tcc_p_lane(p, at, l, &address))
                return tcc_p_unsupported(p, in->op, "the mbarrier is only known at run time");
            r = arrive(p, s, warp, in, address, bytes, 1, arriving_with(p, at, w->mask, address));
        }
    }
    tcc_p_tick(p, s, warp);
    return r;
}

tcc_presult tcc_p_nvvm_mbarrier_arrive(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                       const tcc_pinst *in)
{
    return arrive_lanes(p, s, warp, in);
}

tcc_presult tcc_p_nvvm_mbarrier_arrive_expect_tx(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                                 const tcc_pinst *in)
{
    return arrive_lanes(p, s, warp, in);
}

tcc_presult tcc_p_nvvm_mbarrier_wait(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                     const tcc_pinst *in)
{
    int64_t address, parity;
    if (!tcc_p_operand(p, s, warp, in, 0, &address) || !tcc_p_operand(p, s, warp, in, 1, &parity))
        return TCC_P_FAILED;
    int number = tcc_p_barrier_at(p, s, warp, in, address);
    if (number < 0)
        return TCC_P_FAILED;
    if (parity != 0 && parity != 1)
        return tcc_p_wrong(p, s, warp, in, "waits for parity %lld", (long long)parity);
    tcc_pbarrier *bar = &s->barriers[number];
    unsigned self = tcc_p_entity(p, s, warp, s->warps[warp].mask);
    uint32_t known = tcc_p_seen(p, s, self)[tcc_p_barrier_actor(p, (unsigned)number)];
    /* Phases that must have ended: `known` of them have for certain. */
    uint32_t wanted = known % 2 == (uint32_t)parity ? known + 1 : known;
    if (bar->phase > wanted)
        return tcc_p_wrong(
            p, s, warp, in,
            "warp %u waits for phase %d of the mbarrier at byte %lld, which may have "
            "ended together with the next: it would then wait for the one after",
            warp, (int)wanted - 1, offset_of(bar));
    if (bar->phase < wanted)
        return tcc_p_wait_for(s, warp, tcc_p_done(p, (unsigned)number));
    if (bar->words_from_afar && !tcc_has_scope_of_cluster(in->op))
        return tcc_p_wrong(p, s, warp, in,
                           "waits at the CTA's scope for the mbarrier at byte %lld, on which words of another CTA "
                           "complete: needs scope = cluster",
                           offset_of(bar));
    if (bar->phase && !tcc_p_learn(p, s, warp, in->op, tcc_p_done(p, (unsigned)number)))
        return TCC_P_FAILED;
    if (!s->warps[warp].apart)
        s->warps[warp].in_step = tcc_p_passed(p, s, warp)[warp];
    tcc_p_tick(p, s, warp);
    s->warps[warp].apart |= s->warps[warp].mask;
    *tcc_p_wait(p, s, (unsigned)number, warp) =
        (tcc_pwait){.clock = tcc_p_passed(p, s, warp)[warp], .phase = wanted};
    tcc_p_log(p, s, warp, in, number, (int64_t)wanted - 1);
    return TCC_P_NEXT;
}

/* ---- named barriers -------------------------------------------------------------------- */

static void release_all(tcc_protocol *p, tcc_pstate *s, int id)
{
    tcc_pnamed *b = &s->named[id];
    unsigned entity = tcc_p_named(p, (unsigned)id), actor = tcc_p_named_actor(p, (unsigned)id);
    tcc_p_seen(p, s, entity)[actor] = ++b->phase;
    b->threads = b->arrived = 0;
    for (unsigned w = 0; w < p->n_followed; w++) {
        tcc_pwarp *warp = &s->warps[w];
        if (warp->waits_at != id || warp->released) /* by a phase before: it has not gone on yet */
            continue;
        tcc_p_join(p, s, w, entity);
        tcc_p_tick(p, s, w);
        warp->released = true;
        warp->progress += tcc_p_is_past(p, s, w);
    }
    tcc_p_wake(s, entity);
    p->met = true;
}

/* A warp that does not wait here comes after the others when it does: then it learns it (cluster.c). */
static void come(tcc_protocol *p, tcc_pstate *s, unsigned warp, int64_t id, bool waits)
{
    tcc_pwarp *w = &s->warps[warp];
    unsigned entity = tcc_p_named(p, (unsigned)id);
    if (!waits) {
        tcc_p_tell(p, s, warp, w->mask, entity);
        tcc_p_tick(p, s, warp);
        w->arrived = s->named[id].phase + 1;
        return;
    }
    if (!p->amd)
        tcc_p_sync_lanes(p, s, warp);
    tcc_p_join(p, s, entity, warp);
    w->waits_at = (int32_t)id;
    w->released = false;
}

bool tcc_p_come_to(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, int64_t id,
                   int64_t threads, bool waits)
{
    if (!tcc_p_converged(p, s, warp, in))
        return false;
    if (threads < p->n_lanes || threads % p->n_lanes)
        return tcc_p_wrong(p, s, warp, in, "barrier %lld of %lld threads", (long long)id,
                           (long long)threads),
               false;
    tcc_pnamed *b = &s->named[id];
    if (b->threads && b->threads != threads)
        return tcc_p_wrong(p, s, warp, in, "barrier %lld is of %lld threads and of %lld",
                           (long long)id, (long long)b->threads, (long long)threads),
               false;
    if (tcc_p_seen(p, s, warp)[tcc_p_named_actor(p, (unsigned)id)] != b->phase)
        return tcc_p_wrong(p, s, warp, in,
                           "%s %u may reach barrier %lld together with other %ss than here",
                           tcc_p_warp_word(p), warp, (long long)id, tcc_p_warp_word(p)),
               false;
    come(p, s, warp, id, waits);
    b->threads = threads;
    b->arrived += p->n_lanes;
    if (p->symmetry && id == p->n_named - 1) {
        tcc_p_join_images(p, s, tcc_p_named(p, (unsigned)id), warp);
        b->arrived += (int64_t)(p->ctas - 1) * p->n_lanes;
    }
    tcc_p_log(p, s, warp, in, (int)id, threads);
    if (b->arrived == threads)
        release_all(p, s, (int)id);
    return true;
}

tcc_presult tcc_p_leave_barrier(const tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    tcc_pwarp *w = &s->warps[warp];
    if (!w->released)
        return tcc_p_wait_for(s, warp, tcc_p_named(p, (unsigned)w->waits_at));
    w->waits_at = -1;
    w->released = false;
    return TCC_P_NEXT;
}

tcc_presult tcc_p_meet(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                       int64_t id, int64_t threads)
{
    tcc_pwarp *w = &s->warps[warp];
    int64_t first = (int64_t)tcc_p_cta(p, warp) * p->cta_named;
    if (w->waits_at < 0 && (id < 0 || id >= p->cta_named))
        return tcc_p_wrong(p, s, warp, in, "barrier %lld of %lld threads", (long long)id, (long long)threads);
    if (w->waits_at < 0 && !tcc_p_come_to(p, s, warp, in, first + id, threads, true))
        return TCC_P_FAILED;
    return tcc_p_leave_barrier(p, s, warp);
}

tcc_presult tcc_p_nvvm_barrier(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    int64_t id = 0, threads = 0;
    bool waits = s->warps[warp].waits_at >= 0;
    if (!waits &&
        (!tcc_p_operand(p, s, warp, in, 0, &id) || !tcc_p_operand(p, s, warp, in, 1, &threads)))
        return TCC_P_FAILED;
    return tcc_p_meet(p, s, warp, in, id, threads);
}

/* ---- other ----------------------------------------------------------------------------- */

tcc_presult tcc_p_nvvm_fence_proxy_async(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                         const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_p_log(p, s, warp, in, -1, 0);
    if (w->accessed & ~w->mask)
        return TCC_P_NEXT;
    w->fencing |= w->accessed;
    w->accessed = 0;
    tcc_p_fenced(p, s, warp)[warp] = tcc_p_seen(p, s, warp)[warp];
    tcc_p_tick(p, s, warp);
    return TCC_P_NEXT;
}

/* The four warps of a warpgroup run the same setmaxnreg, after they have met since the one before
 * (PTX ISA, "setmaxnreg"). */
static bool resizes_as_others(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    unsigned group = warp / TCC_WARPGROUP_WARPS, first = group * TCC_WARPGROUP_WARPS;
    unsigned end =
        first + TCC_WARPGROUP_WARPS < p->n_warps ? first + TCC_WARPGROUP_WARPS : p->n_warps;
    tcc_presize *r = &s->resizes[group];
    const uint32_t *passed = tcc_p_passed(p, s, warp);
    bool is_next = !r->op || r->clocks[warp - first];
    for (unsigned w = first; r->op && is_next && w < end; w++)
        if (!r->clocks[w - first] || passed[w] < r->clocks[w - first])
            return tcc_p_wrong(
                       p, s, warp, in,
                       "nvvm.setmaxnreg that may come before warp %u has run the one before", w),
                   false;
    if (is_next)
        *r = (tcc_presize){.op = in->op};
    if (r->op != in->op)
        return tcc_p_wrong(p, s, warp, in, "nvvm.setmaxnreg that is not its warpgroup's"), false;
    return true;
}

tcc_presult tcc_p_nvvm_setmaxnreg(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                  const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    int64_t count = tcc_attr_int(&in->op->attrs, "count", 0);
    bool more = !strcmp(tcc_attr_str(&in->op->attrs, "action", ""), "inc");
    int64_t need = (count - w->registers) * TCC_WARP_LANES;
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    if (more ? need < 0 : need > 0)
        return tcc_p_wrong(p, s, warp, in, "setmaxnreg.%s to %lld from %d registers",
                           more ? "inc" : "dec", (long long)count, w->registers);
    if (!resizes_as_others(p, s, warp, in))
        return TCC_P_FAILED;
    int64_t *free = &s->free_registers[tcc_p_cta(p, warp)];
    if (need > *free)
        return tcc_p_wait_for(s, warp, TCC_P_ANYTHING);
    *free -= need;
    w->registers = (int32_t)count;
    s->resizes[warp / TCC_WARPGROUP_WARPS].clocks[warp % TCC_WARPGROUP_WARPS] =
        tcc_p_passed(p, s, warp)[warp];
    return TCC_P_NEXT;
}
