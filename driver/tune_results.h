/* tune_results: what searches measured, in a file of lines to which any number of processes append.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_TUNE_RESULTS_H
#define TCC_DRIVER_TUNE_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"
#include "support/json.h"
#include "support/str.h"

typedef struct tcc_tune_result {
    const char *schedule;
    double time; /* INFINITY: wrong */
} tcc_tune_result;

typedef struct tcc_tune_results {
    const char *key; /* how a line begins that is about the same */
    int file;        /* to append to; -1: none */
    tcc_str text;    /* what it had */
    bool broken;     /* it does not end with a line's end */
    TCC_VEC(tcc_tune_result) all; /* of the same kernel; of two about one schedule the later counts */
} tcc_tune_results;

/* What a line has of a schedule; false where that is nothing. Its text is the line's. */
bool tcc_tune_result_of(const tcc_json *line, tcc_tune_result *out);

/* Appends the class of extents: those are of one that begin with the same two bits, and that the same power of two
 * divides, 16 at most. */
void tcc_tune_print_class(tcc_str *out, int64_t extent);

/* Opens the file, created if necessary, and reads its results for a key. path NULL: no file, and nothing is stored.
 * Lines that are not results are skipped. False with errno set. Running out of memory is handled by the arena. */
bool tcc_tune_results_open(tcc_tune_results *r, tcc_arena *arena, const char *path, const char *key);
void tcc_tune_results_close(tcc_tune_results *r);
/* What it had; NULL: nothing. */
const tcc_tune_result *tcc_tune_results_find(const tcc_tune_results *r, const char *schedule);
/* Appends a line at once. False with errno set. */
bool tcc_tune_results_add(tcc_tune_results *r, const char *schedule, double time);

#endif
