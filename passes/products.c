/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/products.h"

#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "ir/target.h"

bool tcc_field_has_index(const tcc_type *field, const char *name)
{
    for (unsigned i = 0; i < field->rank; i++)
        if (tcc_index_same(field->dims[i].name, name))
            return true;
    return false;
}

static bool is_index(const tcc_func *f, const char *name)
{
    bool is = tcc_index_extent(f, name).name || tcc_index_extent(f, name).size >= 0;
    for (const tcc_op *op = f->body->first; op && !is; op = op->next)
        is = op->n_results && op->results[0].type->kind == TCC_KIND_field &&
             tcc_field_has_index(op->results[0].type, name);
    return is;
}

const char *tcc_free_index(const tcc_func *f, const char *name)
{
    const char *free = tcc_ir_name(f->ir, name);
    for (int i = 2; is_index(f, free); i++)
        free = tcc_ir_name(f->ir, tcc_arena_printf(f->ir->arena, "%s%d", name, i));
    return free;
}

bool tcc_fields_share_space(const tcc_type *x, const tcc_type *y)
{
    bool same = x->rank == y->rank;
    for (unsigned d = 0; d < x->rank && same; d++)
        same = tcc_field_has_index(y, x->dims[d].name);
    return same;
}

bool tcc_is_naive(const tcc_func *f)
{
    return tcc_schedule_key_of(f, TCC_KEY_instr, TCC_INSTR_COUNT) == TCC_INSTR_NAIVE;
}

/* ---- factors ------------------------------------------------------------------------------- */

bool tcc_find_elementwise(const tcc_value *v, tcc_arena *arena, tcc_map *ops)
{
    TCC_VEC(const tcc_value *) left = {0};
    TCC_PUSH(arena, &left, v);
    while (left.len) {
        tcc_op *op = left.data[--left.len]->def;
        if (!op || tcc_map_get(ops, op))
            continue;
        *tcc_map_at(ops, op) = op;
        bool leaf = op->code == TCC_OP_tensor_read || op->code == TCC_OP_tensor_index ||
                    op->code == TCC_OP_tensor_dim || op->code == TCC_OP_arith_const;
        if (!leaf && !(tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE))
            return false;
        for (unsigned i = 0; i < op->n_operands; i++)
            TCC_PUSH(arena, &left, op->operands[i]);
    }
    return true;
}

/* Whether a value is computed of what is read, and not only read where that says. */
static bool is_element_of(const tcc_op *read, const tcc_value *v, const tcc_map *ops)
{
    bool is = v->def == read;
    for (const tcc_use *u = read->results[0].uses; u && !is; u = u->next)
        is = u->op->code != TCC_OP_tensor_read && tcc_map_get(ops, u->op);
    return is;
}

/* The first read of those that a value is computed of whose coordinates are all its indices: stages hold its tiles. */
static tcc_op *covering_read(const tcc_value *v, tcc_arena *arena)
{
    tcc_map ops = TCC_MAP(arena);
    if (!v->def || !tcc_find_elementwise(v, arena, &ops))
        return NULL;
    for (tcc_op *op = v->def->block->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_read && tcc_map_get(&ops, op) && tcc_access_is_plain(op) &&
            op->results[0].type->rank == v->type->rank && is_element_of(op, v, &ops))
            return op;
    return NULL;
}

/* The value of v behind casts that keep every number. */
static tcc_value *narrow_value(tcc_value *v)
{
    while (v->def && v->def->code == TCC_OP_arith_cast) {
        tcc_value *a = TCC_VIEW(arith_cast, v->def)->a;
        if (!tcc_scalar_widens(a->type->elem, v->type->elem))
            break;
        v = a;
    }
    return v;
}

bool tcc_factor_is_computed(const tcc_factor *factor)
{
    return factor->value->def != factor->read;
}

tcc_dim tcc_factor_extent(const tcc_factor *factor, const char *index)
{
    return tcc_accessed_tensor(factor->read)->type->dims[tcc_map_position(factor->read, index)];
}

/* ---- products ------------------------------------------------------------------------------ */

static bool lacks_index(const tcc_type *a, const tcc_type *b)
{
    bool lacks = false;
    for (unsigned d = 0; d < b->rank; d++)
        lacks |= !tcc_field_has_index(a, b->dims[d].name);
    return lacks;
}

static tcc_sum_parts parts_of(const tcc_op *sum)
{
    tcc_attr parts = tcc_attr_list(&sum->attrs, "parts");
    const tcc_attr *p = parts.list.items;
    return parts.list.n == 3 ? (tcc_sum_parts){p[0].s, p[1].i, p[2].i} : (tcc_sum_parts){NULL, 1, 1};
}

bool tcc_product_of_terms(tcc_op *reduce, tcc_product *out)
{
    const tcc_op *product = TCC_VIEW(tensor_reduce, reduce)->a->def;
    tcc_attr over = tcc_attr_list(&reduce->attrs, "over");
    if (!product || product->code != TCC_OP_arith_mul || over.list.n != 1 || !reduce->results[0].type->rank ||
        tcc_reduction_of(reduce) != TCC_REDUCTION_SUM ||
        tcc_attr_find(&reduce->attrs, "rounded"))
        return false;
    *out = (tcc_product){.sum = reduce,
                         .k = over.list.items[0].s,
                         .parts = parts_of(reduce),
                         .products = product->results[0].type->elem};
    for (int i = 0; i < 2; i++)
        out->of[i].value = narrow_value(product->operands[i]);
    const tcc_type *a = out->of[0].value->type, *b = out->of[1].value->type;
    bool own = lacks_index(a, b) || lacks_index(b, a);
    return own && tcc_field_has_index(a, out->k) && tcc_field_has_index(b, out->k);
}

bool tcc_product_find(tcc_op *reduce, tcc_product *out)
{
    if (reduce->n_operands > 1 || !tcc_product_of_terms(reduce, out))
        return false;
    for (int i = 0; i < 2; i++)
        out->of[i].read = covering_read(out->of[i].value, reduce->block->func->ir->arena);
    return true;
}

static tcc_instr instr_for(const tcc_target *target, const tcc_product *p)
{
    return tcc_target_instr_for(target, TCC_INSTR_COUNT, p->of[0].value->type->elem, p->of[1].value->type->elem,
                                p->sum->results[0].type->elem);
}

/* By what the module's target, or its plain one, multiplies; TCC_INSTR_COUNT: neither does. */
static tcc_instr instr_of(const tcc_product *p)
{
    const tcc_target *target = tcc_target_of(p->sum->block->func->ir);
    tcc_instr instr = instr_for(target, p);
    return instr == TCC_INSTR_COUNT && target->plain ? instr_for(tcc_target_find(target->plain), p) : instr;
}

/* Whether there is one, of elements that the target multiplies. */
static bool find_multiplied(const tcc_op *reduce, tcc_product *out)
{
    bool asked_for = tcc_attr_find(&reduce->block->func->attrs, "instr"); /* it is refused later, if need be */
    return tcc_product_find((tcc_op *)reduce, out) && (asked_for || instr_of(out) != TCC_INSTR_COUNT);
}

static bool is_covered(const tcc_product *p)
{
    return p->of[0].read && p->of[1].read;
}

bool tcc_product_can_be(const tcc_op *reduce, tcc_product *out)
{
    return find_multiplied(reduce, out) && is_covered(out);
}

bool tcc_product_is(const tcc_op *reduce)
{
    tcc_product p;
    return !tcc_is_naive(reduce->block->func) && tcc_product_can_be(reduce, &p);
}

tcc_value *tcc_product_uncovered(const tcc_op *reduce)
{
    tcc_product p;
    if (tcc_is_naive(reduce->block->func) || !find_multiplied(reduce, &p) || is_covered(&p))
        return NULL;
    tcc_value *v = p.of[0].read ? p.of[1].value : p.of[0].value;
    return v->type->rank < TCC_VIEW(tensor_reduce, reduce)->a->type->rank ? v : NULL;
}

static bool is_computed_of(const tcc_value *v, const tcc_value *of, tcc_arena *arena)
{
    tcc_map ops = TCC_MAP(arena);
    tcc_find_elementwise(v, arena, &ops);
    return of->def && tcc_map_get(&ops, of->def) && v->type->rank == of->type->rank;
}

const char *tcc_product_row_index(const tcc_op *reduce, const tcc_value *v)
{
    tcc_product p;
    unsigned rank = v->type->rank;
    tcc_arena *arena = reduce->block->func->ir->arena;
    if (!rank || tcc_is_naive(reduce->block->func) || !find_multiplied(reduce, &p) ||
        (!is_computed_of(p.of[0].value, v, arena) && !is_computed_of(p.of[1].value, v, arena)))
        return NULL;
    const char *last = v->type->dims[rank - 1].name;
    bool both = tcc_field_has_index(p.of[0].value->type, last) && tcc_field_has_index(p.of[1].value->type, last);
    return both ? p.k : last;
}

bool tcc_product_is_term_by_term(const tcc_op *reduce, tcc_scalar elems[2])
{
    tcc_product p;
    if (tcc_is_naive(reduce->block->func) || !tcc_product_find((tcc_op *)reduce, &p) || !is_covered(&p) ||
        instr_of(&p) != TCC_INSTR_COUNT)
        return false;
    for (int i = 0; i < 2; i++)
        elems[i] = p.of[i].value->type->elem;
    return true;
}

bool tcc_product_shares_loop(const tcc_product *x, const tcc_product *y)
{
    bool same_parts = x->parts.count == y->parts.count && x->parts.depth == y->parts.depth &&
                      x->parts.index == y->parts.index;
    return tcc_fields_share_space(x->sum->results[0].type, y->sum->results[0].type) && same_parts &&
           tcc_dim_equal(tcc_factor_extent(&x->of[0], x->k), tcc_factor_extent(&y->of[0], y->k));
}

/* Whether the module's target, or its plain one, has one kind of instructions for both, or neither has any. */
static bool multiplied_alike(const tcc_product *p, const tcc_product *q)
{
    const tcc_target *own = tcc_target_of(p->sum->block->func->ir);
    const tcc_target *const targets[] = {own, own->plain ? tcc_target_find(own->plain) : own};
    bool alike = false, none = true;
    for (int i = 0; i < 2; i++) {
        tcc_instr of_p = instr_for(targets[i], p), of_q = instr_for(targets[i], q);
        alike |= of_p == of_q && of_p != TCC_INSTR_COUNT;
        none &= of_p == TCC_INSTR_COUNT && of_q == TCC_INSTR_COUNT;
    }
    return alike || none;
}

bool tcc_product_goes_with(const tcc_op *reduce, const tcc_op *other)
{
    tcc_product p, q;
    return tcc_product_can_be(reduce, &p) && tcc_product_can_be(other, &q) && tcc_product_shares_loop(&p, &q) &&
           multiplied_alike(&p, &q) && (p.products == TCC_f64) == (q.products == TCC_f64);
}
