/* extent: the limits and names of dimensions.
 *
 * Kernels count tiles and iterations in 32 bits, as (extent + tile - 1) / tile. No tile is longer
 * than 8192: the shared memory of an SM would not hold a stage of it.
 *
 * If indices that are contiguous in memory are merged, the dimension is the product of theirs:
 * `B.S.4` is B * S * 4, with a limited number of names, and a number.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_EXTENT_H
#define TCC_SUPPORT_EXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TCC_MAX_EXTENT (INT32_MAX - INT32_C(8191))
enum { TCC_MAX_FACTORS = 4 };

/* A name, or where it has no bytes a number. */
typedef struct tcc_extent_factor {
    const char *name;
    size_t n;
    int64_t number;
} tcc_extent_factor;

/* Takes the first factor off a dimension's name; false where nothing is left of it. */
static inline bool tcc_extent_take(const char **name, tcc_extent_factor *out)
{
    if (!**name)
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

#endif
