/* long_expressions: what a kernel with long expressions goes without. Each of its variants is a long kernel, which takes
 * time and memory to compile, and the expressions matter more for its speed than what variants differ in.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_LONG_EXPRESSIONS_H
#define TCC_PASSES_LONG_EXPRESSIONS_H

#include "ir/ir.h"

/* Whether expressions are so long that how operands come, and how many elements are computed at once, hardly matters. */
bool tcc_has_long_expressions(const tcc_func *f);
/* Of n variants that differ in speed alone, how many a kernel gets, if so many others have as many each: 0 to n. */
size_t tcc_variants_worthwhile(const tcc_func *f, size_t n, size_t others);
/* Whether variant i is one of them, which are spread evenly. */
bool tcc_is_worthwhile(const tcc_func *f, size_t i, size_t n, size_t others);

#endif
