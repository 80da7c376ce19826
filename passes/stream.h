/* stream: sums that one loop keeps in step with the reductions that their terms need (ir/streaming.h).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_STREAM_H
#define TCC_PASSES_STREAM_H

#include "ir/ir.h"

/* Whether some sums over an index need other reductions over it, and all that do can be kept in step with these: the
 * pass finds what they are multiplied by. Reductions over other indices are of each term. */
bool tcc_stream_takes_one_sweep(tcc_arena *scratch, const tcc_func *f, const char *index);

#endif
