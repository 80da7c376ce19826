/* hash: a number for what a function is now.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_HASH_H
#define TCC_IR_HASH_H

#include "ir/ir.h"

/* A hash of all that a function's text comes from, its values by where they are in memory: if the same function has
 * the same hash later, its text is the same. Another function of the same text has another one. */
uint64_t tcc_func_hash(const tcc_func *f);

#endif
