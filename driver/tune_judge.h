/* tune_judge: what the compiler makes of a schedule that is tried.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_TUNE_JUDGE_H
#define TCC_DRIVER_TUNE_JUDGE_H

#include <tcc/tcc.h>

#include "driver/tune_space.h"
#include "support/arena.h"
#include "support/expr.h"

/* What schedules are tried of, and for which launch. */
typedef struct tcc_tune_program {
    const char *source;
    tcc_compile_options compile;
    const int64_t *dims;
    size_t n_dims;
    tcc_device_attrs attrs;
    tcc_tune_subject subject; /* tcc_tune_look */
} tcc_tune_program;

/* Compiles the program as it is and finds its subject: a kernel that has a product and no schedule. Returns what
 * tcc_compile_with does, or TCC_ERR_ARGUMENT, reported. */
tcc_status tcc_tune_look(tcc_tune_program *p, tcc_context *ctx, const char *kernel, tcc_arena *arena);

typedef struct tcc_refusal {
    char text[512]; /* the first error */
} tcc_refusal;

/* Compiles only the subject, with a schedule appended to the source, as a user would add it. */
tcc_status tcc_tune_compile(const tcc_tune_program *p, const char *schedule, tcc_emit emit, tcc_refusal *why,
                            tcc_module **out);

typedef struct tcc_verdict {
    tcc_status status; /* TCC_OK: the launch would run a variant of this schedule */
    char *schedule;    /* the complete schedule; the caller frees it */
    int64_t cost;
} tcc_verdict;

/* Judges a point, in about a millisecond. Thread-safe. */
tcc_verdict tcc_tune_judge(const tcc_tune_program *p, const tcc_point *point, tcc_refusal *why);

/* Judges what the compiler chooses where it knows the extents, as a schedule for all extents. dim_names: n_dims of
 * them. A kernel with a schedule of its own has another status than TCC_OK. Of `p` source, compile, dims, n_dims, attrs
 * and subject.kernel are looked at. Thread-safe. */
tcc_verdict tcc_tune_judge_known(const tcc_tune_program *p, const char *const *dim_names);

#endif
