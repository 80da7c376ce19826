/* choose_axes: what the indices of a tensor-level function are to tiles, as attributes say it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_CHOOSE_AXES_H
#define TCC_PASSES_CHOOSE_AXES_H

#include "passes/space.h"

/* Sets them anew, for what a function computes and its schedule says. False, and nothing is changed, where it writes
 * nothing, or no one grid of tiles computes it. */
bool tcc_choose_axes(tcc_func *f);
/* Exchanges rows and columns. */
void tcc_swap_axes(tcc_func *f);
/* What they would be of a function whose reductions are all sums of products; false: they are not. */
bool tcc_find_product_axes(const tcc_func *f, tcc_space *out);

#endif
