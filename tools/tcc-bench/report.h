/* report: what tcc-bench makes of its results.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_REPORT_H
#define TCC_TOOLS_REPORT_H

#include "tools/tcc-run/result.h"

/* The results of one command. */
typedef struct report {
    char device[sizeof((run_result *)NULL)->device];
    char date[32];
    char command[1024];
    run_result *rows; /* in the order of the shapes */
    size_t n;
} report;

/* The geometric means, over the compared rows, of our speed divided by that of cuBLASLt's default pick and of its
 * best; returns the number of rows. */
size_t report_means(const report *r, double *by_default, double *by_best);

void report_print_head(FILE *out);
void report_print_row(FILE *out, const run_result *r);
void report_print_means(FILE *out, const report *r);

void report_write_json(FILE *out, const report *r);
void report_write_markdown(FILE *out, const report *r);
/* A program for gnuplot that draws an SVG: the ratio of each shape, and all of them under the roof that the fastest
 * and the widest of them make. */
void report_write_plot(FILE *out, const report *r);

#endif
