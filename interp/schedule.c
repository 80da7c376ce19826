/* schedule: which thread goes on, and which asynchronous operation ends.
 *
 * The seed decides. A thread runs for some steps before another one may; operations end late,
 * early or at any time, in any order, so that what only works for one order is found out.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/clock.h"
#include "support/random.h"

enum { LONGEST_TURN = 200, ALWAYS = 4 };

tcc_status tcc_exec_init(tcc_exec *x, tcc_run *run, const tcc_program *p, unsigned lanes)
{
    *x = (tcc_exec){.run = run, .program = p, .lanes = lanes, .changes = 1};
    tcc_status status = tcc_run_check_room(run, NULL, p->n_cells, lanes * sizeof(tcc_cell));
    if (status)
        return status;
    x->copies = TCC_NEW_ARRAY(run->scratch, tcc_cell, p->n_cells * lanes);
    x->reg_copies = TCC_NEW_ARRAY(run->scratch, tcc_reg, p->n_values);
    tcc_exec_seed(x, 0);
    return TCC_OK;
}

void tcc_exec_seed(tcc_exec *x, uint64_t cluster)
{
    const tcc_interp_options *o = x->run->options;
    x->random = o->seed + cluster * UINT64_C(0xd1342543de82ef95); /* far from each other */
    x->haste = (unsigned)((o->seed % (ALWAYS + 1) + cluster) % (ALWAYS + 1));
    if (o->order != TCC_ORDER_RANDOM)
        x->haste = o->order == TCC_ORDER_EARLY ? ALWAYS : 0;
}

uint64_t tcc_exec_random(tcc_exec *x, uint64_t n)
{
    return tcc_random(&x->random, n);
}

tcc_outcome tcc_exec_wrong(tcc_exec *x, const tcc_op *op, const char *message)
{
    const char *who = tcc_exec_who(x);
    tcc_error(x->run->diag, TCC_ERR_INTERNAL, op->loc, "%s%s%s", who ? who : "", who ? ": " : "",
              message);
    x->status = TCC_ERR_INTERNAL;
    return TCC_FAILED;
}

bool tcc_exec_has_room(tcc_exec *x, const tcc_op *op, uint64_t n, uint64_t elem_bytes)
{
    x->status = tcc_run_check_room(x->run, op, n, elem_bytes);
    return !x->status;
}

tcc_outcome tcc_exec_end_event(tcc_exec *x, size_t i)
{
    tcc_event e = x->events.data[i];
    x->events.data[i] = x->events.data[--x->events.len];
    x->current = e.by;
    x->lane = -1;
    x->changes++;
    return e.end(x, &e);
}

static tcc_outcome end_any_event(tcc_exec *x)
{
    return tcc_exec_end_event(x, tcc_exec_random(x, x->events.len));
}

/* Groups of four threads, a warpgroup, whose number's bit is set in the seed, only proceed when the
 * others cannot: so a producer falls behind its consumers, or one consumer behind another. */
static bool is_slow(const tcc_exec *x, const tcc_thread *t)
{
    return x->run->options->seed >> t->id / 4 % 8 & 1;
}

/* Runs a thread for a while; BLOCKED when it could do nothing at all. */
static tcc_outcome take_turn(tcc_exec *x, tcc_thread *t)
{
    uint64_t turn = is_slow(x, t) ? 1 : 1 + tcc_exec_random(x, LONGEST_TURN);
    if (t->blocked_at == x->changes)
        return TCC_BLOCKED;
    for (uint64_t i = 0; i < turn && t->depth; i++) {
        tcc_outcome outcome = tcc_thread_step(t);
        if (outcome == TCC_FAILED || (outcome == TCC_BLOCKED && i == 0))
            return outcome;
        if (outcome == TCC_BLOCKED || (x->haste == ALWAYS && x->events.len))
            break;
    }
    return TCC_NEXT;
}

static tcc_outcome run_any_thread(tcc_exec *x, bool *finished)
{
    *finished = true;
    size_t n = x->threads.len, first = tcc_exec_random(x, n);
    for (int slow = 0; slow < 2; slow++)
        for (size_t i = 0, at = first; i < n; i++, at = at + 1 < n ? at + 1 : 0) {
            tcc_thread *t = x->threads.data[at];
            if (!t->depth)
                continue;
            *finished = false;
            if (is_slow(x, t) != slow)
                continue;
            tcc_outcome outcome = take_turn(x, t);
            if (outcome != TCC_BLOCKED)
                return outcome;
        }
    return TCC_BLOCKED;
}

tcc_outcome tcc_exec_explain(tcc_exec *x, const tcc_op *op, const char *why)
{
    x->why = why;
    x->why_op = op;
    return TCC_BLOCKED;
}

/* The op at which a thread waits, which says in `why` for what; NULL when the thread has ended. */
static const tcc_op *ask(tcc_exec *x, tcc_thread *t)
{
    if (!t->depth)
        return NULL;
    const tcc_frame *f = &t->frames[t->depth - 1];
    x->why = "";
    x->why_op = NULL;
    tcc_thread_step(t);
    return f->code->insts[f->pc].op;
}

/* A note for the n threads from one on, all alike. */
static void note_waiting(tcc_exec *x, size_t first, size_t n, const tcc_op *at)
{
    const char *who = tcc_threads_name(x, first, n);
    tcc_diag *diag = x->run->diag;
    if (at)
        tcc_note(diag, at->loc, "%s%s%s %s", who ? who : "", who ? " " : "",
                 n == 1 ? "waits" : "wait", x->why);
    else if (who)
        tcc_note(diag, x->run->f->loc, "%s %s ended", who, n == 1 ? "has" : "have");
    if (at && x->why_op)
        tcc_note(diag, x->why_op->loc, "the last arrival there");
}

/* Reports what each thread waits for, as told by the op at which it waits. */
tcc_status tcc_exec_deadlock(tcc_exec *x)
{
    size_t n = x->threads.len;
    const tcc_op **at = TCC_NEW_ARRAY(x->run->scratch, const tcc_op *, n + 1);
    const char **why = TCC_NEW_ARRAY(x->run->scratch, const char *, n + 1);
    const tcc_op **other = TCC_NEW_ARRAY(x->run->scratch, const tcc_op *, n + 1);
    const tcc_op *first = NULL;
    x->explain = true;
    for (size_t i = 0; i < n; i++) {
        at[i] = ask(x, x->threads.data[i]);
        why[i] = x->why;
        other[i] = x->why_op;
        first = first ? first : at[i];
    }
    x->current = NULL;
    TCC_WRONG(x, first, "deadlock: every thread waits");
    for (size_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && tcc_threads_name(x, i, same + 1); same++)
            if (at[i + same] != at[i] || (at[i] && strcmp(why[i + same], why[i])))
                break;
        x->why = why[i];
        x->why_op = other[i];
        note_waiting(x, i, same, at[i]);
    }
    return x->status;
}

tcc_status tcc_exec_run(tcc_exec *x)
{
    if (x->cluster && x->run->options->order == TCC_ORDER_TIMED)
        return tcc_clock_run(x);
    for (;;) {
        if (x->events.len && tcc_exec_random(x, ALWAYS) < x->haste) {
            if (end_any_event(x) == TCC_FAILED)
                return x->status;
            continue;
        }
        bool finished;
        tcc_outcome outcome = run_any_thread(x, &finished);
        if (outcome == TCC_FAILED)
            return x->status;
        if (outcome != TCC_BLOCKED)
            continue;
        if (x->events.len) {
            if (end_any_event(x) == TCC_FAILED)
                return x->status;
        } else if (finished) {
            return TCC_OK;
        } else if (x->asked == x->changes) {
            return tcc_exec_deadlock(x);
        } else {
            x->asked = ++x->changes; /* an op that could not go on may have arrived where others wait */
        }
    }
}
