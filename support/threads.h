/* threads: work that is done in several threads at once.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_THREADS_H
#define TCC_SUPPORT_THREADS_H

#include <stddef.h>

enum { TCC_MAX_THREADS = 17 };

/* The number of threads for this many work items: at least one, at most one per processor. */
size_t tcc_threads_for(size_t n_pieces);
/* Calls work(arg) in this many threads including the calling one, or in fewer if no more can be created; returns when
 * all calls have returned. */
void tcc_run_threads(size_t n_threads, void *(*work)(void *arg), void *arg);

#endif
