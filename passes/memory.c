/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/memory.h"

tcc_map tcc_written_tensors(const tcc_func *f, tcc_arena *scratch)
{
    tcc_map written = TCC_MAP(scratch);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        if (op->code == TCC_OP_tensor_write)
            *tcc_map_at(&written, TCC_VIEW(tensor_write, op)->tensor) = op;
        else if (op->code == TCC_OP_tile_store)
            *tcc_map_at(&written, TCC_VIEW(tile_store, op)->tensor) = op;
    }
    return written;
}

bool tcc_op_is_movable(const tcc_op *op, const tcc_map *written)
{
    for (unsigned i = 0; i < op->n_operands; i++)
        if (tcc_map_get(written, op->operands[i]))
            return false;
    return tcc_op_info_get(op->code)->flags & TCC_PURE;
}
