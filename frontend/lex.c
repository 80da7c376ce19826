/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/lex.h"

#include <math.h>
#include <string.h>

#include "support/number.h"
#include "support/text.h"

static const char *const kind_names[] = {
#define TOKEN(id, text) text,
#include "frontend/tokens.def"
};

typedef struct spelling {
    const char *text;
    tcc_tile_token_kind kind;
} spelling;

static const spelling keywords[] = {
#define KEYWORD(id, text) {text, TCC_TOK_##id},
#define PUNCT(id, text)
#include "frontend/tokens.def"
};

static const spelling puncts[] = {
#define KEYWORD(id, text)
#define PUNCT(id, text) {text, TCC_TOK_##id},
#include "frontend/tokens.def"
};

#define LEN(a) (sizeof(a) / sizeof *(a))

const char *tcc_tile_token_kind_name(tcc_tile_token_kind kind)
{
    return kind_names[kind];
}

/* ---- bytes ----------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool tcc_tile_check_bytes(const char *source, size_t size, tcc_diag *diag)
{
    tcc_loc loc = {1, 1};
    for (size_t i = 0; i < size;) {
        unsigned char c = (unsigned char)source[i];
        size_t len = tcc_utf8_length(source + i, size - i);
        if (!len) {
            tcc_error(diag, TCC_ERR_SYNTAX, loc, "byte 0x%02x is not UTF-8", c);
            return false;
        }
        if ((c < 32 && !is_space((char)c)) || c == 127) {
            tcc_error(diag, TCC_ERR_SYNTAX, loc, "stray control character 0x%02x", c);
            return false;
        }
        size_t eol = tcc_line_end(source + i, size - i);
        loc.column += (uint32_t)len;
        if (eol)
            loc = (tcc_loc){loc.line + 1, 1};
        i += eol ? eol : len;
    }
    return true;
}

/* ---- tokens ---------------------------------------------------------------------------- */

tcc_tile_lexer tcc_tile_lexer_create(const char *source, size_t size, tcc_intern *names,
                                     tcc_diag *diag)
{
    static const char bom[] = "\xef\xbb\xbf";
    bool has_bom = size >= 3 && !memcmp(source, bom, 3);
    return (tcc_tile_lexer){.next = source + (has_bom ? 3 : 0),
                            .end = source + size,
                            .line_start = source,
                            .line = 1,
                            .names = names,
                            .diag = diag};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

/* The i-th character from here, 0 past the end. */
static char peek(const tcc_tile_lexer *lx, size_t i)
{
    return i < (size_t)(lx->end - lx->next) ? lx->next[i] : 0;
}

static tcc_loc here(const tcc_tile_lexer *lx)
{
    return (tcc_loc){lx->line, (uint32_t)(lx->next - lx->line_start) + 1};
}

static void advance(tcc_tile_lexer *lx)
{
    size_t eol = tcc_line_end(lx->next, (size_t)(lx->end - lx->next));
    lx->next += eol ? eol : 1;
    if (eol) {
        lx->line++;
        lx->line_start = lx->next;
    }
}

/* Skips white space and comments; false when a comment does not end. */
static bool skip_blank(tcc_tile_lexer *lx)
{
    while (lx->next < lx->end) {
        if (is_space(*lx->next)) {
            advance(lx);
        } else if (peek(lx, 0) == '/' && peek(lx, 1) == '/') {
            lx->next = tcc_line_rest(lx->next, lx->end);
        } else if (peek(lx, 0) == '/' && peek(lx, 1) == '*') {
            tcc_loc start = here(lx);
            lx->next += 2;
            while (lx->next < lx->end && !(peek(lx, 0) == '*' && peek(lx, 1) == '/'))
                advance(lx);
            if (lx->next == lx->end) {
                tcc_error(lx->diag, TCC_ERR_SYNTAX, start, "unterminated comment");
                return false;
            }
            lx->next += 2;
        } else {
            break;
        }
    }
    return true;
}

static tcc_tile_token bad(tcc_tile_token t)
{
    t.kind = TCC_TOK_BAD;
    return t;
}

static tcc_tile_token lex_name(tcc_tile_lexer *lx, tcc_tile_token t)
{
    while (is_name_char(peek(lx, t.len)))
        t.len++;
    lx->next += t.len;
    for (size_t i = 0; i < LEN(keywords); i++)
        if (strlen(keywords[i].text) == t.len && !memcmp(keywords[i].text, t.text, t.len)) {
            t.kind = keywords[i].kind;
            return t;
        }
    if (t.len > TCC_MAX_NAME) {
        tcc_error(lx->diag, TCC_ERR_SYNTAX, t.loc,
                  "a name of %zu characters; at most %d are allowed", t.len, TCC_MAX_NAME);
        return bad(t);
    }
    t.kind = TCC_TOK_NAME;
    t.text = tcc_intern_get(lx->names, t.text, t.len);
    return t;
}

static size_t count_digits(const tcc_tile_lexer *lx, size_t from)
{
    size_t n = 0;
    while (is_digit(peek(lx, from + n)))
        n++;
    return n;
}

/* digits [. digits] [(e|E) [+|-] digits] */
static tcc_tile_token lex_number(tcc_tile_lexer *lx, tcc_tile_token t)
{
    bool well_formed = true;
    t.is_integer = true;
    t.len = count_digits(lx, 0);
    for (size_t i = 0; i < t.len; i++) {
        int digit = t.text[i] - '0';
        bool fits = t.integer <= (INT64_MAX - digit) / 10;
        t.integer = fits ? t.integer * 10 + digit : INT64_MAX;
    }
    if (peek(lx, t.len) == '.') {
        size_t n = count_digits(lx, t.len + 1);
        t.len += 1 + n;
        t.is_integer = false;
        well_formed = n > 0;
    }
    if (peek(lx, t.len) == 'e' || peek(lx, t.len) == 'E') {
        char sign = peek(lx, t.len + 1);
        size_t skip = sign == '+' || sign == '-' ? 2 : 1, n = count_digits(lx, t.len + skip);
        t.len += skip + n;
        t.is_integer = false;
        well_formed = well_formed && n > 0;
    }
    for (; is_name_char(peek(lx, t.len)) || peek(lx, t.len) == '.'; t.len++)
        well_formed = false;
    lx->next += t.len;
    if (!well_formed || t.len > TCC_MAX_NAME) {
        int shown = t.len > TCC_MAX_NAME ? TCC_MAX_NAME : (int)t.len;
        tcc_error(lx->diag, TCC_ERR_SYNTAX, t.loc, "malformed number '%.*s'", shown, t.text);
        return bad(t);
    }
    t.kind = TCC_TOK_NUMBER;
    t.text = tcc_intern_get(lx->names, t.text, t.len);
    if (t.is_integer && t.integer < INT64_C(1) << 53)
        t.number = (double)t.integer;
    else if (!tcc_double_parse(t.text, t.len, &t.number))
        t.number = HUGE_VAL;
    return t;
}

tcc_tile_token tcc_tile_lex(tcc_tile_lexer *lx)
{
    tcc_tile_token t = {.kind = TCC_TOK_END};
    if (lx->diag->n_errors >= TCC_MAX_ERRORS || !skip_blank(lx))
        lx->next = lx->end;
    t.loc = here(lx);
    t.text = lx->next;
    if (lx->next == lx->end)
        return t;
    if (is_digit(*lx->next))
        return lex_number(lx, t);
    if (is_name_char(*lx->next))
        return lex_name(lx, t);
    for (size_t i = 0; i < LEN(puncts); i++) {
        t.len = strlen(puncts[i].text);
        if (t.len <= (size_t)(lx->end - lx->next) && !memcmp(puncts[i].text, t.text, t.len)) {
            t.kind = puncts[i].kind;
            lx->next += t.len;
            return t;
        }
    }
    t.len = tcc_utf8_length(lx->next, (size_t)(lx->end - lx->next));
    lx->next += t.len;
    bool either = *t.text == '|' && peek(lx, 0) == '|';
    lx->next += either;
    const char *hint = either ? ": there is no '||'; nest 'where', as in 'where(a, x, where(b, x, y))'"
                       : *t.text == '!' ? ": there is no '!'; turn the comparison round, as '>=' for '<'"
                                        : "";
    tcc_error(lx->diag, TCC_ERR_SYNTAX, t.loc, "unexpected character '%.*s'%s", (int)t.len, t.text, hint);
    return bad(t);
}
