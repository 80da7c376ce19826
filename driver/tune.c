/* tune: searches for the fastest schedule of a kernel.
 *
 * A schedule is tried by appending its text to the source, as the user will. First all are compiled to the tile
 * level, which takes a millisecond and shows whether the compiler accepts it, how it completes it, and the estimated
 * cost. Promising ones are then compiled and loaded, several in parallel, and measured one by one.
 *
 * tune_space.c     which schedules there are to try
 * tune_judge.c     what the compiler makes of one
 * tune_results.c   the file of results
 * tune_merge.c     several as one
 * tune_agree.c     whether two schedules computed the same
 * tuning.c         what a search hands over
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc_tune.h>

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/build_id.h"
#include "driver/context.h"
#include "driver/tune_judge.h"
#include "driver/tune_results.h"
#include "driver/tuning.h"
#include "runtime/disk_cache.h"
#include "runtime/runtime.h"
#include "support/clock.h"
#include "support/json.h"
#include "support/threads.h"

/* The tolerance of the estimate: a schedule of this many times the lowest cost is not tried. */
#define MOST_TIMES_DEARER 2.0
/* Parts of the time after which no combination is judged, and none measured any more; the rest is for what is near the
 * best of them. */
#define PART_OF_JUDGING 0.2
#define PART_OF_COMBINATIONS 0.6

enum {
    AROUND = 3, /* of the best, whose neighbours are tried */
    TRIES = 8   /* of a search that is out of time and has no right result: schedules that it judges, and measures */
};

#define DEFAULT_SECONDS 60.0

typedef struct candidate {
    tcc_point point;
    tcc_verdict verdict;
    double time;   /* NaN: not measured */
    bool explored;  /* its neighbours are candidates, too */
    tcc_program *program; /* while it is measured */
} candidate;

/* Some that were judged together. */
typedef struct batch {
    candidate *of;
    size_t n;
} batch;

typedef struct search {
    tcc_device *dev;
    tcc_runtime quiet; /* the device's, which reports nothing */
    tcc_tune_program program;
    tcc_tune_options o;
    tcc_arena *arena;
    tcc_diag diag;
    double start_ms;
    tcc_tune_results results;
    TCC_VEC(batch) batches;
    TCC_VEC(candidate *) taken; /* no two are the same */
    tcc_tune_progress progress;
    tcc_refusal refusal; /* the first */
    /* What threads share: */
    candidate *judged, **loaded;
    double until; /* seconds are left */
    size_t n_shared;
    atomic_size_t next;
    atomic_size_t n_ours; /* valid schedules of its part that were judged */
} search;

static double seconds_left(const search *s)
{
    return s->o.seconds - (tcc_now_ms() - s->start_ms) / 1000;
}

/* Whether more than these seconds are left, or nothing has been found yet. */
static bool may_measure(const search *s, double until)
{
    return seconds_left(s) > until || (isinf(s->progress.best) && s->progress.measured < TRIES);
}

static void tell(search *s)
{
    s->progress.seconds_left = fmax(seconds_left(s), 0);
    if (s->o.progress)
        s->o.progress(&s->progress, s->o.user);
}

/* ---- one schedule ----------------------------------------------------------------------- */

/* Compiles it and has the driver do so. Without success it has no program. */
static void load(search *s, candidate *c)
{
    tcc_module *mod;
    tcc_refusal why;
    size_t size;
    if (tcc_tune_compile(&s->program, c->verdict.schedule, TCC_EMIT_DEFAULT, &why, &mod))
        return;
    const void *image = tcc_module_output(mod, &size);
    tcc_program *p;
    if (!tcc_program_load(&s->quiet, image, size, NULL, &p)) {
        const tcc_kernel *k = tcc_program_kernel(p, s->program.subject.kernel);
        size_t n = tcc_kernel_arg_count(k);
        tcc_arg *args = calloc(n + 1, sizeof *args); /* aligned */
        bool ok = args && !tcc_kernel_prepare(k, s->o.dims, s->o.n_dims, args, n);
        free(args);
        p->rt = s->dev->rt; /* from now on errors are told */
        c->program = ok ? p : NULL;
        if (!ok)
            tcc_program_destroy(p);
    }
    tcc_module_destroy(mod);
}

/* ---- many, side by side ----------------------------------------------------------------- */

/* Whether it is of the part that this search has. */
static bool is_ours(const search *s, const candidate *c)
{
    uint64_t hash = tcc_hash((tcc_bytes){c->verdict.schedule, strlen(c->verdict.schedule)});
    return !s->o.n_shards || hash % s->o.n_shards == s->o.shard;
}

static bool may_judge(const search *s)
{
    return seconds_left(s) > s->until || atomic_load(&s->n_ours) < TRIES;
}

static void *judge_some(void *arg)
{
    search *s = arg;
    for (size_t i; (i = atomic_fetch_add(&s->next, 1)) < s->n_shared && may_judge(s);) {
        tcc_refusal why = {""};
        candidate *c = &s->judged[i];
        c->verdict = tcc_tune_judge(&s->program, &c->point, &why);
        if (!c->verdict.status && is_ours(s, c))
            atomic_fetch_add(&s->n_ours, 1);
        if (!i)
            s->refusal = why;
    }
    return NULL;
}

/* Each thread makes the GPU its own. */
static void *load_some(void *arg)
{
    search *s = arg;
    tcc_device *dev;
    if (tcc_device_open(&s->quiet, s->dev->ordinal, &dev))
        return NULL;
    for (size_t i; (i = atomic_fetch_add(&s->next, 1)) < s->n_shared;)
        load(s, s->loaded[i]);
    tcc_device_close(dev);
    return NULL;
}

static size_t threads_for(const search *s, size_t n)
{
    size_t most = tcc_threads_for(n);
    return s->o.threads && s->o.threads < most ? s->o.threads : most;
}

static void run(search *s, void *(*work)(void *), size_t n)
{
    s->n_shared = n;
    atomic_store(&s->next, 0);
    tcc_run_threads(threads_for(s, n), work, s);
}

static bool is_taken(const search *s, const char *schedule)
{
    for (size_t i = 0; i < s->taken.len; i++)
        if (!strcmp(s->taken.data[i]->verdict.schedule, schedule))
            return true;
    return false;
}

static void note_best(search *s)
{
    s->progress.best = INFINITY;
    for (size_t i = 0; i < s->taken.len; i++)
        s->progress.best = fmin(s->progress.best, s->taken.data[i]->time); /* of a NaN and a number the number */
}

/* Judges n points, or as many as possible until this many seconds are left and TRIES are valid; takes the new ones. */
static tcc_status take(search *s, const tcc_point *points, size_t n, double until)
{
    batch b = {TCC_NEW_ARRAY(s->arena, candidate, n), n};
    for (size_t i = 0; i < n; i++)
        b.of[i] = (candidate){.point = points[i], .verdict = {.status = TCC_ERR_LIMIT}, .time = NAN};
    TCC_PUSH(s->arena, &s->batches, b);
    s->judged = b.of;
    s->until = until;
    run(s, judge_some, n);
    for (size_t i = 0; i < n; i++) {
        candidate *c = &b.of[i];
        if (c->verdict.status == TCC_ERR_MEMORY)
            return TCC_ERR_MEMORY;
        s->progress.refused += c->verdict.status && c->verdict.status != TCC_ERR_LIMIT;
        if (c->verdict.status || is_taken(s, c->verdict.schedule))
            continue;
        const tcc_tune_result *known = tcc_tune_results_find(&s->results, c->verdict.schedule);
        if (known)
            c->time = known->time;
        TCC_PUSH(s->arena, &s->taken, c);
    }
    note_best(s);
    tell(s);
    return TCC_OK;
}

/* ---- measuring -------------------------------------------------------------------------- */

/* Schedules still to be measured, the most promising first. */
typedef struct queue {
    candidate **of;
    size_t n;
} queue;

static int by_cost(const void *a, const void *b)
{
    const candidate *x = *(candidate *const *)a, *y = *(candidate *const *)b;
    int order = (x->verdict.cost > y->verdict.cost) - (x->verdict.cost < y->verdict.cost);
    return order ? order : strcmp(x->verdict.schedule, y->verdict.schedule);
}

/* The cheapest of its part that was not measured; NULL: there is none. */
static candidate *cheapest_of_ours(const search *s)
{
    candidate *best = NULL;
    for (size_t i = 0; i < s->taken.len; i++) {
        candidate *c = s->taken.data[i];
        if (isnan(c->time) && is_ours(s, c) && (!best || by_cost(&c, &best) < 0))
            best = c;
    }
    return best;
}

/* is_shared: among several searches */
static queue make_queue(search *s, bool is_shared)
{
    queue q = {TCC_NEW_ARRAY(s->arena, candidate *, s->taken.len + 1), 0};
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < s->taken.len; i++)
        least = s->taken.data[i]->verdict.cost < least ? s->taken.data[i]->verdict.cost : least;
    s->progress.dear = 0;
    for (size_t i = 0; i < s->taken.len; i++) {
        bool dear = (double)s->taken.data[i]->verdict.cost > (double)least * MOST_TIMES_DEARER;
        s->progress.dear += dear;
        if (!dear)
            q.of[q.n++] = s->taken.data[i];
    }
    qsort(q.of, q.n, sizeof *q.of, by_cost);
    size_t n = 0;
    for (size_t i = 0; i < q.n; i++)
        if (isnan(q.of[i]->time) && (!is_shared || is_ours(s, q.of[i])))
            q.of[n++] = q.of[i];
    candidate *only = n || isfinite(s->progress.best) ? NULL : cheapest_of_ours(s);
    if (only) /* of the few that it had time for */
        q.of[n++] = only;
    q.n = n;
    return q;
}

static tcc_status keep(search *s, const candidate *c)
{
    if (tcc_tune_results_add(&s->results, c->verdict.schedule, c->time))
        return TCC_OK;
    tcc_error(&s->diag, TCC_ERR_IO, (tcc_loc){0}, "a result cannot be stored: %s", strerror(errno));
    return TCC_ERR_IO;
}

static tcc_status measure(search *s, candidate *c)
{
    c->time = INFINITY;
    tcc_status status = s->o.measure(tcc_program_kernel(c->program, s->program.subject.kernel), &c->time, s->o.user);
    if (status && isnan(c->time))
        return status;
    if (status || !(c->time >= 0))
        c->time = INFINITY;
    s->progress.measured++;
    s->progress.wrong += isinf(c->time);
    tcc_status kept = keep(s, c);
    return status ? status : kept;
}

/* Measures until `until` seconds are left and one result is right. */
static tcc_status measure_all(search *s, queue q, double until)
{
    tcc_status status = TCC_OK;
    size_t most = threads_for(s, SIZE_MAX), done = 0;
    s->progress.waiting = q.n;
    while (!status && done < q.n && may_measure(s, until)) {
        size_t n = q.n - done < most ? q.n - done : most;
        s->loaded = q.of + done;
        run(s, load_some, n);
        for (size_t i = done; i < done + n; i++) {
            candidate *c = q.of[i];
            if (!c->program && !status) {
                c->time = INFINITY;
                s->progress.refused++;
            } else if (!status && may_measure(s, until)) {
                status = measure(s, c);
            }
            tcc_program_destroy(c->program);
            c->program = NULL;
            s->progress.waiting--;
            note_best(s);
            tell(s);
        }
        done += n;
    }
    return status;
}

/* ---- the search ------------------------------------------------------------------------- */

static tcc_status take_combinations(search *s)
{
    size_t n = tcc_space_count(s->program.subject.target);
    tcc_point *points = TCC_NEW_ARRAY(s->arena, tcc_point, n);
    size_t possible = 0;
    for (size_t i = 0; i < n; i++)
        possible += tcc_space_at(s->program.subject.target, i, &points[possible]);
    tcc_status status = take(s, points, possible, s->o.seconds * (1 - PART_OF_JUDGING));
    if (status || s->taken.len)
        return status;
    tcc_error(&s->diag, TCC_ERR_TARGET, (tcc_loc){0}, "no schedule tried for kernel '%s' is valid: %s",
              s->program.subject.kernel, s->refusal.text);
    return TCC_ERR_TARGET;
}

/* The best whose neighbours were not tried, of the first few; NULL: there is none. */
static candidate *next_to_explore(const search *s)
{
    candidate *best = NULL;
    size_t better = 0;
    for (size_t i = 0; i < s->taken.len; i++) {
        candidate *c = s->taken.data[i];
        if (!c->explored && isfinite(c->time) && (!best || c->time < best->time))
            best = c;
    }
    for (size_t i = 0; best && i < s->taken.len; i++)
        better += s->taken.data[i]->time < best->time;
    return better < AROUND ? best : NULL;
}

static tcc_status explore(search *s, candidate *c)
{
    TCC_VEC(tcc_point) points = {0};
    tcc_point p;
    for (size_t i = 0; tcc_space_neighbour(s->program.subject.target, &c->point, i, &p); i++)
        TCC_PUSH(s->arena, &points, p);
    c->explored = true;
    return take(s, points.data, points.len, 0);
}

static tcc_status refine(search *s)
{
    tcc_status status = TCC_OK;
    candidate *c;
    while (!status && seconds_left(s) > 0 && (c = next_to_explore(s))) {
        status = explore(s, c);
        if (!status)
            status = measure_all(s, make_queue(s, false), 0);
    }
    return status;
}

/* ---- the file of results ------------------------------------------------------------------ */

/* How lines begin that are about the same. */
static const char *key_of(search *s)
{
    tcc_str program = {0}, key = {0}, build = {0};
    tcc_build_id(&build);
    for (size_t i = 0; i < s->program.compile.n_defines; i++)
        tcc_str_printf(&program, "%s=%lld\n", s->program.compile.defines[i].name,
                       (long long)s->program.compile.defines[i].value);
    tcc_str_puts(&program, s->program.source);
    tcc_str_puts(&key, "{\"device\":");
    tcc_json_print_string(&key, s->dev->name);
    tcc_str_printf(&key, ",\"driver\":%d,\"tcc\":\"%s\",\"target\":\"%s\",\"program\":\"%016llx\",\"kernel\":",
                   s->dev->driver_version, tcc_str_text(&build), s->program.compile.target,
                   (unsigned long long)tcc_hash((tcc_bytes){tcc_str_text(&program), program.len}));
    tcc_json_print_string(&key, s->program.subject.kernel);
    tcc_str_puts(&key, ",\"extents\":\"");
    for (size_t i = 0; i < s->o.n_dims; i++) {
        tcc_str_puts(&key, i ? " " : "");
        tcc_tune_print_class(&key, s->o.dims[i]);
    }
    tcc_str_puts(&key, "\"");
    bool failed = program.failed || key.failed || build.failed;
    const char *copy = failed ? NULL : tcc_arena_strdup(s->arena, tcc_str_text(&key));
    tcc_str_free(&program);
    tcc_str_free(&key);
    tcc_str_free(&build);
    return copy;
}

/* Where results are stored by default; "": nowhere. */
static tcc_status usual_path(search *s, const char **out)
{
    char *folder;
    tcc_status status = tcc_disk_cache_folder(NULL, &folder);
    *out = "";
    if (status || !folder)
        return status;
    char *copy = tcc_arena_strdup(s->arena, folder);
    free(folder);
    *out = tcc_make_folders(copy) ? tcc_arena_printf(s->arena, "%s/tuned.jsonl", copy) : copy;
    return TCC_OK;
}

static tcc_status open_results(search *s)
{
    const char *key = key_of(s), *path = s->o.results;
    tcc_status status = !key ? TCC_ERR_MEMORY : path ? TCC_OK : usual_path(s, &path);
    if (status)
        return status;
    if (tcc_tune_results_open(&s->results, s->arena, *path ? path : NULL, key)) {
        s->progress.known = s->results.all.len;
        return TCC_OK;
    }
    tcc_error(&s->diag, TCC_ERR_IO, (tcc_loc){0}, "%s: %s", path, strerror(errno));
    return TCC_ERR_IO;
}

static tcc_status run_search(search *s)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(s->arena, &oom);
    tcc_context ctx = {.fn = s->dev->rt->fn, .user = s->dev->rt->user};
    tcc_status status = tcc_tune_look(&s->program, &ctx, s->o.kernel, s->arena);
    if (!status)
        status = s->dev->rt->driver->attributes(s->dev->rt, &s->program.attrs);
    if (!status)
        status = open_results(s);
    if (status || s->o.seconds < 0)
        return status;
    status = take_combinations(s);
    if (!status)
        status = measure_all(s, make_queue(s, true), s->o.seconds * (1 - PART_OF_COMBINATIONS));
    return status ? status : refine(s);
}

/* ---- results ---------------------------------------------------------------------------- */

static tcc_status hand_over(search *s, tcc_tuning **out)
{
    tcc_tuning *t = tcc_tuning_create(s->taken.len + s->results.all.len);
    tcc_status status = t ? TCC_OK : TCC_ERR_MEMORY;
    for (size_t i = 0; !status && i < s->taken.len; i++)
        status = tcc_tuning_add(t, s->taken.data[i]->verdict.schedule, s->taken.data[i]->time);
    for (size_t i = 0; !status && i < s->results.all.len; i++) {
        const tcc_tune_result *r = &s->results.all.data[i];
        if (!is_taken(s, r->schedule))
            status = tcc_tuning_add(t, r->schedule, r->time);
    }
    if (status) {
        tcc_tuning_destroy(t);
        return status;
    }
    tcc_tuning_finish(t, &s->progress);
    *out = t;
    return TCC_OK;
}

static void search_free(search *s)
{
    for (size_t i = 0; i < s->batches.len; i++)
        for (size_t j = 0; j < s->batches.data[i].n; j++)
            free(s->batches.data[i].of[j].verdict.schedule);
    tcc_tune_results_close(&s->results);
    tcc_arena_destroy(s->arena);
}

static bool has_other_options(const tcc_compile_options *o)
{
    return o->emit || o->print_after || o->verify_each || o->time_passes || o->ptxas || o->reproducer || o->print ||
           o->check_passes || o->output_size || o->tiles || o->kernel || o->n_ranges || o->nvdisasm;
}

tcc_status tcc_tune(tcc_device *dev, const char *source, const tcc_compile_options *options,
                    const tcc_tune_options *given, tcc_tuning **out)
{
    search s = {.dev = dev,
                .program = {.source = source, .compile = tcc_known_compile_options(options)},
                .results = {.file = -1}};
    size_t n = given ? given->struct_size : 0;
    *out = NULL;
    if (given)
        memcpy(&s.o, given, n && n < sizeof s.o ? n : sizeof s.o);
    bool has_shard = !s.o.n_shards || s.o.shard < s.o.n_shards;
    bool can_measure = s.o.measure || s.o.seconds < 0;
    if (!dev || !source || !can_measure || (s.o.n_dims && !s.o.dims) || !has_shard ||
        has_other_options(&s.program.compile))
        return TCC_ERR_ARGUMENT;
    s.quiet = *dev->rt;
    s.quiet.fn = NULL;
    s.diag = tcc_runtime_diag(dev->rt, s.program.compile.file);
    s.o.seconds = s.o.seconds > 0 || s.o.seconds < 0 ? s.o.seconds : DEFAULT_SECONDS;
    s.start_ms = tcc_now_ms();
    s.progress.best = INFINITY;
    s.program.dims = s.o.dims;
    s.program.n_dims = s.o.n_dims;
    s.program.compile.struct_size = sizeof s.program.compile;
    if (!s.program.compile.target)
        s.program.compile.target = tcc_device_arch(dev);
    s.arena = tcc_arena_create(NULL);
    if (!s.arena)
        return TCC_ERR_MEMORY;
    tcc_status status = run_search(&s);
    tcc_arena_set_oom(s.arena, NULL);
    if (!status)
        status = hand_over(&s, out);
    search_free(&s);
    return status;
}
