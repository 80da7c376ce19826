/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/slice.h"

void tcc_slice_extend(tcc_map *slice, size_t n, tcc_value *const *values)
{
    TCC_VEC(const tcc_value *) left = {0};
    for (size_t i = 0; i < n; i++)
        TCC_PUSH(slice->arena, &left, values[i]);
    while (left.len) {
        tcc_op *op = left.data[--left.len]->def;
        if (!op || tcc_map_get(slice, op))
            continue;
        *tcc_map_at(slice, op) = op;
        for (unsigned i = 0; i < op->n_operands; i++)
            TCC_PUSH(slice->arena, &left, op->operands[i]);
    }
}

tcc_map tcc_slice_of(tcc_arena *arena, size_t n, tcc_value *const *values)
{
    tcc_map slice = TCC_MAP(arena);
    tcc_slice_extend(&slice, n, values);
    return slice;
}

bool tcc_slice_has(tcc_arena *scratch, const tcc_op *other, const tcc_op *op)
{
    tcc_map slice = tcc_slice_of(scratch, other->n_operands, other->operands);
    return tcc_map_get(&slice, op);
}
