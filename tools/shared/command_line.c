/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/shared/command_line.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/whole_file.h"

void print_text(const char *text, void *user)
{
    (void)user;
    fputs(text, stderr);
}

void bad_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("\n", stderr);
    point_to_help("");
}

void point_to_help(const char *command)
{
    fprintf(stderr, "Try '%s%s --help'.\n", program_name, command);
    exit(EXIT_USAGE);
}

void out_of_memory(void)
{
    fprintf(stderr, "%s: out of memory\n", program_name);
    exit(EXIT_FAILED);
}

static void file_error(const char *name)
{
    fprintf(stderr, "%s: %s: %s\n", program_name, name, strerror(errno));
}

uint64_t parse_check_seed(const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long long seed = text ? strtoull(text, &end, 10) : 0;
    if (text && (errno || *text < '0' || *text > '9' || *end))
        bad_usage("--check-passes=%s: expected a number", text);
    return seed;
}

void parse_color(diagnostic_printer *p, const char *value)
{
    if (!color_named(value, &p->color))
        bad_usage("--color=%s: expected auto, always or never", value);
}

void parse_diagnostics(diagnostic_printer *p, const char *value)
{
    if (!diagnostics_named(value, &p->json))
        bad_usage("--diagnostics=%s: expected text or json", value);
}

char *read_input(const char *name, size_t *size)
{
    FILE *f = strcmp(name, "-") ? fopen(name, "rb") : stdin;
    char *data = f ? whole_file_read(f, size) : NULL;
    if (!data) {
        file_error(name);
        exit(EXIT_USAGE);
    }
    if (f != stdin)
        fclose(f);
    return data;
}

bool write_output(const char *name, const void *data, size_t size)
{
    bool to_stdout = !strcmp(name, "-");
    FILE *f = to_stdout ? stdout : whole_file_open(name);
    bool ok = f && fwrite(data, 1, size, f) == size;
    if (to_stdout)
        return true; /* finish_output looks */
    ok = f && whole_file_close(f, ok);
    if (!ok)
        file_error(name);
    return ok;
}

void prepare_output(void)
{
    signal(SIGXFSZ, SIG_IGN);
}

int finish_output(int status)
{
    bool ok = !ferror(stdout);
    if (fflush(stdout) || !ok) {
        fprintf(stderr, "%s: standard output: %s\n", program_name, strerror(errno));
        ok = false;
    }
    ok = ok && !ferror(stderr);
    return ok || status ? status : EXIT_USAGE;
}
