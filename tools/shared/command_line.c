/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/shared/command_line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void print_diagnostic(const tcc_diagnostic *d, void *user)
{
    (void)user;
    fputs(d->text, stderr);
}

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
    fprintf(stderr, "\nTry '%s --help'.\n", program_name);
    exit(EXIT_USAGE);
}

void out_of_memory(void)
{
    fprintf(stderr, "%s: out of memory\n", program_name);
    exit(EXIT_PROGRAM);
}

static void file_error(const char *name)
{
    fprintf(stderr, "%s: %s: %s\n", program_name, name, strerror(errno));
}

static char *read_all(FILE *f, size_t *size)
{
    char *data = NULL;
    size_t len = 0, cap = 0;
    for (;;) {
        if (len == cap) {
            char *grown = realloc(data, cap = cap ? cap * 2 : 65536);
            if (!grown) {
                free(data);
                return NULL;
            }
            data = grown;
        }
        size_t n = fread(data + len, 1, cap - len, f);
        if (!n)
            break;
        len += n;
    }
    *size = len;
    return data;
}

uint64_t parse_check_seed(const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long long seed = text ? strtoull(text, &end, 10) : 0;
    if (text && (errno || *text < '0' || *text > '9' || *end))
        bad_usage("--check-passes=%s: want a number", text);
    return seed;
}

char *read_input(const char *name, size_t *size)
{
    FILE *f = strcmp(name, "-") ? fopen(name, "rb") : stdin;
    char *data = f ? read_all(f, size) : NULL;
    if (!data || ferror(f)) {
        file_error(name);
        free(data);
        exit(EXIT_USAGE);
    }
    if (f != stdin)
        fclose(f);
    return data;
}

bool write_output(const char *name, const void *data, size_t size)
{
    FILE *f = strcmp(name, "-") ? fopen(name, "wb") : stdout;
    bool ok = f && fwrite(data, 1, size, f) == size;
    ok &= f && (f == stdout ? fflush(f) : fclose(f)) == 0;
    if (!ok)
        file_error(name);
    return ok;
}
