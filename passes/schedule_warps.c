/* schedule_warps: how a tile is shared by warps that multiply registers (mma.sync), and what that takes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"
#include "ir/machine.h"
#include "passes/families.h"

enum {
    M = TCC_MMA_SYNC_M,
    N = TCC_MMA_SYNC_N,
    TILE_MAX = 256,
    WORD_BITS = 32,
    ROUND_BYTES = 32,    /* of k, that a warp reads of each row at a time */
    OTHER_REGISTERS = 48 /* addresses, what copies are computed with */
};

bool tcc_warps_arrange(const tcc_schedule *s, int64_t warps[2])
{
    int64_t least = 0;
    if (s->warps < 1 || s->m < M || s->n < N || s->m > TILE_MAX || s->n > TILE_MAX)
        return false;
    for (int64_t rows = 1; rows <= s->warps; rows++) {
        int64_t cols = s->warps / rows;
        if (s->warps % rows || s->m % (M * rows) || s->n % (N * cols))
            continue;
        int64_t reads = s->m / rows + s->n / cols;
        if (least && reads >= least)
            continue;
        least = reads;
        warps[0] = rows;
        warps[1] = cols;
    }
    return least;
}

static bool is_valid(const tcc_schedule *s)
{
    int64_t warps[2];
    return s->k >= 16 && s->k <= TILE_MAX && s->k % 16 == 0 && tcc_warps_arrange(s, warps) && s->stages >= 1 &&
           s->stages <= 1024 && s->group >= 1;
}

static int64_t threads_of(const tcc_schedule *s)
{
    return s->warps * TCC_WARP_LANES;
}

static double rows_read(const tcc_schedule *s)
{
    int64_t warps[2];
    if (!tcc_warps_arrange(s, warps))
        return 0;
    return (double)((1 + s->more_a) * s->m * warps[1] + (1 + s->more_b) * s->n * warps[0]);
}

const tcc_schedule_rules tcc_schedule_of_warps = {is_valid, threads_of, rows_read, tcc_warps_arrange};

/* Operands are there twice: what is multiplied, and what is read meanwhile. */
int64_t tcc_warps_registers(const tcc_schedule *s)
{
    int64_t warps[2];
    if (!tcc_warps_arrange(s, warps))
        return INT64_MAX;
    int64_t rows = (1 + s->more_a) * s->m / warps[0] + (1 + s->more_b) * s->n / warps[1];
    int64_t operands = rows * ROUND_BYTES * 8 / WORD_BITS / TCC_WARP_LANES;
    return (1 + s->more_sums) * s->m * s->n / threads_of(s) + 2 * operands + OTHER_REGISTERS;
}
