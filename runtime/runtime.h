/* runtime: what the public handles hold.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_RUNTIME_H
#define TCC_RUNTIME_RUNTIME_H

#include <pthread.h>

#include "runtime/cuda_driver.h"
#include "runtime/driver.h"
#include "runtime/hip_driver.h"
#include "runtime/tensor_map.h"

struct tcc_runtime {
    const tcc_driver *driver; /* NULL: for programs that are only described */
    union {
        tcc_cuda cuda;
        tcc_hip hip;
    };
    int n_devices;
    bool fills_workspaces; /* with NaN, before each launch */
    tcc_diagnostic_fn fn;
    void *user;
};

struct tcc_device {
    tcc_runtime *rt;
    int ordinal;
    int device;           /* CUdevice */
    tcc_current previous; /* before tcc_device_open */
    int driver_version;
    char name[256], arch[TCC_MAX_ARCH];
};

/* What a step launches. */
typedef struct tcc_function {
    void *handle;  /* the driver's */
    unsigned most; /* blocks that are of use in a launch; 0: all of its grid */
} tcc_function;

struct tcc_kernel {
    const tcc_kernel_desc *desc;
    struct tcc_program *program;
    tcc_ranking_cache *rankings;
    /* For each loaded variant, a function for each step; NULL for one without a launch. */
    _Atomic(tcc_function *) *functions;
};

/* What the driver has of an image: all of it, or of PTX an entry. */
typedef struct tcc_loaded {
    const char *entry; /* NULL: all */
    void *module;
} tcc_loaded;

struct tcc_program {
    tcc_runtime *rt;
    bool is_loaded;   /* else only described, and the runtime, which has no driver, is its own */
    tcc_arena *arena; /* of everything below but the cache and the image */
    const char *json;
    const tcc_manifest *manifest;
    tcc_device_attrs device;    /* what plans are made for */
    struct tcc_kernel *kernels; /* manifest->n_kernels of them */
    pthread_mutex_t loading;    /* guards all below, and the arena from then on */
    TCC_VEC(tcc_loaded) loaded;
    char *ptx;   /* whose entries are loaded when they are first launched; else NULL */
    void *image; /* a copy that lives with the module, where the driver needs one; else NULL */
    size_t image_size;
    tcc_tma_cache *maps;
};

/* The functions of variant v of a kernel, loaded now if no launch has asked for them before. Thread-safe. */
tcc_status tcc_kernel_load(const tcc_kernel *k, size_t v, const tcc_function **functions);

/* Where errors of one call are reported. `file` NULL: no source is to blame. */
tcc_diag tcc_runtime_diag(const tcc_runtime *rt, const char *file);

/* Reports what a driver call returned, with `detail` (or NULL) after it. Returns TCC_OK for
 * success, TCC_ERR_MEMORY when the device is out of memory, else TCC_ERR_DRIVER. */
tcc_status tcc_driver_status(const tcc_runtime *rt, const char *file, int error, const char *call,
                             const char *detail);

#endif
