/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for n more bytes and a terminator. */
static bool reserve(tcc_str *s, size_t n)
{
    if (s->failed)
        return false;
    if (s->cap - s->len > n)
        return true;
    size_t cap = s->cap ? s->cap * 2 : 256;
    while (cap - s->len <= n)
        cap *= 2;
    char *p = realloc(s->data, cap);
    if (!p) {
        s->failed = true;
        return false;
    }
    s->data = p;
    s->cap = cap;
    return true;
}

void tcc_str_append(tcc_str *s, const char *text, size_t n)
{
    if (!reserve(s, n))
        return;
    if (n)
        memcpy(s->data + s->len, text, n);
    s->len += n;
    s->data[s->len] = 0;
}

void tcc_str_puts(tcc_str *s, const char *text)
{
    tcc_str_append(s, text, strlen(text));
}

void tcc_str_printf(tcc_str *s, const char *format, ...)
{
    enum { MOSTLY_ENOUGH = 63 };
    if (!reserve(s, MOSTLY_ENOUGH))
        return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(s->data + s->len, s->cap - s->len, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n >= s->cap - s->len) { /* cut off */
        s->data[s->len] = 0;
        if (!reserve(s, (size_t)n))
            return;
        va_start(args, format);
        n = vsnprintf(s->data + s->len, (size_t)n + 1, format, args);
        va_end(args);
    }
    s->len += n < 0 ? 0 : (size_t)n;
}

void tcc_str_int(tcc_str *s, int64_t v)
{
    enum { MOST_DIGITS = 20 };
    char text[MOST_DIGITS], *at = text + MOST_DIGITS;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (v < 0)
        *--at = '-';
    tcc_str_append(s, at, (size_t)(text + MOST_DIGITS - at));
}

void tcc_str_indent(tcc_str *s, size_t n)
{
    if (!reserve(s, n))
        return;
    memset(s->data + s->len, ' ', n);
    s->len += n;
    s->data[s->len] = 0;
}

const char *tcc_str_text(const tcc_str *s)
{
    return s->data ? s->data : "";
}

char *tcc_str_take(tcc_str *s)
{
    tcc_str_append(s, "", 0);
    char *p = s->failed ? NULL : s->data;
    if (s->failed)
        free(s->data);
    *s = (tcc_str){0};
    return p;
}

void tcc_str_free(tcc_str *s)
{
    free(s->data);
    *s = (tcc_str){0};
}

bool tcc_has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *w = words; w; w = strchr(w, ' ')) {
        w += *w == ' ';
        if (!strncmp(w, word, n) && (w[n] == ' ' || !w[n]))
            return true;
    }
    return false;
}
