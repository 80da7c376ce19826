/* bench: times contenders in turn, in one process, on a warm GPU.
 *
 * Each round runs every contender once, in an order of its own, so that clocks and heat are shared
 * fairly; before it is timed a contender runs as long untimed, so that it is timed in its own
 * thermal state. What counts is the median over the rounds.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_BENCH_H
#define TCC_TOOLS_BENCH_H

#include <tcc/tcc_runtime.h>

enum { BENCH_ROUNDS = 11 };

typedef struct contender {
    /* Enqueues one run on input set `set`. */
    tcc_status (*enqueue)(void *user, int set);
    void *user;
    int rounds;
    double us[BENCH_ROUNDS]; /* result: microseconds of one run, sorted */
} contender;

double contender_median(const contender *c);

/* How long it takes: a round of one contender, and the warm-up in all, in milliseconds. */
typedef struct bench_effort {
    double round_ms, warm_ms;
    int rounds; /* BENCH_ROUNDS at most */
} bench_effort;

/* For a result, and for choosing among many. */
extern const bench_effort bench_full, bench_brief;

/* Fills in every contender's times. Input sets 0 … n_sets - 1 are used in rotation. */
tcc_status bench_rounds(tcc_device *dev, const bench_effort *effort, contender *contenders, int n, int n_sets);

/* Times one contender alone, briefly: for choosing among many. */
tcc_status bench_quick(tcc_device *dev, contender *c, int n_sets, double *us);

#endif
