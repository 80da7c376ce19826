/* grid: the clusters of a grid, run by several threads.
 *
 * Clusters share only global memory. Each thread takes the next one that has not begun and runs it
 * in its own memory; for odd seeds the last comes first, so that overwriting another's part of a
 * result is detected. A cluster's orders are determined by the seed and its number: it does not
 * matter which thread runs it, or how many there are.
 *
 * A thread that has found an error keeps its messages and stops; the others finish the clusters
 * that they have begun. Since clusters are taken in order, all before a failing one are run, and
 * the first failing one is the same every time: its messages are reported.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>

#include "interp/machine.h"

enum { MAX_THREADS = 64 };

typedef struct grid {
    const tcc_run *run;
    const tcc_launch *launch;
    int64_t first, n_clusters;
    _Atomic int64_t next; /* the next cluster to run; n_clusters or more: none */
    _Atomic int64_t ended;
} grid;

/* A message about a cluster. */
typedef struct message {
    tcc_severity severity;
    tcc_loc loc;
    const char *text;
} message;

typedef struct worker {
    pthread_t thread;
    bool leads; /* runs in the caller's thread, which is told how far they are */
    bool joins; /* has a thread of its own; the caller's to read and write */
    grid *grid;
    tcc_arena *arena;
    tcc_run run;
    tcc_diag diag;
    tcc_status status;
    int64_t failed; /* the number of the cluster that has the status */
    TCC_VEC(message) messages;
} worker;

static void keep_message(const tcc_diagnostic *d, void *user)
{
    worker *w = user;
    const char *text = tcc_arena_strdup(w->arena, d->message);
    TCC_PUSH(w->arena, &w->messages, (message){d->severity, {d->line, d->column}, text});
}

static void tell(const worker *w)
{
    grid *g = w->grid;
    int64_t ended = atomic_fetch_add(&g->ended, 1) + 1;
    if (w->leads && g->run->options->progress)
        g->run->options->progress(ended, g->n_clusters, g->run->options->progress_user);
}

/* Whether the cluster that begins with a CTA has the one whose timeline is shown. */
static bool is_shown(const grid *g, int64_t first)
{
    int64_t cta = g->run->options->timeline.cta;
    return g->run->options->timeline.fn && cta >= first && cta < first + g->launch->cluster;
}

/* Runs one cluster after the other, from memory that may run out. */
static tcc_status run_clusters(worker *w)
{
    grid *g = w->grid;
    tcc_cluster *k;
    tcc_status status = tcc_cluster_create(&w->run, g->launch, &k);
    while (!status) {
        int64_t i = atomic_fetch_add(&g->next, 1);
        if (i >= g->n_clusters)
            break;
        w->failed = i;
        if (g->run->options->seed % 2)
            i = g->n_clusters - 1 - i;
        int64_t first = (g->first + i) * g->launch->cluster;
        w->run.rehearsal = is_shown(g, first);
        if (w->run.rehearsal)
            status = tcc_cluster_run(k, g->launch, first);
        w->run.rehearsal = false;
        if (!status)
            status = tcc_cluster_run(k, g->launch, first);
        tell(w);
    }
    return status;
}

static void *work(void *arg)
{
    worker *w = arg;
    jmp_buf oom;
    w->arena = tcc_arena_create(NULL);
    w->status = TCC_ERR_MEMORY;
    if (w->arena && !setjmp(oom)) {
        tcc_arena_set_oom(w->arena, &oom);
        w->run = *w->grid->run;
        w->run.scratch = w->arena;
        w->run.diag = &w->diag;
        w->diag.fn = keep_message;
        w->diag.user = w;
        w->status = run_clusters(w);
    }
    if (w->status)
        atomic_store(&w->grid->next, w->grid->n_clusters); /* no more are begun */
    return NULL;
}

/* Says what the worker kept. */
static void report(const tcc_run *run, const worker *w)
{
    for (size_t i = 0; i < w->messages.len; i++) {
        const message *m = &w->messages.data[i];
        if (m->severity == TCC_SEV_ERROR)
            tcc_error(run->diag, w->status, m->loc, "%s", m->text);
        else
            tcc_note(run->diag, m->loc, "%s", m->text);
    }
}

static tcc_status run_threads(tcc_run *run, grid *g, unsigned n)
{
    worker workers[MAX_THREADS];
    for (unsigned i = 0; i < n; i++) {
        workers[i] = (worker){.grid = g, .leads = !i};
        workers[i].joins = i && !pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    work(&workers[0]);
    const worker *first = NULL; /* of those that failed */
    for (unsigned i = 0; i < n; i++) {
        worker *w = &workers[i];
        if (w->joins)
            pthread_join(w->thread, NULL);
        if (w->status && (!first || w->failed < first->failed))
            first = w;
    }
    tcc_status status = first ? first->status : TCC_OK;
    if (first)
        report(run, first);
    for (unsigned i = 0; i < n; i++)
        tcc_arena_destroy(workers[i].arena);
    return status;
}

tcc_status tcc_grid_run(tcc_run *run, const tcc_launch *l)
{
    grid g = {.run = run, .launch = l, .n_clusters = l->n_ctas / l->cluster};
    unsigned n = run->options->threads;
    if (run->options->timeline.only) {
        g.first = run->options->timeline.cta / l->cluster;
        g.n_clusters = g.first < g.n_clusters;
    }
    if (n > MAX_THREADS)
        n = MAX_THREADS;
    if (n > g.n_clusters)
        n = (unsigned)g.n_clusters;
    if (n > 1)
        return run_threads(run, &g, n);
    worker caller = {.grid = &g, .run = *run};
    return run_clusters(&caller);
}
