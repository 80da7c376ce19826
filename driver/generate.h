/* generate: code of target-level IR, with whatever tools an output takes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_GENERATE_H
#define TCC_DRIVER_GENERATE_H

#include <tcc/tcc.h>

#include "ir/ir.h"

typedef struct tcc_generation {
    const tcc_compile_options *o;
    const tcc_ir *ir;
    const char *target;
    const char *manifest; /* carried by a code object; NULL: none */
    tcc_diag *diag;
    /* Told how long each phase took. */
    void (*phase)(const char *name, double ms, void *user);
    void *user;
} tcc_generation;

/* On success *out is a text, or a device object, of *size bytes that belongs to the caller: free. */
tcc_status tcc_generate(const tcc_generation *g, char **out, size_t *size);

#endif
