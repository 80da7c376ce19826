/* schedule_warps: how a tile is shared by warps or waves, which multiply registers, and what that takes of warps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"
#include "ir/machine.h"
#include "passes/families.h"

enum { TILE_MAX = 256, WORD_BITS = 32 };

/* Of each way to multiply: of what a tile's k is a multiple; what a warp reads of each row of A and column of B at a
 * time, in all its lanes: bytes, of elements of at most 32 bits, or of one each; the shape of blocks where the target
 * has no such instruction, or has it in one shape. */
static const struct {
    int64_t step_k, round_bytes[2];
    tcc_mma_block block;
} ways[TCC_INSTR_COUNT] = {
    [TCC_INSTR_MMA] = {8, {32, 32}, {TCC_MMA_SYNC_M, TCC_MMA_SYNC_N}},
    [TCC_INSTR_FMA] = {8, {8 * 4, 4 * 4}, {TCC_MMA_SYNC_M, TCC_MMA_SYNC_N}}, /* 8 lanes have the same of A, 4 of B */
    [TCC_INSTR_WMMA] = {16, {1, 1}, {16, 16}},
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

static tcc_instr instr_of(const tcc_schedule *s)
{
    return s->wave ? TCC_INSTR_WMMA : s->instr;
}

/* The i-th shape of a block of D; false past the last. */
static bool block_at(const tcc_schedule *s, size_t i, tcc_mma_block *out)
{
    if (!s->wave && tcc_mma_sync_block(s->target, s->instr, i, out))
        return true;
    *out = ways[instr_of(s)].block;
    return !i && out->m;
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

/* In blocks of one shape. */
static bool arrange_blocks(const tcc_schedule *s, int64_t n_units, tcc_arrangement *u)
{
    const int64_t *bytes = ways[instr_of(s)].round_bytes;
    int64_t least = 0;
    for (int64_t rows = 1; rows <= n_units; rows++) {
        int64_t cols = n_units / rows;
        if (n_units % rows || s->m % (u->block.m * rows) || s->n % (u->block.n * cols) || (s->streams && cols > 1))
            continue;
        int64_t reads = s->m / rows * bytes[0] + s->n / cols * bytes[1];
        if (least && reads >= least)
            continue;
        least = reads;
        u->stand[0] = rows;
        u->stand[1] = cols;
    }
    return least;
}

bool tcc_arrange(const tcc_schedule *s, tcc_arrangement *out)
{
    int64_t n_units = s->wave ? s->waves : s->warps;
    bool can = n_units >= 1 && s->m >= 1 && s->n >= 1 && s->m <= TILE_MAX && s->n <= TILE_MAX;
    *out = (tcc_arrangement){0};
    for (size_t i = 0; can && block_at(s, i, &out->block); i++)
        if (arrange_blocks(s, n_units, out)) {
            out->blocks[0] = s->m / (out->block.m * out->stand[0]);
            out->blocks[1] = s->n / (out->block.n * out->stand[1]);
            return true;
        }
    return false;
}

static bool is_valid(const tcc_schedule *s)
{
    tcc_arrangement u;
    int64_t step_k = ways[s->instr].step_k;
    return step_k && s->k >= step_k && s->k <= TILE_MAX && s->k % step_k == 0 && tcc_arrange(s, &u) &&
           s->stages >= 1 && s->stages <= 1024 && s->group >= 1;
}

static int64_t threads_of(const tcc_schedule *s)
{
    return s->warps * TCC_WARP_LANES;
}

const tcc_schedule_rules tcc_schedule_of_warps = {is_valid, threads_of};

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

int64_t tcc_warps_registers(const tcc_schedule *s, unsigned elem_bits)
{
    tcc_arrangement u;
    if (!tcc_arrange(s, &u))
        return INT64_MAX;
    const int64_t bytes[] = {round_bytes_of(s, u.block, 0), round_bytes_of(s, u.block, 1)};
    int64_t operands =
        ((1 + s->more_a) * s->m / u.stand[0] * bytes[0] * copies_of(s, u.block, TCC_AS_A) +
         (1 + s->more_b) * s->n / u.stand[1] * bytes[1] * copies_of(s, u.block, TCC_AS_B)) * 8 /
        WORD_BITS / TCC_WARP_LANES;
    int64_t sums =
        (1 + s->more_sums) * s->m * s->n / threads_of(s) * elem_bits / WORD_BITS; /* two of 16 bits share one */
    int64_t words = elem_bits > WORD_BITS ? elem_bits / WORD_BITS : 1;
    int64_t in_words = s->instr == TCC_INSTR_FMA ? words : 1; /* of which ways[] counts one an element */
    return sums + operands * in_words;
}
