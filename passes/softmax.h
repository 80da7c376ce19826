/* softmax: exponentials of a row's elements minus its maximum, computed as powers of two.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_SOFTMAX_H
#define TCC_PASSES_SOFTMAX_H

#include "passes/tiling.h"

/* The ops of a function that tcc_softmax_op builds. */
tcc_map tcc_softmax_find(const tcc_func *f, tcc_arena *scratch);
/* Builds op, one of those, of tiles. */
void tcc_softmax_op(tcc_tiling *t, const tcc_op *op);

#endif
