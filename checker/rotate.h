/* rotate: what rotate.c finds and rotated.c uses: what a rotation of stages does.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_ROTATE_H
#define TCC_CHECKER_ROTATE_H

#include "checker/model.h"

/* What a rotation does to a slot of a warp: nothing; adds one; or it follows from the others. */
typedef enum kind { FIXED, COUNTER, FOLLOWS } kind;

typedef struct move {
    int64_t from, to; /* addresses of mbarriers */
    int flips;        /* the parity; -1: no warp waits */
} move;

struct tcc_protation {
    int64_t period; /* the counters are as before after so many rotations */
    TCC_VEC(uint32_t) counters; /* indices of loops among them; */
    bool carried;               /* others, too: tiles begin with any of them */
    uint8_t *kinds;     /* of each warp's slots; */
    TCC_VEC(uint32_t) moving; /* slots that are not fixed */
    uint32_t *granules; /* of shared memory: where they are after a rotation */
    TCC_VEC(move) moves;
    tcc_ptable *moves_from, *moves_to; /* 1 + their numbers, by address */
    bool used;
    tcc_pstate state; /* the last that was rotated */
    unsigned n_barriers, n_atoms, room; /* room: for so many atoms */
    uint32_t *barriers, *atoms;    /* where mbarriers and classes of atoms are after a rotation */
    uint32_t *to, *becomes, *from; /* mbarriers, classes, and from where these are, after as many as are wanted */
    uint32_t *classes;          /* of atoms, by their first; while they are found, another one */
    bool *flips;                /* mbarriers' parities */
};
typedef struct tcc_protation rotation;

/* The index of a loop where it is a counter; TCC_P_NO_SLOT: it is none. */
static inline uint32_t index_of(const rotation *r, const tcc_pframe *f)
{
    uint32_t slot = f->of && f->of->op->code == TCC_OP_scf_for ? f->code->args[0] : TCC_P_NO_SLOT;
    for (size_t i = 0; i < r->counters.len && slot != TCC_P_NO_SLOT; i++)
        if (r->counters.data[i] == slot)
            return slot;
    return TCC_P_NO_SLOT;
}

/* A counter with a remainder. */
static inline tcc_pvalue counter_at(const tcc_protocol *p, const rotation *r, int64_t x)
{
    int64_t v = x % r->period;
    while (v < p->threshold)
        v += r->period;
    return (tcc_pvalue){.kind = TCC_P_KNOWN, .v = v, .delta = r->period};
}

/* rotated.c: whether all warps are behind the beginning of the loop from which on states are rotated. */
bool tcc_p_are_late(const tcc_protocol *p, const tcc_pstate *s);

/* ---- while it is found ----------------------------------------------------------------- */

enum { NO_COUNTER = 0 };
#define TCC_P_UNSET UINT32_MAX

/* That an access to `from` is one to `to` after a rotation. */
typedef struct claim {
    const tcc_pinst *in;
    unsigned operand;
    tcc_pvalue from, to;
} claim;

/* What an MMA reads. */
typedef struct operand_ranges {
    const tcc_pinst *in;
    unsigned operand;
    int64_t bits;
    size_t n;
    tcc_prange *at;
} operand_ranges;

/* Bytes that become others. */
typedef struct box {
    int64_t from, to, bytes;
} box;

typedef struct walk {
    tcc_protocol *p;
    tcc_pstate *s;
    rotation *r;
    unsigned warp;
    bool failed;
    uint64_t shares; /* warps of CTA 0 that copy to others, a bit each */
    uint32_t *by;        /* of each slot: 1 + the counter on which it depends */
    tcc_pvalue **tables; /* for all values of that */
    TCC_VEC(claim) claims;
    TCC_VEC(box) boxes;
    uint32_t moving; /* granules that become others */
    operand_ranges ranges[2];
    tcc_ptable *known; /* what ops came to for other warps */
    int64_t step;      /* what is added to counters: 1, or a lap (laps.c) */
    bool laps;         /* step is a lap, and nothing is renamed */
} walk;

static inline uint32_t counter_of(const walk *w, uint32_t slot)
{
    return slot < TCC_P_FIXED ? w->by[slot] : NO_COUNTER;
}

static inline tcc_pvalue value_at(const walk *w, uint32_t slot, int64_t x)
{
    uint32_t by = counter_of(w, slot);
    if (by == slot + 1)
        return counter_at(w->p, w->r, x);
    return by ? w->tables[slot][x % w->r->period] : *tcc_p_slot(w->p, w->s, w->warp, slot);
}

static inline void fail(walk *w)
{
    w->failed = true;
}

/* Whether a number, or those of lanes, may be another with each counter, or a lap later. */
static inline bool varies(const walk *w, uint32_t slot)
{
    bool same = w->laps || !counter_of(w, slot);
    for (int64_t x = 0; x < w->r->period && same && counter_of(w, slot); x++) {
        tcc_pvalue a = value_at(w, slot, x), b = value_at(w, slot, x + w->step);
        same = (tcc_p_is_exact(&a) || a.kind == TCC_P_LANES) && tcc_p_is_same(&a, &b);
    }
    return !same;
}

/* rotate.c: looks at all warps, beginning in a state, which stays as it is. */
void tcc_p_walk(walk *w);
/* The one counter that an op's operands depend on. */
uint32_t tcc_p_find_dependence(walk *w, const tcc_pinst *in);
/* renames.c: what an op behind the beginning of the first loop makes of what it names; of mbarriers a lap later. */
void tcc_p_rename(walk *w, tcc_pinst *in);
void tcc_p_flip(walk *w, tcc_pinst *in);
/* Whether that is one to one, and MMAs and lanes access what has become of what they accessed. */
bool tcc_p_renames_one_to_one(walk *w);

#endif
