/* mma_sync: matrix instructions of a warp, D = A * B + C, of which each lane has its part of every matrix.
 *
 * PTX ISA, "Matrix Fragments for mma.m16n8k16" and its neighbours; ir/fragments.def has them. Products are
 * exact, which those of f64 are within an fma. Floats are added in the order of k in double precision, C last, and
 * rounded once, to nearest even: the PTX ISA leaves the order and the width of the sums inside of an instruction open.
 * Integers wrap.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>

#include "interp/machine.h"
#include "interp/mma_sync.h"

enum { MAX_M = 32, MAX_N = 32, MAX_K = 64, WORD_BITS = 32 };

/* Operands as matrices, a[m][k] and b[k][n]. */
typedef struct product {
    const tcc_mma_sync *mma;
    tcc_scalar types[3]; /* of A, B and the accumulators */
    bool columns[3];     /* in which they were loaded, where it is not known how lanes have them */
    tcc_cell a[MAX_M][MAX_K], b[MAX_K][MAX_N];
} product;

/* The positions of A, B or D in lanes. */
static tcc_held held(const product *p, unsigned matrix)
{
    const tcc_fragment_id of[] = {p->mma->of_a, p->mma->of_b, p->mma->of_d};
    return tcc_mma_sync_is_opaque(p->mma) ? tcc_held_opaquely(of[matrix], p->types[matrix], p->columns[matrix])
                                          : tcc_held_openly(of[matrix]);
}

/* So many bits of a lane's words. */
static uint64_t bits_of(const tcc_cell *words, unsigned from, unsigned n)
{
    unsigned first = from / WORD_BITS * TCC_WARP_LANES;
    uint64_t low = (uint32_t)words[first].i, high = n > WORD_BITS ? (uint32_t)words[first + TCC_WARP_LANES].i : 0;
    return (high << WORD_BITS | low) >> from % WORD_BITS & UINT64_MAX >> (64 - n);
}

static void read_operand(const tcc_thread *t, const tcc_inst *in, unsigned operand, product *p)
{
    const tcc_cell *words = tcc_cells(t, in->operands[operand]);
    const tcc_fragment *f = &tcc_fragments[operand ? p->mma->of_b : p->mma->of_a];
    tcc_scalar elem = p->types[operand];
    unsigned bits = tcc_scalar_bits(elem);
    tcc_held h = held(p, operand);
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        for (unsigned e = 0; e < tcc_fragment_elements(f, l); e++) {
            tcc_place at = tcc_held_place(&h, e, l);
            uint64_t element = bits_of(&words[l], e * bits, bits);
            *(operand ? &p->b[at.row][at.col] : &p->a[at.row][at.col]) = tcc_decode(element, elem);
        }
}

static tcc_cell sum(const product *p, tcc_place at, tcc_cell c)
{
    if (p->types[2] == TCC_i32) {
        for (int64_t k = 0; k < p->mma->k; k++)
            c.i += p->a[at.row][k].i * p->b[k][at.col].i;
        return tcc_decode((uint64_t)c.i, TCC_i32);
    }
    double s = 0;
    for (int64_t k = 0; k < p->mma->k; k++)
        s = fma(p->a[at.row][k].f, p->b[k][at.col].f, s);
    return (tcc_cell){.f = tcc_round_float(s + c.f, p->types[2])};
}

static tcc_outcome multiply(tcc_thread *t, const tcc_inst *in)
{
    static const char *const layouts[] = {"layout_a", "layout_b", ""};
    product p;
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    for (int i = 0; i < 3; i++)
        p.columns[i] = !strcmp(tcc_attr_str(&in->op->attrs, layouts[i], ""), "col");
    p.mma = tcc_mma_sync_of(in->op, p.types);
    read_operand(t, in, 0, &p);
    read_operand(t, in, 1, &p);
    const tcc_cell *c = tcc_cells(t, in->operands[2]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    const tcc_fragment *d = &tcc_fragments[p.mma->of_d];
    tcc_held h = held(&p, 2);
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        for (unsigned e = 0; e < tcc_fragment_elements(d, l); e++) {
            size_t i = e * TCC_WARP_LANES + l;
            r[i] = sum(&p, tcc_held_place(&h, e, l), c[i]);
        }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_mma(tcc_thread *t, const tcc_inst *in)
{
    return multiply(t, in);
}

tcc_outcome tcc_eval_nvvm_wmma_mma(tcc_thread *t, const tcc_inst *in)
{
    return multiply(t, in);
}
