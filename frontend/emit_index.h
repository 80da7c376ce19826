/* emit_index: coordinates, and which terms of a reduction there are, for emit.c.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_FRONTEND_EMIT_INDEX_H
#define TCC_FRONTEND_EMIT_INDEX_H

#include "frontend/ast.h"

/* A whole number as an index expression and what is added to it; rest NULL: nothing is. */
typedef struct tcc_split {
    const tcc_index_expr *at;
    tcc_ast_expr *rest;
} tcc_split;

/* Conditions of a reduction's terms: on those that vary with what is reduced, and on all. in_factors: of a sum of
 * products, both operands have all indices of the former. */
typedef struct tcc_emit_conditions {
    tcc_value *of_terms, *of_all; /* NULL: there are none */
    bool in_factors;
} tcc_emit_conditions;

/* Marks the expressions of a statement whose values are wanted. */
void tcc_emit_want(tcc_ir *ir, const tcc_ast_kernel *kernel, const tcc_ast_stmt *stmt);
/* The element of a tensor. */
tcc_value *tcc_emit_read_at(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_expr *e);
/* The index or dimension that a name is, an i32. */
tcc_value *tcc_emit_whole(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_index_expr *x);
/* Whether the coordinates of an intermediate are within the extents of its indices; NULL: they always are. */
tcc_value *tcc_emit_is_inside(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_expr *read);
tcc_emit_conditions tcc_emit_conditions_of(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_stmt *stmt,
                                           const tcc_ast_expr *reduce);
/* An op of two operands; with the indices of both. Comparisons have a predicate. */
tcc_value *tcc_emit_binary(tcc_builder *b, tcc_opcode code, tcc_value *x, tcc_value *y, const char *pred);
const tcc_type *tcc_emit_joined_type(tcc_ir *ir, tcc_scalar elem, size_t n, tcc_value *const *values);

#endif
