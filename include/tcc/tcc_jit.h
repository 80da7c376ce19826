/* libtcc in one call: from a source text to a launch on the current GPU.
 *
 *     tcc_runtime *rt;            tcc_runtime_create(&rt, on_diagnostic, NULL);
 *     tcc_jit *jit;               tcc_jit_create(rt, NULL, &jit);
 *     int64_t dims[] = {4096, 4096, 4096};
 *     tcc_arg args[] = {{.device = a}, {.device = b}, {.device = bias}, {.device = c}};
 *     tcc_jit_launch(jit, source, NULL, NULL, dims, 3, args, 4, stream);
 *
 * The first launch compiles and loads; the result is cached in memory, and on disk for later processes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TCC_JIT_H
#define TCC_TCC_JIT_H

#include <tcc/tcc.h>
#include <tcc/tcc_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcc_jit tcc_jit;

/* When to do optional work. The numbers never change. */
typedef enum tcc_jit_when {
    TCC_JIT_NEVER = 0,
    TCC_JIT_AT_ONCE = 1,   /* the first launch that benefits waits for it */
    TCC_JIT_BACKGROUND = 2 /* by a thread of the tcc_jit, while launches proceed without it */
} tcc_jit_when;

typedef struct tcc_jit_options {
    size_t struct_size; /* sizeof(tcc_jit_options): lets the struct grow */
    /* The folder for compiled code, created if it does not exist; NULL: TCC_CACHE_DIR, else $XDG_CACHE_HOME/tcc, else
     * $HOME/.cache/tcc. "" or an empty TCC_CACHE_DIR disables the disk cache. Whoever can write to the folder decides
     * what runs on the GPU. */
    const char *cache_dir;
    /* Its maximum size; 0: 256 MB. The least recently used entries are evicted first. */
    uint64_t cache_bytes;
    /* When a launch has extents for the first time that no variant of the kernel serves well, a kernel is compiled for
     * them: if the estimated cost of the cheapest variant (tcc_kernel_cost) exceeds that of the schedule which the
     * compiler chooses for known extents by more than a tenth, it is compiled with that schedule. The estimate takes a
     * few milliseconds for each new set of extents, of which at most 4096 are considered. Such a kernel adds in a
     * different order, so the last bits of a result may change once it exists. Kernels whose source has a schedule are
     * not specialized, nor are launches with addresses that are not multiples of 16. */
    tcc_jit_when specialize;
    /* Compile PTX to machine code with ptxas, if found, and store it beside the PTX in the folder, so that the driver
     * of a later process need not compile. With TCC_JIT_AT_ONCE the process that compiles uses it as well. */
    tcc_jit_when assemble;
} tcc_jit_options;

/* Creates a compiler for the current GPU (see tcc_program_load), which must be current in all calls.
 * `rt` is borrowed, and receives all diagnostics. `options` NULL: all zero.
 * Returns TCC_OK, TCC_ERR_TARGET (no target suits this GPU), TCC_ERR_DRIVER or TCC_ERR_MEMORY.
 * On success *out belongs to the caller: tcc_jit_destroy, before the runtime. */
TCC_API tcc_status tcc_jit_create(tcc_runtime *rt, const tcc_jit_options *options, tcc_jit **out);
/* Destroys it with all its programs. Waits for background work in progress, and drops work that is queued. */
TCC_API void tcc_jit_destroy(tcc_jit *jit);

/* The default target, such as "sm_90a". Borrowed. */
TCC_API const char *tcc_jit_target(const tcc_jit *jit);

/* The program of a source text, compiled and loaded when first requested.
 *
 * source   NUL-terminated UTF-8; borrowed for the call
 * options  target (NULL: the GPU's), file, defines, line_tables, tiles, kernel, ranges and verify_pipeline; the others
 *          must be zero. NULL: all zero
 * All of these identify the program; on disk, the versions of libtcc and of the driver do as well. Equal requests are
 * compiled once, whichever thread asks first. If the folder cannot be used, every process compiles, and each tcc_jit
 * reports a warning.
 * *out is borrowed from `jit`, and so are its kernels. Returns what tcc_compile_with and tcc_program_load return, with
 * *out NULL on failure. Thread-safe. */
TCC_API tcc_status tcc_jit_program(tcc_jit *jit, const char *source,
                                   const tcc_compile_options *options, const tcc_program **out);

/* The kernel with this name in the program, for NULL the only one; TCC_ERR_ARGUMENT if there is none. */
TCC_API tcc_status tcc_jit_kernel(tcc_jit *jit, const char *source,
                                  const tcc_compile_options *options, const char *kernel,
                                  const tcc_kernel **out);

/* The kernel that tcc_jit_launch launches with these extents and arguments (only the alignments of addresses matter):
 * that of tcc_jit_kernel, or one for these extents (tcc_jit_options.specialize). With TCC_JIT_BACKGROUND the first such
 * call starts to make it, and calls return it once it exists. */
TCC_API tcc_status tcc_jit_kernel_for(tcc_jit *jit, const char *source, const tcc_compile_options *options,
                                      const char *kernel, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                                      size_t n_args, const tcc_kernel **out);

/* tcc_jit_kernel_for, then tcc_kernel_launch. Looking up a compiled program takes about a microsecond per thousand
 * bytes of its source. */
TCC_API tcc_status tcc_jit_launch(tcc_jit *jit, const char *source,
                                  const tcc_compile_options *options, const char *kernel,
                                  const int64_t *dims, size_t n_dims, const tcc_arg *args,
                                  size_t n_args, void *stream);

/* What was done for programs that were not in memory. */
typedef struct tcc_jit_counts {
    uint64_t compiled;    /* successfully */
    uint64_t read;        /* from disk */
    uint64_t damaged;     /* entries on disk that were discarded */
    uint64_t specialized; /* sets of extents with a kernel of their own, possibly shared */
    uint64_t assembled;   /* programs whose machine code was stored beside their PTX */
} tcc_jit_counts;
TCC_API tcc_jit_counts tcc_jit_count(tcc_jit *jit);

/* Waits until no background work is left. Thread-safe. */
TCC_API void tcc_jit_wait(tcc_jit *jit);
/* Waits for background work in progress, drops queued work, and disables further background work. Required before the
 * program exits, unless it destroys the tcc_jit. */
TCC_API void tcc_jit_end_background(tcc_jit *jit);

#ifdef __cplusplus
}
#endif
#endif
