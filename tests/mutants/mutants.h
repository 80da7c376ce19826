/* mutants: programs of the compiler that are broken on purpose, each in one place.
 *
 * A kind of mutation is tried at every op of a function and in every way that it knows, so that
 * one kind gives many mutants. Each is a new copy of the function.
 *
 * edit.c         what mutations do to IR: copy what an op needs, exchange, move
 * kinds.c        the table of kinds         fields.c      those that change a constant
 * subjects.c     the programs               equivalent.c  mutants that are not wrong, and why
 * same.c         whether a mutant computes the same numbers
 * verdicts.c     what the checker and the interpreter say
 * main.c         all of it, in several processes, and the table of kills
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_MUTANTS_H
#define TCC_TESTS_MUTANTS_H

#include "ir/ir.h"

/* ---- kinds ------------------------------------------------------------------------------- */

typedef enum attempt {
    MUTATED,
    NOT_HERE, /* nothing was changed */
    NO_MORE   /* nor will be in a later way */
} attempt;

typedef struct kind kind;

/* Breaks f at an op in one of the ways that the kind knows, numbered from 0. For kinds that
 * change the attributes of the function the op is the body's first. */
typedef attempt mutation(tcc_func *f, tcc_op *op, const kind *k, unsigned way);

struct kind {
    const char *name;
    mutation *mutate;
    tcc_opcode code;       /* only ops of this code; TCC_OP_COUNT: any */
    unsigned operand;      /* that is changed */
    const char *attribute; /* that is changed */
    const int64_t *ways;   /* what is done to it */
    unsigned n_ways;
    bool of_guards; /* that keep threads within a tensor */
};

extern const kind kinds[];
extern const unsigned n_kinds;
/* Whether a kind leaves out ops of this code. */
bool is_left_out(tcc_opcode code);

/* Instead of a number among the ways. */
enum { NEGATED = 1000, TOGGLED };

/* Kinds that change a number: fields.c. */
mutation add_to_operand, add_to_result, scale_operand, replace_operand, change_attribute, change_descriptor,
    change_constant, change_function, change_grid, drop_condition, change_workspace, change_tensor_map, exchange_parameters;

/* ---- subjects ---------------------------------------------------------------------------- */

enum { MAX_DIMS = 4, MAX_SHAPES = 12 };

/* Of the dimensions M, N, K and P, whichever of them a kernel has. */
typedef struct extents {
    int64_t m, n, k, p;
} extents;

typedef struct subject {
    const char *name;
    const char *source;         /* a kernel and its schedule */
    const char *target;         /* that it is for; NULL: sm_90a */
    const char *file;           /* instead, one of IR, whose first function is the kernel */
    const char *function;       /* that is broken */
    const char *const *only;    /* ops of these names are broken, NULL behind them; NULL: all */
    bool without_guards;        /* kinds that change guards of single elements are left out */
    extents shapes[MAX_SHAPES]; /* up to the first without m */
    unsigned aligned; /* a bit for each shape: addresses are multiples of 16; else they are as the kernel asks */
} subject;

extern const subject subjects[];
extern const unsigned n_subjects;

/* ---- mutants that are not wrong ---------------------------------------------------------- */

typedef struct site {
    const subject *subject;
    const kind *kind;
    const tcc_func *f; /* as it was */
    tcc_op *op;
    unsigned way;
    const tcc_func *mutant;
} site;

typedef struct reason {
    const char *name;
    bool (*holds)(const site *s);
} reason;

/* Whether the mutant differs in nothing but how numbers are computed, and every thread gets the
 * same ones in each of the first iterations of loops: same.c. */
bool gives_same_numbers(const site *s);
/* Whether a thread may come to op, and v is then the same in all iterations: same.c. */
bool is_known_at(const tcc_op *op, const tcc_value *v, int64_t tid, int64_t *out);

extern const reason reasons[];
extern const unsigned n_reasons;

/* ---- editing (edit.c) -------------------------------------------------------------------- */

/* Whether an op does something; one with regions counts as one. */
bool has_effect(const tcc_op *op);
/* Whether block `in` is b or inside of it. */
bool is_inside(const tcc_block *in, const tcc_block *b);
/* The neighbours of an op in its block that do something. */
tcc_op *previous_effect(const tcc_op *op);
tcc_op *next_effect(const tcc_op *op);
/* Moves op, with what it needs, before an earlier op of its block; false when it cannot be. */
bool move_before(tcc_op *op, tcc_op *place);
/* Moves op out of its region, to before or after the op whose region it is, where arguments of
 * the region are what they are first, or last. */
bool move_out(tcc_op *op, bool after);
/* What v would be if an argument of a region were another value: its computation is copied to
 * before op. NULL when v does not depend on it. */
tcc_value *value_if(tcc_op *op, tcc_value *v, tcc_value *arg, tcc_value *otherwise);
/* The n-th integer argument of the loops around op, counting from the innermost; NULL: no more. */
tcc_value *loop_argument(const tcc_op *op, unsigned n);
/* What a loop's argument is at first. */
tcc_value *first_value(const tcc_value *arg);
/* A copy, before op, of what a value of its block is computed from; NULL when that has effects. */
tcc_value *copy_value_before(tcc_op *op, tcc_value *v);
/* Whether an operand of an op of this code is computed from v. */
bool leads_to(const tcc_func *f, const tcc_value *v, tcc_opcode code, unsigned operand);
/* A constant of v's type, before op. */
tcc_value *constant_like(tcc_op *op, const tcc_value *v, int64_t i);

#endif
