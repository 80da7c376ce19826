/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/index_value.h"

const tcc_index_expr *tcc_index_of_value(const tcc_value *v)
{
    const tcc_op *op = v->def;
    if (!op || v->type->elem != TCC_i32)
        return NULL;
    tcc_ir *ir = op->block->func->ir;
    int64_t number;
    if (tcc_value_is_int(v, &number))
        return tcc_index_number(ir, number);
    if (op->code == TCC_OP_tensor_index)
        return tcc_index_name(ir, tcc_attr_str(&op->attrs, "name", ""));
    if (op->code == TCC_OP_tensor_dim)
        return tcc_index_dim(ir, tcc_attr_str(&op->attrs, "name", ""));
    const tcc_index_expr *x = op->n_operands == 2 ? tcc_index_of_value(op->operands[0]) : NULL;
    const tcc_index_expr *y = x ? tcc_index_of_value(op->operands[1]) : NULL;
    if (!y)
        return NULL;
    switch (op->code) {
    case TCC_OP_arith_add: return tcc_index_add(ir, x, y);
    case TCC_OP_arith_sub: return tcc_index_sub(ir, x, y);
    case TCC_OP_arith_mul: return tcc_index_mul(ir, x, y);
    case TCC_OP_arith_floor_div: return tcc_index_div(ir, x, y);
    default: return NULL;
    }
}
