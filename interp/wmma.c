/* wmma: RDNA's matrix instructions, D = A * B + C of 16 x 16 numbers, which a wave computes at
 * once.
 *
 * RDNA3 ISA, 7.9 "Wave Matrix Multiply Accumulate (WMMA)": every 16 lanes hold all of A, lane l
 * row l % 16, and all of B, lane l column l % 16. What the other lanes hold must be the same, which
 * is checked. 16-bit accumulators are one a register, in the half that OPSEL says; the other half
 * of the result is C's.
 *
 * RDNA4 ISA, 7.12 "Wave Matrix Multiply Accumulate (WMMA)": the lanes hold A and B once. 16-bit
 * accumulators are packed.
 *
 * Numbers: products are exact; of floats, they are added in the order of k in double precision, C
 * last, and the result is rounded once to its type, to nearest even, without flushing denormal
 * numbers. The guides leave the order and the width of the sums inside of an instruction open.
 * Integers wrap (CLAMP is 0).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"
#include "interp/tile.h"
#include "ir/fragment.h"

enum { SIDE = 16, MAX_K = 32, WORD_BITS = 32 };

/* ---- an instruction -------------------------------------------------------------------- */

/* Operands as matrices, a[m][k] and b[k][n], and what comes of them. */
typedef struct mma {
    const tcc_target *target;
    unsigned wave;
    int64_t k;
    tcc_scalar types[2], acc; /* of A and B */
    unsigned acc_bits;        /* of a register, for an accumulator */
    bool high;                /* the accumulators are in the high halves */
    tcc_cell a[SIDE][MAX_K], b[MAX_K][SIDE], products[SIDE][SIDE];
    tcc_places of_d;
} mma;

static tcc_scalar type_named(const tcc_op *op, const char *attr)
{
    tcc_scalar s = TCC_f32;
    tcc_attr_scalar(&op->attrs, attr, &s); /* verified */
    return s;
}

static uint32_t word_of(const tcc_thread *t, uint32_t value, unsigned lane, unsigned word)
{
    return (uint32_t)(uint64_t)tcc_cells(t, value)[word * t->x->lanes + lane].i;
}

/* What lanes hold several times is the same in all of them. */
static bool is_replicated(tcc_thread *t, const tcc_inst *in, unsigned operand,
                          const tcc_fragment *f)
{
    uint32_t v = in->operands[operand];
    unsigned words = (unsigned)t->x->program->values[v].count;
    unsigned own = t->x->lanes / tcc_fragment_copies(f); /* the others hold copies */
    for (unsigned l = own; l < t->x->lanes; l++)
        for (unsigned w = 0; w < words; w++)
            if (word_of(t, v, l, w) != word_of(t, v, l % own, w)) {
                TCC_WRONG(
                    t->x, in->op,
                    "%s: register %u of %c is 0x%x in lane %u and 0x%x in lane %u; RDNA3 requires the whole matrix "
                    "in every 16 lanes",
                    tcc_op_info_get(in->op->code)->name, w, 'A' + (int)operand,
                    word_of(t, v, l % own, w), l % own, word_of(t, v, l, w), l);
                return false;
            }
    return true;
}

static bool read_operand(tcc_thread *t, const tcc_inst *in, unsigned operand, mma *p)
{
    uint32_t v = in->operands[operand];
    tcc_scalar elem = p->types[operand];
    const tcc_fragment *f = tcc_wmma_operand(p->target, tcc_scalar_bits(elem), p->k, p->wave);
    if (!is_replicated(t, in, operand, f))
        return false;
    tcc_places places = tcc_fragment_places(f);
    for (unsigned l = 0; l < p->wave / tcc_fragment_copies(f); l++) {
        uint8_t bytes[TCC_MAX_VEC_BYTES];
        tcc_cell elements[1 << TCC_FRAGMENT_BITS];
        unsigned n = tcc_fragment_elements(f, l);
        tcc_value_to_bytes(t, v, l, bytes);
        tcc_decode_bytes(bytes, n, elem, elements, 1);
        for (unsigned e = 0; e < n; e++) {
            tcc_place at = tcc_place_in(&places, e, l);
            *(operand ? &p->b[at.col][at.row] : &p->a[at.row][at.col]) = elements[e];
        }
    }
    return true;
}

/* One number of D, a lane's element e. */
static tcc_cell sum(const mma *p, unsigned lane, unsigned e, tcc_cell c)
{
    tcc_place at = tcc_place_in(&p->of_d, e, lane);
    tcc_cell terms = p->products[at.row][at.col];
    return p->acc == TCC_i32 ? tcc_decode((uint64_t)(c.i + terms.i), TCC_i32)
                             : (tcc_cell){.f = tcc_round_float(terms.f + c.f, p->acc)};
}

/* Accumulators of 32 bits, a cell each. */
static void multiply_wide(const tcc_thread *t, const tcc_inst *in, const mma *p)
{
    const tcc_cell *c = tcc_cells(t, in->operands[2]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    unsigned n = SIDE * SIDE / p->wave;
    for (unsigned e = 0; e < n; e++)
        for (unsigned l = 0; l < p->wave; l++)
            r[e * p->wave + l] = sum(p, l, e, c[e * p->wave + l]);
}

/* For 16 bits: two per word, or one, where the other half is unchanged. */
static void multiply_halves(const tcc_thread *t, const tcc_inst *in, const mma *p)
{
    tcc_cell *r = tcc_cells(t, in->results[0]);
    unsigned n = SIDE * SIDE / p->wave, per_word = WORD_BITS / p->acc_bits;
    for (unsigned l = 0; l < p->wave; l++)
        for (unsigned e = 0; e < n; e++) {
            unsigned w = e / per_word, shift = (e % per_word + p->high) * 16;
            uint32_t word = e % per_word ? (uint32_t)(uint64_t)r[w * p->wave + l].i
                                         : word_of(t, in->operands[2], l, w);
            tcc_cell c = tcc_decode(word >> shift & 0xffff, p->acc);
            c = sum(p, l, e, c);
            word = (word & ~((uint32_t)0xffff << shift)) | (uint32_t)tcc_encode(c, p->acc) << shift;
            r[w * p->wave + l] = tcc_decode(word, TCC_i32);
        }
}

tcc_outcome tcc_eval_amdgcn_wmma(tcc_thread *t, const tcc_inst *in)
{
    const tcc_attrs *attrs = &in->op->attrs;
    mma p = {.target = tcc_target_of(t->x->run->f->ir),
                 .wave = t->x->lanes,
                 .k = tcc_attr_int(attrs, "k", 16),
                 .types = {type_named(in->op, "a"), type_named(in->op, "b")},
                 .acc = type_named(in->op, "acc"),
                 .high = tcc_attr_int(attrs, "high", 0)};
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    p.acc_bits = tcc_wmma_find(p.target, p.types[0], p.types[1], p.acc, p.k)->acc_bits; /* verified */
    for (unsigned o = 0; o < 2; o++)
        if (!read_operand(t, in, o, &p))
            return TCC_FAILED;
    for (unsigned m = 0; m < SIDE; m++)
        tcc_add_products(p.products[m], p.a[m], p.b[0], SIDE, SIDE, p.k, p.acc == TCC_i32);
    p.of_d = tcc_fragment_places(tcc_wmma_result(p.target, p.wave));
    if (tcc_scalar_bits(p.acc) == 16)
        multiply_halves(t, in, &p);
    else
        multiply_wide(t, in, &p);
    return TCC_NEXT;
}
