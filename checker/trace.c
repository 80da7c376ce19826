/* trace: errors, and the steps that led there.
 *
 * Of an execution only those steps are shown that come before the wrong one in every order: what
 * the warp has done, and what it has waited for, directly or through others. What others do
 * meanwhile may as well not have happened yet, which is most often what is wrong. Warps that do the
 * same are put into one line.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "checker/model.h"

enum { MAX_LINES = 24, MAX_TEXT = 512 };

/* Whether the barrier of an op is a named one; the last of these is the cluster's. */
static bool is_named(tcc_opcode code)
{
    return tcc_op_waits(code, TCC_BY_WARPS) || tcc_op_does(code, TCC_BY_CLUSTER);
}

void tcc_p_log(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in,
               int barrier, int64_t number)
{
    if (!p->logs)
        return;
    const tcc_pwarp *w = &s->warps[warp];
    bool named = is_named(in->op->code);
    tcc_pentry e = {.in = in,
                    .warp = warp,
                    .clock = tcc_p_passed(p, s, warp)[warp],
                    .barrier = barrier,
                    .phase = barrier < 0 ? 0
                             : named     ? s->named[barrier].phase
                                         : s->barriers[barrier].phase,
                    .number = number,
                    .iteration = -1};
    for (uint32_t d = w->depth; d-- > 0 && e.iteration < 0;)
        if (w->frames[d].record >= 0)
            e.iteration = w->frames[d].iter;
    TCC_PUSH(p->scratch, &p->log, e);
}

/* ---- lines ----------------------------------------------------------------------------------- */

typedef struct line {
    tcc_pentry first;
    uint64_t warps;
} line;

typedef struct trace {
    tcc_protocol *p;
    const tcc_pstate *s;
    TCC_VEC(line) lines;
    size_t last[TCC_P_WARPS]; /* 1 + the last line of each warp */
    bool barriers[TCC_MAX_MBARRIERS]; /* that steps shown wait for or arrive at */
} trace;

static bool is_shown(tcc_opcode code)
{
    return !tcc_op_does(code, TCC_ALLOCATES) && !tcc_op_starts(code, TCC_BY_MMA_GROUP);
}

static bool is_same_step(const tcc_pentry *a, const tcc_pentry *b)
{
    return a->in == b->in && a->barrier == b->barrier && a->phase == b->phase &&
           a->number == b->number && a->iteration == b->iteration;
}

static void add_step(trace *t, const tcc_pentry *e)
{
    for (size_t i = t->lines.len; i-- > t->last[e->warp];)
        if (is_same_step(&t->lines.data[i].first, e)) {
            t->lines.data[i].warps |= UINT64_C(1) << e->warp;
            t->last[e->warp] = i + 1;
            return;
        }
    TCC_PUSH(t->p->scratch, &t->lines, (line){*e, UINT64_C(1) << e->warp});
    t->last[e->warp] = t->lines.len;
}

/* "warp 3", "warps 0-3" */
static void print_warps(const tcc_protocol *p, char *out, size_t size, uint64_t warps)
{
    size_t n =
        (size_t)snprintf(out, size, "%s%s ", tcc_p_warp_word(p), warps & (warps - 1) ? "s" : "");
    const char *comma = "";
    for (unsigned w = 0; w < TCC_P_WARPS && n < size; w++) {
        unsigned end = w;
        if (!(warps >> w & 1))
            continue;
        while (end + 1 < TCC_P_WARPS && warps >> (end + 1) & 1)
            end++;
        n += (size_t)snprintf(out + n, size - n, end > w ? "%s%u-%u" : "%s%u", comma, w, end);
        comma = ", ";
        w = end;
    }
}

/* Which one of all by address: ring by ring, stage by stage. */
static unsigned number_of(const tcc_pstate *s, int barrier)
{
    unsigned rank = 0;
    for (unsigned b = 0; b < s->n_barriers; b++)
        rank += s->barriers[b].address < s->barriers[barrier].address;
    return rank;
}

static void print_step(const trace *t, const line *l, char *out, size_t size)
{
    const tcc_pentry *e = &l->first;
    bool one = !(l->warps & (l->warps - 1));
    const char *s = one ? "s" : "";
    tcc_opcode code = e->in->op->code;
    bool named = is_named(code);
    unsigned bar = e->barrier >= 0 && !named ? number_of(t->s, e->barrier) : 0;
    long long n = (long long)e->number;
    switch (code) {
    case TCC_OP_nvvm_mbarrier_wait:
        if (n < 0)
            snprintf(out, size, "wait%s for mbarrier %u to be new: pass%s", s, bar,
                     one ? "es" : "");
        else
            snprintf(out, size, "wait%s for phase %lld of mbarrier %u: pass%s", s, n, bar,
                     one ? "es" : "");
        return;
    case TCC_OP_nvvm_mbarrier_arrive:
        snprintf(out, size, "arrive%s at mbarrier %u, phase %u", s, bar, e->phase);
        return;
    case TCC_OP_nvvm_mbarrier_arrive_expect_tx:
    case TCC_OP_nvvm_mbarrier_arrive_expect_tx_cluster:
        snprintf(out, size, "arrive%s at mbarrier %u, phase %u, expecting %lld bytes", s, bar,
                 e->phase, n);
        return;
    case TCC_OP_nvvm_tma_load:
        snprintf(out, size, "start%s a copy of %lld bytes for mbarrier %u, phase %u", s, n, bar,
                 e->phase);
        return;
    case TCC_OP_nvvm_tma_store:
        snprintf(out, size, "start%s a copy of %lld bytes to global memory", s, n);
        return;
    case TCC_OP_nvvm_cp_async_commit:
    case TCC_OP_nvvm_bulk_commit: snprintf(out, size, "close%s copy group %lld", s, n); return;
    case TCC_OP_nvvm_cp_async_wait:
    case TCC_OP_nvvm_bulk_wait: snprintf(out, size, "wait%s for copy group %lld", s, n); return;
    case TCC_OP_nvvm_wgmma_commit: snprintf(out, size, "start%s MMA group %lld", s, n); return;
    case TCC_OP_nvvm_wgmma_wait:
        snprintf(out, size, n ? "wait%s for MMA group %lld" : "wait%s for no MMA yet", s, n);
        return;
    case TCC_OP_nvvm_barrier:
        snprintf(out, size, "arrive%s at barrier %d of %lld threads", s, e->barrier, n);
        return;
    case TCC_OP_amdgcn_s_barrier: snprintf(out, size, "arrive%s at s_barrier", s); return;
    case TCC_OP_amdgcn_waitcnt: snprintf(out, size, "wait%s for accesses to LDS", s); return;
    default: snprintf(out, size, "run%s %s", s, tcc_op_info_get(code)->name); return;
    }
}

static void print_line(const trace *t, size_t i)
{
    const line *l = &t->lines.data[i];
    char warps[MAX_TEXT], what[MAX_TEXT], iteration[64] = "";
    print_warps(t->p, warps, sizeof warps, l->warps);
    print_step(t, l, what, sizeof what);
    if (l->first.iteration >= 0)
        snprintf(iteration, sizeof iteration, ", iteration %lld", (long long)l->first.iteration);
    tcc_note(t->p->diag, l->first.in->op->loc, "step %zu%s: %s %s", i + 1, iteration, warps, what);
}

/* ---- what stands at the end ------------------------------------------------------------ */

/* The numbers that the execution goes with. */
static void print_numbers(const trace *t)
{
    for (unsigned r = 0; r < t->s->n_records; r++) {
        const tcc_precord *record = &t->s->records[r];
        const tcc_psymbol *of = tcc_p_symbol_get(t->p, record->asked);
        long long least = (long long)((record->least + of->add) / of->by);
        bool most = record->most != INT64_MAX && record->most + of->add >= (least + 1) * of->by;
        bool exact = record->most != INT64_MAX && !most;
        if (record->op && record->op->code == TCC_OP_nvvm_elect) {
            if (record->least == record->most)
                tcc_note(t->p->diag, record->op->loc, "%s", tcc_p_elected_text(t->p, record));
            continue;
        }
        const char *what = record->remainder ? "the remainder of this is"
                           : record->truth   ? "this condition is"
                                             : "this loop's bound is";
        if (record->op && !record->known && (exact || most || least > 0))
            tcc_note(t->p->diag, record->op->loc, "%s %s%lld%s%s", what, exact ? "" : "at least ",
                     least,
                     most ? tcc_arena_printf(t->p->scratch, " and at most %lld",
                                             (long long)((record->most + of->add) / of->by))
                          : "",
                     record->parent >= 0 ? ", in one iteration of the loop around it" : "");
    }
}

static void print_barriers(const trace *t, const tcc_op *op)
{
    for (unsigned b = 0; b < t->s->n_barriers; b++) {
        const tcc_pbarrier *bar = &t->s->barriers[b];
        long long bytes = (long long)(bar->bytes - bar->issued);
        if (t->barriers[b])
            tcc_note(
                t->p->diag, op->loc,
                "then mbarrier %u, at byte %lld, is in phase %u: %u of %u arrivals are missing, "
                "and %lld bytes%s",
                number_of(t->s, (int)b), (long long)(bar->address - TCC_SMEM_BASE), bar->phase,
                bar->pending, bar->expected, bytes < 0 ? -bytes : bytes,
                bytes < 0 ? " arrive that it does not expect" : "");
    }
}

/* The steps that come before a warp's next one; warp -1: all. */
static void print_trace(tcc_protocol *p, const tcc_pstate *s, int warp, const tcc_op *op)
{
    trace t = {.p = p, .s = s};
    unsigned self = warp < 0 ? 0 : tcc_p_entity(p, s, (unsigned)warp, s->warps[warp].mask);
    for (size_t i = 0; i < p->log.len; i++) {
        const tcc_pentry *e = &p->log.data[i];
        bool before =
            warp < 0 || (unsigned)warp == e->warp || tcc_p_passed(p, s, self)[e->warp] >= e->clock;
        if (!before || !is_shown(e->in->op->code))
            continue;
        add_step(&t, e);
        if (e->barrier >= 0 && !is_named(e->in->op->code))
            t.barriers[e->barrier] = true;
    }
    print_numbers(&t);
    size_t first = t.lines.len > MAX_LINES ? t.lines.len - MAX_LINES : 0;
    if (first)
        tcc_note(p->diag, t.lines.data[0].first.in->op->loc, "steps 1 to %zu are left out", first);
    for (size_t i = first; i < t.lines.len; i++)
        print_line(&t, i);
    print_barriers(&t, op);
}

/* ---- errors ---------------------------------------------------------------------------- */

static const char *format_text(tcc_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = tcc_arena_alloc(arena, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, format, args);
    return text;
}

/* Whether the two iterations of an outer loop in which a number is asked for have other numbers,
 * though it is the same in all. */
static bool contradicts(const tcc_protocol *p, const tcc_precord *a, const tcc_precord *b)
{
    return a->symbol == b->symbol && a->truth == b->truth &&
           !tcc_p_symbol_get(p, a->symbol)->varies && (a->least > b->most || b->least > a->most);
}

/* Whether a number is none that it can be: others are tried that stand for it. */
static bool is_made_up(const tcc_protocol *p, const tcc_precord *r)
{
    int64_t real = tcc_p_symbol_get(p, r->symbol)->real;
    return real && !r->truth && (r->least > real || r->most < real);
}

/* Keeps what is wrong in an execution that may be none until there is one that is wrong for
 * certain. */
static bool doubts(tcc_protocol *p, const tcc_pstate *s, const tcc_op *op, const char *what)
{
    bool doubtful = s->doubtful;
    for (unsigned i = 0; i < s->n_records; i++) {
        doubtful |= is_made_up(p, &s->records[i]) || tcc_p_contradicts_past(p, s, &s->records[i]);
        for (unsigned j = 0; j < i; j++)
            doubtful |= contradicts(p, &s->records[i], &s->records[j]);
    }
    p->doubted |= doubtful;
    if (doubtful && !p->doubt.what) {
        p->doubt.op = op;
        p->doubt.what = what;
    }
    return doubtful;
}

tcc_presult tcc_p_wrong(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                        const char *format, ...)
{
    if (p->status)
        return TCC_P_FAILED;
    va_list args;
    va_start(args, format);
    const char *what = format_text(p->scratch, format, args);
    va_end(args);
    if (doubts(p, s, in->op, what)) {
        p->other.what = NULL;
        return TCC_P_FAILED;
    }
    p->status = TCC_ERR_INTERNAL;
    tcc_error(p->diag, TCC_ERR_INTERNAL, in->op->loc, "%s", what);
    if (p->other.what)
        tcc_note(p->diag, p->other.op->loc, "%s", p->other.what);
    print_trace(p, s, (int)warp, in->op);
    return TCC_P_FAILED;
}

tcc_presult tcc_p_unsupported(tcc_protocol *p, const tcc_op *op, const char *format, ...)
{
    if (p->status)
        return TCC_P_FAILED;
    p->status = TCC_ERR_UNSUPPORTED;
    va_list args;
    va_start(args, format);
    tcc_error(p->diag, TCC_ERR_UNSUPPORTED, op ? op->loc : p->f->loc,
              "the protocol of '%s' cannot be checked: %s", p->f->name,
              format_text(p->scratch, format, args));
    va_end(args);
    return TCC_P_FAILED;
}

static const tcc_pinst *next_of(const tcc_pstate *s, unsigned warp)
{
    const tcc_pwarp *w = &s->warps[warp];
    const tcc_pframe *f = &w->frames[w->depth - 1];
    return &f->code->insts[f->pc];
}

/* Where a blocked warp waits: at which barrier of its kind. */
static int place_of(tcc_protocol *p, const tcc_pstate *s, unsigned warp)
{
    const tcc_pinst *in = next_of(s, warp);
    if (tcc_op_waits(in->op->code, TCC_BY_WARPS))
        return s->warps[warp].waits_at;
    if (!tcc_op_waits(in->op->code, TCC_BY_MBARRIER))
        return -1;
    int64_t address = tcc_p_slot(p, s, warp, in->operands[0])->v;
    unsigned b = 0;
    while (s->barriers[b].address != address)
        b++;
    return (int)b;
}

/* What blocked warps, all at one op and one barrier, wait for. */
static void print_wait(tcc_protocol *p, const tcc_pstate *s, unsigned warp, uint64_t all)
{
    const tcc_pinst *in = next_of(s, warp);
    char warps[MAX_TEXT];
    const char *ends = all & (all - 1) ? "" : "s";
    int at = place_of(p, s, warp);
    tcc_loc loc = in->op->loc;
    print_warps(p, warps, sizeof warps, all);
    if (tcc_op_waits(in->op->code, TCC_BY_WARPS)) {
        tcc_note(p->diag, loc, "%s wait%s at barrier %d: %lld of %lld threads have arrived", warps,
                 ends, at, (long long)s->named[at].arrived, (long long)s->named[at].threads);
    } else if (tcc_op_waits(in->op->code, TCC_BY_CLUSTER)) {
        tcc_note(p->diag, loc, "%s wait%s at the cluster's barrier", warps, ends);
    } else if (tcc_op_waits(in->op->code, TCC_BY_MBARRIER)) {
        const tcc_pbarrier *b = &s->barriers[at];
        tcc_note(p->diag, loc,
                 "%s wait%s for phase %u of mbarrier %u, at byte %lld: %u arrivals and %lld bytes "
                 "are missing",
                 warps, ends, b->phase, number_of(s, at), (long long)(b->address - TCC_SMEM_BASE),
                 b->pending, (long long)(b->bytes - b->issued));
    } else if (tcc_op_does(in->op->code, TCC_REGISTERS)) {
        tcc_note(p->diag, loc, "%s wait%s for registers, %lld are free", warps, ends,
                 (long long)s->free_registers[tcc_p_cta(p, warp)]);
    } else {
        tcc_note(p->diag, loc, "%s wait%s for MMAs that other warps have not started", warps, ends);
    }
}

static void print_waits(tcc_protocol *p, const tcc_pstate *s)
{
    uint64_t shown = 0;
    for (unsigned w = 0; w < p->n_warps; w++) {
        uint64_t all = 0;
        if (!s->warps[w].depth || shown >> w & 1)
            continue;
        for (unsigned v = w; v < p->n_warps; v++)
            if (s->warps[v].depth && next_of(s, v) == next_of(s, w) &&
                place_of(p, s, v) == place_of(p, s, w))
                all |= UINT64_C(1) << v;
        print_wait(p, s, w, all);
        shown |= all;
    }
}

void tcc_p_deadlock(tcc_protocol *p, const tcc_pstate *s)
{
    unsigned first = 0;
    while (!s->warps[first].depth)
        first++;
    const tcc_op *op = next_of(s, first)->op;
    for (unsigned w = 0; w < p->n_warps; w++)
        if (s->warps[w].depth && next_of(s, w)->op->code == TCC_OP_nvvm_cluster_arrive) {
            tcc_p_unsupported(p, next_of(s, w)->op,
                              "a warp may arrive at the cluster's barrier before others have waited for the phase "
                              "before");
            return;
        }
    if (doubts(p, s, op, "no warp can proceed"))
        return;
    p->status = TCC_ERR_INTERNAL;
    tcc_error(p->diag, TCC_ERR_INTERNAL, op->loc, "deadlock in '%s'", p->f->name);
    print_waits(p, s);
    print_trace(p, s, -1, op);
}
