/* The CUDA driver as the runtime's driver.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/code_object.h"
#include "runtime/runtime.h"

/* Kernels may have this much dynamic shared memory without asking. */
enum { DEFAULT_SMEM_BYTES = 48 * 1024 };

enum { JIT_LOG_BYTES = 4096 };

/* CUDA 12.3: since then graphs have edges for launches that overlap, and streams that are captured take them. */
enum { CAPTURES_OVERLAPS = 12030 };

/* Calls an entry point and reports what it returned: CUDA(rt, cuMemFree, (address)). */
#define CUDA(rt, entry, arguments)                                                                 \
    tcc_driver_status(rt, NULL, (rt)->cuda.entry arguments, #entry, NULL)

static void explain(const tcc_runtime *rt, int error, const char **name, const char **text)
{
    rt->cuda.cuGetErrorName(error, name);
    rt->cuda.cuGetErrorString(error, text);
}

/* Where a device's workspaces come from; made when there is the first. The driver's own pool would give all memory back
 * whenever the host waits for the GPU, and mapping it again takes longer than most kernels; this keeps as much as the
 * largest workspace yet, rounded up. */
typedef struct tcc_cuda_pool {
    _Atomic(CUmemoryPool) pool;
    _Atomic uint64_t kept; /* bytes */
} tcc_cuda_pool;

static tcc_status open(tcc_runtime *rt, int *n_devices)
{
    char why[256];
    if (!tcc_cuda_open(&rt->cuda, why, sizeof why)) {
        tcc_diag diag = tcc_runtime_diag(rt, NULL);
        tcc_error(&diag, TCC_ERR_NO_DRIVER, (tcc_loc){0}, "%s", why);
        return TCC_ERR_NO_DRIVER;
    }
    tcc_status status = CUDA(rt, cuInit, (0));
    int version = 0;
    rt->cuda.overlaps = !rt->cuda.cuDriverGetVersion(&version) && version >= CAPTURES_OVERLAPS;
    if (!status)
        status = CUDA(rt, cuDeviceGetCount, (n_devices));
    if (!status && *n_devices && !(rt->cuda.pools = calloc((size_t)*n_devices, sizeof *rt->cuda.pools)))
        status = TCC_ERR_MEMORY;
    return status;
}

static void close(tcc_runtime *rt)
{
    for (int i = 0; rt->cuda.pools && i < rt->n_devices; i++)
        if (rt->cuda.pools[i].pool)
            rt->cuda.cuMemPoolDestroy(rt->cuda.pools[i].pool);
    free(rt->cuda.pools);
    tcc_cuda_close(&rt->cuda);
}

/* ---- devices ---------------------------------------------------------------------------- */

static tcc_status make_current(tcc_device *dev)
{
    CUcontext ctx;
    tcc_status status = CUDA(dev->rt, cuDevicePrimaryCtxRetain, (&ctx, dev->device));
    if (status)
        return status;
    status = CUDA(dev->rt, cuCtxSetCurrent, (ctx));
    if (status)
        dev->rt->cuda.cuDevicePrimaryCtxRelease(dev->device);
    return status;
}

static tcc_status note_current(const tcc_runtime *rt, tcc_current *out)
{
    CUcontext context = NULL;
    tcc_status status = CUDA(rt, cuCtxGetCurrent, (&context));
    out->context = context;
    return status;
}

static tcc_status adopt_current(const tcc_runtime *rt, tcc_current other)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    tcc_status status = CUDA(rt, cuCtxSetCurrent, (other.context));
    return status ? status : CUDA(rt, cuThreadExchangeStreamCaptureMode, (&mode));
}

static tcc_status device_open(tcc_device *dev)
{
    const tcc_runtime *rt = dev->rt;
    tcc_status status = CUDA(rt, cuDeviceGet, (&dev->device, dev->ordinal));
    if (!status)
        status = CUDA(rt, cuDeviceGetName, (dev->name, sizeof dev->name - 1, dev->device));
    if (!status)
        status = note_current(rt, &dev->previous);
    return status ? status : make_current(dev);
}

static void device_close(tcc_device *dev)
{
    dev->rt->cuda.cuCtxSetCurrent(dev->previous.context);
    dev->rt->cuda.cuDevicePrimaryCtxRelease(dev->device);
}

static tcc_status sync(const tcc_runtime *rt)
{
    return CUDA(rt, cuCtxSynchronize, ());
}

/* A CUdevice is the ordinal that cuDeviceGet was given. */
static int current(const tcc_runtime *rt)
{
    CUcontext context = NULL;
    CUdevice device;
    if (rt->cuda.cuCtxGetCurrent(&context) || !context || rt->cuda.cuCtxGetDevice(&device))
        return -1;
    return device;
}

static tcc_status arch(const tcc_runtime *rt, char out[TCC_MAX_ARCH])
{
    CUdevice device;
    int major, minor;
    tcc_status status = CUDA(rt, cuCtxGetDevice, (&device));
    if (!status)
        status = CUDA(rt, cuDeviceGetAttribute,
                      (&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    if (!status)
        status = CUDA(rt, cuDeviceGetAttribute,
                      (&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    if (!status)
        snprintf(out, TCC_MAX_ARCH, "sm_%d", major * 10 + minor);
    return status;
}

static tcc_status version(const tcc_runtime *rt, int *out)
{
    return CUDA(rt, cuDriverGetVersion, (out));
}

static tcc_status attributes(const tcc_runtime *rt, tcc_device_attrs *out)
{
    CUdevice device;
    int sms = 0;
    tcc_status status = CUDA(rt, cuCtxGetDevice, (&device));
    if (!status)
        status = CUDA(rt, cuDeviceGetAttribute,
                      (&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    out->value[TCC_DEVICE_sms] = sms;
    return status;
}

/* sm_90 means that GPU or a later one, for a cubin one of its major version; sm_90a means only that
 * one. */
static bool runs(const char *arch, const char *target, bool is_elf)
{
    int has, needed, end = 0;
    if (sscanf(arch, "sm_%d", &has) != 1 || sscanf(target, "sm_%d%n", &needed, &end) != 1)
        return false;
    return target[end] ? has == needed : has >= needed && (!is_elf || has / 10 == needed / 10);
}

/* ---- programs --------------------------------------------------------------------------- */

static tcc_status load(tcc_program *p, const void *image, size_t size, void **out)
{
    const tcc_runtime *rt = p->rt;
    char *text = NULL; /* PTX is given to the driver with a terminator */
    if (!tcc_is_elf(image, size)) {
        text = malloc(size + 1);
        if (!text)
            return TCC_ERR_MEMORY;
        memcpy(text, image, size);
        text[size] = 0;
    }
    char log[JIT_LOG_BYTES] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUmodule module = NULL;
    CUresult error = rt->cuda.cuModuleLoadDataEx(&module, text ? text : image, 2, options, values);
    free(text);
    if (!error)
        *out = module;
    log[sizeof log - 1] = 0;
    return tcc_driver_status(rt, p->manifest->file, error, "cuModuleLoadDataEx", log);
}

static void unload(const tcc_program *p, void *module)
{
    p->rt->cuda.cuModuleUnload(module);
}

static tcc_status find(const tcc_program *p, void *module, const tcc_entry *entry, void **out)
{
    const tcc_runtime *rt = p->rt;
    CUfunction function = NULL;
    CUresult error = rt->cuda.cuModuleGetFunction(&function, module, entry->name);
    *out = function;
    if (error || entry->smem_bytes <= DEFAULT_SMEM_BYTES)
        return tcc_driver_status(rt, p->manifest->file, error, "cuModuleGetFunction", entry->name);
    error = rt->cuda.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        (int)entry->smem_bytes);
    return tcc_driver_status(rt, p->manifest->file, error, "cuFuncSetAttribute", entry->name);
}

/* Clusters are of multiprocessors that are near each other: some of these may be left over. */
static tcc_status resident(const tcc_program *p, const tcc_entry *entry, void *function, int64_t *blocks)
{
    const CUlaunchConfig config = {
        .grid = {entry->cluster, 1, 1}, .block = {entry->block, 1, 1}, .smem_bytes = entry->smem_bytes};
    int clusters = 0;
    CUresult error = p->rt->cuda.cuOccupancyMaxActiveClusters(&clusters, function, &config);
    *blocks = (int64_t)clusters * entry->cluster;
    return tcc_driver_status(p->rt, p->manifest->file, error, "cuOccupancyMaxActiveClusters", entry->name);
}

static tcc_status encode(const tcc_program *p, const char *name, const tcc_tma_recipe *recipe,
                         const tcc_tma_values *values, CUtensorMap *out)
{
    CUresult error = tcc_tma_get(p->maps, &p->rt->cuda, recipe, values, out);
    return tcc_driver_status(p->rt, p->manifest->file, error, "cuTensorMapEncodeTiled", name);
}

static tcc_status launch_overlapping(const tcc_program *p, const tcc_entry *entry, void *function, unsigned grid,
                                     void *stream, void **params)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value = {.number = 1}};
    const CUlaunchConfig config = {.grid = {grid, 1, 1}, .block = {entry->block, 1, 1}, .smem_bytes = entry->smem_bytes,
                                   .stream = stream, .attributes = &attribute, .n_attributes = 1};
    CUresult error = p->rt->cuda.cuLaunchKernelEx(&config, function, params, NULL);
    return tcc_driver_status(p->rt, p->manifest->file, error, "cuLaunchKernelEx", entry->name);
}

static tcc_status launch(const tcc_program *p, const tcc_entry *entry, void *function,
                         unsigned grid, bool overlaps, void *stream, void **params)
{
    if (overlaps && p->rt->cuda.overlaps)
        return launch_overlapping(p, entry, function, grid, stream, params);
    CUresult error = p->rt->cuda.cuLaunchKernel(function, grid, 1, 1, entry->block, 1, 1,
                                                entry->smem_bytes, stream, params, NULL);
    return tcc_driver_status(p->rt, p->manifest->file, error, "cuLaunchKernel", entry->name);
}

/* ---- memory and events ------------------------------------------------------------------ */

static tcc_status alloc(const tcc_runtime *rt, size_t bytes, uint64_t *out)
{
    return CUDA(rt, cuMemAlloc, (out, bytes));
}

static void free_memory(const tcc_runtime *rt, uint64_t address)
{
    rt->cuda.cuMemFree(address);
}

static tcc_status write(const tcc_runtime *rt, uint64_t to, const void *from, size_t bytes)
{
    return CUDA(rt, cuMemcpyHtoD, (to, from, bytes));
}

static tcc_status read(const tcc_runtime *rt, void *to, uint64_t from, size_t bytes)
{
    return CUDA(rt, cuMemcpyDtoH, (to, from, bytes));
}

static tcc_status fill(const tcc_runtime *rt, uint64_t to, uint8_t byte, size_t n)
{
    return CUDA(rt, cuMemsetD8, (to, byte, n));
}

static tcc_status make_pool(const tcc_runtime *rt, CUdevice device, tcc_cuda_pool *p)
{
    const CUmemPoolProps props = {.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUmemoryPool made = NULL, none = NULL;
    tcc_status status = CUDA(rt, cuMemPoolCreate, (&made, &props));
    if (!status && !atomic_compare_exchange_strong(&p->pool, &none, made)) /* another thread was faster */
        rt->cuda.cuMemPoolDestroy(made);
    return status;
}

static tcc_status keep(const tcc_runtime *rt, tcc_cuda_pool *p, size_t bytes)
{
    enum { STEP = 64 << 20 }; /* more than what a pool maps at a time */
    uint64_t kept = (bytes / STEP + 1) * STEP;
    if (p->kept >= kept)
        return TCC_OK;
    p->kept = kept;
    return CUDA(rt, cuMemPoolSetAttribute, (p->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
}

static tcc_status alloc_async(const tcc_runtime *rt, size_t bytes, void *stream, uint64_t *out)
{
    CUdevice device;
    tcc_status status = CUDA(rt, cuCtxGetDevice, (&device));
    if (status)
        return status;
    tcc_cuda_pool *p = &rt->cuda.pools[device];
    if (!p->pool)
        status = make_pool(rt, device, p);
    if (!status)
        status = keep(rt, p, bytes);
    return status ? status : CUDA(rt, cuMemAllocFromPoolAsync, (out, bytes, p->pool, stream));
}

static tcc_status free_async(const tcc_runtime *rt, uint64_t address, void *stream)
{
    return CUDA(rt, cuMemFreeAsync, (address, stream));
}

static tcc_status fill_async(const tcc_runtime *rt, uint64_t to, uint8_t byte, size_t n,
                             void *stream)
{
    return CUDA(rt, cuMemsetD8Async, (to, byte, n, stream));
}

static tcc_status event_create(const tcc_runtime *rt, void **out)
{
    CUevent event = NULL;
    tcc_status status = CUDA(rt, cuEventCreate, (&event, CU_EVENT_DEFAULT));
    *out = event;
    return status;
}

static void event_destroy(const tcc_runtime *rt, void *event)
{
    rt->cuda.cuEventDestroy(event);
}

static tcc_status event_record(const tcc_runtime *rt, void *event)
{
    return CUDA(rt, cuEventRecord, (event, NULL));
}

static tcc_status event_sync(const tcc_runtime *rt, void *event)
{
    return CUDA(rt, cuEventSynchronize, (event));
}

static tcc_status event_time(const tcc_runtime *rt, void *start, void *end, float *ms)
{
    return CUDA(rt, cuEventElapsedTime, (ms, start, end));
}

const tcc_driver tcc_driver_cuda = {
    .out_of_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .explain = explain,
    .open = open,
    .close = close,
    .device_open = device_open,
    .device_close = device_close,
    .sync = sync,
    .current = current,
    .note_current = note_current,
    .adopt_current = adopt_current,
    .arch = arch,
    .version = version,
    .runs = runs,
    .attributes = attributes,
    .load = load,
    .unload = unload,
    .find = find,
    .resident = resident,
    .encode = encode,
    .launch = launch,
    .alloc = alloc,
    .free = free_memory,
    .write = write,
    .read = read,
    .fill = fill,
    .alloc_async = alloc_async,
    .free_async = free_async,
    .fill_async = fill_async,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_sync = event_sync,
    .event_time = event_time,
};
