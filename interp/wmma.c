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
#include "interp/wmma.h"

#include <string.h>

#include "interp/machine.h"

enum { SIDE = 16, MAX_K = 32, WORD_BITS = 32 };

/* ---- places ---------------------------------------------------------------------------- */

/* With g = lane / 16, a lane holds of row or column lane % 16
 *     k = e % run + e / run * jump + g % 2 * odd + g / 2 * upper. */
typedef struct operand_layout {
    tcc_family family;
    unsigned bits, wave, elements, run, jump, odd, upper, lanes;
    int64_t k;
} operand_layout;

static const operand_layout operand_layouts[] = {
    /* family, bits, wave, elements, run, jump, odd, upper, lanes that are read, k */
    {TCC_FAMILY_GFX11, 16, 32, 16, 16, 0, 0, 0, 32, 16},
    {TCC_FAMILY_GFX11, 16, 64, 16, 16, 0, 0, 0, 64, 16},
    {TCC_FAMILY_GFX11, 8, 32, 16, 16, 0, 0, 0, 32, 16},
    {TCC_FAMILY_GFX11, 8, 64, 16, 16, 0, 0, 0, 64, 16},
    {TCC_FAMILY_GFX11, 4, 32, 16, 16, 0, 0, 0, 32, 16},
    {TCC_FAMILY_GFX11, 4, 64, 16, 16, 0, 0, 0, 64, 16},
    {TCC_FAMILY_GFX12, 16, 32, 8, 4, 8, 4, 0, 32, 16},
    {TCC_FAMILY_GFX12, 16, 64, 4, 4, 0, 4, 8, 64, 16},
    {TCC_FAMILY_GFX12, 8, 32, 8, 8, 0, 8, 0, 32, 16},
    {TCC_FAMILY_GFX12, 8, 64, 4, 4, 0, 8, 4, 64, 16},
    {TCC_FAMILY_GFX12, 4, 32, 8, 8, 0, 8, 0, 32, 16},
    {TCC_FAMILY_GFX12, 4, 64, 8, 8, 0, 8, 0, 32, 16},
    {TCC_FAMILY_GFX12, 4, 32, 16, 16, 0, 16, 0, 32, 32},
    {TCC_FAMILY_GFX12, 4, 64, 8, 8, 0, 16, 8, 64, 32},
};

/* Row e * step + g % 2 * odd + g / 2 * upper. */
static const struct {
    tcc_family family;
    unsigned wave, step, odd, upper;
} result_layouts[] = {
    {TCC_FAMILY_GFX11, 32, 2, 1, 0},
    {TCC_FAMILY_GFX11, 64, 4, 1, 2},
    {TCC_FAMILY_GFX12, 32, 1, 8, 0},
    {TCC_FAMILY_GFX12, 64, 1, 8, 4},
};

static const operand_layout *operand_layout_of(tcc_family family, unsigned bits, int64_t k,
                                               unsigned wave)
{
    const operand_layout *l = operand_layouts;
    while (l->family != family || l->bits != bits || l->k != k || l->wave != wave)
        l++;
    return l;
}

unsigned tcc_wmma_elements(tcc_family family, unsigned bits, int64_t k, unsigned wave,
                           unsigned lane)
{
    const operand_layout *l = operand_layout_of(family, bits, k, wave);
    return lane < l->lanes ? l->elements : 0;
}

static tcc_wmma_place place_in(const operand_layout *l, unsigned lane, unsigned e)
{
    unsigned g = lane / SIDE, k = e % l->run + e / l->run * l->jump;
    return (tcc_wmma_place){lane % SIDE, k + g % 2 * l->odd + g / 2 * l->upper};
}

tcc_wmma_place tcc_wmma_operand_place(tcc_family family, unsigned bits, int64_t k, unsigned wave,
                                      unsigned lane, unsigned e)
{
    return place_in(operand_layout_of(family, bits, k, wave), lane, e);
}

unsigned tcc_wmma_result_row(tcc_family family, unsigned wave, unsigned lane, unsigned e)
{
    size_t i = 0;
    while (result_layouts[i].family != family || result_layouts[i].wave != wave)
        i++;
    unsigned g = lane / SIDE;
    return e * result_layouts[i].step + g % 2 * result_layouts[i].odd +
           g / 2 * result_layouts[i].upper;
}

/* ---- an instruction -------------------------------------------------------------------- */

/* Operands as matrices: a[m][k], b[n][k]. */
typedef struct product {
    tcc_family family;
    unsigned wave;
    int64_t k;
    tcc_scalar types[2], acc; /* of A and B */
    bool high;                /* the accumulators are in the high halves */
    tcc_cell a[2][SIDE][MAX_K];
} product;

static tcc_scalar type_named(const tcc_op *op, const char *attr)
{
    const char *name = tcc_attr_str(&op->attrs, attr, "");
    tcc_scalar s = TCC_f32;
    tcc_scalar_find(name, strlen(name), &s); /* verified */
    return s;
}

static uint32_t word_of(const tcc_thread *t, uint32_t value, unsigned lane, unsigned word)
{
    return (uint32_t)(uint64_t)tcc_cells(t, value)[word * t->x->lanes + lane].i;
}

/* Every 16 lanes hold the same. */
static bool is_replicated(tcc_thread *t, const tcc_inst *in, unsigned operand)
{
    uint32_t v = in->operands[operand];
    unsigned words = (unsigned)t->x->program->values[v].count;
    for (unsigned l = SIDE; l < t->x->lanes; l++)
        for (unsigned w = 0; w < words; w++)
            if (word_of(t, v, l, w) != word_of(t, v, l % SIDE, w)) {
                TCC_WRONG(
                    t->x, in->op,
                    "%s: register %u of %c is 0x%x in lane %u and 0x%x in lane %u; RDNA3 wants "
                    "all of the matrix in every 16 lanes",
                    tcc_op_info_get(in->op->code)->name, w, 'A' + (int)operand,
                    word_of(t, v, l % SIDE, w), l % SIDE, word_of(t, v, l, w), l);
                return false;
            }
    return true;
}

/* What RDNA3 holds several times, and is the same, is read once. */
static void read_operand(const tcc_thread *t, const tcc_inst *in, unsigned operand, product *p)
{
    uint32_t v = in->operands[operand];
    tcc_scalar elem = p->types[operand];
    unsigned bits = tcc_scalar_bits(elem), per_word = WORD_BITS / bits;
    const operand_layout *layout = operand_layout_of(p->family, bits, p->k, p->wave);
    unsigned lanes = p->family == TCC_FAMILY_GFX11 ? SIDE : layout->lanes;
    for (unsigned l = 0; l < lanes; l++)
        for (unsigned e = 0; e < layout->elements; e++) {
            tcc_wmma_place at = place_in(layout, l, e);
            uint32_t word = word_of(t, v, l, e / per_word) >> e % per_word * bits;
            p->a[operand][at.major][at.k] = tcc_decode(word & (((uint32_t)1 << bits) - 1), elem);
        }
}

/* One number of D. */
static tcc_cell sum(const product *p, unsigned m, unsigned n, tcc_cell c)
{
    const tcc_cell *a = p->a[0][m], *b = p->a[1][n];
    if (p->acc == TCC_i32) {
        for (int64_t k = 0; k < p->k; k++)
            c.i += a[k].i * b[k].i;
        return tcc_decode((uint64_t)c.i, TCC_i32);
    }
    double s = 0;
    for (int64_t k = 0; k < p->k; k++)
        s += a[k].f * b[k].f;
    return (tcc_cell){.f = tcc_round_float(s + c.f, p->acc)};
}

/* Accumulators of 32 bits, a cell each. */
static void multiply_wide(const tcc_thread *t, const tcc_inst *in, const product *p)
{
    const tcc_cell *c = tcc_cells(t, in->operands[2]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    unsigned n = SIDE * SIDE / p->wave;
    for (unsigned e = 0; e < n; e++)
        for (unsigned l = 0; l < p->wave; l++)
            r[e * p->wave + l] =
                sum(p, tcc_wmma_result_row(p->family, p->wave, l, e), l % SIDE, c[e * p->wave + l]);
}

/* Of 16 bits: two a word on RDNA4, one on RDNA3, beside which the other half stays. */
static void multiply_halves(const tcc_thread *t, const tcc_inst *in, const product *p)
{
    tcc_cell *r = tcc_cells(t, in->results[0]);
    unsigned n = SIDE * SIDE / p->wave, per_word = p->family == TCC_FAMILY_GFX11 ? 1 : 2;
    for (unsigned l = 0; l < p->wave; l++)
        for (unsigned e = 0; e < n; e++) {
            unsigned w = e / per_word, shift = (e % per_word + p->high) * 16;
            uint32_t word = e % per_word ? (uint32_t)(uint64_t)r[w * p->wave + l].i
                                         : word_of(t, in->operands[2], l, w);
            tcc_cell c = tcc_decode(word >> shift & 0xffff, p->acc);
            c = sum(p, tcc_wmma_result_row(p->family, p->wave, l, e), l % SIDE, c);
            word = (word & ~((uint32_t)0xffff << shift)) | (uint32_t)tcc_encode(c, p->acc) << shift;
            r[w * p->wave + l] = tcc_decode(word, TCC_i32);
        }
}

tcc_outcome tcc_eval_amdgcn_wmma(tcc_thread *t, const tcc_inst *in)
{
    const tcc_attrs *attrs = &in->op->attrs;
    product p = {.family = tcc_target_of(t->x->run->f->ir)->family,
                 .wave = t->x->lanes,
                 .k = tcc_attr_int(attrs, "k", 16),
                 .types = {type_named(in->op, "a"), type_named(in->op, "b")},
                 .acc = type_named(in->op, "acc"),
                 .high = tcc_attr_int(attrs, "high", 0)};
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    for (unsigned o = 0; o < 2; o++) {
        if (p.family == TCC_FAMILY_GFX11 && !is_replicated(t, in, o))
            return TCC_FAILED;
        read_operand(t, in, o, &p);
    }
    if (tcc_scalar_bits(p.acc) == 16)
        multiply_halves(t, in, &p);
    else
        multiply_wide(t, in, &p);
    return TCC_NEXT;
}
