/* pass: what a pass is, and the context that it runs in. pipeline.c is the list.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_PASS_H
#define TCC_PASSES_PASS_H

#include "ir/ir.h"

typedef struct tcc_pass_ctx {
    tcc_ir *ir;
    tcc_diag *diag;
    tcc_arena *scratch; /* for what only the pass itself needs */
} tcc_pass_ctx;

/* One pass: `run` changes one function, says whether it did, and reports user errors to
 * ctx->diag, returning their status. Passes must leave functions that they do not apply to as
 * they are. */
typedef struct tcc_pass {
    const char *name, *summary;
    tcc_status (*run)(tcc_pass_ctx *ctx, tcc_func *func, bool *changed);
} tcc_pass;

#endif
