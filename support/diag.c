/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/str.h"
#include "support/text.h"

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
        [TCC_ERR_INTERRUPTED] = "interrupted",
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}

/* Whether a byte goes on with a character of UTF-8. */
static bool is_tail(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static const char *const severity_name[] = {"note", "warning", "error"};

/* Lines are found by scanning: errors are rare. */
const char *tcc_diag_line(const tcc_diag *d, tcc_loc loc, size_t *len)
{
    if (!d->source || !loc.line)
        return NULL;
    const char *p = d->source, *end = d->source + d->size;
    for (uint32_t line = 1; line < loc.line; line++) {
        p = tcc_line_rest(p, end);
        if (p == end)
            return NULL;
        p += tcc_line_end(p, (size_t)(end - p));
    }
    *len = (size_t)(tcc_line_rest(p, end) - p);
    return p;
}

/* The part of a line around a column that is shown, cut between characters. */
static void cut_line(const char **line, size_t *len, size_t *column)
{
    size_t from = *column > MAX_SHOWN_LINE / 2 ? *column - MAX_SHOWN_LINE / 2 : 0, to = *len;
    if (*len <= MAX_SHOWN_LINE || from > *len)
        return;
    while (from < *len && from < *column && is_tail((*line)[from])) /* there may be no head at all */
        from++;
    if (to - from > MAX_SHOWN_LINE)
        for (to = from + MAX_SHOWN_LINE; to > from && is_tail((*line)[to]);)
            to--;
    *line += from;
    *len = to - from;
    *column -= from;
}

/* Appends the character at p to a line and as much white space to `space`. Tabs stay tabs, so that
 * the caret lines up; what is not UTF-8 and what could garble a terminal is a '?'. */
static size_t show_char(const char *p, size_t n, tcc_str *line, tcc_str *space)
{
    static const uint32_t byte_order_mark = 0xfeff;
    size_t len = tcc_utf8_length(p, n);
    uint32_t c = len ? tcc_utf8_decode(p, len) : 0;
    int width = tcc_char_width(c), columns = width < 0 ? 1 : width;
    if (c == byte_order_mark)
        return len;
    if (c != '\t' && width < 0)
        tcc_str_puts(line, "?");
    else
        tcc_str_append(line, p, len);
    for (int i = 0; i < columns; i++)
        tcc_str_puts(space, c == '\t' ? "\t" : " ");
    return len ? len : 1;
}

/* Header, source line and caret. */
static void render(tcc_str *out, const tcc_diag *d, tcc_severity sev, tcc_loc loc, const char *msg,
                   tcc_str *line_text)
{
    if (loc.line)
        tcc_str_printf(out, "%s:%u:%u: ", d->file, loc.line, loc.column);
    else if (d->file)
        tcc_str_printf(out, "%s: ", d->file);
    tcc_str_printf(out, "%s: %s\n", severity_name[sev], msg);
    size_t len = 0, column = loc.column ? loc.column - 1 : 0;
    const char *line = tcc_diag_line(d, loc, &len);
    if (!line)
        return;
    tcc_str before = {0}, rest = {0};
    cut_line(&line, &len, &column);
    for (size_t i = 0; i < len;)
        i += show_char(line + i, len - i, line_text, i < column ? &before : &rest);
    for (size_t i = len; i < column; i++)
        tcc_str_puts(&before, " ");
    tcc_str_printf(out, "%s\n%s^\n", tcc_str_text(line_text), tcc_str_text(&before));
    tcc_str_free(&before);
    tcc_str_free(&rest);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The column after the word or character at a location. */
static unsigned end_of(const tcc_diag *d, tcc_loc loc)
{
    size_t len = 0, at = loc.column ? loc.column - 1 : 0;
    const char *line = tcc_diag_line(d, loc, &len);
    if (!line || at >= len)
        return loc.column;
    size_t end = at;
    while (end < len && is_word(line[end]))
        end++;
    size_t character = tcc_utf8_length(line + at, len - at);
    return (unsigned)(end > at ? end : at + (character ? character : 1)) + 1;
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
                            .text = tcc_str_text(&text),
                            .end_column = end_of(d, loc)},
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
