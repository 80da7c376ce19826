/* step: what step.c and loops.c share.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_STEP_H
#define TCC_CHECKER_STEP_H

#include "checker/model.h"

static inline tcc_pvalue read(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, uint32_t slot)
{
    return slot == TCC_P_NO_SLOT ? (tcc_pvalue){0} : *tcc_p_slot(p, s, warp, slot);
}

static inline void write(const tcc_protocol *p, tcc_pstate *s, unsigned warp, uint32_t slot, tcc_pvalue v)
{
    if (slot != TCC_P_NO_SLOT)
        *tcc_p_slot(p, s, warp, slot) = v;
}

/* The warp goes into a region of an op. */
tcc_presult tcc_p_enter(tcc_protocol *p, tcc_pwarp *w, const tcc_pinst *in, tcc_pframe f, unsigned region,
                        tcc_lane_mask mask);
/* Loops: their op, their head, and from the end of an iteration to there. */
tcc_presult tcc_p_enter_loop(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in);
tcc_presult tcc_p_at_head(tcc_protocol *p, tcc_pstate *s, unsigned warp);
tcc_presult tcc_p_next_iteration(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *yield);

#endif
