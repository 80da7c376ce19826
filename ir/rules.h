/* rules: what ops.def cannot say of an op; the verifier's second half.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_RULES_H
#define TCC_IR_RULES_H

#include "ir/ir.h"

typedef struct tcc_verifier {
    tcc_diag *diag;
    tcc_arena *arena; /* for the text of messages */
    bool ok;          /* nothing was reported yet */
} tcc_verifier;

/* Reports an error in op, with its text when it has no location. */
void tcc_verify_error(tcc_verifier *v, const tcc_op *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A type for a message. */
const char *tcc_verify_text(tcc_verifier *v, const tcc_type *type);

/* The terminator that gives a block's values to its op; NULL when it gives none. */
const tcc_op *tcc_block_yield(const tcc_block *block);

/* Checks an op whose operands, results, regions and attributes are those of its row: the values
 * of attributes, the element types and shapes, and what they have to do with each other. */
void tcc_verify_rules(tcc_verifier *v, const tcc_op *op);

#endif
