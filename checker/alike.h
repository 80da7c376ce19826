/* alike: what alike.c and numbers.c share: a function as it is being written.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_ALIKE_H
#define TCC_CHECKER_ALIKE_H

#include "checker/normal.h"

typedef struct form {
    writer w;
    uint32_t *numbers; /* of each op of p->fixed: 1 + which one was written; 0: it was not yet; */
    uint32_t n, *stack; /* how many were; room for as many */
    uint64_t touched;  /* registers that are to be written */
    uint32_t *renumbered, n_renumbered; /* of each slot 1 + its number, in the order in which they are written */
    uint32_t *wanted;  /* by how many operands that are written, or by others; */
    uint32_t *uses;    /* by how many in what a number is computed from */
    tcc_pvalue *values; /* of each slot: what is known of such a number; of those that are written so, kind SYMBOL */
    bool *is_number;   /* these */
    TCC_VEC(const tcc_pinst *) sent; /* copies to tensors that are only written, so far */
} form;

static inline bool is_fixed(uint32_t slot)
{
    return slot >= TCC_P_FIXED && slot != TCC_P_NO_SLOT;
}

/* The op that gives what a slot always holds. */
static inline const tcc_pinst *fixed_at(const form *f, uint32_t slot)
{
    return &f->w.p->fixed.data[slot - TCC_P_FIXED];
}

/* Whether an op gives a number that a launch decides, the same one wherever it stands. */
static inline bool is_of_launch(const tcc_pinst *in)
{
    tcc_opcode code = in->op->code;
    return (code == TCC_OP_nvvm_ctaid || code == TCC_OP_nvvm_nctaid || code == TCC_OP_nvvm_clusterid ||
            code == TCC_OP_nvvm_nclusterid) &&
           in->results[0] < TCC_P_FIXED;
}

/* numbers.c: finds numbers of which nothing is known but that they are the same. Nothing needs any more what they are
 * computed from. */
void tcc_p_find_numbers(form *f, tcc_protocol *p);

#endif
