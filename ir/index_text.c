/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/index_text.h"

#include <string.h>

#include "ir/ir.h"

/* ---- printing -------------------------------------------------------------------------- */

static bool is_name(const tcc_index_expr *x)
{
    return x->n == 1 && x->terms[0].number == 1 && x->terms[0].n == 1 &&
           x->terms[0].factors[0].kind != TCC_FACTOR_QUOTIENT;
}

/* In parentheses unless it is a name or a number that is not negative. */
static void print_operand(tcc_str *out, const tcc_index_expr *x)
{
    int64_t number;
    bool bare = is_name(x) || (tcc_index_is_number(x, &number) && number >= 0);
    tcc_str_puts(out, bare ? "" : "(");
    tcc_index_print(out, x);
    tcc_str_puts(out, bare ? "" : ")");
}

static void print_factor(tcc_str *out, const tcc_index_factor *f, bool alone)
{
    if (f->kind != TCC_FACTOR_QUOTIENT) {
        tcc_str_printf(out, "%s%s", f->kind == TCC_FACTOR_DIM ? "$" : "", f->name);
        return;
    }
    tcc_str_puts(out, alone ? "" : "(");
    print_operand(out, f->of);
    tcc_str_puts(out, " / ");
    print_operand(out, f->by);
    tcc_str_puts(out, alone ? "" : ")");
}

void tcc_index_print(tcc_str *out, const tcc_index_expr *x)
{
    if (!x->n)
        tcc_str_puts(out, "0");
    for (size_t i = 0; i < x->n; i++) {
        const tcc_index_term *t = &x->terms[i];
        int64_t size = t->number < 0 ? -t->number : t->number;
        tcc_str_puts(out, t->number < 0 ? i ? " - " : "-" : i ? " + " : "");
        if (size != 1 || !t->n)
            tcc_str_printf(out, "%lld%s", (long long)size, t->n ? " * " : "");
        for (size_t f = 0; f < t->n; f++) {
            tcc_str_puts(out, f ? " * " : "");
            print_factor(out, &t->factors[f], t->n == 1 && t->number == 1);
        }
    }
}

/* ---- parsing --------------------------------------------------------------------------- */

enum { MAX_NESTING = 64 };

typedef struct reader {
    tcc_ir *ir;
    tcc_lexer *lex;
    tcc_token *tok;
    bool of_dims; /* a name is a dimension's */
    bool failed;  /* and reported */
} reader;

bool tcc_index_begins(const tcc_lexer *lex, const tcc_token *tok)
{
    tcc_lexer ahead = *lex;
    ahead.diag = NULL;
    if (tok->kind == '(' || tok->kind == '$' || tok->kind == '-')
        return true;
    if (tok->kind != TOK_IDENT && tok->kind != TOK_INT)
        return false;
    tcc_token after = tcc_lex(&ahead);
    return (after.kind < TOK_END && strchr("+-*/%", after.kind)) || (after.kind == TOK_INT && *after.text == '-');
}

static const tcc_index_expr *fail(reader *r, tcc_loc loc, const char *what)
{
    if (!r->failed && r->tok->kind != TOK_BAD)
        tcc_error(r->lex->diag, TCC_ERR_SYNTAX, loc, "%s", what);
    r->failed = true;
    return NULL;
}

static void next(reader *r)
{
    *r->tok = tcc_lex(r->lex);
}

static const tcc_index_expr *read_name(reader *r, bool dim)
{
    char *name = tcc_arena_strndup(r->ir->arena, r->tok->text, r->tok->n);
    next(r);
    return dim ? tcc_index_dim(r->ir, name) : tcc_index_name(r->ir, name);
}

static const tcc_index_expr *read_sum(reader *r, unsigned depth);

static const tcc_index_expr *read_factor(reader *r, unsigned depth)
{
    tcc_token t = *r->tok;
    const char *wrong;
    int64_t number;
    switch (t.kind) {
    case TOK_INT:
        next(r);
        wrong = tcc_token_int(&t, &number);
        return wrong ? fail(r, t.loc, wrong) : tcc_index_number(r->ir, number);
    case TOK_IDENT: return read_name(r, r->of_dims);
    case '$':
        next(r);
        return r->tok->kind == TOK_IDENT ? read_name(r, true) : fail(r, r->tok->loc, "expected a dimension after '$'");
    case '(': {
        if (depth == MAX_NESTING)
            return fail(r, t.loc, "index expressions nest too deep");
        next(r);
        const tcc_index_expr *x = read_sum(r, depth + 1);
        if (!r->failed && r->tok->kind != ')')
            return fail(r, r->tok->loc, "expected ')' in an index expression");
        next(r);
        return x;
    }
    default: return fail(r, t.loc, "expected an index expression");
    }
}

static const tcc_index_expr *read_term(reader *r, unsigned depth)
{
    const tcc_index_expr *x = read_factor(r, depth);
    while (!r->failed && (r->tok->kind == '*' || r->tok->kind == '/' || r->tok->kind == '%')) {
        tcc_token op = *r->tok;
        next(r);
        const tcc_index_expr *y = read_factor(r, depth);
        x = op.kind == '*'   ? tcc_index_mul(r->ir, x, y)
            : op.kind == '/' ? tcc_index_div(r->ir, x, y)
                             : tcc_index_mod(r->ir, x, y);
        if (!x && !r->failed)
            return fail(r, op.loc,
                        op.kind == '*' ? "a product of two expressions with indices, or one that is too large"
                                       : "a divisor that has an index or is not positive");
    }
    return x;
}

static const tcc_index_expr *read_sum(reader *r, unsigned depth)
{
    bool minus = r->tok->kind == '-';
    const tcc_index_expr *x = tcc_index_number(r->ir, 0);
    if (minus)
        next(r);
    for (bool first = true; !r->failed; first = false) {
        tcc_token at = *r->tok;
        if (!first && at.kind == TOK_INT && *at.text == '-') {
            minus = false; /* m -1 */
        } else if (!first) {
            if (at.kind != '+' && at.kind != '-')
                break;
            minus = at.kind == '-';
            next(r);
        }
        const tcc_index_expr *term = read_term(r, depth);
        x = minus ? tcc_index_sub(r->ir, x, term) : tcc_index_add(r->ir, x, term);
        if (!x && !r->failed)
            return fail(r, at.loc, "an index expression with too many terms or too large numbers");
    }
    return x;
}

const tcc_index_expr *tcc_index_parse(tcc_ir *ir, tcc_lexer *lex, tcc_token *tok)
{
    reader r = {.ir = ir, .lex = lex, .tok = tok};
    const tcc_index_expr *x = read_sum(&r, 0);
    return r.failed ? NULL : x;
}

const tcc_index_expr *tcc_index_parse_dim(tcc_ir *ir, tcc_lexer *lex, tcc_token *tok)
{
    reader r = {.ir = ir, .lex = lex, .tok = tok, .of_dims = true};
    const tcc_index_expr *x = read_factor(&r, 0);
    return r.failed ? NULL : x;
}
