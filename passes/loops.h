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
/* The first of the roles beside this one. */
tcc_op *tcc_first_role(tcc_op *role);
/* Whether the executions of a block can be numbered: it is only in loops, which make the same number of
 * iterations each time. */
bool tcc_has_iteration_number(const tcc_block *block);
/* How many iterations a loop makes. */
tcc_value *tcc_iteration_count(tcc_builder *b, const tcc_op *loop);
/* How many iterations there were of a loop before this one, in those around it too; 0 outside loops. */
tcc_value *tcc_iteration_number(tcc_builder *b, tcc_op *loop);

/* Rebuilds the loop with one more carried value, initially `init`; it is unchanged from iteration to
 * iteration until tcc_carry_next. The region and its contents are kept. */
tcc_op *tcc_carry(tcc_op *loop, tcc_value *init);
/* Sets the next value of the last value that a loop carries. */
void tcc_carry_next(tcc_op *loop, tcc_value *next);

#endif
