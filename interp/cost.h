/* cost: what an op takes of an SM, from the table in cost.def.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_COST_H
#define TCC_INTERP_COST_H

#include "ir/ir.h"

enum {
#define TCC_COST(id, value, unit, what, source) TCC_COST_##id = (value),
#include "interp/cost.def"
#undef TCC_COST
};

typedef struct tcc_cost {
    uint64_t issue;      /* cycles of its warp's scheduler */
    uint64_t smem_bytes; /* through shared memory's pipe */
    uint64_t latency;    /* cycles from there until its results can be used */
    uint64_t hold;       /* cycles for which the warp itself stalls */
} tcc_cost;

/* For one warp that runs the op, not counting waits. */
tcc_cost tcc_cost_of(const tcc_op *op);

/* Cycles of the tensor cores that an MMA of a warpgroup takes: to multiply, or to read its operands. */
uint64_t tcc_cost_of_mma(const tcc_op *op);

#endif
