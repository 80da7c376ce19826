/* counting: the bounds of loops, and loops that only count, by which an iteration number skips the iterations of
 * another role.
 *
 *   %end = scf.for 0, %n, 1, %first {at_least_once = 1} : i32 {
 *   ^(%i: i32, %at: i32):
 *     scf.yield (%at + 1)
 *   }
 *
 * is %first + %n, and the generated code is this addition. The protocol checker can follow loops for any
 * number of iterations, but not sums of unknown numbers, so it follows the loop.
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
