/* shapes: extents for a kernel's symbolic dimensions that reach every corner of its schedule and
 * cost little to run.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_SHAPES_H
#define TCC_DRIVER_SHAPES_H

#include "ir/ir.h"

typedef struct tcc_shape {
    const int64_t *dims; /* in the order of the kernel's attribute `dims` */
    double work;         /* multiply-adds of the machine, and what costs as much */
} tcc_shape;

typedef struct tcc_shapes {
    tcc_shape *data;
    size_t n;
} tcc_shapes;

/* Shapes of a tensor-level function that choose-schedule has completed: one tile, ragged tiles, one
 * element, more trips than stages and fewer, rows of every alignment, nothing at all. Dimensions
 * that are numbers stay what they are, and no shape occurs twice. The seed decides what is ragged
 * and by how much. */
tcc_shapes tcc_shapes_choose(tcc_arena *arena, const tcc_func *scheduled, uint64_t seed);

#endif
