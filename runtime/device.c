/* The device layer: what a program without a GPU context of its own needs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include "runtime/runtime.h"

tcc_status tcc_device_open(tcc_runtime *rt, int ordinal, tcc_device **out)
{
    *out = NULL;
    tcc_device *dev = calloc(1, sizeof *dev);
    if (!dev)
        return TCC_ERR_MEMORY;
    dev->rt = rt;
    dev->ordinal = ordinal;
    tcc_status status = rt->driver->device_open(dev);
    if (status) {
        free(dev);
        return status;
    }
    status = rt->driver->arch(rt, dev->arch);
    if (!status)
        status = rt->driver->version(rt, &dev->driver_version);
    if (status) {
        tcc_device_close(dev);
        return status;
    }
    *out = dev;
    return TCC_OK;
}

void tcc_device_close(tcc_device *dev)
{
    if (!dev)
        return;
    dev->rt->driver->device_close(dev);
    free(dev);
}

const char *tcc_device_name(const tcc_device *dev)
{
    return dev ? dev->name : NULL;
}

int tcc_device_driver_version(const tcc_device *dev)
{
    return dev ? dev->driver_version : 0;
}

tcc_status tcc_device_alloc(tcc_device *dev, size_t bytes, uint64_t *out)
{
    *out = 0;
    return dev->rt->driver->alloc(dev->rt, bytes ? bytes : 1, out);
}

void tcc_device_free(tcc_device *dev, uint64_t device)
{
    if (device)
        dev->rt->driver->free(dev->rt, device);
}

tcc_status tcc_device_write(tcc_device *dev, uint64_t device, const void *host, size_t n)
{
    return n ? dev->rt->driver->write(dev->rt, device, host, n) : TCC_OK;
}

tcc_status tcc_device_read(tcc_device *dev, void *host, uint64_t device, size_t n)
{
    return n ? dev->rt->driver->read(dev->rt, host, device, n) : TCC_OK;
}

/* The driver's fill is asynchronous to the host. */
tcc_status tcc_device_fill(tcc_device *dev, uint64_t device, uint8_t byte, size_t n)
{
    tcc_status status = n ? dev->rt->driver->fill(dev->rt, device, byte, n) : TCC_OK;
    return status ? status : tcc_device_sync(dev);
}

tcc_status tcc_device_sync(tcc_device *dev)
{
    return dev->rt->driver->sync(dev->rt);
}

/* `enqueue` between two events that exist. */
static tcc_status time_between(const tcc_runtime *rt, void *start, void *end,
                               tcc_status (*enqueue)(void *user), void *user, float *ms)
{
    const tcc_driver *driver = rt->driver;
    tcc_status status = driver->event_record(rt, start);
    if (!status)
        status = enqueue(user);
    if (!status)
        status = driver->event_record(rt, end);
    if (!status)
        status = driver->event_sync(rt, end);
    if (!status)
        status = driver->event_time(rt, start, end, ms);
    return status;
}

tcc_status tcc_device_time(tcc_device *dev, tcc_status (*enqueue)(void *user), void *user,
                           float *ms)
{
    *ms = 0;
    const tcc_runtime *rt = dev->rt;
    void *start, *end;
    tcc_status status = rt->driver->event_create(rt, &start);
    if (status)
        return status;
    status = rt->driver->event_create(rt, &end);
    if (!status) {
        status = time_between(rt, start, end, enqueue, user, ms);
        rt->driver->event_destroy(rt, end);
    }
    rt->driver->event_destroy(rt, start);
    return status;
}
