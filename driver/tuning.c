/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct tuned {
    char *schedule;
    double time;
} tuned;

struct tcc_tuning {
    tcc_tune_progress progress;
    size_t n;
    tuned all[];
};

tcc_tuning *tcc_tuning_create(size_t n)
{
    return calloc(1, sizeof(tcc_tuning) + n * sizeof(tuned));
}

tcc_status tcc_tuning_add(tcc_tuning *t, const char *schedule, double time)
{
    if (!isfinite(time))
        return TCC_OK;
    char *copy = strdup(schedule);
    if (copy)
        t->all[t->n++] = (tuned){copy, time};
    return copy ? TCC_OK : TCC_ERR_MEMORY;
}

static int by_time(const void *a, const void *b)
{
    const tuned *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

void tcc_tuning_finish(tcc_tuning *t, const tcc_tune_progress *progress)
{
    qsort(t->all, t->n, sizeof *t->all, by_time);
    t->progress = *progress;
}

void tcc_tuning_destroy(tcc_tuning *t)
{
    for (size_t i = 0; t && i < t->n; i++)
        free(t->all[i].schedule);
    free(t);
}

size_t tcc_tuning_count(const tcc_tuning *t)
{
    return t ? t->n : 0;
}

const char *tcc_tuning_schedule(const tcc_tuning *t, size_t i)
{
    return i < tcc_tuning_count(t) ? t->all[i].schedule : NULL;
}

double tcc_tuning_time(const tcc_tuning *t, size_t i)
{
    return i < tcc_tuning_count(t) ? t->all[i].time : INFINITY;
}

tcc_tune_progress tcc_tuning_progress(const tcc_tuning *t)
{
    return t ? t->progress : (tcc_tune_progress){.best = INFINITY};
}
