/* lex: source text to tokens, one at a time.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_FRONTEND_LEX_H
#define TCC_FRONTEND_LEX_H

#include <stdbool.h>

#include "support/diag.h"
#include "support/intern.h"

typedef enum tcc_tile_token_kind {
#define TOKEN(id, text) TCC_TOK_##id,
#include "frontend/tokens.def"
    TCC_TOK_COUNT
} tcc_tile_token_kind;

typedef struct tcc_tile_token {
    tcc_tile_token_kind kind;
    tcc_loc loc;
    const char *text; /* as written; interned for a name or number */
    size_t len;
    /* For a number. Whole numbers beyond the range of int64_t have integer INT64_MAX. */
    double number;
    int64_t integer;
    bool is_integer;
} tcc_tile_token;

typedef struct tcc_tile_lexer {
    const char *next, *end, *line_start;
    uint32_t line;
    tcc_intern *names;
    tcc_diag *diag;
} tcc_tile_lexer;

enum { TCC_MAX_NAME = 255 }; /* bytes in a name or number */

/* Reports the first byte that a text must not contain: a control character, or anything that is not
 * UTF-8. */
bool tcc_tile_check_bytes(const char *source, size_t size, tcc_diag *diag);

/* `source` has passed tcc_tile_check_bytes. */
tcc_tile_lexer tcc_tile_lexer_create(const char *source, size_t size, tcc_intern *names,
                                     tcc_diag *diag);

/* The next token. Malformed ones are reported and come as TCC_TOK_BAD. After TCC_MAX_ERRORS
 * errors the text ends here. */
tcc_tile_token tcc_tile_lex(tcc_tile_lexer *lx);

/* How messages name a kind of token: "'->'", "a name". */
const char *tcc_tile_token_kind_name(tcc_tile_token_kind kind);

#endif
