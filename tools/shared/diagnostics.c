/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/shared/diagnostics.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const severity_names[] = {
    [TCC_SEV_NOTE] = "note", [TCC_SEV_WARNING] = "warning", [TCC_SEV_ERROR] = "error"};

/* ---- options ------------------------------------------------------------------------------ */

static bool find_name(const char *const *names, int n, const char *name, int *out)
{
    for (*out = 0; *out < n; ++*out)
        if (!strcmp(names[*out], name))
            return true;
    return false;
}

bool color_named(const char *name, color_when *out)
{
    static const char *const names[] = {[COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never"};
    int i;
    bool ok = find_name(names, COLOR_NEVER + 1, name, &i);
    *out = ok ? (color_when)i : COLOR_AUTO;
    return ok;
}

bool diagnostics_named(const char *name, bool *json)
{
    static const char *const names[] = {"text", "json"};
    int i;
    bool ok = find_name(names, 2, name, &i);
    *json = i == 1;
    return ok;
}

/* ---- text --------------------------------------------------------------------------------- */

/* no-color.org: set and not empty. */
static bool has_color(const diagnostic_printer *p)
{
    const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (p->color != COLOR_AUTO)
        return p->color == COLOR_ALWAYS;
    return isatty(STDERR_FILENO) && (!off || !*off) && terminal && strcmp(terminal, "dumb") != 0;
}

/* "FILE:LINE:COLUMN: ", "FILE: " or nothing, then the severity; after the message the line and its caret. */
static void print_colored(const tcc_diagnostic *d)
{
    static const char *const colors[] = {
        [TCC_SEV_NOTE] = "\033[1;36m", [TCC_SEV_WARNING] = "\033[1;35m", [TCC_SEV_ERROR] = "\033[1;31m"};
    static const char bold[] = "\033[1m", green[] = "\033[1;32m", off[] = "\033[0m";
    const char *severity = severity_names[d->severity], *rest = d->text;
    int place = d->line ? snprintf(NULL, 0, "%s:%u:%u: ", d->file, d->line, d->column)
                : d->file ? snprintf(NULL, 0, "%s: ", d->file)
                          : 0;
    fprintf(stderr, "%s%.*s%s%s: %s%s%s%s\n", bold, place, rest, colors[d->severity], severity, off, bold, d->message, off);
    rest += (size_t)place + strlen(severity) + 2 + strlen(d->message) + 1;
    size_t line = strcspn(rest, "\n");
    fprintf(stderr, "%.*s", (int)(line + (rest[line] != 0)), rest);
    rest += line + (rest[line] != 0);
    if (*rest)
        fprintf(stderr, "%s%.*s%s\n", green, (int)strcspn(rest, "\n"), rest, off);
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 sequence here; 0 where there is none (RFC 3629, section 4). */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90);
    bool surrogate = *s == 0xed && s[1] >= 0xa0, beyond = *s == 0xf4 && s[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

/* What is not UTF-8, which names of files may hold, becomes U+FFFD. */
static void print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = utf8_length(s);
        if (!n)
            fputs("\\ufffd", out);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(out, "\\u%04x", *s);
        else
            fprintf(out, "%s%.*s", *s == '"' || *s == '\\' ? "\\" : "", (int)n, (const char *)s);
        s += n ? n : 1;
    }
    fputc('"', out);
}

static void print_members(FILE *out, const tcc_diagnostic *d)
{
    fputs("\"file\": ", out);
    if (d->file)
        print_string(out, d->file);
    else
        fputs("null", out);
    fprintf(out, ", \"line\": %u, \"column\": %u, \"end\": %u, ", d->line, d->column, d->end_column);
    fprintf(out, "\"severity\": \"%s\", \"message\": ", severity_names[d->severity]);
    print_string(out, d->message);
}

static void print_json(diagnostic_printer *p, const tcc_diagnostic *d)
{
    bool is_note = d->severity == TCC_SEV_NOTE && p->object;
    if (!is_note) {
        end_diagnostics(p);
        p->object = open_memstream(&p->text, &p->size);
        p->has_notes = false;
    }
    if (!p->object)
        return;
    fputs(p->has_notes ? ", {" : "{", p->object);
    print_members(p->object, d);
    fputs(is_note ? "}" : ", \"notes\": [", p->object);
    p->has_notes = is_note;
}

void end_diagnostics(diagnostic_printer *p)
{
    if (!p->object)
        return;
    fclose(p->object);
    p->object = NULL;
    if (p->text)
        fprintf(stderr, "%s]}\n", p->text);
    free(p->text);
    p->text = NULL;
}

void print_diagnostic(const tcc_diagnostic *d, void *user)
{
    diagnostic_printer *p = user;
    if (p->json)
        print_json(p, d);
    else if (has_color(p))
        print_colored(d);
    else
        fputs(d->text, stderr);
}
