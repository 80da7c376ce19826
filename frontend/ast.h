/* ast: what the parser makes of a source text. The semantic analysis adds what it finds out, the
 * emitter its values.
 *
 * The expressions of a statement are kept in postorder: operands come before what uses them and
 * the last one is the whole. So every walk is a loop, however deep the tree.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_FRONTEND_AST_H
#define TCC_FRONTEND_AST_H

#include <assert.h>

#include "frontend/names.h"
#include "ir/index.h"
#include "ir/ir.h"
#include "ir/reduction.h"
#include "support/manifest.h"

typedef struct tcc_ast_name {
    const char *text; /* interned */
    tcc_loc loc;
} tcc_ast_name;

/* An index where it is used. */
typedef struct tcc_ast_index_use {
    const char *text; /* interned */
    tcc_loc loc;
    struct tcc_ast_index *index; /* semantic analysis */
} tcc_ast_index_use;

typedef TCC_VEC(tcc_ast_index_use) tcc_ast_indices;

/* A row of functions.def, or an operator. */
typedef struct tcc_function {
    const char *name;
    unsigned n_args;
    tcc_opcode code;
    tcc_scalar to;    /* of a conversion */
    const char *pred; /* of a comparison */
} tcc_function;

/* The i-th row of functions.def, NULL past the last. */
const tcc_function *tcc_function_at(size_t i);

typedef enum tcc_ast_kind {
    TCC_AST_NUMBER,
    TCC_AST_NAME,  /* of a scalar, a dimension or an index */
    TCC_AST_READ,  /* name[args] */
    TCC_AST_REDUCE, /* sum(indices) args[0], max(indices) args[0]; further args: domains of the indices */
    TCC_AST_APPLY, /* function(args) */
    TCC_AST_BROKEN /* reported by the parser */
} tcc_ast_kind;

typedef enum tcc_ast_type {
    TCC_AST_ERROR,   /* reported: whatever uses it keeps silent */
    TCC_AST_LITERAL, /* only numbers: it takes the type of the other operand */
    TCC_AST_WHOLE,   /* only indices, dimensions and numbers: likewise, but on its own an i32 */
    TCC_AST_FLOAT,   /* an f32 */
    TCC_AST_DOUBLE,  /* an f64 */
    TCC_AST_INT,     /* an i32 */
    TCC_AST_BOOL
} tcc_ast_type;

typedef struct tcc_ast_expr {
    tcc_ast_kind kind;
    tcc_ast_name name; /* its place, and what is written there */
    size_t first;      /* of the expressions inside it, in its statement */
    double number;
    bool of_domain;          /* what it reads says nothing of the extents of indices */
    bool counts;             /* in brackets or in a domain, where quotients of numbers round down */
    bool coordinate;         /* alone between brackets: a name that nothing declares is an index */
    tcc_ast_indices indices; /* of a reduction; of a read, text NULL where a coordinate is more than an index */
    tcc_ast_name accumulator;     /* of a sum: the type that is written; text NULL: none is */
    tcc_scalar accumulator_elem;  /* semantic analysis chooses where none is written */
    const tcc_function *function; /* NULL: there is none of this name */
    tcc_reduction reduction;
    struct tcc_ast_expr **args;
    size_t n_args;
    /* Semantic analysis. */
    tcc_ast_type type;
    uint64_t free;               /* bits of the indices that it varies over */
    struct tcc_ast_index *index; /* of a name that is one; else NULL */
    const struct tcc_ast_dim *dim;   /* of a name that is one; else NULL */
    const tcc_index_expr *at;    /* a whole number as an index expression; NULL where it is none */
    struct tcc_ast_param *param; /* the tensor or scalar read; NULL: none */
    struct tcc_ast_stmt *stmt;   /* whose intermediate or output is read: the one with these indices */
    bool rounded;                /* a computed operand of a sum, which is rounded before it is multiplied */
    tcc_scalar rounded_to;       /* the type to which it is rounded */
    /* Emitter. */
    bool wanted; /* whether its value is used */
    tcc_value *value;
} tcc_ast_expr;

typedef TCC_VEC(tcc_ast_expr *) tcc_ast_exprs;

/* name[indices] = the last of exprs. */
typedef struct tcc_ast_stmt {
    tcc_ast_name name;
    tcc_ast_indices indices;
    tcc_ast_exprs exprs;          /* empty when it could not be parsed */
    struct tcc_ast_param *output; /* written by the statement; NULL for an intermediate */
    bool valid, used;
    bool live;       /* an output depends on it */
    uint64_t free;
    struct tcc_ast_stmt *of;    /* the definition that this is, with other indices */
    const struct tcc_ast_stmt *reader; /* a statement that reads it so */
    size_t place;               /* of a domain: how many statements are above it */
    bool late;                  /* of a domain: it reads one of them, and is checked there */
    struct tcc_ast_expr **at;   /* with other indices: coordinates that are more than an index; else NULL */
    struct tcc_ast_stmt *again; /* the next one of those that are this one with other indices */
    tcc_value *value;
} tcc_ast_stmt;

typedef struct tcc_ast_dim {
    tcc_ast_exprs exprs; /* as it is written */
    /* Semantic analysis. */
    tcc_ast_name name;        /* text NULL: a number; of one that is computed the name in IR */
    int64_t size;             /* 0 for a name until it is bound */
    const tcc_index_expr *at; /* what it is of numbers and of names that are not bound */
    bool invalid;             /* reported: agrees with every other */
} tcc_ast_dim;

typedef enum tcc_ast_role {
    TCC_ROLE_IN,
    TCC_ROLE_OUT,
    TCC_ROLE_INOUT,
    TCC_ROLE_SCALAR
} tcc_ast_role;

/* A parameter or an output. */
typedef struct tcc_ast_param {
    tcc_ast_name name;
    tcc_ast_role role;
    tcc_scalar elem;
    TCC_VEC(tcc_ast_dim) dims;
    bool is_strided;
    tcc_loc strided;     /* where that is written */
    tcc_ast_dim *strides; /* of a strided one, by dimension: semantic analysis names them */
    bool is_read;
    tcc_ast_stmt *written; /* by this statement */
    tcc_value *value;
} tcc_ast_param;

/* An index of a kernel, and the dimension that it ranges over. */
typedef struct tcc_ast_index {
    const char *name;
    tcc_loc loc;               /* where it is used first */
    uint64_t bit;              /* its place in sets of indices */
    const tcc_ast_dim *extent; /* NULL while unknown */
    const tcc_ast_param *from; /* the parameter that determined the extent; NULL: its bounds did */
    const tcc_index_expr *least; /* its first value, of dimensions and numbers, where its bounds say it; NULL: 0 */
    struct tcc_ast_stmt *domain; /* NULL: it has none */
    bool reduced;              /* by a reduction */
} tcc_ast_index;

enum {
    TCC_MAX_INDICES = 64, /* of a kernel: bits in an uint64_t */
    TCC_MAX_RANK = 12,
    TCC_MAX_PARAMS = TCC_MANIFEST_ARGS,
    TCC_MAX_EXPRS = 16384, /* of a kernel: reads, numbers and operations */
    TCC_MAX_KERNELS = 1024 /* of a file */
};
static_assert((int)TCC_MAX_RANK <= TCC_MANIFEST_RANK && (int)TCC_MAX_KERNELS <= TCC_MANIFEST_KERNELS,
              "what a program may have, a manifest may");

/* A number or a word of a schedule. */
typedef struct tcc_ast_word {
    tcc_ast_name name; /* as written */
    bool is_number, is_integer;
    int64_t integer;
} tcc_ast_word;

/* key word word, word word, … ; */
typedef struct tcc_ast_setting {
    tcc_ast_name key;
    TCC_VEC(tcc_ast_word) words;
    size_t n_groups; /* separated by commas */
    tcc_attr value;  /* semantic analysis */
} tcc_ast_setting;

typedef struct tcc_ast_schedule {
    tcc_ast_name kernel, target;
    TCC_VEC(tcc_ast_setting *) settings;
} tcc_ast_schedule;

typedef struct tcc_ast_kernel {
    tcc_ast_name name;
    TCC_VEC(tcc_ast_param *) params; /* parameters, then outputs */
    TCC_VEC(tcc_ast_stmt *) stmts;
    TCC_VEC(tcc_ast_stmt *) domains; /* `index name: exprs;` */
    size_t n_exprs;
    bool has_body;  /* its signature could be parsed */
    bool valid;     /* nothing is wrong with it so far */
    tcc_names dims; /* in order of appearance; what: the first tcc_ast_dim */
    tcc_ast_index indices[TCC_MAX_INDICES];
    size_t n_indices;
    TCC_VEC(tcc_ast_schedule *) schedules;
    const tcc_ast_schedule *schedule; /* in force */
} tcc_ast_kernel;

typedef struct tcc_ast_const {
    tcc_ast_name name;
    double number;
    int64_t integer;
    bool is_integer;
} tcc_ast_const;

typedef struct tcc_ast_file {
    TCC_VEC(tcc_ast_const *) consts;
    TCC_VEC(tcc_ast_kernel *) kernels;
    TCC_VEC(tcc_ast_schedule *) schedules;
} tcc_ast_file;

#endif
