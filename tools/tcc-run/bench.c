/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/bench.h"

#include <stdint.h>
#include <stdlib.h>

const bench_effort bench_full = {25, 500, BENCH_ROUNDS}, bench_brief = {3, 10, 5};

#define QUICK_MS 10.0

enum { CALIBRATION_RUNS = 3, MAX_RUNS = 20000, MAX_CONTENDERS = 4 };

/* A batch of runs, for tcc_device_time. */
typedef struct batch {
    contender *c;
    int runs, n_sets, next_set;
} batch;

static tcc_status enqueue_batch(void *user)
{
    batch *b = user;
    for (int i = 0; i < b->runs; i++) {
        tcc_status status = b->c->enqueue(b->c->user, b->next_set);
        if (status)
            return status;
        b->next_set = (b->next_set + 1) % b->n_sets;
    }
    return TCC_OK;
}

/* Microseconds of one run in a batch. */
static tcc_status time_batch(tcc_device *dev, batch *b, double *us)
{
    float ms = 0;
    tcc_status status = tcc_device_time(dev, enqueue_batch, b, &ms);
    *us = 1000.0 * (double)ms / b->runs;
    return status;
}

/* The number of runs that take `ms`. */
static tcc_status calibrate(tcc_device *dev, batch *b, double ms)
{
    double us = 0;
    b->runs = CALIBRATION_RUNS;
    tcc_status status = enqueue_batch(b);
    if (!status)
        status = time_batch(dev, b, &us);
    double runs = us > 0 ? 1000 * ms / us : MAX_RUNS;
    b->runs = runs < CALIBRATION_RUNS ? CALIBRATION_RUNS : runs > MAX_RUNS ? MAX_RUNS : (int)runs;
    return status;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double contender_median(const contender *c)
{
    return c->us[c->rounds / 2];
}

tcc_status bench_quick(tcc_device *dev, contender *c, int n_sets, double *us)
{
    batch b = {.c = c, .n_sets = n_sets};
    tcc_status status = calibrate(dev, &b, QUICK_MS);
    double first = 0, second = 0;
    if (!status)
        status = time_batch(dev, &b, &first);
    if (!status)
        status = time_batch(dev, &b, &second);
    *us = first < second ? first : second;
    return status;
}

/* A random order of n contenders. */
static void shuffle(int *order, int n, uint64_t *random)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int j = (int)((*random >> 33) % (uint64_t)(i + 1)), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

tcc_status bench_rounds(tcc_device *dev, const bench_effort *effort, contender *contenders, int n, int n_sets)
{
    batch batches[MAX_CONTENDERS];
    uint64_t random = 1;
    if (n > MAX_CONTENDERS)
        return TCC_ERR_ARGUMENT;
    for (int i = 0; i < n; i++) {
        batches[i] = (batch){.c = &contenders[i], .n_sets = n_sets};
        contenders[i].rounds = effort->rounds;
        tcc_status status = calibrate(dev, &batches[i], effort->round_ms);
        double us;
        for (int warm = 0; !status && warm < effort->warm_ms / effort->round_ms / n; warm++)
            status = time_batch(dev, &batches[i], &us);
        if (status)
            return status;
    }
    for (int round = 0; round < effort->rounds; round++) {
        int order[MAX_CONTENDERS];
        shuffle(order, n, &random);
        for (int i = 0; i < n; i++) {
            batch *b = &batches[order[i]];
            tcc_status status = enqueue_batch(b);
            if (!status)
                status = time_batch(dev, b, &b->c->us[round]);
            if (status)
                return status;
        }
    }
    for (int i = 0; i < n; i++)
        qsort(contenders[i].us, (size_t)effort->rounds, sizeof contenders[i].us[0], by_value);
    return TCC_OK;
}
