/* trial: a kernel on one shape: its data, what the tensor level makes of them, and whether another
 * form of the kernel makes the same.
 *
 * Tensors hold small whole numbers, so that sums are exact in every order and results must agree
 * to the last bit. Only what expand-math does may change them: the first form after it is compared
 * within a tolerance, and those that come later with that one, to the bit again. The tolerance of a result is one unit of its type's last place, 2^-17 for f32, and what
 * rounding in f32 alone changes, 16 times; no tolerance is wide enough where a comparison, a
 * quotient or a root of such a result decides. Nor is it where rounding decides between infinity and
 * NaN: such an element may be any number of its interval (interp/interval.h).
 *
 * Where operands of a sum are computed, it may round, and each form adds in an order of its own. What
 * comes of such a sum is compared, after every pass, with the interval that interp/interval.h gives it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_TRIAL_H
#define TCC_DRIVER_TRIAL_H

#include "interp/interp.h"

enum { TCC_TRIAL_PHASES = 2 };

typedef struct tcc_trial_arg {
    const tcc_value *param;
    int64_t count;                      /* of elements */
    double *input;                      /* outputs begin as poison */
    double *want;                       /* the results of the tensor level */
    double *got;                        /* what the last form gave */
    double *of_phase[TCC_TRIAL_PHASES]; /* what the first form of each gave */
    double noise;        /* of results that a function rounds, only by rounding in f32 */
    double *low, *high;  /* the interval that each result is in; NULL: nothing rounds */
    int exactness;       /* of an output: exactness.h */
} tcc_trial_arg;

typedef struct tcc_trial {
    tcc_arena *scratch; /* for one run after the other */
    const tcc_func *kernel; /* as the frontend made it */
    const int64_t *dims;    /* extents in the order of its attribute `dims` */
    tcc_trial_arg *args;
    size_t n_args;
    bool rounds; /* some output comes of what expand-math may round otherwise */
    bool sums;   /* some output comes of a sum that rounds */
    int phase;   /* the kernel's: with functions, or without */
    bool ran[TCC_TRIAL_PHASES]; /* whether a form of each has */
} tcc_trial;

/* Where a form differs from the kernel. */
typedef struct tcc_difference {
    const tcc_trial_arg *arg;
    int64_t at; /* flat */
    double want, got;
} tcc_difference;

/* Prepares a trial of a kernel, which lives as long as the arena: random data, one element of each
 * tensor of rank 2 or more infinite if the seed is odd, and what the kernel computes from it. Runs take
 * memory from scratch, and leave it cleared. Errors are those of tcc_interp_run. */
tcc_status tcc_trial_prepare(tcc_trial *t, tcc_arena *arena, tcc_arena *scratch, const tcc_func *kernel,
                             const int64_t *dims, uint64_t seed, tcc_diag *diag);

/* Runs another form of the kernel, on the machine in the order given by the seed.
 * TCC_ERR_NO_VARIANT and nothing reported: f is not valid for this shape. Errors are those of
 * tcc_interp_run. */
tcc_status tcc_trial_run(tcc_trial *t, const tcc_func *f, uint64_t order, tcc_diag *diag);

/* The same with options of one's own; all errors are reported. */
tcc_status tcc_trial_run_with(tcc_trial *t, const tcc_func *f, const tcc_interp_options *o,
                              tcc_diag *diag);

/* Whether what f gave in the last run is what it should be; else *out is the first difference. */
bool tcc_trial_agrees(tcc_trial *t, const tcc_func *f, tcc_difference *out);

/* Appends "element [1, 2] of 'C' is 3, not 4", "M=5, N=6". */
void tcc_difference_print(tcc_str *out, const tcc_trial *t, const tcc_difference *d);
void tcc_trial_print_dims(tcc_str *out, const tcc_trial *t);

/* The numbers from which parameters of a type are drawn, except infinity. */
tcc_int_range tcc_trial_range(const tcc_func *kernel, const tcc_type *type);

/* The extent of a dimension of the trial's kernel. */
int64_t tcc_trial_extent(const tcc_trial *t, tcc_dim d);

#endif
