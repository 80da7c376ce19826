/* index: integer expressions of indices and dimensions, as a tensor's subscripts, grids and domains have them.
 *
 * An expression is a sum of terms. A term is a number times factors: at most one index or quotient that varies with
 * indices, and dimensions and quotients that do not. A quotient is floor(x / y) of two expressions, of which y has no
 * index and is taken to be positive: where it is not, what an expression is depends on its form. x % y is x - y * floor(x / y), from 0 to y - 1.
 *
 * Expressions are interned in a tcc_ir, in a normal form: equal pointers mean equal values, and those that differ only
 * by sums, products, multiples of a divisor and nested quotients are equal pointers. Whatever builds one gives NULL
 * where a number does not fit 64 bits, where there would be more than TCC_INDEX_MAX_TERMS terms or factors, or where an
 * operand is NULL, so that only the last result need be looked at.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_INDEX_H
#define TCC_IR_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/str.h"

enum { TCC_INDEX_MAX_TERMS = 64 };

typedef struct tcc_ir tcc_ir;
typedef struct tcc_index_expr tcc_index_expr;

typedef enum tcc_index_factor_kind { TCC_FACTOR_INDEX, TCC_FACTOR_QUOTIENT, TCC_FACTOR_DIM } tcc_index_factor_kind;

typedef struct tcc_index_factor {
    tcc_index_factor_kind kind;
    const char *name;              /* of an index or a dimension, interned */
    const tcc_index_expr *of, *by; /* of a quotient */
} tcc_index_factor;

/* number * factors[0] * …; without factors it is the constant. */
typedef struct tcc_index_term {
    int64_t number;
    size_t n;
    const tcc_index_factor *factors; /* sorted */
} tcc_index_term;

struct tcc_index_expr {
    size_t n;                    /* 0: the expression is 0 */
    const tcc_index_term *terms; /* sorted; their factors differ, no number is 0, and the constant is the last */
    bool varies;                 /* whether it has an index */
};

/* x / y rounded down; y is positive. */
static inline int64_t tcc_floor_div(int64_t x, int64_t y)
{
    return x / y - (x % y < 0);
}

const tcc_index_expr *tcc_index_number(tcc_ir *ir, int64_t number);
const tcc_index_expr *tcc_index_name(tcc_ir *ir, const char *index);
const tcc_index_expr *tcc_index_dim(tcc_ir *ir, const char *dim);
const tcc_index_expr *tcc_index_add(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y);
const tcc_index_expr *tcc_index_sub(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y);
/* NULL, too, if both have indices. */
const tcc_index_expr *tcc_index_mul(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y);
/* floor(x / y), x - y * floor(x / y). NULL, too, if y has an index, or is a number below 1. */
const tcc_index_expr *tcc_index_div(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y);
const tcc_index_expr *tcc_index_mod(tcc_ir *ir, const tcc_index_expr *x, const tcc_index_expr *y);
/* x / n rounded up. */
const tcc_index_expr *tcc_index_ceildiv(tcc_ir *ir, const tcc_index_expr *x, int64_t n);

/* Also of two modules, whose expressions are interned apart. */
bool tcc_index_equal(const tcc_index_expr *x, const tcc_index_expr *y);
bool tcc_index_is_number(const tcc_index_expr *x, int64_t *out);
/* The index that x is; NULL where it is anything else. */
const char *tcc_index_plain(const tcc_index_expr *x);
/* Whether an index, or a dimension, occurs in it, also inside quotients. */
bool tcc_index_has(const tcc_index_expr *x, tcc_index_factor_kind kind, const char *name);
/* How much x grows when an index does by 1: an expression without indices, 0 where x lacks the index. NULL where that
 * is not the same everywhere: the index occurs in a quotient. */
const tcc_index_expr *tcc_index_stride(tcc_ir *ir, const tcc_index_expr *x, const char *index);
/* x with an expression for each occurrence of an index or dimension. */
const tcc_index_expr *tcc_index_replace(tcc_ir *ir, const tcc_index_expr *x, tcc_index_factor_kind kind,
                                        const char *name, const tcc_index_expr *by);

/* ---- values ---------------------------------------------------------------------------- */

/* The numbers of an interval, with both ends. */
typedef struct tcc_index_range {
    int64_t least, most;
} tcc_index_range;

/* The values that an index or dimension takes; false: not known. */
typedef bool tcc_index_lookup(void *user, tcc_index_factor_kind kind, const char *name, tcc_index_range *out);

/* The value where every name has one, the least of its range; a divisor below 1 counts as 1. False where one is not
 * known or a number does not fit 64 bits. */
bool tcc_index_value(const tcc_index_expr *x, tcc_index_lookup *lookup, void *user, int64_t *out);

typedef enum tcc_bounds {
    TCC_BOUNDS_NONE,  /* a range is not known or empty, or a number does not fit 64 bits */
    TCC_BOUNDS_OUTER, /* every value is within, but the ends may not be taken */
    TCC_BOUNDS_EXACT  /* both ends are values */
} tcc_bounds;

/* The least and the greatest value of x where names range independently over a box. They are exact where x never falls
 * or never rises with each name, as sums of indices, and of quotients of them by positive numbers and dimensions, do;
 * where the names for which it does both take few values together; and for remainders of a single index. */
tcc_bounds tcc_index_bounds(tcc_ir *ir, const tcc_index_expr *x, tcc_index_lookup *lookup, void *user,
                            tcc_index_range *out);

/* How x changes with an index or a dimension over a box: 1 never falls, -1 never rises, 0 neither is known, or it lacks
 * the name. */
int tcc_index_direction(tcc_ir *ir, const tcc_index_expr *x, tcc_index_factor_kind kind, const char *name,
                        tcc_index_lookup *lookup, void *user);

/* As it is written in IR: `r + 2 * y - 1`, `h / ($H / $G)`; a dimension has a $ before it. */
void tcc_index_print(tcc_str *out, const tcc_index_expr *x);

#endif
