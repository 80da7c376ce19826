/* parse: tokens to syntax tree, by recursive descent with one token of lookahead. parse.c has the
 * file, signatures and schedules, parse_expr.c statements and expressions. docs/language.md has
 * the grammar.
 *
 * Inside a statement or setting the first error ends it: functions return false or NULL, and
 * parsing goes on after the next ';'.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_FRONTEND_PARSE_H
#define TCC_FRONTEND_PARSE_H

#include "frontend/ast.h"
#include "frontend/lex.h"

typedef struct tcc_parser {
    tcc_arena *arena;
    tcc_diag *diag;
    tcc_tile_lexer lexer;
    tcc_tile_token tok;     /* the next one */
    tcc_ast_kernel *kernel; /* the kernel that is being parsed */
    tcc_ast_stmt *stmt;     /* the statement that is being parsed */
    unsigned depth;         /* of nested expressions */
    bool counts;            /* in brackets or in a domain, but not in what is converted there */
} tcc_parser;

enum { TCC_MAX_DEPTH = 200 }; /* of nested expressions */

/* Parses a text that has passed tcc_tile_check_bytes. Errors go to diag; what could be parsed
 * comes back. Names are interned in `names`. */
tcc_ast_file *tcc_parse(tcc_arena *arena, const char *source, size_t size, tcc_intern *names,
                        tcc_diag *diag);

/* The element type of a name; reports unknown and unsupported ones. */
tcc_scalar tcc_parse_elem(tcc_parser *p, const tcc_ast_name *name);
/* name [indices] = expression ; or index name : expression ; into p->stmt, which becomes the kernel's */
bool tcc_parse_stmt(tcc_parser *p);
/* The expressions of a dimension. */
bool tcc_parse_dimension(tcc_parser *p, tcc_ast_exprs *out);

void tcc_parse_advance(tcc_parser *p);
bool tcc_parse_accept(tcc_parser *p, tcc_tile_token_kind kind);
bool tcc_parse_expect(tcc_parser *p, tcc_tile_token_kind kind);
bool tcc_parse_name(tcc_parser *p, tcc_ast_name *out);
/* Reports that the next token is not what was expected. */
void tcc_parse_error(tcc_parser *p, const char *expected);
void tcc_parse_unsupported(tcc_parser *p, tcc_loc loc, const char *what);
/* Skips to the ',' or bracket that ends an item of a list. */
void tcc_parse_skip_item(tcc_parser *p);

#endif
