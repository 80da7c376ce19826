/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/machine.h"

/* Tracks, from above: their numbers order them. */
enum { COPY_ENGINE = 1, TENSOR_CORES = 2, STAGES = 10, WARPS = 200, BARRIERS = 300 };

typedef struct printer {
    tcc_str *out;
    const tcc_timeline *t;
    int pid; /* a process of trace viewers for each timeline */
    unsigned n_stages;
    bool follows; /* an event has been printed */
} printer;

/* What a warp does, as far as names go. */
typedef struct role {
    bool multiplies, copies;
} role;

static role role_of(const tcc_timeline *t, unsigned warp)
{
    role r = {0};
    for (size_t i = 0; i < t->mmas.len; i++)
        r.multiplies |= t->mmas.data[i].group == warp / TCC_WARPGROUP_WARPS;
    for (size_t i = 0; i < t->copies.len; i++)
        r.copies |=
            t->copies.data[i].load && t->copies.data[i].own && t->copies.data[i].warp == warp;
    return r;
}

/* ---- stages ---------------------------------------------------------------------------- */

/* Stages are numbered in the order of their barriers' addresses. */
static unsigned count_stages(const tcc_timeline *t, int64_t below)
{
    unsigned n = 0;
    for (size_t b = 0; b < t->barriers.len; b++)
        n += t->barriers.data[b].of_copies && t->barriers.data[b].address < below;
    return n;
}

static unsigned stage_of(const tcc_timeline *t, int barrier)
{
    return count_stages(t, t->barriers.data[barrier].address);
}

/* The barrier of the copies to the stage that a barrier releases; -1 if it releases none. */
static int given_back_by(const tcc_timeline *t, int barrier)
{
    for (size_t b = 0; b < t->barriers.len; b++)
        if (t->barriers.data[b].empty == t->barriers.data[barrier].address)
            return (int)b;
    return -1;
}

static uint32_t iteration_of(const printer *p, tcc_stage_use use)
{
    return use.fill * p->n_stages + stage_of(p->t, use.barrier);
}

/* ---- events ---------------------------------------------------------------------------- */

/* Names are of letters, digits, dots and underscores, as the IR's are: nothing needs escaping. */
static void name_track(printer *p, unsigned track, const char *name)
{
    tcc_str_printf(p->out,
                   "%s{\"ph\": \"M\", \"pid\": %d, \"tid\": %u, \"name\": \"thread_name\", "
                   "\"args\": {\"name\": \"%s\"}},\n"
                   "{\"ph\": \"M\", \"pid\": %d, \"tid\": %u, \"name\": \"thread_sort_index\", "
                   "\"args\": {\"sort_index\": %u}}",
                   p->follows ? ",\n" : "", p->pid, track, name, p->pid, track, track);
    p->follows = true;
}

/* An event's arguments: where its op is from, the stage and what else is known. */
typedef struct details {
    tcc_loc loc;
    tcc_stage_use use; /* barrier -1: none */
    const char *name;  /* of a number; NULL: none */
    uint64_t number;
} details;

static void print_details(printer *p, const details *d)
{
    const char *comma = "";
    tcc_str_puts(p->out, "\"args\": {");
    if (d->loc.line) {
        tcc_str_printf(p->out, "\"line\": %u, \"column\": %u", d->loc.line, d->loc.column);
        comma = ", ";
    }
    if (d->use.barrier >= 0) {
        tcc_str_printf(p->out, "%s\"stage\": %u, \"iteration\": %u", comma,
                       stage_of(p->t, d->use.barrier), iteration_of(p, d->use));
        comma = ", ";
    }
    if (d->name)
        tcc_str_printf(p->out, "%s\"%s\": %" PRIu64, comma, d->name, d->number);
    tcc_str_puts(p->out, "}}");
}

static void print_slice(printer *p, unsigned track, const char *category, const char *name,
                        uint64_t begin, uint64_t end, details d)
{
    tcc_str_printf(p->out,
                   "%s{\"ph\": \"X\", \"pid\": %d, \"tid\": %u, \"cat\": \"%s\", \"name\": \"%s\", "
                   "\"ts\": %" PRIu64 ", \"dur\": %" PRIu64 ", ",
                   p->follows ? ",\n" : "", p->pid, track, category, name, begin, end - begin);
    p->follows = true;
    print_details(p, &d);
}

/* One end of what overlaps others of its kind. */
static void print_async(printer *p, char phase, size_t id, const char *name, uint64_t at, details d)
{
    tcc_str_printf(p->out,
                   ",\n{\"ph\": \"%c\", \"pid\": %d, \"tid\": %d, \"cat\": \"in flight\", "
                   "\"id\": %zu, \"name\": \"%s\", \"ts\": %" PRIu64 ", ",
                   phase, p->pid, COPY_ENGINE, id, name, at);
    print_details(p, &d);
}

enum { NAME = 128 };

static const char *in_stage(const printer *p, char *buffer, const char *what, tcc_stage_use use)
{
    if (use.barrier < 0)
        return what;
    snprintf(buffer, NAME, "%.96s, stage %u", what, stage_of(p->t, use.barrier));
    return buffer;
}

/* ---- tracks ---------------------------------------------------------------------------- */

static void print_copies(printer *p)
{
    name_track(p, COPY_ENGINE, "copy engine");
    for (size_t i = 0; i < p->t->copies.len; i++) {
        const tcc_timed_copy *c = &p->t->copies.data[i];
        details d = {c->loc, c->use, "bytes", (uint64_t)c->bytes};
        char what[NAME], name[NAME];
        snprintf(what, sizeof what, "%s %.64s", c->load ? "load" : "store", c->tensor);
        const char *full = in_stage(p, name, what, c->use);
        if (c->own && !p->t->measured)
            print_slice(p, COPY_ENGINE, "transfer", full, c->begin, c->transferred, d);
        print_async(p, 'b', i, full, c->issue, d);
        print_async(p, 'e', i, full, c->end, d);
    }
}

/* Which warpgroup's MMAs the tensor cores work on is not measured. */
static unsigned track_of_mmas(const printer *p, unsigned group)
{
    return TENSOR_CORES + (p->t->measured ? group : 0);
}

static void print_mmas(printer *p)
{
    char track[NAME];
    if (!p->t->measured)
        name_track(p, TENSOR_CORES, "tensor cores");
    for (unsigned g = 0; p->t->measured && g < p->t->n_warps / TCC_WARPGROUP_WARPS; g++)
        if (role_of(p->t, g * TCC_WARPGROUP_WARPS).multiplies) {
            snprintf(track, sizeof track, "MMAs of warpgroup %u", g);
            name_track(p, track_of_mmas(p, g), track);
        }
    for (size_t i = 0; i < p->t->mmas.len; i++) {
        const tcc_timed_mma *q = &p->t->mmas.data[i];
        char what[NAME], name[NAME];
        snprintf(what, sizeof what, "warpgroup %u: m64n%" PRId64 "k16", q->group, q->n);
        print_slice(p, track_of_mmas(p, q->group), "mma", in_stage(p, name, what, q->use), q->begin, q->end,
                    (details){q->loc, q->use, "issued", q->issue});
    }
}

static bool same_use(tcc_stage_use a, tcc_stage_use b)
{
    return a.barrier == b.barrier && a.fill == b.fill;
}

/* From the issue of the first copy to a stage until the last has landed, and from the first
 * MMA that reads it to the end of the last. */
static void print_use(printer *p, tcc_stage_use use)
{
    const tcc_timeline *t = p->t;
    uint64_t begin = UINT64_MAX, end = 0, bytes = 0;
    unsigned track = STAGES + stage_of(t, use.barrier);
    tcc_loc loc = {0, 0};
    for (size_t i = 0; i < t->copies.len; i++)
        if (t->copies.data[i].load && same_use(t->copies.data[i].use, use)) {
            const tcc_timed_copy *c = &t->copies.data[i];
            begin = c->issue < begin ? c->issue : begin;
            end = c->end > end ? c->end : end;
            bytes += (uint64_t)c->bytes;
            loc = c->loc;
        }
    char name[NAME];
    snprintf(name, sizeof name, "fill %u", iteration_of(p, use));
    if (end)
        print_slice(p, track, "fill", name, begin, end, (details){loc, use, "bytes", bytes});
    begin = UINT64_MAX, end = 0;
    uint64_t n = 0;
    for (size_t i = 0; i < t->mmas.len; i++)
        if (same_use(t->mmas.data[i].use, use)) {
            const tcc_timed_mma *q = &t->mmas.data[i];
            begin = q->begin < begin ? q->begin : begin;
            end = q->end > end ? q->end : end;
            loc = q->loc;
            n++;
        }
    snprintf(name, sizeof name, "use %u", iteration_of(p, use));
    if (n)
        print_slice(p, track, "use", name, begin, end, (details){loc, use, "MMAs", n});
}

static void print_stages(printer *p)
{
    for (size_t b = 0; b < p->t->barriers.len; b++) {
        const tcc_timed_barrier *barrier = &p->t->barriers.data[b];
        if (!barrier->of_copies)
            continue;
        char name[NAME];
        snprintf(name, sizeof name, "stage %u", stage_of(p->t, (int)b));
        name_track(p, STAGES + stage_of(p->t, (int)b), name);
        for (uint32_t f = 0; f < barrier->fills; f++)
            print_use(p, (tcc_stage_use){(int)b, f});
    }
}

static const char *const part_names[] = {"prologue", "main loop", "epilogue"};

/* What a wait is for, and the stage if it is for one. */
static details describe_wait(const printer *p, const tcc_timed_wait *w, char *name)
{
    static const char *const kinds[TCC_WAIT_KINDS] = {
        [TCC_WAIT_MBARRIER] = "an mbarrier", [TCC_WAIT_BARRIER] = "a barrier",
        [TCC_WAIT_MMAS] = "MMAs",    [TCC_WAIT_STORES] = "stores",   [TCC_WAIT_COPIES] = "copies",
        [TCC_WAIT_REGISTERS] = "registers",  [TCC_WAIT_OPERANDS] = "a load's result",
    };
    details d = {w->loc, {-1, 0}, NULL, 0};
    const tcc_timed_barrier *b =
        w->kind == TCC_WAIT_MBARRIER ? &p->t->barriers.data[w->which] : NULL;
    int stage = !b ? -1 : b->of_copies ? w->which : given_back_by(p->t, w->which);
    if (w->kind == TCC_WAIT_BARRIER && w->which < 0)
        snprintf(name, NAME, "barrier of the cluster");
    else if (w->kind == TCC_WAIT_BARRIER)
        snprintf(name, NAME, "barrier %d", w->which);
    else if (!b)
        snprintf(name, NAME, "wait for %s", kinds[w->kind]);
    else if (stage < 0)
        snprintf(name, NAME, "wait for the mbarrier at %" PRId64, b->address);
    else
        snprintf(name, NAME, "wait until stage %u is %s", stage_of(p->t, stage),
                 b->of_copies ? "full" : "free");
    if (stage >= 0)
        d.use = (tcc_stage_use){stage, w->fill};
    return d;
}

static void print_warp(printer *p, unsigned warp)
{
    const tcc_timeline *t = p->t;
    role r = role_of(t, warp);
    char name[NAME];
    snprintf(name, sizeof name, "warp %u%s", warp,
             r.multiplies ? ": consumer"
             : r.copies   ? ": producer"
                          : "");
    name_track(p, WARPS + warp, name);
    for (size_t i = 0; i < t->parts.len; i++)
        if (t->parts.data[i].warp == warp)
            print_slice(p, WARPS + warp, "part", part_names[t->parts.data[i].part],
                        t->parts.data[i].begin, t->parts.data[i].end,
                        (details){{0, 0}, {-1, 0}, NULL, 0});
    for (size_t i = 0; i < t->waits.len; i++)
        if (t->waits.data[i].warp == warp) {
            details d = describe_wait(p, &t->waits.data[i], name);
            print_slice(p, WARPS + warp, "wait", name, t->waits.data[i].begin, t->waits.data[i].end,
                        d);
        }
}

static void print_barrier(printer *p, int barrier)
{
    const tcc_timed_barrier *b = &p->t->barriers.data[barrier];
    int stage = b->of_copies ? barrier : given_back_by(p->t, barrier);
    unsigned track = BARRIERS + (unsigned)barrier;
    char name[NAME];
    if (stage < 0)
        snprintf(name, sizeof name, "mbarrier at %" PRId64, b->address);
    else
        snprintf(name, sizeof name, "%s barrier of stage %u", b->of_copies ? "full" : "empty",
                 stage_of(p->t, stage));
    name_track(p, track, name);
    for (size_t i = 0; i < p->t->phases.len; i++) {
        const tcc_timed_phase *f = &p->t->phases.data[i];
        if (f->barrier != barrier)
            continue;
        snprintf(name, sizeof name, "phase %u", f->phase);
        print_slice(p, track, "phase", name, f->begin, f->end,
                    (details){{0, 0}, {-1, 0}, "parity", f->phase % 2});
    }
}

static const char begin_of_events[] = "\"traceEvents\": [\n", end_of_events[] = "\n]}\n";

void tcc_timeline_print(tcc_str *out, const tcc_timeline *t, const char *beside)
{
    printer p = {.out = out, .t = t, .pid = t->measured, .n_stages = count_stages(t, INT64_MAX)};
    tcc_str_printf(out,
                   "{\"otherData\": {\"kernel\": \"%s\", \"cta\": %" PRId64 ", \"cycles\": %" PRIu64
                   ", \"unit\": \"a microsecond is a cycle\"},\n%s"
                   "{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", "
                   "\"args\": {\"name\": \"%s, CTA %" PRId64 "%s\"}}",
                   t->kernel, t->cta, t->cycles, begin_of_events, p.pid, t->kernel, t->cta, t->measured ? ", measured" : "");
    p.follows = true;
    print_copies(&p);
    print_mmas(&p);
    print_stages(&p);
    for (unsigned w = 0; w < t->n_warps; w++)
        print_warp(&p, w);
    for (size_t b = 0; b < t->barriers.len; b++)
        print_barrier(&p, (int)b);
    const char *events = beside ? strstr(beside, begin_of_events) : NULL;
    if (events) /* they end as these do */
        tcc_str_printf(out, ",\n%s", events + strlen(begin_of_events));
    else
        tcc_str_puts(out, end_of_events);
}

/* ---- summary --------------------------------------------------------------------------- */

/* Of the warps that multiply, or of those that only copy: the percentage of their time that some
 * kinds of waits take; -1: there are no such warps. */
static double share_of_waits(const tcc_timeline *t, bool multiply, unsigned kinds)
{
    uint64_t waited = 0, n = 0;
    for (unsigned w = 0; w < t->n_warps; w++) {
        role r = role_of(t, w);
        if (multiply ? !r.multiplies : r.multiplies || !r.copies)
            continue;
        n++;
        for (size_t i = 0; i < t->waits.len; i++)
            if (t->waits.data[i].warp == w && kinds >> t->waits.data[i].kind & 1)
                waited += t->waits.data[i].end - t->waits.data[i].begin;
    }
    return n && t->cycles ? 100.0 * (double)waited / (double)(n * t->cycles) : -1;
}

void tcc_timeline_summarize(tcc_str *out, const tcc_timeline *t)
{
    const unsigned stages = 1u << TCC_WAIT_MBARRIER, mmas = 1u << TCC_WAIT_MMAS;
    double busy = t->cycles ? 100.0 * (double)t->tensor_cycles / (double)t->cycles : 0;
    double producers = share_of_waits(t, false, stages);
    tcc_str_printf(out, "CTA %" PRId64 ": %" PRIu64 " cycles", t->cta, t->cycles);
    if (t->measured)
        tcc_str_printf(out, " in %.1f us", t->ns * 1e-3);
    tcc_str_printf(out, ", tensor cores %.1f %% busy", busy);
    if (t->mmas.len)
        tcc_str_printf(
            out, "; consumers wait %.1f %% for stages, %.1f %% for MMAs, %.1f %% for others",
            share_of_waits(t, true, stages), share_of_waits(t, true, mmas),
            share_of_waits(t, true, ~(stages | mmas)));
    if (producers >= 0)
        tcc_str_printf(out, "; producers %.1f %% for stages", producers);
}
