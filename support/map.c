/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/map.h"

#include <stdint.h>

/* The entry of key, or the free one where it belongs. At most half of the entries are taken. */
static tcc_map_entry *find(const tcc_map *m, const void *key)
{
    /* The high bits of the product are the mixed ones. */
    uint64_t i = ((uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u) >> 20;
    for (i &= m->cap - 1; m->entries[i].key && m->entries[i].key != key;)
        i = (i + 1) & (m->cap - 1);
    return &m->entries[i];
}

void *tcc_map_get(const tcc_map *m, const void *key)
{
    return m->cap ? find(m, key)->value : NULL;
}

void **tcc_map_at(tcc_map *m, const void *key)
{
    if (m->len * 2 >= m->cap) {
        tcc_map old = *m;
        m->cap = old.cap ? old.cap * 2 : 32;
        m->entries = TCC_NEW_ARRAY(m->arena, tcc_map_entry, m->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.entries[i].key)
                *find(m, old.entries[i].key) = old.entries[i];
    }
    tcc_map_entry *e = find(m, key);
    if (!e->key) {
        e->key = key;
        m->len++;
    }
    return &e->value;
}
