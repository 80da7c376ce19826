/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/extent.h"

/* ---- names --------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (is_letter(at[n]) || is_digit(at[n]))
        n++;
    return n;
}

bool tcc_extent_take_name(const char **name, tcc_extent_factor *out)
{
    while (**name && !is_letter(**name))
        *name += is_digit(**name) ? word_length(*name) : 1;
    *out = (tcc_extent_factor){*name, word_length(*name), 0};
    *name += out->n;
    return out->n;
}

/* ---- reading -------------------------------------------------------------------------------- */

enum { MAX_NESTING = 64 };

typedef struct reader {
    const char *at;
    tcc_extent_find *find;
    const void *user;
    tcc_extent_step *step;
    void *to;
    unsigned nesting;
} reader;

static bool accept(reader *r, char c)
{
    r->at += strspn(r->at, " ");
    bool is = *r->at == c;
    r->at += is;
    return is;
}

static bool read_sum(reader *r);

static bool read_factor(reader *r)
{
    if (accept(r, '(')) { /* which passes spaces, too */
        bool ok = ++r->nesting <= MAX_NESTING && read_sum(r) && accept(r, ')');
        r->nesting--;
        return ok;
    }
    tcc_extent_factor factor = {r->at, word_length(r->at), 0};
    r->at += factor.n;
    if (!factor.n)
        return false;
    if (is_letter(*factor.name)) {
        int dim = r->find(r->user, &factor);
        return dim >= 0 && r->step(r->to, TCC_EXPR_dim, dim);
    }
    for (size_t i = 0; i < factor.n; i++)
        if (!is_digit(factor.name[i]) || __builtin_mul_overflow(factor.number, 10, &factor.number) ||
            __builtin_add_overflow(factor.number, factor.name[i] - '0', &factor.number))
            return false;
    return r->step(r->to, TCC_EXPR_number, factor.number);
}

static bool read_term(reader *r)
{
    if (!read_factor(r))
        return false;
    for (;;) {
        bool multiplies = accept(r, '*');
        if (!multiplies && !accept(r, '/'))
            return true;
        if (!read_factor(r))
            return false;
        if (multiplies ? !r->step(r->to, TCC_EXPR_mul, 0)
                       : !r->step(r->to, TCC_EXPR_number, 1) || !r->step(r->to, TCC_EXPR_max, 0) ||
                             !r->step(r->to, TCC_EXPR_div, 0))
            return false;
    }
}

static bool read_sum(reader *r)
{
    bool subtracts = accept(r, '-');
    if (subtracts ? !r->step(r->to, TCC_EXPR_number, 0) : !read_term(r))
        return false;
    while (subtracts || accept(r, '+') || (subtracts = accept(r, '-'))) {
        if (!read_term(r) || !r->step(r->to, subtracts ? TCC_EXPR_sub : TCC_EXPR_add, 0))
            return false;
        subtracts = false;
    }
    return true;
}

bool tcc_extent_read(const char *name, bool is_signed, tcc_extent_find *find, const void *user, tcc_extent_step *step,
                     void *to)
{
    reader r = {.at = name, .find = find, .user = user, .step = step, .to = to};
    if (tcc_extent_is_sum(name))
        return read_factor(&r) && !*r.at &&
               (is_signed || (step(to, TCC_EXPR_number, 0) && step(to, TCC_EXPR_max, 0)));
    if (!read_factor(&r))
        return false;
    while (accept(&r, '.'))
        if (!read_factor(&r) || !step(to, TCC_EXPR_mul, 0))
            return false;
    return !*r.at;
}

/* ---- values --------------------------------------------------------------------------------- */

typedef struct compiler {
    tcc_arena *arena;
    tcc_expr *out;
} compiler;

static bool push(void *to, tcc_expr_code code, int64_t number)
{
    compiler *c = to;
    return tcc_expr_push(c->arena, c->out, code, number);
}

bool tcc_extent_compile(tcc_arena *arena, const char *name, bool is_signed, tcc_extent_find *find, const void *user,
                        tcc_expr *out)
{
    *out = (tcc_expr){0};
    return tcc_extent_read(name, is_signed, find, user, push, &(compiler){arena, out});
}

typedef struct calculator {
    const int64_t *values;
    int64_t stack[TCC_EXPR_MAX_DEPTH];
    size_t n;
    bool overflows;
} calculator;

static bool compute(void *to, tcc_expr_code code, int64_t number)
{
    calculator *c = to;
    if (code >= TCC_EXPR_add) {
        c->n--;
        c->overflows |= !tcc_expr_apply(code, c->stack[c->n - 1], c->stack[c->n], &c->stack[c->n - 1]);
        return true;
    }
    if (c->n == TCC_EXPR_MAX_DEPTH)
        return false;
    c->stack[c->n++] = code == TCC_EXPR_dim ? c->values[number] : number;
    return true;
}

bool tcc_extent_eval(const char *name, tcc_extent_find *find, const void *user, const int64_t *values, int64_t *out)
{
    calculator c = {.values = values};
    if (!tcc_extent_read(name, false, find, user, compute, &c))
        return false;
    *out = c.overflows ? INT64_MAX : c.stack[0];
    return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

const char *tcc_extent_text(tcc_arena *arena, const char *name)
{
    if (tcc_extent_is_sum(name))
        return tcc_arena_strndup(arena, name + 1, strlen(name) - 2);
    const char *text = "", *left = name;
    for (tcc_extent_factor f; tcc_extent_take(&left, &f);)
        text = f.n ? tcc_arena_printf(arena, "%s%s%.*s", text, *text ? " * " : "", (int)f.n, f.name)
                   : tcc_arena_printf(arena, "%lld%s%s", (long long)f.number, *text ? " * " : "", text);
    return text;
}
