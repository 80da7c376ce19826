/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/runtime.h"

#include <stdlib.h>

tcc_diag tcc_runtime_diag(const tcc_runtime *rt, const char *file)
{
    return (tcc_diag){.file = file ? file : "<runtime>", .fn = rt->fn, .user = rt->user};
}

tcc_status tcc_cuda_status(const tcc_runtime *rt, const char *file, CUresult error,
                           const char *call, const char *detail)
{
    if (!error)
        return TCC_OK;
    const char *name = NULL, *text = NULL;
    rt->cuda.cuGetErrorName(error, &name);
    rt->cuda.cuGetErrorString(error, &text);
    tcc_diag diag = tcc_runtime_diag(rt, file);
    tcc_status status = error == CUDA_ERROR_OUT_OF_MEMORY ? TCC_ERR_MEMORY : TCC_ERR_DRIVER;
    tcc_error(&diag, status, (tcc_loc){0}, "%s: %s (%s, %d)%s%s", call, text ? text : "unknown",
              name ? name : "unknown", error, detail && *detail ? ": " : "", detail ? detail : "");
    return status;
}

tcc_status tcc_runtime_create(tcc_runtime **out, tcc_diagnostic_fn fn, void *user)
{
    *out = NULL;
    tcc_runtime *rt = calloc(1, sizeof *rt);
    if (!rt)
        return TCC_ERR_MEMORY;
    rt->fn = fn;
    rt->user = user;
    tcc_diag diag = tcc_runtime_diag(rt, NULL);
    char why[256];
    int n_devices = 0;
    if (!tcc_cuda_open(&rt->cuda, why, sizeof why))
        tcc_error(&diag, TCC_ERR_NO_DRIVER, (tcc_loc){0}, "%s", why);
    else if (!TCC_CUDA(rt, cuInit, (0)) && !TCC_CUDA(rt, cuDeviceGetCount, (&n_devices))) {
        if (n_devices) {
            *out = rt;
            return TCC_OK;
        }
        tcc_error(&diag, TCC_ERR_NO_DRIVER, (tcc_loc){0}, "the driver finds no GPU");
    }
    tcc_runtime_destroy(rt);
    return TCC_ERR_NO_DRIVER;
}

void tcc_runtime_destroy(tcc_runtime *rt)
{
    if (!rt)
        return;
    tcc_cuda_close(&rt->cuda);
    free(rt);
}
