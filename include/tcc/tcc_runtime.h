/* libtcc's runtime: load and launch compiled kernels, with only the GPU's driver.
 *
 * The CUDA driver, or HIP for AMD's GPUs, is loaded with dlopen; neither headers nor toolkits are
 * needed, and all functions after tcc_runtime_create_for are the same for both. Everything runs on
 * the caller's stream and on the current GPU: with CUDA that of the calling thread's current context,
 * with HIP the calling thread's current device (hipSetDevice). Only tcc_device_open makes a GPU
 * current, for programs that do not do so themselves.
 *
 *     tcc_runtime *rt;            tcc_runtime_create(&rt, on_diagnostic, NULL);
 *     tcc_program *prog;          tcc_program_load(rt, ptx, size, NULL, &prog);
 *     const tcc_kernel *k = tcc_program_kernel(prog, "matmul");
 *     int64_t dims[] = {4096, 4096, 4096};
 *     tcc_arg args[] = {{.device = a}, {.device = b}, {.device = bias}, {.device = c}};
 *     tcc_kernel_launch(k, dims, 3, args, 4, stream);
 *
 * Functions that query a handle accept NULL, for which they return NULL or 0. So an unknown kernel name
 * is reported by the launch, as TCC_ERR_ARGUMENT.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TCC_RUNTIME_H
#define TCC_TCC_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include <tcc/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcc_runtime tcc_runtime;
typedef struct tcc_program tcc_program;
typedef struct tcc_kernel tcc_kernel;

/* The vendor whose GPUs a runtime drives. The numbers never change. */
typedef enum tcc_vendor {
    TCC_VENDOR_NVIDIA = 0, /* the CUDA driver: libcuda.so.1 of CUDA 12.0 or later */
    TCC_VENDOR_AMD = 1     /* HIP: libamdhip64.so, else .so.7, .so.6 or .so.5 */
} tcc_vendor;

/* Loads the vendor's driver. Errors of later calls on this runtime go to `fn`, which may be NULL.
 * Returns TCC_OK, TCC_ERR_NO_DRIVER (no driver or no GPU), TCC_ERR_ARGUMENT (no such vendor) or
 * TCC_ERR_MEMORY. Runtimes of both vendors may exist at once.
 * On success *out belongs to the caller: tcc_runtime_destroy, after its programs and devices. */
TCC_API tcc_status tcc_runtime_create_for(tcc_vendor vendor, tcc_runtime **out,
                                          tcc_diagnostic_fn fn, void *user);
/* The same for TCC_VENDOR_NVIDIA. */
TCC_API tcc_status tcc_runtime_create(tcc_runtime **out, tcc_diagnostic_fn fn, void *user);
TCC_API void tcc_runtime_destroy(tcc_runtime *rt);

/* The number of GPUs, at least 1: tcc_device_open takes smaller ordinals. */
TCC_API int tcc_runtime_device_count(const tcc_runtime *rt);
/* The ordinal of the current GPU; -1 if the calling thread has none. */
TCC_API int tcc_runtime_current_device(const tcc_runtime *rt);

/* Loads an image written by tcc onto the current GPU: PTX text, a cubin, a code object (hsaco), or a bundle of these.
 * `image` is borrowed; PTX needs no terminator. The driver compiles PTX for the GPU, about 0.1 to 0.2 s for each large
 * kernel; if the text has several entries, each when it is first launched or prepared (tcc_kernel_prepare). A code
 * object is for one architecture. `manifest` NULL: read from the image, where PTX has it at the head and ELF files in a
 * note; cubins have none. A bundle contains all manifests; of its images the one for the latest target that the GPU
 * runs is loaded, machine code before PTX, or another one if it cannot be loaded. Returns TCC_OK, TCC_ERR_SYNTAX (no
 * manifest, a bad one, or that of another image; a damaged code object or bundle), TCC_ERR_ARGUMENT (a bundle and a
 * manifest), TCC_ERR_TARGET (not for the current GPU), TCC_ERR_DRIVER or TCC_ERR_MEMORY. On success *out belongs to the
 * caller: tcc_program_destroy. */
TCC_API tcc_status tcc_program_load(tcc_runtime *rt, const void *image, size_t size,
                                    const char *manifest, tcc_program **out);
TCC_API void tcc_program_destroy(tcc_program *prog);

/* Makes a program from only a manifest, on any machine: its kernels' arguments and valid variants can be queried, but
 * launching is TCC_ERR_NO_DRIVER. Errors go to `fn`, which may be NULL. Returns TCC_OK, TCC_ERR_SYNTAX or
 * TCC_ERR_MEMORY. On success *out belongs to the caller: tcc_program_destroy. */
TCC_API tcc_status tcc_program_describe(const char *manifest, tcc_diagnostic_fn fn, void *user,
                                        tcc_program **out);

/* The manifest as JSON, borrowed. */
TCC_API const char *tcc_program_manifest(const tcc_program *prog);

/* The kernel with this name, for NULL the only one; NULL if there is none. Borrowed. */
TCC_API const tcc_kernel *tcc_program_kernel(const tcc_program *prog, const char *name);
/* Number of kernels, and the i-th in the manifest's order; NULL past the last. Borrowed. */
TCC_API size_t tcc_program_kernel_count(const tcc_program *prog);
TCC_API const tcc_kernel *tcc_program_kernel_at(const tcc_program *prog, size_t i);

/* ---- a kernel's arguments -------------------------------------------------------------- */

typedef enum tcc_arg_role { TCC_ARG_IN, TCC_ARG_OUT, TCC_ARG_INOUT, TCC_ARG_SCALAR } tcc_arg_role;

typedef struct tcc_arg_info {
    const char *name;
    const char *type; /* "f16", "bf16", "f32", "f64", …; i4 and u4: two elements in a byte, the first in the low half */
    tcc_arg_role role;
    unsigned rank;           /* 0 for scalars */
    /* rank names; NULL if the extent is a number. One that is computed of the kernel's symbolic dimensions is named as
     * it is computed: "W + P - 1"; tcc_kernel_extent computes it. */
    const char *const *dims;
    const int64_t *extents; /* rank numbers; -1 if the extent is a name */
    /* rank names: the index of the source that runs along each dimension; NULL if there are several, or
     * if the manifest does not contain it */
    const char *const *indices;
    /* Of a `strided` tensor rank names and numbers, like dims and extents: how many elements are from one index of each
     * dimension to the next. The names are among the kernel's dimensions. NULL: row-major and contiguous */
    const char *const *stride_dims;
    const int64_t *strides;
} tcc_arg_info;

TCC_API const char *tcc_kernel_name(const tcc_kernel *k);
/* Symbolic dimensions, in the order of `dims` of tcc_kernel_launch: extents, then strides of `strided` tensors. */
TCC_API size_t tcc_kernel_dim_count(const tcc_kernel *k);
TCC_API const char *tcc_kernel_dim_name(const tcc_kernel *k, size_t i);
/* Floating-point operations of one launch with these extents: two for each term of its sum; 0 if the
 * manifest does not contain it. */
TCC_API double tcc_kernel_flops(const tcc_kernel *k, const int64_t *dims);
/* The element type in which its sum accumulates, of several sums the least precise: "f64", "f32", "f16", "bf16" or
 * "i32"; NULL if the manifest does not contain it. Borrowed. */
TCC_API const char *tcc_kernel_sum_type(const tcc_kernel *k);
/* Arguments: parameters as declared, then outputs. info NULL when out of range. Borrowed. */
TCC_API size_t tcc_kernel_arg_count(const tcc_kernel *k);
TCC_API const tcc_arg_info *tcc_kernel_arg(const tcc_kernel *k, size_t i);
/* The extent that a launch with these extents (in the order of tcc_kernel_dim_name) takes dimension d of the i-th
 * argument to have. Below 0 or INT64_MAX where there is none; -1 when i or d is out of range. */
TCC_API int64_t tcc_kernel_extent(const tcc_kernel *k, size_t i, unsigned d, const int64_t *dims);
/* Sets those of `dims` that are -1 to what the shapes of arguments say: for each the extents of its dimensions, or NULL
 * where they are not known. A dimension that is nowhere one of them by itself is computed from one that is computed of
 * it, where only one value of it fits: 2 * N says what N is, N / 2 does not. The others stay -1, and false is returned.
 * Whether extents agree with each other is not checked: tcc_kernel_extent says what they must be. */
TCC_API bool tcc_kernel_solve(const tcc_kernel *k, const int64_t *const *shapes, int64_t *dims);

/* ---- launching ------------------------------------------------------------------------- */

/* One argument: a device address for tensors, a number for scalars. */
typedef union tcc_arg {
    uint64_t device; /* CUdeviceptr or hipDeviceptr_t; tensors are row-major and contiguous unless `strided` */
    double number;   /* rounded to the type of a float; TCC_ERR_ARGUMENT if it is too large for that, or not an i32 */
} tcc_arg;

/* Enqueues one kernel on `stream` (a CUstream or hipStream_t; NULL is the default stream) on the
 * current GPU, which must be the one onto which the program was loaded.
 *
 * dims  n_dims extents in elements, in the order of tcc_kernel_dim_name; 0 is allowed: nothing is
 *       launched if an output is empty, and an empty sum is 0. Those that are strides of tensors (tcc_arg_info) count
 *       elements too, 0 to 2147450880. Elements of an output must not overlap, so that 0 is for inputs alone
 * args  n_args arguments, in the order of tcc_kernel_arg
 * Runs the cheapest variant of the kernel that is valid for these extents and addresses. Tensor maps
 * are encoded once for each set of arguments and cached. Asynchronous; inputs and outputs must stay
 * allocated until the stream has passed the launch. Outputs must not overlap inputs.
 * Returns TCC_OK, TCC_ERR_ARGUMENT, TCC_ERR_NO_VARIANT, TCC_ERR_DRIVER or TCC_ERR_MEMORY.
 * Thread-safe: launches of one program from several threads only contend for its cache. */
TCC_API tcc_status tcc_kernel_launch(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                     const tcc_arg *args, size_t n_args, void *stream);

/* Some variants pass data from one step to the next in a workspace. tcc_kernel_launch allocates one for each launch, in
 * the stream's order, from a pool that with CUDA keeps as much memory as the largest workspace so far until the runtime
 * is destroyed; if no memory is available, a variant without a workspace runs. tcc_kernel_launch_in uses the caller's
 * workspace instead: `bytes` at a device address that is a multiple of 256; variants that need more are not considered.
 * Nothing else may use it until the stream has passed the launch; launches on one stream may share it. With bytes 0,
 * only variants without a workspace are considered. tcc_kernel_workspace_bytes returns the size that the cheapest valid
 * variant needs; 0 if none is valid. */
typedef struct tcc_workspace {
    uint64_t device;
    size_t bytes;
} tcc_workspace;
TCC_API tcc_status tcc_kernel_launch_in(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                        const tcc_arg *args, size_t n_args, void *stream,
                                        tcc_workspace workspace);
TCC_API size_t tcc_kernel_workspace_bytes(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                          const tcc_arg *args, size_t n_args);

/* Does in advance what the first such launch of a variant does in addition: the driver loads its code, which may take
 * tenths of a second and is not allowed while a stream is captured. Extents and arguments as above; only the alignments
 * of addresses matter, and 0 is aligned. Returns what tcc_kernel_launch returns; thread-safe in the same way. */
TCC_API tcc_status tcc_kernel_prepare(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                      const tcc_arg *args, size_t n_args);

/* The name of the variant that such a launch would run; NULL if none is valid. The address 0 is aligned here, too. */
TCC_API const char *tcc_kernel_variant(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                       const tcc_arg *args, size_t n_args);
/* The compiler's estimate of the cycles of that launch, by which variants are chosen, for comparing kernels that
 * compute the same on one GPU. -1 if no variant is valid, 0 if nothing would be launched. */
TCC_API int64_t tcc_kernel_cost(const tcc_kernel *k, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                                size_t n_args);

/* ---- a small device layer, for tools and examples -------------------------------------- */

typedef struct tcc_device tcc_device;

/* Makes GPU `ordinal` current for the calling thread; with CUDA this retains the GPU's primary
 * context. tcc_device_close, on the same thread, undoes it. Returns TCC_OK, TCC_ERR_DRIVER (such as for
 * an ordinal without a GPU) or TCC_ERR_MEMORY. */
TCC_API tcc_status tcc_device_open(tcc_runtime *rt, int ordinal, tcc_device **out);
TCC_API void tcc_device_close(tcc_device *dev);
/* The GPU's name, "NVIDIA H200"; the target of tcc_compile that suits it best, "sm_90a" or "gfx1100", or its own
 * architecture if no target suits it; and the driver's CUDA or HIP version as 1000 * major + 10 * minor (13000). */
TCC_API const char *tcc_device_name(const tcc_device *dev);
TCC_API const char *tcc_device_arch(const tcc_device *dev);
TCC_API int tcc_device_driver_version(const tcc_device *dev);

/* Device memory in bytes, 256-byte aligned; copies and fills are synchronous. */
TCC_API tcc_status tcc_device_alloc(tcc_device *dev, size_t bytes, uint64_t *out);
TCC_API void tcc_device_free(tcc_device *dev, uint64_t device);
TCC_API tcc_status tcc_device_write(tcc_device *dev, uint64_t device, const void *host, size_t n);
TCC_API tcc_status tcc_device_read(tcc_device *dev, void *host, uint64_t device, size_t n);
TCC_API tcc_status tcc_device_fill(tcc_device *dev, uint64_t device, uint8_t byte, size_t n);
/* Waits for everything enqueued on the GPU; reports errors of earlier launches. */
TCC_API tcc_status tcc_device_sync(tcc_device *dev);

/* Calls `enqueue` once between two events on the default stream; *ms receives the time between them. */
TCC_API tcc_status tcc_device_time(tcc_device *dev, tcc_status (*enqueue)(void *user), void *user,
                                   float *ms);

/* ---- timing several kernels alternately -------------------------------------------------- */

enum { TCC_BENCH_ROUNDS = 11, TCC_BENCH_CONTENDERS = 16 /* at most */ };

typedef struct tcc_contender {
    tcc_status (*enqueue)(void *user, int set); /* enqueues one run with input set `set` on the default stream */
    void *user;
    int rounds;
    double us[TCC_BENCH_ROUNDS]; /* receives the microseconds of one run in each round, sorted */
} tcc_contender;

/* The durations of one round of one contender, and of the warm-up of all, in milliseconds. */
typedef struct tcc_bench_effort {
    double round_ms, warm_ms;
    int rounds; /* at most TCC_BENCH_ROUNDS */
} tcc_bench_effort;

/* Times contenders on a warm GPU, which must be current. Each round runs each of them once, in a different order, so
 * that all get a fair share of clocks and heat. Before it is timed, a contender runs untimed for the same duration, so
 * that it is timed in the thermal state that it causes. Runs rotate through the input sets 0 to n_sets - 1: several
 * sets that together exceed the L2 cache keep a run from finding its inputs there. effort NULL: rounds of 25 ms, 500 ms
 * of warm-up, 11 rounds. Returns TCC_OK, TCC_ERR_ARGUMENT, or the first error. */
TCC_API tcc_status tcc_bench(tcc_device *dev, const tcc_bench_effort *effort, tcc_contender *contenders, size_t n,
                             int n_sets);
/* The result: the median over the rounds, in microseconds. */
TCC_API double tcc_contender_median(const tcc_contender *c);

/* `user` and `enqueue` of a contender that launches a kernel. */
typedef struct tcc_bench_launch {
    const tcc_kernel *kernel;
    const int64_t *dims;
    size_t n_dims;
    const tcc_arg *args; /* n_args of each set */
    size_t n_args;
} tcc_bench_launch;
TCC_API tcc_status tcc_bench_enqueue(void *user, int set);

#ifdef __cplusplus
}
#endif
#endif
