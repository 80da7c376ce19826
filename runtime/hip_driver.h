/* hip_driver: the part of HIP that the runtime calls, found at run time.
 *
 * HIP's headers are not needed. Types and numbers are those of HIP 5 to 7, whose ABI is the same in
 * every entry point here but the two for a device's properties:
 *
 *   - Handles are pointers, a device is its ordinal, a device address is a void *; the numbers of
 *     hipError_t below are those of HIP 5.0, and none has changed since (hip_runtime_api.h).
 *   - hipDeviceProp_t grew in HIP 6 and is written there by hipGetDevicePropertiesR0600, of the new
 *     symbol version hip_6.0 (hipamd's hip_hcc.map.in). The symbol hipGetDeviceProperties keeps
 *     writing the struct of HIP 5, where the same name is at another place.
 *   - The attribute that was the architecture's name is unused since HIP 6, and none other is asked
 *     for.
 *   - Contexts are deprecated, and hipCtxSynchronize is not implemented: what is current is a
 *     device, of a thread.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_HIP_DRIVER_H
#define TCC_RUNTIME_HIP_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

typedef int hipError_t; /* 0 is success */
typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;

enum {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNotInitialized = 3,
    hipErrorInvalidConfiguration = 9,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidImage = 200,
    hipErrorNoBinaryForGpu = 209,
    hipErrorInvalidHandle = 400,
    hipErrorIllegalState = 401,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorIllegalAddress = 700,
    hipErrorLaunchFailure = 719,
};

enum { hipEventDefault = 0 };
enum { hipStreamCaptureModeRelaxed = 2 };

enum { hipDeviceAttributeMultiprocessorCount = 63 };

/* hipRuntimeGetVersion's number is major * 10000000 + minor * 100000 + patch (hip_version.h). */
enum { HIP_VERSION_MAJOR_UNIT = 10000000, HIP_VERSION_MINOR_UNIT = 100000 };

/* The two structs of device properties, as far as they matter: where the name of the architecture
 * is, and room for all of them, in versions to come as well. (HIP 5: 792 bytes, HIP 6 and 7: 1472.)
 */
enum { HIP_ARCH_NAME_BYTES = 256, HIP_PROPERTIES_BYTES = 8192 };
enum { HIP_ARCH_NAME_OFFSET_R0000 = 396, HIP_ARCH_NAME_OFFSET_R0600 = 1160 };

typedef union hip_properties {
    char bytes[HIP_PROPERTIES_BYTES];
    void *align;
} hip_properties;

/* X(member, result, parameters): the member is the exported symbol. */
#define TCC_HIP_ENTRY_POINTS(X)                                                                    \
    X(hipInit, hipError_t, (unsigned flags))                                                       \
    X(hipGetErrorName, const char *, (hipError_t error))                                           \
    X(hipGetErrorString, const char *, (hipError_t error))                                         \
    X(hipRuntimeGetVersion, hipError_t, (int *version))                                            \
    X(hipGetDeviceCount, hipError_t, (int *count))                                                 \
    X(hipDeviceGetName, hipError_t, (char *name, int size, hipDevice_t device))                    \
    X(hipDeviceGetAttribute, hipError_t, (int *value, int attribute, hipDevice_t device))          \
    X(hipGetDevice, hipError_t, (int *device))                                                     \
    X(hipSetDevice, hipError_t, (int device))                                                      \
    X(hipDeviceSynchronize, hipError_t, (void))                                                    \
    X(hipModuleLoadData, hipError_t, (hipModule_t * module, const void *image))                    \
    X(hipModuleUnload, hipError_t, (hipModule_t module))                                           \
    X(hipModuleGetFunction, hipError_t,                                                            \
      (hipFunction_t * function, hipModule_t module, const char *name))                            \
    X(hipModuleLaunchKernel, hipError_t,                                                           \
      (hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                  \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem_bytes,                  \
       hipStream_t stream, void **params, void **extra))                                           \
    X(hipMalloc, hipError_t, (void **address, size_t bytes))                                       \
    X(hipFree, hipError_t, (void *address))                                                        \
    X(hipMemcpyHtoD, hipError_t, (hipDeviceptr_t to, const void *from, size_t bytes))              \
    X(hipMemcpyDtoH, hipError_t, (void *to, hipDeviceptr_t from, size_t bytes))                    \
    X(hipMemsetD8, hipError_t, (hipDeviceptr_t to, unsigned char byte, size_t n))                  \
    X(hipMemsetD8Async, hipError_t,                                                                \
      (hipDeviceptr_t to, unsigned char byte, size_t n, hipStream_t stream))                       \
    X(hipEventCreateWithFlags, hipError_t, (hipEvent_t * event, unsigned flags))                   \
    X(hipEventDestroy, hipError_t, (hipEvent_t event))                                             \
    X(hipEventRecord, hipError_t, (hipEvent_t event, hipStream_t stream))                          \
    X(hipEventSynchronize, hipError_t, (hipEvent_t event))                                         \
    X(hipEventElapsedTime, hipError_t, (float *ms, hipEvent_t start, hipEvent_t end))

/* What older versions lack: NULL there. */
#define TCC_HIP_LATER_ENTRY_POINTS(X)                                                              \
    X(hipMallocAsync, hipError_t, (void **address, size_t bytes, hipStream_t stream))              \
    X(hipFreeAsync, hipError_t, (void *address, hipStream_t stream))                               \
    X(hipThreadExchangeStreamCaptureMode, hipError_t, (int *mode))

/* The loaded library: hip.hipMalloc(&address, 256). */
typedef struct tcc_hip {
    void *library;
    const char *name; /* by which it was found: "libamdhip64.so.6" */
#define DECLARE(member, result, params) result(*member) params;
    TCC_HIP_ENTRY_POINTS(DECLARE)
    TCC_HIP_LATER_ENTRY_POINTS(DECLARE)
#undef DECLARE
    hipError_t (*get_properties)(hip_properties *properties, int device);
    const char *get_properties_name;
    size_t arch_name_offset; /* in what get_properties writes */
} tcc_hip;

/* Opens libamdhip64.so, or the one of HIP 7, 6 or 5 where no package for developers has put that
 * name there, and finds every entry point. On failure writes why into `why` and leaves nothing
 * open. */
bool tcc_hip_open(tcc_hip *hip, char *why, size_t why_size);
void tcc_hip_close(tcc_hip *hip);

#endif
