/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include <tcc/tcc_runtime.h>

static const tcc_bench_effort usual = {25, 500, TCC_BENCH_ROUNDS};

enum { CALIBRATION_RUNS = 3, MAX_RUNS = 20000 };

/* A batch of runs, for tcc_device_time. */
typedef struct batch {
    tcc_contender *c;
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

/* A random order of n contenders. */
static void shuffle(size_t *order, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i-- > 1;) {
        *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t j = (size_t)((*random >> 33) % (i + 1)), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

/* Warms a contender up, one of n. */
static tcc_status prepare(tcc_device *dev, const tcc_bench_effort *effort, batch *b, size_t n)
{
    double us, batches = effort->warm_ms / effort->round_ms / (double)n;
    tcc_status status = calibrate(dev, b, effort->round_ms);
    for (int warm = 0; !status && warm < batches; warm++)
        status = time_batch(dev, b, &us);
    return status;
}

static tcc_status run_round(tcc_device *dev, batch *batches, const size_t *order, size_t n, int round)
{
    tcc_status status = TCC_OK;
    for (size_t i = 0; !status && i < n; i++) {
        batch *b = &batches[order[i]];
        status = enqueue_batch(b);
        if (!status)
            status = time_batch(dev, b, &b->c->us[round]);
    }
    return status;
}

tcc_status tcc_bench(tcc_device *dev, const tcc_bench_effort *effort, tcc_contender *contenders, size_t n, int n_sets)
{
    batch batches[TCC_BENCH_CONTENDERS];
    uint64_t random = 1;
    tcc_status status = TCC_OK;
    effort = effort ? effort : &usual;
    if (n > TCC_BENCH_CONTENDERS || n_sets < 1 || effort->rounds < 1 || effort->rounds > TCC_BENCH_ROUNDS ||
        !(effort->round_ms > 0))
        return TCC_ERR_ARGUMENT;
    for (size_t i = 0; !status && i < n; i++) {
        batches[i] = (batch){.c = &contenders[i], .n_sets = n_sets};
        contenders[i].rounds = effort->rounds;
        status = prepare(dev, effort, &batches[i], n);
    }
    for (int round = 0; !status && round < effort->rounds; round++) {
        size_t order[TCC_BENCH_CONTENDERS];
        shuffle(order, n, &random);
        status = run_round(dev, batches, order, n, round);
    }
    for (size_t i = 0; !status && i < n; i++)
        qsort(contenders[i].us, (size_t)effort->rounds, sizeof contenders[i].us[0], by_value);
    return status;
}

double tcc_contender_median(const tcc_contender *c)
{
    return c->us[c->rounds / 2];
}

tcc_status tcc_bench_enqueue(void *user, int set)
{
    const tcc_bench_launch *l = user;
    return tcc_kernel_launch(l->kernel, l->dims, l->n_dims, l->args + (size_t)set * l->n_args, l->n_args, NULL);
}
