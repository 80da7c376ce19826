/* fake_hip: a libamdhip64 without a GPU, in the versions 5, 6 and 7, each a library of its own with
 * the symbols and the struct of device properties that HIP has there.
 *
 * It is stricter than HIP: what is used wrong fails with the error that HIP has for it, or would
 * have if it looked. Device memory is the host's, but its addresses are not: they are never used
 * again, and nothing is there but allocations. Kernels are checked against the code object's
 * metadata; those of fake_product.h are computed on the CPU. An image is not copied, as HIP does
 * not copy it.
 *
 * What is wrong                                               fails with
 *   any call before hipInit                                     hipErrorNotInitialized
 *   a device that there is not                                  hipErrorInvalidDevice
 *   an image that is not a code object, or has bad metadata        hipErrorInvalidImage
 *   a code object for another GPU                               hipErrorNoBinaryForGpu
 *   a module or event that is gone or never was, a launch of a
 *   function of such a module, an event that was not recorded   hipErrorInvalidHandle
 *   a kernel that the module does not have, a second unloading  hipErrorNotFound
 *   a size of 0, a copy or fill that leaves its allocation, an
 *   unknown or freed address, an unknown stream, too much
 *   shared memory, no parameters where the kernel has some      hipErrorInvalidValue
 *   a grid or block of 0, more threads than 2^32 - 1            hipErrorInvalidConfiguration
 *   another block than the kernel is compiled for               hipErrorLaunchFailure
 *   every call after a launch with a pointer to nothing         hipErrorIllegalAddress
 *   the time of events that have not been waited for            hipErrorNotReady
 *   the time from an event to an earlier one                    hipErrorIllegalState
 *
 * Environment variables, for tests that have no hold of the library:
 *   FAKE_HIP_ARCH  the GPUs: "gfx1100:sramecc-:xnack-,gfx1200"; "" for none; default gfx1100
 *   FAKE_HIP_FAIL  "hipMalloc=2" makes that entry point fail with that error
 *   FAKE_HIP_LOG   a file to which a line is appended for every call
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RUNTIME_FAKE_HIP_H
#define TCC_TESTS_RUNTIME_FAKE_HIP_H

#include "tests/unit/runtime/fake_hsaco.h"

typedef struct fake_hip_launch {
    hsaco_kernel kernel;
    unsigned grid[3], block[3], smem_bytes;
    void *stream;
    uint64_t params[HSACO_MAX_ARGS]; /* as many bytes of each as it has */
    void *buffers[HSACO_MAX_ARGS];   /* where a pointer's memory is on the host */
} fake_hip_launch;

/* What a test does with the library: the symbol fake_hip. */
typedef struct fake_hip_control {
    /* Forgets launches, failures, the log and hipInit, and has the GPUs of FAKE_HIP_ARCH again. */
    void (*reset)(void);
    /* Launches since, at most 16. */
    const fake_hip_launch *(*launches)(int *n);
    /* Later calls of this entry point return `error`. */
    void (*make_fail)(const char *symbol, int error);
    /* Allocations, modules and events that exist. */
    int (*alive)(void);
    /* The names of the entry points called since, each with a space behind it. */
    const char *(*log)(void);
    void (*set_archs)(const char *archs);
    /* Run by every later launch of a kernel that is none of fake_product.h; NULL: nothing. */
    void (*set_kernel)(void (*run)(const fake_hip_launch *launch, void *user), void *user);
    /* A stream that exists. */
    void *(*stream)(void);
} fake_hip_control;

extern const fake_hip_control fake_hip;

#endif
