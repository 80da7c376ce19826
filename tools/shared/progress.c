/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/shared/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Before the first line, where nothing else is said, and between two. */
static const double SILENT_S = 2, BETWEEN_S = 0.2;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

progress progress_begin(const char *what)
{
    const char *terminal = getenv("TERM"), *after = getenv("TCC_PROGRESS_AFTER");
    bool dumb = !terminal || !strcmp(terminal, "dumb");
    return (progress){.what = what, .on_terminal = !dumb && isatty(STDERR_FILENO),
                      .silent_s = after ? strtod(after, NULL) : SILENT_S, .began_s = now_s()};
}

static bool is_due(const progress *p, double now)
{
    return p->on_terminal && now - p->began_s >= p->silent_s && now - p->told_s >= BETWEEN_S;
}

void progress_say(progress *p, const char *format, ...)
{
    double now = now_s();
    va_list args;
    if (!is_due(p, now))
        return;
    fprintf(stderr, "\r%s: ", p->what);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("\033[K", stderr);
    fflush(stderr);
    p->told_s = now;
    p->shown = true;
}

void progress_tell(progress *p, double part)
{
    double spent = now_s() - p->began_s;
    if (part > 0)
        progress_say(p, "%.0f %%, %.0f s left", 100 * part, spent * (1 - part) / part);
}

void progress_clear(progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
    p->told_s = 0;
}
