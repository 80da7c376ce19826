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
    const char *words;        /* the words of which it is one; NULL: it is a number */
    int64_t min, max, factor; /* of a number: its range, and what it is a multiple of */
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

/* Checks the operands, results, attributes and regions of an op together. Each level's file has the rules
 * of its ops; scf is with tensor. */
typedef void tcc_op_rule(tcc_verifier *v, const tcc_op *op);
extern tcc_op_rule *const tcc_tensor_rules[TCC_OP_COUNT], *const tcc_tile_rules[TCC_OP_COUNT],
    *const tcc_async_rules[TCC_OP_COUNT], *const tcc_target_rules[TCC_OP_COUNT];
void tcc_verify_elementwise(tcc_verifier *v, const tcc_op *op);

/* ---- what several rules check ---------------------------------------------------------- */

/* The items of a list attribute, if it is n integers of a range, or n strings; else NULL. */
const tcc_attr *tcc_verify_ints(tcc_verifier *v, const tcc_op *op, const char *name, size_t n, int64_t min,
                                int64_t max);
const tcc_attr *tcc_verify_strings(tcc_verifier *v, const tcc_op *op, const char *name, size_t n);
bool tcc_list_has(const tcc_attr *items, size_t n, const char *name);
bool tcc_same_extents(const tcc_type *a, const tcc_type *b);
/* Whether a region yields values of the types of op's results. */
void tcc_verify_yields(tcc_verifier *v, const tcc_op *op, unsigned region);
void tcc_verify_no_args(tcc_verifier *v, const tcc_op *op);
/* spread = [vector, rows, columns], for this many warps; 0: any number. */
void tcc_verify_spread(tcc_verifier *v, const tcc_op *op, int64_t warps);
/* Coordinates for each dimension of the tensor, and where the tile's dimensions from `skip` on
 * run: tile.load, tile.store, async.copy. */
void tcc_verify_access(tcc_verifier *v, const tcc_op *op, const tcc_type *tensor,
                       const tcc_type *tile, unsigned skip);
void tcc_verify_copied(tcc_verifier *v, const tcc_op *op, const tcc_type *tensor, const char *name,
                       const tcc_type *to);
/* Whether t is a matrix; reports it otherwise. */
bool tcc_verify_matrix(tcc_verifier *v, const tcc_op *op, const tcc_type *t);
/* The rules of tile.convert and tile.reduce, for ops that do the same through memory. */
void tcc_verify_convert(tcc_verifier *v, const tcc_op *op);
void tcc_verify_reduce(tcc_verifier *v, const tcc_op *op);
/* [m,k] * [k,n] + [m,n], of which a and b may have a dimension of stages in front. */
void tcc_verify_product(tcc_verifier *v, const tcc_op *op, const tcc_type *a, const tcc_type *b,
                        const tcc_type *c);

/* Checks where the accumulators of f's products come from; f is right in all else. */
void tcc_verify_accumulators(tcc_verifier *v, const tcc_func *f);

/* How messages call a kind of attribute. */
const char *tcc_attr_kind_name(tcc_attr_kind kind);
/* Whether all attributes are in ir/attributes.def, or keys of schedules, and of their kind. */
bool tcc_verify_func_attrs(const tcc_func *f, tcc_arena *scratch, tcc_diag *diag);
bool tcc_verify_module_attrs(const tcc_ir *ir, tcc_diag *diag);

#endif
