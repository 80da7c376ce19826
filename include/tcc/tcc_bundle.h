/* libtcc, ahead of time: one program for several targets in one file, either a bundle for
 * tcc_program_load or C that does not need libtcc.
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
    /* Whether to add a cubin for each PTX, which saves the driver a compilation. By default if ptxas is found and
     * supports the target; TCC_ON: failing to make one is an error. */
    tcc_switch cubins;
    const char *ptxas; /* its path; NULL: CUDA_HOME/bin, PATH, /usr/local/cuda/bin */
} tcc_bundle_options;

/* The bytes of a file; text is NUL-terminated, which `size` does not count. */
typedef struct tcc_text {
    char *data; /* owned by the caller: tcc_text_destroy */
    size_t size;
} tcc_text;

/* Bundles the images of one program for several targets: docs/abi.md.
 *
 * modules  n of them, at most 32: PTX, cubins or code objects of the same kernels, with the same arguments
 * options  NULL: all zero
 * Returns TCC_OK; TCC_ERR_ARGUMENT for modules that do not match; the error of making a cubin
 * (TCC_ERR_TOOL, TCC_ERR_IO); TCC_ERR_MEMORY. Diagnostics go to the context's callback. */
TCC_API tcc_status tcc_bundle_make(tcc_context *ctx, const tcc_module *const *modules, size_t n,
                                   const tcc_bundle_options *options, tcc_text *out);

/* The same as a C file and its header, for programs without libtcc. The file contains the code that loads and launches,
 * and needs C11, libc and the GPU's driver. The header declares for each kernel a function
 *
 *     int matmul(void *stream, uint64_t A, uint64_t B, uint64_t C, int64_t M, int64_t K, int64_t N);
 *
 * which returns a tcc_status as a number.
 *
 * name  of the files without .c and .h, and the prefix of the functions' names. Characters that C does not allow in a
 *       name become '_'. The function of a kernel with exactly this name is not prefixed
 * Returns what tcc_bundle_make returns, and TCC_ERR_ARGUMENT if a function's name is not valid in C. */
TCC_API tcc_status tcc_bundle_c(tcc_context *ctx, const tcc_module *const *modules, size_t n,
                                const tcc_bundle_options *options, const char *name, tcc_text *c,
                                tcc_text *header);

#ifdef __cplusplus
}
#endif
#endif
