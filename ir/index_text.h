/* index_text: index expressions as IR has them.
 *
 *   index  = [ "-" ] term { ( "+" | "-" ) term }
 *   term   = factor { ( "*" | "/" | "%" ) factor }
 *   factor = int | name | "$" name | "(" index ")"
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_INDEX_TEXT_H
#define TCC_IR_INDEX_TEXT_H

#include "ir/index.h"
#include "ir/lex.h"

/* Whether an expression begins at tok, the last token that was read, and is more than an integer or a name. */
bool tcc_index_begins(const tcc_lexer *lex, const tcc_token *tok);
/* Reads one; tok is the first token, then the first after it. NULL, reported, where there is none. */
const tcc_index_expr *tcc_index_parse(tcc_ir *ir, tcc_lexer *lex, tcc_token *tok);

/* Reads what computes a dimension, in parentheses and of dimensions alone, without a $ before them. */
const tcc_index_expr *tcc_index_parse_dim(tcc_ir *ir, tcc_lexer *lex, tcc_token *tok);

#endif
