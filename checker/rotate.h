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
    int flips;        /* the parity; -1: nobody waits */
} move;

struct tcc_protation {
    int64_t period; /* the counters are as before after so many rotations */
    TCC_VEC(uint32_t) counters;
    uint8_t *kinds;     /* of each warp's slots */
    uint32_t *granules; /* of shared memory: where they are after a rotation */
    TCC_VEC(move) moves;
    bool used;
    tcc_pstate state; /* the last that was rotated */
    unsigned n_barriers, n_atoms;
    uint32_t *barriers, *atoms; /* where they are after a rotation, when there are so many; */
    uint32_t *to;               /* mbarriers after as many as are wanted; while atoms are found, from where */
    bool *flips;                /* mbarriers' parities */
    bool symmetric;             /* atoms are one to one */
};
typedef struct tcc_protation rotation;

/* A counter with a remainder. */
static inline tcc_pvalue counter_at(const tcc_protocol *p, const rotation *r, int64_t x)
{
    int64_t v = x % r->period;
    while (v < p->threshold)
        v += r->period;
    return (tcc_pvalue){.kind = TCC_P_KNOWN, .v = v, .delta = r->period};
}

#endif
