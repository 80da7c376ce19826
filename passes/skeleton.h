/* skeleton: what a kernel becomes under a candidate schedule, as far as its cost depends on it: a copy of the function,
 * tiled, laid out and with its stages by the passes that do the same to the kernel itself, and not lowered.
 * choose-schedule reads off it what shared memory its tiles take and, once its stages are chosen by that, what
 * estimate-cost writes into the kernel.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_SKELETON_H
#define TCC_PASSES_SKELETON_H

#include "passes/choose_schedule.h"

/* A search for the schedule with the least cost. */
typedef struct tcc_search {
    tcc_choice *ch;
    const void *user;
    double margin;     /* how much less than the best before it, in parts of 1, one must take that replaces it */
    bool refused;      /* whether passes have refused one that fits */
    bool bounds;       /* whether candidates are only looked through for the one that may take least */
    tcc_schedule best; /* so far */
    double cycles;     /* that it takes, or at least takes; infinite: there is none */
    double limit;      /* what some candidate takes: others need not take more */
} tcc_search;

/* Completes ch->s, a schedule without stages or with them, by what its tiles take (tcc_family_passes.fill), and checks
 * that they fit. */
tcc_status tcc_skeleton_fill(tcc_choice *ch);
/* Whether they do. */
bool tcc_skeleton_can_fill(const tcc_choice *ch);

/* Counted in the code that the skeleton under ch->s, which is complete, is lowered to (live.h). Nothing is lacked where a
 * pass refuses it. */
tcc_need tcc_skeleton_need(tcc_choice *ch);

/* Finds the schedule of a launch of ch->f that takes least time, of those that `list` hands to tcc_search_try and that
 * fit, completed as by tcc_skeleton_fill. An extent that is not known counts as large. `user` is for `list`, which is called twice. False when
 * none fits. */
bool tcc_search_run(tcc_choice *ch, void (*list)(tcc_search *q), const void *user, double margin, tcc_schedule *out);
/* times: how many times as long it takes as its skeleton's cost says. */
void tcc_search_try(tcc_search *q, const tcc_schedule *s, double times);

#endif
