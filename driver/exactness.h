/* exactness: which of a kernel's results rounding may change from one form of it to another.
 *
 * Each value of the tensor level is followed from the inputs on: what its numbers are multiples of and how large
 * they get says whether a sum of them is the same in every order, and what lies behind a function or a sum of rounded
 * numbers is as inexact as that.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_EXACTNESS_H
#define TCC_DRIVER_EXACTNESS_H

#include "driver/trial.h"

/* What an output comes of; the greater one decides. */
typedef enum tcc_exactness {
    TCC_EXACT,   /* what every form rounds alike */
    TCC_ROUNDED, /* a function */
    TCC_JUMPS,   /* a rounded number decides, or is near a pole */
    TCC_SUMMED   /* a sum that rounds: every form may add in another order */
} tcc_exactness;

/* How far a form is: no pass but one that goes from one to the next rounds otherwise, sums apart. */
enum {
    TCC_HAS_FUNCTIONS, /* until expand-math */
    TCC_HAS_INSTRUCTIONS
};
int tcc_phase_of(const tcc_func *f);

/* Fills in the exactness of a trial's outputs, and from them `rounds`, `sums`, `varies` and `phase`. */
void tcc_find_exactness(tcc_trial *t, tcc_arena *arena);

#endif
