/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/script.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/shared/progress.h"
#include "tools/shared/whole_file.h"
#include "tools/tcc-run/run.h"

enum { MAX_TIMEOUT_S = 1000000 /* longer: no limit */ };

/* A result goes through the pipe whole. */
_Static_assert(sizeof(run_result) <= PIPE_BUF, "writes of a result must be atomic");

typedef struct script {
    const char *path; /* NULL: there is no file */
    const options *o; /* of the command that runs it */
    char *text;       /* the words point into it */
    script_line *lines;
    size_t n;
} script;

/* ---- reading ---------------------------------------------------------------------------- */

/* Splits a line at white space; '#' begins a comment. False when it has too many words. */
static bool split(char *text, script_line *out)
{
    static char tool[] = "tcc-run";
    text[strcspn(text, "#")] = 0;
    out->words[0] = tool;
    out->n_words = 1;
    char *state = NULL;
    for (char *word = strtok_r(text, " \t", &state); word;
         word = strtok_r(NULL, " \t", &state)) {
        if (out->n_words == SCRIPT_MAX_WORDS)
            return false;
        out->words[out->n_words++] = word;
    }
    return true;
}

static bool add_line(script *s, char *text, int number)
{
    script_line line = {.number = number};
    if (!split(text, &line)) {
        fprintf(stderr, "%s: %s:%d: too many words\n", program_name, s->path, number);
        return false;
    }
    if (line.n_words == 1)
        return true;
    script_line *grown = realloc(s->lines, (s->n + 1) * sizeof *grown);
    if (!grown)
        return false;
    s->lines = grown;
    s->lines[s->n++] = line;
    return true;
}

/* The line after the one at p, which ends in a line feed, a carriage return or both; NULL after the
 * last one. */
static char *next_line(char *p)
{
    p += strcspn(p, "\r\n");
    return !*p ? NULL : p + (p[0] == '\r' && p[1] == '\n' ? 2 : 1);
}

/* Whether the text is one: a 0 byte would end it early. */
static bool check_text(const char *path, const char *text, size_t size)
{
    const char *zero = memchr(text, 0, size);
    int number = 1;
    if (!zero)
        return true;
    for (char *p = (char *)text; (p = next_line(p)) && p <= zero;)
        number++;
    fprintf(stderr, "%s: %s:%d: this is not text: it has a 0 byte\n", program_name, path, number);
    return false;
}

static bool read_script(const options *o, script *out)
{
    const char *path = o->script;
    *out = (script){.path = path, .o = o};
    FILE *f = fopen(path, "r");
    size_t size = 0;
    out->text = f ? whole_file_read(f, &size) : NULL;
    if (!out->text)
        fprintf(stderr, "%s: %s: %s\n", program_name, path, strerror(errno));
    if (f)
        fclose(f);
    bool ok = out->text && check_text(path, out->text, size);
    int number = 1;
    for (char *p = out->text, *next; ok && p; p = next, number++) {
        next = next_line(p);
        p[strcspn(p, "\r\n")] = 0;
        ok = add_line(out, p, number);
    }
    return ok;
}

/* ---- the child -------------------------------------------------------------------------- */

static void run_line(session *s, const script *sc, const script_line *line, run_result *out)
{
    options o;
    char why[256];
    bool ok = options_parse(line->n_words, (char **)line->words, sc->o, &o, why, sizeof why);
    if (ok && o.file) {
        run_case(s, &o, out);
        return;
    }
    *out = (run_result){.status = EXIT_USAGE};
    snprintf(out->message, sizeof out->message, "%s", ok ? "a file is needed" : why);
}

static bool send_result(int pipe_end, const run_result *r)
{
    return write(pipe_end, r, sizeof *r) == (ssize_t)sizeof *r;
}

/* Sends one result that names the machine, then one for each line from `first` on. Never returns. */
static _Noreturn void run_child(const script *sc, size_t first, int pipe_end)
{
    session s = {.quiet = true};
    run_result r;
    run_nothing(&s, sc->o, &r);
    bool usable = send_result(pipe_end, &r) && !r.status;
    for (size_t i = first; usable && i < sc->n; i++) {
        run_line(&s, sc, &sc->lines[i], &r);
        usable = send_result(pipe_end, &r) && !r.driver_failed;
    }
    if (usable)
        session_close(&s); /* else the context may be beyond an orderly end */
    _exit(0);
}

/* ---- the parent ------------------------------------------------------------------------- */

typedef struct child {
    pid_t pid; /* 0: none */
    int pipe_end;
} child;

/* Ends the child and says how it died in `why`, where it did by itself. */
static void end_child(child *c, bool kill_it, char *why, size_t why_size)
{
    int status = 0;
    if (!c->pid)
        return;
    if (kill_it)
        kill(c->pid, SIGKILL);
    close(c->pipe_end);
    waitpid(c->pid, &status, 0);
    c->pid = 0;
    if (!kill_it && WIFSIGNALED(status))
        snprintf(why, why_size, "crashed: %s", strsignal(WTERMSIG(status)));
}

/* Waits for one result. Without one the child is ended and out->message says why. */
static bool receive(child *c, int64_t timeout_s, run_result *out)
{
    struct pollfd ready = {.fd = c->pipe_end, .events = POLLIN};
    int n = poll(&ready, 1, timeout_s < MAX_TIMEOUT_S ? (int)timeout_s * 1000 : -1);
    if (n > 0 && read(c->pipe_end, out, sizeof *out) == (ssize_t)sizeof *out)
        return true;
    *out = (run_result){.status = EXIT_FAILED, .message = "ended without a result"};
    if (!n)
        snprintf(out->message, sizeof out->message, "timed out after %lld s",
                 (long long)timeout_s);
    end_child(c, !n, out->message, sizeof out->message);
    return false;
}

static bool fork_child(const script *sc, size_t first, child *out)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends))
        return false;
    out->pid = fork();
    if (!out->pid) {
        close(ends[0]);
        run_child(sc, first, ends[1]);
    }
    close(ends[1]);
    out->pipe_end = ends[0];
    if (out->pid > 0)
        return true;
    close(ends[0]);
    out->pid = 0;
    return false;
}

/* Starts a child at line `first` and takes its first result, which names the machine. */
static bool start_child(const script *sc, size_t first, int64_t timeout_s, child *c,
                        run_result *out)
{
    *out = (run_result){.status = EXIT_FAILED, .message = "no process could be started"};
    return fork_child(sc, first, c) && receive(c, timeout_s, out) && !out->status;
}

/* The word of a line that names its file, for rows whose run did not reach a kernel. */
static const char *file_of(const script_line *line)
{
    for (int i = 1; i < line->n_words; i++)
        if (line->words[i][0] != '-' && strchr(line->words[i], '.'))
            return line->words[i];
    return "";
}

/* The arguments of a line after its file, for a row without a kernel's name. */
static void describe(const script_line *line, run_result *r)
{
    size_t len = 0;
    snprintf(r->kernel, sizeof r->kernel, "line %d", line->number);
    for (int i = 1; i < line->n_words && len < sizeof r->dims; i++)
        len += (size_t)snprintf(r->dims + len, sizeof r->dims - len, "%s%s", i > 1 ? " " : "",
                                line->words[i]);
}

/* Takes the result of line i from the child, which must be there. */
static void take_result(const script *sc, size_t i, int64_t timeout_s, child *c, run_result *r)
{
    char ignored[64];
    if (receive(c, timeout_s, r) && r->driver_failed)
        end_child(c, false, ignored, sizeof ignored);
    if (!r->kernel[0])
        describe(&sc->lines[i], r);
}

static int run_lines(const script *sc, const script_sink *sink)
{
    child c = {0};
    progress p = progress_begin(program_name);
    char ignored[64];
    bool told = false;
    int status = EXIT_OK;
    for (size_t i = 0; i < sc->n; i++) {
        run_result r;
        if (!c.pid && !start_child(sc, i, sc->o->timeout_s, &c, &r)) {
            fprintf(stderr, "%s: no GPU: %s\n", program_name, r.message);
            end_child(&c, false, ignored, sizeof ignored);
            return r.status;
        }
        if (!told)
            sink->machine(&r, sink->user);
        told = true;
        take_result(sc, i, sc->o->timeout_s, &c, &r);
        progress_clear(&p);
        sink->line(&sc->lines[i], &r, sink->user);
        if (r.status)
            status = EXIT_FAILED;
        progress_tell(&p, (double)(i + 1) / (double)sc->n);
    }
    progress_clear(&p);
    end_child(&c, false, ignored, sizeof ignored);
    return status;
}

int script_run_lines(const options *o, script_line *lines, size_t n, const script_sink *sink)
{
    return run_lines(&(script){.o = o, .lines = lines, .n = n}, sink);
}

/* ---- a script's report -------------------------------------------------------------------- */

typedef struct report {
    size_t passed, failed;
    FILE *table; /* NULL: none */
} report;

static void begin_report(const run_result *of, void *user)
{
    const report *r = user;
    if (r->table)
        result_print_table_head(r->table, of);
}

static void report_line(const script_line *line, const run_result *result, void *user)
{
    report *r = user;
    result_print_row(stdout, result);
    if (r->table) {
        result_print_table_row(r->table, file_of(line), result);
        fflush(r->table);
    }
    *(result->status ? &r->failed : &r->passed) += 1;
}

static int run_script(const script *sc, FILE *table)
{
    report r = {.table = table};
    int status = run_lines(sc, &(script_sink){begin_report, report_line, &r});
    if (status == EXIT_OK || status == EXIT_FAILED)
        printf("%zu passed, %zu failed\n", r.passed, r.failed);
    return status;
}

int script_run(const options *o)
{
    script sc;
    FILE *table = NULL;
    int status = EXIT_FAILED;
    bool ok = read_script(o, &sc);
    if (ok && o->table && !(table = whole_file_open(o->table))) {
        fprintf(stderr, "%s: %s: %s\n", program_name, o->table, strerror(errno));
        ok = false;
    }
    if (ok)
        status = run_script(&sc, table);
    if (table && !whole_file_close(table, !ferror(table))) {
        fprintf(stderr, "%s: %s: %s\n", program_name, o->table, strerror(errno));
        status = EXIT_FAILED;
    }
    free(sc.lines);
    free(sc.text);
    return status;
}
