/* softmax: exponentials of a row's elements minus its maximum, computed as powers of two.
 *
 * Before:  %d = arith.sub %x, %max      After:  %d = arith.sub %x, %max
 *          %p = math.exp %d                     %z = arith.mul %d, 1.4426…
 *                                               %p = math.exp2 %z
 *          %y = arith.div %p, %sum              %r = math.rcp %sum
 *                                               %y = arith.mul %p, %r
 *
 * The result is off by 1.3 |d| units of an f32's last place more than expand-math's. It is at most 1, so that of a sum
 * only as much is lost as its rounding may take, and nothing is seen of it where it is rounded to 16 bits. Sums of such
 * powers are 1 or more, unless they have no terms, and no reciprocal of them is out of range.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/softmax.h"

#include "passes/arith.h"

/* Whether a field is the maximum of another over all of a row, or was it before. */
static bool is_maximum(const tcc_value *v, const tcc_value *of)
{
    const tcc_op *op = v->def;
    if (op && op->code == TCC_OP_tensor_before)
        op = op->operands[0]->def;
    return op && tcc_is_reduction(op) && tcc_reduction_of(op) == TCC_REDUCTION_MAX && op->n_operands == 1 &&
           (op->operands[0] == of || (of->def && of->def->code == TCC_OP_tensor_before && of->def->operands[0] == v));
}

static bool is_power(const tcc_op *op)
{
    const tcc_op *of = op->code == TCC_OP_math_exp ? op->operands[0]->def : NULL;
    return of && op->results[0].type->elem == TCC_f32 && of->code == TCC_OP_arith_sub &&
           is_maximum(of->operands[1], of->operands[0]);
}

static bool is_narrow(const tcc_type *t)
{
    enum { NARROW_BITS = 16 };
    return tcc_scalar_bits(t->elem) <= NARROW_BITS;
}

/* Whether op makes no more of an error in its operands than these had. precise: fields of which all bits count. */
static bool is_forgiving(const tcc_op *op, const tcc_map *precise)
{
    switch (op->code) {
    case TCC_OP_tensor_reduce: return tcc_reduction_of(op) == TCC_REDUCTION_SUM;
    case TCC_OP_tensor_rescale: return true;
    case TCC_OP_tensor_write: return is_narrow(TCC_VIEW(tensor_write, op)->tensor->type);
    case TCC_OP_arith_mul:
    case TCC_OP_arith_div:
    case TCC_OP_arith_fma:
    case TCC_OP_arith_cast: return is_narrow(op->results[0].type) || !tcc_map_get(precise, &op->results[0]);
    default: return false;
    }
}

tcc_map tcc_softmax_find(const tcc_func *f, tcc_arena *scratch)
{
    tcc_map found = TCC_MAP(scratch), precise = TCC_MAP(scratch);
    for (tcc_op *op = f->body->last; op; op = op->prev) {
        for (unsigned i = 0; i < op->n_operands && !is_forgiving(op, &precise); i++)
            *tcc_map_at(&precise, op->operands[i]) = op;
        if (is_power(op) && !tcc_map_get(&precise, &op->results[0]))
            *tcc_map_at(&found, op) = op;
    }
    for (tcc_op *op = f->body->first; op; op = op->next) {
        const tcc_op *by = op->code == TCC_OP_arith_div ? op->operands[1]->def : NULL;
        by = by && by->code == TCC_OP_tensor_rescale ? by->operands[0]->def : by;
        bool is_sum = by && tcc_is_reduction(by) && tcc_reduction_of(by) == TCC_REDUCTION_SUM && by->n_operands == 1;
        if (is_sum && by->operands[0]->def && tcc_map_get(&found, by->operands[0]->def))
            *tcc_map_at(&found, op) = op;
    }
    return found;
}

void tcc_softmax_op(tcc_tiling *t, const tcc_op *op)
{
    const double log2_e = 1.4426950408889634;
    tcc_value *x = tcc_value_map_get(t->map, op->operands[0]), *r;
    t->b.loc = op->loc;
    if (op->code == TCC_OP_math_exp) {
        r = TCC_EMIT(&t->b, arith_mul, x->type, x, tcc_build_float(&t->b, x->type, log2_e));
        r = TCC_EMIT(&t->b, math_exp2, x->type, r);
    } else {
        tcc_value *by = tcc_value_map_get(t->map, op->operands[1]);
        by = tcc_tiling_broadcast(t, TCC_EMIT(&t->b, math_rcp, by->type, by), x->type);
        r = TCC_EMIT(&t->b, arith_mul, x->type, x, by);
    }
    r->name = op->results[0].name;
    tcc_value_map_set(t->map, &op->results[0], r);
}
