/* merging: indices that run through every tensor together and may be taken for one.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_MERGING_H
#define TCC_PASSES_MERGING_H

#include "ir/ir.h"

/* Of a tensor-level function lists of such indices, [[b, s], …], outermost first: what merge-indices takes as its
 * attribute `merged`. Only what is free, and does not run along rows, is among them; of what the schedule names only the
 * last of a list, whose name the one index gets. */
tcc_attr tcc_find_merged(const tcc_func *f);

/* How many dimensions a tensor has, which `access` reads or writes, once merge-indices has run. */
size_t tcc_merged_rank(const tcc_op *access);

#endif
