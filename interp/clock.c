/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/clock.h"

#include <string.h>

#include "interp/cost.h"
#include "interp/machine.h"
#include "interp/record.h"
#include "ir/machine.h"

enum { SCHEDULERS = TCC_COST_schedulers };
#define NEVER UINT64_MAX

typedef struct warp_clock {
    uint64_t time;   /* before which its next op does not begin */
    uint64_t *ready; /* of each value: when it can be used */
    uint32_t *from;  /* of each value: the opcode that brings it */
    bool asleep;     /* it could not go on, and nothing has happened since */
    bool waits;      /* since: */
    uint64_t since;
    uint64_t first_load, n_loads; /* from global memory, of its block so far */
    uint32_t issued;              /* MMAs */
    TCC_VEC(uint32_t) groups;     /* MMAs issued up to the end of each */
} warp_clock;

/* An MMA of a warpgroup, which begins when all its warps have issued it. */
typedef struct mma {
    unsigned arrived;
    uint64_t end;
} mma;

typedef struct group_clock {
    TCC_VEC(mma) mmas;
} group_clock;

/* The SM that runs a CTA. */
typedef struct sm {
    warp_clock *warps;
    group_clock *groups;
    uint64_t scheduler[SCHEDULERS], smem, loads, stores, tensor; /* when each is free */
    tcc_recorder *recorder;                                      /* NULL: not recorded */
} sm;

/* Bytes of a tensor that the copy engines of a cluster moved in the rehearsal. */
typedef struct traffic {
    uint64_t loaded, stored;
} traffic;

struct tcc_clock {
    tcc_exec *x;
    traffic *traffic;       /* by parameter of the run */
    double cycles_per_byte; /* of a copy engine */
    tcc_arena *scratch;
    sm *sms;                /* of each CTA of the cluster */
    TCC_VEC(uint64_t) ends; /* of x's events, by index */
    uint64_t now;
};

typedef struct tcc_clock clock;

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t div_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* ---- what is next ---------------------------------------------------------------------- */

static sm *sm_of(clock *c, const tcc_thread *t)
{
    return &c->sms[t->warp->cta->rank];
}

static warp_clock *clock_of(clock *c, const tcc_thread *t)
{
    return &sm_of(c, t)->warps[t->id];
}

/* The next op of a warp; NULL at the end of a region. */
static const tcc_inst *next_of(const tcc_thread *t)
{
    const tcc_frame *f = &t->frames[t->depth - 1];
    return f->pc < f->code->n ? &f->code->insts[f->pc] : NULL;
}

/* The operand that comes last, and when. */
static uint64_t operands_ready(const warp_clock *w, const tcc_inst *in, unsigned *last)
{
    uint64_t ready = 0;
    for (unsigned i = 0; in && i < in->op->n_operands; i++)
        if (w->ready[in->operands[i]] > ready) {
            ready = w->ready[in->operands[i]];
            *last = i;
        }
    return ready;
}

static uint64_t begin_of(clock *c, const tcc_thread *t)
{
    const tcc_inst *in = next_of(t);
    const warp_clock *w = clock_of(c, t);
    unsigned last;
    uint64_t begin = max(w->time, operands_ready(w, in, &last));
    bool issues = !in || tcc_cost_of(in->op).issue;
    return issues ? max(begin, sm_of(c, t)->scheduler[t->id % SCHEDULERS]) : begin;
}

/* The warp that begins first; NULL when all sleep or have ended. */
static tcc_thread *next_warp(clock *c, uint64_t *begin)
{
    tcc_thread *next = NULL;
    *begin = NEVER;
    for (size_t i = 0; i < c->x->threads.len; i++) {
        tcc_thread *t = c->x->threads.data[i];
        if (!t->depth || clock_of(c, t)->asleep)
            continue;
        uint64_t at = begin_of(c, t);
        if (at < *begin) {
            next = t;
            *begin = at;
        }
    }
    return next;
}

static size_t next_event(const clock *c, uint64_t *end)
{
    size_t next = 0;
    *end = NEVER;
    for (size_t i = 0; i < c->x->events.len; i++)
        if (c->ends.data[i] < *end) {
            next = i;
            *end = c->ends.data[i];
        }
    return next;
}

/* Something has happened for which a warp may have waited. */
static void wake_all(clock *c)
{
    for (size_t i = 0; i < c->x->threads.len; i++) {
        warp_clock *w = clock_of(c, c->x->threads.data[i]);
        if (w->asleep)
            w->time = max(w->time, c->now);
        w->asleep = false;
    }
}

/* ---- copies ---------------------------------------------------------------------------- */

/* How fast an SM receives and sends what is copied while all SMs do as it does. Memory serves all of them together, with
 * what is stored, and of each tensor that is loaded every byte once; L2 has the rest. Known after a rehearsal: before it,
 * as if all were in L2. */
static double cycles_per_byte(const clock *c)
{
    const tcc_run *run = c->x->run;
    const tcc_cluster *k = c->x->cluster;
    int64_t sms = tcc_target_of(run->f->ir)->sms;
    double clusters = (double)k->n_launched / k->n_ctas, all = 0, memory = 0;
    double at_once = (double)(k->n_launched < sms ? k->n_launched : sms);
    for (size_t i = 0; i < run->n_params; i++) {
        double loaded = clusters * (double)c->traffic[i].loaded, stored = clusters * (double)c->traffic[i].stored;
        double bytes = (double)tcc_param_bytes(&run->params[i]);
        all += loaded + stored;
        memory += stored + (loaded < bytes ? loaded : bytes);
    }
    double share = all > 0 ? at_once * memory / all : 0;
    double by_sm = 1.0 / TCC_COST_copy_bytes + share / TCC_COST_missed_bytes, by_memory = share / TCC_COST_memory_bytes;
    return by_sm > by_memory ? by_sm : by_memory;
}

static void count_traffic(clock *c, const tcc_bulk_copy *copy)
{
    if (!copy->map)
        return;
    traffic *t = &c->traffic[copy->map->tensor - c->x->run->params];
    *(copy->barrier ? &t->loaded : &t->stored) += (uint64_t)copy->bytes;
}

static void record_copy(clock *c, const tcc_thread *t, const tcc_bulk_copy *copy,
                        tcc_timed_copy times)
{
    tcc_recorder *r = c->sms[copy->cta->rank].recorder;
    if (!r || !copy->map)
        return;
    const tcc_mbarrier *m = copy->barrier;
    times.tensor = copy->map->tensor->name;
    times.load = m;
    times.own = t->warp->cta == copy->cta;
    times.warp = t->id;
    times.address = copy->address;
    times.bytes = copy->bytes;
    times.use = m ? tcc_record_load(r, m->address, m->phase, times.own, t->id) : (tcc_stage_use){-1, 0};
    tcc_record_copy(r, times);
}

/* Rows that do not begin at lines of L2 take parts of more of them. */
static double bytes_of(const tcc_bulk_copy *copy)
{
    const tcc_tensor_map *m = copy->map;
    bool off = m && m->rank > 1 && m->strides[1] * m->elem_bytes % TCC_LINE_BYTES;
    return (double)copy->bytes * (off ? 1 + 1.0 / TCC_COST_off_line : 1);
}

/* Gives the copies that an op has started their times: an SM transfers one after the other, each CTA's of what goes to
 * several. The first waits for its tensor map. */
static void time_copies(clock *c, const tcc_thread *t, const tcc_inst *in)
{
    for (bool first = true; c->ends.len < c->x->events.len; first = false) {
        const tcc_bulk_copy *copy = c->x->events.data[c->ends.len].data;
        sm *s = &c->sms[copy->cta->rank];
        bool by_memory = copy->map;
        uint64_t *free = copy->barrier ? &s->loads : &s->stores;
        uint64_t begin = max(c->now + (by_memory && !s->loads ? TCC_COST_map_latency : 0), *free);
        uint64_t transferred = begin + (uint64_t)(bytes_of(copy) * (by_memory ? c->cycles_per_byte : 1.0 / TCC_COST_smem_bytes));
        *free = transferred;
        if (c->x->run->rehearsal && (first || !tcc_op_does(in->op->code, TCC_CLUSTER)))
            count_traffic(c, copy);
        uint64_t end = transferred + (copy->barrier && copy->map ? TCC_COST_copy_latency : TCC_COST_smem_latency);
        TCC_PUSH(c->scratch, &c->ends, end);
        record_copy(c, t, copy,
                    (tcc_timed_copy){.issue = c->now,
                                     .begin = begin,
                                     .transferred = transferred,
                                     .end = end,
                                     .loc = in->op->loc});
    }
}

static void record_phases(clock *c)
{
    for (unsigned r = 0; r < c->x->cluster->n_ctas; r++)
        if (c->sms[r].recorder)
            tcc_record_phases(c->sms[r].recorder, &c->x->cluster->ctas[r], c->now);
}

static tcc_outcome end_event(clock *c, size_t i, uint64_t end)
{
    c->ends.data[i] = c->ends.data[--c->ends.len];
    c->now = end;
    wake_all(c);
    tcc_outcome outcome = tcc_exec_end_event(c->x, i);
    record_phases(c);
    return outcome;
}

/* ---- MMAs ------------------------------------------------------------------------------ */

static unsigned warps_of_group(const clock *c, unsigned group)
{
    unsigned n = c->x->cluster->n_warps - group * TCC_WARPGROUP_WARPS;
    return n < TCC_WARPGROUP_WARPS ? n : TCC_WARPGROUP_WARPS;
}

/* The stage that the operands of an MMA are in: that of its descriptor of B. */
static tcc_stage_use stage_of_mma(const sm *s, const tcc_thread *t, const tcc_inst *in)
{
    enum { START_BITS = 0x3fff, START_UNIT = 16 }; /* of a matrix descriptor */
    return tcc_record_stage_at(s->recorder, (tcc_operand_int(t, in, 2) & START_BITS) * START_UNIT);
}

/* The tensor cores take one MMA after the other. */
static void issue_mma(clock *c, const tcc_thread *t, const tcc_inst *in)
{
    unsigned group = t->id / TCC_WARPGROUP_WARPS;
    warp_clock *w = clock_of(c, t);
    sm *s = sm_of(c, t);
    group_clock *g = &s->groups[group];
    if (w->issued == g->mmas.len)
        TCC_PUSH(c->scratch, &g->mmas, (mma){0});
    mma *p = &g->mmas.data[w->issued++];
    if (++p->arrived < warps_of_group(c, group))
        return;
    int64_t n = tcc_attr_int(&in->op->attrs, "n", 0);
    uint64_t begin = max(c->now, s->tensor);
    p->end = s->tensor = begin + tcc_cost_of_mma(in->op);
    if (s->recorder)
        tcc_record_mma(s->recorder, (tcc_timed_mma){.group = group,
                                                    .n = n,
                                                    .cycles = p->end - begin,
                                                    .issue = c->now,
                                                    .begin = begin,
                                                    .end = p->end,
                                                    .use = stage_of_mma(s, t, in),
                                                    .loc = in->op->loc});
}

/* When the MMAs have ended for which a warp waits. */
static uint64_t mmas_end(clock *c, const tcc_thread *t, const tcc_inst *in)
{
    const warp_clock *w = clock_of(c, t);
    const group_clock *g = &sm_of(c, t)->groups[t->id / TCC_WARPGROUP_WARPS];
    size_t pending = (size_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    size_t ended = w->groups.len > pending ? w->groups.len - pending : 0;
    uint32_t n = ended ? w->groups.data[ended - 1] : 0;
    return n ? g->mmas.data[n - 1].end + TCC_COST_tensor_latency : 0;
}

/* ---- running --------------------------------------------------------------------------- */

/* When a load from global memory was issued. ptxas puts loads ahead of what uses them: those of a
 * block are assumed to be issued one after the other from the first on. */
static uint64_t load_issued(warp_clock *w, uint64_t now)
{
    if (!w->n_loads)
        w->first_load = now;
    return w->first_load + ++w->n_loads;
}

/* Across what waits for others, and from iteration to iteration, no load is moved. */
static bool bounds_loads(tcc_opcode code)
{
    return tcc_op_does(code, TCC_WAITS) || tcc_op_info_get(code)->flags & TCC_TERMINATOR;
}

/* Whether threads load from these spaces. */
static bool is_load(tcc_opcode code, unsigned spaces)
{
    return tcc_op_does(code, spaces) && !tcc_op_does(code, TCC_ASYNC_PROXY);
}

/* NULL: the end of a region. */
static void take_time(clock *c, const tcc_thread *t, const tcc_inst *in)
{
    warp_clock *w = clock_of(c, t);
    sm *s = sm_of(c, t);
    tcc_cost k = in ? tcc_cost_of(in->op) : (tcc_cost){.issue = 1};
    uint64_t issued = c->now + k.issue, done = issued;
    if (k.issue)
        s->scheduler[t->id % SCHEDULERS] = issued;
    if (k.smem_bytes)
        done = s->smem = max(issued, s->smem) + div_up(k.smem_bytes, TCC_COST_smem_bytes);
    w->time = issued + k.hold;
    if (!in || bounds_loads(in->op->code))
        w->n_loads = 0;
    if (!in)
        return;
    if (is_load(in->op->code, TCC_READS_GLOBAL))
        done = load_issued(w, c->now);
    for (unsigned i = 0; i < in->op->n_results; i++) {
        w->ready[in->results[i]] = done + k.latency;
        w->from[in->results[i]] = in->op->code;
    }
    if (!k.issue) { /* what it passes on comes no earlier than what it takes */
        unsigned last = 0;
        uint64_t ready = operands_ready(w, in, &last);
        for (unsigned i = 0; i < in->op->n_results; i++)
            w->ready[in->results[i]] = ready;
    }
}

static tcc_recorded recorded(const tcc_thread *t, const tcc_inst *in)
{
    return (tcc_recorded){t->id, in->op, in->op->n_operands ? tcc_operand_int(t, in, 0) : -1};
}

static void account(clock *c, const tcc_thread *t, const tcc_inst *in)
{
    warp_clock *w = clock_of(c, t);
    take_time(c, t, in);
    if (!in)
        return;
    uint64_t since = w->waits ? w->since : c->now, at_once = w->time;
    tcc_opcode code = in->op->code;
    tcc_global_use global = tcc_op_global_use(code);
    if (global.any && global.async)
        time_copies(c, t, in);
    else if (tcc_op_starts(code, TCC_BY_MMA_GROUP))
        issue_mma(c, t, in);
    else if (tcc_op_waits(code, TCC_BY_MMA_GROUP))
        w->time = max(w->time, mmas_end(c, t, in));
    else if (tcc_op_does(code, TCC_BY_MMA_GROUP))
        TCC_PUSH(c->scratch, &w->groups, w->issued);
    tcc_recorder *r = sm_of(c, t)->recorder;
    if (r) {
        bool waited = w->waits || w->time > at_once;
        tcc_recorded what = recorded(t, in);
        tcc_record_op(r, &what, waited ? since : w->time, w->time);
    }
    record_phases(c);
    w->waits = false;
    if (!(tcc_op_info_get(in->op->code)->flags & TCC_PURE))
        wake_all(c);
}

/* A warp that stood still for an operand, which a load brings. */
static void record_stall(clock *c, const tcc_thread *t, const tcc_inst *in)
{
    const warp_clock *w = clock_of(c, t);
    unsigned last = 0;
    uint64_t ready = operands_ready(w, in, &last);
    tcc_recorder *r = sm_of(c, t)->recorder;
    if (!r || w->waits || ready <= w->time)
        return;
    tcc_opcode from = (tcc_opcode)w->from[in->operands[last]];
    tcc_recorded what = recorded(t, in);
    if (is_load(from, TCC_READS_GLOBAL | TCC_READS_SHARED))
        tcc_record_wait(r, &what, TCC_WAIT_OPERANDS, w->time, ready);
}

static tcc_outcome run_warp(clock *c, tcc_thread *t, uint64_t begin)
{
    const tcc_inst *in = next_of(t);
    warp_clock *w = clock_of(c, t);
    c->now = begin;
    record_stall(c, t, in);
    tcc_outcome outcome = tcc_thread_step(t);
    if (outcome == TCC_FAILED)
        return outcome;
    if (outcome == TCC_BLOCKED) {
        if (!w->waits)
            w->since = begin;
        w->waits = w->asleep = true;
        return outcome;
    }
    account(c, t, in);
    return outcome;
}

/* Room for what is known of each SM's warps. */
static clock *create(tcc_exec *x)
{
    tcc_arena *scratch = x->run->scratch;
    size_t n_ctas = x->cluster->n_ctas, n = x->cluster->n_warps, n_values = x->program->n_values;
    clock *c = TCC_NEW(scratch, clock);
    c->x = x;
    c->scratch = scratch;
    c->traffic = TCC_NEW_ARRAY(scratch, traffic, x->run->n_params);
    c->sms = TCC_NEW_ARRAY(scratch, sm, n_ctas);
    for (size_t r = 0; r < n_ctas; r++) {
        c->sms[r].warps = TCC_NEW_ARRAY(scratch, warp_clock, n);
        c->sms[r].groups = TCC_NEW_ARRAY(scratch, group_clock, n);
        for (size_t w = 0; w < n; w++) {
            c->sms[r].warps[w].ready = TCC_NEW_ARRAY(scratch, uint64_t, n_values);
            c->sms[r].warps[w].from = TCC_NEW_ARRAY(scratch, uint32_t, n_values);
        }
    }
    return c;
}

static void begin_warp(warp_clock *w, size_t n_values)
{
    memset(w->ready, 0, n_values * sizeof *w->ready);
    w->groups.len = 0;
    *w = (warp_clock){.time = TCC_COST_start_latency, .ready = w->ready, .from = w->from, .groups = w->groups};
}

static void begin_sm(sm *s, const tcc_cta *cta)
{
    const tcc_exec *x = cta->cluster->x;
    const tcc_interp_options *o = x->run->options;
    for (unsigned w = 0; w < x->cluster->n_warps; w++) {
        begin_warp(&s->warps[w], x->program->n_values);
        s->groups[w].mmas.len = 0;
    }
    bool wanted = o->timeline.fn && o->timeline.cta == cta->id && !x->run->rehearsal;
    *s = (sm){.warps = s->warps,
              .groups = s->groups,
              .recorder = wanted ? tcc_recorder_create(x->run->scratch, x->run->f->name, cta->id, x->cluster->n_warps)
                                 : NULL};
}

/* Lets all warps and copies go on, in the order of their times, until none can. */
static bool run_all(clock *c)
{
    for (;;) {
        uint64_t warp_begin, event_end;
        tcc_thread *t = next_warp(c, &warp_begin);
        size_t event = next_event(c, &event_end);
        if (!t && !c->x->events.len)
            return true;
        bool is_event = c->x->events.len && event_end <= warp_begin;
        tcc_outcome outcome =
            is_event ? end_event(c, event, event_end) : run_warp(c, t, warp_begin);
        if (outcome == TCC_FAILED)
            return false;
    }
}

tcc_status tcc_clock_run(tcc_exec *x)
{
    clock *c = x->clock ? x->clock : create(x);
    x->clock = c;
    c->now = 0;
    if (x->run->rehearsal)
        memset(c->traffic, 0, x->run->n_params * sizeof *c->traffic);
    c->cycles_per_byte = cycles_per_byte(c);
    for (unsigned r = 0; r < x->cluster->n_ctas; r++)
        begin_sm(&c->sms[r], &x->cluster->ctas[r]);
    if (!run_all(c))
        return x->status;
    for (size_t i = 0; i < x->threads.len; i++)
        if (x->threads.data[i]->depth)
            return tcc_exec_deadlock(x);
    for (unsigned r = 0; r < x->cluster->n_ctas; r++)
        if (c->sms[r].recorder)
            x->run->options->timeline.fn(tcc_record_end(c->sms[r].recorder), x->run->options->timeline.user);
    return TCC_OK;
}
