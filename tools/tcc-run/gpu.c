/* The GPU as a machine: the runtime, and what it shows of the device.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <string.h>

#include "tools/tcc-run/session.h"
#include "tools/tcc-run/tensor.h"

static tcc_status gpu_open(session *s)
{
    if (s->dev)
        return TCC_OK;
    bool quiet = s->quiet;
    s->quiet = true; /* no driver is told in the caller's one line */
    tcc_status status = tcc_runtime_create(&s->rt, session_on_diagnostic, s);
    s->quiet = quiet;
    return status ? status : tcc_device_open(s->rt, 0, &s->dev);
}

static void gpu_describe(const session *s, const options *o, char *name, size_t size,
                         int *driver_version)
{
    (void)o;
    if (!s->dev)
        return;
    snprintf(name, size, "%s", tcc_device_name(s->dev));
    *driver_version = tcc_device_driver_version(s->dev);
}

/* A bad program is reported before a missing GPU. */
static tcc_status gpu_load(session *s, const options *o, const char *text, size_t size,
                           program *out)
{
    tcc_module *mod = NULL;
    const void *image = text;
    const char *manifest = NULL; /* at the head of the PTX */
    char *ptx = NULL;
    tcc_status status = TCC_OK;
    if (file_kind_of(o->file) == FILE_TILE) {
        status = session_compile(s, o, TCC_EMIT_PTX, text, size, &mod);
        image = status ? NULL : tcc_module_output(mod, &size);
    } else if (file_kind_of(o->file) == FILE_IR) {
        status = session_parse(s, o, text, size, &mod);
        if (!status)
            status = session_assemble(s, o, text, size, &ptx);
        if (!status) {
            image = ptx;
            size = strlen(ptx);
            manifest = tcc_module_manifest(mod);
        }
    }
    if (!status)
        status = gpu_open(s);
    if (!status)
        status = tcc_program_load(s->rt, image, size, manifest, &out->handle);
    tcc_text_destroy(ptx);
    tcc_module_destroy(mod);
    return status;
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

static tcc_status enqueue(void *user)
{
    const launch_task *t = user;
    return tcc_kernel_launch(t->kernel, t->dims, t->n_dims, t->args, t->n_args, NULL);
}

static tcc_status gpu_run(session *s, const launch_task *task, double *ms, const char **variant)
{
    float time = 0;
    *variant = tcc_kernel_variant(task->kernel, task->dims, task->n_dims, task->args, task->n_args);
    tcc_status status = tcc_device_time(s->dev, enqueue, (void *)task, &time);
    *ms = (double)time;
    return status ? status : tcc_device_sync(s->dev);
}

static bool gpu_is_lost(session *s)
{
    return s->dev && tcc_device_sync(s->dev);
}

const machine machine_gpu = {gpu_open,       gpu_describe, gpu_load,   gpu_alloc,
                             gpu_free,       gpu_write,    gpu_read,   gpu_fill,
                             gpu_host_bytes, gpu_run,      gpu_is_lost};
