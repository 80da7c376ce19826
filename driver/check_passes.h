/* check_passes: every kernel run on small shapes before the passes and after each, and compared.
 *
 * What a pass changed, or a sample of that, is run on one of the kernel's shapes (shapes.h), what comes out of the last
 * on all of them, by the interpreter, which also proves it free of races. Everything must agree
 * with the tensor level as trial.h says.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_CHECK_PASSES_H
#define TCC_DRIVER_CHECK_PASSES_H

#include "ir/ir.h"

typedef struct tcc_pass_check tcc_pass_check;

typedef struct tcc_pass_check_options {
    uint64_t seed; /* decides shapes, data and the orders in which the machine runs */
    /* One extent for each name of every kernel's `dims`: run only this shape, each function in one
     * order. NULL: shapes are chosen. */
    const int64_t *dims;
    /* A sixth of what passes change is run, the seed decides which, and what the last one leaves on a fifth of the
     * shapes, in one order. A failure is reported at the pass that made it all the same, unless a later pass undoes
     * it. */
    bool sampled;
} tcc_pass_check_options;

/* Begins a check of a module that no pass has seen. What is found is reported to diag. *out, which
 * must not outlive the arena, belongs to the caller from the start, whatever comes of it. Returns
 * TCC_OK or TCC_ERR_MEMORY. */
tcc_status tcc_pass_check_create(tcc_arena *arena, const tcc_ir *ir,
                                 const tcc_pass_check_options *options, tcc_diag *diag,
                                 tcc_pass_check **out);
void tcc_pass_check_destroy(tcc_pass_check *c);

/* Says that the module is what a pass left. TCC_ERR_INTERNAL when a function computes something
 * else than before, or does wrong: the pass, the shape and the first difference are reported. */
tcc_status tcc_pass_check_after(tcc_pass_check *c, const tcc_ir *ir, const char *pass);

/* Runs every function that the passes left on every shape, in several orders. Warns of what could
 * not be run: no shape was valid, or all were too large. */
tcc_status tcc_pass_check_finish(tcc_pass_check *c, const tcc_ir *ir);

#endif
