/* nvvm_draw: numbers that one thread draws, on their way to all others.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

/* False, refused, where more than one thread runs op. */
static bool is_by_one(tcc_nvvm_lowering *l, const tcc_op *op)
{
    if (!l->role.one)
        TCC_LOW_REFUSE(&l->low, op, "%s by more than one thread", tcc_op_info_get(op->code)->name);
    return l->role.one;
}

void tcc_nvvm_draw(tcc_nvvm_lowering *l, tcc_op *op)
{
    if (is_by_one(l, op))
        tcc_value_map_set(l->low.map, &op->results[0],
                          TCC_EMIT(&l->low.b, nvvm_atom_inc, l->low.i32,
                                   tcc_low_pointer(&l->low, TCC_VIEW(async_draw, op)->counter)));
}

/* Where the word of an iteration is; NULL, refused, where its buffer has no place. */
static tcc_value *word_at(tcc_nvvm_lowering *l, const tcc_op *op)
{
    const tcc_op *alloc = tcc_nvvm_buffer(l, op, op->operands[2]);
    return alloc ? tcc_nvvm_stage(l, alloc, tcc_value_map_get(l->low.map, op->operands[1])) : NULL;
}

void tcc_nvvm_put_word(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_value *at = is_by_one(l, op) ? word_at(l, op) : NULL;
    if (at)
        TCC_EMIT_V(&l->low.b, nvvm_st_shared_word, at, tcc_value_map_get(l->low.map, op->operands[3]));
}

/* ptxas is told that it is the same for all lanes, and so is what is computed of it. */
void tcc_nvvm_read_word(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_value *at = word_at(l, op);
    if (!at)
        return;
    tcc_value *word = TCC_EMIT(&l->low.b, nvvm_ld_shared_word, l->low.i32, at);
    tcc_value_map_set(l->low.map, &op->results[0], TCC_EMIT(&l->low.b, nvvm_uniform, l->low.i32, word));
}
