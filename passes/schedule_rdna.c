/* schedule_rdna: how a tile is shared by waves, and what it costs, on RDNA.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"
#include "passes/families.h"

enum {
    BLOCK = 16,           /* rows and columns of a matrix instruction */
    READ_BYTES = 16,      /* that a lane reads from LDS at a time */
    TRANSPOSED_BYTES = 8, /* of k, that a lane transposes at a time */
    WORD_BITS = 32,
    SIMDS = 4,
    OTHER_REGISTERS = 20,    /* the lane's place, what is on its way to LDS, gaps between tuples */
    TRANSPOSED_REGISTERS = 4 /* more that are on their way */
};

static bool is_valid(const tcc_schedule *s)
{
    tcc_arrangement w;
    return (s->wave == 32 || s->wave == 64) && s->k >= BLOCK && s->k <= 256 && s->k % BLOCK == 0 &&
           tcc_arrange(s, &w) && s->stages >= 1 && s->stages <= 2 && s->group >= 1;
}

static int64_t threads_of(const tcc_schedule *s)
{
    return s->waves * s->wave;
}

const tcc_schedule_rules tcc_schedule_of_waves = {is_valid, threads_of};

/* Each group of 16 lanes reads a part of k, or all of it where all hold the same. */
int64_t tcc_rdna_round(const tcc_target *t, const tcc_wmma *wmma, unsigned bits, int64_t wave)
{
    int64_t read = tcc_wmma_k_groups(t, wmma->k, bits, wave) * READ_BYTES * 8 / bits;
    return read > wmma->k ? read : wmma->k;
}

int64_t tcc_rdna_depth(const tcc_rdna_product *p, int64_t wave)
{
    int64_t depth = 0;
    for (size_t i = 0; i < p->n_operands; i++) {
        int64_t round = tcc_rdna_round(p->target, p->operands[i].wmma, p->operands[i].bits, wave);
        depth = round > depth ? round : depth;
    }
    return depth;
}

/* As many neighbours as a lane's share of the tile has, 4 to 16 bytes. */
static int64_t choose_cols(int64_t threads, int64_t rows, int64_t units, unsigned bits)
{
    int64_t share = rows * units / threads;
    int64_t cols = WORD_BITS / bits, most = READ_BYTES * 8 / bits;
    while (cols < most && cols * 2 <= share && rows % (cols * 2) == 0)
        cols *= 2;
    return cols;
}

tcc_rdna_unit tcc_rdna_unit_of(int64_t threads, int64_t rows, int64_t depth, unsigned bits,
                               bool transposed)
{
    tcc_rdna_unit u = {
        .depth = READ_BYTES * 8 / bits, .cols = 1, .loads = 1, .words = READ_BYTES * 8 / WORD_BITS};
    if (transposed) {
        u.loads = u.depth = TRANSPOSED_BYTES * 8 / bits;
        u.cols = choose_cols(threads, rows, depth / u.depth, bits);
        u.words = u.cols * bits / WORD_BITS;
    }
    u.n = rows * depth / (u.depth * u.cols);
    u.n_lane = (u.n + threads - 1) / threads;
    return u;
}

/* Registers of an operand's copies: what was loaded, an offset for each load, an address in LDS for
 * each unit that is not a constant from the one before. */
static int64_t copy_registers(const tcc_schedule *s, int64_t rows, unsigned bits, bool transposed)
{
    int64_t threads = tcc_schedule_threads(s);
    tcc_rdna_unit u = tcc_rdna_unit_of(threads, rows, s->k, bits, transposed);
    int64_t fast = transposed ? rows / u.cols : s->k / u.depth;
    bool own = threads % fast || u.n_lane == 1;
    int64_t addresses = own ? u.n_lane : 1 + (u.n % threads != 0);
    int64_t stores = transposed ? u.cols * TRANSPOSED_BYTES / READ_BYTES : 1; /* each to a place */
    return u.n_lane * u.loads * (u.words + 1) + addresses * stores;
}

int64_t tcc_rdna_sharing_waves(const tcc_schedule *s, int64_t beside)
{
    return s->k % (BLOCK * beside) ? s->waves / beside : s->waves;
}

/* Registers of an operand that is computed, at the least: of an iteration ahead what it is computed of, now its
 * elements, in 32 bits and in its own. */
static int64_t computed_registers(const tcc_schedule *s, unsigned loaded_bits, unsigned bits, int64_t rows,
                                  int64_t beside)
{
    int64_t n = rows * s->k / (tcc_rdna_sharing_waves(s, beside) * s->wave);
    return n * (loaded_bits + WORD_BITS + bits) / WORD_BITS;
}

int64_t tcc_rdna_registers(const tcc_schedule *s, const tcc_rdna_product *p)
{
    tcc_arrangement w;
    if (!tcc_arrange(s, &w))
        return INT64_MAX;
    int64_t need = OTHER_REGISTERS;
    for (size_t i = 0; i < p->n_sums; i++) {
        bool pairs = tcc_wmma_is_in_halves(p->sums[i]) && w.blocks[1] % 2 == 0;
        need += w.blocks[0] * (pairs ? w.blocks[1] / 2 : w.blocks[1]) * tcc_wmma_result_words(p->sums[i], s->wave);
    }
    const int64_t rows[] = {s->m, s->n};
    int64_t depth = p->loaded_bits ? s->k : tcc_rdna_depth(p, s->wave); /* all k of a tile at once, or a round */
    for (size_t i = 0; i < p->n_operands; i++) {
        const tcc_rdna_operand *o = &p->operands[i];
        int64_t words = tcc_wmma_operand_words(p->target, o->wmma->k, o->bits, s->wave), x = o->axis;
        need += w.blocks[x] * words * (depth / o->wmma->k);
        need += o->computed ? computed_registers(s, p->loaded_bits, o->bits, rows[x], w.stand[!x])
                            : copy_registers(s, rows[x], o->bits, o->transposed);
        if (o->transposed) /* an address reaches one block of it */
            need += w.blocks[x] + TRANSPOSED_REGISTERS;
    }
    return need;
}

int64_t tcc_rdna_register_limit(const tcc_schedule *s, const tcc_target *t)
{
    int64_t of_simd = t->registers / SIMDS / s->wave, piece = of_simd / 64;
    int64_t waves = (s->waves + SIMDS - 1) / SIMDS; /* of the workgroup, on a SIMD */
    int64_t share = of_simd / waves / piece * piece;
    return share < t->thread_registers ? share : t->thread_registers;
}
