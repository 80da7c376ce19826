/* runtime: what the public handles hold.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_RUNTIME_H
#define TCC_RUNTIME_RUNTIME_H

#include "runtime/cuda_driver.h"
#include "runtime/tensor_map.h"

struct tcc_runtime {
    tcc_cuda cuda;
    tcc_diagnostic_fn fn;
    void *user;
};

struct tcc_kernel {
    const tcc_kernel_desc *desc;
    const struct tcc_program *program;
    CUfunction *functions; /* one for each variant */
};

struct tcc_program {
    tcc_runtime *rt;
    bool is_loaded; /* else only described, and the runtime, which has no driver, is its own */
    tcc_arena *arena; /* of everything below but the cache */
    const char *json;
    const tcc_manifest *manifest;
    struct tcc_kernel *kernels; /* manifest->n_kernels of them */
    CUmodule module;
    tcc_tma_cache *maps;
};

/* Where errors of one call are reported. `file` NULL: no source is to blame. */
tcc_diag tcc_runtime_diag(const tcc_runtime *rt, const char *file);

/* Reports what a driver call returned, with `detail` (or NULL) after it. Returns TCC_OK for
 * success, TCC_ERR_MEMORY when the device is out of memory, else TCC_ERR_DRIVER. */
tcc_status tcc_cuda_status(const tcc_runtime *rt, const char *file, CUresult error,
                           const char *call, const char *detail);

/* Calls an entry point and reports what it returned: TCC_CUDA(rt, cuMemFree, (address)). */
#define TCC_CUDA(rt, entry, arguments)                                                             \
    tcc_cuda_status(rt, NULL, (rt)->cuda.entry arguments, #entry, NULL)

#endif
