/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/intern.h"

#include <stdint.h>
#include <string.h>

typedef struct entry {
    struct entry *next;
    size_t n;
    char bytes[];
} entry;

struct tcc_intern {
    tcc_arena *arena;
    entry **buckets;
    size_t n_buckets, n_entries;
};

static uint32_t hash(const char *s, size_t n) /* FNV-1a */
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    return h;
}

static void rehash(tcc_intern *t, size_t n_buckets)
{
    entry **fresh = TCC_NEW_ARRAY(t->arena, entry *, n_buckets);
    for (size_t i = 0; i < t->n_buckets; i++)
        for (entry *e = t->buckets[i], *next; e; e = next) {
            next = e->next;
            entry **slot = &fresh[hash(e->bytes, e->n) & (n_buckets - 1)];
            e->next = *slot;
            *slot = e;
        }
    t->buckets = fresh;
    t->n_buckets = n_buckets;
}

tcc_intern *tcc_intern_create(tcc_arena *arena)
{
    tcc_intern *t = TCC_NEW(arena, tcc_intern);
    t->arena = arena;
    rehash(t, 256);
    return t;
}

const char *tcc_intern_get(tcc_intern *t, const char *bytes, size_t n)
{
    entry **slot = &t->buckets[hash(bytes, n) & (t->n_buckets - 1)];
    for (entry *e = *slot; e; e = e->next)
        if (e->n == n && !memcmp(e->bytes, bytes, n))
            return e->bytes;
    if (t->n_entries++ >= t->n_buckets * 2) {
        rehash(t, t->n_buckets * 4);
        slot = &t->buckets[hash(bytes, n) & (t->n_buckets - 1)];
    }
    entry *e = tcc_arena_alloc(t->arena, sizeof *e + n + 1);
    e->n = n;
    memcpy(e->bytes, bytes, n);
    e->next = *slot;
    *slot = e;
    return e->bytes;
}
