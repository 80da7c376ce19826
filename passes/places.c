/* places: argmax as an extremum, and the least index at which a term is equal to it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>

#include "ir/reduction.h"
#include "passes/arith.h"
#include "passes/partition.h"
#include "passes/rows.h"

/* Terms as wide as results are, which is exact. */
static tcc_value *widen(tcc_builder *b, tcc_value *v)
{
    enum { WORD_BITS = 32 };
    tcc_scalar elem = v->type->elem;
    if (tcc_scalar_bits(elem) >= WORD_BITS && elem != TCC_tf32)
        return v;
    elem = tcc_scalar_classify(elem) == TCC_CLASS_INT ? TCC_i32 : TCC_f32;
    return tcc_arith_cast(b, tcc_type_with_elem(b->func->ir, v->type, elem), v);
}

/* A reduction of `of` that has all else as a place has it. */
static tcc_value *reduce(tcc_builder *b, const tcc_op *place, tcc_value *of, tcc_reduction kind)
{
    tcc_value *operands[] = {of, place->n_operands > 1 ? place->operands[1] : NULL};
    const tcc_type *type = tcc_type_with_elem(b->func->ir, place->results[0].type, of->type->elem);
    tcc_op *op = tcc_op_create(b, TCC_OP_tensor_reduce, place->n_operands, operands, 1, &type);
    tcc_attr_set(b->func->ir, &op->attrs, "over", tcc_attr_list(&place->attrs, "over"), (tcc_loc){0, 0});
    tcc_attr_set_str(b->func->ir, &op->attrs, "kind", tcc_reduction_words[kind]);
    return &op->results[0];
}

void tcc_place_expand(tcc_op *place)
{
    tcc_ir *ir = place->block->func->ir;
    tcc_builder b = tcc_builder_before(place);
    b.loc = place->loc;
    const char *index = tcc_attr_list(&place->attrs, "over").list.items[0].s;
    const tcc_type *r = place->results[0].type, *number = tcc_type_get(ir, TCC_KIND_field, TCC_i32, 0, NULL);
    const tcc_type *of_terms = tcc_field_with_indices(ir, r, 1, &index, NULL); /* r is of i32 */
    tcc_value *terms = widen(&b, place->operands[0]), *none = tcc_build_i32(&b, INT32_MAX); /* no index is as large */
    tcc_value *extremum = reduce(&b, place, terms, tcc_reduction_extremum(tcc_reduction_of(place)));
    bool varies = tcc_field_has_index(terms->type, index);
    tcc_value *is = TCC_EMIT(&b, arith_cmp, tcc_type_with_elem(ir, varies ? of_terms : r, TCC_i1), terms, extremum);
    tcc_attr_set_str(ir, &is->def->attrs, "pred", "eq");
    tcc_value *at = TCC_EMIT(&b, tensor_index, tcc_field_with_indices(ir, number, 1, &index, NULL), NULL);
    tcc_attr_set_str(ir, &at->def->attrs, "name", index);
    at = TCC_EMIT(&b, arith_select, of_terms, is, at, none);
    tcc_value *least = reduce(&b, place, at, TCC_REDUCTION_MIN);
    tcc_value *is_none = tcc_arith_cmp(&b, "eq", least, none);
    tcc_value *found = TCC_EMIT(&b, arith_select, r, is_none, tcc_build_i32(&b, TCC_NO_PLACE), least);
    found->name = place->results[0].name;
    tcc_replace_uses(&place->results[0], found);
    tcc_op_erase(place);
}
