/* number: the float formats of the IR as doubles and as bits.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_NUMBER_H
#define TCC_IR_NUMBER_H

#include <string.h>

#include "ir/type.h"

/* One element: f of a float type, i of an integer (0 or 1 of an i1). */
typedef union tcc_cell {
    double f;
    int64_t i;
} tcc_cell;

/* v rounded to a float type, to nearest even or, of tf32, away from zero where two are nearest. Too large a value
 * becomes infinity, or NaN where the type has no infinity. */
double tcc_round_narrow(double v, tcc_scalar elem); /* of other types than f32 and f64 */
static inline double tcc_round_float(double v, tcc_scalar elem)
{
    return elem == TCC_f32 ? (double)(float)v : elem == TCC_f64 ? v : tcc_round_narrow(v, elem);
}

/* v truncated and saturated; 0 for NaN. */
int64_t tcc_truncate(double v);

/* Poison, the NaN that stands for unwritten memory, and whether a number comes from it: arithmetic
 * and types of 16 bits or more propagate it. Every type keeps the highest bits of its mantissa, in
 * numbers and in memory. */
#define TCC_POISON_BITS UINT64_C(0x7ffdead000000000)
double tcc_poison(void);
static inline bool tcc_is_poison(double v)
{
    enum { KEPT_BY_BF16 = 7 };
    const uint64_t kept = UINT64_C(0x7ff) << 52 | ((UINT64_C(1) << KEPT_BY_BF16) - 1)
                                                      << (52 - KEPT_BY_BF16);
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (bits & kept) == (TCC_POISON_BITS & kept);
}

/* The bits of a number that the type can hold, and back. */
uint64_t tcc_encode(tcc_cell v, tcc_scalar elem);
tcc_cell tcc_decode(uint64_t bits, tcc_scalar elem);
/* n elements of one type out of memory, and back; the cells are `step` apart. Of half bytes the first is the lower. */
void tcc_decode_bytes(const uint8_t *bytes, size_t n, tcc_scalar elem, tcc_cell *cells, size_t step);
void tcc_encode_bytes(const tcc_cell *cells, size_t step, size_t n, tcc_scalar elem, uint8_t *bytes);

#endif
