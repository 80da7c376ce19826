/* lex: the tokens of textual IR.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_LEX_H
#define TCC_IR_LEX_H

#include "support/diag.h"

#include <stdbool.h>

/* One-character tokens are their character. */
enum tcc_tok {
    TOK_END = 256,
    TOK_BAD,    /* not a token, which was reported */
    TOK_IDENT,  /* letters, digits, _ and ., beginning with a letter or _ */
    TOK_VALUE,  /* %name or %0; the text is without the % */
    TOK_SYMBOL, /* @name, without the @ */
    TOK_INT,    /* -12 or 0x1f */
    TOK_FLOAT,  /* 1.5, -1e9, 0x1p-3, -inf, -nan */
    TOK_STRING, /* the text is between the quotes, escapes and all */
};

typedef struct tcc_token {
    int kind;
    bool starts_line; /* nothing but space is before it on its line */
    tcc_loc loc;
    const char *text; /* n bytes of the source */
    size_t n;
} tcc_token;

/* Plain data: a copy of it looks ahead. */
typedef struct tcc_lexer {
    const char *p, *end, *line_start;
    uint32_t line;
    uint32_t bad_line; /* the last with an error: one a line is enough */
    bool fresh_line;   /* no token on this line yet */
    tcc_diag *diag;    /* NULL: errors are not reported */
} tcc_lexer;

tcc_lexer tcc_lexer_create(const char *text, size_t size, tcc_diag *diag);
/* The next token; errors are reported. */
tcc_token tcc_lex(tcc_lexer *l);

/* The number that a TOK_INT is; NULL, or what is wrong with it. */
const char *tcc_token_int(const tcc_token *t, int64_t *out);

/* Whether n bytes of s read back as one TOK_IDENT. */
bool tcc_is_ident(const char *s, size_t n);
/* Whether they are inf or nan, which are floats as the value of an attribute. */
bool tcc_is_float_word(const char *s, size_t n);

#endif
