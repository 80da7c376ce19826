/* HIP as the runtime's driver.
 *
 * What is current is a device, of the calling thread; there is always one, at first device 0.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/code_object.h"
#include "runtime/runtime.h"

/* Calls an entry point and reports what it returned: HIP(rt, hipSetDevice, (0)). */
#define HIP(rt, entry, arguments)                                                                  \
    tcc_driver_status(rt, NULL, (rt)->hip.entry arguments, #entry, NULL)

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static void explain(const tcc_runtime *rt, int error, const char **name, const char **text)
{
    *name = rt->hip.hipGetErrorName(error);
    *text = rt->hip.hipGetErrorString(error);
}

static tcc_status open(tcc_runtime *rt, int *n_devices)
{
    char why[512];
    if (!tcc_hip_open(&rt->hip, why, sizeof why)) {
        tcc_diag diag = tcc_runtime_diag(rt, NULL);
        tcc_error(&diag, TCC_ERR_NO_DRIVER, (tcc_loc){0}, "%s", why);
        return TCC_ERR_NO_DRIVER;
    }
    tcc_status status = HIP(rt, hipInit, (0));
    return status ? status : HIP(rt, hipGetDeviceCount, (n_devices));
}

static void close(tcc_runtime *rt)
{
    tcc_hip_close(&rt->hip);
}

/* ---- devices ---------------------------------------------------------------------------- */

/* The name of a GPU's architecture without the features that may follow it:
 * "gfx90a:sramecc+:xnack-". */
static tcc_status arch_of(const tcc_runtime *rt, int device, char out[TCC_MAX_ARCH])
{
    hip_properties properties = {.bytes = ""};
    hipError_t error = rt->hip.get_properties(&properties, device);
    if (error)
        return tcc_driver_status(rt, NULL, error, rt->hip.get_properties_name, NULL);
    const char *name = properties.bytes + rt->hip.arch_name_offset;
    size_t len = strnlen(name, HIP_ARCH_NAME_BYTES);
    const char *colon = memchr(name, ':', len);
    snprintf(out, TCC_MAX_ARCH, "%.*s", (int)(colon ? colon - name : (ptrdiff_t)len), name);
    return TCC_OK;
}

static int current(const tcc_runtime *rt)
{
    int device;
    return rt->hip.hipGetDevice(&device) ? -1 : device;
}

static tcc_status arch(const tcc_runtime *rt, char out[TCC_MAX_ARCH])
{
    int device;
    tcc_status status = HIP(rt, hipGetDevice, (&device));
    return status ? status : arch_of(rt, device, out);
}

static tcc_status version(const tcc_runtime *rt, int *out)
{
    int packed = 0;
    tcc_status status = HIP(rt, hipRuntimeGetVersion, (&packed));
    *out = packed / HIP_VERSION_MAJOR_UNIT * 1000 +
           packed % HIP_VERSION_MAJOR_UNIT / HIP_VERSION_MINOR_UNIT * 10;
    return status;
}

static tcc_status attributes(const tcc_runtime *rt, tcc_device_attrs *out)
{
    int device, sms = 0;
    tcc_status status = HIP(rt, hipGetDevice, (&device));
    if (!status)
        status =
            HIP(rt, hipDeviceGetAttribute, (&sms, hipDeviceAttributeMultiprocessorCount, device));
    out->value[TCC_DEVICE_sms] = sms;
    return status;
}

static tcc_status note_current(const tcc_runtime *rt, tcc_current *out)
{
    return HIP(rt, hipGetDevice, (&out->device));
}

static tcc_status adopt_current(const tcc_runtime *rt, tcc_current other)
{
    int mode = hipStreamCaptureModeRelaxed;
    tcc_status status = HIP(rt, hipSetDevice, (other.device));
    if (status || !rt->hip.hipThreadExchangeStreamCaptureMode)
        return status;
    return HIP(rt, hipThreadExchangeStreamCaptureMode, (&mode));
}

static tcc_status device_open(tcc_device *dev)
{
    const tcc_runtime *rt = dev->rt;
    tcc_status status = HIP(rt, hipDeviceGetName, (dev->name, sizeof dev->name - 1, dev->ordinal));
    if (!status)
        status = note_current(rt, &dev->previous);
    return status ? status : HIP(rt, hipSetDevice, (dev->ordinal));
}

static void device_close(tcc_device *dev)
{
    dev->rt->hip.hipSetDevice(dev->previous.device);
}

static tcc_status sync(const tcc_runtime *rt)
{
    return HIP(rt, hipDeviceSynchronize, ());
}

/* A code object without features in its target is for any. */
static bool runs(const char *arch, const char *target, bool is_elf)
{
    (void)is_elf; /* always */
    return !strcmp(arch, target);
}

/* ---- programs --------------------------------------------------------------------------- */

/* HIP does not receive the image's size, but computes it from the headers, and uses the image as
 * long as the module is loaded (FatBinaryInfo::AddDevProgram in hipamd's hip_fatbin.cpp, of HIP 6):
 * so the headers are checked, and the image is copied. */
static tcc_status load(tcc_program *p, const void *image, size_t size, void **out)
{
    const tcc_runtime *rt = p->rt;
    tcc_diag diag = tcc_runtime_diag(rt, p->manifest->file);
    tcc_status status = tcc_code_object_check(&diag, image, size);
    if (status)
        return status;
    p->image = malloc(size);
    if (!p->image)
        return TCC_ERR_MEMORY;
    p->image_size = size;
    memcpy(p->image, image, size);
    hipModule_t module = NULL;
    hipError_t error = rt->hip.hipModuleLoadData(&module, p->image);
    if (!error)
        *out = module;
    return tcc_driver_status(rt, p->manifest->file, error, "hipModuleLoadData", NULL);
}

static void unload(const tcc_program *p, void *module)
{
    p->rt->hip.hipModuleUnload(module);
}

static tcc_status find(const tcc_program *p, void *module, const tcc_entry *entry, void **out)
{
    tcc_diag diag = tcc_runtime_diag(p->rt, p->manifest->file);
    hipFunction_t function = NULL;
    hipError_t error = p->rt->hip.hipModuleGetFunction(&function, module, entry->name);
    *out = function;
    if (error)
        return tcc_driver_status(p->rt, p->manifest->file, error, "hipModuleGetFunction",
                                 entry->name);
    return tcc_code_object_check_entry(&diag, p->image, p->image_size, entry);
}

/* The kernel's shared memory is static: the code object says how much. */
static tcc_status launch(const tcc_program *p, const tcc_entry *entry, void *function,
                         unsigned grid, bool overlaps, void *stream, void **params)
{
    (void)overlaps;
    hipError_t error = p->rt->hip.hipModuleLaunchKernel(function, grid, 1, 1, entry->block, 1, 1, 0,
                                                        stream, params, NULL);
    return tcc_driver_status(p->rt, p->manifest->file, error, "hipModuleLaunchKernel", entry->name);
}

/* ---- memory and events ------------------------------------------------------------------ */

static tcc_status alloc(const tcc_runtime *rt, size_t bytes, uint64_t *out)
{
    void *address = NULL;
    tcc_status status = HIP(rt, hipMalloc, (&address, bytes));
    *out = (uint64_t)(uintptr_t)address;
    return status;
}

static void free_memory(const tcc_runtime *rt, uint64_t address)
{
    rt->hip.hipFree(pointer(address));
}

static tcc_status write(const tcc_runtime *rt, uint64_t to, const void *from, size_t bytes)
{
    return HIP(rt, hipMemcpyHtoD, (pointer(to), from, bytes));
}

static tcc_status read(const tcc_runtime *rt, void *to, uint64_t from, size_t bytes)
{
    return HIP(rt, hipMemcpyDtoH, (to, pointer(from), bytes));
}

static tcc_status fill(const tcc_runtime *rt, uint64_t to, uint8_t byte, size_t n)
{
    return HIP(rt, hipMemsetD8, (pointer(to), byte, n));
}

static tcc_status alloc_async(const tcc_runtime *rt, size_t bytes, void *stream, uint64_t *out)
{
    void *address = NULL;
    if (!rt->hip.hipMallocAsync || !rt->hip.hipFreeAsync) {
        tcc_diag diag = tcc_runtime_diag(rt, NULL);
        tcc_error(&diag, TCC_ERR_DRIVER, (tcc_loc){0},
                  "a kernel needs memory for its steps, and %s lacks hipMallocAsync: HIP 5.2 or "
                  "later is needed",
                  rt->hip.name);
        return TCC_ERR_DRIVER;
    }
    tcc_status status = HIP(rt, hipMallocAsync, (&address, bytes, stream));
    *out = (uint64_t)(uintptr_t)address;
    return status;
}

static tcc_status free_async(const tcc_runtime *rt, uint64_t address, void *stream)
{
    return HIP(rt, hipFreeAsync, (pointer(address), stream));
}

static tcc_status fill_async(const tcc_runtime *rt, uint64_t to, uint8_t byte, size_t n,
                             void *stream)
{
    return HIP(rt, hipMemsetD8Async, (pointer(to), byte, n, stream));
}

static tcc_status event_create(const tcc_runtime *rt, void **out)
{
    hipEvent_t event = NULL;
    tcc_status status = HIP(rt, hipEventCreateWithFlags, (&event, hipEventDefault));
    *out = event;
    return status;
}

static void event_destroy(const tcc_runtime *rt, void *event)
{
    rt->hip.hipEventDestroy(event);
}

static tcc_status event_record(const tcc_runtime *rt, void *event)
{
    return HIP(rt, hipEventRecord, (event, NULL));
}

static tcc_status event_sync(const tcc_runtime *rt, void *event)
{
    return HIP(rt, hipEventSynchronize, (event));
}

static tcc_status event_time(const tcc_runtime *rt, void *start, void *end, float *ms)
{
    return HIP(rt, hipEventElapsedTime, (ms, start, end));
}

const tcc_driver tcc_driver_hip = {
    .out_of_memory = hipErrorOutOfMemory,
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
    .encode = NULL, /* no manifest for these GPUs has tensor maps */
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
