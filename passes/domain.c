/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/domain.h"

#include <string.h>

/* What a field or number of i32 is, if it is computed of indices and dimensions alone; else NULL. */
static const tcc_index_expr *expr_of(const tcc_value *v)
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
    const tcc_index_expr *x = op->n_operands == 2 ? expr_of(op->operands[0]) : NULL;
    const tcc_index_expr *y = x ? expr_of(op->operands[1]) : NULL;
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

/* x < 0, where x = c + index or c - index. */
static bool add_bound(tcc_ir *ir, tcc_domain *d, const tcc_index_expr *x, const char *index)
{
    const tcc_index_expr *zero = tcc_index_number(ir, 0), *by = tcc_index_stride(ir, x, index);
    int64_t step;
    if (!by || !tcc_index_is_number(by, &step) || (step != 1 && step != -1))
        return false;
    const tcc_index_expr *c = tcc_index_replace(ir, x, TCC_FACTOR_INDEX, index, zero);
    if (step == 1)
        TCC_PUSH(ir->arena, &d->end, tcc_index_sub(ir, zero, c));
    else
        TCC_PUSH(ir->arena, &d->least, tcc_index_add(ir, c, tcc_index_number(ir, 1)));
    return true;
}

/* x < y, or x <= y. */
static bool add_comparison(tcc_domain *d, const tcc_value *x, const tcc_value *y, bool or_equal, const char *index)
{
    const tcc_index_expr *less = expr_of(x), *more = expr_of(y);
    if (!less || !more)
        return false;
    tcc_ir *ir = x->def->block->func->ir;
    const tcc_index_expr *difference = tcc_index_sub(ir, less, more);
    return add_bound(ir, d, tcc_index_sub(ir, difference, tcc_index_number(ir, or_equal)), index);
}

/* Whether nothing of it is left out. */
static bool add_all(tcc_domain *d, const tcc_value *condition, const char *index)
{
    const tcc_op *op = condition->def;
    if (op && op->code == TCC_OP_arith_and) {
        bool first = add_all(d, op->operands[0], index);
        return add_all(d, op->operands[1], index) && first;
    }
    if (!op || op->code != TCC_OP_arith_cmp)
        return false;
    const char *pred = tcc_attr_str(&op->attrs, "pred", "");
    bool equal = !strcmp(pred, "eq"), or_equal = equal || pred[1] == 'e', less = equal || pred[0] == 'l',
         more = equal || pred[0] == 'g', all = less || more;
    if (less)
        all &= add_comparison(d, op->operands[0], op->operands[1], or_equal, index);
    if (more)
        all &= add_comparison(d, op->operands[1], op->operands[0], or_equal, index);
    return all;
}

tcc_domain tcc_domain_of(const tcc_value *condition, const char *index)
{
    tcc_domain d = {0};
    d.is_wider = !add_all(&d, condition, index);
    return d;
}
