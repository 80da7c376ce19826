/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/check.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tcc-run/parallel.h"

/* Multiply-adds that a check may cost when --rows does not say. */
#define MAX_MACS 2e9

/* ---- tolerances ------------------------------------------------------------------------- */

/* Relative error norms. The reference is not rounded, so outputs carry one rounding to their type:
 * at most half an ulp, 4.9e-4 for f16, 3.9e-3 for bf16 and 6.3e-2 for e4m3, and near 2e-4, 1.7e-3
 * and 2.7e-2 in the norm. Twice the bound leaves room for a sum in f32 and tells a wrong element
 * apart: with n elements of similar size a single wrong one contributes 1/sqrt(n).
 * f32 outputs show the sum itself: tensor cores truncate the running sum at each step of 16
 * products, at most 2^-22 of it, so the error may grow as K / 16 * 2^-22 = 1.5e-8 K. */
static double rounding_of(const elem_type *type, double k)
{
    static const struct {
        const char *name;
        double tolerance;
    } rows[] = {{"f16", 1e-3}, {"bf16", 8e-3}, {"e4m3", 0.125}, {"e5m2", 0.25}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(type->name, rows[i].name))
            return rows[i].tolerance;
    return 1e-5 + 2e-8 * k;
}

/* A sum of k random products grows as the root of the number of terms. One that is rounded to p
 * bits after each term is off by 2^-p / sqrt(3) of each partial sum, in all by
 * 2^-p sqrt(k) / sqrt(6) of the last, and by a quarter of that after each 16. */
static double rounding_of_sum(const char *sum, double k)
{
    double ulp = !sum ? 0 : !strcmp(sum, "f16") ? 0x1p-11 : !strcmp(sum, "bf16") ? 0x1p-8 : 0;
    return ulp * sqrt(k) / 2;
}

/* Integers are exact, but where they come of floats that lie nearly halfway between two: with a
 * relative error e of floats of size s that is 2 e s of them, and off by one each they add up to
 * sqrt(2 e s) / s in the norm. What is computed of them afterwards may make it a few times more. */
static double rounding_to_integers(double e, double s)
{
    return s > 0 ? e + 4 * sqrt(2 * e / s) : 1;
}

/* ---- reference -------------------------------------------------------------------------- */

bool reference_prepare(session *s, const tensor *args, const double *scalars, size_t n,
                       reference *out)
{
    *out = (reference){calloc(n, sizeof *out->args), n};
    bool ok = out->args != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        out->args[i] = malloc((args[i].n ? args[i].n : 1) * sizeof(double));
        ok = out->args[i] != NULL;
        if (ok && args[i].type)
            elem_to_doubles(args[i].type, args[i].host, args[i].n, out->args[i]);
        else if (ok)
            out->args[i][0] = scalars[i];
    }
    if (!ok) {
        session_error(s, "out of memory for the reference");
        reference_free(out);
    }
    return ok;
}

void reference_free(reference *ref)
{
    for (size_t i = 0; ref->args && i < ref->n_args; i++)
        free(ref->args[i]);
    free(ref->args);
    *ref = (reference){0};
}

typedef struct reference_run {
    const check_task *task;
    double *const *args;
    const int64_t *rows; /* NULL: all of each output */
    pthread_mutex_t mutex;
    tcc_status status; /* of the first piece that failed */
    char why[256];     /* "": the status says it all */
} reference_run;

static void keep_message(const tcc_diagnostic *d, void *user)
{
    snprintf(user, sizeof((reference_run *)NULL)->why, "%s", d->message);
}

static void run_rows(size_t begin, size_t end, void *user)
{
    reference_run *run = user;
    char why[sizeof run->why] = "";
    tcc_context *ctx = tcc_context_create();
    tcc_status status = TCC_ERR_MEMORY;
    if (ctx)
        tcc_context_on_diagnostic(ctx, keep_message, why);
    if (ctx)
        status = tcc_reference(ctx, run->task->manifest, run->task->kernel, run->task->dims,
                               run->args, run->rows ? run->rows + begin : NULL,
                               run->rows ? end - begin : 0);
    if (ctx)
        tcc_context_destroy(ctx);
    pthread_mutex_lock(&run->mutex);
    if (!run->status) {
        run->status = status;
        strcpy(run->why, why);
    }
    pthread_mutex_unlock(&run->mutex);
}

/* ---- rows ------------------------------------------------------------------------------- */

/* n rows of `total`, ascending and distinct: one from each of n equal stretches, and the first and
 * the last, where the edges are. */
static void sample_rows(int64_t *rows, size_t n, size_t total, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        size_t begin = (size_t)((double)total / (double)n * (double)i);
        size_t end = i + 1 == n ? total : (size_t)((double)total / (double)n * (double)(i + 1));
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        rows[i] = (int64_t)(begin + (seed >> 33) % (end - begin));
    }
    rows[0] = 0;
    rows[n - 1] = (int64_t)total - 1;
}

/* ---- comparison ------------------------------------------------------------------------- */

typedef struct comparison {
    const tensor *t;
    const double *expected;
    const int64_t *rows; /* NULL: all */
    size_t row_elems;
    bool is_exact; /* integers that come of no float */
    pthread_mutex_t mutex;
    double error2, norm2, max_abs;
    uint64_t unwritten, special;
} comparison;

static bool is_poison(const tensor *t, size_t i)
{
    static const unsigned char poison[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    size_t bytes = elem_bytes(t->type, 1); /* outputs have whole bytes */
    return !memcmp((const char *)t->host + i * bytes, poison, bytes);
}

static void compare_element(comparison *c, size_t i)
{
    double expected = c->expected[i], got = elem_get(c->t->type, c->t->host, i);
    double rounded = elem_round(c->t->type, expected);
    bool unwritten = is_poison(c->t, i) && c->t->info->role == TCC_ARG_OUT;
    if (isnan(expected)) {
        c->special += !isnan(got);
    } else if (unwritten && !(elem_is_integer(c->t->type) && fabs(got - rounded) <= 1)) {
        c->unwritten++;
    } else if (!isfinite(rounded) || !isfinite(got)) {
        c->special += got != rounded && !(isnan(got) && isnan(rounded));
    } else if (c->is_exact && got != expected) {
        c->special++;
    } else {
        double error = fabs(got - expected);
        c->error2 += error * error;
        c->norm2 += expected * expected;
        c->max_abs = error > c->max_abs ? error : c->max_abs;
    }
}

static void compare_rows(size_t begin, size_t end, void *user)
{
    comparison *shared = user, mine = *shared;
    mine.error2 = mine.norm2 = mine.max_abs = 0;
    mine.unwritten = mine.special = 0;
    for (size_t r = begin; r < end; r++) {
        size_t row = shared->rows ? (size_t)shared->rows[r] : r;
        for (size_t i = 0; i < shared->row_elems; i++)
            compare_element(&mine, row * shared->row_elems + i);
    }
    pthread_mutex_lock(&shared->mutex);
    shared->error2 += mine.error2;
    shared->norm2 += mine.norm2;
    shared->max_abs = mine.max_abs > shared->max_abs ? mine.max_abs : shared->max_abs;
    shared->unwritten += mine.unwritten;
    shared->special += mine.special;
    pthread_mutex_unlock(&shared->mutex);
}

/* Compares one output and merges what it shows. */
static void compare_output(const check_task *task, const tensor *t, const double *expected,
                           const int64_t *rows, size_t n_rows, check_result *out)
{
    size_t total = tensor_rows(t);
    double k = t->n ? task->macs / (double)t->n : 0;
    bool is_integer = elem_is_integer(t->type); /* which math.roundeven alone makes of floats */
    bool is_exact = is_integer && !strstr(task->manifest, "math.roundeven");
    comparison c = {.t = t,
                    .expected = expected,
                    .rows = rows,
                    .row_elems = total ? t->n / total : 0,
                    .is_exact = is_exact};
    pthread_mutex_init(&c.mutex, NULL);
    parallel_for(rows ? n_rows : total, 1, compare_rows, &c);
    pthread_mutex_destroy(&c.mutex);
    double error = c.error2 > 0 ? sqrt(c.error2 / c.norm2) : 0; /* infinite for a zero reference */
    double size = sqrt(c.norm2 / ((double)(rows ? n_rows : total) * (double)c.row_elems));
    double tolerance = rounding_of(t->type, k) + rounding_of_sum(task->sum, k);
    if (task->tolerance > 0)
        tolerance = task->tolerance;
    else if (is_integer && !is_exact)
        tolerance = rounding_to_integers(tolerance, size);
    if (!out->tolerance || error / tolerance > out->error / out->tolerance) {
        out->error = error;
        out->tolerance = tolerance;
    }
    out->max_abs = c.max_abs > out->max_abs ? c.max_abs : out->max_abs;
    out->unwritten += c.unwritten;
    out->special += c.special;
}

static bool is_output(const tensor *t)
{
    return t->type && t->info->role != TCC_ARG_IN;
}

/* Whether the outputs have equal numbers of rows; *total gets the smallest. */
static bool count_rows(const tensor *args, size_t n, size_t *total)
{
    bool first = true, equal = true;
    *total = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_output(&args[i]))
            continue;
        size_t rows = tensor_rows(&args[i]);
        equal = equal && (first || rows == *total);
        *total = first || rows < *total ? rows : *total;
        first = false;
    }
    return equal;
}

bool check_outputs(session *s, const check_task *task, const tensor *args, reference *ref,
                   check_result *out)
{
    size_t total;
    bool equal = count_rows(args, ref->n_args, &total);
    double affordable = task->rows       ? (double)task->rows
                        : task->macs > 0 ? floor(MAX_MACS / task->macs * (double)total)
                                         : INFINITY;
    affordable = affordable < 2 ? 2 : affordable; /* the first and the last */
    bool sampled = affordable < (double)total;
    size_t n_rows = sampled ? (size_t)affordable : total;
    int64_t *rows = NULL;
    if (n_rows && (sampled || equal)) {
        rows = malloc(n_rows * sizeof *rows);
        if (!rows) {
            session_error(s, "out of memory for the reference");
            return false;
        }
        sample_rows(rows, n_rows, total, task->seed);
    }
    reference_run run = {.task = task, .args = ref->args, .rows = rows};
    pthread_mutex_init(&run.mutex, NULL);
    if (total) /* outputs without elements need no reference */
        parallel_for(rows ? n_rows : 1, 1, run_rows, &run);
    pthread_mutex_destroy(&run.mutex);
    if (run.status)
        session_error(s, "the reference failed: %s",
                      *run.why ? run.why : tcc_status_name(run.status));
    out->done = !run.status;
    out->rows = n_rows;
    out->total_rows = total;
    for (size_t i = 0; out->done && i < ref->n_args; i++)
        if (is_output(&args[i]))
            compare_output(task, &args[i], ref->args[i], rows, n_rows, out);
    free(rows);
    if (out->done && !(out->error <= out->tolerance))
        session_error(s, "relative error %.2e exceeds %.2e", out->error, out->tolerance);
    if (out->unwritten)
        session_error(s, "%llu elements were not written", (unsigned long long)out->unwritten);
    if (out->special)
        session_error(s, "%llu infinities, NaNs or integers are wrong",
                      (unsigned long long)out->special);
    return out->done && out->error <= out->tolerance && !out->unwritten && !out->special;
}
