/* result: the result of one run. Plain data, which can be sent through a pipe.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_RESULT_H
#define TCC_TOOLS_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct check_result {
    bool done;
    double error, tolerance;     /* relative error norm, of the output that is worst for its own */
    double max_abs;              /* largest absolute error of any output */
    uint64_t rows, total_rows;   /* compared, of how many */
    uint64_t unwritten;          /* elements left as they were */
    uint64_t special;            /* wrong infinities, NaNs and integers */
    uint64_t far;                /* elements further off than rounding takes them */
    uint64_t stray;              /* bytes written outside an output */
} check_result;

typedef struct bench_result {
    bool done;
    double us, tflops, spread;     /* median, and (max - min) / median of the rounds */
    double gbytes;                 /* a second, that tensors have: each is read or written once, or both */
    int rounds, sets;              /* of inputs, in rotation */
    bool against;                  /* the rest is there */
    double lt_default, lt_best;    /* cuBLASLt's TFLOP/s by its first and its fastest pick */
    int best_pick, n_picks;
    double lt_difference;          /* relative, of the results; NaN: not compared */
} bench_result;

typedef struct tune_result {
    bool done;
    uint64_t measured, wrong, known, refused, dear; /* tcc_tune_progress */
    double own_us, us;     /* of the compiler's choice and of the best schedule, in turn */
    double tflops;         /* of the latter */
    char schedule[1024];
} tune_result;

typedef struct run_result {
    int status;          /* an exit status: options.h */
    bool driver_failed;  /* the GPU may be unusable */
    char kernel[64], dims[160], variant[96];
    char device[160];    /* with its driver's version */
    bool is_gpu;
    char message[512];   /* what is wrong, "" when nothing is */
    double ms;           /* of the one launch that was checked */
    char timeline[512];  /* about the timeline, "" when there is none */
    check_result check;
    bench_result bench;
    tune_result tune;
} run_result;

/* Several lines, for one run. */
void result_print(FILE *out, const run_result *r);
/* One line, for a script's. */
void result_print_row(FILE *out, const run_result *r);
/* A Markdown table's head and one row. `device` is what the results were obtained on. */
void result_print_table_head(FILE *out, const run_result *device);
void result_print_table_row(FILE *out, const char *file, const run_result *r);

#endif
