/* input_sets: copies of a launch's arguments at other addresses, for timing without warm caches.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_INPUT_SETS_H
#define TCC_TOOLS_INPUT_SETS_H

#include "tools/tcc-run/measure.h"

typedef struct input_sets {
    tcc_arg *args;   /* n * n_args of them; the first set is the task's own */
    tensor *copies;  /* the same, owned; the first n_args unused */
    int n;
} input_sets;

/* False after reporting. sets_free is due either way. */
bool sets_create(session *s, const measure_task *task, input_sets *out);
void sets_free(session *s, const measure_task *task, input_sets *sets);

/* Launches of a kernel with the sets' arguments, for a contender. */
tcc_bench_launch launches_of(const measure_task *task, const tcc_kernel *kernel, const input_sets *sets);

#endif
