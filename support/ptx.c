/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char opening[] = ".visible .entry ";

/* An entry from the line that opens it to the one that its body ends in. */
typedef struct part {
    const char *begin, *end;
} part;

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

static bool begins_with(const char *text, const char *what)
{
    return !strncmp(text, what, strlen(what));
}

/* Its last brace; inline assembly and vectors have more of them. NULL where the next entry comes first. */
static const char *end_of_body(const char *entry)
{
    int depth = 0;
    const char *next = strstr(entry + 1, opening);
    for (const char *p = entry + 1; *(p += strcspn(p, "{}/"));) { /* in a few steps: texts have a megabyte */
        if (begins_with(p, "//")) {
            p = next_line(p);
            next = next && next < p ? strstr(p, opening) : next;
            continue;
        }
        if (next && p > next)
            return NULL;
        depth += (*p == '{') - (*p == '}');
        if (*p++ == '}' && !depth)
            return p - 1;
    }
    return NULL;
}

/* The next entry from a line on; begin is NULL where there is none that ends. */
static part find_part(const char *line)
{
    part p = {0};
    while (*line && !begins_with(line, opening))
        line = next_line(line);
    const char *end = *line ? end_of_body(line) : NULL;
    if (end)
        p = (part){line, next_line(end)};
    return p;
}

/* Whether all lines are empty or comments. */
static bool is_blank(const char *from, const char *to)
{
    for (; from < to; from = next_line(from)) {
        const char *word = from + strspn(from, " \t");
        if (*word != '\n' && !begins_with(word, "//"))
            return false;
    }
    return true;
}

bool tcc_ptx_has_parts(const char *text)
{
    size_t n = 0;
    const char *end = text;
    for (part p = find_part(text); p.begin; p = find_part(p.end), n++) {
        if (n && !is_blank(end, p.begin))
            return false;
        end = p.end;
    }
    return n > 1 && !strstr(end, opening);
}

static bool is_named(part p, const char *entry)
{
    const char *name = p.begin + strlen(opening);
    return begins_with(name, entry) && name[strlen(entry)] == '(';
}

const char *tcc_ptx_find(const char *text, const char *from, const char *entry)
{
    const char *p = strstr(from, opening);
    while (p && !((p == text || p[-1] == '\n') && is_named((part){p, NULL}, entry)))
        p = strstr(p + 1, opening);
    return p || from == text ? p : tcc_ptx_find(text, text, entry);
}

char *tcc_ptx_part(const char *text, const char *entry)
{
    part first = find_part(text), found = {0}, last = {0};
    for (part p = first; p.begin; p = find_part(p.end)) {
        if (is_named(p, entry))
            found = p;
        last = p;
    }
    if (!found.begin)
        return NULL;
    size_t head = (size_t)(first.begin - text), body = (size_t)(found.end - found.begin);
    char *out = malloc(head + body + strlen(last.end) + 1);
    if (out)
        sprintf(out, "%.*s%.*s%s", (int)head, text, (int)body, found.begin, last.end);
    return out;
}

/* Shared memory is declared only where an entry uses it, so that the longest text before an entry is that of all. */
char *tcc_ptx_join(const char *const *texts, size_t n)
{
    part first = find_part(texts[0]);
    size_t size = 1, head = 0, of = 0;
    for (size_t i = 0; i < n; i++) {
        part p = find_part(texts[i]);
        size += strlen(texts[i]) + 1;
        if (p.begin && (size_t)(p.begin - texts[i]) > head) {
            head = (size_t)(p.begin - texts[i]);
            of = i;
        }
    }
    char *out = malloc(size), *end = out;
    if (!out || !first.begin) {
        free(out);
        return NULL;
    }
    end += sprintf(end, "%.*s", (int)head, texts[of]);
    for (size_t i = 0; i < n; i++) {
        part p = find_part(texts[i]);
        end += sprintf(end, "%s%.*s", i ? "\n" : "", (int)(p.end - p.begin), p.begin);
    }
    strcpy(end, first.end);
    return out;
}
