/* tile_streams_in_step: sums that are kept in step with extrema of some of their terms (ir/streaming.h).
 *
 * Before:  … %factor = math.exp … : field<f32[i]>                        // of %m and tensor.before %m
 *          %r = tensor.rescale %o, %factor
 * After:   %need = tile.any (%factor changes %o much)                       // in some row of the warp
 *          %reference = arith.select %need, %m, %before                    // what sums are in step with
 *          %kept = scf.if %need { arith.mul %o, %factor } else { %o }
 *
 * It is as right to be in step with an extremum of some terms as of all, as long as all that follow it are. So sums are
 * multiplied only where they would change much, and once at the end.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/cut.h"
#include "passes/arith.h"
#include "passes/tile_streams.h"

/* What an extremum of none counts as, of the largest number. */
static double share_of(const tcc_streams *r, const tcc_op *reduce)
{
    return tcc_streams_is_of_score(r, reduce->operands[0]) ? 0x1p-32 : 1;
}

/* The ops that a rescaled sum's factor is computed of, back to reductions as they are and as they were. */
static tcc_map ops_of_factor(const tcc_streams *r, const tcc_op *rescale)
{
    tcc_map ops = TCC_MAP(r->w->ctx->scratch);
    tcc_op *by = TCC_VIEW(tensor_rescale, rescale)->by->def;
    if (by && tcc_has_field(by))
        *tcc_map_at(&ops, by) = by;
    for (tcc_op *op = r->w->f->body->last; op; op = op->prev) {
        bool goes_on = tcc_map_get(&ops, op) && op->code != TCC_OP_tensor_before && !tcc_is_reduction(op);
        for (unsigned i = 0; goes_on && i < op->n_operands; i++) {
            tcc_op *def = op->operands[i]->def;
            if (def && tcc_has_field(def))
                *tcc_map_at(&ops, def) = def;
        }
    }
    return ops;
}

/* The one reduction with which a sum is kept in step; NULL: there are several, or none. */
static tcc_op *followed_by(const tcc_streams *r, const tcc_op *rescale)
{
    tcc_map ops = ops_of_factor(r, rescale);
    tcc_op *followed = NULL;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        bool was = op->code == TCC_OP_tensor_before;
        if (!tcc_map_get(&ops, op) || (!was && !tcc_is_reduction(op)))
            continue;
        tcc_op *reduce = was ? op->operands[0]->def : op;
        if (followed && followed != reduce)
            return NULL;
        followed = reduce;
    }
    return followed;
}

/* Sums may lag where each follows one extremum, and where factors are of a type with f32's exponents: what is summed
 * may be larger than it would be in step. CTAs of parts, which lie beside each other, have no registers for that. */
void tcc_streams_find_lagging(tcc_streams *r)
{
    bool may = false;
    bool has_registers = r->later && !tcc_cut_is(r->w->f, TCC_CUT_part);
    for (tcc_op *op = r->w->f->body->first; op && has_registers; op = op->next)
        may |= op->code == TCC_OP_tensor_rescale && sum_of(r, op->operands[0]->def);
    for (size_t i = 0; i < r->factors.len; i++)
        may &= r->factors.data[i]->type->elem != TCC_f16;
    for (tcc_op *op = r->w->f->body->first; op && may; op = op->next) {
        tcc_op *followed = op->code == TCC_OP_tensor_rescale ? followed_by(r, op) : NULL;
        may = op->code != TCC_OP_tensor_rescale || (followed && tcc_reduction_of(followed) != TCC_REDUCTION_SUM);
        size_t i = 0;
        while (i < r->lagging.len && r->lagging.data[i] != followed)
            i++;
        if (followed && i == r->lagging.len)
            TCC_PUSH(r->w->ctx->scratch, &r->lagging, followed);
    }
    if (!may)
        r->lagging.len = 0;
}

/* Lets what follows an extremum use it as it is and as it was. */
static void follow(tcc_streams *r, const tcc_op *reduce, tcc_value *was, tcc_value *is)
{
    tcc_value_map_set(r->t.map, &reduce->results[0], is);
    for (const tcc_use *u = reduce->results[0].uses; u; u = u->next)
        if (u->op->code == TCC_OP_tensor_before)
            tcc_value_map_set(r->t.map, &u->op->results[0], was);
}

/* What a sum that follows an extremum is multiplied by. */
static tcc_value *build_factor(tcc_streams *r, const tcc_op *rescale)
{
    tcc_map ops = ops_of_factor(r, rescale);
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (tcc_map_get(&ops, op) && varies(r, &op->results[0]) && !tcc_is_reduction(op) &&
            op->code != TCC_OP_tensor_before)
            tcc_streams_build_op(r, op);
    return tcc_value_map_get(r->t.map, TCC_VIEW(tensor_rescale, rescale)->by);
}

/* Whether some sum that follows an extremum would change by more than `most`, were it in step with it as it is. */
static tcc_value *build_need(tcc_streams *r, const tcc_op *reduce, tcc_value *was, tcc_value *is)
{
    const double most = 256;
    tcc_builder *b = &r->t.b;
    tcc_value_map *outer = r->t.map;
    tcc_value *needs = NULL;
    r->t.map = tcc_value_map_within(r->w->ctx->scratch, outer);
    follow(r, reduce, was, is);
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        if (op->code != TCC_OP_tensor_rescale || followed_by(r, op) != reduce)
            continue;
        tcc_value *by = build_factor(r, op);
        tcc_value *small = tcc_arith_cmp(b, "lt", by, tcc_build_float(b, by->type, 1 / most));
        tcc_value *large = tcc_arith_cmp(b, "gt", by, tcc_build_float(b, by->type, most));
        small = tcc_arith_bin(b, TCC_OP_arith_or, small, large);
        needs = needs ? tcc_arith_bin(b, TCC_OP_arith_or, needs, small) : small;
    }
    r->t.map = outer;
    return TCC_EMIT(b, tile_any, tcc_type_scalar(ir_of(r), TCC_i1), needs);
}

/* Keeps sums in step with an extremum as it was, *reference, until it has changed much: then the warp's rows take it as
 * it is. */
static void lag(tcc_streams *r, tcc_op *reduce, tcc_value **reference)
{
    tcc_value *was = *reference, *is = tcc_value_map_get(r->t.map, &reduce->results[0]);
    tcc_value *need = build_need(r, reduce, was, is);
    const tcc_type *conditions = tcc_type_with_elem(ir_of(r), is->type, TCC_i1);
    tcc_value *in_all = tcc_tiling_broadcast(&r->t, need, conditions);
    *reference = TCC_EMIT(&r->t.b, arith_select, is->type, in_all, is, was);
    follow(r, reduce, was, *reference);
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_rescale && followed_by(r, op) == reduce)
            *tcc_map_at(&r->needs, op) = need;
}

void tcc_streams_keep_reference(tcc_streams *r, const tcc_op *reduce, tcc_value **references, bool is_first)
{
    for (size_t i = 0; i < r->lagging.len; i++)
        if (r->lagging.data[i] == reduce && is_first)
            references[i] = tcc_value_map_get(r->t.map, &r->lagging.data[i]->results[0]);
        else if (r->lagging.data[i] == reduce)
            lag(r, r->lagging.data[i], &references[i]);
}

void tcc_streams_catch_up(tcc_streams *r, tcc_value *const *references, tcc_value **kept)
{
    size_t n = 0;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        for (size_t i = 0; reduce && i < r->lagging.len; i++)
            if (r->lagging.data[i] == reduce) {
                tcc_follow(&r->t, reduce, share_of(r, reduce), kept[n], kept[n]);
                follow(r, reduce, references[i], tcc_value_map_get(r->t.map, &r->lagging.data[i]->results[0]));
            }
        n += reduce != NULL;
    }
    for (tcc_op *op = r->w->f->body->first; op && r->lagging.len; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        if (op->code == TCC_OP_tensor_rescale) {
            tcc_value *by = tcc_tiling_broadcast(&r->t, build_factor(r, op), (*kept)->type);
            *kept = TCC_EMIT(&r->t.b, arith_mul, by->type, *kept, by);
        }
        kept += reduce != NULL;
    }
}

tcc_value *tcc_streams_combine(tcc_streams *r, const tcc_op *reduce, const tcc_op *op, tcc_value *before, bool is_first)
{
    tcc_value *factor = op == reduce || is_first ? NULL : tcc_in_step(&r->t, op, r->is_first, before->type);
    tcc_value *v = tcc_streams_reduce(r, reduce);
    if (factor)
        return tcc_multiply_add(&r->t, before, factor, v);
    tcc_value *with[] = {before, v};
    if (!is_first)
        v = &tcc_op_create(&r->t.b, tcc_reduction_op(tcc_reduction_of(reduce)), 2, with, 1, &v->type)->results[0];
    if (tcc_is_followed(reduce))
        tcc_follow(&r->t, reduce, share_of(r, reduce), before, v);
    return v;
}

/* In a branch where that is not always needed. */
static tcc_value *rescale_sum(tcc_streams *r, const tcc_op *rescale, tcc_value *v)
{
    tcc_builder outer = r->t.b;
    tcc_value *need = tcc_map_get(&r->needs, rescale);
    tcc_op *test = need ? tcc_op_create(&outer, TCC_OP_scf_if, 1, &need, 1, &v->type) : NULL;
    if (test)
        r->t.b = tcc_builder_at_end(test->regions[0]);
    r->t.b.loc = outer.loc;
    tcc_value *by = tcc_in_step(&r->t, rescale, r->is_first, v->type);
    tcc_value *scaled = TCC_EMIT(&r->t.b, arith_mul, v->type, v, by);
    if (!test)
        return scaled;
    tcc_op_create(&r->t.b, TCC_OP_scf_yield, 1, &scaled, 0, NULL);
    r->t.b = tcc_builder_at_end(test->regions[1]);
    tcc_op_create(&r->t.b, TCC_OP_scf_yield, 1, &v, 0, NULL);
    r->t.b = outer;
    return &test->results[0];
}

void tcc_streams_rescale(tcc_streams *r, tcc_value **kept)
{
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        if (reduce && reduce != op && sum_of(r, reduce))
            *kept = rescale_sum(r, op, *kept);
        kept += reduce != NULL;
    }
}
