/* registers: which values of a kernel are the same registers of MMAs, and which of them more
 * than one op needs.
 *
 * An MMA writes the registers of its accumulator; loops, branches, waits, slices and packs hand
 * them on. What other ops compute is in registers of its own, and moved or copied where an MMA
 * or a loop takes it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_REGISTERS_H
#define TCC_IR_REGISTERS_H

#include "ir/ir.h"

typedef struct tcc_registers tcc_registers;

tcc_registers *tcc_registers_find(const tcc_func *f, tcc_arena *arena);
/* How many there are. */
unsigned tcc_registers_count(const tcc_registers *r);
/* The number of those that a value is in, from 1 on; 0 when they are none of an MMA's. */
unsigned tcc_registers_of(const tcc_registers *r, const tcc_value *v);
/* Whether an op hands registers on without looking into them. */
bool tcc_registers_pass(tcc_opcode code);
/* Operands, a bit each, that an MMA or a loop takes over and another op uses as well: they would
 * have to be copied. */
uint32_t tcc_registers_wanted_twice(const tcc_registers *r, const tcc_op *op);
/* Whether an operand is among them; of a loop that carries very many, the last share a bit. */
bool tcc_registers_is_wanted_twice(uint32_t wanted, unsigned operand);

#endif
