/* fake_cuda: a libcuda.so.1 without a GPU. Device memory is host memory, calls are recorded and can
 * be made to fail, and the kernels of fake_product.h are computed on the CPU; which parameter is
 * what is read from the manifest in the PTX.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RUNTIME_FAKE_CUDA_H
#define TCC_TESTS_RUNTIME_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_MAX_PARAMS = 16, FAKE_SMS = 114 };

typedef struct fake_launch {
    char entry[64];
    unsigned grid[3], block[3], smem_bytes;
    void *stream;
    int max_smem_bytes;               /* as set on the function; -1: never */
    bool overlaps;                    /* with the kernel in front of it */
    uint64_t params[FAKE_MAX_PARAMS]; /* the first 8 bytes of each */
} fake_launch;

/* What a test does with the library: the symbol fake_cuda. */
typedef struct fake_cuda_control {
    /* Forgets launches and failures; later launches record n_params parameters. */
    void (*reset)(int n_params);
    /* The launches and memsets since, at most 16. */
    const fake_launch *(*launches)(int *n);
    /* Later calls of this entry point, cuMemAlloc_v2 say, return `error`. */
    void (*make_fail)(const char *symbol, int error);
    /* Allocations, modules, events and retained contexts that exist. */
    int (*alive)(void);
    /* The GPU is sm_90 until reset; this makes it another. */
    void (*set_compute_capability)(int major, int minor);
    /* How many tensor maps were encoded. */
    int (*maps_encoded)(void);
    /* A stream is captured until reset: code can be loaded by threads alone whose capture mode is relaxed. */
    void (*set_capturing)(bool now);
    /* How many modules were loaded that a driver compiles first: PTX. */
    int (*compiled)(void);
    /* From now until reset cubins have entries, which can be launched and compute nothing. */
    void (*take_cubins)(void);
    /* The driver is of CUDA 13.0 until reset; for runtimes that are created from now on it is of this version: 12020. */
    void (*set_version)(int version);
} fake_cuda_control;

extern const fake_cuda_control fake_cuda;

#endif
