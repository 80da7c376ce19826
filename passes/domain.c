/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/domain.h"

#include <string.h>

#include "ir/index_value.h"

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

/* The only quotient with an index, which x has once: times 1 or -1, *sign; NULL: there is no such quotient. */
static const tcc_index_factor *find_quotient(const tcc_index_expr *x, const char *index, int64_t *sign)
{
    const tcc_index_factor *found = NULL;
    for (size_t i = 0; i < x->n; i++) {
        const tcc_index_term *t = &x->terms[i];
        for (size_t k = 0; k < t->n; k++) {
            const tcc_index_factor *f = &t->factors[k];
            bool has = f->kind == TCC_FACTOR_QUOTIENT ? tcc_index_has(f->of, TCC_FACTOR_INDEX, index)
                                                      : f->kind == TCC_FACTOR_INDEX && tcc_index_same(f->name, index);
            if (!has)
                continue;
            if (found || t->n > 1 || f->kind != TCC_FACTOR_QUOTIENT || (t->number != 1 && t->number != -1))
                return NULL;
            found = f;
            *sign = t->number;
        }
    }
    return found;
}

/* x < 0, where x = r + of / by or r - of / by: of < -r * by, or of >= (r + 1) * by. */
static bool add_bound_of_quotient(tcc_ir *ir, tcc_domain *d, const tcc_index_expr *x, const char *index)
{
    int64_t sign;
    const tcc_index_factor *q = find_quotient(x, index, &sign);
    if (!q)
        return false;
    const tcc_index_expr *value = tcc_index_div(ir, q->of, q->by), *zero = tcc_index_number(ir, 0);
    const tcc_index_expr *r = sign > 0 ? tcc_index_sub(ir, x, value) : tcc_index_add(ir, x, value);
    const tcc_index_expr *bound = sign > 0 ? r : tcc_index_add(ir, r, tcc_index_number(ir, 1));
    const tcc_index_expr *edge = tcc_index_mul(ir, tcc_index_sub(ir, zero, bound), q->by);
    if (!edge)
        return false;
    if (sign > 0) /* of - edge < 0 */
        return add_bound(ir, d, tcc_index_sub(ir, q->of, edge), index);
    /* -edge - of <= 0 */
    const tcc_index_expr *least = tcc_index_sub(ir, tcc_index_sub(ir, zero, edge), q->of);
    return least && add_bound(ir, d, tcc_index_sub(ir, least, tcc_index_number(ir, 1)), index);
}

/* x < y, or x <= y. */
static bool add_comparison(tcc_domain *d, const tcc_value *x, const tcc_value *y, bool or_equal, const char *index)
{
    const tcc_index_expr *less = tcc_index_of_value(x), *more = tcc_index_of_value(y);
    if (!less || !more)
        return false;
    tcc_ir *ir = x->def->block->func->ir;
    const tcc_index_expr *left = tcc_index_sub(ir, tcc_index_sub(ir, less, more), tcc_index_number(ir, or_equal));
    return left && (add_bound(ir, d, left, index) || add_bound_of_quotient(ir, d, left, index));
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
