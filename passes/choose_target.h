/* choose_target: as which target choose-variants makes a kernel.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_CHOOSE_TARGET_H
#define TCC_PASSES_CHOOSE_TARGET_H

#include "ir/target.h"
#include "passes/space.h"
#include "passes/pass.h"

/* The first op with an element that needs a capability, f64 or half_bytes; NULL: there is none. */
const tcc_op *tcc_find_element(const tcc_func *f, tcc_capability needed);
/* Refuses f64 where the target cannot compute it. */
tcc_status tcc_check_f64(tcc_pass_ctx *ctx, const tcc_func *f);
/* As which target the kernel is made: its plain one where that has the instruction that is asked for or, where none is,
 * one for operands that the target does not multiply; and for f64 and halves of bytes, which are for its warps. */
tcc_status tcc_choose_target(tcc_pass_ctx *ctx, tcc_func *f, const tcc_space *c);
/* Whether the module's target would multiply the operands of all sums by an instruction of its own if their rows ran along
 * the summed index, which those of at least one do not. */
bool tcc_wants_transposed(const tcc_func *f, const tcc_space *c);

#endif
