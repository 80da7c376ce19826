/* module: the functions of a module, and the plans that launch them, several at a time: they have nothing to do with each
 * other, but that one proof is for all functions that are alike (alike.c).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "checker/launch.h"
#include "checker/model.h"
#include "ir/signature.h"
#include "support/threads.h"

/* What is followed of a function, and the first function of which that is the same: its proof is for both. */
typedef struct proof {
    uint8_t *bytes;
    size_t n, first;
} proof;

/* What the threads share. */
typedef struct work {
    const tcc_func **funcs;
    tcc_status *status; /* of each, and behind them of the plan of each; an error until it is proven */
    bool *layouts;      /* whether its proof asked how operands lie (operands.c): then it is for no other */
    bool *warns;        /* of each plan, whether its proof warns */
    proof *proofs;      /* of those that were begun, in the order of `status`; the lock is held while they are looked at */
    size_t n;
    atomic_size_t next;
    pthread_mutex_t lock;
    tcc_covered covered; /* by all proofs so far; the lock is held while it is added to */
} work;

/* Whether a function is the first of its kind; if it may not be known, it is. */
static bool is_first(work *w, size_t i, const uint8_t *bytes, size_t n)
{
    uint8_t *kept = bytes ? malloc(n) : NULL;
    if (!kept)
        return true;
    memcpy(kept, bytes, n);
    pthread_mutex_lock(&w->lock);
    size_t k = 0;
    while (k < 2 * w->n && !(w->proofs[k].n == n && w->proofs[k].first == k && !memcmp(w->proofs[k].bytes, bytes, n)))
        k++;
    w->proofs[i] = (proof){kept, n, k < 2 * w->n ? k : i};
    pthread_mutex_unlock(&w->lock);
    return k == 2 * w->n;
}

static void add_covered(work *w, const tcc_covered *c)
{
    pthread_mutex_lock(&w->lock);
    tcc_covered *sum = &w->covered;
    *sum = (tcc_covered){.ops = sum->ops + c->ops,
                         .loops = sum->loops + c->loops,
                         .warps = sum->warps + c->warps,
                         .ends = sum->ends + c->ends,
                         .steps = sum->steps + c->steps,
                         .proofs = sum->proofs + 1};
    pthread_mutex_unlock(&w->lock);
}

static tcc_status check(work *w, size_t i, tcc_arena *scratch)
{
    tcc_diag silent = {0};
    tcc_protocol *p = tcc_p_open(w->funcs[i], scratch, &silent);
    size_t n;
    tcc_covered covered;
    const uint8_t *bytes = tcc_p_write(p, &n);
    bool own = is_first(w, i, bytes, n);
    tcc_status status = own ? tcc_p_prove(p, &silent, &covered) : TCC_OK;
    if (own)
        add_covered(w, &covered);
    w->layouts[i] = p->layouts;
    return status;
}

static tcc_status check_plan(work *w, size_t i, tcc_arena *scratch)
{
    tcc_diag silent = {0};
    tcc_status status;
    tcc_lplan p;
    if (!tcc_launch_open(&p, w->funcs[i], scratch, &silent, &status))
        return status;
    size_t n;
    const uint8_t *bytes = tcc_launch_write(&p, &n);
    status = is_first(w, w->n + i, bytes, n) ? tcc_launch_prove(&p) : TCC_OK;
    w->warns[i] = silent.n_warnings;
    return status;
}

/* The i-th function or, behind them, plan. A proof takes memory of its own, more than the IR does. */
static tcc_status take(work *w, size_t i, tcc_arena *scratch)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(scratch, &oom);
    tcc_arena_clear(scratch);
    return i < w->n ? check(w, i, scratch) : check_plan(w, i - w->n, scratch);
}

/* Takes functions that no thread has taken yet. Errors are reported later. */
static void *take_functions(void *arg)
{
    work *w = arg;
    tcc_arena *scratch = tcc_arena_create(NULL);
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < 2 * w->n;)
        w->status[i] = scratch ? take(w, i, scratch) : TCC_ERR_MEMORY;
    tcc_arena_destroy(scratch);
    return NULL;
}

/* What is wrong with a function or a plan, once more. */
static tcc_status check_again(tcc_status (*of)(const tcc_func *, tcc_arena *, tcc_diag *), const tcc_func *f,
                              tcc_diag *diag)
{
    jmp_buf oom;
    tcc_arena *scratch = tcc_arena_create(NULL);
    if (!scratch || setjmp(oom)) {
        tcc_arena_destroy(scratch);
        return TCC_ERR_MEMORY;
    }
    tcc_arena_set_oom(scratch, &oom);
    tcc_status status = of(f, scratch, diag);
    tcc_arena_destroy(scratch);
    return status;
}

static size_t first_of(const work *w, size_t i)
{
    return w->proofs[i].bytes ? w->proofs[i].first : i;
}

/* Tells what is wrong in the functions' order: it goes wrong again. What the first proof is not for has its own. */
static tcc_status tell(const work *w, tcc_diag *diag)
{
    tcc_status status = TCC_OK;
    for (size_t i = 0; i < w->n && !status; i++) {
        size_t first = first_of(w, i);
        if (w->status[first] || (first != i && w->layouts[first]))
            status = check_again(tcc_protocol_check, w->funcs[i], diag);
    }
    for (size_t i = 0; i < w->n && !status; i++)
        if (w->status[first_of(w, w->n + i)] || w->warns[first_of(w, w->n + i) - w->n])
            status = check_again(tcc_launch_check, w->funcs[i], diag);
    return status;
}

tcc_status tcc_protocol_cover_all(const tcc_ir *ir, size_t n_threads, tcc_diag *diag, tcc_covered *covered)
{
    work w = {.lock = PTHREAD_MUTEX_INITIALIZER};
    size_t n = 0;
    for (const tcc_func *f = ir->first; f; f = f->next)
        n += !tcc_func_is_definition(f);
    w.funcs = calloc(n + 1, sizeof *w.funcs);
    w.status = calloc(2 * n + 1, sizeof *w.status);
    w.layouts = calloc(n + 1, sizeof *w.layouts);
    w.warns = calloc(n + 1, sizeof *w.warns);
    w.proofs = calloc(2 * n + 1, sizeof *w.proofs);
    tcc_status status = TCC_ERR_MEMORY;
    if (w.funcs && w.status && w.layouts && w.warns && w.proofs) {
        for (const tcc_func *f = ir->first; f; f = f->next)
            if (!tcc_func_is_definition(f)) {
                w.status[w.n] = w.status[n + w.n] = TCC_ERR_INTERNAL;
                w.funcs[w.n++] = f;
            }
        tcc_run_threads(n_threads ? n_threads : tcc_threads_for(n), take_functions, &w);
        status = tell(&w, diag);
    }
    for (size_t i = 0; w.proofs && i < 2 * w.n; i++)
        free(w.proofs[i].bytes);
    free(w.funcs);
    free(w.status);
    free(w.layouts);
    free(w.warns);
    free(w.proofs);
    *covered = w.covered;
    return status;
}

tcc_status tcc_protocol_check_all(const tcc_ir *ir, size_t n_threads, tcc_diag *diag)
{
    tcc_covered covered;
    return tcc_protocol_cover_all(ir, n_threads, diag, &covered);
}
