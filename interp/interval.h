/* interval: where the results of arith and math ops end up on a machine that rounds.
 *
 * A reference in doubles does not tell how far from it a correct kernel may be: where terms cancel,
 * or after an exponential, this depends on the data. So each number also has an interval that
 * contains the machine's number, however it rounds, contracts and orders sums.
 *
 * Floats: both ends are NaN where the machine's number must be, and they are -inf and inf where it
 * may be anything, NaN included. Integers: the ends are equal where the number is exact.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_INTERVAL_H
#define TCC_INTERP_INTERVAL_H

#include "ir/ir.h"
#include "ir/number.h"

/* low[i], high[i] of op(a[0][i * step[0]], …) for i < n, whose value is r[i]. A step of 0 repeats one
 * element. */
typedef struct tcc_interval_row {
    const tcc_op *op;
    const tcc_cell *a_low[3], *a_high[3];
    size_t step[3];
    const tcc_cell *r;
    tcc_cell *low, *high;
    size_t n;
    bool in_step; /* op rounds what may be rounded relative to another number: tcc_streaming_rounds */
} tcc_interval_row;

void tcc_intervals(const tcc_interval_row *row);

/* Whether a sum's terms are products of 8-bit floats. */
bool tcc_adds_8_bit_products(const tcc_op *sum);

/* The interval of a sum of `n_terms`, in the type `elem`, whose exact value is in [*low, *high] and
 * whose terms' magnitudes add up to `magnitudes`. of_8_bits: tcc_adds_8_bit_products. */
void tcc_interval_of_sum(tcc_scalar elem, bool of_8_bits, double n_terms, double magnitudes, double *low,
                         double *high);

#endif
