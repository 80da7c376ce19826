/* rules: what ops.def cannot express about an op; the verifier's second half.
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

/* Reports two types that differ, with what they are called. */
void tcc_verify_same(tcc_verifier *v, const tcc_op *op, const char *a_name, const tcc_type *a,
                     const char *b_name, const tcc_type *b);

/* What an attribute's value may be. */
typedef struct tcc_attr_rule {
    tcc_opcode code;
    const char *attr;
    const char *words;        /* one of these; or NULL and: */
    int64_t min, max, factor; /* a multiple of factor in this range */
} tcc_attr_rule;

/* The rule for an op's attribute, or NULL: any value of its kind. */
const tcc_attr_rule *tcc_attr_rule_find(tcc_opcode code, const char *attr);

/* The element types of an op, or NULL: a word for each operand, then * and the word for all further
 * ones, then -> and a word for each result. A word is an element, a class (int, float, number:
 * either, bits: int or i1), or _ for any. */
const char *tcc_element_rule(tcc_opcode code);

/* Checks an op whose operands, results, regions and attributes are those of its row: the values
 * of attributes, the element types, then its own rule. */
void tcc_verify_rules(tcc_verifier *v, const tcc_op *op);
/* The last of these: the shapes of elementwise ops, and op_rules.c; then target_rules.c. */
void tcc_verify_op_rule(tcc_verifier *v, const tcc_op *op);
void tcc_verify_target_rule(tcc_verifier *v, const tcc_op *op);
/* Checks where the accumulators of f's products come from; f is right in all else. */
void tcc_verify_accumulators(tcc_verifier *v, const tcc_func *f);

#endif
