/* memory: which reads of tensors may be treated as values.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_MEMORY_H
#define TCC_PASSES_MEMORY_H

#include "ir/ir.h"
#include "support/map.h"

/* The tensors that some op of f writes. */
tcc_map tcc_written_tensors(const tcc_func *f, tcc_arena *scratch);

/* Whether op has the same results wherever in its function it is: it is pure, and it reads no
 * tensor that is written. */
bool tcc_op_is_movable(const tcc_op *op, const tcc_map *written);

#endif
