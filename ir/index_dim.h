/* index_dim: dimensions that are computed of others. Their names say how (support/extent.h); here these are made of
 * index expressions without indices, and read as such.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_INDEX_DIM_H
#define TCC_IR_INDEX_DIM_H

#include "ir/index.h"
#include "ir/type.h"

enum { TCC_MAX_DIM_NAME = 255 };

/* The dimension that an expression without indices is: equal expressions are equal dimensions. False where it is a
 * number that no extent is, or has a longer name than that. */
bool tcc_dim_of_index(tcc_ir *ir, const tcc_index_expr *x, tcc_dim *out);
/* And the other way; NULL where the name does not say how. */
const tcc_index_expr *tcc_index_of_dim(tcc_ir *ir, tcc_dim d);

#endif
