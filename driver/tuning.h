/* tuning: what a search for a schedule hands over.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_TUNING_H
#define TCC_DRIVER_TUNING_H

#include <tcc/tcc_tune.h>

/* With room for n schedules; NULL when memory is short. */
tcc_tuning *tcc_tuning_create(size_t n);
/* Adds one whose results are right: any other time than INFINITY or NaN. */
tcc_status tcc_tuning_add(tcc_tuning *t, const char *schedule, double time);
/* Puts the fastest first. */
void tcc_tuning_finish(tcc_tuning *t, const tcc_tune_progress *progress);

#endif
