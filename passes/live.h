/* live: how many registers of a thread hold values that are needed later, in a kernel of target ops.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_LIVE_H
#define TCC_PASSES_LIVE_H

#include "ir/ir.h"

typedef struct tcc_live {
    int64_t registers; /* of 32 bits, at the place where they exceed the limit by most, or are nearest to it */
    int64_t limit;     /* of a thread there */
    int64_t excess;    /* registers that a thread is likely to lack; negative: that are left */
} tcc_live;

/* Counts what an assembler needs that computes elements as they are written, or as late as it can. `registers` is the
 * smaller number, if all narrow elements share registers; `excess` is halfway between the two, if what is computed and
 * single bytes do not. What comes with its instruction is not counted: constants, parameters, offsets of addresses,
 * predicates. */
tcc_live tcc_live_registers(const tcc_func *f, tcc_arena *scratch);
/* The same for one that also loads from global memory only what it needs next. */
tcc_live tcc_live_late_registers(const tcc_func *f, tcc_arena *scratch);

#endif
