/* ir: modules of functions of ops. One representation for all four levels (docs/ir.md).
 *
 * A function has one block; an op may hold regions, each one block. Values are results of ops or
 * arguments of blocks, in SSA form: a value is visible after its definition in its block and in
 * the regions of later ops. All memory is the module's arena.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_IR_H
#define TCC_IR_IR_H

#include "ir/type.h"
#include "support/arena.h"
#include "support/diag.h"
#include "support/intern.h"

typedef struct tcc_value tcc_value;
typedef struct tcc_op tcc_op;
typedef struct tcc_block tcc_block;
typedef struct tcc_func tcc_func;

/* ---- opcodes: everything here comes from ops.def --------------------------------------- */

typedef enum tcc_opcode {
#define TCC_OP(id, name, ...) TCC_OP_##id,
#include "ir/ops.def"
    TCC_OP_COUNT
} tcc_opcode;

/* tcc_tile_mma_operands: the operands of tile.mma by name; TCC_VIEW(tile_mma, op)->a reads one. */
#define OPND(name, kinds) tcc_value *name;
#define OPERANDS(list) list
#define NO_OPERANDS tcc_value *none_; /* C has no empty structs; n_operands is 0 */
#define TCC_OP(id, name, operands, ...)                                                            \
    typedef struct tcc_##id##_operands {                                                           \
        operands                                                                                   \
    } tcc_##id##_operands;
#include "ir/ops.def"
#undef OPND
#undef OPERANDS
#undef NO_OPERANDS

enum tcc_op_flags {
    TCC_PURE = 1,         /* derived from the effects: may be removed, merged, moved */
    TCC_TERMINATOR = 2,   /* ends its block */
    TCC_VARIADIC = 4,     /* more operands may follow the named ones */
    TCC_COMMUTES = 8,     /* the first two operands may be exchanged */
    TCC_ELEMENTWISE = 16, /* operands and result have one shape */
    TCC_RESULTS_ANY = 32, /* any number of results: scf.for, scf.if, … */
    TCC_FREE = 64,        /* no instruction: registers get other names */
    TCC_SPECIAL = 128     /* of floats by the units for special functions, of integers many instructions */
};

/* What an op does besides giving results. */
enum tcc_effect_bit {
#define EFFECT(id, doc) TCC_EFFECT_BIT_##id,
#include "ir/effects.def"
    TCC_EFFECT_COUNT
};
enum tcc_effects {
#define EFFECT(id, doc) TCC_##id = 1 << TCC_EFFECT_BIT_##id,
#include "ir/effects.def"
    TCC_COMPLETES = TCC_COUNTS | TCC_WAITS
};

/* Levels at which an op may appear; a function's level is the last that all its ops share. */
enum tcc_level {
    TCC_LEVEL_TENSOR = 1,
    TCC_LEVEL_TILE = 2,
    TCC_LEVEL_ASYNC = 4,
    TCC_LEVEL_TARGET = 8,
    TCC_LEVEL_ALL = 15
};

typedef enum tcc_attr_kind {
    TCC_ATTR_INT,
    TCC_ATTR_FLOAT,
    TCC_ATTR_STR, /* printed bare when it is an identifier, else quoted */
    TCC_ATTR_LIST,
    TCC_ATTR_INDEX, /* an index expression (index.h) that is neither a name nor a number: those are a STR, an INT */
    TCC_ATTR_ANY /* in ops.def only: any of the above */
} tcc_attr_kind;

typedef struct tcc_operand_info {
    const char *name;
    unsigned kinds; /* bits 1 << tcc_kind that are allowed */
} tcc_operand_info;

typedef struct tcc_attr_info {
    const char *name;
    tcc_attr_kind kind;
    bool required;
} tcc_attr_info;

typedef struct tcc_op_info {
    const char *name;
    const tcc_operand_info *operands; /* ended by a NULL name */
    const tcc_operand_info *results;
    const tcc_attr_info *attrs;
    unsigned n_operands, n_results, n_regions;
    unsigned flags, effects, levels;
    const char *doc;
} tcc_op_info;

extern const tcc_op_info tcc_op_infos[]; /* by opcode */
static inline const tcc_op_info *tcc_op_info_get(tcc_opcode code)
{
    return &tcc_op_infos[code];
}
/* Whether an op has any of these effects; waits for what is completed by any of these; starts that. */
static inline bool tcc_op_does(tcc_opcode code, unsigned effects)
{
    return tcc_op_info_get(code)->effects & effects;
}
static inline bool tcc_op_waits(tcc_opcode code, unsigned by)
{
    return tcc_op_does(code, TCC_WAITS) && tcc_op_does(code, by);
}
static inline bool tcc_op_starts(tcc_opcode code, unsigned by)
{
    return tcc_op_does(code, by) && !tcc_op_does(code, TCC_COMPLETES);
}
/* How an op accesses global memory, and which operand says where: a pointer, a tensor map or a buffer. */
typedef struct tcc_global_use {
    bool any, writes, async;
    unsigned operand;
} tcc_global_use;
tcc_global_use tcc_op_global_use(tcc_opcode code);
/* The number of the entry's parameter through which an op accesses global memory; -1: it is none, or not known. */
int tcc_op_global_parameter(const tcc_op *op);

/* ---- attributes ------------------------------------------------------------------------ */

typedef struct tcc_attr {
    tcc_attr_kind kind;
    union {
        int64_t i;
        double f;
        const char *s; /* interned */
        const struct tcc_index_expr *index;
        struct {
            const struct tcc_attr *items;
            size_t n;
        } list;
    };
} tcc_attr;

typedef struct tcc_named_attr {
    const char *name; /* interned */
    tcc_attr value;
    tcc_loc loc; /* where the user wrote it, for schedules; not printed */
} tcc_named_attr;

typedef struct tcc_attrs {
    tcc_named_attr *data;
    size_t len, cap;
} tcc_attrs;

/* The attribute of this name, or NULL. */
const tcc_named_attr *tcc_attr_find(const tcc_attrs *attrs, const char *name);
/* Sets or replaces. */
void tcc_attr_set(tcc_ir *ir, tcc_attrs *attrs, const char *name, tcc_attr value, tcc_loc loc);
void tcc_attr_remove(tcc_attrs *attrs, const char *name);
/* Sets a list of the items that there are and one more. */
void tcc_attr_append(tcc_ir *ir, tcc_attrs *attrs, const char *name, tcc_attr item);
/* Sets what `from` has of this name; nothing where it has none. */
void tcc_attr_carry(tcc_ir *ir, tcc_attrs *attrs, const tcc_attrs *from, const char *name);
void tcc_attr_set_int(tcc_ir *ir, tcc_attrs *attrs, const char *name, int64_t i);
void tcc_attr_set_str(tcc_ir *ir, tcc_attrs *attrs, const char *name, const char *s);
void tcc_attr_set_ints(tcc_ir *ir, tcc_attrs *attrs, const char *name, size_t n, const int64_t *v);
void tcc_attr_set_strs(tcc_ir *ir, tcc_attrs *attrs, const char *name, size_t n,
                       const char *const *v);
/* The value, or `otherwise` when the attribute is absent or of another kind. */
int64_t tcc_attr_int(const tcc_attrs *attrs, const char *name, int64_t otherwise);
const char *tcc_attr_str(const tcc_attrs *attrs, const char *name, const char *otherwise);
/* Whether the value is this string. */
bool tcc_attr_is(const tcc_attrs *attrs, const char *name, const char *s);
/* The element type that a string names; false, and *out as it was, where it names none. */
bool tcc_attr_scalar(const tcc_attrs *attrs, const char *name, tcc_scalar *out);
/* The list, empty when absent. */
tcc_attr tcc_attr_list(const tcc_attrs *attrs, const char *name);
bool tcc_attr_equal(const tcc_attr *a, const tcc_attr *b);
/* Whether both have the same names with equal values, in any order. */
bool tcc_attrs_equal(const tcc_attrs *a, const tcc_attrs *b);
void tcc_attr_print(tcc_str *out, const tcc_attr *a);
/* An index expression as an attribute: a plain index as its name, a number as an integer. */
tcc_attr tcc_attr_of_index(const struct tcc_index_expr *x);
/* A dimension's name, or its size. */
tcc_attr tcc_attr_of_dim(tcc_dim d);
/* The index expression that an attribute is; NULL: it is none. */
const struct tcc_index_expr *tcc_index_of_attr(tcc_ir *ir, tcc_attr a);
/* Whether a is a list of `word` and items of these kinds: s a name, i an integer, l a list, d a
 * dimension: a name or an integer. */
bool tcc_attr_is_record(tcc_attr a, const char *word, const char *kinds);

/* ---- values, ops, blocks, functions ---------------------------------------------------- */

/* One operand of an op, in the list of all that use the same value. */
typedef struct tcc_use {
    tcc_op *op;
    struct tcc_use *next, **link; /* what points here */
} tcc_use;

struct tcc_value {
    const tcc_type *type;
    tcc_op *def;      /* NULL for block arguments */
    tcc_block *block; /* the block whose argument it is; NULL for results */
    uint32_t index;   /* among the results or arguments */
    uint32_t n_uses;
    tcc_use *uses;    /* in no particular order */
    const char *name; /* printed as %name when set and unique, else %number */
};

struct tcc_op {
    tcc_opcode code;
    tcc_loc loc;
    unsigned n_operands, n_results, n_regions;
    tcc_value **operands; /* change through tcc_op_set_operand */
    tcc_use *uses;        /* of each operand: uses[i].op is this op */
    tcc_value *results;   /* an array of values */
    tcc_block **regions;
    tcc_attrs attrs;
    tcc_block *block; /* that holds it; NULL while detached */
    tcc_op *prev, *next;
};

struct tcc_block {
    tcc_value **args;
    size_t n_args, cap_args;
    tcc_op *first, *last;
    tcc_op *parent; /* op whose region it is; NULL for a function's body */
    tcc_func *func;
};

struct tcc_func {
    const char *name; /* interned */
    tcc_loc loc;
    tcc_attrs attrs;
    tcc_block *body; /* its arguments are the function's */
    tcc_ir *ir;
    tcc_func *next;
};

struct tcc_ir {
    tcc_arena *arena; /* borrowed: of functions, and of what passes need besides */
    tcc_arena *kept;  /* borrowed: of types, names and index expressions, which all functions share */
    tcc_intern *names;
    const tcc_type **types; /* interned, by hash */
    size_t n_types, cap_types;
    const struct tcc_index_expr **indices; /* interned, by hash */
    size_t n_indices, cap_indices;
    tcc_attrs attrs; /* target, file */
    tcc_func *first, *last;
};

tcc_ir *tcc_ir_create(tcc_arena *arena);               /* lives as long as the arena */
const char *tcc_ir_name(tcc_ir *ir, const char *name); /* interned */
/* Whether an op gives a field. */
static inline bool tcc_has_field(const tcc_op *op)
{
    return op->n_results && op->results[0].type->kind == TCC_KIND_field;
}
/* Whether two names of indices or dimensions, of one tcc_ir, are the same. */
static inline bool tcc_index_same(const char *a, const char *b)
{
    return a == b;
}

/* Appends an empty function. */
tcc_func *tcc_func_create(tcc_ir *ir, const char *name, tcc_loc loc);
/* A copy of f under another name, after f in the module. */
tcc_func *tcc_func_clone(tcc_func *f, const char *name);
tcc_func *tcc_func_find(const tcc_ir *ir, const char *name);
void tcc_func_remove(tcc_func *f);

tcc_block *tcc_block_create(tcc_func *f, tcc_op *parent);
tcc_value *tcc_block_add_arg(tcc_block *b, const tcc_type *type, const char *name);

/* ---- building -------------------------------------------------------------------------- */

/* Where new ops go: before `before`, or at the end of `block` when it is NULL. */
typedef struct tcc_builder {
    tcc_func *func;
    tcc_block *block;
    tcc_op *before;
    tcc_loc loc; /* given to new ops */
} tcc_builder;

tcc_builder tcc_builder_at_end(tcc_block *block);
tcc_builder tcc_builder_before(tcc_op *op);
tcc_builder tcc_builder_after(tcc_op *op);

/* Creates an op at the builder's place, with empty regions (as many as its row says). */
tcc_op *tcc_op_create(tcc_builder *b, tcc_opcode code, size_t n_operands,
                      tcc_value *const *operands, size_t n_results, const tcc_type *const *types);

/* TCC_EMIT(b, tile_mma, type, .a = x, .b = y, .c = z): an op with named operands and one result,
 * which it returns. TCC_EMIT_V: no result; returns the op. */
#define TCC_EMIT(b, id, type, ...)                                                                 \
    (&tcc_op_create((b), TCC_OP_##id, tcc_op_info_get(TCC_OP_##id)->n_operands,                    \
                    (tcc_value **)&(tcc_##id##_operands){__VA_ARGS__}, 1,                          \
                    (const tcc_type *[]){type})                                                    \
          ->results[0])
#define TCC_EMIT_V(b, id, ...)                                                                     \
    tcc_op_create((b), TCC_OP_##id, tcc_op_info_get(TCC_OP_##id)->n_operands,                      \
                  (tcc_value **)&(tcc_##id##_operands){__VA_ARGS__}, 0, NULL)
/* The type of the registers that a thread's load or store moves. */
const tcc_type *tcc_op_moves(const tcc_op *op);
/* The i1 that says whether tile.mma or async.mma adds to c; NULL: it always does. */
tcc_value *tcc_mma_accumulate(const tcc_op *op);

/* TCC_VIEW(tile_mma, op)->a */
#define TCC_VIEW(id, op) ((const tcc_##id##_operands *)(op)->operands)

/* An i32, i64 or f32 constant; `type` may be any type with an element: a splat. */
tcc_value *tcc_build_int(tcc_builder *b, const tcc_type *type, int64_t v);
tcc_value *tcc_build_i32(tcc_builder *b, int64_t v);
tcc_value *tcc_build_float(tcc_builder *b, const tcc_type *type, double v);

/* True, and the value, when v is an arith.const. */
bool tcc_value_is_int(const tcc_value *v, int64_t *out);
bool tcc_value_is_float(const tcc_value *v, double *out);

/* ---- changing -------------------------------------------------------------------------- */

void tcc_op_set_operand(tcc_op *op, size_t i, tcc_value *v);
/* Leaves the first n operands. */
void tcc_op_truncate_operands(tcc_op *op, unsigned n);
/* Makes every user of `from` use `to`. */
void tcc_replace_uses(tcc_value *from, tcc_value *to);
bool tcc_value_is_used_by(const tcc_value *v, tcc_opcode code);
/* Unlinks op and drops its uses, and those of its regions. Its results must be unused. */
void tcc_op_erase(tcc_op *op);
/* Moves op to the builder's place. */
void tcc_op_move(tcc_builder *b, tcc_op *op);

/* A map from old to new values, for cloning. */
typedef struct tcc_value_map tcc_value_map;
tcc_value_map *tcc_value_map_create(tcc_arena *arena);
/* One that has, beside its own, the values of another one. */
tcc_value_map *tcc_value_map_within(tcc_arena *arena, const tcc_value_map *outer);
void tcc_value_map_set(tcc_value_map *m, const tcc_value *from, tcc_value *to);
/* The new value; `from` itself when it is not in the map. */
tcc_value *tcc_value_map_get(const tcc_value_map *m, tcc_value *from);
/* Copies op with its regions to the builder's place, operands mapped; results enter the map. */
tcc_op *tcc_op_clone(tcc_builder *b, tcc_op *op, tcc_value_map *map);

/* ---- walking --------------------------------------------------------------------------- */

/* The op after `op` in a walk of `top` in which inner ops follow their op; NULL at the end:
 * for (tcc_op *op = top->first; op; op = tcc_walk_next(op, top)). */
tcc_op *tcc_walk_next(tcc_op *op, const tcc_block *top);

/* The op of a block that is `op` or has it in its regions; NULL when op is elsewhere. */
tcc_op *tcc_ancestor_in(tcc_op *op, const tcc_block *block);
/* Whether an op of a block is another one, or precedes it. */
bool tcc_op_reaches(const tcc_op *op, const tcc_op *other);
/* The terminator that passes a block's values to its op; NULL if it passes none. */
tcc_op *tcc_block_yield(const tcc_block *block);
/* The async.role that is `op` or has it in its region; NULL when it is in none. */
const tcc_op *tcc_role_of(const tcc_op *op);

/* ---- text ------------------------------------------------------------------------------ */

enum tcc_print_flags { TCC_PRINT_LOCS = 1 }; /* add loc(line:column) to every op that has one */

void tcc_ir_print(tcc_str *out, const tcc_ir *ir, unsigned flags);
void tcc_func_print(tcc_str *out, const tcc_func *f, unsigned flags);
/* One op on one line, without its regions, named as in its function. */
void tcc_op_print(tcc_str *out, const tcc_op *op, unsigned flags);
/* Parses a module; errors go to diag. Returns NULL when there were any. */
tcc_ir *tcc_ir_parse(tcc_arena *arena, const char *text, size_t size, tcc_diag *diag);

/* Checks structure (ops.def) and each op's own rule; reports every error with the op's text.
 * `levels` limits the levels whose ops may appear. Returns whether the function is valid. */
bool tcc_func_verify(const tcc_func *f, unsigned levels, tcc_diag *diag);
bool tcc_ir_verify(const tcc_ir *ir, unsigned levels, tcc_diag *diag);

#endif
