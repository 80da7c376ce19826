/* normal: what normal.c, ranks.c and covers.c share: a state as it is being written.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_NORMAL_H
#define TCC_CHECKER_NORMAL_H

#include "checker/model.h"

struct tcc_pcolumn {
    TCC_VEC(uint32_t) known; /* clocks that something remembers, sorted */
    uint32_t base;           /* from here on by distance; UINT32_MAX: nothing */
    uint32_t recent;         /* what is known from here on may be asked for, less is too little; UINT32_MAX: all is */
};
typedef struct tcc_pcolumn column;

typedef struct writer {
    const tcc_protocol *p;
    const tcc_pstate *s;
    uint8_t *data;
    size_t len, cap;
    column *columns; /* of each actor, then of each warp's steps, then of its fences */
    uint32_t *common; /* as of an entity: what all warps know */
    const bool *is_free; /* of atoms of a calm state; NULL: it is none */
    int64_t base_at[TCC_P_RECORDS];
    int64_t lap;        /* the state is written as so many tiles later; -1: as it is */
    int64_t drawn_base; /* numbers that were drawn are written by their distance from this */
} writer;

enum { FEW_KNOWN = 8 }; /* clocks, which are looked at one by one */

static inline uint16_t rank_of(const column *c, uint32_t clock)
{
    size_t rank = 0, end = c->known.len;
    uint32_t v = clock < c->base ? clock : c->base;
    while (end - rank > FEW_KNOWN) {
        size_t middle = rank + (end - rank) / 2;
        bool is_behind = c->known.data[middle] <= v;
        rank = is_behind ? middle + 1 : rank;
        end = is_behind ? end : middle;
    }
    while (rank < end && c->known.data[rank] <= v)
        rank++;
    return (uint16_t)(rank + (clock - v));
}

/* Room for n bytes more. */
void tcc_p_reserve(writer *w, size_t n);
static inline void put(writer *w, const void *bytes, size_t n)
{
    if (w->len + n > w->cap)
        tcc_p_reserve(w, n);
    memcpy(w->data + w->len, bytes, n);
    w->len += n;
}
static inline void put_int(writer *w, int64_t v)
{
    put(w, &v, sizeof v);
}
static inline void put_clock(writer *w, const column *c, uint32_t clock)
{
    uint16_t rank = rank_of(c, clock);
    put(w, &rank, sizeof rank);
}
/* Whether who arrives at a barrier from now on must still do so before its phase ends. */
static inline bool awaits_arrivals(const tcc_pbarrier *bar)
{
    return bar->pending == bar->expected;
}
/* Groups of MMAs that all warps of a warpgroup have waited for; that one has committed, that all have. */
uint32_t tcc_p_least_waited(const tcc_protocol *p, const tcc_pstate *s, unsigned group, uint32_t *most, uint32_t *all);
/* ranks.c: ranks of the clocks of all entities; writes those that must be the same, or all of them. */
void tcc_p_put_clocks(writer *w);

#endif
