/* shapes: extents for a kernel's symbolic dimensions that reach every corner of its schedule and
 * cost little to run.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_SHAPES_H
#define TCC_DRIVER_SHAPES_H

#include "ir/ir.h"

/* So many shapes of one kernel: extents in the order of its attribute `dims`. */
typedef struct tcc_shapes {
    const int64_t **dims;
    size_t n;
} tcc_shapes;

/* Shapes of a kernel, of which choose-schedule has completed a variant: one tile, ragged tiles, one
 * element, more iterations than stages and fewer, rows of every alignment, nothing at all.
 * Dimensions that are numbers stay what they are, and no shape occurs twice. The seed decides what
 * is ragged and by how much. Strides are those of rows with gaps, of transposed ones, of every other element. */
tcc_shapes tcc_shapes_choose(tcc_arena *arena, const tcc_func *kernel, const tcc_func *scheduled, uint64_t seed);

/* What it costs to run a variant that choose-schedule has completed: multiply-adds of the machine,
 * and what takes as long. */
double tcc_shape_work(const tcc_func *scheduled, const int64_t *dims);

#endif
