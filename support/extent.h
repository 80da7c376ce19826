/* extent: the limits and names of dimensions.
 *
 * Kernels count tiles and iterations in 32 bits, as (extent + tile - 1) / tile. No tile is longer
 * than 32768, of a row that is swept over.
 *
 * A dimension that is computed of others has a name that says how. A product of a few names, and a number behind them,
 * has dots between them: `B.S.4` is B * S * 4. Anything else is in parentheses, with the operators + - * /:
 * `(W + P - 1)`. Quotients are rounded down, a divisor below 1 counts as 1, and what is below 0 as 0.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_EXTENT_H
#define TCC_SUPPORT_EXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "support/expr.h"

#define TCC_MAX_EXTENT (INT32_MAX - INT32_C(32767))
enum { TCC_MAX_FACTORS = 4 };

/* A name, or where it has no bytes a number. */
typedef struct tcc_extent_factor {
    const char *name;
    size_t n;
    int64_t number;
} tcc_extent_factor;

/* Whether it is in parentheses. */
static inline bool tcc_extent_is_sum(const char *name)
{
    return *name == '(';
}

/* Takes the first factor off a dimension's name; false where nothing is left of it, or it is in parentheses. */
static inline bool tcc_extent_take(const char **name, tcc_extent_factor *out)
{
    if (!**name || tcc_extent_is_sum(*name))
        return false;
    size_t n = strcspn(*name, ".");
    bool is_number = **name >= '0' && **name <= '9';
    *out = (tcc_extent_factor){*name, is_number ? 0 : n, 0};
    for (size_t i = 0; is_number && i < n && out->number >= 0 && out->number <= TCC_MAX_EXTENT; i++)
        out->number = (*name)[i] < '0' || (*name)[i] > '9' ? -1 : out->number * 10 + ((*name)[i] - '0');
    *name += n + ((*name)[n] == '.');
    return true;
}

static inline bool tcc_extent_is(const tcc_extent_factor *f, const char *name)
{
    return f->n && strlen(name) == f->n && !memcmp(name, f->name, f->n);
}

/* Takes what precedes the next name off a dimension's name, and that; false where there is no further one. */
bool tcc_extent_take_name(const char **name, tcc_extent_factor *out);

/* The number of a dimension that is a name; -1: there is none. */
typedef int tcc_extent_find(const void *user, const tcc_extent_factor *name);
/* A step of what computes a dimension, as an expression has them; false: no further one fits. */
typedef bool tcc_extent_step(void *to, tcc_expr_code code, int64_t number);

/* Passes on the steps that compute a dimension; is_signed: what is below 0 stays as it is. False where its name is
 * malformed, one in it is not found, or `step` is false. */
bool tcc_extent_read(const char *name, bool is_signed, tcc_extent_find *find, const void *user, tcc_extent_step *step,
                     void *to);
/* The steps as an expression; and the value where dimensions have these values, INT64_MAX where it leaves 64 bits. */
bool tcc_extent_compile(tcc_arena *arena, const char *name, bool is_signed, tcc_extent_find *find, const void *user,
                        tcc_expr *out);
bool tcc_extent_eval(const char *name, tcc_extent_find *find, const void *user, const int64_t *values, int64_t *out);

/* As people write it: `4 * B * S`, `W + P - 1`. */
const char *tcc_extent_text(tcc_arena *arena, const char *name);

#endif
