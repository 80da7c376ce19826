/* verdicts: what the checker and the interpreter say of a function.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_VERDICTS_H
#define TCC_TESTS_VERDICTS_H

#include "tests/mutants/mutants.h"

/* A subject, ready to be run on each of its shapes. */
typedef struct bench bench;

bench *bench_open(const subject *s);
void bench_close(bench *b);
/* A copy of its function in an arena of its own. */
tcc_func *bench_copy(bench *b, tcc_arena *arena);

enum { N_ORDERS = 5 }; /* in which warps and asynchronous operations proceed */

/* What is wrong with f; NULL when nothing is found. Valid until the next call. The interpreter runs every shape in
 * so many orders, from that one on. */
const char *checker_says(bench *b, const tcc_func *f);
const char *interpreter_says(bench *b, const tcc_func *f, unsigned order, unsigned n_orders);

#endif
