/* libtcc, ahead of time: one program for several targets in one file, a bundle that tcc_program_load
 * takes, or C that needs no libtcc.
 *
 *     tcc_module *mods[2];        tcc_compile(ctx, source, "sm_90a", &mods[0]);
 *                                 tcc_compile(ctx, source, "gfx1100", &mods[1]);
 *     tcc_text c, header;         tcc_bundle_c(ctx, mods, 2, NULL, "matmul", &c, &header);
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TCC_BUNDLE_H
#define TCC_TCC_BUNDLE_H

#include <tcc/tcc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcc_bundle_options {
    size_t struct_size; /* sizeof(tcc_bundle_options): lets the struct grow */
    /* Whether the cubin of each PTX is put beside it, which saves drivers the compilation. By default, where ptxas is
     * found and knows the target; TCC_ON: what keeps it from being made is an error. */
    tcc_switch cubins;
    const char *ptxas; /* its path; NULL: CUDA_HOME/bin, PATH, /usr/local/cuda/bin */
} tcc_bundle_options;

/* Bytes of a file; of a text with a 0 byte behind them that `size` does not count. */
typedef struct tcc_text {
    char *data; /* the caller's: tcc_text_destroy */
    size_t size;
} tcc_text;

/* Puts what can be loaded of one program on several targets into a bundle: docs/abi.md.
 *
 * modules  n of them, at most 32: PTX, cubins or code objects of the same kernels, with the same arguments
 * options  NULL: all zero
 * Returns TCC_OK; TCC_ERR_ARGUMENT for modules that do not go together; what assembling a cubin returns
 * (TCC_ERR_TOOL, TCC_ERR_IO); TCC_ERR_MEMORY. Diagnostics go to the context's callback. */
TCC_API tcc_status tcc_bundle_make(tcc_context *ctx, const tcc_module *const *modules, size_t n,
                                   const tcc_bundle_options *options, tcc_text *out);

/* The same as a C file and its header, for programs without libtcc: what loads and launches is in the file, which
 * needs C11, libc and the GPU's driver. The header says what is in it: for each kernel a function
 *
 *     int matmul(void *stream, uint64_t A, uint64_t B, uint64_t C, int64_t M, int64_t K, int64_t N);
 *
 * that returns a tcc_status as a number.
 *
 * name  of the files without .c and .h: the header's, and what names of functions begin with. What no name in C may
 *       have becomes '_'; the function of the kernel of this very name is that alone
 * Returns what tcc_bundle_make returns, and TCC_ERR_ARGUMENT where a function's name is none in C. */
TCC_API tcc_status tcc_bundle_c(tcc_context *ctx, const tcc_module *const *modules, size_t n,
                                const tcc_bundle_options *options, const char *name, tcc_text *c,
                                tcc_text *header);

#ifdef __cplusplus
}
#endif
#endif
