/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/json.h"

#include <string.h>

#include "support/number.h"

enum { MAX_DEPTH = 64 };

typedef struct parser {
    tcc_arena *arena;
    const char *p, *end;
} parser;

/* Every parsing function returns false where the text is wrong, and leaves `p` there. */
static bool parse_value(parser *s, tcc_json *out, int depth);

static void skip_space(parser *s)
{
    while (s->p < s->end && memchr(" \t\r\n", *s->p, 4))
        s->p++;
}

/* Takes c and space around it. */
static bool take(parser *s, char c)
{
    skip_space(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    skip_space(s);
    return true;
}

static bool take_word(parser *s, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n))
        return false;
    s->p += n;
    return true;
}

/* ---- strings ------------------------------------------------------------------------------ */

static bool parse_hex(parser *s, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, s->p++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *d = s->p < s->end ? memchr(digits, *s->p, sizeof digits - 1) : NULL;
        if (!d)
            return false;
        unsigned value = (unsigned)(d - digits);
        *out = *out * 16 + (value < 16 ? value : value - 6);
    }
    return true;
}

/* What follows \u, to UTF-8: characters beyond the first 65536 are a pair of surrogates. */
static bool parse_code_point(parser *s, char **to)
{
    const char *start = s->p;
    unsigned c, low;
    if (!parse_hex(s, &c))
        return false;
    if (c >= 0xd800 && c < 0xdc00 && take_word(s, "\\u") && parse_hex(s, &low) && low >= 0xdc00 &&
        low < 0xe000)
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    if (!c || (c >= 0xd800 && c < 0xe000)) {
        s->p = start;
        return false;
    }
    unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes of six bits */
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    *(*to)++ = (char)(leads[more] | c >> 6 * more);
    while (more--)
        *(*to)++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    return true;
}

static bool parse_escape(parser *s, char **to)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (take_word(s, "u"))
        return parse_code_point(s, to);
    const char *name = s->p < s->end ? memchr(names, *s->p, sizeof names - 1) : NULL;
    if (!name)
        return false;
    *(*to)++ = meanings[name - names];
    s->p++;
    return true;
}

/* No escape is shorter than what it stands for. */
static bool parse_string(parser *s, const char **out)
{
    if (s->p == s->end || *s->p != '"')
        return false;
    const char *close = ++s->p;
    while (close < s->end && *close != '"')
        close += *close == '\\' ? 2 : 1;
    if (close >= s->end) {
        s->p = s->end;
        return false;
    }
    char *to = tcc_arena_alloc(s->arena, (size_t)(close - s->p) + 1);
    *out = to;
    while (s->p < close) {
        if ((unsigned char)*s->p < 32)
            return false;
        if (*s->p != '\\')
            *to++ = *s->p++;
        else if (s->p++, !parse_escape(s, &to))
            return false;
    }
    *to = '\0';
    s->p = close + 1;
    return true;
}

/* ---- numbers ------------------------------------------------------------------------------ */

static bool skip_digits(parser *s)
{
    const char *start = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return s->p > start;
}

static bool parse_number(parser *s, double *out)
{
    const char *start = s->p;
    take_word(s, "-");
    if (!take_word(s, "0") && !skip_digits(s))
        return false;
    if (take_word(s, ".") && !skip_digits(s))
        return false;
    if (take_word(s, "e") || take_word(s, "E")) {
        if (!take_word(s, "+"))
            take_word(s, "-");
        if (!skip_digits(s))
            return false;
    }
    if (tcc_double_parse(start, (size_t)(s->p - start), out))
        return true;
    s->p = start;
    return false;
}

/* ---- values ------------------------------------------------------------------------------- */

static bool parse_members(parser *s, tcc_json *out, char close, int depth)
{
    const tcc_json **end = &out->first;
    if (take(s, close))
        return true;
    do {
        tcc_json *v = TCC_NEW(s->arena, tcc_json);
        skip_space(s);
        if (out->kind == TCC_JSON_OBJECT && !(parse_string(s, &v->name) && take(s, ':')))
            return false;
        if (!parse_value(s, v, depth))
            return false;
        *end = v;
        end = &v->next;
        out->n++;
    } while (take(s, ','));
    return take(s, close);
}

static bool parse_value(parser *s, tcc_json *out, int depth)
{
    static const struct {
        const char *word;
        tcc_json_kind kind;
        double number;
    } words[] = {{"null", TCC_JSON_NULL, 0}, {"false", TCC_JSON_BOOL, 0}, {"true", TCC_JSON_BOOL, 1}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (take_word(s, words[i].word)) {
            out->kind = words[i].kind;
            out->number = words[i].number;
            return true;
        }
    char c = s->p < s->end ? *s->p : '\0';
    if (c == '"') {
        out->kind = TCC_JSON_STRING;
        return parse_string(s, &out->string);
    }
    if (c == '[' || c == '{') {
        if (depth == MAX_DEPTH)
            return false;
        s->p++;
        out->kind = c == '[' ? TCC_JSON_ARRAY : TCC_JSON_OBJECT;
        return parse_members(s, out, c == '[' ? ']' : '}', depth + 1);
    }
    out->kind = TCC_JSON_NUMBER;
    return parse_number(s, &out->number);
}

const tcc_json *tcc_json_parse(tcc_arena *arena, const char *text, size_t size, size_t *bad)
{
    parser s = {arena, text, text + size};
    tcc_json *out = TCC_NEW(arena, tcc_json);
    skip_space(&s);
    bool ok = parse_value(&s, out, 0);
    if (ok)
        skip_space(&s);
    *bad = (size_t)(s.p - text);
    return ok && s.p == s.end ? out : NULL;
}

bool tcc_json_is(const tcc_json *v, tcc_json_kind kind)
{
    return v && v->kind == kind;
}

const tcc_json *tcc_json_member(const tcc_json *object, const char *name)
{
    const tcc_json *v = tcc_json_is(object, TCC_JSON_OBJECT) ? object->first : NULL;
    while (v && strcmp(v->name, name))
        v = v->next;
    return v;
}

const tcc_json *tcc_json_element(const tcc_json *array, size_t i)
{
    const tcc_json *v = tcc_json_is(array, TCC_JSON_ARRAY) ? array->first : NULL;
    while (v && i--)
        v = v->next;
    return v;
}

void tcc_json_print_string(tcc_str *out, const char *s)
{
    tcc_str_puts(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            tcc_str_printf(out, "\\%c", c);
        else if (c == '\n')
            tcc_str_puts(out, "\\n");
        else if (c < 32)
            tcc_str_printf(out, "\\u%04x", c);
        else
            tcc_str_append(out, s, 1);
    }
    tcc_str_puts(out, "\"");
}
