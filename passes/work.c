/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/work.h"

#include <math.h>

/* Fitted to what docs/gpu-results.md has of an H200, at 1.64 GHz. A warp's access takes so many cycles with the
 * address arithmetic around it, and of the time that copies take a part is not hidden. */
static const double ACCESS_CYCLES = 5, NOT_HIDDEN = 0.25;
enum { LANES = 32, ELEM_BYTES = 2 /* that the descriptor's rate of products is for */ };

/* 1.5 us at 1.64 GHz. */
const int64_t tcc_step_gap_cycles = 2460;

static double access_cycles(const tcc_work *w)
{
    return w->accesses * ACCESS_CYCLES / LANES;
}

double tcc_work_cycles(const tcc_target *t, const tcc_work *w)
{
    return t->latency_cycles + w->copied_bytes / t->l2_bytes_per_cycle +
           w->stored_bytes / t->stored_bytes_per_cycle + access_cycles(w);
}

double tcc_moving_cycles(const tcc_target *t, const tcc_work *w)
{
    return w->moved_bytes / t->memory_bytes_per_cycle + access_cycles(w);
}

double tcc_iteration_cycles(const tcc_target *t, const tcc_work *w, int64_t stages)
{
    double mma = 2 * w->mma_bytes / ELEM_BYTES / t->flops_per_cycle;
    double smem = w->smem_bytes / t->smem_bytes_per_cycle;
    double copy = w->copied_bytes / t->l2_bytes_per_cycle;
    double arrive = w->copied_bytes > 0 ? t->latency_cycles / (double)stages : 0;
    return fmax(fmax(mma, smem), fmax(copy, arrive)) + NOT_HIDDEN * copy + access_cycles(w);
}
