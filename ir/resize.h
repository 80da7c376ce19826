/* resize: how many registers threads have when a kernel is launched, and whether setmaxnreg leaves them what MMAs need.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_RESIZE_H
#define TCC_IR_RESIZE_H

#include "ir/ir.h"

/* Registers that a thread has at launch, and of which a CTA's pool for setmaxnreg consists: its share of those of a
 * multiprocessor, on which `min_ctas` CTAs of `block` threads have room, in the units in which they are allocated; no
 * more than an instruction can name. The function has a target and a block. */
int64_t tcc_registers_at_launch(const tcc_func *f);

/* What a setmaxnreg leaves too few registers for. */
typedef struct tcc_resize_wrong {
    const tcc_op *resize, *op; /* the latter runs with what the former leaves */
    int64_t need;              /* of a thread, at least */
} tcc_resize_wrong;

/* Finds an op that runs while MMAs have more in registers, and what an MMA cannot do without, than the last setmaxnreg
 * allows. False: there is none. */
bool tcc_resize_find_wrong(const tcc_func *f, tcc_arena *scratch, tcc_resize_wrong *out);

#endif
