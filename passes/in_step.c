/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/in_step.h"

#include <math.h>

#include "passes/arith.h"

static const tcc_op *user_of(const tcc_op *reduce, tcc_opcode code)
{
    const tcc_use *u = reduce->results[0].uses;
    while (u && u->op->code != code)
        u = u->next;
    return u ? u->op : NULL;
}

const tcc_op *tcc_rescale_of(const tcc_op *reduce)
{
    return user_of(reduce, TCC_OP_tensor_rescale);
}

bool tcc_is_rescaled(const tcc_op *reduce)
{
    return tcc_rescale_of(reduce) != NULL;
}

bool tcc_is_followed(const tcc_op *reduce)
{
    return user_of(reduce, TCC_OP_tensor_before) != NULL;
}

tcc_op *tcc_reduced_at(tcc_op *op)
{
    return op->code == TCC_OP_tensor_rescale              ? op->operands[0]->def
           : tcc_is_reduction(op) && !tcc_is_rescaled(op) ? op
                                                          : NULL;
}

/* Where there was no number yet, the least or greatest, from which differences are numbers. What it is multiplied by may
 * not leave a number of that: then 0. */
static void follow(tcc_tiling *t, const tcc_value *as, tcc_reduction kind, double share, tcc_value *v)
{
    tcc_builder *b = &t->b;
    tcc_scalar elem = v->type->elem;
    tcc_cell start = tcc_reduction_start(kind, elem);
    bool is_infinite = tcc_scalar_classify(elem) == TCC_CLASS_FLOAT && isinf(tcc_round_float(start.f, elem));
    if (is_infinite && share > 0) {
        double most = tcc_decode(tcc_encode(start, elem) - 1, elem).f;
        tcc_value *with[] = {v, tcc_build_float(b, v->type, share * most)};
        v = &tcc_op_create(b, tcc_reduction_op(kind), 2, with, 1, &v->type)->results[0];
    } else if (is_infinite) {
        tcc_value *none = tcc_arith_cmp(b, "eq", v, tcc_build_float(b, v->type, start.f));
        v = TCC_EMIT(b, arith_select, v->type, none, tcc_build_float(b, v->type, 0), v);
    }
    tcc_value_map_set(t->map, as, v);
}

void tcc_follow(tcc_tiling *t, const tcc_op *reduce, double share, tcc_value *before, tcc_value *after)
{
    tcc_reduction kind = tcc_reduction_of(reduce);
    follow(t, &reduce->results[0], kind, share, after);
    for (const tcc_use *u = reduce->results[0].uses; u; u = u->next)
        if (u->op->code == TCC_OP_tensor_before)
            follow(t, &u->op->results[0], kind, share, before);
}

tcc_value *tcc_in_step(tcc_tiling *t, const tcc_op *rescale, tcc_value *is_first, const tcc_type *type)
{
    tcc_builder *b = &t->b;
    tcc_value *by = tcc_value_map_get(t->map, TCC_VIEW(tensor_rescale, rescale)->by);
    if (!is_first)
        return tcc_tiling_broadcast(t, by, type);
    if (is_first->type->kind == TCC_KIND_tile)
        by = tcc_tiling_broadcast(t, by, type);
    tcc_value *one = tcc_build_float(b, by->type, 1);
    by = TCC_EMIT(b, arith_select, by->type, tcc_tiling_broadcast(t, is_first, by->type), one, by);
    return tcc_tiling_broadcast(t, by, type);
}

tcc_value *tcc_multiply_add(tcc_tiling *t, tcc_value *x, tcc_value *y, tcc_value *z)
{
    tcc_builder *b = &t->b;
    if (x->type->elem == TCC_f32 || x->type->elem == TCC_f64)
        return TCC_EMIT(b, arith_fma, x->type, x, y, z);
    return TCC_EMIT(b, arith_add, x->type, TCC_EMIT(b, arith_mul, x->type, x, y), z);
}
