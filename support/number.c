/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 255, MAX_RADIX = 16 };

/* The C library reads and writes the decimal point of the program's locale, which is not ours to
 * set. printf shows what it is. */
static size_t locale_radix(char radix[MAX_RADIX])
{
    int n = snprintf(radix, MAX_RADIX, "%.1f", 0.5);
    size_t len = n > 2 && n < MAX_RADIX ? (size_t)n - 2 : 0;
    memmove(radix, radix + 1, len);
    return len;
}

bool tcc_double_parse(const char *text, size_t n, double *out)
{
    char radix[MAX_RADIX], local[MAX_TEXT + MAX_RADIX + 1];
    if (!n || n > MAX_TEXT || !strchr("+-.0123456789in", *text))
        return false;
    size_t radix_len = locale_radix(radix), len = 0;
    bool point = false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '.' && !point) {
            memcpy(local + len, radix, radix_len);
            len += radix_len;
            point = true;
        } else if (text[i] && strchr("+-0123456789abcdefABCDEFxXpPin", text[i])) {
            local[len++] = text[i];
        } else {
            return false;
        }
    }
    local[len] = 0;
    char *end;
    *out = strtod(local, &end);
    return end == local + len && (!isinf(*out) || memchr(text, 'i', n));
}

void tcc_str_double(tcc_str *s, double v)
{
    char text[64];
    if (isnan(v) || isinf(v)) {
        tcc_str_puts(s, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    bool marked = false;
    for (const char *p = text; *p;) {
        size_t n = strspn(p, "+-0123456789");
        tcc_str_append(s, p, n);
        p += n;
        if (!*p)
            break;
        tcc_str_puts(s, *p == 'e' ? "e" : ".");
        p += strcspn(p + 1, "0123456789+-") + 1;
        marked = true;
    }
    if (!marked)
        tcc_str_puts(s, ".0");
}
