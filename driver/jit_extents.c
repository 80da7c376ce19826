/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/jit.h"

#include <stdlib.h>
#include <string.h>

#include "driver/tune_judge.h"
#include "runtime/disk_cache.h"
#include "support/str.h"

/* A kernel serves extents well if its estimate is at most this many times that of the compiler's choice for them. */
#define SERVES_WELL 1.1

enum { MOST_EXTENTS = 4096 /* that are remembered; later ones are served by the kernel itself */ };

/* ---- deciding ----------------------------------------------------------------------------- */

/* What the compiler would choose, where that is so much better; the caller frees it. NULL: it is not. */
static char *better_schedule(const tcc_jit_request *r, const tcc_kernel *k, const int64_t *dims)
{
    size_t n = tcc_kernel_dim_count(k), n_args = tcc_kernel_arg_count(k);
    tcc_arg *args = calloc(n_args + 1, sizeof *args); /* aligned, as allocators give them */
    int64_t cost = args ? tcc_kernel_cost(k, dims, n, args, n_args) : -1;
    free(args);
    const char **names = cost > 0 ? calloc(n + 1, sizeof *names) : NULL;
    if (!names)
        return NULL;
    for (size_t i = 0; i < n; i++)
        names[i] = tcc_kernel_dim_name(k, i);
    tcc_tune_program p = {.source = r->source,
                          .compile = r->options,
                          .dims = dims,
                          .n_dims = n,
                          .attrs = k->program->device,
                          .subject = {.kernel = tcc_kernel_name(k)}};
    p.compile.tiles = 0;
    p.compile.n_ranges = 0;
    tcc_verdict v = tcc_tune_judge_known(&p, names);
    free(names);
    if (!v.status && (double)v.cost * SERVES_WELL < (double)cost)
        return v.schedule;
    free(v.schedule);
    return NULL;
}

/* The kernel of the source with a schedule appended; NULL if there is none. */
static const tcc_kernel *make_with(tcc_jit *jit, const tcc_jit_request *r, const char *kernel, const char *schedule)
{
    tcc_compile_options o = r->options;
    tcc_jit_request own;
    tcc_str text = {0};
    const tcc_program *program = NULL;
    o.kernel = kernel;
    o.tiles = 0;
    o.n_ranges = 0;
    tcc_str_printf(&text, "%s\n%s", r->source, schedule);
    if (!text.failed && tcc_jit_request_init(&own, tcc_str_text(&jit->build), tcc_str_text(&text), &o)) {
        own.is_quiet = true; /* the kernel itself does as well */
        own.in_background = r->in_background;
        tcc_jit_find(jit, &own, &program);
        tcc_jit_request_free(&own);
    }
    tcc_str_free(&text);
    return tcc_program_kernel(program, kernel);
}

/* The kernel that was made for these extents; NULL: none is needed. */
static const tcc_kernel *decide(tcc_jit *jit, const tcc_jit_request *r, const tcc_kernel *k, const int64_t *dims)
{
    const tcc_kernel *own = NULL;
    char *schedule = better_schedule(r, k, dims);
    if (schedule)
        own = make_with(jit, r, tcc_kernel_name(k), schedule);
    free(schedule);
    jit->specialized += own != NULL;
    return own;
}

/* ---- remembering -------------------------------------------------------------------------- */

static size_t list_of(const tcc_kernel *k, const int64_t *dims)
{
    uint64_t hash = tcc_hash((tcc_bytes){dims, tcc_kernel_dim_count(k) * sizeof *dims});
    return (hash ^ (uintptr_t)k >> 6) % TCC_JIT_LISTS;
}

/* With the mutex. */
static tcc_jit_extents *find_extents(const tcc_jit *jit, const tcc_kernel *k, const int64_t *dims)
{
    tcc_jit_extents *e = jit->extents[list_of(k, dims)];
    while (e && (e->kernel != k || memcmp(e->dims, dims, tcc_kernel_dim_count(k) * sizeof *dims)))
        e = e->next;
    return e;
}

/* With the mutex. NULL: no more are remembered. */
static tcc_jit_extents *add_extents(tcc_jit *jit, const tcc_kernel *k, const int64_t *dims)
{
    size_t bytes = tcc_kernel_dim_count(k) * sizeof *dims;
    tcc_jit_extents *e = jit->n_extents < MOST_EXTENTS ? calloc(1, sizeof *e + bytes) : NULL;
    if (!e)
        return NULL;
    tcc_jit_extents **list = &jit->extents[list_of(k, dims)];
    e->kernel = k;
    memcpy(e->dims, dims, bytes);
    e->next = *list;
    *list = e;
    jit->n_extents++;
    return e;
}

static void note_decision(tcc_jit *jit, tcc_jit_extents *e, const tcc_kernel *own)
{
    pthread_mutex_lock(&jit->mutex);
    e->own = own;
    e->is_decided = true;
    pthread_cond_broadcast(&jit->done);
    pthread_mutex_unlock(&jit->mutex);
}

typedef struct decision {
    tcc_job job;
    tcc_jit *jit;
    tcc_jit_request request;
    tcc_jit_extents *of;
} decision;

static void run_decision(tcc_job *job, bool is_wanted)
{
    decision *d = (decision *)job;
    const tcc_kernel *own = is_wanted ? decide(d->jit, &d->request, d->of->kernel, d->of->dims) : NULL;
    note_decision(d->jit, d->of, own);
    tcc_jit_request_free(&d->request);
    free(d);
}

static void decide_later(tcc_jit *jit, const tcc_jit_request *r, tcc_jit_extents *e)
{
    decision *d = calloc(1, sizeof *d);
    if (!d || !tcc_jit_request_copy(r, &d->request)) {
        free(d);
        note_decision(jit, e, NULL);
        return;
    }
    d->job.run = run_decision;
    d->jit = jit;
    d->of = e;
    tcc_background_add(&jit->background, &d->job);
}

const tcc_kernel *tcc_jit_for_extents(tcc_jit *jit, const tcc_jit_request *r, const tcc_kernel *k, const int64_t *dims)
{
    bool at_once = jit->specialize == TCC_JIT_AT_ONCE;
    pthread_mutex_lock(&jit->mutex);
    tcc_jit_extents *e = find_extents(jit, k, dims), *new = e ? NULL : add_extents(jit, k, dims);
    while (at_once && e && !e->is_decided)
        pthread_cond_wait(&jit->done, &jit->mutex);
    const tcc_kernel *own = e ? e->own : NULL;
    pthread_mutex_unlock(&jit->mutex);
    if (new && at_once) {
        own = decide(jit, r, k, dims);
        note_decision(jit, new, own);
    } else if (new) {
        decide_later(jit, r, new);
    }
    return own ? own : k;
}

void tcc_jit_extents_free(tcc_jit *jit)
{
    for (size_t i = 0; i < TCC_JIT_LISTS; i++)
        for (tcc_jit_extents *e = jit->extents[i], *next; e; e = next) {
            next = e->next;
            free(e);
        }
}
