/* libtcc's runtime: load compiled kernels and launch them, with nothing but the GPU's driver.
 *
 * The CUDA driver, or HIP for AMD's GPUs, is found with dlopen; neither headers nor toolkits are
 * needed, and from tcc_runtime_create_for on every call is the same for both. Everything happens on
 * the caller's stream, and on the GPU that is current: with CUDA the one of the calling thread's
 * current context, with HIP the calling thread's current device (hipSetDevice). The runtime makes
 * one current only through tcc_device_open, for programs that do not do so themselves.
 *
 *     tcc_runtime *rt;            tcc_runtime_create(&rt, on_diagnostic, NULL);
 *     tcc_program *prog;          tcc_program_load(rt, ptx, size, NULL, &prog);
 *     const tcc_kernel *k = tcc_program_kernel(prog, "matmul");
 *     int64_t dims[] = {4096, 4096, 4096};
 *     tcc_arg args[] = {{.device = a}, {.device = b}, {.device = bias}, {.device = c}};
 *     tcc_kernel_launch(k, dims, 3, args, 4, stream);
 *
 * What asks a handle for something takes NULL, too, which has nothing: it gives NULL or 0. So a name
 * that is no kernel's ends in the launch, with TCC_ERR_ARGUMENT.
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

/* Whose GPUs a runtime drives. The numbers never change. */
typedef enum tcc_vendor {
    TCC_VENDOR_NVIDIA = 0, /* the CUDA driver: libcuda.so.1 of CUDA 12.0 or later */
    TCC_VENDOR_AMD = 1     /* HIP: libamdhip64.so, else .so.7, .so.6 or .so.5 */
} tcc_vendor;

/* Finds the vendor's driver. Errors of later calls on this runtime go to `fn`, which may be NULL.
 * Returns TCC_OK, TCC_ERR_NO_DRIVER (no driver or no GPU), TCC_ERR_ARGUMENT (no such vendor) or
 * TCC_ERR_MEMORY. Runtimes of both vendors may exist at once.
 * On success *out belongs to the caller: tcc_runtime_destroy, after its programs and devices. */
TCC_API tcc_status tcc_runtime_create_for(tcc_vendor vendor, tcc_runtime **out,
                                          tcc_diagnostic_fn fn, void *user);
/* The same for TCC_VENDOR_NVIDIA. */
TCC_API tcc_status tcc_runtime_create(tcc_runtime **out, tcc_diagnostic_fn fn, void *user);
TCC_API void tcc_runtime_destroy(tcc_runtime *rt);

/* GPUs that the driver finds, at least 1: tcc_device_open takes ordinals below. */
TCC_API int tcc_runtime_device_count(const tcc_runtime *rt);
/* The ordinal of the GPU that is current; -1 where the calling thread has none. */
TCC_API int tcc_runtime_current_device(const tcc_runtime *rt);

/* Loads a PTX text, cubin, code object (hsaco) or bundle of these that tcc wrote onto the current GPU. `image` is
 * borrowed; PTX needs no terminator. A driver compiles PTX for the GPU at hand (about 0.1 to 0.2 s
 * for each large kernel): of a text with several entries, each when it is first launched, or
 * tcc_kernel_prepare is told that it will be. A code object is for one architecture. `manifest` NULL: read from the
 * image, where PTX has it at the head and ELF files in a note; a cubin has none. Of a bundle, which has all manifests,
 * the image for the latest target that the GPU runs is loaded, machine code before PTX; one that cannot be
 * loaded is passed over where there is another.
 * Returns TCC_OK, TCC_ERR_SYNTAX (no or bad manifest, or not the image's; a damaged code object or bundle),
 * TCC_ERR_ARGUMENT (a bundle and a manifest), TCC_ERR_TARGET (not for the current GPU), TCC_ERR_DRIVER or TCC_ERR_MEMORY.
 * On success *out belongs to the caller: tcc_program_destroy. */
TCC_API tcc_status tcc_program_load(tcc_runtime *rt, const void *image, size_t size,
                                    const char *manifest, tcc_program **out);
TCC_API void tcc_program_destroy(tcc_program *prog);

/* Makes a program of a manifest alone, on any machine: what its kernels take and which of their
 * variants are valid can be asked, and nothing launched (TCC_ERR_NO_DRIVER). Errors go to `fn`,
 * which may be NULL. Returns TCC_OK, TCC_ERR_SYNTAX or TCC_ERR_MEMORY.
 * On success *out belongs to the caller: tcc_program_destroy. */
TCC_API tcc_status tcc_program_describe(const char *manifest, tcc_diagnostic_fn fn, void *user,
                                        tcc_program **out);

/* The manifest as JSON, borrowed. */
TCC_API const char *tcc_program_manifest(const tcc_program *prog);

/* The kernel of this name, or the only one for NULL; NULL when there is none. Borrowed. */
TCC_API const tcc_kernel *tcc_program_kernel(const tcc_program *prog, const char *name);
/* Number of kernels, and the i-th in the manifest's order; NULL past the last. Borrowed. */
TCC_API size_t tcc_program_kernel_count(const tcc_program *prog);
TCC_API const tcc_kernel *tcc_program_kernel_at(const tcc_program *prog, size_t i);

/* ---- what a kernel takes --------------------------------------------------------------- */

typedef enum tcc_arg_role { TCC_ARG_IN, TCC_ARG_OUT, TCC_ARG_INOUT, TCC_ARG_SCALAR } tcc_arg_role;

typedef struct tcc_arg_info {
    const char *name;
    const char *type; /* "f16", "bf16", "f32", "f64", …; of i4 and u4 two lie in a byte, the first below */
    tcc_arg_role role;
    unsigned rank;           /* 0 for scalars */
    const char *const *dims; /* rank names; NULL where the extent is a number */
    const int64_t *extents;  /* rank numbers; -1 where the extent is a name */
    /* rank names: the index of the source that runs along each dimension; NULL where several do, and
     * where the manifest does not say */
    const char *const *indices;
} tcc_arg_info;

TCC_API const char *tcc_kernel_name(const tcc_kernel *k);
/* Symbolic dimensions, in the order that `dims` of tcc_kernel_launch takes. */
TCC_API size_t tcc_kernel_dim_count(const tcc_kernel *k);
TCC_API const char *tcc_kernel_dim_name(const tcc_kernel *k, size_t i);
/* Floating-point operations of one launch with these extents: two for each term of its sum; 0
 * where the manifest does not say. */
TCC_API double tcc_kernel_flops(const tcc_kernel *k, const int64_t *dims);
/* The element type that its sum is added in: "f64", "f32", "f16", "bf16" or "i32"; NULL where the manifest
 * does not say. Borrowed. */
TCC_API const char *tcc_kernel_sum_type(const tcc_kernel *k);
/* Arguments: parameters as declared, then outputs. info NULL when out of range. Borrowed. */
TCC_API size_t tcc_kernel_arg_count(const tcc_kernel *k);
TCC_API const tcc_arg_info *tcc_kernel_arg(const tcc_kernel *k, size_t i);

/* ---- launching ------------------------------------------------------------------------- */

/* One argument: a device address for tensors, a number for scalars. */
typedef union tcc_arg {
    uint64_t device; /* CUdeviceptr or hipDeviceptr_t; tensors are row-major and contiguous */
    double number;
} tcc_arg;

/* Enqueues one kernel on `stream` (a CUstream or hipStream_t; NULL is the default stream) on the
 * current GPU, which is to be the one that the program was loaded onto.
 *
 * dims  n_dims extents in elements, tcc_kernel_dim_name's order; 0 is allowed: nothing is
 *       launched when an output is empty, and an empty sum is 0
 * args  n_args of them, tcc_kernel_arg's order
 * Of the kernel's variants the cheapest that is valid for these extents and addresses runs. Tensor
 * maps are encoded once for each set of arguments and kept. Asynchronous; inputs and outputs must
 * stay allocated until the stream has passed it. Outputs may not overlap inputs.
 * Returns TCC_OK, TCC_ERR_ARGUMENT, TCC_ERR_NO_VARIANT, TCC_ERR_DRIVER or TCC_ERR_MEMORY.
 * Thread-safe: launches of one program from several threads are serialised on its cache only. */
TCC_API tcc_status tcc_kernel_launch(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                     const tcc_arg *args, size_t n_args, void *stream);

/* Some variants hand numbers on from one step to the next in a workspace. tcc_kernel_launch takes one for each
 * launch in the stream's order from a pool of the driver's, which keeps as much memory as the largest workspace yet until the
 * runtime is destroyed (with CUDA; HIP's own pool may give it back when the host waits for the GPU), and does without where
 * there is no memory. tcc_kernel_launch_in uses the caller's instead: `bytes` from a device address on that is a multiple of
 * 256, and of the variants those that need no more. Nothing else may use it until the stream has passed the
 * launch; launches of one stream may share it. With bytes 0, variants without a workspace run.
 * tcc_kernel_workspace_bytes is what the cheapest variant that is valid needs; 0 when none is valid. */
typedef struct tcc_workspace {
    uint64_t device;
    size_t bytes;
} tcc_workspace;
TCC_API tcc_status tcc_kernel_launch_in(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                        const tcc_arg *args, size_t n_args, void *stream,
                                        tcc_workspace workspace);
TCC_API size_t tcc_kernel_workspace_bytes(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                          const tcc_arg *args, size_t n_args);

/* Does ahead what the first such launch of a variant would do besides: has the driver load its code, for
 * which a launch may take tenths of a second, and which may not happen while a stream is captured.
 * Extents and arguments as above; what counts of these are alignments of addresses, and zeros are
 * aligned. Returns what tcc_kernel_launch returns; thread-safe as that. */
TCC_API tcc_status tcc_kernel_prepare(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                      const tcc_arg *args, size_t n_args);

/* The name of the variant that such a launch would run; NULL when none is valid. Zeros are aligned here, too. */
TCC_API const char *tcc_kernel_variant(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                       const tcc_arg *args, size_t n_args);
/* The compiler's estimate of that launch, in cycles, by which variants are chosen: to compare kernels that compute the
 * same on one GPU. -1 when none is valid, 0 where nothing would be launched. */
TCC_API int64_t tcc_kernel_cost(const tcc_kernel *k, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                                size_t n_args);

/* ---- a small device layer, for tools and examples -------------------------------------- */

typedef struct tcc_device tcc_device;

/* Makes GPU `ordinal` current for the calling thread; with CUDA it retains the GPU's primary
 * context for that. tcc_device_close, on the same thread, undoes it. Returns TCC_OK, TCC_ERR_DRIVER
 * (no GPU of this ordinal, for one) or TCC_ERR_MEMORY. */
TCC_API tcc_status tcc_device_open(tcc_runtime *rt, int ordinal, tcc_device **out);
TCC_API void tcc_device_close(tcc_device *dev);
/* "NVIDIA H200"; the target of tcc_compile that suits it best, "sm_90a" or "gfx1100", or where it runs none, what it
 * is itself, "sm_75"; and the version of the driver's CUDA or of HIP as 1000 * major + 10 * minor (13000). */
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

/* Calls `enqueue` once between two events on the default stream; *ms gets the time between them. */
TCC_API tcc_status tcc_device_time(tcc_device *dev, tcc_status (*enqueue)(void *user), void *user,
                                   float *ms);

/* ---- timing several in turn -------------------------------------------------------------- */

enum { TCC_BENCH_ROUNDS = 11, TCC_BENCH_CONTENDERS = 16 /* at most */ };

typedef struct tcc_contender {
    tcc_status (*enqueue)(void *user, int set); /* enqueues one run with input set `set` on the default stream */
    void *user;
    int rounds;
    double us[TCC_BENCH_ROUNDS]; /* gets the microseconds of one run in each round, sorted */
} tcc_contender;

/* How long it takes: one round of one contender, and warming all up, in milliseconds. */
typedef struct tcc_bench_effort {
    double round_ms, warm_ms;
    int rounds; /* TCC_BENCH_ROUNDS at most */
} tcc_bench_effort;

/* Times contenders on a warm GPU, which is to be current. Each round runs every one of them once, in an order of its own,
 * so that clocks and heat are shared fairly; before it is timed a contender runs as long untimed, so that it is timed in
 * its own thermal state. Input sets 0 to n_sets - 1 are used in rotation: several, which together do not fit into the L2
 * cache, keep a run from finding its inputs there.
 * effort NULL: rounds of 25 ms, 500 ms of warming up, 11 rounds. Returns TCC_OK, TCC_ERR_ARGUMENT, or what failed. */
TCC_API tcc_status tcc_bench(tcc_device *dev, const tcc_bench_effort *effort, tcc_contender *contenders, size_t n,
                             int n_sets);
/* What counts: the median over the rounds, in microseconds. */
TCC_API double tcc_contender_median(const tcc_contender *c);

/* A contender's user that is launches of a kernel, and its enqueue. */
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
