/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE /* memmem */
#include "tests/unit/runtime/fake_cuda.h"

#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/cuda_driver.h"
#include "tests/unit/runtime/fake_product.h"
#include "tests/unit/runtime/json.h"

enum { INVALID_VALUE = 1, ILLEGAL_ADDRESS = 700, NOT_FOUND = 500, INVALID_PTX = 218, CAPTURE_UNSUPPORTED = 900 };
enum { MAX_LAUNCHES = 16, MAX_FUNCTIONS = 256 };

struct CUfunc_st {
    CUmodule module;
    char entry[64];
    int max_smem_bytes;
};

struct CUmod_st {
    char *image;
    size_t size;
    char *manifest; /* NULL where the image has none */
    struct CUfunc_st functions[MAX_FUNCTIONS];
    int n_functions;
};

struct CUctx_st {
    _Atomic int retained;
};

struct CUevent_st {
    struct timespec time;
};

static struct CUctx_st context;
static _Thread_local CUcontext current;
static fake_launch launches[MAX_LAUNCHES];
static int n_launches, n_params, n_maps, n_products;
static _Atomic int n_alive, n_compiled;
static const char *failing;
static int failure;
static int capability[2] = {9, 0}, driver_version = 13000;
static _Atomic bool lost; /* the context is beyond use, for all threads */
static _Atomic bool capturing;
static bool takes_cubins;
static _Thread_local int capture_mode;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void set_version(int version)
{
    driver_version = version;
}

static void set_compute_capability(int major, int minor)
{
    capability[0] = major;
    capability[1] = minor;
}

static void reset(int params)
{
    n_launches = n_maps = n_compiled = n_products = 0;
    n_params = params;
    failing = NULL;
    lost = false;
    capturing = takes_cubins = false;
    set_compute_capability(9, 0);
    set_version(13000);
}

static const fake_launch *get_launches(int *n)
{
    *n = n_launches;
    return launches;
}

static void make_fail(const char *symbol, int error)
{
    failing = symbol;
    failure = error;
}

static int alive(void)
{
    return n_alive + context.retained;
}

static int maps_encoded(void)
{
    return n_maps;
}

static int compiled(void)
{
    return n_compiled;
}

static void set_capturing(bool now)
{
    capturing = now;
}

static void take_cubins(void)
{
    takes_cubins = true;
}

const fake_cuda_control fake_cuda = {reset,        get_launches,  make_fail, alive, set_compute_capability,
                                     maps_encoded, set_capturing, compiled,  take_cubins,
                                     set_version};

/* Defines an entry point: exported, declared as the runtime declares it, and failing on demand. */
#define ENTRY(symbol, params)                                                                      \
    CUresult symbol params;                                                                        \
    CUresult symbol params
#define FAIL_ON_DEMAND(symbol)                                                                     \
    do {                                                                                           \
        if (failing && !strcmp(failing, symbol))                                                   \
            return failure;                                                                        \
        if (lost)                                                                                  \
            return ILLEGAL_ADDRESS;                                                                \
    } while (0)

ENTRY(cuInit, (unsigned flags))
{
    (void)flags;
    FAIL_ON_DEMAND("cuInit");
    return CUDA_SUCCESS;
}

ENTRY(cuGetErrorName, (CUresult error, const char **name))
{
    *name = error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

ENTRY(cuGetErrorString, (CUresult error, const char **text))
{
    *text = error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "fake error";
    return CUDA_SUCCESS;
}

ENTRY(cuDriverGetVersion, (int *version))
{
    FAIL_ON_DEMAND("cuDriverGetVersion");
    *version = driver_version;
    return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetCount, (int *count))
{
    FAIL_ON_DEMAND("cuDeviceGetCount");
    *count = failing && !strcmp(failing, "no device") ? 0 : 1;
    return CUDA_SUCCESS;
}

ENTRY(cuDeviceGet, (CUdevice * device, int ordinal))
{
    FAIL_ON_DEMAND("cuDeviceGet");
    *device = ordinal;
    return ordinal ? 101 : CUDA_SUCCESS;
}

ENTRY(cuDeviceGetName, (char *name, int size, CUdevice device))
{
    snprintf(name, (size_t)size, "fake GPU %d", device);
    return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))
{
    (void)device;
    FAIL_ON_DEMAND("cuDeviceGetAttribute");
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
        *value = FAKE_SMS;
        return CUDA_SUCCESS;
    }
    *value = capability[attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxRetain, (CUcontext * ctx, CUdevice device))
{
    (void)device;
    FAIL_ON_DEMAND("cuDevicePrimaryCtxRetain");
    context.retained++;
    *ctx = &context;
    return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxRelease_v2, (CUdevice device))
{
    (void)device;
    context.retained--;
    return CUDA_SUCCESS;
}

ENTRY(cuCtxGetCurrent, (CUcontext * ctx))
{
    *ctx = current;
    return CUDA_SUCCESS;
}

ENTRY(cuCtxSetCurrent, (CUcontext ctx))
{
    FAIL_ON_DEMAND("cuCtxSetCurrent");
    current = ctx;
    return CUDA_SUCCESS;
}

ENTRY(cuCtxGetDevice, (CUdevice * device))
{
    FAIL_ON_DEMAND("cuCtxGetDevice");
    *device = 0;
    return CUDA_SUCCESS;
}

ENTRY(cuThreadExchangeStreamCaptureMode, (int *mode))
{
    FAIL_ON_DEMAND("cuThreadExchangeStreamCaptureMode");
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

ENTRY(cuCtxSynchronize, (void))
{
    FAIL_ON_DEMAND("cuCtxSynchronize");
    return CUDA_SUCCESS;
}

/* The manifest in the image's comments, joined. */
static char *copy_manifest(const char *image)
{
    const char *p = strstr(image, "//! ");
    if (!p)
        return NULL;
    char *out = calloc(1, strlen(p) + 1), *end = out;
    while (!strncmp(p, "//! ", 4)) {
        size_t len = strcspn(p, "\n");
        memcpy(end, p + 4, len - 4);
        end += len - 4;
        p += len + (p[len] == '\n');
    }
    return out;
}

static bool is_cubin(const void *image)
{
    return takes_cubins && !memcmp(image, ELFMAG, SELFMAG);
}

/* A driver is not told the size: that of an ELF file its last table gives. */
static size_t size_of(const void *image)
{
    const Elf64_Ehdr *elf = image;
    if (!is_cubin(image))
        return strlen(image);
    size_t sections = elf->e_shoff + (size_t)elf->e_shentsize * elf->e_shnum;
    size_t segments = elf->e_phoff + (size_t)elf->e_phentsize * elf->e_phnum;
    return sections > segments ? sections : segments;
}

/* PTX says what its entries are; in a cubin each has a section. */
static bool has_entry(CUmodule module, const char *name)
{
    char entry[128];
    bool elf = is_cubin(module->image);
    int n = snprintf(entry, sizeof entry, elf ? ".text.%s" : ".entry %s(", name);
    return memmem(module->image, module->size, entry, (size_t)n + elf);
}

ENTRY(cuModuleLoadDataEx,
      (CUmodule * module, const void *image, unsigned n_options, int *options, void **values))
{
    FAIL_ON_DEMAND("cuModuleLoadDataEx");
    if (capturing && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return CAPTURE_UNSUPPORTED;
    if (strstr(image, "no such instruction")) {
        for (unsigned i = 0; i < n_options; i++)
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
                strcpy(values[i], "ptxas fatal : no such instruction");
        return INVALID_PTX;
    }
    *module = calloc(1, sizeof **module);
    (*module)->size = size_of(image);
    (*module)->image = calloc(1, (*module)->size + 1);
    memcpy((*module)->image, image, (*module)->size);
    (*module)->manifest = copy_manifest(image);
    n_alive++;
    n_compiled += !is_cubin(image);
    return CUDA_SUCCESS;
}

ENTRY(cuModuleUnload, (CUmodule module))
{
    free(module->image);
    free(module->manifest);
    free(module);
    n_alive--;
    return CUDA_SUCCESS;
}

ENTRY(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))
{
    if (!has_entry(module, name) || module->n_functions == MAX_FUNCTIONS)
        return NOT_FOUND;
    *function = &module->functions[module->n_functions++];
    snprintf((*function)->entry, sizeof(*function)->entry, "%s", name);
    (*function)->module = module;
    (*function)->max_smem_bytes = -1;
    return CUDA_SUCCESS;
}

ENTRY(cuFuncSetAttribute, (CUfunction function, int attribute, int value))
{
    FAIL_ON_DEMAND("cuFuncSetAttribute");
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        function->max_smem_bytes = value;
    return CUDA_SUCCESS;
}

/* The address, and nothing a kernel here needs besides. */
ENTRY(cuTensorMapEncodeTiled, (CUtensorMap * map, CUtensorMapDataType type, uint32_t rank,
                               void *address, const uint64_t *dims, const uint64_t *strides_bytes,
                               const uint32_t *box, const uint32_t *element_strides, int interleave,
                               CUtensorMapSwizzle swizzle, int l2_promotion, int oob_fill))
{
    (void)type, (void)rank, (void)dims, (void)strides_bytes, (void)box, (void)element_strides;
    (void)interleave, (void)swizzle, (void)l2_promotion, (void)oob_fill;
    FAIL_ON_DEMAND("cuTensorMapEncodeTiled");
    *map = (CUtensorMap){{(uintptr_t)address}};
    n_maps++;
    return CUDA_SUCCESS;
}

/* ---- kernels ---------------------------------------------------------------------------- */

static const char *find_params(const char *manifest, const char *entry)
{
    const char *kernel, *variant, *step, *kernels = json_member(manifest, "kernels");
    for (size_t i = 0; (kernel = json_element(kernels, i)); i++)
        for (size_t j = 0; (variant = json_element(json_member(kernel, "variants"), j)); j++)
            for (size_t n = 0; (step = json_element(json_member(variant, "steps"), n)); n++)
                if (json_is_string(json_member(step, "launch"), entry))
                    return json_member(step, "params");
    return NULL;
}

static bool name_of(const char *value, char *name, size_t size)
{
    size_t len = value ? strcspn(value + 1, "\"") : 0;
    snprintf(name, size, "%.*s", (int)len, value ? value + 1 : "");
    return value && *value == '"';
}

/* What the last step was given: a product of padded operands takes those of the steps that padded them. */
static _Thread_local fake_product last;

/* Every kind of parameter begins with what is wanted: an address or an extent. */
static fake_product read_params(const char *params, void **values)
{
    fake_product p = last;
    const char *param;
    for (size_t i = 0; (param = json_element(params, i)); i++) {
        char name[64];
        const char *map = json_member(json_member(param, "tensor_map"), "arg");
        void **pointer = name_of(map ? map : json_member(param, "pointer"), name, sizeof name)
                             ? fake_product_pointer(&p, name)
                             : NULL;
        if (pointer)
            memcpy(pointer, values[i], sizeof *pointer);
        if (json_member(param, "workspace"))
            memcpy(&p.workspace, values[i], sizeof p.workspace);
        int *extent = name_of(json_member(param, "dim"), name, sizeof name)
                          ? fake_product_extent(&p, name)
                          : NULL;
        if (extent)
            memcpy(extent, values[i], sizeof *extent);
    }
    return p;
}

/* Whether an entry is a step that pads an operand: f__padded__A, not the tile f__padded__64x128. */
static bool pads(const char *entry)
{
    static const char padded[] = "__padded__";
    const char *step = strstr(entry, padded);
    return step && (step[sizeof padded - 1] < '0' || step[sizeof padded - 1] > '9');
}

static void run(CUfunction function, void **params)
{
    if (!fake_product_is(function->entry))
        return;
    const char *list = find_params(function->module->manifest, function->entry);
    last = read_params(list, params);
    if (pads(function->entry))
        last.began_as_nan = fake_product_is_nan(last.workspace);
    else
        lost = !fake_product_run(&last, function->entry, ++n_products);
}

static CUresult launch(const CUlaunchConfig *config, CUfunction function, void **params)
{
    bool overlaps = false;
    for (unsigned i = 0; i < config->n_attributes; i++) {
        if (config->attributes[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            return INVALID_VALUE;
        overlaps |= config->attributes[i].value.number != 0;
    }
    pthread_mutex_lock(&mutex);
    if (n_launches < MAX_LAUNCHES) {
        fake_launch *l = &launches[n_launches++];
        *l = (fake_launch){.smem_bytes = config->smem_bytes,
                           .stream = config->stream,
                           .overlaps = overlaps,
                           .max_smem_bytes = function->max_smem_bytes};
        memcpy(l->grid, config->grid, sizeof l->grid);
        memcpy(l->block, config->block, sizeof l->block);
        memcpy(l->entry, function->entry, sizeof l->entry);
        for (int i = 0; i < n_params; i++)
            memcpy(&l->params[i], params[i], sizeof l->params[i]);
    }
    pthread_mutex_unlock(&mutex);
    run(function, params);
    return CUDA_SUCCESS;
}

/* Multiprocessors that are near each other. */
static const unsigned near[] = {18, 18, 18, 16, 16, 14, 14};

ENTRY(cuOccupancyMaxActiveClusters, (int *clusters, CUfunction function, const CUlaunchConfig *config))
{
    (void)function;
    FAIL_ON_DEMAND("cuOccupancyMaxActiveClusters");
    *clusters = 0;
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        *clusters += (int)(near[i] / config->grid[0]);
    return CUDA_SUCCESS;
}

ENTRY(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))
{
    (void)extra;
    FAIL_ON_DEMAND("cuLaunchKernelEx");
    return launch(config, function, params);
}

ENTRY(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem_bytes,
                       CUstream stream, void **params, void **extra))
{
    (void)extra;
    FAIL_ON_DEMAND("cuLaunchKernel");
    const CUlaunchConfig config = {.grid = {grid_x, grid_y, grid_z},
                                   .block = {block_x, block_y, block_z},
                                   .smem_bytes = smem_bytes,
                                   .stream = stream};
    return launch(&config, function, params);
}

/* ---- memory and events ------------------------------------------------------------------ */

ENTRY(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))
{
    FAIL_ON_DEMAND("cuMemAlloc_v2");
    *address = (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    n_alive++;
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

ENTRY(cuMemFree_v2, (CUdeviceptr address))
{
    free((void *)(uintptr_t)address);
    n_alive--;
    return CUDA_SUCCESS;
}

ENTRY(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))
{
    FAIL_ON_DEMAND("cuMemcpyHtoD_v2");
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_SUCCESS;
}

ENTRY(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))
{
    FAIL_ON_DEMAND("cuMemcpyDtoH_v2");
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

ENTRY(cuMemsetD8_v2, (CUdeviceptr to, unsigned char byte, size_t n))
{
    FAIL_ON_DEMAND("cuMemsetD8_v2");
    memset((void *)(uintptr_t)to, byte, n);
    return CUDA_SUCCESS;
}

static struct CUmemPoolHandle_st {
    int device;
    uint64_t kept;
} pools[2];

ENTRY(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *props))
{
    FAIL_ON_DEMAND("cuMemPoolCreate");
    if (props->alloc_type != CU_MEM_ALLOCATION_TYPE_PINNED || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return INVALID_VALUE;
    *pool = &pools[props->location.id];
    (*pool)->device = props->location.id;
    n_alive++;
    return CUDA_SUCCESS;
}

ENTRY(cuMemPoolDestroy, (CUmemoryPool pool))
{
    pool->kept = 0;
    n_alive--;
    return CUDA_SUCCESS;
}

ENTRY(cuMemPoolSetAttribute, (CUmemoryPool pool, int attribute, void *value))
{
    FAIL_ON_DEMAND("cuMemPoolSetAttribute");
    if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        return INVALID_VALUE;
    memcpy(&pool->kept, value, sizeof pool->kept);
    return CUDA_SUCCESS;
}

ENTRY(cuMemAllocFromPoolAsync, (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream))
{
    (void)stream;
    FAIL_ON_DEMAND("cuMemAllocFromPoolAsync");
    return bytes > pool->kept ? INVALID_VALUE : cuMemAlloc_v2(address, bytes);
}

ENTRY(cuMemFreeAsync, (CUdeviceptr address, CUstream stream))
{
    (void)stream;
    FAIL_ON_DEMAND("cuMemFreeAsync");
    return cuMemFree_v2(address);
}

/* Recorded as a launch: of "memset", with what it is given as parameters. */
ENTRY(cuMemsetD8Async, (CUdeviceptr to, unsigned char byte, size_t n, CUstream stream))
{
    FAIL_ON_DEMAND("cuMemsetD8Async");
    if (n_launches < MAX_LAUNCHES)
        launches[n_launches++] =
            (fake_launch){.entry = "memset", .stream = stream, .params = {to, byte, n}};
    memset((void *)(uintptr_t)to, byte, n);
    return CUDA_SUCCESS;
}

ENTRY(cuEventCreate, (CUevent * event, unsigned flags))
{
    (void)flags;
    FAIL_ON_DEMAND("cuEventCreate");
    *event = calloc(1, sizeof **event);
    n_alive++;
    return CUDA_SUCCESS;
}

ENTRY(cuEventDestroy_v2, (CUevent event))
{
    free(event);
    n_alive--;
    return CUDA_SUCCESS;
}

ENTRY(cuEventRecord, (CUevent event, CUstream stream))
{
    (void)stream;
    FAIL_ON_DEMAND("cuEventRecord");
    clock_gettime(CLOCK_MONOTONIC, &event->time);
    return CUDA_SUCCESS;
}

ENTRY(cuEventSynchronize, (CUevent event))
{
    (void)event;
    FAIL_ON_DEMAND("cuEventSynchronize");
    return CUDA_SUCCESS;
}

ENTRY(cuEventElapsedTime, (float *ms, CUevent start, CUevent end))
{
    FAIL_ON_DEMAND("cuEventElapsedTime");
    *ms = fake_elapsed_ms(start->time, end->time);
    return CUDA_SUCCESS;
}
