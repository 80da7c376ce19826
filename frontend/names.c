/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/names.h"

#include <string.h>

/* Hints are for people: longer names and lists are not worth the time. */
enum { MAX_LENGTH = 64, MAX_CANDIDATES = 1000 };

void *tcc_names_get(const tcc_names *t, const char *name)
{
    return tcc_map_get(&t->map, name);
}

void tcc_names_put(tcc_arena *arena, tcc_names *t, const char *name, void *what)
{
    t->map.arena = arena;
    *tcc_map_at(&t->map, name) = what;
    t->entries = tcc_arena_grow(arena, t->entries, sizeof *t->entries, t->len, &t->cap);
    t->entries[t->len++] = (struct tcc_names_entry){name, what};
}

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and exchanges of neighbours that make b of a, whatever the
 * case: the optimal string alignment distance. */
static size_t edit_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t rows[3][MAX_LENGTH + 1]; /* of prefixes of a, in turn */
    for (size_t j = 0; j <= n_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            char x = fold(a[i - 1]), y = fold(b[j - 1]);
            row[j] = min(above[j - 1] + (x != y), min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == fold(b[j - 2]) && y == fold(a[i - 2]))
                row[j] = min(row[j], above2[j - 2] + 1);
        }
    }
    return rows[n_a % 3][n_b];
}

void tcc_spelling_try(tcc_spelling *s, const char *candidate)
{
    size_t n = strlen(s->wanted), m = strlen(candidate);
    size_t limit = n <= 2 ? 0 : n <= 5 ? 1 : 2; /* a short name is near to everything */
    if (n > MAX_LENGTH || m > MAX_LENGTH || (n > m ? n - m : m - n) > limit)
        return;
    size_t distance = edit_distance(s->wanted, n, candidate, m);
    if (distance <= limit && (!s->best || distance < s->distance) &&
        strcmp(s->wanted, candidate) != 0) {
        s->best = candidate;
        s->distance = distance;
    }
}

void tcc_spelling_try_all(tcc_spelling *s, const tcc_names *candidates)
{
    for (size_t i = 0; i < candidates->len && i < MAX_CANDIDATES; i++)
        tcc_spelling_try(s, candidates->entries[i].name);
}

const char *tcc_spelling_hint(tcc_arena *arena, const tcc_spelling *s)
{
    return s->best ? tcc_arena_printf(arena, "; did you mean '%s'?", s->best) : "";
}
