/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tcc/tcc_tune.h>

#include "tools/shared/progress.h"
#include "tools/tcc-run/input_sets.h"

enum { FINALISTS = 3, TELL_MS = 10000 /* between lines without a terminal */ };

typedef struct tuner {
    session *s;
    const measure_task *task;
    const void *const *initial;
    input_sets sets;
    double told_ms; /* when; 0: never */
    progress line;
} tuner;

/* ---- results ---------------------------------------------------------------------------- */

static bool is_output(const tensor *t)
{
    return t->type && t->info->role != TCC_ARG_IN;
}

static tcc_status reset_outputs(const tuner *t)
{
    tcc_status status = TCC_OK;
    for (size_t i = 0; !status && i < t->task->n_args; i++) {
        const tensor *of = &t->task->tensors[i];
        if (is_output(of))
            status = t->initial[i] ? tensor_write(t->s, of, t->initial[i]) : tensor_poison(t->s, of);
    }
    return status;
}

/* Whether all outputs are what the compiler's own choice computed, and nothing beside them was written. */
static tcc_status check_outputs_agree(const tuner *t, bool *right)
{
    tcc_status status = TCC_OK;
    *right = true;
    for (size_t i = 0; !status && *right && i < t->task->n_args; i++) {
        tensor now = t->task->tensors[i];
        size_t stray;
        if (!is_output(&now))
            continue;
        now.host = malloc(now.bytes ? now.bytes : 1);
        status = now.host ? tensor_read(t->s, &now, &stray) : TCC_ERR_MEMORY;
        *right = !status && !stray && tcc_tune_agree(now.info->type, t->task->tensors[i].host, now.host, now.n);
        free(now.host);
    }
    return status;
}

/* ---- the search's calls ------------------------------------------------------------------- */

/* The time over that of the compiler's own choice. */
static tcc_status time_against_own(const tuner *t, const tcc_kernel *kernel, double *time)
{
    static const tcc_bench_effort brief = {3, 10, 5};
    tcc_bench_launch own = launches_of(t->task, t->task->kernel, &t->sets),
                     other = launches_of(t->task, kernel, &t->sets);
    tcc_contender both[] = {{.enqueue = tcc_bench_enqueue, .user = &own}, {.enqueue = tcc_bench_enqueue, .user = &other}};
    tcc_status status = tcc_bench(t->s->dev, &brief, both, 2, t->sets.n);
    *time = tcc_contender_median(&both[1]) / tcc_contender_median(&both[0]);
    return status;
}

static tcc_status measure_schedule(const tcc_kernel *kernel, double *time, void *user)
{
    const tuner *t = user;
    const measure_task *task = t->task;
    bool right = false;
    *time = INFINITY;
    tcc_status status = reset_outputs(t);
    if (!status)
        status = tcc_kernel_launch(kernel, task->dims, tcc_kernel_dim_count(kernel), task->args, task->n_args, NULL);
    if (!status)
        status = tcc_device_sync(t->s->dev);
    if (!status)
        status = check_outputs_agree(t, &right);
    return status || !right ? status : time_against_own(t, kernel, time);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1000.0 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void tell(const tcc_tune_progress *p, void *user)
{
    tuner *t = user;
    double now = now_ms();
    char text[128];
    snprintf(text, sizeof text, "%zu measured, %zu waiting, best ratio %.3f, %.0f s left", p->measured, p->waiting,
             1 / p->best, p->seconds_left);
    progress_say(&t->line, "%s", text);
    if (!t->told_ms)
        t->told_ms = now;
    if (t->line.on_terminal || now - t->told_ms < TELL_MS)
        return;
    t->told_ms = now;
    fprintf(stderr, "%s: %s\n", program_name, text);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* A program from the source with a schedule appended. */
static tcc_status load_tuned(session *s, const options *o, const char *source, const char *schedule, program *out)
{
    size_t size = strlen(source) + strlen(schedule) + 2;
    char *text = malloc(size);
    if (!text)
        return TCC_ERR_MEMORY;
    snprintf(text, size, "%s\n%s", source, schedule);
    tcc_status status = s->on->load(s, o, text, size - 1, out);
    free(text);
    return status;
}

/* Times the best few in turn with the compiler's own choice: the first of many is often the luckiest. */
static tcc_status choose_winner(const tuner *t, const options *o, const char *source, const tcc_tuning *found,
                                tune_result *out)
{
    program programs[FINALISTS] = {{NULL, NULL}};
    tcc_bench_launch runs[FINALISTS + 1] = {launches_of(t->task, t->task->kernel, &t->sets)};
    tcc_contender contenders[FINALISTS + 1] = {{.enqueue = tcc_bench_enqueue, .user = &runs[0]}};
    size_t n = tcc_tuning_count(found) < FINALISTS ? tcc_tuning_count(found) : FINALISTS, best = 1;
    tcc_status status = TCC_OK;
    for (size_t i = 0; !status && i < n; i++) {
        status = load_tuned(t->s, o, source, tcc_tuning_schedule(found, i), &programs[i]);
        const tcc_kernel *kernel = tcc_program_kernel(programs[i].handle, tcc_kernel_name(t->task->kernel));
        runs[i + 1] = launches_of(t->task, kernel, &t->sets);
        contenders[i + 1] = (tcc_contender){.enqueue = tcc_bench_enqueue, .user = &runs[i + 1]};
    }
    if (!status)
        status = tcc_bench(t->s->dev, NULL, contenders, n + 1, t->sets.n);
    for (size_t i = 1; !status && i <= n; i++)
        if (tcc_contender_median(&contenders[i]) < tcc_contender_median(&contenders[best]))
            best = i;
    for (size_t i = 0; i < FINALISTS; i++)
        program_free(&programs[i]);
    if (status)
        return status;
    out->own_us = tcc_contender_median(&contenders[0]);
    out->us = tcc_contender_median(&contenders[best]);
    out->tflops = t->task->flops / out->us * 1e-6;
    int length = snprintf(out->schedule, sizeof out->schedule, "%s", tcc_tuning_schedule(found, best - 1));
    if ((size_t)length < sizeof out->schedule)
        return TCC_OK;
    session_error(t->s, "the schedule is longer than %zu characters", sizeof out->schedule - 1);
    return TCC_ERR_LIMIT;
}

static tcc_status search(tuner *t, const options *o, const char *source, tcc_tuning **found)
{
    tcc_define defines[MAX_PAIRS];
    for (size_t i = 0; i < o->defines.n; i++)
        defines[i] = (tcc_define){o->defines.pairs[i].name, o->defines.pairs[i].extent};
    const tcc_compile_options compile = {.struct_size = sizeof compile,
                                         .target = o->target,
                                         .file = o->file,
                                         .defines = defines,
                                         .n_defines = o->defines.n};
    const tcc_tune_options how = {.struct_size = sizeof how,
                                  .kernel = tcc_kernel_name(t->task->kernel),
                                  .dims = t->task->dims,
                                  .n_dims = tcc_kernel_dim_count(t->task->kernel),
                                  .seconds = (double)o->tune_seconds,
                                  .results = o->tune_results,
                                  .shard = o->shard,
                                  .n_shards = o->n_shards,
                                  .measure = measure_schedule,
                                  .progress = tell,
                                  .user = t};
    tcc_status status = tcc_tune(t->s->dev, source, &compile, &how, found);
    progress_clear(&t->line);
    return status;
}

bool tune(session *s, const options *o, const measure_task *task, const void *const *initial, tune_result *out)
{
    tuner t = {.s = s, .task = task, .initial = initial, .line = progress_begin("tcc-run: tuning")};
    size_t size;
    tcc_tuning *found = NULL;
    char *source = session_read_file(s, o->file, &size);
    bool ready = source && sets_create(s, task, &t.sets);
    tcc_status status = ready ? search(&t, o, source, &found) : TCC_ERR_IO;
    if (ready && !status && !tcc_tuning_count(found)) {
        session_error(s, "no schedule with correct results was measured in the given time");
        status = TCC_ERR_LIMIT;
    }
    if (!status)
        status = choose_winner(&t, o, source, found, out);
    tcc_tune_progress p = tcc_tuning_progress(found);
    out->measured = p.measured;
    out->wrong = p.wrong;
    out->known = p.known;
    out->refused = p.refused;
    out->dear = p.dear;
    out->done = !status;
    if (status && !s->message[0])
        session_error(s, "the search failed: %s", tcc_status_name(status));
    tcc_tuning_destroy(found);
    sets_free(s, task, &t.sets);
    free(source);
    return !status;
}
