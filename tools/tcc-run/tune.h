/* tune: --tune.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_TUNE_H
#define TCC_TOOLS_TUNE_H

#include "tools/tcc-run/measure.h"

/* Searches for the schedule with which the task's kernel, which has none, takes the least time. initial: contents of
 * inouts before a launch. False after reporting. */
bool tune(session *s, const options *o, const measure_task *task, const void *const *initial, tune_result *out);

#endif
