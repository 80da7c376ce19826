/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/parse.h"

#include <string.h>

/* ---- tokens ---------------------------------------------------------------------------- */

void tcc_parse_advance(tcc_parser *p)
{
    p->tok = tcc_tile_lex(&p->lexer);
}

bool tcc_parse_accept(tcc_parser *p, tcc_tile_token_kind kind)
{
    if (p->tok.kind != kind)
        return false;
    tcc_parse_advance(p);
    return true;
}

void tcc_parse_error(tcc_parser *p, const char *expected)
{
    const tcc_tile_token *t = &p->tok;
    if (t->kind == TCC_TOK_END)
        tcc_error(p->diag, TCC_ERR_SYNTAX, t->loc, "expected %s, found the end of the file",
                  expected);
    else if (t->kind != TCC_TOK_BAD)
        tcc_error(p->diag, TCC_ERR_SYNTAX, t->loc, "expected %s, found '%.*s'", expected,
                  (int)t->len, t->text);
}

bool tcc_parse_expect(tcc_parser *p, tcc_tile_token_kind kind)
{
    if (tcc_parse_accept(p, kind))
        return true;
    tcc_parse_error(p, tcc_tile_token_kind_name(kind));
    return false;
}

bool tcc_parse_name(tcc_parser *p, tcc_ast_name *out)
{
    *out = (tcc_ast_name){.loc = p->tok.loc};
    if (p->tok.kind != TCC_TOK_NAME) {
        tcc_parse_error(p, tcc_tile_token_kind_name(TCC_TOK_NAME));
        return false;
    }
    out->text = p->tok.text;
    tcc_parse_advance(p);
    return true;
}

void tcc_parse_unsupported(tcc_parser *p, tcc_loc loc, const char *what)
{
    tcc_error(p->diag, TCC_ERR_UNSUPPORTED, loc, "not supported yet: %s", what);
}

/* ---- recovery -------------------------------------------------------------------------- */

static bool at_top_level_keyword(const tcc_parser *p)
{
    return p->tok.kind == TCC_TOK_KERNEL || p->tok.kind == TCC_TOK_SCHEDULE ||
           p->tok.kind == TCC_TOK_CONST || p->tok.kind == TCC_TOK_END;
}

static void skip_declaration(tcc_parser *p)
{
    while (!at_top_level_keyword(p))
        tcc_parse_advance(p);
}

/* Skips past the next ';', but not past the end of the body. */
static void skip_stmt(tcc_parser *p)
{
    while (!at_top_level_keyword(p) && p->tok.kind != TCC_TOK_RBRACE)
        if (tcc_parse_accept(p, TCC_TOK_SEMICOLON))
            return;
        else
            tcc_parse_advance(p);
}

void tcc_parse_skip_item(tcc_parser *p)
{
    for (unsigned depth = 0; !at_top_level_keyword(p); tcc_parse_advance(p)) {
        tcc_tile_token_kind kind = p->tok.kind;
        if (kind == TCC_TOK_SEMICOLON || kind == TCC_TOK_RBRACE)
            return;
        if (!depth && (kind == TCC_TOK_COMMA || kind == TCC_TOK_RBRACKET || kind == TCC_TOK_RPAREN))
            return;
        if (kind == TCC_TOK_LBRACKET || kind == TCC_TOK_LPAREN)
            depth++;
        else if (kind == TCC_TOK_RBRACKET || kind == TCC_TOK_RPAREN)
            depth--;
    }
}

/* "{" then items, each parsed by `item`, up to "}". An item that fails is skipped. */
static void parse_body(tcc_parser *p, bool (*item)(tcc_parser *p, void *user), void *user)
{
    tcc_loc open = p->tok.loc;
    if (!tcc_parse_expect(p, TCC_TOK_LBRACE)) {
        skip_declaration(p);
        return;
    }
    while (p->tok.kind != TCC_TOK_RBRACE) {
        if (at_top_level_keyword(p)) {
            tcc_parse_error(p, "'}'");
            tcc_note(p->diag, open, "to close the '{' here");
            return;
        }
        if (!item(p, user)) {
            skip_stmt(p);
            if (at_top_level_keyword(p))
                return;
        }
    }
    tcc_parse_advance(p);
}

/* ---- kernels --------------------------------------------------------------------------- */

tcc_scalar tcc_parse_elem(tcc_parser *p, const tcc_ast_name *name)
{
    static const tcc_scalar elems[] = {
#define ELEMENT(type) TCC_##type,
#include "frontend/elements.def"
    };
    tcc_spelling spelling = {.wanted = name->text};
    for (size_t i = 0; i < sizeof elems / sizeof *elems; i++) {
        tcc_spelling_try(&spelling, tcc_scalar_name(elems[i]));
        if (!strcmp(tcc_scalar_name(elems[i]), name->text))
            return elems[i];
    }
    tcc_error(p->diag, TCC_ERR_TYPE, name->loc, "unknown element type '%s'%s", name->text,
              tcc_spelling_hint(p->arena, &spelling));
    return TCC_f32;
}

static bool parse_dim(tcc_parser *p, tcc_ast_param *param)
{
    tcc_ast_dim dim = {.name = {NULL, p->tok.loc}};
    if (!tcc_parse_dimension(p, &dim.exprs))
        return false;
    if (param->dims.len == TCC_MAX_RANK) {
        tcc_error(p->diag, TCC_ERR_UNSUPPORTED, dim.name.loc, "more than %d dimensions in a tensor",
                  TCC_MAX_RANK);
        return false;
    }
    TCC_PUSH(p->arena, &param->dims, dim);
    return true;
}

/* [inout] name : element [dims] [strided] */
static bool parse_param(tcc_parser *p, tcc_ast_role role)
{
    tcc_ast_param *param = TCC_NEW(p->arena, tcc_ast_param);
    param->role = role;
    tcc_loc inout = p->tok.loc;
    if (tcc_parse_accept(p, TCC_TOK_INOUT)) {
        if (role == TCC_ROLE_OUT) {
            tcc_error(p->diag, TCC_ERR_SYNTAX, inout, "'inout' belongs in the parameter list");
            return false;
        }
        param->role = TCC_ROLE_INOUT;
    }
    tcc_ast_name elem;
    if (!tcc_parse_name(p, &param->name) || !tcc_parse_expect(p, TCC_TOK_COLON) ||
        !tcc_parse_name(p, &elem))
        return false;
    param->elem = tcc_parse_elem(p, &elem);
    if (tcc_parse_accept(p, TCC_TOK_LBRACKET)) {
        do
            if (!parse_dim(p, param))
                return false;
        while (tcc_parse_accept(p, TCC_TOK_COMMA));
        if (!tcc_parse_expect(p, TCC_TOK_RBRACKET))
            return false;
    } else if (param->role == TCC_ROLE_IN) {
        param->role = TCC_ROLE_SCALAR;
    }
    param->strided = p->tok.loc;
    param->is_strided = tcc_parse_accept(p, TCC_TOK_STRIDED);
    if (p->kernel->params.len == TCC_MAX_PARAMS) {
        tcc_error(p->diag, TCC_ERR_UNSUPPORTED, param->name.loc,
                  "more than %d parameters and outputs in a kernel", TCC_MAX_PARAMS);
        return false;
    }
    TCC_PUSH(p->arena, &p->kernel->params, param);
    return true;
}

static bool parse_params(tcc_parser *p, tcc_ast_role role)
{
    if (!tcc_parse_expect(p, TCC_TOK_LPAREN))
        return false;
    if (tcc_parse_accept(p, TCC_TOK_RPAREN))
        return true;
    do
        if (!parse_param(p, role))
            return false;
    while (tcc_parse_accept(p, TCC_TOK_COMMA));
    return tcc_parse_expect(p, TCC_TOK_RPAREN);
}

static bool parse_kernel_stmt(tcc_parser *p, void *user)
{
    tcc_ast_kernel *kernel = user;
    size_t n = kernel->stmts.len;
    p->stmt = TCC_NEW(p->arena, tcc_ast_stmt);
    bool parsed = tcc_parse_stmt(p);
    if (!parsed)
        p->stmt->exprs.len = 0;
    if (kernel->n_exprs > TCC_MAX_EXPRS)
        kernel->stmts.len = n;
    return parsed;
}

/* kernel name ( params ) [-> ( params )] { statements } */
static void parse_kernel(tcc_parser *p, tcc_ast_file *file)
{
    unsigned n_errors = p->diag->n_errors;
    tcc_ast_kernel *kernel = p->kernel = TCC_NEW(p->arena, tcc_ast_kernel);
    tcc_parse_advance(p);
    if (!tcc_parse_name(p, &kernel->name)) {
        skip_declaration(p);
        return;
    }
    TCC_PUSH(p->arena, &file->kernels, kernel);
    if (!parse_params(p, TCC_ROLE_IN) ||
        (tcc_parse_accept(p, TCC_TOK_ARROW) && !parse_params(p, TCC_ROLE_OUT))) {
        skip_declaration(p);
        return;
    }
    kernel->has_body = p->tok.kind == TCC_TOK_LBRACE;
    parse_body(p, parse_kernel_stmt, kernel);
    kernel->valid = p->diag->n_errors == n_errors;
}

/* ---- constants and schedules ----------------------------------------------------------- */

/* const name = [-] number ; */
static void parse_const(tcc_parser *p, tcc_ast_file *file)
{
    tcc_ast_const *c = TCC_NEW(p->arena, tcc_ast_const);
    tcc_parse_advance(p);
    bool parsed = tcc_parse_name(p, &c->name) && tcc_parse_expect(p, TCC_TOK_ASSIGN);
    if (parsed) {
        int sign = tcc_parse_accept(p, TCC_TOK_MINUS) ? -1 : 1;
        c->number = sign * p->tok.number;
        c->integer = sign * p->tok.integer;
        c->is_integer = p->tok.is_integer;
        parsed = tcc_parse_expect(p, TCC_TOK_NUMBER) && tcc_parse_expect(p, TCC_TOK_SEMICOLON);
    }
    if (c->name.text)
        TCC_PUSH(p->arena, &file->consts, c);
    if (!parsed)
        skip_declaration(p);
}

static bool starts_word(tcc_tile_token_kind kind)
{
    return kind == TCC_TOK_NAME || kind == TCC_TOK_NUMBER || kind == TCC_TOK_MINUS;
}

/* A name or a number with its sign. */
static bool parse_word(tcc_parser *p, tcc_ast_setting *setting)
{
    tcc_ast_word word = {.name.loc = p->tok.loc};
    int sign = tcc_parse_accept(p, TCC_TOK_MINUS) ? -1 : 1;
    const tcc_tile_token *t = &p->tok;
    word.is_number = t->kind == TCC_TOK_NUMBER;
    if (!word.is_number && (t->kind != TCC_TOK_NAME || sign < 0)) {
        tcc_parse_error(p, "a number or a word");
        return false;
    }
    word.name.text = sign < 0 ? tcc_arena_printf(p->arena, "-%s", t->text) : t->text;
    word.is_integer = t->is_integer;
    word.integer = sign * t->integer;
    tcc_parse_advance(p);
    TCC_PUSH(p->arena, &setting->words, word);
    return true;
}

/* key [word {word} {, word {word}}] ; */
static bool parse_setting(tcc_parser *p, void *user)
{
    tcc_ast_schedule *schedule = user;
    tcc_ast_setting *setting = TCC_NEW(p->arena, tcc_ast_setting);
    if (!tcc_parse_name(p, &setting->key))
        return false;
    if (starts_word(p->tok.kind))
        do {
            setting->n_groups++;
            do
                if (!parse_word(p, setting))
                    return false;
            while (starts_word(p->tok.kind));
        } while (tcc_parse_accept(p, TCC_TOK_COMMA));
    if (!tcc_parse_expect(p, TCC_TOK_SEMICOLON))
        return false;
    TCC_PUSH(p->arena, &schedule->settings, setting);
    return true;
}

/* schedule name for name { settings } */
static void parse_schedule(tcc_parser *p, tcc_ast_file *file)
{
    tcc_ast_schedule *schedule = TCC_NEW(p->arena, tcc_ast_schedule);
    tcc_parse_advance(p);
    if (!tcc_parse_name(p, &schedule->kernel) || !tcc_parse_expect(p, TCC_TOK_FOR) ||
        !tcc_parse_name(p, &schedule->target)) {
        skip_declaration(p);
        return;
    }
    TCC_PUSH(p->arena, &file->schedules, schedule);
    parse_body(p, parse_setting, schedule);
}

tcc_ast_file *tcc_parse(tcc_arena *arena, const char *source, size_t size, tcc_intern *names,
                        tcc_diag *diag)
{
    tcc_parser p = {.arena = arena, .diag = diag};
    p.lexer = tcc_tile_lexer_create(source, size, names, diag);
    tcc_ast_file *file = TCC_NEW(arena, tcc_ast_file);
    tcc_parse_advance(&p);
    while (p.tok.kind != TCC_TOK_END)
        switch (p.tok.kind) {
        case TCC_TOK_KERNEL:
            if (file->kernels.len == TCC_MAX_KERNELS) {
                tcc_error(diag, TCC_ERR_UNSUPPORTED, p.tok.loc, "more than %d kernels in a file",
                          TCC_MAX_KERNELS);
                return file;
            }
            parse_kernel(&p, file);
            break;
        case TCC_TOK_SCHEDULE: parse_schedule(&p, file); break;
        case TCC_TOK_CONST: parse_const(&p, file); break;
        default: tcc_parse_error(&p, "'kernel', 'schedule' or 'const'"); skip_declaration(&p);
        }
    return file;
}
