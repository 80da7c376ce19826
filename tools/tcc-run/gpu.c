/* GPUs as machines: the runtime, and what it shows of the device.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tcc-run/session.h"
#include "tools/tcc-run/tensor.h"
#include "tools/tcc-run/timeline.h"

static tcc_status open_device(session *s, const options *o, struct gpu *gpu)
{
    int n = tcc_runtime_device_count(gpu->rt);
    if (o->device < n)
        return tcc_device_open(gpu->rt, (int)o->device, &gpu->dev);
    session_error(s, "there is no GPU %" PRId64 ": the last one is %d", o->device, n - 1);
    return TCC_ERR_ARGUMENT;
}

static tcc_status gpu_open(session *s, const options *o)
{
    struct gpu *gpu = &s->gpus[s->on->vendor];
    tcc_status status = TCC_OK;
    bool quiet = s->quiet;
    s->quiet = true; /* no driver is told in the caller's one line */
    if (!gpu->rt)
        status = tcc_runtime_create_for(s->on->vendor, &gpu->rt, session_on_diagnostic, s);
    s->quiet = quiet;
    if (!status && !gpu->dev)
        status = open_device(s, o, gpu);
    s->dev = gpu->dev;
    return status;
}

static const char *version_of(const session *s, char text[32])
{
    int version = tcc_device_driver_version(s->dev);
    snprintf(text, 32, "%d.%d", version / 1000, version % 1000 / 10);
    return text;
}

static void cuda_describe(const session *s, const options *o, char *text, size_t size)
{
    char version[32];
    (void)o;
    if (s->dev)
        snprintf(text, size, "%s, driver %s", tcc_device_name(s->dev), version_of(s, version));
}

static void hip_describe(const session *s, const options *o, char *text, size_t size)
{
    char version[32];
    (void)o;
    if (s->dev)
        snprintf(text, size, "%s (%s), HIP %s", tcc_device_name(s->dev), tcc_device_arch(s->dev),
                 version_of(s, version));
}

/* ---- loading ---------------------------------------------------------------------------- */

/* What the driver is given. */
typedef struct image {
    const void *bytes;
    size_t size;
    const char *manifest; /* NULL: it is in there */
    /* Which of these holds them. */
    tcc_module *module;
    char *text, *manifest_text;
} image;

static void image_free(image *i)
{
    tcc_module_destroy(i->module);
    tcc_text_destroy(i->text);
    free(i->manifest_text);
}

static tcc_status image_compile(session *s, const options *o, const char *target, tcc_emit emit,
                                const char *text, size_t size, image *out)
{
    tcc_status status = session_compile(s, o, target, emit, text, size, &out->module);
    if (!status)
        out->bytes = tcc_module_output(out->module, &out->size);
    return status;
}

static tcc_status image_assemble(session *s, const options *o, tcc_emit emit, const char *text,
                                 size_t size, image *out)
{
    tcc_status status = session_parse(s, o, text, size, &out->module);
    if (!status)
        status = session_assemble(s, o, emit, text, size, &out->text, &out->size);
    if (status)
        return status;
    out->bytes = out->text;
    out->manifest = tcc_module_manifest(out->module);
    return TCC_OK;
}

/* An image that is in the file itself, with the manifest that the options name. */
static tcc_status image_of_file(session *s, const options *o, const char *text, size_t size,
                                image *out)
{
    size_t ignored;
    out->bytes = text;
    out->size = size;
    if (!o->manifest)
        return TCC_OK;
    out->manifest = out->manifest_text = session_read_file(s, o->manifest, &ignored);
    return out->manifest ? TCC_OK : TCC_ERR_IO;
}

/* A bad program is reported before a missing GPU. */
static tcc_status load(session *s, const options *o, tcc_status status, image *i, program *out)
{
    if (!status)
        status = gpu_open(s, o);
    if (!status)
        status = tcc_program_load(s->gpus[s->on->vendor].rt, i->bytes, i->size, i->manifest,
                                  &out->handle);
    if (!status && o->timeline) { /* what is recorded is read by it */
        out->module = i->module;
        i->module = NULL;
    }
    image_free(i);
    return status;
}

/* Without --target a program is compiled for the GPU that is there; where there is none, for `usual`, so that a bad
 * program is reported before that. */
static tcc_status compile_for_gpu(session *s, const options *o, const char *usual, const char *text,
                                  size_t size, image *out)
{
    tcc_status status = o->target ? TCC_OK : gpu_open(s, o);
    if (status && status != TCC_ERR_NO_DRIVER)
        return status;
    const char *target = status || o->target ? usual : tcc_device_arch(s->dev);
    return image_compile(s, o, target, tcc_target_emit(usual), text, size, out);
}

static tcc_status cuda_load(session *s, const options *o, const char *text, size_t size,
                            program *out)
{
    image i = {.size = 0};
    tcc_status status;
    switch (file_kind_of(o->file)) {
    case FILE_TILE: status = compile_for_gpu(s, o, "sm_90a", text, size, &i); break;
    case FILE_IR: status = image_assemble(s, o, TCC_EMIT_PTX, text, size, &i); break;
    default: status = image_of_file(s, o, text, size, &i);
    }
    return load(s, o, status, &i, out);
}

static tcc_status hip_load(session *s, const options *o, const char *text, size_t size,
                           program *out)
{
    image i = {.size = 0};
    tcc_status status;
    switch (file_kind_of(o->file)) {
    case FILE_TILE: status = compile_for_gpu(s, o, "gfx1100", text, size, &i); break;
    case FILE_IR: status = image_assemble(s, o, TCC_EMIT_HSACO, text, size, &i); break;
    default: status = image_of_file(s, o, text, size, &i);
    }
    return load(s, o, status, &i, out);
}

/* ---- memory ----------------------------------------------------------------------------- */

static tcc_status gpu_alloc(session *s, size_t bytes, uint64_t *out)
{
    return tcc_device_alloc(s->dev, bytes, out);
}

static void gpu_free(session *s, uint64_t address)
{
    tcc_device_free(s->dev, address);
}

static tcc_status gpu_write(session *s, uint64_t address, const void *host, size_t n)
{
    return tcc_device_write(s->dev, address, host, n);
}

static tcc_status gpu_read(session *s, void *host, uint64_t address, size_t n)
{
    return tcc_device_read(s->dev, host, address, n);
}

static tcc_status gpu_fill(session *s, uint64_t address, uint8_t byte, size_t n)
{
    return tcc_device_fill(s->dev, address, byte, n);
}

static size_t gpu_host_bytes(const tensor *t)
{
    (void)t;
    return 0;
}

/* ---- running ---------------------------------------------------------------------------- */

typedef struct launch_in {
    const launch_task *task;
    tcc_workspace workspace;
} launch_in;

static tcc_status enqueue(void *user)
{
    const launch_in *l = user;
    const launch_task *t = l->task;
    return tcc_kernel_launch_in(t->kernel, t->dims, t->n_dims, t->args, t->n_args, NULL, l->workspace);
}

/* A workspace that is all NaN at first, so that results show when something in it was read that nobody wrote. */
static tcc_status take_workspace(session *s, launch_in *l)
{
    const launch_task *t = l->task;
    tcc_workspace *w = &l->workspace;
    w->bytes = tcc_kernel_workspace_bytes(t->kernel, t->dims, t->n_dims, t->args, t->n_args);
    if (!w->bytes)
        return TCC_OK;
    tcc_status status = tcc_device_alloc(s->dev, w->bytes, &w->device);
    return status ? status : tcc_device_fill(s->dev, w->device, NAN_BYTE, w->bytes);
}

static tcc_status gpu_run(session *s, const launch_task *task, double *ms, const char **variant)
{
    float time = 0;
    launch_in in = {.task = task};
    *variant = tcc_kernel_variant(task->kernel, task->dims, task->n_dims, task->args, task->n_args);
    tcc_status status = /* the driver's compilation is not timed */
        tcc_kernel_prepare(task->kernel, task->dims, task->n_dims, task->args, task->n_args);
    status = status ? status : take_workspace(s, &in);
    status = status ? status : tcc_device_time(s->dev, enqueue, &in, &time);
    if (in.workspace.device)
        tcc_device_free(s->dev, in.workspace.device);
    *ms = (double)time;
    if (!status && task->timeline && task->o->timeline)
        status = timeline_measure(s, task);
    return status ? status : tcc_device_sync(s->dev);
}

static bool gpu_is_lost(session *s)
{
    return s->dev && tcc_device_sync(s->dev);
}

#define GPU                                                                                        \
    .is_gpu = true, .open = gpu_open, .alloc = gpu_alloc, .free = gpu_free, .write = gpu_write,    \
    .read = gpu_read, .fill = gpu_fill, .host_bytes = gpu_host_bytes, .run = gpu_run,              \
    .is_lost = gpu_is_lost

const machine machine_cuda = {GPU, .vendor = TCC_VENDOR_NVIDIA, .describe = cuda_describe,
                              .load = cuda_load};

const machine machine_hip = {GPU, .vendor = TCC_VENDOR_AMD, .describe = hip_describe,
                             .load = hip_load};
