/* grid: how many CTAs a launch has. The attribute `grid` of tile.ctas and of functions is a list of index expressions
 * of dimensions, one an axis, such as ($M + 127) / 128. What is below 0 counts as 0, and all are multiplied.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_GRID_H
#define TCC_IR_GRID_H

#include "ir/index.h"
#include "ir/ir.h"

/* Whether all items are axes: numbers, and expressions that tcc_grid_extent knows. */
bool tcc_grid_is_sound(tcc_ir *ir, tcc_attr grid);

/* The dimension that an item of tile.grid's attribute `extents` is; false: it is none. */
bool tcc_grid_dim(tcc_ir *ir, tcc_attr extent, tcc_dim *out);

/* The CTAs where the dimensions of `dims`, a list of names, have these extents: `most` where there are more. -1: a
 * dimension is not among them. */
int64_t tcc_grid_ctas(tcc_attr grid, tcc_attr dims, const int64_t *extents, int64_t most);

/* How much of an extent a CTA takes: n, and *of is extent + n - 1, where an axis is a quotient by n that is rounded up;
 * else 1, and *of is the axis. */
int64_t tcc_grid_taken(const tcc_index_expr *axis, const tcc_index_expr **of);
/* That extent, an expression of this module; false: it has no name. */
bool tcc_grid_extent(tcc_ir *ir, const tcc_index_expr *axis, tcc_dim *extent);

#endif
