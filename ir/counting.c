/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/counting.h"

/* Whether v is the argument of a loop's region and 1. */
static bool is_next(const tcc_value *v, const tcc_value *argument)
{
    const tcc_op *add = v->def;
    int64_t one;
    if (!add || add->code != TCC_OP_arith_add)
        return false;
    unsigned by = add->operands[0] == argument;
    return add->operands[!by] == argument && tcc_value_is_int(add->operands[by], &one) && one == 1;
}

static bool is_arithmetic(const tcc_op *op)
{
    return op->code == TCC_OP_arith_add || op->code == TCC_OP_arith_const;
}

bool tcc_loop_only_counts(const tcc_op *op)
{
    int64_t lo, step;
    if (op->code != TCC_OP_scf_for || !op->n_results || !tcc_attr_int(&op->attrs, "at_least_once", 0) ||
        !tcc_value_is_int(op->operands[0], &lo) || lo != 0 ||
        !tcc_value_is_int(op->operands[2], &step) || step != 1)
        return false;
    const tcc_block *body = op->regions[0];
    bool counts = true;
    for (const tcc_op *in = body->first; in != body->last && counts; in = in->next)
        counts = is_arithmetic(in);
    for (unsigned i = 0; i < op->n_results && counts; i++)
        counts = op->results[i].type == op->operands[1]->type &&
                 is_next(body->last->operands[i], body->args[1 + i]);
    return counts;
}
