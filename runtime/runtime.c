/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/runtime.h"

#include <stdlib.h>

static const tcc_driver *const drivers[] = {[TCC_VENDOR_NVIDIA] = &tcc_driver_cuda,
                                            [TCC_VENDOR_AMD] = &tcc_driver_hip};

tcc_diag tcc_runtime_diag(const tcc_runtime *rt, const char *file)
{
    return (tcc_diag){.file = file ? file : "<runtime>", .fn = rt->fn, .user = rt->user};
}

tcc_status tcc_driver_status(const tcc_runtime *rt, const char *file, int error, const char *call,
                             const char *detail)
{
    if (!error)
        return TCC_OK;
    const char *name = NULL, *text = NULL;
    rt->driver->explain(rt, error, &name, &text);
    tcc_diag diag = tcc_runtime_diag(rt, file);
    tcc_status status = error == rt->driver->out_of_memory ? TCC_ERR_MEMORY : TCC_ERR_DRIVER;
    tcc_error(&diag, status, (tcc_loc){0}, "%s: %s (%s, %d)%s%s", call, text ? text : "unknown",
              name ? name : "unknown", error, detail && *detail ? ": " : "", detail ? detail : "");
    return status;
}

tcc_status tcc_runtime_create_for(tcc_vendor vendor, tcc_runtime **out, tcc_diagnostic_fn fn,
                                  void *user)
{
    *out = NULL;
    if ((unsigned)vendor >= sizeof drivers / sizeof drivers[0])
        return TCC_ERR_ARGUMENT;
    tcc_runtime *rt = calloc(1, sizeof *rt);
    if (!rt)
        return TCC_ERR_MEMORY;
    const char *fills = getenv("TCC_FILL_WORKSPACE");
    *rt = (tcc_runtime){.driver = drivers[vendor], .fills_workspaces = fills && *fills, .fn = fn, .user = user};
    tcc_status status = rt->driver->open(rt, &rt->n_devices);
    if (!status && rt->n_devices > 0) {
        *out = rt;
        return TCC_OK;
    }
    if (!status) {
        tcc_diag diag = tcc_runtime_diag(rt, NULL);
        tcc_error(&diag, TCC_ERR_NO_DRIVER, (tcc_loc){0}, "the driver finds no GPU");
    }
    tcc_runtime_destroy(rt);
    return TCC_ERR_NO_DRIVER;
}

tcc_status tcc_runtime_create(tcc_runtime **out, tcc_diagnostic_fn fn, void *user)
{
    return tcc_runtime_create_for(TCC_VENDOR_NVIDIA, out, fn, user);
}

void tcc_runtime_destroy(tcc_runtime *rt)
{
    if (!rt)
        return;
    rt->driver->close(rt);
    free(rt);
}

int tcc_runtime_current_device(const tcc_runtime *rt)
{
    return rt ? rt->driver->current(rt) : -1;
}

int tcc_runtime_device_count(const tcc_runtime *rt)
{
    return rt ? rt->n_devices : 0;
}
