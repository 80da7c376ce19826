/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/work.h"

#include <math.h>

#include "ir/fragment.h"

/* Fitted to 3700 times of 92 schedules and 75 shapes on an H200, at 1.64 GHz (docs/gpu-results.md). A warp's access
 * takes this many cycles including the address arithmetic, and a part of the time of copies is not hidden. A stage
 * arrives later than a first copy, since others are in flight. */
static const double ACCESS_CYCLES = 5, NOT_HIDDEN = 0.3, NOT_HIDDEN_IN_TURN = 0.29;
static const double HIDDEN = 0.52, HIDDEN_IN_TURN = 0.72, STAGE_LATENCIES = 1.6, OFF_LINE = 1.97;
enum { LANES = 32, ELEM_BYTES = 2 /* that the descriptor's rate of products is for */ };

/* 4 us at 1.64 GHz. */
const int64_t tcc_step_gap_cycles = 6200;

tcc_dim tcc_pitch_of(const tcc_type *tensor)
{
    return tensor->strides ? tensor->strides[tensor->rank - 2] : tensor->dims[tensor->rank - 1];
}

tcc_lines tcc_lines_of(const tcc_type *tensor)
{
    if (tensor->rank < 2 || tensor->row_bytes)
        return TCC_LINES_ALL;
    tcc_dim row = tcc_pitch_of(tensor);
    bool all = row.size * tcc_scalar_bits(tensor->elem) % (8 * TCC_LINE_BYTES) == 0;
    return row.name ? TCC_LINES_OPEN : all ? TCC_LINES_ALL : TCC_LINES_NOT_ALL;
}

static double access_cycles(const tcc_work *w)
{
    return w->accesses * ACCESS_CYCLES / LANES;
}

double tcc_work_cycles(const tcc_target *t, const tcc_work *w)
{
    return t->latency_cycles + w->copied_bytes / t->l2_bytes_per_cycle +
           w->stored_bytes / t->stored_bytes_per_cycle + access_cycles(w);
}

double tcc_handing_cycles(const tcc_target *t, double bytes)
{
    return t->latency_cycles + bytes / t->l2_bytes_per_cycle;
}

double tcc_moving_cycles(const tcc_target *t, const tcc_work *w)
{
    return w->moved_bytes / t->memory_bytes_per_cycle + access_cycles(w);
}

static double multiplying_cycles(const tcc_target *t, const tcc_work *w)
{
    double cycles = 2 * w->mma_bytes / ELEM_BYTES / t->flops_per_cycle;
    if (w->fmas > 0)
        cycles += w->fmas / t->fmas_per_cycle;
    if (w->wide_fmas > 0)
        cycles += w->wide_fmas / t->wide_fmas_per_cycle;
    return cycles;
}

void tcc_work_multiplies(tcc_work *w, const tcc_target *t, tcc_scalar elem, double products)
{
    bool by_lanes = tcc_target_instr_for(t, TCC_INSTR_COUNT, elem, elem, elem) == TCC_INSTR_FMA;
    if (elem == TCC_f64)
        w->wide_fmas += products;
    else if (!by_lanes)
        w->mma_bytes += products * tcc_scalar_bits(elem) / 8;
    else
        w->fmas += products;
}

double tcc_iteration_cycles(const tcc_target *t, const tcc_work *w, int64_t stages, bool in_turn)
{
    double mma = multiplying_cycles(t, w);
    double smem = w->smem_bytes / t->smem_bytes_per_cycle;
    double copy = (w->copied_bytes + (OFF_LINE - 1) * w->off_line_bytes) / t->l2_bytes_per_cycle;
    double arrive = w->copied_bytes > 0 ? STAGE_LATENCIES * t->latency_cycles / (double)stages : 0;
    double rest = (in_turn ? NOT_HIDDEN_IN_TURN : NOT_HIDDEN) * fmin(mma, copy);
    return fmax(fmax(mma, smem), fmax(copy, arrive)) + rest + access_cycles(w);
}

double tcc_panel_times(int64_t width)
{
    return (double)TCC_LINE_BYTES / (double)(width ? width : 16);
}

double tcc_rounds(double tiles_of_each)
{
    return (TCC_ROUND_FIXED * ceil(tiles_of_each) + (TCC_ROUND - TCC_ROUND_FIXED) * tiles_of_each) / TCC_ROUND;
}

double tcc_hidden_part(bool in_turn)
{
    return in_turn ? HIDDEN_IN_TURN : HIDDEN;
}
