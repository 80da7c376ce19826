/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/memory.h"

tcc_map tcc_written_tensors(const tcc_func *f, tcc_arena *scratch)
{
    tcc_map written = TCC_MAP(scratch);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        for (unsigned i = 0; i < op->n_operands; i++)
            if (tcc_op_info_get(op->code)->effects & TCC_WRITES_TENSOR &&
                op->operands[i]->type->kind == TCC_KIND_tensor)
                *tcc_map_at(&written, op->operands[i]) = op;
    return written;
}

bool tcc_op_is_movable(const tcc_op *op, const tcc_map *written)
{
    for (unsigned i = 0; i < op->n_operands; i++)
        if (tcc_map_get(written, op->operands[i]))
            return false;
    return tcc_op_info_get(op->code)->flags & TCC_PURE;
}
