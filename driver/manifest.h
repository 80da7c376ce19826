/* manifest: what a compiled module says of itself (docs/abi.md), written as JSON.
 *
 * A kernel's signature is taken before the passes run, its variants after.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_MANIFEST_H
#define TCC_DRIVER_MANIFEST_H

#include "ir/ir.h"

/* A kernel as the frontend made it: the JSON of its name, dims, args, flops and reference. */
typedef struct tcc_signature {
    const char *kernel;
    tcc_str json; /* tcc_str_free */
} tcc_signature;

/* Fills in a signature that is zero. */
void tcc_signature_print(tcc_signature *s, const tcc_func *tensor_level);

/* The manifest of a target-level module. */
void tcc_manifest_print(tcc_str *out, const tcc_ir *ir, const char *file,
                        const tcc_signature *signatures, size_t n);

/* The manifest as the leading comments of a PTX text. */
void tcc_manifest_comment(tcc_str *out, const char *json);

#endif
