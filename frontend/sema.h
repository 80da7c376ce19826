/* sema: does a syntax tree mean anything? sema.c has the file and signatures, sema_dim.c dimensions, sema_body.c
 * statements, rename.c those that are read with other indices, sema_domain.c domains of indices, sema_expr.c expressions
 * and indices, sema_type.c what is an integer and what a float, sema_schedule.c schedules. Every error is reported where
 * it is made, once: what depends on something wrong keeps silent.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_FRONTEND_SEMA_H
#define TCC_FRONTEND_SEMA_H

#include "frontend/ast.h"
#include "frontend/frontend.h"
#include "support/intern.h"

typedef enum tcc_decl_kind {
    TCC_DECL_PARAM,
    TCC_DECL_STMT, /* an intermediate */
    TCC_DECL_DIM,
    TCC_DECL_CONST,
    TCC_DECL_UNDEFINED /* reported at its first use */
} tcc_decl_kind;

/* The meaning of a name in a kernel. */
typedef struct tcc_decl {
    tcc_decl_kind kind;
    tcc_loc loc;
    tcc_ast_param *param;
    tcc_ast_stmt *stmt;
    const tcc_ast_const *constant;
} tcc_decl;

typedef struct tcc_sema {
    tcc_arena *arena;
    tcc_diag *diag;
    tcc_ast_file *file;
    const char *target;
    tcc_ir *ir; /* of names and index expressions */
    tcc_names consts;  /* tcc_decl */
    tcc_names kernels; /* tcc_ast_kernel */
    tcc_names defines; /* const tcc_frontend_define, by names as interned */
    tcc_ast_kernel *kernel;
    tcc_names scope; /* tcc_decl, of the kernel */
    tcc_names indices; /* names that are indices in its expressions: of results, of reductions, with a domain */
} tcc_sema;

/* Checks a file and fills in the tree; errors go to diag. */
void tcc_sema_file(tcc_arena *arena, tcc_ast_file *file, tcc_ir *ir, const char *target,
                   const tcc_frontend_define *defines, size_t n_defines, tcc_diag *diag);

/* Checks the statements of s->kernel, whose signature is in s->scope. */
void tcc_sema_body(tcc_sema *s);
/* Checks one expression of stmt, those inside it having been checked. */
void tcc_sema_expr(tcc_sema *s, tcc_ast_expr *e, const tcc_ast_stmt *stmt);
/* Checks every schedule, and attaches those for the target to their kernels. */
void tcc_sema_schedules(tcc_sema *s);

/* What is computed with an element: INT, FLOAT or DOUBLE. */
tcc_ast_type tcc_sema_type_of(tcc_scalar elem);
/* And the other way: what an expression is computed in. */
tcc_scalar tcc_sema_elem_of(tcc_ast_type type);
/* Makes an expression of only numbers INT, FLOAT or DOUBLE; others must have this type already. */
bool tcc_sema_resolve(tcc_sema *s, const tcc_ast_stmt *stmt, tcc_ast_expr *e, tcc_ast_type type);
/* Whether an expression of whole numbers is in numbers that an i32 can have, and so is each in it: then sums and products
 * of them fit an index expression. If not, reports that `what` is an i32. */
bool tcc_sema_check_reach(tcc_sema *s, const tcc_ast_stmt *stmt, const tcc_ast_expr *e, const char *what);
/* Reports a whole number in an expression that is too large for an i32; false where there is none. */
bool tcc_sema_report_large(tcc_sema *s, const tcc_ast_stmt *stmt, const tcc_ast_expr *e);
/* Gives a function or operator its type, by those of its operands. */
bool tcc_sema_apply_type(tcc_sema *s, const tcc_ast_stmt *stmt, tcc_ast_expr *e);
/* Whether an expression is written as a product: a sum of it is not added in order. */
bool tcc_sema_is_product(const tcc_ast_expr *e);
/* The statement as it was written, of one that may be the same with other indices. */
const tcc_ast_stmt *tcc_sema_definition(const tcc_ast_stmt *stmt);
/* What an expression that reads an intermediate stands for: the definition, resolved recursively; for others the
 * expression itself. Its indices are those of the definition. *stored: the output whose elements it is, since they are
 * rounded, whatever they were computed of; NULL: none. */
const tcc_ast_expr *tcc_sema_meaning(const tcc_ast_expr *e, const tcc_ast_param **stored);
/* Decides what a reduction is accumulated in and, if it is a sum of products that both have what is summed, what
 * operands that are computed are rounded to. */
bool tcc_sema_reduction_type(tcc_sema *s, const tcc_ast_stmt *stmt, tcc_ast_expr *e, bool is_contraction);
/* Checks the element of a parameter or output. */
void tcc_sema_param_type(tcc_sema *s, const tcc_ast_param *param);
/* Checks that a statement's value can be stored in its output. */
bool tcc_sema_result_type(tcc_sema *s, const tcc_ast_stmt *stmt);

/* Finds or adds the index that a name is, NULL, reported, where it is none or there are too many. */
tcc_ast_index *tcc_sema_index(tcc_sema *s, const char *name, tcc_loc loc);
/* Finds what an expression is as an index expression, of what those inside it are. */
void tcc_sema_find_at(tcc_sema *s, tcc_ast_expr *e);
/* Checks domains, but for those that read statements above them: these at their places, before the statement of this
 * number. */
void tcc_sema_domains(tcc_sema *s);
void tcc_sema_late_domains(tcc_sema *s, size_t place);
/* Gives the reductions of a statement the domains of their indices. */
void tcc_sema_add_domains(tcc_sema *s, tcc_ast_stmt *stmt);
/* Gives an index that has no extent yet the values that its bounds say, if they do. */
void tcc_sema_bound(tcc_sema *s, tcc_ast_index *index);
/* Gives indices the extents that only their bounds give; every one must have one. */
void tcc_sema_extents(tcc_sema *s);
/* Finds or adds the indices of a list, which must be distinct, and returns the set of their bits.
 * `list` names it in messages: "on the left-hand side". */
bool tcc_sema_indices(tcc_sema *s, tcc_ast_indices *uses, const char *list, uint64_t *out);
/* Whether the kernel may have one more index; whether it may have this many expressions. */
bool tcc_sema_has_room_for_index(tcc_sema *s, tcc_loc loc);
bool tcc_sema_has_room_for_exprs(tcc_sema *s, tcc_loc loc);
/* The definition of an intermediate with the coordinates at which an expression of a statement reads it, which may be
 * its own indices. It is written when all statements have been checked. */
tcc_ast_stmt *tcc_sema_renamed(tcc_sema *s, tcc_ast_stmt *stmt, const tcc_ast_stmt *reader, const tcc_ast_expr *e);
void tcc_sema_write_again(tcc_sema *s);
/* Finds the operands of a copy of an expression, which follows copies of what is inside it. */
void tcc_sema_find_args(tcc_arena *arena, tcc_ast_expr *e, const tcc_ast_exprs *exprs);
/* Makes each index of an access to `param` range over its dimension, as it does wherever else it
 * is used. After a conflict nothing is concluded from the access. */
bool tcc_sema_bind(tcc_sema *s, const tcc_ast_param *param, tcc_loc access,
                   const tcc_ast_indices *uses);
void tcc_sema_unsupported(tcc_sema *s, tcc_loc loc, const char *what);

/* In s->kernel, or of the file; NULL when undefined. */
tcc_decl *tcc_sema_lookup(const tcc_sema *s, const char *name);
tcc_decl *tcc_sema_declare(tcc_sema *s, tcc_names *scope, tcc_decl_kind kind, tcc_ast_name name);
/* Finds or declares a symbolic dimension, which -D may bind. One that has the name of a parameter is reported, and
 * invalid. */
tcc_ast_dim *tcc_sema_declare_dim(tcc_sema *s, tcc_ast_name name);
/* Finds what a dimension of a parameter is. */
void tcc_sema_dim(tcc_sema *s, tcc_ast_dim *dim);
/* The dimension that an expression without indices is; false where no dimension can be. */
bool tcc_sema_dim_of(tcc_sema *s, const tcc_index_expr *x, tcc_ast_dim *out);
bool tcc_sema_is_extent(int64_t size);
/* How messages show a dimension: "K", "64", "K = 64". */
const char *tcc_sema_dim_text(tcc_sema *s, const tcc_ast_dim *dim);
/* A note at the declaration of a parameter: "'B' is declared f16[K, N] here". */
void tcc_sema_note_param(tcc_sema *s, const tcc_ast_param *param);

#endif
