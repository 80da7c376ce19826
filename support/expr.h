/* expr: whole numbers computed from a kernel's dimensions and the GPU's attributes, as launch plans
 * have them: grids, bytes, costs (docs/abi.md).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_EXPR_H
#define TCC_SUPPORT_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"

/* OP(id, means): of two operands; `add`, `mul`, `min` and `max` take any number, one after another.
 */
#define TCC_EXPR_OPS(OP)                                                                           \
    OP(add, "a + b")                                                                               \
    OP(sub, "a - b")                                                                               \
    OP(mul, "a * b")                                                                               \
    OP(div, "a / b, rounded down; b is positive and a is not negative")                            \
    OP(ceildiv, "a / b, rounded up; b is positive and a is not negative")                          \
    OP(roundup, "the next multiple of b from a on; b is positive and a is not negative")           \
    OP(min, "the lesser")                                                                          \
    OP(max, "the greater")

/* DEVICE(id, means): attributes of the GPU. */
#define TCC_DEVICE_ATTRS(DEVICE) DEVICE(sms, "streaming multiprocessors, or RDNA's WGPs")

typedef enum tcc_expr_code {
    TCC_EXPR_number,
    TCC_EXPR_dim,    /* by its index */
    TCC_EXPR_device, /* by its number in TCC_DEVICE_ATTRS */
#define OP(id, means) TCC_EXPR_##id,
    TCC_EXPR_OPS(OP)
#undef OP
        TCC_EXPR_CODE_COUNT
} tcc_expr_code;

typedef enum tcc_device_attr {
#define DEVICE(id, means) TCC_DEVICE_##id,
    TCC_DEVICE_ATTRS(DEVICE)
#undef DEVICE
        TCC_DEVICE_ATTR_COUNT
} tcc_device_attr;

typedef struct tcc_device_attrs {
    int64_t value[TCC_DEVICE_ATTR_COUNT];
} tcc_device_attrs;

/* One step of the computation on a stack: pushes a value, or replaces the last two. */
typedef struct tcc_expr_step {
    tcc_expr_code code;
    int64_t number;
} tcc_expr_step;

/* The most of an expression; a launch evaluates all of its steps. */
enum { TCC_EXPR_MAX_STEPS = 1 << 16, TCC_EXPR_MAX_DEPTH = 48 };

/* No steps: 0. */
typedef struct tcc_expr {
    tcc_expr_step *steps;
    size_t n, depth;
} tcc_expr;

/* Appends a step. False where the expression gets too long or deep, or its operands are missing. */
bool tcc_expr_push(tcc_arena *arena, tcc_expr *e, tcc_expr_code code, int64_t number);

/* An operation on two numbers; false where it has no result, or one that leaves 64 bits. */
bool tcc_expr_apply(tcc_expr_code op, int64_t a, int64_t b, int64_t *out);
/* False where a number leaves 64 bits, or a division has no result. */
bool tcc_expr_value(const tcc_expr *e, const int64_t *dims, const tcc_device_attrs *device,
                    int64_t *out);

/* The operation or the attribute of this name; false when there is none. */
bool tcc_expr_find_op(const char *name, tcc_expr_code *out);
const char *tcc_expr_op_name(tcc_expr_code op);
bool tcc_device_attr_find(const char *name, tcc_device_attr *out);
const char *tcc_device_attr_name(tcc_device_attr a);
/* Whether an operation takes any number of operands. */
bool tcc_expr_is_variadic(tcc_expr_code op);

#endif
