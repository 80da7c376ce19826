/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/lex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/text.h"

/* ASCII only, in every locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_ident_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_ident(char c)
{
    return is_ident_start(c) || is_digit(c) || c == '.';
}

bool tcc_is_float_word(const char *s, size_t n)
{
    return n == 3 && (!memcmp(s, "inf", 3) || !memcmp(s, "nan", 3));
}

bool tcc_is_ident(const char *s, size_t n)
{
    if (!n || !is_ident_start(*s))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!is_ident(s[i]))
            return false;
    return true;
}

tcc_lexer tcc_lexer_create(const char *text, size_t size, tcc_diag *diag)
{
    return (tcc_lexer){.p = text,
                       .end = text + size,
                       .line_start = text,
                       .line = 1,
                       .fresh_line = true,
                       .diag = diag};
}

static tcc_loc here(const tcc_lexer *l)
{
    return (tcc_loc){l->line, (uint32_t)(l->p - l->line_start) + 1};
}

static char peek(const tcc_lexer *l, size_t i)
{
    return (size_t)(l->end - l->p) > i ? l->p[i] : 0;
}

static void skip_space(tcc_lexer *l)
{
    for (size_t eol; l->p < l->end;) {
        if ((eol = tcc_line_end(l->p, (size_t)(l->end - l->p)))) {
            l->line++;
            l->line_start = l->p += eol;
            l->fresh_line = true;
        } else if (*l->p == '/' && peek(l, 1) == '/') {
            l->p = tcc_line_rest(l->p, l->end);
        } else if (*l->p == ' ' || *l->p == '\t') {
            l->p++;
        } else {
            return;
        }
    }
}

static size_t ident_length(const tcc_lexer *l, size_t from)
{
    size_t n = from;
    while (is_ident(peek(l, n)))
        n++;
    return n;
}

/* A sign, digits in either base, a point and an exponent: the reader of the token checks whether it
 * is a number. */
static int number(const tcc_lexer *l, size_t *n)
{
    size_t i = peek(l, 0) == '-';
    bool hex = peek(l, i) == '0' && (peek(l, i + 1) | 32) == 'x';
    int kind = TOK_INT;
    for (char c; is_ident(c = peek(l, i)); i++) {
        bool exponent = (c | 32) == (hex ? 'p' : 'e');
        if (c == '.' || exponent)
            kind = TOK_FLOAT;
        if (exponent && (peek(l, i + 1) == '-' || peek(l, i + 1) == '+'))
            i++;
    }
    *n = i;
    return kind;
}

/* Gives the length with both quotes, or of the rest of the line when it is not closed. */
static size_t string_length(const tcc_lexer *l, bool *closed)
{
    size_t n = 1;
    for (size_t line = (size_t)(tcc_line_rest(l->p, l->end) - l->p); n < line; n++) {
        if (l->p[n] == '"') {
            *closed = true;
            return n + 1;
        }
        if (l->p[n] == '\\' && n + 1 < line)
            n++;
    }
    *closed = false;
    return n;
}

static tcc_token take(tcc_lexer *l, tcc_token t, int kind, size_t skip, size_t n)
{
    t.kind = kind;
    t.text = l->p + skip;
    t.n = n - skip;
    l->p += n;
    return t;
}

/* Text that begins no token: a byte, or a string that is not closed. */
static tcc_token bad(tcc_lexer *l, tcc_token t, size_t n)
{
    char c = *l->p;
    bool quiet = !l->diag || l->bad_line == l->line;
    l->bad_line = l->line;
    if (!quiet && c == '"')
        tcc_error(l->diag, TCC_ERR_SYNTAX, t.loc, "string is not closed on its line");
    else if (!quiet)
        tcc_error(l->diag, TCC_ERR_SYNTAX, t.loc,
                  c > ' ' && c < 127 ? "unexpected character '%c'" : "unexpected byte 0x%02x",
                  (unsigned char)c);
    return take(l, t, TOK_BAD, 0, n);
}

tcc_token tcc_lex(tcc_lexer *l)
{
    skip_space(l);
    tcc_token t = {.loc = here(l), .starts_line = l->fresh_line};
    l->fresh_line = false;
    if (l->p == l->end)
        return take(l, t, TOK_END, 0, 0);
    char c = *l->p, c1 = peek(l, 1);
    size_t n;
    if (is_ident_start(c))
        return take(l, t, TOK_IDENT, 0, ident_length(l, 1));
    if (is_digit(c) || (c == '-' && is_digit(c1))) {
        int kind = number(l, &n);
        return take(l, t, kind, 0, n);
    }
    if (c == '-' && tcc_is_float_word(l->p + 1, ident_length(l, 1) - 1))
        return take(l, t, TOK_FLOAT, 0, 4);
    if ((c == '%' && is_ident(c1)) || (c == '@' && is_ident_start(c1)))
        return take(l, t, c == '%' ? TOK_VALUE : TOK_SYMBOL, 1, ident_length(l, 1));
    if (c == '"') {
        bool closed;
        n = string_length(l, &closed);
        if (!closed)
            return bad(l, t, n);
        t = take(l, t, TOK_STRING, 1, n);
        t.n--;
        return t;
    }
    return c && strchr("{}()[]<>,:=^+-*/%$", c) ? take(l, t, c, 0, 1) : bad(l, t, 1);
}

const char *tcc_token_int(const tcc_token *t, int64_t *out)
{
    char text[32];
    if (t->n >= sizeof text)
        return "number out of range";
    memcpy(text, t->text, t->n);
    text[t->n] = 0;
    bool hex = strchr(text, 'x') || strchr(text, 'X');
    char *end;
    errno = 0;
    *out = strtoll(text, &end, hex ? 16 : 10);
    return *end ? "malformed number" : errno ? "number out of range" : NULL;
}
