/* wmma: where the lanes of a wave hold the matrices of an instruction of ir/wmma.def.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_WMMA_H
#define TCC_INTERP_WMMA_H

#include "ir/target.h"

/* Element e of a lane, counted from the low bits of its first register on. In A it is row `major`
 * and column k, in B row k and column `major`. */
typedef struct tcc_wmma_place {
    unsigned major, k;
} tcc_wmma_place;

/* How many elements of A, and as many of B, a lane holds; 0: the instruction does not read this
 * lane. */
unsigned tcc_wmma_elements(tcc_family family, unsigned bits, int64_t k, unsigned wave,
                           unsigned lane);
tcc_wmma_place tcc_wmma_operand_place(tcc_family family, unsigned bits, int64_t k, unsigned wave,
                                      unsigned lane, unsigned e);
/* The row of D, as of C, that the e-th number of a lane is in. Its column is lane % 16. */
unsigned tcc_wmma_result_row(tcc_family family, unsigned wave, unsigned lane, unsigned e);

#endif
