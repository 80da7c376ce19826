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

/* The states that passes establish, step by step. */
typedef enum tcc_state {
#define STATE(id, lacks, what) TCC_STATE_##id,
#include "passes/states.def"
    TCC_STATE_COUNT
} tcc_state;
#define TCC_STATE(id) (1u << TCC_STATE_##id)
/* It and all before it. */
#define TCC_UP_TO(id) (2 * TCC_STATE(id) - 1)

/* One pass: `run` changes one function, says whether it did, and reports user errors to
 * ctx->diag, returning their status. Passes must leave functions that they do not apply to as
 * they are. States, a bit each, that it requires of a function, leaves it in, and undoes. */
typedef struct tcc_pass {
    const char *name, *summary;
    tcc_status (*run)(tcc_pass_ctx *ctx, tcc_func *func, bool *changed);
    unsigned requires, leaves, undoes;
} tcc_pass;

#endif
