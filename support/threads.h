/* threads: work that is done in several threads at once.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_THREADS_H
#define TCC_SUPPORT_THREADS_H

#include <stddef.h>

enum { TCC_MAX_THREADS = 17 };

/* How many threads so many pieces of work are worth: at most one for each processor, and one at least. */
size_t tcc_threads_for(size_t n_pieces);
/* Calls work(arg) in so many threads at once, of which this is one, or in fewer where no more can be had; returns when
 * all of them have. */
void tcc_run_threads(size_t n_threads, void *(*work)(void *arg), void *arg);

#endif
