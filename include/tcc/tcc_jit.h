/* libtcc in one call: from a source text to a launch on the GPU that is current.
 *
 *     tcc_runtime *rt;            tcc_runtime_create(&rt, on_diagnostic, NULL);
 *     tcc_jit *jit;               tcc_jit_create(rt, NULL, &jit);
 *     int64_t dims[] = {4096, 4096, 4096};
 *     tcc_arg args[] = {{.device = a}, {.device = b}, {.device = bias}, {.device = c}};
 *     tcc_jit_launch(jit, source, NULL, NULL, dims, 3, args, 4, stream);
 *
 * The first launch compiles and loads; what it made is kept in memory, and on disk for the processes that follow.
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

/* When something is done that a launch can do without. The numbers never change. */
typedef enum tcc_jit_when {
    TCC_JIT_NEVER = 0,
    TCC_JIT_AT_ONCE = 1,   /* the launch that it is first for waits */
    TCC_JIT_BACKGROUND = 2 /* by a thread of the tcc_jit, while launches do without */
} tcc_jit_when;

typedef struct tcc_jit_options {
    size_t struct_size; /* sizeof(tcc_jit_options): lets the struct grow */
    /* The folder that compiled code is kept in, made where it is not there; NULL: what TCC_CACHE_DIR says, else
     * $XDG_CACHE_HOME/tcc, else $HOME/.cache/tcc. "", and an empty TCC_CACHE_DIR: none. Who can write there
     * decides what runs on the GPU. */
    const char *cache_dir;
    /* What it may take; 0: 256 MB. What was not used for the longest goes first. */
    uint64_t cache_bytes;
    /* Extents that the variants of a kernel do not serve well get a kernel of their own when a launch has them for the
     * first time. Served well they are where the estimate of the cheapest variant (tcc_kernel_cost) is at most a tenth
     * above that of the schedule which the compiler chooses where it knows the extents; else the kernel is compiled with
     * that schedule. Whether it is takes a few milliseconds for each new set of extents, 4096 at most. Such a kernel adds
     * in another order: a result may change in its last bits once it is there. Kernels with a schedule of their own
     * stay as they are, and so do launches with addresses that are not multiples of 16. */
    tcc_jit_when specialize;
    /* The machine code of PTX is made by ptxas, where that is found, and kept beside it in the folder: a later process
     * launches without a compilation by the driver. TCC_JIT_AT_ONCE: the process that compiles uses it, too. */
    tcc_jit_when assemble;
} tcc_jit_options;

/* Makes a compiler for the GPU that is current, as tcc_program_load has it: all calls are made with that one current.
 * `rt` is borrowed, and gets all diagnostics. `options` NULL: all zero.
 * Returns TCC_OK, TCC_ERR_TARGET (no target suits this GPU), TCC_ERR_DRIVER or TCC_ERR_MEMORY.
 * On success *out belongs to the caller: tcc_jit_destroy, before the runtime. */
TCC_API tcc_status tcc_jit_create(tcc_runtime *rt, const tcc_jit_options *options, tcc_jit **out);
/* Destroys it with all its programs. What is being done in the background is waited for, what was to be done is not. */
TCC_API void tcc_jit_destroy(tcc_jit *jit);

/* The target that it compiles for where none is asked for: "sm_90a". Borrowed. */
TCC_API const char *tcc_jit_target(const tcc_jit *jit);

/* The program that a source text is, compiled and loaded when it is first asked for.
 *
 * source   NUL-terminated UTF-8; borrowed for the call
 * options  target (NULL: the GPU's), file, defines, line_tables, tiles, kernel, ranges and verify_pipeline say what is compiled; the
 *          others are to be zero. NULL: all zero
 * The program is known by all of these, and on disk by the versions of libtcc and the driver as well. Of equal
 * texts one is compiled, whichever thread asks first. A folder that cannot be used costs the time of a
 * compilation in every process, and a warning in each tcc_jit.
 * *out is borrowed from `jit`, as what tcc_program_kernel gives is. Returns what tcc_compile_with and tcc_program_load
 * return, with *out NULL where they fail. Thread-safe. */
TCC_API tcc_status tcc_jit_program(tcc_jit *jit, const char *source,
                                   const tcc_compile_options *options, const tcc_program **out);

/* The kernel of this name in it, or the only one for NULL; TCC_ERR_ARGUMENT where there is none. */
TCC_API tcc_status tcc_jit_kernel(tcc_jit *jit, const char *source,
                                  const tcc_compile_options *options, const char *kernel,
                                  const tcc_kernel **out);

/* The kernel that tcc_jit_launch launches with these extents and arguments, of which the alignments count: the one of
 * tcc_jit_kernel, or one for these extents (tcc_jit_options.specialize). In the background that is made from the first
 * such call on, and given by those that come after it is there. */
TCC_API tcc_status tcc_jit_kernel_for(tcc_jit *jit, const char *source, const tcc_compile_options *options,
                                      const char *kernel, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                                      size_t n_args, const tcc_kernel **out);

/* tcc_jit_kernel_for, then tcc_kernel_launch. To find a program that is there takes about a microsecond for each
 * thousand bytes of its source. */
TCC_API tcc_status tcc_jit_launch(tcc_jit *jit, const char *source,
                                  const tcc_compile_options *options, const char *kernel,
                                  const int64_t *dims, size_t n_dims, const tcc_arg *args,
                                  size_t n_args, void *stream);

/* How often a program was not in memory, and what came of it. */
typedef struct tcc_jit_counts {
    uint64_t compiled;    /* successfully */
    uint64_t read;        /* from the folder */
    uint64_t damaged;     /* entries that the folder had and that were dropped */
    uint64_t specialized; /* sets of extents that got a kernel of their own, or share one */
    uint64_t assembled;   /* programs whose machine code was put beside their PTX */
} tcc_jit_counts;
TCC_API tcc_jit_counts tcc_jit_count(tcc_jit *jit);

/* Returns when nothing is left to be done in the background. Thread-safe. */
TCC_API void tcc_jit_wait(tcc_jit *jit);
/* Waits for what is being done in the background, drops what was to be done, and has nothing done there any more: before
 * a program exits that does not destroy the tcc_jit. */
TCC_API void tcc_jit_end_background(tcc_jit *jit);

#ifdef __cplusplus
}
#endif
#endif
