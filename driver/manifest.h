/* manifest: the description of a compiled module (docs/abi.md), written as JSON.
 *
 * A kernel's signature is taken before the passes run, its variants after.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_MANIFEST_H
#define TCC_DRIVER_MANIFEST_H

#include "ir/ir.h"

/* A kernel as the frontend made it: the JSON of its name, dims, args, sum and reference. */
typedef struct tcc_signature {
    const char *kernel;
    tcc_str json; /* tcc_str_free */
} tcc_signature;

/* Fills in a signature that is zero: of a function that has the caller's arguments, and of the
 * tensor-level one that defines the kernel, or NULL. */
void tcc_signature_print(tcc_signature *s, const tcc_func *f, const tcc_func *definition);

/* The manifest of a module. Its functions of the target level are the variants of their kernels. */
void tcc_manifest_print(tcc_str *out, const tcc_ir *ir, const char *file,
                        const tcc_signature *signatures, size_t n);

/* The manifest as the leading comments of a PTX text. */
void tcc_manifest_comment(tcc_str *out, const char *json);

#endif
