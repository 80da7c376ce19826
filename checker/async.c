/* async: copies and products. They go on after the op that starts them, up to the moment
 * that somebody waits for; nothing else ends them for certain.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/descriptor.h"

enum { SMEM_ALIGN = 128, K = 16, M = 64, ELEM_BYTES = 2, MAX_N = 256 };
enum { PER_CHUNK = TCC_CHUNK_BYTES / ELEM_BYTES, MAX_CHUNKS = MAX_N * K / PER_CHUNK };

/* ---- copies --------------------------------------------------------------------------------- */

/* The footprint of the box that a lane copies; 0, reported, when it is wrong. */
static uint64_t box_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                       unsigned lane)
{
    const tcc_pvalue *map = tcc_p_slot(p, s, warp, in->operands[1]);
    int64_t address;
    if (!tcc_p_is_exact(map) || !p->box_bytes[map->v])
        return tcc_p_unsupported(p, in->op, "'params' has no tensor map for this"), 0;
    if (!tcc_p_lane(p, tcc_p_slot(p, s, warp, in->operands[0]), lane, &address))
        return tcc_p_unsupported(p, in->op, "the address is only known at run time"), 0;
    int64_t bytes = p->box_bytes[map->v], byte = address - TCC_SMEM_BASE;
    if (address % SMEM_ALIGN)
        return tcc_p_wrong(p, s, warp, in, "shared address %lld is not a multiple of %d",
                           (long long)address, SMEM_ALIGN),
               0;
    if (byte < 0 || byte > p->smem_bytes - bytes)
        return tcc_p_wrong(p, s, warp, in,
                           "%lld bytes from byte %lld on are not in the %lld of "
                           "shared memory",
                           (long long)bytes, (long long)byte, (long long)p->smem_bytes),
               0;
    const int64_t key[] = {3, address, bytes};
    uint64_t *print = tcc_p_footprint(p, key, sizeof key);
    const tcc_prange range = {byte, byte + bytes};
    if (!*print && !tcc_p_footprint_set(p, s, print, &range, 1))
        return 0;
    return *print;
}

/* Lets each lane of the mask start its copy. */
static tcc_presult by_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                            tcc_presult (*start)(tcc_protocol *, tcc_pstate *, unsigned,
                                                 const tcc_pinst *, unsigned))
{
    tcc_presult r = TCC_P_NEXT;
    for (unsigned l = 0; l < p->n_lanes && r == TCC_P_NEXT; l++)
        if (s->warps[warp].mask >> l & 1)
            r = start(p, s, warp, in, l);
    return r;
}

static tcc_presult load(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                        unsigned lane)
{
    uint64_t box = box_of(p, s, warp, in, lane);
    int64_t address;
    if (!box)
        return TCC_P_FAILED;
    if (!tcc_p_lane(p, tcc_p_slot(p, s, warp, in->operands[2]), lane, &address))
        return tcc_p_unsupported(p, in->op, "the mbarrier is only known at run time");
    int b = tcc_p_barrier_at(p, s, warp, in, address);
    if (b < 0)
        return TCC_P_FAILED;
    tcc_pbarrier *bar = &s->barriers[b];
    if (!bar->fence_clock || !tcc_p_knows(p, s, warp, UINT64_C(1) << lane, bar->init_warp,
                                          bar->init_lane, bar->fence_clock))
        return tcc_p_wrong(p, s, warp, in,
                           "the mbarrier at byte %lld is used by the copy engine with no "
                           "fence.mbarrier_init since it was initialised",
                           (long long)(address - TCC_SMEM_BASE));
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
    tcc_p_log(p, s, warp, in, b, bytes);
    return tcc_p_end_phase(p, s, warp, in, (unsigned)b) ? TCC_P_NEXT : TCC_P_FAILED;
}

tcc_presult tcc_p_nvvm_tma_load(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return by_lanes(p, s, warp, in, load);
}

static tcc_presult store(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                         unsigned lane)
{
    tcc_pwarp *w = &s->warps[warp];
    uint64_t box = box_of(p, s, warp, in, lane);
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
    return by_lanes(p, s, warp, in, store);
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
    tcc_p_log(p, s, warp, in, -1, n);
    return TCC_P_NEXT;
}

/* ---- products -------------------------------------------------------------------------- */

/* The footprint of an operand of `rows` along m or n; 0, reported, when it is wrong. */
static uint64_t operand_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                           int64_t bits, bool mn_major, int64_t rows)
{
    const int64_t key[] = {4, bits, mn_major, rows};
    uint64_t *print = tcc_p_footprint(p, key, sizeof key);
    if (*print)
        return *print;
    tcc_descriptor d;
    const char *why = tcc_descriptor_decode(bits, mn_major, &d);
    if (why)
        return tcc_p_wrong(p, s, warp, in, "matrix descriptor %#llx %s", (unsigned long long)bits,
                           why),
               0;
    tcc_prange ranges[MAX_CHUNKS];
    int64_t n_rows = mn_major ? K : rows, n_chunks = (mn_major ? rows : K) / PER_CHUNK;
    size_t n = 0;
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t c = 0; c < n_chunks; c++) {
            int64_t byte = tcc_descriptor_chunk(&d, r, c) - TCC_SMEM_BASE;
            if (byte < 0 || byte > p->smem_bytes - TCC_CHUNK_BYTES)
                return tcc_p_wrong(p, s, warp, in,
                                   "%s: 16 bytes from byte %lld on are not in the "
                                   "%lld of shared memory",
                                   tcc_op_info_get(in->op->code)->name, (long long)byte,
                                   (long long)p->smem_bytes),
                       0;
            ranges[n++] = (tcc_prange){byte, byte + TCC_CHUNK_BYTES};
        }
    return tcc_p_footprint_set(p, s, print, ranges, n) ? *print : 0;
}

/* How much of an operand was ever written. */
typedef enum found {
    FOUND_NOTHING,
    FOUND_ONE_ROW, /* the first, along m or n */
    FOUND_PART,
    FOUND_ALL,
} found;

/* Whether the 16 bytes of a row at which k begins, or the 8 rows that they are of, were written. */
static bool is_chunk_written(const tcc_protocol *p, const tcc_pstate *s, const tcc_descriptor *d,
                             int64_t row, int64_t chunk)
{
    int64_t byte = tcc_descriptor_chunk(d, row, chunk) - TCC_SMEM_BASE;
    for (int64_t at = byte; at < byte + TCC_CHUNK_BYTES; at += p->granule)
        if (s->atoms[p->atom_of[at / p->granule]].mark == TCC_P_NEVER)
            return false;
    return true;
}

/* Results in a row depend on all of k, and so does whether a row was written. */
static found find_rows(const tcc_protocol *p, const tcc_pstate *s, uint64_t print, int64_t bits,
                       bool mn_major, int64_t rows)
{
    tcc_descriptor d;
    if (tcc_p_is_all_written(p, s, print) || tcc_descriptor_decode(bits, mn_major, &d))
        return FOUND_ALL;
    int64_t n_rows = mn_major ? rows / PER_CHUNK : rows, steps = mn_major ? K : K / PER_CHUNK;
    int64_t whole = 0;
    bool first = false;
    for (int64_t r = 0; r < n_rows; r++) {
        int64_t n = 0;
        for (int64_t k = 0; k < steps; k++)
            n += is_chunk_written(p, s, &d, mn_major ? k : r, mn_major ? r : k);
        if (n && n < steps)
            return FOUND_PART;
        whole += n == steps;
        first |= n && !r;
    }
    return !whole ? FOUND_NOTHING : whole == 1 && first && !mn_major ? FOUND_ONE_ROW : FOUND_PART;
}

/* Notes how much of an operand a product finds; false, reported, when it is a part. A tensor may
 * have but one row, which only the first warpgroup gets: then there is no result in the others. */
static bool note_found(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                       tcc_pfound *f, found what, uint64_t print)
{
    if (what == FOUND_PART)
        return tcc_p_wrong(p, s, warp, in,
                           "nvvm.wgmma reads shared memory of which a part was never written, at "
                           "byte %lld",
                           (long long)tcc_p_unwritten_byte(p, s, print)),
               false;
    f->any |= what != FOUND_NOTHING;
    f->all |= what == FOUND_ALL;
    if (what == FOUND_NOTHING && !f->nothing)
        f->nothing = in->op;
    return true;
}

/* Accumulators that anything but a product wrote, or read, must have been fenced since; and so must
 * those of a product of another shape, which was waited for. */
static bool accumulators_ready(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                               int64_t n)
{
    const tcc_pvalue *acc = tcc_p_slot(p, s, warp, in->operands[0]);
    bool product = acc->delta & TCC_P_BY_PRODUCT;
    bool fenced = acc->delta & TCC_P_FENCED, other_shape = product && acc->offset != n;
    if (!tcc_p_take(p, s, warp, in, 0, in->registers))
        return false;
    if (!s->warps[warp].any_fence || (!product && !fenced))
        tcc_p_wrong(p, s, warp, in, "no wgmma.fence since the accumulators were written");
    else if (s->warps[warp].touched & in->registers)
        tcc_p_wrong(p, s, warp, in, "no wgmma.fence since the accumulators were last accessed");
    else if (other_shape && (acc->v || !fenced))
        tcc_p_wrong(p, s, warp, in, "%s since an MMA of another shape wrote the accumulators",
                    acc->v ? "no wgmma.wait_group" : "no wgmma.fence");
    else
        return true;
    return false;
}

tcc_presult tcc_p_nvvm_wgmma(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    const tcc_attrs *attrs = &in->op->attrs;
    int64_t n = tcc_attr_int(attrs, "n", 8), a, b, add;
    bool trans_a = tcc_attr_int(attrs, "trans_a", 0), trans_b = tcc_attr_int(attrs, "trans_b", 0);
    if (!tcc_p_converged(p, s, warp, in) || !tcc_p_operand(p, s, warp, in, 1, &a) ||
        !tcc_p_operand(p, s, warp, in, 2, &b) || !tcc_p_operand(p, s, warp, in, 3, &add) ||
        !accumulators_ready(p, s, warp, in, n))
        return TCC_P_FAILED;
    if (n < 8 || n > MAX_N)
        return tcc_p_wrong(p, s, warp, in, "no MMA of n = %lld", (long long)n);
    uint64_t pa = operand_of(p, s, warp, in, a, trans_a, M);
    uint64_t pb = pa ? operand_of(p, s, warp, in, b, trans_b, n) : 0;
    if (!pb)
        return TCC_P_FAILED;
    found found_a = find_rows(p, s, pa, a, trans_a, M);
    found found_b = find_rows(p, s, pb, b, trans_b, n);
    const tcc_paccess by = {.warp = warp,
                            .actor = tcc_p_product_actor(p, warp),
                            .lanes = w->mask,
                            .clock = w->committed + 1,
                            .async = true,
                            .unwritten = found_a || found_b};
    if (!tcc_p_access(p, s, in, &by, pa) || !tcc_p_access(p, s, in, &by, pb) ||
        !note_found(p, s, warp, in, &p->found[0], found_a, pa) ||
        !note_found(p, s, warp, in, &p->found[1], found_b, pb))
        return TCC_P_FAILED;
    p->product = in->op;
    const struct {
        const tcc_op *op;
        int64_t a, b, add;
        uint64_t before;
    } issued = {in->op, a, b, add, w->products};
    w->products = tcc_p_hash(&issued, sizeof issued);
    w->open_group = true;
    *tcc_p_slot(p, s, warp, in->results[0]) = (tcc_pvalue){.kind = TCC_P_REGISTERS,
                                                           .v = w->committed + 1,
                                                           .offset = (int32_t)n,
                                                           .delta = TCC_P_BY_PRODUCT};
    tcc_p_log(p, s, warp, in, -1, w->committed + 1);
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_wgmma_fence(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                   const tcc_pinst *in)
{
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    s->warps[warp].any_fence = true;
    s->warps[warp].touched = 0;
    for (size_t i = 0; i < p->registers.len; i++) {
        tcc_pvalue *v = tcc_p_slot(p, s, warp, p->registers.data[i]);
        if (v->kind == TCC_P_REGISTERS)
            v->delta = (v->delta | TCC_P_FENCED) & ~(int64_t)TCC_P_TAKEN;
    }
    return TCC_P_NEXT;
}

static tcc_pgroup *group_of(const tcc_pstate *s, unsigned warp, uint32_t number)
{
    return &s->groups[warp / TCC_WARPGROUP_WARPS * TCC_P_GROUPS + number % TCC_P_GROUPS];
}

tcc_presult tcc_p_nvvm_wgmma_commit(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                    const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    w->committed++;
    tcc_pgroup *g = group_of(s, warp, w->committed);
    if (g->number < w->committed) {
        *g = (tcc_pgroup){.number = w->committed, .products = w->products};
    } else if (g->number == w->committed && g->products != w->products) {
        return tcc_p_wrong(p, s, warp, in, "warp %u issues other MMAs than its warpgroup", warp);
    }
    const uint32_t *passed = tcc_p_passed(p, s, warp);
    for (unsigned i = 0; g->number == w->committed && i < p->n_steps; i++)
        g->clocks[i] = passed[i] > g->clocks[i] ? passed[i] : g->clocks[i];
    tcc_p_log(p, s, warp, in, -1, w->committed);
    w->open_group = false;
    w->products = 0;
    tcc_p_tick(p, s, warp);
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_wgmma_wait(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                  const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    uint32_t pending = (uint32_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    uint32_t ended = w->committed > pending ? w->committed - pending : 0;
    unsigned first = warp / TCC_WARPGROUP_WARPS * TCC_WARPGROUP_WARPS;
    for (unsigned i = first; i < first + TCC_WARPGROUP_WARPS && i < p->n_warps; i++)
        if (s->warps[i].committed < ended)
            return TCC_P_BLOCKED;
    const tcc_pgroup *g = group_of(s, warp, ended);
    uint32_t *passed = tcc_p_passed(p, s, warp);
    for (unsigned i = 0; ended && g->number == ended && i < p->n_steps; i++)
        passed[i] = g->clocks[i] > passed[i] ? g->clocks[i] : passed[i];
    if (w->waited < ended)
        w->waited = ended;
    if (s->n_parts)
        tcc_p_step_together(p, s, warp);
    if (!tcc_p_learn_end(p, s, warp, in->op, w->mask, tcc_p_product_actor(p, warp), w->waited))
        return TCC_P_FAILED;
    for (unsigned i = 0; i < in->op->n_results; i++) {
        if (in->results[i] == TCC_P_NO_SLOT)
            continue;
        tcc_pvalue *r = tcc_p_slot(p, s, warp, in->results[i]);
        *r = in->operands[i] == TCC_P_NO_SLOT ? (tcc_pvalue){.kind = TCC_P_REGISTERS}
                                              : *tcc_p_slot(p, s, warp, in->operands[i]);
        if (r->v <= w->waited)
            r->v = 0;
    }
    tcc_p_log(p, s, warp, in, -1, ended);
    return TCC_P_NEXT;
}
