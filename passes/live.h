/* live: how many registers of a thread hold values that are needed later, in a kernel of target ops.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_LIVE_H
#define TCC_PASSES_LIVE_H

#include "ir/ir.h"

typedef struct tcc_live {
    int64_t registers; /* of 32 bits, at the place where they exceed the limit by most, or are nearest to it */
    int64_t limit;     /* of a thread there */
    /* How many registers a thread lacks where narrow elements that are computed, and single bytes, do not share them;
     * negative: how many are left. */
    int64_t early;       /* if elements are computed as they are written */
    int64_t late;        /* if they are computed as late as they can be */
    int64_t loads_first; /* if loads are moved to the front of their block; only of tcc_live_registers */
} tcc_live;

/* How many registers a thread lacks that computes its elements when it needs less for it; negative: how many are left. */
int64_t tcc_live_lacks(const tcc_live *live);
/* With so many an assembler finds an order that needs fewer; with up to so many it often does. */
enum { TCC_LIVE_SPARE = 6, TCC_LIVE_DOUBT = 24 };
/* Counts what an assembler needs that computes elements as they are written, or as late as it can. `registers` is the
 * smaller number, if all narrow elements share registers. What comes with its instruction is not counted: constants,
 * parameters, offsets of addresses, predicates. */
tcc_live tcc_live_registers(const tcc_func *f, tcc_arena *scratch);
/* The same for one that also loads from global memory only what it needs next. */
tcc_live tcc_live_late_registers(const tcc_func *f, tcc_arena *scratch);

#endif
