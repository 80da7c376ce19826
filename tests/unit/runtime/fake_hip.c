/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/runtime/fake_hip.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/hip_driver.h"
#include "tests/unit/runtime/fake_product.h"

enum { MAX_LAUNCHES = 16, MAX_OBJECTS = 1 << 16, MAX_GPUS = 8, LDS_BYTES = 65536 };
enum { PAGE = 4096, MAX_BLOCK = 1024 };
enum { PROPERTIES_BYTES_R0000 = 792, PROPERTIES_BYTES_R0600 = 1472 };

/* An object that a handle stands for. Handles are addresses of rows, and rows are not used again.
 */
typedef struct object {
    enum { NOTHING, MODULE, FUNCTION, EVENT, MEMORY } kind;
    bool gone;
    int device;
    struct object *module; /* of a FUNCTION */
    const void *image;     /* of a MODULE */
    hsaco_kernel kernel;   /* of a FUNCTION */
    uint64_t recorded;     /* of an EVENT: when, in calls; 0: never */
    struct timespec time;
    uint64_t address, size; /* of MEMORY */
    char *host;
} object;

static object *objects;
static size_t n_objects;
static fake_hip_launch launches[MAX_LAUNCHES];
static int n_launches, n_alive, n_gpus;
static char archs[MAX_GPUS][256], log_text[1 << 16];
static const char *failing;
static int failure;
static bool initialized, lost;
static uint64_t next_address = UINT64_C(0x7d0000000000), now, waited_for;
static void (*kernel_run)(const fake_hip_launch *launch, void *user);
static void *kernel_user;
static char a_stream;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int current;

/* ---- control ---------------------------------------------------------------------------- */

static void set_archs(const char *list)
{
    for (n_gpus = 0; *list && n_gpus < MAX_GPUS; n_gpus++) {
        size_t len = strcspn(list, ",");
        snprintf(archs[n_gpus], sizeof archs[0], "%.*s", (int)len, list);
        list += len + (list[len] == ',');
    }
}

static void reset(void)
{
    static char symbol[64];
    const char *list = getenv("FAKE_HIP_ARCH"), *fail = getenv("FAKE_HIP_FAIL");
    set_archs(list ? list : "gfx1100");
    failing = fail && sscanf(fail, "%63[^=]=%d", symbol, &failure) == 2 ? symbol : NULL;
    n_launches = 0;
    log_text[0] = 0;
    initialized = lost = false;
    kernel_run = NULL;
}

static const fake_hip_launch *get_launches(int *n)
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
    return n_alive;
}

static const char *get_log(void)
{
    return log_text;
}

static void set_kernel(void (*run)(const fake_hip_launch *launch, void *user), void *user)
{
    kernel_run = run;
    kernel_user = user;
}

static void *stream(void)
{
    return &a_stream;
}

__attribute__((visibility("default"))) const fake_hip_control fake_hip = {
    reset, get_launches, make_fail, alive, get_log, set_archs, set_kernel, stream};

__attribute__((constructor)) static void start(void)
{
    objects = calloc(MAX_OBJECTS, sizeof *objects);
    reset();
}

__attribute__((destructor)) static void end(void)
{
    free(objects);
}

/* ---- entry points ----------------------------------------------------------------------- */

static void note(const char *symbol, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Notes a call in the log, and in FAKE_HIP_LOG with its arguments. */
static void note(const char *symbol, const char *format, ...)
{
    const char *path = getenv("FAKE_HIP_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    size_t len = strlen(log_text);
    snprintf(log_text + len, sizeof log_text - len, "%s ", symbol);
    now++;
    if (!f)
        return;
    va_list args;
    va_start(args, format);
    fprintf(f, "%s ", symbol);
    vfprintf(f, format, args);
    fputc('\n', f);
    va_end(args);
    fclose(f);
}

/* What a call returns that does not get as far as doing something; 0: it does. */
static hipError_t begin(const char *symbol)
{
    if (failing && !strcmp(failing, symbol))
        return failure;
    if (!initialized && strcmp(symbol, "hipInit"))
        return hipErrorNotInitialized;
    return lost ? hipErrorIllegalAddress : hipSuccess;
}

/* Defines an entry point: exported, noted, one at a time, and failing on demand. `params` are as
 * the runtime declares them, and the body returns through `result`. */
#define ENTRY(symbol, params, arguments, format, ...)                                              \
    static hipError_t do_##symbol params;                                                          \
    __attribute__((visibility("default"))) hipError_t symbol params;                               \
    hipError_t symbol params                                                                       \
    {                                                                                              \
        pthread_mutex_lock(&mutex);                                                                \
        note(#symbol, format, __VA_ARGS__);                                                        \
        hipError_t error = begin(#symbol);                                                         \
        if (!error)                                                                                \
            error = do_##symbol arguments;                                                         \
        pthread_mutex_unlock(&mutex);                                                              \
        return error;                                                                              \
    }                                                                                              \
    static hipError_t do_##symbol params

#define EXPORTED __attribute__((visibility("default")))

static const struct {
    int error;
    const char *name, *text;
} errors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration",
     "invalid configuration argument"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorIllegalState, "hipErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
};

static size_t find_error(int error)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error)
            return i;
    return sizeof errors / sizeof errors[0];
}

EXPORTED const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorName(hipError_t error)
{
    size_t i = find_error(error);
    return i < sizeof errors / sizeof errors[0] ? errors[i].name : "hipErrorUnknown";
}

EXPORTED const char *hipGetErrorString(hipError_t error);
const char *hipGetErrorString(hipError_t error)
{
    size_t i = find_error(error);
    return i < sizeof errors / sizeof errors[0] ? errors[i].text : "unknown error";
}

ENTRY(hipInit, (unsigned flags), (flags), "flags=%u", flags)
{
    if (flags)
        return hipErrorInvalidValue;
    initialized = true;
    return n_gpus ? hipSuccess : hipErrorNoDevice;
}

ENTRY(hipRuntimeGetVersion, (int *version), (version), "%s", "")
{
    static const int versions[] = {[5] = 50731921, [6] = 60241134, [7] = 70051831};
    *version = versions[FAKE_HIP_MAJOR];
    return hipSuccess;
}

/* ---- devices ---------------------------------------------------------------------------- */

static bool is_device(int device)
{
    return device >= 0 && device < n_gpus;
}

ENTRY(hipGetDeviceCount, (int *count), (count), "%s", "")
{
    *count = n_gpus;
    return hipSuccess;
}

ENTRY(hipDeviceGetName, (char *name, int size, hipDevice_t device), (name, size, device),
      "device=%d", device)
{
    if (!is_device(device))
        return hipErrorInvalidDevice;
    snprintf(name, (size_t)size, "fake Radeon %d", device);
    return hipSuccess;
}

ENTRY(hipGetDevice, (int *device), (device), "%s", "")
{
    *device = current;
    return hipSuccess;
}

ENTRY(hipDeviceGetAttribute, (int *value, int attribute, hipDevice_t device),
      (value, attribute, device), "attribute=%d device=%d", attribute, device)
{
    if (!is_device(device))
        return hipErrorInvalidDevice;
    if (attribute != hipDeviceAttributeMultiprocessorCount)
        return hipErrorInvalidValue;
    *value = 48;
    return hipSuccess;
}

ENTRY(hipSetDevice, (int device), (device), "device=%d", device)
{
    if (!is_device(device))
        return hipErrorInvalidDevice;
    current = device;
    return hipSuccess;
}

ENTRY(hipDeviceSynchronize, (void), (), "%s", "")
{
    waited_for = now;
    return hipSuccess;
}

/* What is not the architecture's name is noise, so that nothing is read at a wrong place. */
static hipError_t get_properties(void *out, int device, size_t bytes, size_t arch_at)
{
    if (!is_device(device))
        return hipErrorInvalidDevice;
    memset(out, 'Z', bytes);
    memcpy((char *)out + arch_at, archs[device], sizeof archs[0]);
    return hipSuccess;
}

#if FAKE_HIP_MAJOR >= 6
ENTRY(hipGetDevicePropertiesR0600, (hip_properties * out, int device), (out, device), "device=%d",
      device)
{
    return get_properties(out, device, PROPERTIES_BYTES_R0600, HIP_ARCH_NAME_OFFSET_R0600);
}
#endif

ENTRY(hipGetDeviceProperties, (hip_properties * out, int device), (out, device), "device=%d",
      device)
{
    return get_properties(out, device, PROPERTIES_BYTES_R0000, HIP_ARCH_NAME_OFFSET_R0000);
}

/* ---- objects ---------------------------------------------------------------------------- */

static object *create(int kind)
{
    if (n_objects == MAX_OBJECTS)
        return NULL;
    object *o = &objects[n_objects++];
    o->kind = kind;
    o->device = current;
    n_alive += kind != FUNCTION;
    return o;
}

/* The object of a handle, or NULL. */
static object *find(const void *handle, int kind)
{
    uintptr_t at = (uintptr_t)handle - (uintptr_t)objects;
    if ((uintptr_t)handle < (uintptr_t)objects || at >= n_objects * sizeof *objects ||
        at % sizeof *objects)
        return NULL;
    object *o = &objects[at / sizeof *o];
    return (int)o->kind == kind && !o->gone ? o : NULL;
}

static void destroy(object *o)
{
    o->gone = true;
    n_alive--;
    free(o->host);
    o->host = NULL;
}

/* Where n bytes at a device address are on the host; NULL where they are not all of one
 * allocation. */
static char *memory_at(uint64_t address, uint64_t n)
{
    for (size_t i = 0; i < n_objects; i++) {
        const object *o = &objects[i];
        if (o->kind == MEMORY && !o->gone && address >= o->address && n <= o->size &&
            address - o->address <= o->size - n)
            return o->host + (address - o->address);
    }
    return NULL;
}

static uint64_t number_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* ---- memory ----------------------------------------------------------------------------- */

static hipError_t allocate(void **address, size_t bytes)
{
    char *host = bytes ? malloc(bytes) : NULL;
    object *o = host ? create(MEMORY) : NULL;
    if (!o) {
        free(host);
        return bytes ? hipErrorOutOfMemory : hipErrorInvalidValue;
    }
    o->host = host;
    o->size = bytes;
    o->address = next_address;
    next_address += (bytes + 2 * PAGE - 1) / PAGE * PAGE; /* with a page after it that is nothing */
    *address = (void *)(uintptr_t)o->address;
    return hipSuccess;
}

static hipError_t release(const void *address)
{
    for (size_t i = 0; i < n_objects; i++)
        if (objects[i].kind == MEMORY && !objects[i].gone &&
            objects[i].address == number_of(address)) {
            destroy(&objects[i]);
            return hipSuccess;
        }
    return address ? hipErrorInvalidValue : hipSuccess;
}

static hipError_t fill(hipDeviceptr_t to, unsigned char byte, size_t n)
{
    char *host = memory_at(number_of(to), n);
    if (!n || !host)
        return hipErrorInvalidValue;
    memset(host, byte, n);
    return hipSuccess;
}

ENTRY(hipMalloc, (void **address, size_t bytes), (address, bytes), "bytes=%zu", bytes)
{
    return allocate(address, bytes);
}

ENTRY(hipFree, (void *address), (address), "address=%p", address)
{
    return release(address);
}

ENTRY(hipMemcpyHtoD, (hipDeviceptr_t to, const void *from, size_t n), (to, from, n),
      "to=%p bytes=%zu", to, n)
{
    char *host = memory_at(number_of(to), n);
    if (!n || !host || !from)
        return hipErrorInvalidValue;
    memcpy(host, from, n);
    return hipSuccess;
}

ENTRY(hipMemcpyDtoH, (void *to, hipDeviceptr_t from, size_t n), (to, from, n), "from=%p bytes=%zu",
      from, n)
{
    const char *host = memory_at(number_of(from), n);
    if (!n || !host || !to)
        return hipErrorInvalidValue;
    memcpy(to, host, n);
    return hipSuccess;
}

ENTRY(hipMemsetD8, (hipDeviceptr_t to, unsigned char byte, size_t n), (to, byte, n),
      "to=%p byte=%d n=%zu", to, byte, n)
{
    return fill(to, byte, n);
}

static bool is_stream(hipStream_t s)
{
    return !s || (char *)s == &a_stream;
}

ENTRY(hipMemsetD8Async, (hipDeviceptr_t to, unsigned char byte, size_t n, hipStream_t stream_),
      (to, byte, n, stream_), "to=%p byte=%d n=%zu", to, byte, n)
{
    return is_stream(stream_) ? fill(to, byte, n) : hipErrorInvalidValue;
}

#if FAKE_HIP_MAJOR >= 6
ENTRY(hipMallocAsync, (void **address, size_t bytes, hipStream_t stream_),
      (address, bytes, stream_), "bytes=%zu", bytes)
{
    return is_stream(stream_) ? allocate(address, bytes) : hipErrorInvalidValue;
}

ENTRY(hipFreeAsync, (void *address, hipStream_t stream_), (address, stream_), "address=%p", address)
{
    return is_stream(stream_) ? release(address) : hipErrorInvalidValue;
}

ENTRY(hipThreadExchangeStreamCaptureMode, (int *mode), (mode), "mode=%d", *mode)
{
    static _Thread_local int of_thread;
    int before = of_thread;
    if (*mode < 0 || *mode > hipStreamCaptureModeRelaxed)
        return hipErrorInvalidValue;
    of_thread = *mode;
    *mode = before;
    return hipSuccess;
}
#endif

/* ---- modules ---------------------------------------------------------------------------- */

ENTRY(hipModuleLoadData, (hipModule_t * module, const void *image), (module, image), "%s", "")
{
    const char *arch = image ? hsaco_arch(image) : NULL;
    if (!arch || !hsaco_is_valid(image))
        return hipErrorInvalidImage;
    size_t len = strlen(arch);
    if (strncmp(archs[current], arch, len) || strspn(archs[current] + len, ":") > 1 ||
        (archs[current][len] && archs[current][len] != ':'))
        return hipErrorNoBinaryForGpu;
    object *o = create(MODULE);
    if (!o)
        return hipErrorOutOfMemory;
    o->image = image;
    *module = (hipModule_t)o;
    return hipSuccess;
}

ENTRY(hipModuleUnload, (hipModule_t module), (module), "%s", "")
{
    object *o = find(module, MODULE);
    if (!o)
        return module ? hipErrorNotFound : hipErrorInvalidHandle;
    destroy(o);
    return hipSuccess;
}

ENTRY(hipModuleGetFunction, (hipFunction_t * function, hipModule_t module, const char *name),
      (function, module, name), "%s", name)
{
    object *m = find(module, MODULE);
    hsaco_kernel kernel;
    if (!m)
        return hipErrorInvalidHandle;
    if (!hsaco_kernel_find(m->image, name, &kernel))
        return hipErrorNotFound;
    object *o = create(FUNCTION);
    if (!o)
        return hipErrorOutOfMemory;
    o->module = m;
    o->kernel = kernel;
    *function = (hipFunction_t)o;
    return hipSuccess;
}

/* ---- launching -------------------------------------------------------------------------- */

static hipError_t check_launch(const object *f, const fake_hip_launch *l, void **params,
                               void **extra)
{
    uint64_t block = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (!f || f->module->gone)
        return hipErrorInvalidHandle;
    if (f->device != current)
        return hipErrorInvalidDevice;
    if (!block || !l->grid[0] || !l->grid[1] || !l->grid[2] ||
        (uint64_t)l->grid[0] * l->block[0] > UINT32_MAX)
        return hipErrorInvalidConfiguration;
    if (l->grid[0] > INT32_MAX || block > MAX_BLOCK || extra || (f->kernel.n_args && !params) ||
        (uint64_t)l->smem_bytes + f->kernel.group_bytes > LDS_BYTES ||
        (l->stream && l->stream != &a_stream))
        return hipErrorInvalidValue;
    bool fits = !f->kernel.block[0] || !memcmp(f->kernel.block, l->block, sizeof l->block);
    return !fits || block > f->kernel.max_block ? hipErrorLaunchFailure : hipSuccess;
}

/* Copies the parameters; false where a pointer is to nothing. */
static bool read_params(fake_hip_launch *l, void **params)
{
    bool ok = true;
    for (size_t i = 0; i < l->kernel.n_args; i++) {
        const hsaco_arg *arg = &l->kernel.args[i];
        memcpy(&l->params[i], params[i], arg->size < 8 ? arg->size : 8);
        if (arg->is_pointer)
            l->buffers[i] = memory_at(l->params[i], 1);
        ok = ok && (!arg->is_pointer || !l->params[i] || l->buffers[i]);
    }
    return ok;
}

static void run(const fake_hip_launch *l)
{
    if (!fake_product_is(l->kernel.name)) {
        if (kernel_run)
            kernel_run(l, kernel_user);
        return;
    }
    fake_product p = {0};
    for (size_t i = 0; i < l->kernel.n_args; i++) {
        void **pointer = fake_product_pointer(&p, l->kernel.args[i].name);
        int *extent = fake_product_extent(&p, l->kernel.args[i].name);
        if (pointer && l->kernel.args[i].is_pointer)
            *pointer = l->buffers[i];
        if (extent)
            *extent = (int)l->params[i];
    }
    lost = !fake_product_run(&p, l->kernel.name, n_launches);
}

ENTRY(hipModuleLaunchKernel,
      (hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
       unsigned block_y, unsigned block_z, unsigned smem_bytes, hipStream_t stream_, void **params,
       void **extra),
      (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, smem_bytes, stream_, params,
       extra),
      "%s grid=%u,%u,%u block=%u,%u,%u smem=%u",
      find(function, FUNCTION) ? find(function, FUNCTION)->kernel.name : "?", grid_x, grid_y,
      grid_z, block_x, block_y, block_z, smem_bytes)
{
    const object *f = find(function, FUNCTION);
    fake_hip_launch l = {.grid = {grid_x, grid_y, grid_z},
                         .block = {block_x, block_y, block_z},
                         .smem_bytes = smem_bytes,
                         .stream = stream_};
    hipError_t error = check_launch(f, &l, params, extra);
    if (error)
        return error;
    if (!hsaco_kernel_find(f->module->image, f->kernel.name, &l.kernel)) /* it is to be there yet */
        return hipErrorInvalidImage;
    bool ok = read_params(&l, params);
    if (n_launches < MAX_LAUNCHES)
        launches[n_launches] = l;
    n_launches += n_launches < MAX_LAUNCHES;
    if (ok)
        run(&l);
    else
        lost = true; /* which later calls tell, as the GPU faults when it gets there */
    return hipSuccess;
}

/* ---- events ----------------------------------------------------------------------------- */

ENTRY(hipEventCreateWithFlags, (hipEvent_t * event, unsigned flags), (event, flags), "flags=%u",
      flags)
{
    object *o = flags ? NULL : create(EVENT);
    if (!o)
        return flags ? hipErrorInvalidValue : hipErrorOutOfMemory;
    *event = (hipEvent_t)o;
    return hipSuccess;
}

ENTRY(hipEventDestroy, (hipEvent_t event), (event), "%s", "")
{
    object *o = find(event, EVENT);
    if (!o)
        return hipErrorInvalidHandle;
    destroy(o);
    return hipSuccess;
}

ENTRY(hipEventRecord, (hipEvent_t event, hipStream_t stream_), (event, stream_), "%s", "")
{
    object *o = find(event, EVENT);
    if (!o || o->device != current || (stream_ && (char *)stream_ != &a_stream))
        return hipErrorInvalidHandle;
    o->recorded = now;
    clock_gettime(CLOCK_MONOTONIC, &o->time);
    return hipSuccess;
}

ENTRY(hipEventSynchronize, (hipEvent_t event), (event), "%s", "")
{
    const object *o = find(event, EVENT);
    if (!o || !o->recorded)
        return hipErrorInvalidHandle;
    if (o->recorded > waited_for)
        waited_for = o->recorded;
    return hipSuccess;
}

ENTRY(hipEventElapsedTime, (float *ms, hipEvent_t start_, hipEvent_t end_), (ms, start_, end_),
      "%s", "")
{
    const object *from = find(start_, EVENT), *to = find(end_, EVENT);
    if (!from || !to || !from->recorded || !to->recorded)
        return hipErrorInvalidHandle;
    if (from->recorded > waited_for || to->recorded > waited_for)
        return hipErrorNotReady;
    if (from->recorded > to->recorded)
        return hipErrorIllegalState;
    *ms = fake_elapsed_ms(from->time, to->time);
    return hipSuccess;
}
