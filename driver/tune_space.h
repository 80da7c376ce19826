/* tune_space: the schedules that a search goes through.
 *
 * A point says something of some knobs and leaves the others to the compiler. A knob is a key of a schedule, or of a
 * key that has a number for each index, one of these.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_TUNE_SPACE_H
#define TCC_DRIVER_TUNE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "support/str.h"

enum { TCC_KNOBS = 19, TCC_KNOB_UNSAID = -1, TCC_TUNE_AXES = 3 };

typedef struct tcc_point {
    int64_t said[TCC_KNOBS];
} tcc_point;

/* Whose schedule it is. */
typedef struct tcc_tune_subject {
    const char *kernel;
    const struct tcc_target *target;
    const char *axes[TCC_TUNE_AXES]; /* indices: of rows and columns, in order, and the summed one */
} tcc_tune_subject;

/* The number of combinations that a search begins with, and the i-th, in an order that has some of each kind at any
 * time; false where its parts do not go together. */
size_t tcc_space_count(const struct tcc_target *target);
bool tcc_space_at(const struct tcc_target *target, size_t i, tcc_point *out);

/* The i-th point that differs from p in one knob, and in those that do not go with it; false past the last. */
bool tcc_space_neighbour(const struct tcc_target *target, const tcc_point *p, size_t i, tcc_point *out);

/* In the language's syntax. */
void tcc_space_print(tcc_str *out, const tcc_tune_subject *subject, const tcc_point *p);

#endif
