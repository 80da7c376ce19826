/* tcc-bench: times a program's kernels over a list of shapes, in turn with cuBLASLt.
 *
 * Every shape is a command line of tcc-run, and is run as a line of its scripts is.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/shared/option_table.h"
#include "tools/shared/whole_file.h"
#include "tools/tcc-bench/report.h"
#include "tools/tcc-run/script.h"

const char program_name[] = "tcc-bench" TCC_PROGRAM_SUFFIX;

extern char **environ;

enum { MAX_REST = 48 };

typedef struct arguments {
    const char *shapes, *json, *markdown, *plot;
    bool alone;
    char *script[8]; /* options for all lines, of a command that runs a script */
    int n_script;
    char *rest[MAX_REST]; /* for each line */
    int n_rest;
} arguments;

/* The value of the option at argv[*i], which needs one. */
static char *value_of(int argc, char **argv, int *i, const option_row *row)
{
    char *equals = strchr(argv[*i], '=');
    if (equals)
        return equals + 1;
    if (*i + 1 == argc)
        bad_usage("--%s needs a value", row->name);
    return argv[++*i];
}

static void add_script_option(arguments *a, char *name, char *value)
{
    if (a->n_script + 2 > (int)(sizeof a->script / sizeof *a->script))
        bad_usage("too many options");
    a->script[a->n_script++] = name;
    a->script[a->n_script++] = value;
}

static void take_option(arguments *a, int argc, char **argv, int *i, const option_row *row)
{
    static char on[] = "--on", device[] = "--device", timeout[] = "--timeout";
    switch (row->id) {
    case OPTION_BENCH_SHAPES: a->shapes = value_of(argc, argv, i, row); break;
    case OPTION_BENCH_JSON: a->json = value_of(argc, argv, i, row); break;
    case OPTION_BENCH_MARKDOWN: a->markdown = value_of(argc, argv, i, row); break;
    case OPTION_BENCH_PLOT: a->plot = value_of(argc, argv, i, row); break;
    case OPTION_BENCH_ON: add_script_option(a, on, value_of(argc, argv, i, row)); break;
    case OPTION_BENCH_DEVICE: add_script_option(a, device, value_of(argc, argv, i, row)); break;
    case OPTION_BENCH_TIMEOUT: add_script_option(a, timeout, value_of(argc, argv, i, row)); break;
    case OPTION_BENCH_ALONE: a->alone = true; break;
    case OPTION_BENCH_HELP: print_help(TOOL_BENCH); exit(finish_output(EXIT_OK));
    case OPTION_BENCH_VERSION: printf("%s %s\n", program_name, tcc_version()); exit(finish_output(EXIT_OK));
    }
}

/* Anything else is an option of tcc-run, or its value. */
static void parse(int argc, char **argv, arguments *a)
{
    for (int i = 1; i < argc; i++) {
        const option_row *row = option_row_named(TOOL_BENCH, argv[i]);
        if (row)
            take_option(a, argc, argv, &i, row);
        else if (a->n_rest == MAX_REST)
            bad_usage("more than %d options", MAX_REST);
        else
            a->rest[a->n_rest++] = argv[i];
    }
    if (!a->shapes)
        bad_usage("--shapes LIST is needed");
}

/* ---- shapes ------------------------------------------------------------------------------- */

typedef struct shapes {
    char *text;
    script_line *lines;
    size_t n;
} shapes;

static void add_word(script_line *line, char *word)
{
    if (line->n_words == SCRIPT_MAX_WORDS)
        bad_usage("too many options");
    line->words[line->n_words++] = word;
}

static void add_shape(const arguments *a, char *text, shapes *out)
{
    script_line *grown = realloc(out->lines, (out->n + 1) * sizeof *grown);
    if (!grown)
        out_of_memory();
    out->lines = grown;
    script_line *line = &out->lines[out->n];
    *line = (script_line){.number = (int)++out->n};
    add_word(line, (char *)program_name);
    for (int i = 0; i < a->n_rest; i++)
        add_word(line, a->rest[i]);
    char *size = strchr(text, ':');
    if (size) {
        *size++ = 0;
        add_word(line, (char *)"--kernel");
        add_word(line, text);
    }
    add_word(line, (char *)"--size");
    add_word(line, size ? size : text);
    bool compares = false;
    for (int i = 0; i < a->n_rest; i++)
        compares |= !strncmp(a->rest[i], "--against", 9);
    add_word(line, (char *)(a->alone || compares ? "--bench" : "--against=cublas"));
}

static void read_shapes(const arguments *a, shapes *out)
{
    size_t size;
    out->text = *a->shapes == '@' ? read_input(a->shapes + 1, &size) : strdup(a->shapes);
    if (!out->text)
        out_of_memory();
    for (char *p = out->text; (p = strchr(p, '#'));)
        while (*p && *p != '\n')
            *p++ = ' ';
    char *state = NULL;
    for (char *word = strtok_r(out->text, " \t\r\n", &state); word; word = strtok_r(NULL, " \t\r\n", &state))
        add_shape(a, word, out);
    if (!out->n)
        bad_usage("--shapes %s: there is none", a->shapes);
    for (size_t i = 0; i < out->n; i++) {
        options line;
        char why[256];
        if (!options_parse(out->lines[i].n_words, out->lines[i].words, NULL, &line, why, sizeof why))
            bad_usage("%s", why);
        if (!line.file)
            bad_usage("a file is needed");
    }
}

/* ---- results ------------------------------------------------------------------------------ */

static void take_machine(const run_result *machine, void *user)
{
    report *r = user;
    time_t now = time(NULL);
    struct tm utc;
    memcpy(r->device, machine->device, sizeof r->device);
    if (gmtime_r(&now, &utc))
        strftime(r->date, sizeof r->date, "%Y-%m-%d", &utc);
    printf("%s, %s\n", r->date, r->device);
    report_print_head(stdout);
}

static void take_row(const script_line *line, const run_result *result, void *user)
{
    report *r = user;
    (void)line;
    r->rows[r->n++] = *result;
    report_print_row(stdout, result);
}

/* Each writes what the report is as; false with errno set, or after reporting with errno 0. */
typedef bool writer(FILE *out, const report *r);

static bool write_json(FILE *out, const report *r)
{
    report_write_json(out, r);
    return true;
}

static bool write_markdown(FILE *out, const report *r)
{
    report_write_markdown(out, r);
    return true;
}

/* Runs gnuplot on a program. */
static bool run_gnuplot(int program, int out)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status;
    char *argv[] = {"gnuplot", "-", NULL};
    if (posix_spawn_file_actions_init(&files))
        return false;
    posix_spawn_file_actions_adddup2(&files, program, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    int error = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (error)
        fprintf(stderr, "%s: gnuplot: %s\n", program_name, strerror(error));
    else if (waitpid(pid, &status, 0) != pid || status)
        fprintf(stderr, "%s: gnuplot failed\n", program_name);
    else
        return true;
    errno = 0;
    return false;
}

static bool draw(FILE *out, const report *r)
{
    FILE *program = tmpfile();
    if (!program)
        return false;
    report_write_plot(program, r);
    bool ok = !fflush(program) && !fseek(program, 0, SEEK_SET) && run_gnuplot(fileno(program), fileno(out));
    fclose(program);
    return ok;
}

static bool write_file(const char *path, writer *print, const report *r)
{
    FILE *f = path ? whole_file_open(path) : NULL;
    bool ok = f && print(f, r);
    int error = errno;
    if (!path || (f && whole_file_close(f, ok && !ferror(f))))
        return true;
    error = f && !ok ? error : errno;
    if (error)
        fprintf(stderr, "%s: %s: %s\n", program_name, path, strerror(error));
    return false;
}

/* The command as it was given. */
static void print_command(int argc, char **argv, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s", program_name);
    for (int i = 1; i < argc && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, strchr(argv[i], ' ') ? " '%s'" : " %s", argv[i]);
}

static int run(const arguments *a, shapes *s, report *r)
{
    options o;
    char why[256], *argv[16] = {(char *)program_name, "--script", "shapes"};
    memcpy(argv + 3, a->script, (size_t)a->n_script * sizeof *argv);
    if (!options_parse(3 + a->n_script, argv, NULL, &o, why, sizeof why))
        bad_usage("%s", why);
    if (o.on == ON_INTERP)
        bad_usage("--on=interp: timings on the interpreter are meaningless");
    int status = script_run_lines(&o, s->lines, s->n, &(script_sink){take_machine, take_row, r});
    if (!r->n)
        return status;
    report_print_means(stdout, r);
    bool ok = write_file(a->json, write_json, r);
    ok &= write_file(a->markdown, write_markdown, r);
    ok &= write_file(a->plot, draw, r);
    return status == EXIT_OK && !ok ? EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
    static arguments a;
    shapes s = {0};
    report r = {.n = 0};
    prepare_output();
    parse(argc, argv, &a);
    read_shapes(&a, &s);
    r.rows = calloc(s.n, sizeof *r.rows);
    if (!r.rows)
        out_of_memory();
    print_command(argc, argv, r.command, sizeof r.command);
    int status = run(&a, &s, &r);
    free(r.rows);
    free(s.lines);
    free(s.text);
    return finish_output(status);
}
