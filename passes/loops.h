/* loops: the iterations of scf.for, and the values that it carries from one to the next.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_LOOPS_H
#define TCC_PASSES_LOOPS_H

#include "ir/ir.h"

/* Whether scf.for counts from 0 on, one by one: its argument is the number of the iteration. */
bool tcc_counts_iterations(const tcc_op *loop);

/* Whether op, or NULL, is scf.for. */
bool tcc_is_loop(const tcc_op *op);
/* Whether v is the same in every iteration of a loop. */
bool tcc_is_invariant(const tcc_value *v, const tcc_op *loop);
/* The op around `op` that runs once in a CTA. */
tcc_op *tcc_outermost(tcc_op *op);
/* Whether the executions of a block can be numbered: it is only in loops, which make the same number of
 * iterations each time. */
bool tcc_has_iteration_number(const tcc_block *block);
/* How many iterations a loop makes. */
tcc_value *tcc_iteration_count(tcc_builder *b, const tcc_op *loop);
/* How many iterations there were of a loop before this one, in those around it too; 0 outside loops. */
tcc_value *tcc_iteration_number(tcc_builder *b, tcc_op *loop);

/* The loop, built anew with one more value that it carries, from `init` on; what is carried stays as it is
 * until tcc_carry_next. Its region and what was in it stay. */
tcc_op *tcc_carry(tcc_op *loop, tcc_value *init);
/* What the value that a loop carries last is in the next iteration. */
void tcc_carry_next(tcc_op *loop, tcc_value *next);

#endif
