/* turns: consumers that take the tiles of a persistent CTA in turn; a part of specialize-warps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_TURNS_H
#define TCC_PASSES_TURNS_H

#include "passes/pass.h"

/* Splits a role whose region is a loop over tiles into this many roles. TCC_ERR_UNSUPPORTED, reported, for
 * any other region. */
tcc_status tcc_take_turns(tcc_pass_ctx *ctx, tcc_op *role, int64_t n);

#endif
