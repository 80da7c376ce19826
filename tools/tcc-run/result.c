/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/result.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "tools/tcc-run/options.h"

static void print_check(FILE *out, const check_result *c)
{
    fprintf(out, "check    relative error %.2e (tolerance %.2e), max abs error %.3g, ", c->error,
            c->tolerance, c->max_abs);
    fprintf(out, "%" PRIu64 " of %" PRIu64 " rows", c->rows, c->total_rows);
    if (c->unwritten)
        fprintf(out, ", %" PRIu64 " elements unwritten", c->unwritten);
    if (c->special)
        fprintf(out, ", %" PRIu64 " wrong infinities or NaNs", c->special);
    if (c->far)
        fprintf(out, ", %" PRIu64 " elements too far off", c->far);
    if (c->stray)
        fprintf(out, ", %" PRIu64 " bytes written outside", c->stray);
    fputc('\n', out);
}

/* Without a product what counts is memory. */
static void print_speed(FILE *out, const bench_result *b)
{
    if (b->tflops > 0)
        fprintf(out, "%.1f TFLOP/s", b->tflops);
    else
        fprintf(out, "%.0f GB/s", b->gbytes);
}

static void print_bench(FILE *out, const bench_result *b)
{
    fprintf(out, "bench    %.2f us, ", b->us);
    print_speed(out, b);
    fprintf(out, " (median of %d rounds, spread %.1f %%, ", b->rounds, 100 * b->spread);
    fprintf(out, "%d input set%s)\n", b->sets, b->sets == 1 ? "" : "s");
    if (!b->against)
        return;
    fprintf(out, "cublaslt default pick %.1f TFLOP/s, ratio %.3f; ", b->lt_default,
            b->tflops / b->lt_default);
    fprintf(out, "best pick (%d of %d) %.1f TFLOP/s, ratio %.3f", b->best_pick + 1, b->n_picks,
            b->lt_best, b->tflops / b->lt_best);
    if (isnan(b->lt_difference))
        fputs("; results not compared, they are different functions\n", out);
    else
        fprintf(out, "; relative difference %.2e\n", b->lt_difference);
}

static void print_tune(FILE *out, const tune_result *t)
{
    fprintf(out, "tuned    %" PRIu64 " schedules measured, %" PRIu64 " of them wrong, and %" PRIu64 " known; ", t->measured,
            t->wrong, t->known);
    fprintf(out, "%" PRIu64 " refused, %" PRIu64 " too expensive by the estimate\n", t->refused, t->dear);
    fprintf(out, "best     %.2f us, ", t->us);
    if (t->tflops > 0)
        fprintf(out, "%.1f TFLOP/s, ", t->tflops);
    fprintf(out, "the compiler's own choice %.2f us, ratio %.3f\n%s", t->own_us, t->own_us / t->us, t->schedule);
}

void result_print(FILE *out, const run_result *r)
{
    if (r->kernel[0]) {
        fprintf(out, "kernel   %s on %s\n", r->kernel, r->device);
        fprintf(out, "dims     %s\n", r->dims);
    }
    if (r->variant[0])
        fprintf(out, "variant  %s\n", r->variant);
    if (r->ms > 0)
        fprintf(out, r->is_gpu ? "launch   %.3f ms, cold\n" : "launch   %.0f ms\n", r->ms);
    if (r->timeline[0])
        fprintf(out, "timeline %s\n", r->timeline);
    if (r->check.done)
        print_check(out, &r->check);
    if (r->bench.done)
        print_bench(out, &r->bench);
    if (r->tune.done)
        print_tune(out, &r->tune);
    if (r->check.done || r->status)
        fprintf(out, "%s\n", r->status ? "FAILED" : "ok");
}

void result_print_row(FILE *out, const run_result *r)
{
    fprintf(out, "%-4s %-20s %-28s %-28s", r->status ? "FAIL" : "ok", r->kernel, r->dims,
            r->variant);
    if (r->check.done)
        fprintf(out, " %.2e", r->check.error);
    if (r->bench.done) {
        fputc(' ', out);
        print_speed(out, &r->bench);
    } else if (r->ms > 0) {
        fprintf(out, " %.3f ms", r->ms);
    }
    if (r->bench.against)
        fprintf(out, ", cuBLASLt %.1f / %.1f, ratio %.3f / %.3f", r->bench.lt_default,
                r->bench.lt_best, r->bench.tflops / r->bench.lt_default,
                r->bench.tflops / r->bench.lt_best);
    if (r->message[0])
        fprintf(out, "  %s", r->message);
    fputc('\n', out);
    fflush(out);
}

void result_print_table_head(FILE *out, const run_result *device)
{
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(date, sizeof date, "%Y-%m-%d", &utc);
    fprintf(out, "%s, %s\n\n", date, device->device);
    fputs("| file | kernel | sizes | variant | relative error | time | TFLOP/s "
          "| cuBLASLt default / best | ratio | result |\n",
          out);
    fputs("|---|---|---|---|---|---|---|---|---|---|\n", out);
}

void result_print_table_row(FILE *out, const char *file, const run_result *r)
{
    const bench_result *b = &r->bench;
    fprintf(out, "| %s | %s | %s | %s |", file, r->kernel, r->dims, r->variant);
    if (r->check.done)
        fprintf(out, " %.2e |", r->check.error);
    else
        fputs(" |", out);
    if (b->done)
        fprintf(out, " %.2f us | %.1f |", b->us, b->tflops);
    else if (r->ms > 0)
        fprintf(out, " %.1f us, cold | |", 1000 * r->ms);
    else
        fputs(" | |", out);
    if (b->against)
        fprintf(out, " %.1f / %.1f | %.3f / %.3f |", b->lt_default, b->lt_best,
                b->tflops / b->lt_default, b->tflops / b->lt_best);
    else
        fputs(" | |", out);
    fprintf(out, " %s%s%s |\n", r->status ? "FAIL" : "ok", r->message[0] ? ": " : "", r->message);
}
