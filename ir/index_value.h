/* index_value: what numbers that ops compute are as index expressions.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_INDEX_VALUE_H
#define TCC_IR_INDEX_VALUE_H

#include "ir/index.h"
#include "ir/ir.h"

/* What a field or number of i32 is, if it is computed of indices and dimensions alone; else NULL. */
const tcc_index_expr *tcc_index_of_value(const tcc_value *v);

#endif
