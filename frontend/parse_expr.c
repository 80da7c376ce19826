/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/parse.h"

#include <string.h>

enum { CONJUNCTION = 1, COMPARISON, ADDITIVE, MULTIPLICATIVE }; /* precedence of binary operators */

static const struct {
    tcc_tile_token_kind token;
    int precedence;
    tcc_function function;
} operators[] = {
    {TCC_TOK_AND, CONJUNCTION, {"&&", 2, .code = TCC_OP_arith_and}},
    {TCC_TOK_LT, COMPARISON, {"<", 2, .code = TCC_OP_arith_cmp, .pred = "lt"}},
    {TCC_TOK_LE, COMPARISON, {"<=", 2, .code = TCC_OP_arith_cmp, .pred = "le"}},
    {TCC_TOK_GT, COMPARISON, {">", 2, .code = TCC_OP_arith_cmp, .pred = "gt"}},
    {TCC_TOK_GE, COMPARISON, {">=", 2, .code = TCC_OP_arith_cmp, .pred = "ge"}},
    {TCC_TOK_EQ, COMPARISON, {"==", 2, .code = TCC_OP_arith_cmp, .pred = "eq"}},
    {TCC_TOK_NE, COMPARISON, {"!=", 2, .code = TCC_OP_arith_cmp, .pred = "ne"}},
    {TCC_TOK_PLUS, ADDITIVE, {"+", 2, .code = TCC_OP_arith_add}},
    {TCC_TOK_MINUS, ADDITIVE, {"-", 2, .code = TCC_OP_arith_sub}},
    {TCC_TOK_STAR, MULTIPLICATIVE, {"*", 2, .code = TCC_OP_arith_mul}},
    {TCC_TOK_SLASH, MULTIPLICATIVE, {"/", 2, .code = TCC_OP_arith_div}},
    {TCC_TOK_PERCENT, MULTIPLICATIVE, {"%", 2, .code = TCC_OP_arith_floor_rem}},
};

static const tcc_function negation = {"-", 1, .code = TCC_OP_arith_neg};

static const tcc_function functions[] = {
#define FUNCTION(name, n_args, op, doc) {#name, n_args, .code = TCC_OP_##op},
#define CONVERSION(type, doc) {#type, 1, .code = TCC_OP_arith_cast, .to = TCC_##type},
#include "frontend/functions.def"
};

const tcc_function *tcc_function_at(size_t i)
{
    return i < sizeof functions / sizeof *functions ? &functions[i] : NULL;
}

static const tcc_function *find_function(const char *name)
{
    const tcc_function *f;
    for (size_t i = 0; (f = tcc_function_at(i)); i++)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

/* ---- expressions ----------------------------------------------------------------------- */

static tcc_ast_expr *parse_binary(tcc_parser *p, int precedence);

/* A new expression at the end of the statement's; NULL when the kernel has too many. */
static tcc_ast_expr *new_expr(tcc_parser *p, tcc_ast_kind kind, tcc_ast_name name, size_t n_args,
                              tcc_ast_expr *const *args)
{
    if (++p->kernel->n_exprs > TCC_MAX_EXPRS) {
        if (p->kernel->n_exprs == TCC_MAX_EXPRS + 1)
            tcc_error(p->diag, TCC_ERR_UNSUPPORTED, name.loc, "more than %d operations, reads and numbers in a kernel",
                      TCC_MAX_EXPRS);
        return NULL;
    }
    tcc_ast_expr *e = TCC_NEW(p->arena, tcc_ast_expr);
    e->kind = kind;
    e->name = name;
    e->counts = p->counts;
    e->first = n_args ? args[0]->first : p->stmt->exprs.len;
    e->args = TCC_NEW_ARRAY(p->arena, tcc_ast_expr *, n_args);
    e->n_args = n_args;
    for (size_t i = 0; i < n_args; i++)
        e->args[i] = args[i];
    TCC_PUSH(p->arena, &p->stmt->exprs, e);
    return e;
}

static tcc_ast_expr *new_apply(tcc_parser *p, tcc_ast_name name, const tcc_function *function,
                               size_t n_args, tcc_ast_expr *const *args)
{
    tcc_ast_expr *e = new_expr(p, TCC_AST_APPLY, name, n_args, args);
    if (e)
        e->function = function;
    return e;
}

/* The expression inside something that nests: parentheses, arguments, signs, sums. */
static tcc_ast_expr *parse_nested(tcc_parser *p, int precedence)
{
    if (p->depth == TCC_MAX_DEPTH) {
        tcc_error(p->diag, TCC_ERR_UNSUPPORTED, p->tok.loc, "expressions nest more than %d deep",
                  TCC_MAX_DEPTH);
        return NULL;
    }
    p->depth++;
    tcc_ast_expr *e = parse_binary(p, precedence);
    p->depth--;
    return e;
}

/* index {, index} close */
static bool parse_indices(tcc_parser *p, tcc_ast_indices *out, tcc_tile_token_kind close)
{
    do {
        if (p->tok.kind != TCC_TOK_NAME) {
            tcc_parse_error(p, "an index");
            return false;
        }
        TCC_PUSH(p->arena, out, (tcc_ast_index_use){p->tok.text, p->tok.loc, NULL});
        tcc_parse_advance(p);
    } while (tcc_parse_accept(p, TCC_TOK_COMMA));
    return tcc_parse_expect(p, close);
}

/* name [ coordinates ], of which the name and the bracket have been parsed. */
static tcc_ast_expr *parse_read(tcc_parser *p, tcc_ast_name name)
{
    tcc_ast_exprs args = {0};
    tcc_ast_indices indices = {0};
    bool counts = p->counts;
    p->counts = true;
    do {
        tcc_loc loc = p->tok.loc;
        if (p->tok.kind == TCC_TOK_RBRACKET)
            tcc_parse_error(p, "an index");
        tcc_ast_expr *arg = p->tok.kind == TCC_TOK_RBRACKET ? NULL : parse_nested(p, ADDITIVE);
        if (!arg)
            return NULL;
        arg->coordinate = arg->kind == TCC_AST_NAME;
        p->kernel->n_exprs -= arg->coordinate;
        TCC_PUSH(p->arena, &args, arg);
        TCC_PUSH(p->arena, &indices, (tcc_ast_index_use){.loc = loc});
    } while (tcc_parse_accept(p, TCC_TOK_COMMA));
    if (!tcc_parse_accept(p, TCC_TOK_RBRACKET)) {
        tcc_parse_error(p, "',' or ']'");
        return NULL;
    }
    p->counts = counts;
    tcc_ast_expr *e = new_expr(p, TCC_AST_READ, name, args.len, args.data);
    if (e)
        e->indices = indices;
    return e;
}

/* sum [: type] ( indices ) product */
static tcc_ast_expr *parse_sum(tcc_parser *p)
{
    tcc_ast_name name = {"sum", p->tok.loc}, type = {NULL, p->tok.loc};
    tcc_scalar elem = TCC_f32;
    tcc_parse_advance(p);
    if (tcc_parse_accept(p, TCC_TOK_COLON)) {
        if (!tcc_parse_name(p, &type))
            return NULL;
        elem = tcc_parse_elem(p, &type);
    }
    tcc_ast_indices indices = {0};
    if (!tcc_parse_expect(p, TCC_TOK_LPAREN) ||
        !parse_indices(p, &indices, TCC_TOK_RPAREN))
        return NULL;
    tcc_ast_expr *term = parse_nested(p, MULTIPLICATIVE);
    if (!term)
        return NULL;
    tcc_ast_expr *e = new_expr(p, TCC_AST_REDUCE, name, 1, &term);
    if (e) {
        e->indices = indices;
        e->accumulator = type;
        e->accumulator_elem = elem;
    }
    return e;
}

static bool starts_operand(tcc_tile_token_kind kind)
{
    return kind == TCC_TOK_NAME || kind == TCC_TOK_NUMBER || kind == TCC_TOK_LPAREN || kind == TCC_TOK_SUM;
}

/* Whether a name is that of a reduction, which for some is that of a function, too. */
static bool find_reduction(const char *name, tcc_reduction *out)
{
    for (int r = TCC_REDUCTION_MIN; r < TCC_REDUCTION_COUNT; r++)
        if (!strcmp(tcc_reduction_words[r], name)) {
            *out = (tcc_reduction)r;
            return true;
        }
    return false;
}

/* Whether `max(…)` is followed by what it reduces: a call is not, and one of two arguments may stand before a minus. */
static bool is_reduction(const tcc_parser *p, const tcc_ast_exprs *args)
{
    bool is = args->len;
    for (size_t i = 0; is && i < args->len; i++)
        is = args->data[i]->kind == TCC_AST_NAME;
    return is && (starts_operand(p->tok.kind) || (p->tok.kind == TCC_TOK_MINUS && args->len == 1));
}

/* The term of max(indices), min(indices) and the like, whose indices have been parsed as names. */
static tcc_ast_expr *parse_extremum(tcc_parser *p, tcc_ast_name name, tcc_reduction reduction, const tcc_ast_exprs *names)
{
    tcc_ast_indices indices = {0};
    for (size_t i = 0; i < names->len; i++)
        TCC_PUSH(p->arena, &indices, (tcc_ast_index_use){names->data[i]->name.text, names->data[i]->name.loc, NULL});
    p->stmt->exprs.len -= names->len;
    tcc_ast_expr *term = parse_nested(p, MULTIPLICATIVE);
    tcc_ast_expr *e = term ? new_expr(p, TCC_AST_REDUCE, name, 1, &term) : NULL;
    if (e) {
        e->indices = indices;
        e->reduction = reduction;
    }
    return e;
}

/* ( arguments ), after a name. `max(j) term` is a reduction. */
static tcc_ast_expr *parse_call(tcc_parser *p, tcc_ast_name name)
{
    tcc_ast_exprs args = {0};
    const tcc_function *function = find_function(name.text);
    bool counts = p->counts;
    p->counts &= !function || function->code != TCC_OP_arith_cast;
    tcc_parse_advance(p);
    if (p->tok.kind != TCC_TOK_RPAREN)
        do {
            tcc_ast_expr *arg = parse_nested(p, CONJUNCTION);
            if (!arg)
                return NULL;
            TCC_PUSH(p->arena, &args, arg);
        } while (tcc_parse_accept(p, TCC_TOK_COMMA));
    if (!tcc_parse_expect(p, TCC_TOK_RPAREN))
        return NULL;
    p->counts = counts;
    tcc_reduction reduction;
    return find_reduction(name.text, &reduction) && is_reduction(p, &args)
               ? parse_extremum(p, name, reduction, &args)
               : new_apply(p, name, function, args.len, args.data);
}

static tcc_ast_expr *parse_operand(tcc_parser *p)
{
    tcc_ast_name name = {p->tok.text, p->tok.loc};
    switch (p->tok.kind) {
    case TCC_TOK_SUM: return parse_sum(p);
    case TCC_TOK_MINUS: {
        tcc_parse_advance(p);
        tcc_ast_expr *arg = parse_nested(p, MULTIPLICATIVE + 1);
        return arg ? new_apply(p, name, &negation, 1, &arg) : NULL;
    }
    case TCC_TOK_LPAREN: {
        tcc_parse_advance(p);
        tcc_ast_expr *e = parse_nested(p, CONJUNCTION);
        return e && tcc_parse_expect(p, TCC_TOK_RPAREN) ? e : NULL;
    }
    case TCC_TOK_NUMBER: {
        tcc_ast_expr *e = new_expr(p, TCC_AST_NUMBER, name, 0, NULL);
        if (e)
            e->number = p->tok.number;
        tcc_parse_advance(p);
        return e;
    }
    case TCC_TOK_NAME: break;
    default: tcc_parse_error(p, "an expression"); return NULL;
    }
    tcc_parse_advance(p);
    if (p->tok.kind == TCC_TOK_LPAREN)
        return parse_call(p, name);
    if (!tcc_parse_accept(p, TCC_TOK_LBRACKET))
        return new_expr(p, TCC_AST_NAME, name, 0, NULL);
    return parse_read(p, name);
}

/* An expression of operators that bind at least as tightly as `precedence`. */
static tcc_ast_expr *parse_binary(tcc_parser *p, int precedence)
{
    tcc_ast_expr *left = parse_operand(p);
    bool compared = false;
    for (size_t i = 0; left && i < sizeof operators / sizeof *operators;) {
        if (p->tok.kind != operators[i].token || operators[i].precedence < precedence) {
            i++;
            continue;
        }
        tcc_ast_name name = {operators[i].function.name, p->tok.loc};
        if (operators[i].precedence == COMPARISON && compared) {
            tcc_error(p->diag, TCC_ERR_SYNTAX, name.loc, "comparisons do not chain");
            return NULL;
        }
        compared = operators[i].precedence == COMPARISON;
        tcc_parse_advance(p);
        tcc_ast_expr *right = parse_binary(p, operators[i].precedence + 1);
        left = right
                   ? new_apply(p, name, &operators[i].function, 2, (tcc_ast_expr *[]){left, right})
                   : NULL;
        i = 0;
    }
    return left;
}

/* ---- statements ------------------------------------------------------------------------ */

/* index name : expression ; of which the first word has been parsed. */
static bool parse_domain(tcc_parser *p)
{
    tcc_ast_stmt *domain = p->stmt;
    domain->place = p->kernel->stmts.len;
    p->counts = true;
    bool parsed = tcc_parse_name(p, &domain->name) && tcc_parse_expect(p, TCC_TOK_COLON) &&
                  parse_binary(p, CONJUNCTION) && tcc_parse_expect(p, TCC_TOK_SEMICOLON);
    if (parsed && p->kernel->n_exprs <= TCC_MAX_EXPRS)
        TCC_PUSH(p->arena, &p->kernel->domains, domain);
    return parsed;
}

bool tcc_parse_dimension(tcc_parser *p, tcc_ast_exprs *out)
{
    p->stmt = TCC_NEW(p->arena, tcc_ast_stmt);
    p->depth = 0;
    if (!starts_operand(p->tok.kind) && p->tok.kind != TCC_TOK_MINUS) {
        tcc_parse_error(p, "a dimension");
        return false;
    }
    bool parsed = parse_binary(p, ADDITIVE);
    *out = p->stmt->exprs;
    p->kernel->n_exprs -= parsed && out->len == 1; /* a name or a number does not count as an operation here */
    return parsed;
}

bool tcc_parse_stmt(tcc_parser *p)
{
    tcc_ast_stmt *stmt = p->stmt;
    p->depth = 0;
    p->counts = false;
    if (p->tok.kind != TCC_TOK_NAME) {
        tcc_parse_error(p, "a statement or '}'");
        return false;
    }
    tcc_ast_name name = {p->tok.text, p->tok.loc};
    tcc_parse_advance(p);
    if (p->tok.kind == TCC_TOK_NAME && !strcmp(name.text, "index"))
        return parse_domain(p);
    stmt->name = name;
    TCC_PUSH(p->arena, &p->kernel->stmts, stmt);
    if (tcc_parse_accept(p, TCC_TOK_LBRACKET) && !parse_indices(p, &stmt->indices, TCC_TOK_RBRACKET))
        return false;
    return tcc_parse_expect(p, TCC_TOK_ASSIGN) && parse_binary(p, CONJUNCTION) &&
           tcc_parse_expect(p, TCC_TOK_SEMICOLON);
}
