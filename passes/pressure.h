/* pressure: how many registers a consumer thread of an sm_90a kernel needs.
 *
 * That is its accumulators, what the epilogue holds all along, and what it holds of one chunk, or of
 * all those that ptxas takes up at once; then what is always there. ptxas has the last word:
 * tests/ptxas/sweep.py holds these numbers to what it makes of schedules.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_PRESSURE_H
#define TCC_PASSES_PRESSURE_H

#include "passes/contraction.h"
#include "passes/schedule.h"

/* Chunks by which the epilogue's loads run ahead of their use (chunk_epilogue.c). */
enum { TCC_LOOKAHEAD = 4 };

/* What a kernel computes of its sum. */
typedef struct tcc_epilogue tcc_epilogue;
/* Of a function that has the contraction c still; it belongs to the arena. */
tcc_epilogue *tcc_epilogue_of(const tcc_func *f, const tcc_contraction *c, tcc_arena *arena);

typedef struct tcc_pressure {
    int64_t least;    /* accumulators and what every kernel has beside them */
    int64_t separate; /* with one chunk after the other */
    int64_t scarce;   /* with one, and with what ptxas can do without computed anew */
    int64_t together; /* with all that ptxas may take up at once */
    int64_t limit;    /* of the thread */
    int64_t group;    /* chunks of a block that can be taken up at once */
} tcc_pressure;

/* aligned: the variant stores by TMA, and loads pairs of neighbours at once. */
tcc_pressure tcc_pressure_of(const tcc_epilogue *e, const tcc_schedule *s, const tcc_target *t,
                             bool aligned);

/* Says in a function's attributes what its pressure means: `separate` makes the epilogue handle
 * groups of so many chunks one after the other; `may_spill`, which is at `place`, is the need where
 * even that is in doubt. */
void tcc_pressure_set(tcc_func *f, const tcc_pressure *p, tcc_loc place);
/* Warns of the functions that may spill. */
void tcc_pressure_warn(const tcc_ir *ir, tcc_diag *diag);

#endif
