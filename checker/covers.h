/* covers: what ranks.c and covers.c share: how much is known in a state, and in those that were seen.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_COVERS_H
#define TCC_CHECKER_COVERS_H

#include "checker/normal.h"

/* A normal form that was seen. */
typedef struct seen_state {
    uint16_t *least;  /* what is known at least in the states it stands for */
    int64_t turned;   /* by how much the first such state was rotated; */
    bool turns, told; /* others by more or less; it stands for no others */
    bool *written;    /* of a calm one: which of its atoms were written */
    unsigned n_written;
} seen_state;

/* What ranks of a block of clocks depend on, so that they are found at once. Clocks are compared as signed numbers,
 * which can be vectors. */
typedef struct bounds {
    int32_t base[TCC_P_BLOCK], recent[TCC_P_BLOCK]; /* recent: what is greater than this */
    size_t n;
    TCC_VEC(int32_t) below; /* rows of one for each clock: it has a rank more when it is greater */
} bounds;

/* A state, from 1 on, that comes after another. */
typedef struct edge {
    uint32_t before, after;
} edge;

struct tcc_pcovers {
    uint8_t *bytes; /* of the last state: its normal form; */
    size_t len, cap;
    unsigned *entities, n_entities; /* the followed ones, and their number */
    unsigned *rows_of_entities;     /* for each entity its row in `entities` */
    uint16_t *ranks;       /* of the clocks of these entities, of parts, and of groups of MMAs that are waited for */
    tcc_pgroup **groups;   /* of the state that was looked at last */
    uint32_t *rows[4];     /* two for entities with even numbers, two for the others */
    struct bounds *bounds; /* of each block of clocks */
    uint16_t *blocks;      /* the first clock of each block that has a rank other than 0 */
    size_t n_blocks;
    TCC_VEC(seen_state) states;
    TCC_VEC(edge) edges;
};

/* The groups of MMAs that a warp may still wait for; gives how many. */
unsigned tcc_p_find_groups(const tcc_protocol *p, const tcc_pstate *s, tcc_pgroup **groups);
/* Numbers of parts by warp and lanes, in whatever order they came to be. */
void tcc_p_sort_parts(const tcc_pstate *s, unsigned *order);

/* Rows of ranks. */
static inline size_t rows_of(const tcc_protocol *p, const tcc_pstate *s)
{
    return p->covers->n_entities + s->n_parts + tcc_p_find_groups(p, s, p->covers->groups);
}

/* The rank of what an entity knows. Only a warp that knows the end of the last phase but one may wait for the last,
 * although nothing remembers the one before (sync.c). */
static inline uint16_t rank_known(const column *c, uint32_t clock)
{
    return (uint16_t)(2 * rank_of(c, clock) + (clock >= c->recent));
}

/* The column of the i-th clock of an entity. */
static inline const column *column_of(const tcc_protocol *p, unsigned i)
{
    unsigned fenced = p->n_actors, passed = fenced + p->n_warps;
    return &p->columns[i < fenced ? i : i < passed ? i + p->n_steps : i - p->n_warps];
}

static inline bool are_same_ranks(const uint16_t *a, const uint16_t *b)
{
    uint64_t x[2], y[2];
    static_assert(sizeof x == TCC_P_BLOCK * sizeof *a, "a block of ranks");
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    return !((x[0] ^ y[0]) | (x[1] ^ y[1]));
}

#endif
