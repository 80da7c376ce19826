/* contraction: a row of sums of products, as strided loops that suit the layout of the operands.
 *
 * Of the three loops that a matrix product can be, a row of the result leaves two:
 * - the operand that varies along the row is contiguous along k: a dot product each;
 * - it is contiguous along the row: add multiples of its rows.
 * The other operand, one vector along k, is copied together first.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>

#include "interp/field.h"

int64_t tcc_access_stride(const tcc_access *a, const tcc_index *index)
{
    int64_t stride = 0; /* an index may run along two dimensions */
    for (size_t i = 0; i < a->n; i++)
        stride += a->terms[i].index == index ? a->terms[i].stride : 0;
    return stride;
}

int64_t tcc_access_base(const tcc_access *a, const tcc_index *const *free, size_t n_free)
{
    int64_t base = 0;
    for (size_t i = 0; i < a->n; i++) {
        bool is_free = false;
        for (size_t f = 0; f < n_free; f++)
            is_free |= a->terms[i].index == free[f];
        base += is_free ? 0 : a->terms[i].index->at * a->terms[i].stride;
    }
    return base;
}

/* Every function has two versions: `magnitudes`, a constant, makes it add the magnitudes of the
 * products. */
#define TWOFOLD static inline __attribute__((always_inline))

TWOFOLD double times(double a, double b, bool magnitudes)
{
    return magnitudes ? fabs(a * b) : a * b;
}

enum { LANES = 8, ROWS = 4 }; /* independent sums, so that additions need not wait for another */

TWOFOLD double dot(const double *a, const double *b, int64_t n, bool magnitudes)
{
    double sums[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            sums[l] += times(a[i + l], b[i + l], magnitudes);
    for (; i < n; i++)
        sums[0] += times(a[i], b[i], magnitudes);
    for (int l = 1; l < LANES; l++)
        sums[0] += sums[l];
    return sums[0];
}

TWOFOLD double strided_dot(const double *a, int64_t a_step, const double *b, int64_t b_step,
                           int64_t n, bool magnitudes)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += times(a[i * a_step], b[i * b_step], magnitudes);
    return sum;
}

/* r[x] += sum over i of a[i] * b[i * b_step + x], ROWS rows of b at a time. */
TWOFOLD void add_rows(double *restrict r, int64_t n, const double *a, const double *b,
                      int64_t b_step, int64_t n_rows, bool magnitudes)
{
    int64_t i = 0;
    for (; i + ROWS <= n_rows; i += ROWS) {
        const double *b0 = b + i * b_step, *b1 = b0 + b_step, *b2 = b1 + b_step, *b3 = b2 + b_step;
        double a0 = a[i], a1 = a[i + 1], a2 = a[i + 2], a3 = a[i + 3];
        for (int64_t x = 0; x < n; x++)
            r[x] += (times(a0, b0[x], magnitudes) + times(a1, b1[x], magnitudes)) +
                    (times(a2, b2[x], magnitudes) + times(a3, b3[x], magnitudes));
    }
    for (; i < n_rows; i++)
        for (int64_t x = 0; x < n; x++)
            r[x] += times(a[i], b[i * b_step + x], magnitudes);
}

TWOFOLD void product_row(const tcc_product *p, const tcc_index *row, double *r, double *buffer,
                         bool magnitudes)
{
    const tcc_index *free[] = {p->k, row};
    const tcc_access *a = p->a, *b = p->b;
    if (row && tcc_access_stride(a, row) && !tcc_access_stride(b, row)) {
        a = p->b;
        b = p->a;
    }
    int64_t k = p->k->extent, n = row ? row->extent : 1;
    if (k == 0 || n == 0)
        return;
    const double *at_a = a->data + tcc_access_base(a, free, row ? 2 : 1);
    const double *at_b = b->data + tcc_access_base(b, free, row ? 2 : 1);
    int64_t a_k = tcc_access_stride(a, p->k), b_k = tcc_access_stride(b, p->k);
    int64_t a_row = row ? tcc_access_stride(a, row) : 0;
    int64_t b_row = row ? tcc_access_stride(b, row) : 0;
    if (a_row) { /* both vary: a batch index comes last */
        for (int64_t x = 0; x < n; x++)
            r[x] += strided_dot(at_a + x * a_row, a_k, at_b + x * b_row, b_k, k,
                                magnitudes);
        return;
    }
    if (a_k != 1) {
        for (int64_t i = 0; i < k; i++)
            buffer[i] = at_a[i * a_k];
        at_a = buffer;
    }
    if (b_row == 1 && b_k != 1)
        add_rows(r, n, at_a, at_b, b_k, k, magnitudes);
    else
        for (int64_t x = 0; x < n; x++)
            r[x] += b_k == 1 ? dot(at_a, at_b + x * b_row, k, magnitudes)
                             : strided_dot(at_a, 1, at_b + x * b_row, b_k, k, magnitudes);
}

void tcc_product_row(const tcc_product *p, const tcc_index *row, double *r, double *buffer,
                     bool magnitudes)
{
    if (magnitudes)
        product_row(p, row, r, buffer, true);
    else
        product_row(p, row, r, buffer, false);
}
