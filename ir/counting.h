/* counting: what tells when loops end; loops that do nothing but count, by which a number that loops count on passes
 * over iterations which are another's.
 *
 *   %end = scf.for 0, %n, 1, %first {at_least_once = 1} : i32 {
 *   ^(%i: i32, %at: i32):
 *     scf.yield (%at + 1)
 *   }
 *
 * is %first + %n: code for it is that addition. The protocol checker, which follows loops for any number of
 * iterations and no sums of unknown numbers, follows the loop.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_COUNTING_H
#define TCC_IR_COUNTING_H

#include "ir/ir.h"

/* Whether an op is such a loop, with any number of results. */
bool tcc_loop_only_counts(const tcc_op *op);
/* Whether an op is a loop that goes on only while what it carries first holds. */
static inline bool tcc_loop_tests(const tcc_op *op)
{
    return op->code == TCC_OP_scf_for && tcc_attr_find(&op->attrs, "while");
}

#endif
