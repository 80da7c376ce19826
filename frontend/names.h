/* names: tables keyed by interned names, and "did you mean".
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_FRONTEND_NAMES_H
#define TCC_FRONTEND_NAMES_H

#include "support/map.h"

/* Zero-initialise. Entries keep the order in which they were put. */
typedef struct tcc_names {
    struct tcc_names_entry {
        const char *name;
        void *what;
    } *entries;
    size_t len, cap;
    tcc_map map;
} tcc_names;

/* The meaning of `name`, or NULL. */
void *tcc_names_get(const tcc_names *t, const char *name);
/* `name` must not be in t yet. */
void tcc_names_put(tcc_arena *arena, tcc_names *t, const char *name, void *what);

/* Search for the candidate nearest to a misspelt name: set `wanted`, then try each. */
typedef struct tcc_spelling {
    const char *wanted;
    const char *best;
    size_t distance;
} tcc_spelling;

void tcc_spelling_try(tcc_spelling *s, const char *candidate);
void tcc_spelling_try_all(tcc_spelling *s, const tcc_names *candidates);
/* "; did you mean 'x'?", or "" when nothing is near. */
const char *tcc_spelling_hint(tcc_arena *arena, const tcc_spelling *s);

#endif
