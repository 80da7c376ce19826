/* background: jobs that a thread of their own does, one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_BACKGROUND_H
#define TCC_SUPPORT_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>

/* The head of a job, which its owner allocates. */
typedef struct tcc_job {
    /* Does it where it is wanted, and frees it. */
    void (*run)(struct tcc_job *job, bool is_wanted);
    struct tcc_job *next;
} tcc_job;

typedef struct tcc_background {
    void (*begin)(void *user); /* called first in the thread; may be NULL */
    void *user;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    pthread_t thread;
    bool runs, ends, is_busy;
    tcc_job *first, **last;
} tcc_background;

void tcc_background_init(tcc_background *b, void (*begin)(void *user), void *user);
/* Takes a job. The thread starts with the first; where none can be had, the job is run as one that is not wanted. */
void tcc_background_add(tcc_background *b, tcc_job *job);
/* Returns when all jobs are done. */
void tcc_background_wait(tcc_background *b);
/* Returns when the job that is being done is; the others, and those that come later, are not wanted any more. */
void tcc_background_end(tcc_background *b);
/* After that, when no other thread uses it. */
void tcc_background_destroy(tcc_background *b);

#endif
