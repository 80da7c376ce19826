/* elementwise: what arith and math ops do to one row of elements, the same at every level.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_ELEMENTWISE_H
#define TCC_INTERP_ELEMENTWISE_H

#include "interp/number.h"
#include "ir/ir.h"

/* r[i] = op(a[0][i * step[0]], …) for i < n. A step of 0 repeats one element. */
typedef struct tcc_elements {
    const tcc_op *op;
    const tcc_cell *a[3];
    size_t step[3];
    tcc_cell *r;
    size_t n;
} tcc_elements;

/* Computes a row; an integer divided by zero gives zero. Returns false when the op is none of
 * these. `machine`: float results are rounded to their type. */
bool tcc_elementwise(const tcc_elements *e, bool machine);

#endif
