/* table: from a few words to a number; words are compared whole.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stddef.h>

#include "checker/model.h"

typedef struct entry {
    uint64_t value;
    const uint8_t *key;
    uint32_t hash, bytes;
} entry;

struct tcc_ptable {
    tcc_arena *arena;
    entry *entries;
    size_t len, cap;
};

tcc_ptable *tcc_ptable_create(tcc_arena *arena)
{
    tcc_ptable *t = TCC_NEW(arena, tcc_ptable);
    t->arena = arena;
    t->cap = 64;
    t->entries = TCC_NEW_ARRAY(arena, entry, t->cap);
    return t;
}

uint64_t tcc_p_hash(const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15) ^ n;
    for (; n >= 8; n -= 8, b += 8) {
        uint64_t w;
        memcpy(&w, b, 8);
        h = (h ^ w) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

static entry *find(tcc_ptable *t, uint32_t hash, const void *key, uint32_t bytes)
{
    size_t i = hash & (t->cap - 1);
    while (t->entries[i].key && (t->entries[i].hash != hash || t->entries[i].bytes != bytes ||
                                 memcmp(t->entries[i].key, key, bytes) != 0))
        i = (i + 1) & (t->cap - 1);
    return &t->entries[i];
}

static void grow(tcc_ptable *t)
{
    entry *old = t->entries;
    size_t n = t->cap;
    t->cap *= 2;
    t->entries = TCC_NEW_ARRAY(t->arena, entry, t->cap);
    for (size_t i = 0; i < n; i++)
        if (old[i].key)
            *find(t, old[i].hash, old[i].key, old[i].bytes) = old[i];
}

uint64_t *tcc_ptable_at(tcc_ptable *t, const void *key, size_t bytes)
{
    if (4 * (t->len + 1) > 3 * t->cap)
        grow(t);
    uint32_t hash = (uint32_t)tcc_p_hash(key, bytes);
    entry *e = find(t, hash, key, (uint32_t)bytes);
    if (!e->key) {
        *e = (entry){.hash = hash, .bytes = (uint32_t)bytes};
        e->key = (const uint8_t *)tcc_arena_strndup(t->arena, key, bytes);
        t->len++;
    }
    return &e->value;
}

const void *tcc_ptable_key(const uint64_t *place)
{
    return ((const entry *)(const void *)((const char *)place - offsetof(entry, value)))->key;
}
