/* cuda_driver: the part of the CUDA driver API that the runtime calls, found at run time.
 *
 * Types and numbers are those of the CUDA driver API's documentation; cuda.h is not needed. Each
 * entry point names the exported symbol of the version meant: a symbol such as cuMemAlloc without
 * its suffix is the 32-bit interface of CUDA 3, which drivers still export.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_CUDA_DRIVER_H
#define TCC_RUNTIME_CUDA_DRIVER_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUresult; /* 0 is success */
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
};

enum { CU_EVENT_DEFAULT = 0 };
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum {
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
};
enum { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 };

typedef struct CUmemPoolProps {
    int alloc_type, handle_types;
    struct {
        int type, id;
    } location;
    void *security;
    size_t max_size;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

/* A TMA descriptor: opaque, passed to kernels by value. */
typedef struct CUtensorMap {
    alignas(64) uint64_t opaque[16];
} CUtensorMap;

typedef enum CUtensorMapDataType {
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
    CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
    CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
} CUtensorMapDataType;

typedef enum CUtensorMapSwizzle {
    CU_TENSOR_MAP_SWIZZLE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_32B = 1,
    CU_TENSOR_MAP_SWIZZLE_64B = 2,
    CU_TENSOR_MAP_SWIZZLE_128B = 3,
} CUtensorMapSwizzle;

enum {
    CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0, /* outside the tensor everything reads as zero */
};

enum { CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6 };

typedef struct CUlaunchAttribute {
    int id;
    alignas(8) union {
        int number;
        char bytes[64];
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned grid[3], block[3], smem_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned n_attributes;
} CUlaunchConfig;

/* X(member, exported symbol, parameters) */
#define TCC_CUDA_ENTRY_POINTS(X)                                                                   \
    X(cuInit, "cuInit", (unsigned flags))                                                          \
    X(cuGetErrorName, "cuGetErrorName", (CUresult error, const char **name))                       \
    X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **text))                   \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                    \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                          \
    X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                \
    X(cuDeviceGetName, "cuDeviceGetName", (char *name, int size, CUdevice device))                 \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device))  \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * ctx, CUdevice device))    \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext * ctx))                                       \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext ctx))                                         \
    X(cuCtxGetDevice, "cuCtxGetDevice", (CUdevice * device))                                       \
    X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))         \
    X(cuCtxSynchronize, "cuCtxSynchronize", (void))                                                \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                    \
      (CUmodule * module, const void *image, unsigned n_options, int *options, void **values))     \
    X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                         \
    X(cuModuleGetFunction, "cuModuleGetFunction",                                                  \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))   \
    X(cuLaunchKernel, "cuLaunchKernel",                                                            \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned smem_bytes, CUstream stream, void **params,    \
       void **extra))                                                                              \
    X(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters",                                \
      (int *clusters, CUfunction function, const CUlaunchConfig *config))                          \
    X(cuLaunchKernelEx, "cuLaunchKernelEx",                                                        \
      (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))            \
    X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                            \
      (CUtensorMap * map, CUtensorMapDataType type, uint32_t rank, void *address,                  \
       const uint64_t *dims, const uint64_t *strides_bytes, const uint32_t *box,                   \
       const uint32_t *element_strides, int interleave, CUtensorMapSwizzle swizzle,                \
       int l2_promotion, int oob_fill))                                                            \
    X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * address, size_t bytes))                          \
    X(cuMemFree, "cuMemFree_v2", (CUdeviceptr address))                                            \
    X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr to, const void *from, size_t bytes))           \
    X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *to, CUdeviceptr from, size_t bytes))                 \
    X(cuMemsetD8, "cuMemsetD8_v2", (CUdeviceptr to, unsigned char byte, size_t n))                 \
    X(cuMemPoolCreate, "cuMemPoolCreate", (CUmemoryPool * pool, const CUmemPoolProps *props))      \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", (CUmemoryPool pool))                                   \
    X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute",                                              \
      (CUmemoryPool pool, int attribute, void *value))                                             \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",                                          \
      (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream))                   \
    X(cuMemFreeAsync, "cuMemFreeAsync", (CUdeviceptr address, CUstream stream))                    \
    X(cuMemsetD8Async, "cuMemsetD8Async",                                                          \
      (CUdeviceptr to, unsigned char byte, size_t n, CUstream stream))                             \
    X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                           \
    X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                                        \
    X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                            \
    X(cuEventSynchronize, "cuEventSynchronize", (CUevent event))                                   \
    X(cuEventElapsedTime, "cuEventElapsedTime", (float *ms, CUevent start, CUevent end))

/* The loaded driver: cuda.cuMemAlloc(&address, 256). */
typedef struct tcc_cuda {
    void *library;
    bool overlaps; /* its launches may */
    struct tcc_cuda_pool *pools; /* of each device: cuda.c */
#define DECLARE(member, symbol, params) CUresult(*member) params;
    TCC_CUDA_ENTRY_POINTS(DECLARE)
#undef DECLARE
} tcc_cuda;

/* Opens libcuda.so.1 and finds every entry point. On failure writes why into `why` and leaves
 * nothing open. */
bool tcc_cuda_open(tcc_cuda *cuda, char *why, size_t why_size);
void tcc_cuda_close(tcc_cuda *cuda);

#endif
