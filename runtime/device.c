/* The device layer: what a program without a CUDA context of its own needs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include "runtime/runtime.h"

struct tcc_device {
    tcc_runtime *rt;
    CUdevice device;
    CUcontext previous; /* current before tcc_device_open */
    int driver_version;
    char name[256];
};

static tcc_status make_current(tcc_device *dev)
{
    CUcontext ctx;
    tcc_status status = TCC_CUDA(dev->rt, cuDevicePrimaryCtxRetain, (&ctx, dev->device));
    if (status)
        return status;
    status = TCC_CUDA(dev->rt, cuCtxSetCurrent, (ctx));
    if (status)
        dev->rt->cuda.cuDevicePrimaryCtxRelease(dev->device);
    return status;
}

tcc_status tcc_device_open(tcc_runtime *rt, int ordinal, tcc_device **out)
{
    *out = NULL;
    tcc_device *dev = calloc(1, sizeof *dev);
    if (!dev)
        return TCC_ERR_MEMORY;
    dev->rt = rt;
    tcc_status status = TCC_CUDA(rt, cuDeviceGet, (&dev->device, ordinal));
    if (!status)
        status = TCC_CUDA(rt, cuDeviceGetName, (dev->name, sizeof dev->name - 1, dev->device));
    if (!status)
        status = TCC_CUDA(rt, cuDriverGetVersion, (&dev->driver_version));
    if (!status)
        status = TCC_CUDA(rt, cuCtxGetCurrent, (&dev->previous));
    if (!status)
        status = make_current(dev);
    if (status) {
        free(dev);
        return status;
    }
    *out = dev;
    return TCC_OK;
}

void tcc_device_close(tcc_device *dev)
{
    if (!dev)
        return;
    dev->rt->cuda.cuCtxSetCurrent(dev->previous);
    dev->rt->cuda.cuDevicePrimaryCtxRelease(dev->device);
    free(dev);
}

const char *tcc_device_name(const tcc_device *dev)
{
    return dev->name;
}

int tcc_device_driver_version(const tcc_device *dev)
{
    return dev->driver_version;
}

tcc_status tcc_device_alloc(tcc_device *dev, size_t bytes, uint64_t *out)
{
    *out = 0;
    return TCC_CUDA(dev->rt, cuMemAlloc, (out, bytes ? bytes : 1));
}

void tcc_device_free(tcc_device *dev, uint64_t device)
{
    if (device)
        dev->rt->cuda.cuMemFree(device);
}

tcc_status tcc_device_write(tcc_device *dev, uint64_t device, const void *host, size_t n)
{
    return n ? TCC_CUDA(dev->rt, cuMemcpyHtoD, (device, host, n)) : TCC_OK;
}

tcc_status tcc_device_read(tcc_device *dev, void *host, uint64_t device, size_t n)
{
    return n ? TCC_CUDA(dev->rt, cuMemcpyDtoH, (host, device, n)) : TCC_OK;
}

/* cuMemsetD8 is asynchronous to the host. */
tcc_status tcc_device_fill(tcc_device *dev, uint64_t device, uint8_t byte, size_t n)
{
    tcc_status status = n ? TCC_CUDA(dev->rt, cuMemsetD8, (device, byte, n)) : TCC_OK;
    return status ? status : tcc_device_sync(dev);
}

tcc_status tcc_device_sync(tcc_device *dev)
{
    return TCC_CUDA(dev->rt, cuCtxSynchronize, ());
}

/* `enqueue` between two events that exist. */
static tcc_status time_between(tcc_device *dev, CUevent start, CUevent end,
                               tcc_status (*enqueue)(void *user), void *user, float *ms)
{
    tcc_status status = TCC_CUDA(dev->rt, cuEventRecord, (start, NULL));
    if (!status)
        status = enqueue(user);
    if (!status)
        status = TCC_CUDA(dev->rt, cuEventRecord, (end, NULL));
    if (!status)
        status = TCC_CUDA(dev->rt, cuEventSynchronize, (end));
    if (!status)
        status = TCC_CUDA(dev->rt, cuEventElapsedTime, (ms, start, end));
    return status;
}

tcc_status tcc_device_time(tcc_device *dev, tcc_status (*enqueue)(void *user), void *user,
                           float *ms)
{
    *ms = 0;
    CUevent start, end;
    tcc_status status = TCC_CUDA(dev->rt, cuEventCreate, (&start, CU_EVENT_DEFAULT));
    if (status)
        return status;
    status = TCC_CUDA(dev->rt, cuEventCreate, (&end, CU_EVENT_DEFAULT));
    if (!status) {
        status = time_between(dev, start, end, enqueue, user, ms);
        dev->rt->cuda.cuEventDestroy(end);
    }
    dev->rt->cuda.cuEventDestroy(start);
    return status;
}
