/* The interpreter as a machine: memory is the host's, and a launch is tcc_interpret.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/shared/progress.h"
#include "tools/tcc-run/session.h"
#include "tools/tcc-run/tensor.h"
#include "tools/tcc-run/timeline.h"

/* As cuMemAlloc aligns. */
enum { ALIGNMENT = 256 };

static tcc_status interp_open(session *s, const options *o)
{
    (void)s, (void)o;
    return TCC_OK;
}

static void interp_describe(const session *s, const options *o, char *text, size_t size)
{
    static const char *const orders[] = {[TCC_INTERPRET_RANDOM] = "random",
                                         [TCC_INTERPRET_EARLY] = "early",
                                         [TCC_INTERPRET_LATE] = "late",
                                         [TCC_INTERPRET_TIMED] = "timed"};
    (void)s;
    if (o->order.kind == TCC_INTERPRET_RANDOM && !o->timeline)
        snprintf(text, size, "the interpreter, order random:%llu",
                 (unsigned long long)o->order.seed);
    else
        snprintf(text, size, "the interpreter, order %s",
                 orders[o->timeline ? TCC_INTERPRET_TIMED : o->order.kind]);
}

static tcc_status interp_load(session *s, const options *o, const char *text, size_t size,
                              program *out)
{
    tcc_status status;
    switch (file_kind_of(o->file)) {
    case FILE_TILE:
        status = session_compile(s, o, "sm_90a", o->level ? o->level : TCC_EMIT_TIR, text, size,
                                 &out->module);
        break;
    case FILE_IR: status = session_parse(s, o, text, size, &out->module); break;
    default:
        session_error(s, "%s: the interpreter runs .tile and .tir files", o->file);
        return TCC_ERR_ARGUMENT;
    }
    if (status)
        return status;
    return tcc_program_describe(tcc_module_manifest(out->module), session_on_diagnostic, s,
                                &out->handle);
}

/* ---- memory ----------------------------------------------------------------------------- */

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static tcc_status interp_alloc(session *s, size_t bytes, uint64_t *out)
{
    void *p = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!p)
        session_error(s, "out of memory");
    *out = (uint64_t)(uintptr_t)p;
    return p ? TCC_OK : TCC_ERR_MEMORY;
}

static void interp_free(session *s, uint64_t address)
{
    (void)s;
    free(pointer(address));
}

static tcc_status interp_write(session *s, uint64_t address, const void *host, size_t n)
{
    (void)s;
    memcpy(pointer(address), host, n);
    return TCC_OK;
}

static tcc_status interp_read(session *s, void *host, uint64_t address, size_t n)
{
    (void)s;
    memcpy(host, pointer(address), n);
    return TCC_OK;
}

static tcc_status interp_fill(session *s, uint64_t address, uint8_t byte, size_t n)
{
    (void)s;
    memset(pointer(address), byte, n);
    return TCC_OK;
}

/* The tensor as it is in memory, and as the interpreter takes it. */
static size_t interp_host_bytes(const tensor *t)
{
    return t->type ? elem_bytes(t->type, t->span) + t->span * sizeof(double) : 0;
}

/* ---- running ---------------------------------------------------------------------------- */

/* What tcc_interpret takes of each argument. */
typedef struct arguments {
    double *values[MAX_ARGS];
    int64_t alignments[MAX_ARGS];
    size_t n;
} arguments;

/* An element that is not written keeps these bits, which no result has. */
static const uint64_t unwritten = UINT64_MAX;

static bool make_values(const launch_task *task, size_t i, double **out)
{
    const tensor *t = &task->tensors[i];
    size_t n = t->type ? t->span : 1;
    double *values = *out = malloc((n ? n : 1) * sizeof *values);
    if (!values)
        return false;
    if (!t->type)
        values[0] = task->args[i].number;
    else if (t->info->role == TCC_ARG_OUT)
        memset(values, 0xff, n * sizeof *values);
    else
        elem_to_doubles(t->type, pointer(t->address), n, values);
    return true;
}

static bool arguments_make(const launch_task *task, arguments *a)
{
    for (a->n = 0; a->n < task->n_args; a->n++) {
        uint64_t address = task->tensors[a->n].address;
        a->alignments[a->n] = (int64_t)(address & -address);
        if (!make_values(task, a->n, &a->values[a->n]))
            return false;
    }
    return true;
}

static void arguments_free(arguments *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->values[i]);
}

static void store_results(const launch_task *task, const arguments *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const tensor *t = &task->tensors[i];
        for (size_t e = 0; t->type && t->info->role != TCC_ARG_IN && e < t->n; e++) {
            size_t at = tensor_place(t, e);
            if (memcmp(&a->values[i][at], &unwritten, sizeof unwritten))
                elem_set(t->type, pointer(t->address), at, a->values[i][at]);
        }
    }
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void tell(int64_t done, int64_t all, void *user)
{
    progress_tell(user, (double)done / (double)all);
}

/* A launch that is repeated takes another order each time. */
static tcc_status interp_run(session *s, const launch_task *task, double *ms, const char **variant)
{
    arguments a = {.n = 0};
    char *timeline, *summary;
    bool timed = task->o->timeline && task->timeline;
    *variant = NULL;
    tcc_status status = TCC_ERR_MEMORY;
    if (arguments_make(task, &a)) {
        progress p = progress_begin("tcc-run: interpreting");
        const tcc_interpret_options o = {.struct_size = sizeof o,
                                         .variant = task->o->variant,
                                         .order = task->o->order.kind,
                                         .seed = task->o->order.seed + (uint64_t)task->number,
                                         .threads = (unsigned)task->o->threads,
                                         .alignments = a.alignments,
                                         .ran = variant,
                                         .timeline = timed ? &timeline : NULL,
                                         .summary = timed ? &summary : NULL,
                                         .timeline_cta = task->o->timeline_cta,
                                         .progress = s->quiet ? NULL : tell,
                                         .progress_user = &p};
        double start = now_ms();
        status = tcc_interpret(s->compiler, task->program->module, tcc_kernel_name(task->kernel),
                               task->dims, a.values, &o);
        *ms = now_ms() - start;
        progress_clear(&p);
    }
    if (status == TCC_ERR_MEMORY)
        session_error(s, "out of memory");
    if (!status)
        store_results(task, &a);
    if (!status && timed)
        status = timeline_keep(s, task, timeline, summary);
    arguments_free(&a);
    return status;
}

static bool interp_is_lost(session *s)
{
    (void)s;
    return false;
}

const machine machine_interp = {.open = interp_open,
                                .describe = interp_describe,
                                .load = interp_load,
                                .alloc = interp_alloc,
                                .free = interp_free,
                                .write = interp_write,
                                .read = interp_read,
                                .fill = interp_fill,
                                .host_bytes = interp_host_bytes,
                                .run = interp_run,
                                .is_lost = interp_is_lost};
