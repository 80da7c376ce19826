/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/bundle.h"
#include "runtime/runtime.h"

/* ---- finding the drivers ---------------------------------------------------------------- */

static tcc_vendor vendor_of(const char *target)
{
    return strncmp(target, "gfx", 3) ? TCC_VENDOR_NVIDIA : TCC_VENDOR_AMD;
}

/* What fails is told `fn`, which may be NULL. */
static tcc_status open_vendor(tcc_ahead *a, tcc_vendor vendor, tcc_diagnostic_fn fn)
{
    tcc_ahead_vendor *v = &a->vendors[vendor];
    v->state = TCC_AHEAD_ABSENT;
    tcc_status status = tcc_runtime_create_for(vendor, &v->rt, fn, NULL);
    if (status)
        return status;
    v->rt->fn = a->fn;
    v->programs = calloc((size_t)tcc_runtime_device_count(v->rt), sizeof *v->programs);
    if (!v->programs) {
        tcc_runtime_destroy(v->rt);
        return TCC_ERR_MEMORY;
    }
    v->state = TCC_AHEAD_OPEN;
    return TCC_OK;
}

/* Opens the drivers of all vendors that the bundle has images for; one is enough. */
static tcc_status open_some(tcc_ahead *a, const tcc_bundle *bundle, tcc_diagnostic_fn fn)
{
    bool any = false, asked[TCC_AHEAD_VENDORS] = {false};
    tcc_status wrong = TCC_OK;
    for (size_t i = 0; i < bundle->n; i++) {
        tcc_vendor vendor = vendor_of(bundle->images[i].target);
        tcc_status status = asked[vendor] ? TCC_OK : open_vendor(a, vendor, fn);
        any |= !asked[vendor] && !status;
        wrong = status ? status : wrong;
        asked[vendor] = true;
    }
    return any ? TCC_OK : wrong;
}

/* A driver that is missing beside another one is not told of. Without any, a later call looks again. */
static tcc_status open_vendors(tcc_ahead *a)
{
    tcc_bundle bundle;
    tcc_diag diag = {.file = "<runtime>", .fn = a->fn};
    tcc_status status = tcc_bundle_read(&diag, a->bundle, a->size, &bundle);
    if (status)
        return status;
    status = open_some(a, &bundle, NULL);
    if (status)
        status = open_some(a, &bundle, a->fn);
    atomic_store_explicit(&a->is_open, !status, memory_order_release);
    return status;
}

static tcc_status open(tcc_ahead *a)
{
    tcc_status status = TCC_OK;
    if (atomic_load_explicit(&a->is_open, memory_order_acquire))
        return status;
    pthread_mutex_lock(&a->mutex);
    if (!atomic_load_explicit(&a->is_open, memory_order_relaxed)) /* another thread may have been here */
        status = open_vendors(a);
    pthread_mutex_unlock(&a->mutex);
    return status;
}

/* ---- finding the program ---------------------------------------------------------------- */

/* The vendor whose GPU is current, and the GPU. With HIP one always is, so that NVIDIA comes first. */
static tcc_ahead_vendor *current(tcc_ahead *a, int *device)
{
    for (int i = 0; i < TCC_AHEAD_VENDORS; i++) {
        tcc_ahead_vendor *v = &a->vendors[i];
        *device = v->state == TCC_AHEAD_OPEN ? tcc_runtime_current_device(v->rt) : -1;
        if (*device >= 0 && *device < tcc_runtime_device_count(v->rt))
            return v;
    }
    tcc_diag diag = {.file = "<runtime>", .fn = a->fn};
    tcc_error(&diag, TCC_ERR_NO_DRIVER, (tcc_loc){0},
              "no GPU is current in this thread; cudaSetDevice or cuCtxSetCurrent selects one");
    return NULL;
}

static tcc_status load(tcc_ahead *a, const tcc_ahead_vendor *v, int device)
{
    tcc_status status = TCC_OK;
    pthread_mutex_lock(&a->mutex);
    if (!atomic_load_explicit(&v->programs[device], memory_order_relaxed)) { /* another thread may have been here */
        tcc_program *program;
        status = tcc_program_load(v->rt, a->bundle, a->size, NULL, &program);
        if (!status)
            atomic_store_explicit(&v->programs[device], program, memory_order_release);
    }
    pthread_mutex_unlock(&a->mutex);
    return status;
}

static tcc_status find(tcc_ahead *a, size_t k, const tcc_kernel **out)
{
    int device;
    tcc_status status = open(a);
    if (status)
        return status;
    const tcc_ahead_vendor *v = current(a, &device);
    if (!v)
        return TCC_ERR_NO_DRIVER;
    tcc_program *program = atomic_load_explicit(&v->programs[device], memory_order_acquire);
    if (!program) {
        status = load(a, v, device);
        program = atomic_load_explicit(&v->programs[device], memory_order_acquire);
    }
    *out = tcc_program_kernel_at(program, k);
    return status;
}

tcc_status tcc_ahead_launch(tcc_ahead *a, size_t k, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                            size_t n_args, void *stream)
{
    const tcc_kernel *kernel;
    tcc_status status = find(a, k, &kernel);
    return status ? status : tcc_kernel_launch(kernel, dims, n_dims, args, n_args, stream);
}

tcc_status tcc_ahead_prepare(tcc_ahead *a, size_t k, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                             size_t n_args)
{
    const tcc_kernel *kernel;
    tcc_status status = find(a, k, &kernel);
    return status ? status : tcc_kernel_prepare(kernel, dims, n_dims, args, n_args);
}
