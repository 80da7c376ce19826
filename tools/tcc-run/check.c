/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/check.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tcc-run/parallel.h"

/* Multiply-adds that a check may cost without --rows. */
#define MAX_MACS 2e9

/* ---- tolerances ------------------------------------------------------------------------- */

/* Relative error norms. The reference is not rounded, so outputs carry one rounding to their type:
 * at most half an ulp, 4.9e-4 for f16, 3.9e-3 for bf16 and 6.3e-2 for e4m3, and near 2e-4, 1.7e-3
 * and 2.7e-2 in the norm. Twice the bound leaves room for a sum in f32 and tells a wrong element
 * apart: with n elements of similar size a single wrong one contributes 1/sqrt(n).
 * f32 outputs show the sum itself: tensor cores truncate the running sum at each step of 16
 * products, at most 2^-22 of it, so the error may grow as K / 16 * 2^-22 = 1.5e-8 K. Those of f64 may have been f32
 * on their way: what f64 alone rounds is for the intervals of elements to tell. */
static double rounding_of(const elem_type *type, double k)
{
    static const struct {
        const char *name;
        double tolerance;
    } rows[] = {{"f16", 1e-3}, {"tf32", 1e-3}, {"bf16", 8e-3}, {"e4m3", 0.125}, {"e5m2", 0.25}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(type->name, rows[i].name))
            return rows[i].tolerance;
    return 1e-5 + 2e-8 * k;
}

/* A sum of k random products grows as the root of the number of terms. One that is rounded to p
 * bits after each term is off by 2^-p / sqrt(3) of each partial sum, in all by
 * 2^-p sqrt(k) / sqrt(6) of the last, and by a quarter of that after each 16. Of products of 8-bit floats Ada's and
 * Hopper's tensor cores cut off each below the 14th bit of the sum: a model of them is off by 1.4e-3 for k = 4096. */
static double rounding_of_sum(const char *sum, bool of_8_bits, double k)
{
    double ulp = !sum ? 0 : !strcmp(sum, "f16") ? 0x1p-11 : !strcmp(sum, "bf16") ? 0x1p-8 : of_8_bits ? 0x1p-13 : 0;
    return ulp * sqrt(k) / 2;
}

/* Floats that are nearly halfway between two integers may become either: with a relative error e of
 * floats of size s that is 2 e s of them, and off by one each they add up to sqrt(2 e s) / s in the
 * norm. What is computed of them afterwards may make it a few times more. */
static double rounding_to_integers(double e, double s)
{
    return s > 0 ? e + 4 * sqrt(2 * e / s) : 1;
}

/* ---- reference -------------------------------------------------------------------------- */

static bool is_output(const tensor *t)
{
    return t->type && t->info->role != TCC_ARG_IN;
}

/* Whether there are 8-bit floats that the kernel may multiply. */
static bool has_8_bit_floats(const tensor *args, size_t n)
{
    bool found = false;
    for (size_t i = 0; i < n; i++)
        found |= args[i].type && args[i].info->role != TCC_ARG_OUT &&
                 (!strcmp(args[i].type->name, "e4m3") || !strcmp(args[i].type->name, "e5m2"));
    return found;
}

bool reference_prepare(session *s, const tensor *args, const double *scalars, size_t n,
                       reference *out)
{
    *out = (reference){calloc(n, sizeof *out->args), calloc(n, sizeof *out->low), calloc(n, sizeof *out->high),
                       calloc(n, sizeof *out->before), n};
    bool ok = out->args && out->low && out->high && out->before;
    for (size_t i = 0; ok && i < n; i++) {
        size_t bytes = (args[i].n ? args[i].n : 1) * sizeof(double);
        ok = (out->args[i] = malloc(bytes)) != NULL;
        if (ok && is_output(&args[i]))
            ok = (out->low[i] = malloc(bytes)) && (out->high[i] = malloc(bytes));
        if (ok && args[i].type)
            elem_to_doubles(args[i].type, args[i].host, args[i].n, out->args[i]);
        else if (ok)
            out->args[i][0] = scalars[i];
        if (ok && is_output(&args[i])) { /* an inout that nothing writes stays as it is */
            memcpy(out->low[i], out->args[i], bytes);
            memcpy(out->high[i], out->args[i], bytes);
        }
        if (ok && is_output(&args[i]) && args[i].info->role == TCC_ARG_INOUT) {
            ok = (out->before[i] = malloc(bytes)) != NULL;
            if (ok)
                memcpy(out->before[i], out->args[i], bytes);
        }
    }
    if (!ok) {
        session_error(s, "out of memory for the reference");
        reference_free(out);
    }
    return ok;
}

void reference_free(reference *ref)
{
    for (size_t i = 0; i < ref->n_args; i++) {
        free(ref->args ? ref->args[i] : NULL);
        free(ref->low ? ref->low[i] : NULL);
        free(ref->high ? ref->high[i] : NULL);
        free(ref->before ? ref->before[i] : NULL);
    }
    free(ref->args);
    free(ref->low);
    free(ref->high);
    free(ref->before);
    *ref = (reference){0};
}

typedef struct reference_run {
    const check_task *task;
    const reference *reference;
    const tensor *args;
    const int64_t *rows; /* NULL: all of each output */
    bool only_roundings; /* the intervals are tcc_reference_roundings' */
    pthread_mutex_t mutex;
    tcc_status status; /* of the first piece that failed */
    char why[256];     /* "": the status says it all */
} reference_run;

static void keep_message(const tcc_diagnostic *d, void *user)
{
    snprintf(user, sizeof((reference_run *)NULL)->why, "%s", d->message);
}

/* The arguments for some rows: inout tensors as they were, since other pieces write other rows of them, and read all.
 * NULL without memory. */
static double **own_args(const reference_run *run)
{
    const reference *ref = run->reference;
    double **own = calloc(ref->n_args + 1, sizeof *own);
    bool ok = own != NULL;
    for (size_t i = 0; ok && i < ref->n_args; i++) {
        size_t bytes = (run->args[i].n ? run->args[i].n : 1) * sizeof(double);
        own[i] = ref->before[i] ? malloc(bytes) : ref->args[i];
        ok = own[i] != NULL;
        if (ok && ref->before[i])
            memcpy(own[i], ref->before[i], bytes);
    }
    for (size_t i = 0; own && !ok && i < ref->n_args; i++)
        free(ref->before[i] ? own[i] : NULL);
    if (!ok)
        free(own);
    return ok ? own : NULL;
}

static void keep_rows(const reference_run *run, double **own, size_t begin, size_t end)
{
    const reference *ref = run->reference;
    for (size_t i = 0; i < ref->n_args; i++) {
        size_t total = ref->before[i] ? tensor_rows(&run->args[i]) : 0, elems = total ? run->args[i].n / total : 0;
        for (size_t r = begin; elems && r < end; r++) {
            size_t first = (size_t)run->rows[r] * elems;
            memcpy(ref->args[i] + first, own[i] + first, elems * sizeof(double));
        }
        free(ref->before[i] ? own[i] : NULL);
    }
    free(own);
}

static tcc_status run_piece(const reference_run *run, tcc_context *ctx, size_t begin, size_t end)
{
    const reference *ref = run->reference;
    const check_task *task = run->task;
    double **args = run->rows ? own_args(run) : ref->args;
    if (!args)
        return TCC_ERR_MEMORY;
    tcc_status status = (run->only_roundings ? tcc_reference_roundings : tcc_reference_intervals)(
        ctx, task->manifest, task->kernel, task->dims, args, ref->low, ref->high, run->rows ? run->rows + begin : NULL,
        run->rows ? end - begin : 0);
    if (run->rows)
        keep_rows(run, args, begin, end);
    return status;
}

static void run_rows(size_t begin, size_t end, void *user)
{
    reference_run *run = user;
    char why[sizeof run->why] = "";
    tcc_context *ctx = tcc_context_create();
    if (ctx)
        tcc_context_on_diagnostic(ctx, keep_message, why);
    tcc_status status = ctx ? run_piece(run, ctx, begin, end) : TCC_ERR_MEMORY;
    tcc_context_destroy(ctx);
    pthread_mutex_lock(&run->mutex);
    if (!run->status) {
        run->status = status;
        strcpy(run->why, why);
    }
    pthread_mutex_unlock(&run->mutex);
}

/* Runs the reference on these rows of `total`; false after reporting. */
static bool run_reference(session *s, const check_task *task, const reference *ref, const int64_t *rows, size_t n_rows,
                          size_t total, bool only_roundings, const tensor *args)
{
    reference_run run = {
        .task = task, .reference = ref, .args = args, .rows = rows, .only_roundings = only_roundings};
    for (size_t i = 0; i < ref->n_args; i++)
        if (ref->before[i])
            memcpy(ref->args[i], ref->before[i], args[i].n * sizeof(double));
    pthread_mutex_init(&run.mutex, NULL);
    if (total) /* outputs without elements need no reference */
        parallel_for(rows ? n_rows : 1, 1, run_rows, &run);
    pthread_mutex_destroy(&run.mutex);
    if (run.status)
        session_error(s, "the reference failed: %s", *run.why ? run.why : tcc_status_name(run.status));
    return !run.status;
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

/* An element that is too far off: by how much more than it may be. */
typedef struct check_far {
    size_t at;
    double by, got, low, high;
} check_far;

typedef struct comparison {
    const tensor *t;
    const double *expected, *low, *high;
    const int64_t *rows; /* NULL: all */
    size_t row_elems;
    bool loose; /* for floats only the norm decides */
    pthread_mutex_t mutex;
    double error2, norm2, max_abs;
    check_far worst;
    uint64_t unwritten, special, far;
} comparison;

static bool is_poison(const tensor *t, size_t i)
{
    static const unsigned char poison[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    size_t bytes = elem_bytes(t->type, 1); /* outputs have whole bytes */
    return !memcmp((const char *)t->host + i * bytes, poison, bytes);
}

/* Counts an element that is further off than rounding may take it, and keeps the one for which that
 * is most, of equal ones the first. */
static void count_far(comparison *c, size_t i, double got, double low, double high)
{
    double by = got < low ? low - got : got - high;
    by = isnan(by) ? (double)INFINITY : by;
    if (!c->far++ || by > c->worst.by)
        c->worst = (check_far){i, by, got, low, high};
}

static void compare_element(comparison *c, size_t i)
{
    const elem_type *type = c->t->type;
    double expected = c->expected[i], got = elem_get(type, c->t->host, i);
    double low = elem_round(type, c->low[i]), high = elem_round(type, c->high[i]);
    bool unwritten = is_poison(c->t, i) && c->t->info->role == TCC_ARG_OUT;
    bool exact = c->low[i] == c->high[i], inside = got >= low && got <= high;
    /* What is too large for a type without infinity is NaN; where NaN is possible, anything is. */
    bool is_nan = isnan(low) && isnan(high) && (c->low[i] > 0) == (c->high[i] > 0);
    bool anything =
        !is_nan && (isnan(low) || isnan(high) || (isinf(low) && isinf(high) && low < high));
    if (is_nan) {
        c->special += !isnan(got);
        return;
    }
    if (unwritten && !(elem_is_integer(type) ? inside : anything && type->bits == 8)) {
        c->unwritten++;
        return;
    }
    if (anything)
        return;
    if (!inside && (exact || !isfinite(got)))
        c->special++;
    else if (!inside && !c->loose)
        count_far(c, i, got, low, high);
    if (isfinite(got) && isfinite(expected)) {
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
    mine.unwritten = mine.special = mine.far = 0;
    for (size_t r = begin; r < end; r++) {
        size_t row = shared->rows ? (size_t)shared->rows[r] : r;
        for (size_t i = 0; i < shared->row_elems; i++)
            compare_element(&mine, row * shared->row_elems + i);
    }
    pthread_mutex_lock(&shared->mutex);
    shared->error2 += mine.error2;
    shared->norm2 += mine.norm2;
    shared->max_abs = mine.max_abs > shared->max_abs ? mine.max_abs : shared->max_abs;
    if (mine.far && (!shared->far || mine.worst.by > shared->worst.by ||
                     (mine.worst.by == shared->worst.by && mine.worst.at < shared->worst.at)))
        shared->worst = mine.worst;
    shared->unwritten += mine.unwritten;
    shared->special += mine.special;
    shared->far += mine.far;
    pthread_mutex_unlock(&shared->mutex);
}

/* Says where the worst of the elements is that are too far off. */
static void report_far(session *s, const tensor *t, const comparison *c)
{
    char place[256] = "";
    size_t at = c->worst.at, len = sizeof place - 1;
    for (unsigned d = t->info->rank; d-- > 0;) { /* from the right */
        char index[32];
        int n = snprintf(index, sizeof index, "%s%lld", d ? ", " : "",
                         (long long)(at % (size_t)t->extents[d]));
        at /= (size_t)t->extents[d];
        memcpy(place + (len -= (size_t)n), index, (size_t)n);
    }
    session_error(s, "%llu elements of '%s' are further off than rounding explains; [%s] is %.9g, "
                  "must be from %.9g to %.9g", (unsigned long long)c->far, t->info->name,
                  place + len, c->worst.got, c->worst.low, c->worst.high);
}

/* The relative error norm of an output. */
typedef struct norm {
    double error, size; /* size: of its elements, on average */
    double roundings;   /* that explain some of it, besides the output's own and its sum's */
} norm;

/* Compares one output: what it shows is merged with what the others do, but for the norm. */
static norm compare_output(session *s, const check_task *task, const tensor *t, const reference *ref, size_t arg,
                           const int64_t *rows, size_t n_rows, check_result *out)
{
    size_t total = tensor_rows(t);
    comparison c = {.t = t,
                    .expected = ref->args[arg],
                    .low = ref->low[arg],
                    .high = ref->high[arg],
                    .rows = rows,
                    .row_elems = total ? t->n / total : 0,
                    .loose = task->tolerance > 0};
    pthread_mutex_init(&c.mutex, NULL);
    parallel_for(rows ? n_rows : total, 1, compare_rows, &c);
    pthread_mutex_destroy(&c.mutex);
    out->max_abs = c.max_abs > out->max_abs ? c.max_abs : out->max_abs;
    out->unwritten += c.unwritten;
    out->special += c.special;
    out->far += c.far;
    if (c.far)
        report_far(s, t, &c);
    return (norm){.error = c.error2 > 0 ? sqrt(c.error2 / c.norm2) : 0, /* infinite for a zero reference */
                  .size = sqrt(c.norm2 / ((double)(rows ? n_rows : total) * (double)c.row_elems))};
}

/* The norm of what the intervals of tcc_reference_roundings have room for. */
static double norm_of_roundings(const tensor *t, const reference *ref, size_t arg, const int64_t *rows, size_t n_rows)
{
    size_t total = tensor_rows(t), row_elems = total ? t->n / total : 0;
    const double *expected = ref->args[arg], *low = ref->low[arg], *high = ref->high[arg];
    double room2 = 0, norm2 = 0;
    for (size_t r = 0; r < (rows ? n_rows : total); r++) {
        size_t first = (rows ? (size_t)rows[r] : r) * row_elems;
        for (size_t i = first; i < first + row_elems; i++) {
            double room = fmax(expected[i] - low[i], high[i] - expected[i]);
            if (isfinite(expected[i]) && isfinite(room)) {
                room2 += room * room;
                norm2 += expected[i] * expected[i];
            }
        }
    }
    return norm2 > 0 ? sqrt(room2 / norm2) : 0;
}

static double tolerance_of(const check_task *task, const tensor *args, const reference *ref, size_t arg, norm of)
{
    const tensor *t = &args[arg];
    double k = t->n ? task->macs / (double)t->n : 0;
    double tolerance = rounding_of(t->type, k) + of.roundings +
                       rounding_of_sum(task->sum, has_8_bit_floats(args, ref->n_args), k);
    if (task->tolerance > 0)
        return task->tolerance;
    return elem_is_integer(t->type) ? rounding_to_integers(tolerance, of.size) : tolerance;
}

/* Keeps the error of the output for which it is the largest part of what it may be. */
static void merge_norms(check_result *out, const check_task *task, const tensor *args, const reference *ref,
                        const norm *norms)
{
    out->tolerance = 0;
    for (size_t i = 0; i < ref->n_args; i++) {
        double tolerance = is_output(&args[i]) ? tolerance_of(task, args, ref, i, norms[i]) : 0;
        if (is_output(&args[i]) &&
            (!out->tolerance || norms[i].error / tolerance > out->error / out->tolerance)) {
            out->error = norms[i].error;
            out->tolerance = tolerance;
        }
    }
}

/* The rows of the outputs. */
typedef struct row_count {
    size_t fewest; /* of an output that has elements; 0 where none has */
    bool equal;    /* in all outputs */
    bool all;      /* outputs have elements */
} row_count;

static row_count count_rows(const tensor *args, size_t n)
{
    row_count c = {0, true, true};
    for (size_t i = 0; i < n; i++) {
        if (!is_output(&args[i]))
            continue;
        size_t rows = args[i].n ? tensor_rows(&args[i]) : 0;
        c.all &= rows > 0;
        c.equal &= !c.fewest || rows == c.fewest;
        c.fewest = rows && (!c.fewest || rows < c.fewest) ? rows : c.fewest;
    }
    c.equal &= c.all;
    return c;
}

bool check_outputs(session *s, const check_task *task, const tensor *args, reference *ref,
                   check_result *out)
{
    row_count count = count_rows(args, ref->n_args);
    size_t total = count.fewest;
    double affordable = task->rows       ? (double)task->rows
                        : task->macs > 0 ? floor(MAX_MACS / task->macs * (double)total)
                                         : INFINITY;
    affordable = affordable < 2 ? 2 : affordable; /* the first and the last */
    bool sampled = count.all && affordable < (double)total;
    size_t n_rows = sampled ? (size_t)affordable : total;
    int64_t *rows = NULL;
    if (n_rows && (sampled || count.equal)) {
        rows = malloc(n_rows * sizeof *rows);
        if (!rows) {
            session_error(s, "out of memory for the reference");
            return false;
        }
        sample_rows(rows, n_rows, total, task->seed);
    }
    norm *norms = calloc(ref->n_args, sizeof *norms);
    out->rows = n_rows;
    out->total_rows = total;
    out->done = norms && run_reference(s, task, ref, rows, n_rows, total, false, args);
    for (size_t i = 0; out->done && i < ref->n_args; i++)
        if (is_output(&args[i]))
            norms[i] = compare_output(s, task, &args[i], ref, i, rows, n_rows, out);
    if (out->done)
        merge_norms(out, task, args, ref, norms);
    /* Rarely an operand that has been rounded to 16 bits is another than the reference's: where sums are short, that
     * is most of the error. */
    if (out->done && !(out->error <= out->tolerance) && !task->tolerance &&
        run_reference(s, task, ref, rows, n_rows, total, true, args)) {
        for (size_t i = 0; i < ref->n_args; i++)
            if (is_output(&args[i]))
                norms[i].roundings = norm_of_roundings(&args[i], ref, i, rows, n_rows);
        merge_norms(out, task, args, ref, norms);
    }
    free(norms);
    free(rows);
    if (out->done && !(out->error <= out->tolerance))
        session_error(s, "relative error %.2e exceeds %.2e", out->error, out->tolerance);
    if (out->unwritten)
        session_error(s, "%llu elements were not written", (unsigned long long)out->unwritten);
    if (out->special)
        session_error(s, "%llu infinities, NaNs or integers are wrong",
                      (unsigned long long)out->special);
    return out->done && out->error <= out->tolerance && !out->unwritten && !out->special &&
           !out->far;
}
