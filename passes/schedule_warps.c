/* schedule_warps: how a tile is shared by warps that multiply registers (mma.sync), and what that takes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"
#include "ir/machine.h"
#include "passes/families.h"

enum { TILE_MAX = 256, WORD_BITS = 32, OTHER_REGISTERS = 48 /* addresses, what copies are computed with */ };

/* Of each way to multiply: of what a tile's k is a multiple; what a warp reads of each row of A and column of B at a
 * time, in all its lanes: bytes, of elements of at most 32 bits. */
static const struct {
    int64_t step_k, round_bytes[2];
} ways[TCC_INSTR_COUNT] = {
    [TCC_INSTR_MMA] = {8, {32, 32}},
    [TCC_INSTR_FMA] = {8, {8 * 4, 4 * 4}}, /* one k; 8 lanes have the same of A, 4 of B */
};

tcc_fragment_id tcc_warps_sum(const tcc_schedule *s)
{
    enum { WORD = 32 };
    tcc_mma_block block;
    if (!tcc_mma_sync_block(s->target, s->instr, 0, &block))
        return TCC_FRAGMENT_COUNT;
    return tcc_mma_sync_held(s->target, s->instr, block, TCC_AS_SUM, WORD);
}

/* Whether warps multiply fragments of which nobody knows who holds what. */
bool tcc_warps_hold_opaque(const tcc_schedule *s)
{
    tcc_fragment_id sum = tcc_warps_sum(s);
    return sum != TCC_FRAGMENT_COUNT && tcc_fragments[sum].opaque;
}

/* The i-th shape of a block of D; where the target has no such instruction, that of others; false past the last. */
static bool block_at(const tcc_schedule *s, size_t i, tcc_mma_block *out)
{
    if (tcc_mma_sync_block(s->target, s->instr, i, out))
        return true;
    *out = (tcc_mma_block){TCC_MMA_SYNC_M, TCC_MMA_SYNC_N};
    return !i && ways[s->instr].step_k;
}

int64_t tcc_warps_step(const tcc_schedule *s, int d)
{
    int64_t step = 0;
    tcc_mma_block block;
    for (size_t i = 0; block_at(s, i, &block); i++) {
        int64_t extent = d ? block.n : block.m;
        step = !step || extent < step ? extent : step;
    }
    return step;
}

static bool arrange_blocks(const tcc_schedule *s, tcc_mma_block block, int64_t warps[2])
{
    int64_t least = 0;
    const int64_t *bytes = ways[s->instr].round_bytes;
    for (int64_t rows = 1; rows <= s->warps; rows++) {
        int64_t cols = s->warps / rows;
        if (s->warps % rows || s->m % (block.m * rows) || s->n % (block.n * cols))
            continue;
        int64_t reads = s->m / rows * bytes[0] + s->n / cols * bytes[1];
        if (least && reads >= least)
            continue;
        least = reads;
        warps[0] = rows;
        warps[1] = cols;
    }
    return least;
}

/* The arrangement of the warps, and the shape of their blocks. */
static bool arrange(const tcc_schedule *s, tcc_mma_block *block, int64_t warps[2])
{
    bool can = ways[s->instr].step_k && s->warps >= 1 && s->m >= 1 && s->n >= 1 && s->m <= TILE_MAX && s->n <= TILE_MAX;
    for (size_t i = 0; can && block_at(s, i, block); i++)
        if (arrange_blocks(s, *block, warps))
            return true;
    return false;
}

bool tcc_warps_arrange(const tcc_schedule *s, int64_t warps[2])
{
    tcc_mma_block block;
    return arrange(s, &block, warps);
}

bool tcc_warps_block(const tcc_schedule *s, tcc_mma_block *out)
{
    int64_t warps[2];
    return arrange(s, out, warps);
}

static bool is_valid(const tcc_schedule *s)
{
    int64_t warps[2], step_k = ways[s->instr].step_k;
    return step_k && s->k >= step_k && s->k <= TILE_MAX && s->k % step_k == 0 && tcc_warps_arrange(s, warps) &&
           s->stages >= 1 && s->stages <= 1024 && s->group >= 1;
}

static int64_t threads_of(const tcc_schedule *s)
{
    return s->warps * TCC_WARP_LANES;
}

const tcc_schedule_rules tcc_schedule_of_warps = {is_valid, threads_of, tcc_warps_arrange};

/* How often the lanes of a warp have each element of what a matrix instruction multiplies, as A or as B. */
static int64_t copies_of(const tcc_schedule *s, tcc_mma_block block, tcc_hold_as as)
{
    enum { HALF = 16 };
    tcc_fragment_id id = tcc_mma_sync_held(s->target, s->instr, block, as, HALF);
    return s->instr == TCC_INSTR_MMA && id != TCC_FRAGMENT_COUNT ? tcc_fragment_copies(&tcc_fragments[id]) : 1;
}

/* Bytes of each row of A and column of B that a warp reads at a time. */
static int64_t round_bytes_of(const tcc_schedule *s, tcc_mma_block block, int d)
{
    enum { HALF = 16 };
    tcc_fragment_id id = tcc_mma_sync_held(s->target, s->instr, block, TCC_AS_A, HALF);
    bool by_matrices = s->instr == TCC_INSTR_MMA && id != TCC_FRAGMENT_COUNT;
    return by_matrices ? tcc_fragments[id].cols * HALF / 8 : ways[s->instr].round_bytes[d];
}

/* Operands are there twice: what is multiplied, and what is read meanwhile; not those of wmma
 * (pipeline_registers.c). */
int64_t tcc_warps_registers(const tcc_schedule *s, unsigned elem_bits)
{
    int64_t warps[2];
    tcc_mma_block block;
    if (!arrange(s, &block, warps))
        return INT64_MAX;
    const int64_t bytes[] = {round_bytes_of(s, block, 0), round_bytes_of(s, block, 1)};
    int64_t operands =
        ((1 + s->more_a) * s->m / warps[0] * bytes[0] * copies_of(s, block, TCC_AS_A) +
         (1 + s->more_b) * s->n / warps[1] * bytes[1] * copies_of(s, block, TCC_AS_B)) * 8 /
        WORD_BITS / TCC_WARP_LANES;
    int64_t sums =
        (1 + s->more_sums) * s->m * s->n / threads_of(s) * elem_bits / WORD_BITS; /* two of 16 bits share one */
    int64_t words = elem_bits > WORD_BITS ? elem_bits / WORD_BITS : 1;
    int64_t times = tcc_warps_hold_opaque(s) ? 1 : 2;
    int64_t in_words = s->instr == TCC_INSTR_FMA ? words : 1; /* of which ways[] counts one an element */
    return sums + times * operands * in_words + OTHER_REGISTERS;
}
