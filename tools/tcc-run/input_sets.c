/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/input_sets.h"

#include <stdlib.h>

/* Input sets in rotation together exceed this: several times the 50 or 60 MB of a Hopper's L2, so
 * that no run finds its inputs there. */
enum { ROTATION_BYTES = 256 << 20, MAX_SETS = 32 };

void sets_free(session *s, const measure_task *task, input_sets *sets)
{
    for (size_t i = task->n_args; sets->copies && i < (size_t)sets->n * task->n_args; i++)
        if (sets->copies[i].base)
            tcc_device_free(s->dev, sets->copies[i].base);
    free(sets->copies);
    free(sets->args);
}

bool sets_create(session *s, const measure_task *task, input_sets *out)
{
    size_t bytes = 1, n = task->n_args;
    for (size_t i = 0; i < n; i++)
        bytes += task->tensors[i].type ? elem_bytes(task->tensors[i].type, task->tensors[i].span) : 0;
    size_t wanted = ROTATION_BYTES / bytes + 1;
    *out = (input_sets){.n = wanted > MAX_SETS ? MAX_SETS : (int)wanted};
    out->args = calloc((size_t)out->n * n, sizeof *out->args);
    out->copies = calloc((size_t)out->n * n, sizeof *out->copies);
    if (!out->args || !out->copies) {
        session_error(s, "out of memory for input sets");
        return false;
    }
    for (size_t i = 0; i < (size_t)out->n * n; i++) {
        const tensor *t = &task->tensors[i % n];
        out->args[i] = task->args[i % n];
        if (i < n || !t->type)
            continue;
        out->copies[i] = *t;
        out->copies[i].base = 0;
        if (tensor_upload(s, &out->copies[i], t->address % 256 != 0))
            return false;
        out->args[i].device = out->copies[i].address;
    }
    return true;
}

tcc_bench_launch launches_of(const measure_task *task, const tcc_kernel *kernel, const input_sets *sets)
{
    return (tcc_bench_launch){kernel, task->dims, tcc_kernel_dim_count(kernel), sets->args, task->n_args};
}
