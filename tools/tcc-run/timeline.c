/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/whole_file.h"
#include "tools/tcc-run/tensor.h"

static bool write_text(session *s, const char *path, const char *text)
{
    FILE *f = whole_file_open(path);
    bool ok = f && fputs(text, f) >= 0;
    ok = f && whole_file_close(f, ok);
    if (!ok)
        session_error(s, "%s: %s", path, strerror(errno));
    return ok;
}

tcc_status timeline_keep(session *s, const launch_task *task, char *timeline, char *summary)
{
    bool ok = write_text(s, task->o->timeline, timeline);
    snprintf(task->timeline, task->timeline_size, "%s", summary);
    tcc_text_destroy(timeline);
    tcc_text_destroy(summary);
    return ok ? TCC_OK : TCC_ERR_IO;
}

/* ---- the model ----------------------------------------------------------------------------- */

/* Data that nobody looks at: its pages are not there until they are. */
static bool arguments_make(const launch_task *task, double **values)
{
    for (size_t i = 0; i < task->n_args; i++) {
        const tensor *t = &task->tensors[i];
        values[i] = calloc(t->type && t->span ? t->span : 1, sizeof *values[i]);
        if (!values[i])
            return false;
        if (!t->type)
            values[i][0] = task->args[i].number;
    }
    return true;
}

/* The model's timeline of the variant; NULL where there is none. */
static char *model(session *s, const launch_task *task, const char *variant, char **summary)
{
    double *values[MAX_ARGS] = {NULL};
    int64_t alignments[MAX_ARGS];
    char *timeline = NULL;
    const tcc_interpret_options o = {.struct_size = sizeof o,
                                     .variant = variant,
                                     .threads = 1,
                                     .alignments = alignments,
                                     .timeline = &timeline,
                                     .summary = summary,
                                     .timeline_cta = task->o->timeline_cta,
                                     .timeline_only = true};
    for (size_t i = 0; i < task->n_args; i++)
        alignments[i] = (int64_t)(task->tensors[i].address & -task->tensors[i].address);
    bool quiet = s->quiet;
    s->quiet = true;
    if (arguments_make(task, values))
        tcc_interpret(s->compiler, task->program->module, tcc_kernel_name(task->kernel), task->dims, values, &o);
    s->quiet = quiet;
    for (size_t i = 0; i < task->n_args; i++)
        free(values[i]);
    return timeline;
}

/* ---- the GPU ------------------------------------------------------------------------------- */

/* Leaves nothing of the operands in L2, as after other kernels: the launch before this one has just used them. */
static tcc_status forget_operands(session *s)
{
    enum { BYTES = 256 << 20 };
    uint64_t other;
    tcc_status status = tcc_device_alloc(s->dev, BYTES, &other);
    if (status)
        return status;
    status = tcc_device_fill(s->dev, other, 0, BYTES);
    tcc_device_free(s->dev, other);
    return status;
}

/* Launches with a workspace of its own, whose contents it returns; NULL, reported. */
static void *launch(session *s, const launch_task *t, size_t bytes, tcc_status *status)
{
    uint64_t device;
    void *workspace = malloc(bytes ? bytes : 1);
    *status = workspace ? tcc_device_alloc(s->dev, bytes, &device) : TCC_ERR_MEMORY;
    if (*status) {
        session_error(s, "out of memory");
        free(workspace);
        return NULL;
    }
    *status = forget_operands(s);
    *status = *status ? *status : tcc_kernel_launch_in(t->kernel, t->dims, t->n_dims, t->args, t->n_args, NULL, (tcc_workspace){device, bytes});
    *status = *status ? *status : tcc_device_sync(s->dev);
    *status = *status ? *status : tcc_device_read(s->dev, workspace, device, bytes);
    tcc_device_free(s->dev, device);
    if (!*status)
        return workspace;
    free(workspace);
    return NULL;
}

tcc_status timeline_measure(session *s, const launch_task *t)
{
    tcc_status status;
    size_t bytes = tcc_kernel_workspace_bytes(t->kernel, t->dims, t->n_dims, t->args, t->n_args);
    const char *variant = tcc_kernel_variant(t->kernel, t->dims, t->n_dims, t->args, t->n_args);
    void *workspace = launch(s, t, bytes, &status);
    if (!workspace)
        return status;
    char *timeline, *summary, *expected_summary = NULL, *expected = model(s, t, variant, &expected_summary);
    status = tcc_timeline_read(s->compiler, t->program->module, variant, workspace, bytes, expected, &timeline, &summary);
    free(workspace);
    if (!status)
        status = timeline_keep(s, t, timeline, summary);
    size_t n = strlen(t->timeline);
    if (!status && expected)
        snprintf(t->timeline + n, t->timeline_size - n, "\nmodel    %s", expected_summary);
    tcc_text_destroy(expected);
    tcc_text_destroy(expected_summary);
    return status;
}
