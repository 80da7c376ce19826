/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/replay.h"

#include <string.h>

#include "interp/cost.h"
#include "interp/record.h"
#include "ir/machine.h"
#include "ir/signature.h"
#include "ir/stamps.h"

/* As nvvm.stamp writes it. */
typedef struct stamp {
    uint32_t what, clock;
} stamp;
_Static_assert(sizeof(stamp) == TCC_STAMP_BYTES, "the words of a stamp");

/* What the stamps with an id are about. */
typedef struct place {
    const tcc_op *op;
    bool after, time;
} place;

/* A load's barrier, and its phase as far as the warp that loads knows. */
typedef struct filled {
    uint32_t barrier, phase;
    uint64_t waits; /* of the warp until then */
} filled;

typedef struct warp {
    stamp *stamps;
    size_t n, next;
    uint32_t first_ns, last_ns;
    uint64_t now;          /* the last stamp, in cycles since the CTA began */
    uint64_t since;        /* the stamp before the last one */
    uint64_t waits;
    TCC_VEC(tcc_timed_mma) mmas;
    size_t n_done;           /* of them have ended */
    TCC_VEC(filled) filled;
} warp;

typedef struct replay {
    const tcc_func *f;
    tcc_arena *scratch;
    tcc_recorder *recorder;
    TCC_VEC(place) places; /* by id */
    warp *warps;
    unsigned n_warps;
} replay;

/* ---- what the entry stamps ----------------------------------------------------------------- */

static void find_places(replay *r)
{
    for (const tcc_op *op = r->f->body->first; op; op = tcc_walk_next((tcc_op *)op, r->f->body)) {
        if (op->code != TCC_OP_nvvm_stamp)
            continue;
        size_t id = (size_t)tcc_attr_int(&op->attrs, "id", 0);
        bool after = tcc_attr_int(&op->attrs, "after", 0);
        const tcc_op *about = after ? op->prev : op->next;
        while (about && (about->code == TCC_OP_nvvm_stamp || about->code == TCC_OP_arith_const))
            about = after ? about->prev : about->next;
        while (r->places.len <= id)
            TCC_PUSH(r->scratch, &r->places, (place){.op = NULL});
        r->places.data[id] = (place){about, after, tcc_attr_int(&op->attrs, "time", 0)};
    }
}

/* How long the tensor cores take for the MMAs of the group that an op closes; *n: their columns. */
static uint64_t cycles_of_group(const tcc_op *commit, int64_t *n)
{
    uint64_t cycles = 0;
    for (const tcc_op *op = commit->prev; op && op->code != commit->code; op = op->prev)
        if (tcc_op_starts(op->code, TCC_BY_MMA_GROUP)) {
            *n = tcc_attr_int(&op->attrs, "n", 0);
            cycles += tcc_cost_of_mma(op);
        }
    return cycles;
}

/* Bytes of a copy's box, and its tensor: of the record [tensor_map, NAME, dims, strides, box, swizzle, elem]. */
static int64_t copied_by(const replay *r, const tcc_op *op, const char **tensor)
{
    const tcc_value *map = op->operands[tcc_op_global_use(op->code).operand];
    tcc_attr params = tcc_attr_list(&r->f->attrs, "params");
    tcc_scalar elem;
    if (map->def || map->index >= params.list.n || !tcc_attr_is_record(params.list.items[map->index], "tensor_map", "slllis"))
        return 0;
    const tcc_attr *a = params.list.items[map->index].list.items;
    *tensor = a[1].s;
    int64_t bits = tcc_scalar_find(a[6].s, strlen(a[6].s), &elem) ? tcc_scalar_bits(elem) : 0;
    for (size_t d = 0; d < a[4].list.n; d++)
        bits *= a[4].list.items[d].i;
    return bits / 8;
}

/* ---- one stamp ----------------------------------------------------------------------------- */

/* The phase of a barrier in which a warp loads: another one if it has waited since it loaded in the last. */
static uint32_t phase_of(replay *r, warp *w, uint32_t barrier)
{
    for (size_t i = 0; i < w->filled.len; i++) {
        filled *f = &w->filled.data[i];
        if (f->barrier != barrier)
            continue;
        f->phase += f->waits != w->waits;
        f->waits = w->waits;
        return f->phase;
    }
    TCC_PUSH(r->scratch, &w->filled, (filled){barrier, 0, w->waits});
    return 0;
}

static void start_copy(replay *r, warp *w, unsigned number, const tcc_op *op, uint32_t barrier)
{
    bool load = tcc_op_does(op->code, TCC_BY_MBARRIER);
    tcc_timed_copy c = {.tensor = "", .load = load, .own = true, .warp = number, .use = {-1, 0}, .loc = op->loc};
    c.bytes = copied_by(r, op, &c.tensor);
    c.issue = c.begin = c.transferred = c.end = w->now;
    if (load)
        c.use = tcc_record_load(r->recorder, barrier, phase_of(r, w, barrier), true, number);
    tcc_record_copy(r->recorder, c);
}

static void start_mmas(replay *r, warp *w, unsigned number, const tcc_op *commit)
{
    tcc_timed_mma m = {.group = number / TCC_WARPGROUP_WARPS, .issue = w->now, .begin = w->now, .loc = commit->loc};
    m.cycles = cycles_of_group(commit, &m.n);
    m.use = tcc_record_stage_of(r->recorder, number);
    TCC_PUSH(r->scratch, &w->mmas, m);
}

/* All but the last `pending` groups have ended; of a warpgroup's warps the first tells. */
static void end_mmas(replay *r, warp *w, unsigned number, size_t pending)
{
    for (; w->n_done + pending < w->mmas.len; w->n_done++) {
        tcc_timed_mma *m = &w->mmas.data[w->n_done];
        m->end = w->now;
        if (number % TCC_WARPGROUP_WARPS == 0)
            tcc_record_mma(r->recorder, *m);
    }
}

static const place *place_of(const replay *r, const stamp *s)
{
    size_t id = s->what % TCC_STAMP_IDS;
    return id < r->places.len && r->places.data[id].op ? &r->places.data[id] : NULL;
}

static void take(replay *r, unsigned number, const stamp *s)
{
    warp *w = &r->warps[number];
    const place *p = place_of(r, s);
    tcc_global_use global = tcc_op_global_use(p->op->code);
    bool waits = tcc_op_does(p->op->code, TCC_WAITS | TCC_REGISTERS);
    if (waits && !p->after)
        return;
    bool named = tcc_op_does(p->op->code, TCC_BY_MBARRIER | TCC_BY_WARPS);
    uint32_t barrier = s->what / TCC_STAMP_IDS;
    tcc_recorded what = {number, p->op, named ? (int64_t)barrier : -1};
    tcc_record_op(r->recorder, &what, waits ? w->since : w->now, w->now);
    w->waits += waits;
    if (global.any && global.async)
        start_copy(r, w, number, p->op, barrier);
    else if (tcc_op_waits(p->op->code, TCC_BY_MMA_GROUP))
        end_mmas(r, w, number, (size_t)tcc_attr_int(&p->op->attrs, "pending", 0));
    else if (tcc_op_does(p->op->code, TCC_BY_MMA_GROUP))
        start_mmas(r, w, number, p->op);
}

/* ---- all of them --------------------------------------------------------------------------- */

/* Reads a warp's stamps, the time apart; false if they are not those of a warp that has begun and ended. */
static bool read_warp(replay *r, warp *w, const stamp *from)
{
    size_t n = 0;
    while (n < TCC_STAMPS_OF_WARP && from[n].what)
        n++;
    w->stamps = TCC_NEW_ARRAY(r->scratch, stamp, n + 1);
    for (size_t i = 0; i < n; i++) {
        const place *p = place_of(r, &from[i]);
        if (!p)
            return false;
        if (!p->time)
            w->stamps[w->n++] = from[i];
        else
            *(i ? &w->last_ns : &w->first_ns) = from[i].clock;
    }
    return w->n && n < TCC_STAMPS_OF_WARP && place_of(r, &w->stamps[w->n - 1])->op->code == TCC_OP_func_return;
}

/* The clock counts on from a warp's last stamp; its upper half is not written. */
static uint64_t time_of(const warp *w)
{
    return w->now + (w->next ? w->stamps[w->next].clock - w->stamps[w->next - 1].clock : 0);
}

/* Sets where each warp begins, relative to the first. */
static void begin(replay *r)
{
    int32_t first = 0;
    for (unsigned i = 0; i < r->n_warps; i++) {
        int32_t later = (int32_t)(r->warps[i].stamps->clock - r->warps->stamps->clock);
        first = later < first ? later : first;
    }
    for (unsigned i = 0; i < r->n_warps; i++)
        r->warps[i].now = (uint64_t)((int32_t)(r->warps[i].stamps->clock - r->warps->stamps->clock) - first);
}

static warp *next_warp(replay *r)
{
    warp *next = NULL;
    for (unsigned i = 0; i < r->n_warps; i++)
        if (r->warps[i].next < r->warps[i].n && (!next || time_of(&r->warps[i]) < time_of(next)))
            next = &r->warps[i];
    return next;
}

/* A load ends for a timeline when the first warp has waited for it. */
static void end_loads(const replay *r, tcc_timeline *t)
{
    uint64_t **of_barrier = TCC_NEW_ARRAY(r->scratch, uint64_t *, t->barriers.len + 1);
    for (size_t b = 0; b < t->barriers.len; b++)
        of_barrier[b] = TCC_NEW_ARRAY(r->scratch, uint64_t, t->barriers.data[b].fills + 1);
    for (size_t i = 0; i < t->waits.len; i++) {
        const tcc_timed_wait *w = &t->waits.data[i];
        if (w->kind != TCC_WAIT_MBARRIER || w->fill >= t->barriers.data[w->which].fills)
            continue;
        uint64_t *end = &of_barrier[w->which][w->fill];
        *end = !*end || w->end < *end ? w->end : *end;
    }
    for (size_t i = 0; i < t->copies.len; i++) {
        tcc_timed_copy *c = &t->copies.data[i];
        uint64_t end = c->load ? of_barrier[c->use.barrier][c->use.fill] : 0;
        c->end = end > c->issue ? end : c->end;
    }
}

static double nanoseconds(const replay *r)
{
    int32_t most = 0;
    for (unsigned i = 0; i < r->n_warps; i++)
        for (unsigned k = 0; k < r->n_warps; k++) {
            int32_t ns = (int32_t)(r->warps[i].last_ns - r->warps[k].first_ns);
            most = ns > most ? ns : most;
        }
    return most;
}

static const tcc_timeline *refuse(const tcc_func *f, tcc_diag *diag, const char *why)
{
    tcc_error(diag, TCC_ERR_ARGUMENT, f->loc, "%s: %s", f->name, why);
    return NULL;
}

const tcc_timeline *tcc_replay(const tcc_func *f, const void *workspace, size_t bytes, tcc_arena *scratch, tcc_diag *diag)
{
    replay r = {.f = f, .scratch = scratch};
    r.n_warps = (unsigned)tcc_attr_int(&f->attrs, "block", 0) / TCC_WARP_LANES;
    size_t of_warp = (size_t)TCC_STAMPS_OF_WARP * TCC_STAMP_BYTES, all = r.n_warps * of_warp;
    find_places(&r);
    if (!r.places.len || !r.n_warps)
        return refuse(f, diag, "it was not compiled for a timeline");
    if (bytes < all)
        return refuse(f, diag, "its workspace is not all there");
    r.warps = TCC_NEW_ARRAY(scratch, warp, r.n_warps);
    for (unsigned i = 0; i < r.n_warps; i++) {
        const stamp *stamps = (const stamp *)((const char *)workspace + (bytes - all) + i * of_warp);
        if (!stamps->what)
            return refuse(f, diag, "the launch had no CTA of the number that is recorded");
        if (!read_warp(&r, &r.warps[i], stamps))
            return refuse(f, diag, "a warp waits more often than there is room to record");
    }
    r.recorder = tcc_recorder_create(scratch, f->name, tcc_attr_int(&f->attrs, "timeline", 0), r.n_warps);
    begin(&r);
    for (warp *w; (w = next_warp(&r));) {
        w->since = w->now;
        w->now = time_of(w);
        take(&r, (unsigned)(w - r.warps), &w->stamps[w->next]);
        w->next++;
    }
    tcc_timeline *t = tcc_record_end(r.recorder);
    t->measured = true;
    t->ns = nanoseconds(&r);
    end_loads(&r, t);
    return t;
}
