/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/parallel.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

typedef struct piece {
    size_t begin, end;
    void (*fn)(size_t begin, size_t end, void *user);
    void *user;
} piece;

static void *run_piece(void *arg)
{
    piece *p = arg;
    p->fn(p->begin, p->end, p->user);
    return NULL;
}

void parallel_for(size_t n, size_t grain, void (*fn)(size_t begin, size_t end, void *user),
                  void *user)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n_pieces = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (size_t)cores;
    if (n_pieces > n / grain)
        n_pieces = n / grain ? n / grain : 1;
    piece pieces[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    bool started[MAX_THREADS];
    for (size_t i = 0; i < n_pieces; i++) {
        pieces[i] = (piece){n / n_pieces * i, i + 1 == n_pieces ? n : n / n_pieces * (i + 1), fn,
                            user};
        /* The last piece is for this thread, and so are pieces for which no other thread could be
         * created. */
        started[i] = i + 1 < n_pieces && !pthread_create(&threads[i], NULL, run_piece, &pieces[i]);
        if (!started[i])
            run_piece(&pieces[i]);
    }
    for (size_t i = 0; i < n_pieces; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
}
