/* map: from addresses to pointers; open addressing in an arena. Interned names and IR values are
 * keys. Nothing walks a map, so addresses never show in what the compiler puts out.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_MAP_H
#define TCC_SUPPORT_MAP_H

#include <stdint.h>

#include "support/arena.h"

typedef struct tcc_map_entry {
    const void *key;
    void *value;
} tcc_map_entry;

/* TCC_MAP(arena) is an empty one. */
typedef struct tcc_map {
    tcc_arena *arena;
    tcc_map_entry *entries;
    size_t len, cap;
} tcc_map;

#define TCC_MAP(a) ((tcc_map){.arena = (a)})

/* The value of key, which is not NULL; NULL when it has none. */
void *tcc_map_get(const tcc_map *m, const void *key);
/* The place of key's value, NULL in it when key is new; good until the next tcc_map_at. */
void **tcc_map_at(tcc_map *m, const void *key);

/* A hash of x and of what h is a hash of. */
static inline uint64_t tcc_hash_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

#endif
