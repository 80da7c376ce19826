/* schedule_rdna: how a tile is shared by waves, and what it costs, on RDNA.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/schedule.h"

enum {
    BLOCK = 16,               /* rows and columns of a matrix instruction */
    READ_BYTES = 16,          /* that a lane reads from LDS at a time */
    TRANSPOSED_BYTES = 8,     /* of k, that a lane transposes at a time */
    OTHER_REGISTERS = 24,     /* addresses, offsets, epilogue temporaries */
    TRANSPOSED_REGISTERS = 4, /* more addresses, beside an offset and a word for each row of k */
};

bool tcc_rdna_arrange(const tcc_schedule *s, tcc_rdna_waves *out)
{
    *out = (tcc_rdna_waves){0};
    if (s->waves < 1 || s->m < BLOCK || s->n < BLOCK || s->m > 256 || s->n > 256)
        return false;
    for (int64_t wm = 1; wm <= s->waves; wm++) {
        int64_t wn = s->waves / wm;
        if (s->waves % wm || s->m % (BLOCK * wm) || s->n % (BLOCK * wn))
            continue;
        tcc_rdna_waves w = {wm, wn, s->m / BLOCK / wm, s->n / BLOCK / wn};
        if (!out->waves_m || w.blocks_m + w.blocks_n < out->blocks_m + out->blocks_n)
            *out = w;
    }
    return out->waves_m != 0;
}

/* RDNA3: every 16 lanes read all of k. RDNA4: each 16 lanes read a part of it. */
int64_t tcc_rdna_round(const tcc_rdna_product *p, int64_t wave)
{
    int64_t parts = p->target->family == TCC_FAMILY_GFX11 ? 1 : wave / BLOCK;
    int64_t read = parts * READ_BYTES * 8 / p->bits;
    return read > p->wmma->k ? read : p->wmma->k;
}

int64_t tcc_rdna_registers(const tcc_schedule *s, const tcc_rdna_product *p)
{
    tcc_rdna_waves w;
    if (!tcc_rdna_arrange(s, &w))
        return INT64_MAX;
    int64_t words = tcc_wmma_result_words(p->target, p->wmma->acc, s->wave);
    bool halves = p->target->family == TCC_FAMILY_GFX11 && tcc_scalar_bits(p->wmma->acc) == 16;
    int64_t blocks_n = halves ? (w.blocks_n + 1) / 2 : w.blocks_n;
    int64_t steps = tcc_rdna_round(p, s->wave) / p->wmma->k;
    int64_t operand = tcc_wmma_operand_words(p->target, p->wmma->k, p->bits, s->wave) * steps;
    int64_t staged = (s->m + s->n) * s->k * p->bits / 32 / tcc_schedule_threads(s);
    int64_t transposing = TRANSPOSED_REGISTERS + 2 * (TRANSPOSED_BYTES * 8 / p->bits);
    return w.blocks_m * blocks_n * words + (w.blocks_m + w.blocks_n) * operand + staged +
           OTHER_REGISTERS + (p->transposed[0] + p->transposed[1]) * transposing;
}

int64_t tcc_rdna_smem_bytes(const tcc_schedule *s, const tcc_rdna_product *p)
{
    int64_t row = s->k * p->bits / 8, panels = row / READ_BYTES;
    return s->stages * ((s->m + s->n) * row + 2 * panels * TCC_RDNA_PAD_BYTES);
}
