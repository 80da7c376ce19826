/* mma_sync: matrix instructions of a warp, D = A * B + C, of which each lane has its part of every matrix.
 *
 * PTX ISA, "Matrix Fragments for mma.m16n8k16" and its neighbours; ir/fragments.def has them. Products are
 * exact, which those of f64 are within an fma. Floats are added in the order of k in double precision, C last, and
 * rounded once, to nearest even: the PTX ISA leaves the order and the width of the sums inside of an instruction open.
 * Integers wrap.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "interp/machine.h"
#include "interp/mma_sync.h"
#include "interp/tile.h"

enum { MAX_M = 32, MAX_N = 32, MAX_K = 64 };

/* Operands as matrices, a[m][k] and b[k][n], and what comes of them. */
typedef struct product {
    const tcc_mma_sync *mma;
    tcc_scalar types[3]; /* of A, B and the accumulators */
    bool columns[3];     /* in which they were loaded, where it is not known how lanes have them */
    tcc_cell a[MAX_M][MAX_K], b[MAX_K][MAX_N], products[MAX_M][MAX_N];
} product;

/* The positions of A, B or D in lanes. */
static tcc_held held(const product *p, unsigned matrix)
{
    const tcc_fragment_id of[] = {p->mma->of_a, p->mma->of_b, p->mma->of_d};
    return tcc_mma_sync_is_opaque(p->mma) ? tcc_held_opaquely(of[matrix], p->types[matrix], p->columns[matrix])
                                          : tcc_held_openly(of[matrix]);
}

/* Puts what each lane has of A or B where it is in the matrix. */
static void read_operand(const tcc_thread *t, const tcc_inst *in, unsigned operand, product *p)
{
    const tcc_fragment *f = &tcc_fragments[operand ? p->mma->of_b : p->mma->of_a];
    tcc_held h = held(p, operand);
    for (unsigned l = 0; l < TCC_WARP_LANES; l++) {
        uint8_t bytes[TCC_MAX_VEC_BYTES];
        tcc_cell elements[1 << TCC_FRAGMENT_BITS];
        unsigned n = tcc_fragment_elements(f, l);
        tcc_value_to_bytes(t, in->operands[operand], l, bytes);
        tcc_decode_bytes(bytes, n, p->types[operand], elements, 1);
        for (unsigned e = 0; e < n; e++) {
            tcc_place at = tcc_held_place(&h, e, l);
            *(operand ? &p->b[at.row][at.col] : &p->a[at.row][at.col]) = elements[e];
        }
    }
}

/* Row m of A * B. Products of what is narrower than f64 are exact, so that an fma rounds as a sum does. */
static void product_row(const product *p, unsigned m, tcc_cell *r)
{
    int64_t n = p->mma->n, k = p->mma->k;
    memset(r, 0, (size_t)n * sizeof *r);
    if (p->types[2] != TCC_f64)
        tcc_add_products(r, p->a[m], p->b[0], n, MAX_N, k, p->types[2] == TCC_i32);
    for (int64_t x = 0; x < k && p->types[2] == TCC_f64; x++)
        for (int64_t i = 0; i < n; i++)
            r[i].f = fma(p->a[m][x].f, p->b[x][i].f, r[i].f);
}

static tcc_cell sum(const product *p, tcc_cell terms, tcc_cell c)
{
    return p->types[2] == TCC_i32 ? tcc_decode((uint64_t)(c.i + terms.i), TCC_i32)
                                  : (tcc_cell){.f = tcc_round_float(terms.f + c.f, p->types[2])};
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
    for (unsigned m = 0; m < p.mma->m; m++)
        product_row(&p, m, p.products[m]);
    const tcc_cell *c = tcc_cells(t, in->operands[2]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    const tcc_fragment *d = &tcc_fragments[p.mma->of_d];
    tcc_held h = held(&p, 2);
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        for (unsigned e = 0, n = tcc_fragment_elements(d, l); e < n; e++) {
            size_t i = e * TCC_WARP_LANES + l;
            tcc_place at = tcc_held_place(&h, e, l);
            r[i] = sum(&p, p.products[at.row][at.col], c[i]);
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
