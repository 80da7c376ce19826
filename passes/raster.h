/* raster: in which order tiles are numbered over the first two axes of a grid; a part of distribute-grid.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_RASTER_H
#define TCC_PASSES_RASTER_H

#include "ir/ir.h"
#include "passes/schedule.h"

/* The row and the column of the tile with a number, of tiles[0] rows and tiles[1] columns of tiles. Groups have this
 * many rows. */
void tcc_raster_place(tcc_builder *b, tcc_raster raster, int64_t group, tcc_value *number, tcc_value *const tiles[2],
                      tcc_value *at[2]);

#endif
