/* symmetry: what symmetry.c and images.c share: CTAs that do the same.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_SYMMETRY_H
#define TCC_CHECKER_SYMMETRY_H

#include "checker/model.h"

/* What a slot of CTA 0 holds in another CTA. */
typedef enum kind {
    UNSET,
    SAME,
    SHIFTED, /* an address: as many windows further */
    OTHER
} kind;

struct tcc_psymmetry {
    bool rotates; /* CTAs are permuted by addition, else by exclusive or */
    uint8_t *kinds; /* of each slot that is not fixed; */
    uint8_t *fixed; /* of each fixed one */
    const tcc_pinst **by; /* of each slot that is not fixed: the op that gives it; NULL: a block's argument */
    uint32_t *image[TCC_P_CTAS]; /* by what takes CTA 0 to which CTA: where each clock of an entity goes */
    uint32_t *home;              /* the clock of CTA 0 that corresponds to each */
    uint32_t *told;              /* what an image knows, before it is permuted */
};
typedef struct tcc_psymmetry symmetry;

/* Where a CTA goes under the permutation that takes CTA 0 to CTA g. */
static inline unsigned act(const tcc_protocol *p, const symmetry *y, unsigned g, unsigned cta)
{
    return y->rotates ? (cta + g) % p->ctas : cta ^ g;
}

/* A value that is not needed is the same everywhere. */
static inline kind kind_of(const symmetry *y, uint32_t slot)
{
    return slot == TCC_P_NO_SLOT  ? SAME
           : slot < TCC_P_FIXED ? (kind)y->kinds[slot]
                                : (kind)y->fixed[slot - TCC_P_FIXED];
}

/* images.c: finds where clocks go. */
void tcc_p_find_images(const tcc_protocol *p, symmetry *y);

#endif
