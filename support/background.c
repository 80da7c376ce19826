/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/background.h"

#include <stddef.h>

void tcc_background_init(tcc_background *b, void (*begin)(void *user), void *user)
{
    *b = (tcc_background){.begin = begin, .user = user};
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->changed, NULL);
    b->last = &b->first;
}

static void *work(void *arg)
{
    tcc_background *b = arg;
    if (b->begin)
        b->begin(b->user);
    pthread_mutex_lock(&b->mutex);
    for (;;) {
        while (!b->first && !b->ends)
            pthread_cond_wait(&b->changed, &b->mutex);
        tcc_job *job = b->first;
        if (!job || b->ends)
            break;
        b->first = job->next;
        if (!b->first)
            b->last = &b->first;
        b->is_busy = true;
        pthread_mutex_unlock(&b->mutex);
        job->run(job, true);
        pthread_mutex_lock(&b->mutex);
        b->is_busy = false;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

void tcc_background_add(tcc_background *b, tcc_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&b->mutex);
    if (!b->runs)
        b->runs = !b->ends && !pthread_create(&b->thread, NULL, work, b);
    bool taken = b->runs && !b->ends;
    if (taken) {
        *b->last = job;
        b->last = &job->next;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->mutex);
    if (!taken)
        job->run(job, false);
}

void tcc_background_wait(tcc_background *b)
{
    pthread_mutex_lock(&b->mutex);
    while (b->is_busy || b->first)
        pthread_cond_wait(&b->changed, &b->mutex);
    pthread_mutex_unlock(&b->mutex);
}

void tcc_background_end(tcc_background *b)
{
    pthread_mutex_lock(&b->mutex);
    bool runs = b->runs && !b->ends;
    tcc_job *job = b->first;
    b->ends = true;
    b->first = NULL;
    b->last = &b->first;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->mutex);
    if (runs)
        pthread_join(b->thread, NULL);
    for (tcc_job *next; job; job = next) {
        next = job->next;
        job->run(job, false);
    }
}

void tcc_background_destroy(tcc_background *b)
{
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->mutex);
}
