/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/threads.h"

#include <pthread.h>
#include <unistd.h>

size_t tcc_threads_for(size_t n_pieces)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = processors > 1 ? (size_t)processors : 1;
    n = n < n_pieces ? n : n_pieces;
    return n < 1 ? 1 : n < TCC_MAX_THREADS ? n : TCC_MAX_THREADS;
}

void tcc_run_threads(size_t n_threads, void *(*work)(void *arg), void *arg)
{
    pthread_t threads[TCC_MAX_THREADS];
    size_t n = 0;
    while (n < TCC_MAX_THREADS && n + 1 < n_threads && !pthread_create(&threads[n], NULL, work, arg))
        n++;
    work(arg);
    while (n)
        pthread_join(threads[--n], NULL);
}
