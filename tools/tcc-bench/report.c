/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-bench/report.h"

#include <math.h>

static double by_default(const bench_result *b)
{
    return b->tflops / b->lt_default;
}

static double by_best(const bench_result *b)
{
    return b->tflops / b->lt_best;
}

size_t report_means(const report *r, double *of_default, double *of_best)
{
    double default_log = 0, best_log = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const bench_result *b = &r->rows[i].bench;
        if (!b->against || r->rows[i].status)
            continue;
        default_log += log(by_default(b));
        best_log += log(by_best(b));
        n++;
    }
    *of_default = n ? exp(default_log / (double)n) : NAN;
    *of_best = n ? exp(best_log / (double)n) : NAN;
    return n;
}

/* ---- text --------------------------------------------------------------------------------- */

void report_print_head(FILE *out)
{
    fprintf(out, "%-12s %-30s %-36s %10s %8s %8s %8s %6s %6s\n", "kernel", "sizes", "variant", "us", "TFLOP/s", "cuBLASLt",
            "best", "ratio", "ratio");
}

void report_print_row(FILE *out, const run_result *r)
{
    const bench_result *b = &r->bench;
    fprintf(out, "%-12s %-30s %-36s", r->kernel, r->dims, r->variant);
    if (b->done)
        fprintf(out, " %10.2f %8.1f", b->us, b->tflops);
    if (b->done && b->against)
        fprintf(out, " %8.1f %8.1f %6.3f %6.3f", b->lt_default, b->lt_best, by_default(b), by_best(b));
    if (r->status)
        fprintf(out, " FAILED: %s", r->message);
    fputc('\n', out);
    fflush(out);
}

void report_print_means(FILE *out, const report *r)
{
    double of_default, of_best;
    if (report_means(r, &of_default, &of_best))
        fprintf(out, "geometric mean: %.3f of cuBLASLt's default pick, %.3f of its best\n", of_default, of_best);
}

void report_write_markdown(FILE *out, const report *r)
{
    double of_default, of_best;
    fprintf(out, "%s, %s: `%s`\n\n", r->date, r->device, r->command);
    fputs("| kernel | sizes | variant | time | TFLOP/s | cuBLASLt default / best | ratio |\n|---|---|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < r->n; i++) {
        const bench_result *b = &r->rows[i].bench;
        fprintf(out, "| %s | %s | %s |", r->rows[i].kernel, r->rows[i].dims, r->rows[i].variant);
        if (r->rows[i].status)
            fprintf(out, " failed: %s | | | |\n", r->rows[i].message);
        else if (b->against)
            fprintf(out, " %.2f us | %.1f | %.1f / %.1f | %.3f / %.3f |\n", b->us, b->tflops, b->lt_default, b->lt_best,
                    by_default(b), by_best(b));
        else
            fprintf(out, " %.2f us | %.1f | | |\n", b->us, b->tflops);
    }
    if (report_means(r, &of_default, &of_best))
        fprintf(out, "\nGeometric means of the ratio: %.3f of cuBLASLt's default pick, %.3f of its best.\n", of_default,
                of_best);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void write_string(FILE *out, const char *s)
{
    fputc('"', out);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fputc('\\', out);
        if (c < 32)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void write_member(FILE *out, const char *name, const char *value)
{
    fprintf(out, "\"%s\": ", name);
    write_string(out, value);
    fputs(", ", out);
}

static void write_number(FILE *out, const char *name, double value, const char *end)
{
    if (isfinite(value))
        fprintf(out, "\"%s\": %.6g%s", name, value, end);
    else
        fprintf(out, "\"%s\": null%s", name, end);
}

void report_write_json(FILE *out, const report *r)
{
    double of_default, of_best;
    report_means(r, &of_default, &of_best);
    fputs("{", out);
    write_member(out, "date", r->date);
    write_member(out, "device", r->device);
    write_member(out, "command", r->command);
    write_number(out, "mean_of_default", of_default, ", ");
    write_number(out, "mean_of_best", of_best, ", \"results\": [");
    for (size_t i = 0; i < r->n; i++) {
        const run_result *row = &r->rows[i];
        const bench_result *b = &row->bench;
        fputs(i ? ",\n{" : "\n{", out);
        write_member(out, "kernel", row->kernel);
        write_member(out, "sizes", row->dims);
        write_member(out, "variant", row->variant);
        if (row->status)
            write_member(out, "error", row->message);
        write_number(out, "us", b->done ? b->us : NAN, ", ");
        write_number(out, "tflops", b->done ? b->tflops : NAN, ", ");
        write_number(out, "gbytes", b->done ? b->gbytes : NAN, ", ");
        write_number(out, "cublaslt_default_tflops", b->against ? b->lt_default : NAN, ", ");
        write_number(out, "cublaslt_best_tflops", b->against ? b->lt_best : NAN, "}");
    }
    fputs("\n]}\n", out);
}

/* ---- a plot ------------------------------------------------------------------------------- */

static bool is_drawn(const run_result *r)
{
    return !r->status && r->bench.done && r->bench.tflops > 0 && r->bench.gbytes > 0;
}

/* Operations for each byte. */
static double intensity(const bench_result *b)
{
    return 1000 * b->tflops / b->gbytes;
}

/* "$name << E": a line for each result. */
static void write_data(FILE *out, const report *r)
{
    fputs("$data << E\n", out);
    for (size_t i = 0; i < r->n; i++) {
        const bench_result *b = &r->rows[i].bench;
        if (!is_drawn(&r->rows[i]))
            continue;
        fprintf(out, "\"%s %s\" %.6g %.6g ", r->rows[i].kernel, r->rows[i].dims, intensity(b), b->tflops);
        if (b->against)
            fprintf(out, "%.6g %.6g %.6g\n", b->lt_best, by_default(b), by_best(b));
        else
            fputs("NaN NaN NaN\n", out);
    }
    fputs("E\n", out);
}

void report_write_plot(FILE *out, const report *r)
{
    double peak = 0, bandwidth = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const bench_result *b = &r->rows[i].bench;
        if (!is_drawn(&r->rows[i]))
            continue;
        peak = fmax(peak, fmax(b->tflops, b->against ? b->lt_best : 0));
        bandwidth = fmax(bandwidth, b->gbytes * (b->against ? fmax(1, b->lt_best / b->tflops) : 1));
        n++;
    }
    write_data(out, r);
    fprintf(out, "set terminal svg size 1000,%zu dynamic font 'sans-serif,11' background '#ffffff'\n", 620 + 16 * n);
    fputs("set encoding utf8\nset multiplot layout 2,1 title ", out);
    write_string(out, r->device);
    fprintf(out, " noenhanced\nset grid xtics\nset key outside top center horizontal\nset style fill solid 0.7 noborder\n"
                 "set xlabel 'speed over cuBLASLt'\nset xrange [0:*]\nset yrange [%zu.5:-0.5]\n"
                 "set arrow 1 from 1,graph 0 to 1,graph 1 nohead lc '#404040'\n",
            n ? n - 1 : 0);
    fputs("plot $data using ($6/2):0:($6/2):(0.35):ytic(1) with boxxyerror title 'its best pick' lc '#4477aa', \\\n"
          "     $data using 5:0 with points pt 7 ps 0.6 lc '#ee6677' title 'its default pick'\n"
          "unset arrow 1\nset key inside top left vertical\nset ytics auto\nset grid\nset xrange [*:*]\nset yrange [*:*]\nset logscale xy\n"
          "set xlabel 'operations for each byte of the tensors'\nset ylabel 'TFLOP/s'\n",
          out);
    fprintf(out, "roof(x) = (x * %.6g < %.6g) ? x * %.6g : %.6g\n", bandwidth / 1000, peak, bandwidth / 1000, peak);
    fputs("plot roof(x) lc '#404040' title 'most bytes and most operations that were seen', \\\n"
          "     $data using 2:4 with points pt 6 lc '#ee6677' title 'cuBLASLt, its best pick', \\\n"
          "     $data using 2:3 with points pt 7 ps 0.6 lc '#4477aa' title 'tcc'\nunset multiplot\n",
          out);
}
