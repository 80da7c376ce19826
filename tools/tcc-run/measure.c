/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tcc-run/input_sets.h"
#include "tools/tcc-run/product.h"

/* How far from ours a result of cuBLASLt may be: both carry one rounding. */
#define MAX_DIFFERENCE 2e-2

/* ---- cuBLASLt --------------------------------------------------------------------------- */

typedef struct theirs {
    const measure_task *task;
    const input_sets *sets;
    product product;
    cublaslt_plan *plan;
    int pick;
    uint64_t bias, workspace;
} theirs;

static tcc_status enqueue_product(const theirs *t, int set, uint64_t d)
{
    const tcc_arg *args = t->sets->args + (size_t)set * t->task->n_args;
    bool ok = cublaslt_enqueue(t->plan, t->pick, args[t->product.x].device,
                               args[t->product.y].device, d, t->bias, t->workspace);
    return ok ? TCC_OK : TCC_ERR_DRIVER;
}

static tcc_status enqueue_theirs(void *user, int set)
{
    const theirs *t = user;
    const tcc_arg *args = t->sets->args + (size_t)set * t->task->n_args;
    return enqueue_product(t, set, args[t->product.d].device);
}

/* The bias in D's type, which cuBLASLt needs. */
static tcc_status upload_bias(session *s, theirs *t)
{
    const tensor *bias = &t->task->tensors[t->product.bias];
    const elem_type *type = t->task->tensors[t->product.d].type;
    void *host = malloc(elem_bytes(type, bias->n));
    if (!host)
        return TCC_ERR_MEMORY;
    for (size_t i = 0; i < bias->n; i++)
        elem_set(type, host, i, elem_get(bias->type, bias->host, i));
    tcc_status status = tcc_device_alloc(s->dev, elem_bytes(type, bias->n), &t->bias);
    if (!status)
        status = tcc_device_write(s->dev, t->bias, host, elem_bytes(type, bias->n));
    free(host);
    return status;
}

static double relative_difference(const elem_type *type, const void *a, const void *b, size_t n)
{
    double difference2 = 0, norm2 = 0;
    for (size_t i = 0; i < n; i++) {
        double x = elem_get(type, a, i), y = elem_get(type, b, i);
        difference2 += (x - y) * (x - y);
        norm2 += y * y;
    }
    return difference2 > 0 ? sqrt(difference2 / norm2) : 0;
}

/* Runs the product once into a buffer of its own and compares it with our result. */
static bool compare_results(session *s, const theirs *t, double *out)
{
    const tensor *d = &t->task->tensors[t->product.d];
    void *host = malloc(d->bytes ? d->bytes : 1);
    uint64_t buffer = 0;
    tcc_status status = host ? tcc_device_alloc(s->dev, d->bytes, &buffer) : TCC_ERR_MEMORY;
    if (!status)
        status = enqueue_product(t, 0, buffer);
    if (!status)
        status = tcc_device_sync(s->dev);
    if (!status)
        status = tcc_device_read(s->dev, host, buffer, d->bytes);
    if (!status)
        *out = relative_difference(d->type, d->host, host, d->n);
    if (buffer)
        tcc_device_free(s->dev, buffer);
    free(host);
    if (status)
        session_error(s, "cuBLASLt's product failed: %s", tcc_status_name(status));
    else if (!(*out <= MAX_DIFFERENCE))
        session_error(s, "cuBLASLt's result differs by %.2e", *out);
    return !status && *out <= MAX_DIFFERENCE;
}

/* The fastest of the heuristics' picks; -1 after reporting when none runs. */
static int find_best_pick(session *s, theirs *t, int n_sets)
{
    double best_us = INFINITY;
    int best = -1;
    for (t->pick = 0; t->pick < cublaslt_plan_count(t->plan); t->pick++) {
        static const tcc_bench_effort quick = {.round_ms = 10, .rounds = 2};
        tcc_contender c = {.enqueue = enqueue_theirs, .user = t};
        if (!tcc_bench(s->dev, &quick, &c, 1, n_sets) && c.us[0] < best_us) {
            best_us = c.us[0];
            best = t->pick;
        }
    }
    if (best < 0)
        session_error(s, "none of cuBLASLt's picks runs");
    return best;
}

static void theirs_free(session *s, theirs *t)
{
    if (t->bias)
        tcc_device_free(s->dev, t->bias);
    if (t->workspace)
        tcc_device_free(s->dev, t->workspace);
    cublaslt_plan_destroy(t->plan);
}

static bool theirs_create(session *s, const measure_task *task, const input_sets *sets, theirs *out)
{
    char why[256];
    *out = (theirs){.task = task, .sets = sets};
    bool relu_bias = task->against == AGAINST_RELU_BIAS;
    cublaslt *lt = session_cublaslt(s);
    if (!lt)
        return false;
    if (!product_find(task->tensors, task->n_args, relu_bias, &out->product, why, sizeof why) ||
        !(out->plan = cublaslt_plan_create(lt, &out->product.problem, why, sizeof why))) {
        session_error(s, "%s", why);
        return false;
    }
    return (!relu_bias || !upload_bias(s, out)) &&
           !tcc_device_alloc(s->dev, CUBLASLT_WORKSPACE_BYTES, &out->workspace);
}

/* ---- measuring -------------------------------------------------------------------------- */

static double tflops(const measure_task *task, const tcc_contender *c)
{
    return task->flops / tcc_contender_median(c) * 1e-6;
}

static double bytes_moved(const measure_task *task)
{
    double bytes = 0;
    for (size_t i = 0; i < task->n_args; i++) {
        const tensor *t = &task->tensors[i];
        if (t->type)
            bytes += (double)t->bytes * (t->info->role == TCC_ARG_INOUT ? 2 : 1);
    }
    return bytes;
}

static bool run_rounds(session *s, tcc_contender *contenders, int n, int n_sets)
{
    tcc_status status = tcc_bench(s->dev, NULL, contenders, (size_t)n, n_sets);
    if (status)
        session_error(s, "the benchmark failed: %s", tcc_status_name(status));
    return !status;
}

static void report_ours(const measure_task *task, const tcc_contender *c, int n_sets, bench_result *out)
{
    out->done = true;
    out->us = tcc_contender_median(c);
    out->tflops = tflops(task, c);
    out->gbytes = bytes_moved(task) / out->us * 1e-3;
    out->spread = (c->us[c->rounds - 1] - c->us[0]) / out->us;
    out->rounds = c->rounds;
    out->sets = n_sets;
}

static bool measure_against(session *s, const measure_task *task, const input_sets *sets,
                            theirs *best, tcc_contender *self, bench_result *out)
{
    theirs first = *best;
    out->lt_difference = NAN;
    if (first.product.whole && !compare_results(s, &first, &out->lt_difference))
        return false;
    best->pick = find_best_pick(s, best, sets->n);
    if (best->pick < 0)
        return false;
    tcc_contender contenders[] = {*self,
                              {.enqueue = enqueue_theirs, .user = &first},
                              {.enqueue = enqueue_theirs, .user = best}};
    int n = best->pick ? 3 : 2;
    if (!run_rounds(s, contenders, n, sets->n))
        return false;
    *self = contenders[0];
    out->against = true;
    out->lt_default = tflops(task, &contenders[1]);
    out->lt_best = fmax(out->lt_default, tflops(task, &contenders[n - 1]));
    out->best_pick = best->pick;
    out->n_picks = cublaslt_plan_count(best->plan);
    return true;
}

bool measure(session *s, const measure_task *task, bench_result *out)
{
    input_sets sets = {0};
    theirs them = {0};
    bool ok = sets_create(s, task, &sets);
    tcc_bench_launch us = launches_of(task, task->kernel, &sets);
    tcc_contender self = {.enqueue = tcc_bench_enqueue, .user = &us};
    if (ok && task->against != AGAINST_NOTHING)
        ok = theirs_create(s, task, &sets, &them) &&
             measure_against(s, task, &sets, &them, &self, out);
    else if (ok)
        ok = run_rounds(s, &self, 1, sets.n);
    if (ok)
        report_ours(task, &self, sets.n, out);
    theirs_free(s, &them);
    sets_free(s, task, &sets);
    return ok;
}
