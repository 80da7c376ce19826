/* mutate_ir: random changes of a module that keep it, more often than not, what the verifier takes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_FUZZ_MUTATE_IR_H
#define TCC_TESTS_FUZZ_MUTATE_IR_H

#include "ir/ir.h"

/* Changes one thing, chosen by the generator whose state is *random, and advances that. */
void mutate_ir(tcc_ir *ir, uint64_t *random);

#endif
