/* check: compares outputs with tcc_reference_intervals, which computes in double precision and says how
 * far rounding may take each element. Random errors, which add up as roots do, are far smaller than that:
 * so the relative error norm is bounded, too.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_CHECK_H
#define TCC_TOOLS_CHECK_H

#include "tools/tcc-run/result.h"
#include "tools/tcc-run/tensor.h"

/* What the reference starts from: every argument as doubles, before the launch. */
typedef struct reference {
    double **args; /* as tcc_reference_intervals takes them */
    double **low, **high;
    double **before; /* of an inout: what args has before the reference runs */
    size_t n_args;
} reference;

/* Takes the arguments' values: tensors from their host data, scalars[i] for the others. False
 * after reporting. */
bool reference_prepare(session *s, const tensor *args, const double *scalars, size_t n,
                       reference *out);
void reference_free(reference *ref);

typedef struct check_task {
    const char *manifest, *kernel;
    const int64_t *dims;
    const char *sum;  /* type that its sum is added in; NULL: not known */
    double macs;      /* multiply-adds of the whole kernel */
    double tolerance; /* 0: by type */
    int64_t rows;     /* 0: by cost */
    uint64_t seed;    /* of the sample */
} check_task;

/* Runs the reference on all rows or a sample and compares the tensors' host data with it. Returns
 * whether they agree, with the numbers in *out and what is wrong reported. */
bool check_outputs(session *s, const check_task *task, const tensor *args, reference *ref,
                   check_result *out);

#endif
