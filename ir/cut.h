/* cut: why a step is one. ir/cuts.def is the table.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_CUT_H
#define TCC_IR_CUT_H

#include "ir/ir.h"

typedef enum tcc_cut {
#define CUT(id, why) TCC_CUT_##id,
#include "ir/cuts.def"
    TCC_CUT_COUNT
} tcc_cut;

/* Gives a step its attribute `cut`. */
void tcc_cut_set(tcc_func *step, tcc_cut cut);
bool tcc_cut_is(const tcc_func *step, tcc_cut cut);
const char *tcc_cut_meaning(tcc_cut cut);
/* What the attribute means, the attribute itself where the table does not have it; NULL: there is none. */
const char *tcc_cut_why(const tcc_func *step);

#endif
