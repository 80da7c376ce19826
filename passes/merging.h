/* merging: indices that are contiguous in every tensor and may be merged.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_MERGING_H
#define TCC_PASSES_MERGING_H

#include "ir/ir.h"

/* The lists of such indices in a tensor-level function, [[b, s], …], outermost first: the value of the attribute
 * `merged` for merge-indices. They contain only free indices that do not run along rows; of indices named by the
 * schedule only the last of a list, whose name the merged index gets. */
tcc_attr tcc_find_merged(const tcc_func *f);

/* How many dimensions a tensor has, which `access` reads or writes, once merge-indices has run. */
size_t tcc_merged_rank(const tcc_op *access);

#endif
