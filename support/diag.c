/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/str.h"

enum { MAX_SHOWN_LINE = 200 }; /* longer source lines are cut around the column */

const char *tcc_status_name(tcc_status status)
{
    static const char *const names[] = {
        [TCC_OK] = "ok",
        [TCC_ERR_SYNTAX] = "syntax error",
        [TCC_ERR_TYPE] = "type error",
        [TCC_ERR_TARGET] = "does not fit the target",
        [TCC_ERR_UNSUPPORTED] = "not supported yet",
        [TCC_ERR_MEMORY] = "out of memory",
        [TCC_ERR_INTERNAL] = "internal error",
        [TCC_ERR_ARGUMENT] = "bad argument",
        [TCC_ERR_IO] = "input or output failed",
        [TCC_ERR_TOOL] = "external tool failed",
        [TCC_ERR_NO_DRIVER] = "no GPU driver",
        [TCC_ERR_DRIVER] = "GPU driver error",
        [TCC_ERR_NO_VARIANT] = "no variant is valid for these arguments",
        [TCC_ERR_LIMIT] = "more than the limit",
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}

static const char *const severity_name[] = {"note", "warning", "error"};

/* The source line of loc, and its length. Lines are found by scanning: errors are rare. */
static const char *find_line(const tcc_diag *d, tcc_loc loc, size_t *len)
{
    if (!d->source || !loc.line)
        return NULL;
    const char *p = d->source, *end = d->source + d->size;
    for (uint32_t line = 1; line < loc.line; line++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p)
            return NULL;
        p++;
    }
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    *len = (size_t)((eol ? eol : end) - p);
    if (*len && p[*len - 1] == '\r')
        --*len;
    return p;
}

/* Header, source line and caret. Tabs are kept before the caret so that it lines up; bytes that
 * are not printable ASCII or UTF-8 tails print as '?' so that a terminal is never garbled. */
static void render(tcc_str *out, const tcc_diag *d, tcc_severity sev, tcc_loc loc, const char *msg,
                   tcc_str *line_text)
{
    if (loc.line)
        tcc_str_printf(out, "%s:%u:%u: ", d->file, loc.line, loc.column);
    else if (d->file)
        tcc_str_printf(out, "%s: ", d->file);
    tcc_str_printf(out, "%s: %s\n", severity_name[sev], msg);
    size_t len = 0;
    const char *line = find_line(d, loc, &len);
    if (!line)
        return;
    size_t col = loc.column ? loc.column - 1 : 0, from = 0;
    if (len > MAX_SHOWN_LINE) {
        from = col > MAX_SHOWN_LINE / 2 ? col - MAX_SHOWN_LINE / 2 : 0;
        len = len - from > MAX_SHOWN_LINE ? MAX_SHOWN_LINE : len - from;
        line += from;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)line[i];
        char shown = (c < 32 && c != '\t') || c >= 127 ? '?' : (char)c;
        tcc_str_append(line_text, &shown, 1);
    }
    tcc_str_printf(out, "%s\n", tcc_str_text(line_text));
    for (size_t i = from; i < col; i++)
        tcc_str_puts(out, i - from < len && line[i - from] == '\t' ? "\t" : " ");
    tcc_str_puts(out, "^\n");
}

static void report(tcc_diag *d, tcc_severity sev, tcc_loc loc, const char *format, va_list args)
{
    if (!d->fn || (sev != TCC_SEV_WARNING && d->n_errors > TCC_MAX_ERRORS))
        return;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    tcc_str msg = {0}, text = {0}, line = {0};
    for (int i = 0; i < n; i++)
        tcc_str_append(&msg, " ", 1);
    if (msg.len == (size_t)n && n > 0)
        vsnprintf(msg.data, (size_t)n + 1, format, again);
    va_end(again);
    render(&text, d, sev, loc, tcc_str_text(&msg), &line);
    d->fn(&(tcc_diagnostic){.severity = sev,
                            .file = d->file,
                            .line = loc.line,
                            .column = loc.column,
                            .message = tcc_str_text(&msg),
                            .source_line = line.data,
                            .text = tcc_str_text(&text)},
          d->user);
    tcc_str_free(&msg);
    tcc_str_free(&text);
    tcc_str_free(&line);
}

#define REPORT(sev)                                                                                \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        report(d, sev, loc, format, args);                                                         \
        va_end(args);                                                                              \
    } while (0)

void tcc_error(tcc_diag *d, tcc_status status, tcc_loc loc, const char *format, ...)
{
    if (!d->n_errors++)
        d->status = status;
    REPORT(TCC_SEV_ERROR);
}

void tcc_warn(tcc_diag *d, tcc_loc loc, const char *format, ...)
{
    d->n_warnings++;
    REPORT(TCC_SEV_WARNING);
}

void tcc_note(tcc_diag *d, tcc_loc loc, const char *format, ...)
{
    REPORT(TCC_SEV_NOTE);
}
