/* plan: what a launch of a kernel runs, for people.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_PLAN_H
#define TCC_DRIVER_PLAN_H

#include "ir/ir.h"
#include "support/str.h"

/* What the ops of a function, from the tile level on, do with the tensors that its parameters are or point to: bits, a
 * byte for each parameter. */
enum { TCC_READS = 1, TCC_STORES = 2 };
unsigned char *tcc_parameter_uses(const tcc_func *f);

/* The steps of a kernel, in order, with the tensors that each reads and stores, and why it is one; and the bytes of
 * the workspace. Variants whose steps differ from those of the ones before are shown, too. IR from the tile level on. */
void tcc_plan_print(tcc_str *out, const tcc_ir *ir, const char *kernel);

#endif
