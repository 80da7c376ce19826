/* pressure: how many registers a consumer thread of an sm_90a kernel needs.
 *
 * These are its accumulators, what the epilogue holds throughout, and what it holds for one chunk,
 * or for all chunks that ptxas computes at the same time; and a constant number. ptxas has the last
 * word: tests/ptxas/sweep.py compares these numbers with its results.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_PRESSURE_H
#define TCC_PASSES_PRESSURE_H

#include "passes/space.h"
#include "passes/schedule.h"

/* Columns of chunks by which the epilogue's loads run ahead of their use at least (chunk_epilogue.c). */
enum { TCC_LOOKAHEAD = 4 };

/* What a kernel computes from its sum. */
typedef struct tcc_epilogue tcc_epilogue;
/* For a function that still has the contraction c; allocated in the arena. */
tcc_epilogue *tcc_epilogue_of(const tcc_func *f, const tcc_space *c, tcc_arena *arena);

typedef struct tcc_pressure {
    int64_t least;    /* accumulators and what every kernel has beside them */
    int64_t separate; /* with one chunk after the other */
    int64_t scarce;   /* with one, if ptxas recomputes what it can */
    int64_t together; /* with all chunks that ptxas may compute at the same time */
    int64_t limit;    /* of the thread */
    int64_t group;    /* chunks of a block that can be taken up at once */
    int64_t ahead;    /* columns of chunks of which tiles can be loaded before the loop; 0: none */
} tcc_pressure;

/* aligned: the variant stores by TMA, and loads pairs of neighbours at once. */
tcc_pressure tcc_pressure_of(const tcc_epilogue *e, const tcc_schedule *s, const tcc_target *t,
                             bool aligned);

/* Sets the attributes for a function's pressure: `chunks` makes the epilogue compute groups of
 * this many chunks one after the other, `ahead` lets its loads of tiles run this many columns of chunks ahead;
 * `may_spill`, located at `place`, is the number of registers needed if even that may not fit. */
void tcc_pressure_set(tcc_func *f, const tcc_pressure *p, tcc_loc place);
/* Warns of the functions that may spill. */
void tcc_pressure_warn(const tcc_ir *ir, tcc_diag *diag);

#endif
