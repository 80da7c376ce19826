/* measure: --bench and --against.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_MEASURE_H
#define TCC_TOOLS_MEASURE_H

#include "tools/tcc-run/result.h"
#include "tools/tcc-run/tensor.h"

typedef struct measure_task {
    const tcc_kernel *kernel;
    const int64_t *dims;
    const tensor *tensors; /* uploaded; the outputs' host data is one launch's result */
    const tcc_arg *args;   /* with the tensors' addresses */
    size_t n_args;
    double flops;          /* of one launch */
    against against;
} measure_task;

/* Times the kernel, in turn with cuBLASLt where asked for. False after reporting. */
bool measure(session *s, const measure_task *task, bench_result *out);

#endif
