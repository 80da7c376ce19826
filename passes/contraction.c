/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/contraction.h"

#include <string.h>

#include "ir/fragment.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "ir/target.h"

bool tcc_write_has_space(const tcc_op *write, const tcc_type *field)
{
    bool same = tcc_access_rank(write) == field->rank;
    for (unsigned d = 0; d < field->rank && same; d++)
        same = tcc_map_position(write, field->dims[d].name) >= 0;
    return same;
}

bool tcc_writes_share_space(const tcc_op *x, const tcc_op *y)
{
    size_t n = tcc_access_rank(x);
    bool same = n == tcc_access_rank(y);
    for (size_t d = 0; d < n && same; d++)
        same = tcc_map_position(y, tcc_access_index(x, d)) >= 0;
    return same;
}

int64_t tcc_tile_size_of(const tcc_func *f, const char *index, int64_t otherwise)
{
    tcc_attr tile = tcc_attr_list(&f->attrs, "tile");
    for (size_t i = 0; i + 1 < tile.list.n; i += 2)
        if (!strcmp(tile.list.items[i].s, index))
            return tile.list.items[i + 1].i;
    return otherwise;
}

bool tcc_field_has_index(const tcc_type *field, const char *name)
{
    for (unsigned i = 0; i < field->rank; i++)
        if (!strcmp(field->dims[i].name, name))
            return true;
    return false;
}

bool tcc_fields_share_space(const tcc_type *x, const tcc_type *y)
{
    bool same = x->rank == y->rank;
    for (unsigned d = 0; d < x->rank && same; d++)
        same = tcc_field_has_index(y, x->dims[d].name);
    return same;
}

bool tcc_read_is_contiguous_in(const tcc_op *read, const char *x, const char *y)
{
    const char *last = tcc_access_last(read);
    return last && (!strcmp(last, x) || !strcmp(last, y));
}

bool tcc_find_elementwise(const tcc_value *v, tcc_arena *arena, tcc_map *ops)
{
    TCC_VEC(const tcc_value *) left = {0};
    TCC_PUSH(arena, &left, v);
    while (left.len) {
        tcc_op *op = left.data[--left.len]->def;
        if (!op || tcc_map_get(ops, op))
            continue;
        *tcc_map_at(ops, op) = op;
        bool leaf = op->code == TCC_OP_tensor_read || op->code == TCC_OP_tensor_index || op->code == TCC_OP_tensor_dim ||
                    op->code == TCC_OP_arith_const;
        if (!leaf && !(tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE))
            return false;
        for (unsigned i = 0; i < op->n_operands; i++)
            TCC_PUSH(arena, &left, op->operands[i]);
    }
    return true;
}

/* An operand before it is decided whether it is A. */
typedef struct operand {
    tcc_op *read;
    tcc_value *value;
} operand;

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

static bool is_computed(const operand *f)
{
    return f->value->def != f->read;
}

static tcc_dim extent_in(const tcc_op *read, const char *index)
{
    return TCC_VIEW(tensor_read, read)->tensor->type->dims[tcc_map_position(read, index)];
}

/* The indices of the sums in the order in which an output stores them: of the first write that
 * has all of them, else of the sum itself. */
static tcc_attr output_order(const tcc_func *f, const tcc_type *sum)
{
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write && tcc_access_rank(op) == sum->rank)
            return tcc_access_indices(op);
    tcc_attr *items = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, sum->rank);
    for (unsigned i = 0; i < sum->rank; i++)
        items[i] = (tcc_attr){.kind = TCC_ATTR_STR, .s = sum->dims[i].name};
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, sum->rank}};
}

/* Whether the schedule names a tile size for this index. */
static bool is_tiled(const tcc_func *f, const char *index)
{
    return tcc_tile_size_of(f, index, 0) > 0;
}

typedef struct sum_operands {
    tcc_op *sum;
    operand a, b;
    const char *k;
    tcc_sum_parts parts;
    tcc_scalar products;
    bool fixed; /* a is A */
} sum_operands;

static tcc_sum_parts parts_of(const tcc_op *sum)
{
    tcc_attr parts = tcc_attr_list(&sum->attrs, "parts");
    const tcc_attr *p = parts.list.items;
    return parts.list.n == 3 ? (tcc_sum_parts){p[0].s, p[1].i, p[2].i} : (tcc_sum_parts){NULL, 1, 1};
}

static tcc_instr instr_for(const tcc_target *target, const sum_operands *p)
{
    return tcc_target_instr_for(target, TCC_INSTR_COUNT, p->a.value->type->elem, p->b.value->type->elem,
                                p->sum->results[0].type->elem);
}

/* By what the function's target, or its plain one, multiplies; TCC_INSTR_COUNT: neither does. */
static tcc_instr instr_of(const sum_operands *p)
{
    const tcc_target *target = tcc_target_of(p->sum->block->func->ir);
    tcc_instr instr = instr_for(target, p);
    return instr == TCC_INSTR_COUNT && target->plain ? instr_for(tcc_target_find(target->plain), p) : instr;
}

static bool lacks_index(const tcc_type *a, const tcc_type *b)
{
    bool lacks = false;
    for (unsigned d = 0; d < b->rank; d++)
        lacks |= !tcc_field_has_index(a, b->dims[d].name);
    return lacks;
}

/* Whether a sum is over one index, which both operands of a product have, one with an index that the other lacks: *out,
 * in which an operand that no tensor covers has no read. */
static bool find_factors(tcc_op *reduce, sum_operands *out)
{
    const tcc_op *product = TCC_VIEW(tensor_reduce, reduce)->a->def;
    tcc_attr over = tcc_attr_list(&reduce->attrs, "over");
    if (!product || product->code != TCC_OP_arith_mul || over.list.n != 1 || !reduce->results[0].type->rank ||
        reduce->n_operands > 1 || tcc_reduction_of(reduce) != TCC_REDUCTION_SUM || tcc_attr_find(&reduce->attrs, "rounded"))
        return false;
    *out = (sum_operands){.sum = reduce,
                          .k = over.list.items[0].s,
                          .parts = parts_of(reduce),
                          .products = product->results[0].type->elem};
    out->a.value = narrow_value(TCC_VIEW(arith_mul, product)->a);
    out->b.value = narrow_value(TCC_VIEW(arith_mul, product)->b);
    const tcc_type *a = out->a.value->type, *b = out->b.value->type;
    bool own = lacks_index(a, b) || lacks_index(b, a);
    if (!own || !tcc_field_has_index(a, out->k) || !tcc_field_has_index(b, out->k))
        return false;
    const tcc_func *f = reduce->block->func;
    out->a.read = covering_read(out->a.value, f->ir->arena);
    out->b.read = covering_read(out->b.value, f->ir->arena);
    return true;
}

/* The same of elements that the function's target multiplies. */
static bool find_product(tcc_op *reduce, sum_operands *out)
{
    bool asked_for = tcc_attr_find(&reduce->block->func->attrs, "instr"); /* it is refused later, if need be */
    return find_factors(reduce, out) && (asked_for || instr_of(out) != TCC_INSTR_COUNT);
}

static bool find_sum_operands(tcc_op *sum, sum_operands *out)
{
    return find_product(sum, out) && out->a.read && out->b.read;
}

/* Whether one loop over k, in tiles of the same axes, computes both sums. */
static bool same_space(const sum_operands *x, const sum_operands *y)
{
    bool same_parts = x->parts.count == y->parts.count && x->parts.depth == y->parts.depth &&
                      x->parts.index == y->parts.index;
    return tcc_fields_share_space(x->sum->results[0].type, y->sum->results[0].type) && same_parts &&
           tcc_dim_equal(extent_in(x->a.read, x->k), extent_in(y->a.read, y->k));
}

static bool are_outputs_in(const tcc_func *f, const tcc_type *sum)
{
    bool all = true;
    for (const tcc_op *op = f->body->first; op && all; op = op->next)
        all = op->code != TCC_OP_tensor_write || tcc_write_has_space(op, sum);
    return all;
}

static bool is_own(const sum_operands *p, const char *x, bool of_b)
{
    const tcc_op *own = of_b ? p->b.read : p->a.read, *other = of_b ? p->a.read : p->b.read;
    return tcc_map_position(own, x) >= 0 && tcc_map_position(other, x) < 0;
}

/* The innermost output index that in every sum only B has, or only A; one that the schedule tiles
 * comes before all others. NULL when there is none. from: in sums from this one on either operand may be the
 * one that has it, unless it is fixed which is A. */
static const char *own_index(const tcc_func *f, tcc_attr order, const sum_operands *p, size_t n, bool of_b,
                             size_t from)
{
    const char *found = NULL;
    for (size_t i = 0; i < order.list.n; i++) {
        const char *x = order.list.items[i].s;
        bool own = !(found && is_tiled(f, found) && !is_tiled(f, x));
        for (size_t s = 0; s < n; s++)
            own &= is_own(&p[s], x, of_b) ||
                   (s >= from && !p[s].fixed && is_own(&p[s], x, !of_b));
        if (own)
            found = x;
    }
    return found;
}

static void exchange(sum_operands *p)
{
    operand a = p->a;
    p->a = p->b;
    p->b = a;
}

/* Place of an index in the output, -1 for no index. */
static int place_in(tcc_attr order, const char *x)
{
    for (size_t i = 0; x && i < order.list.n; i++)
        if (!strcmp(order.list.items[i].s, x))
            return (int)i;
    return -1;
}

/* Makes the one operand of a sum that is computed A where matrix instructions take only that from registers. Whether
 * there is such a sum. */
static bool fix_computed(const tcc_func *f, sum_operands *p, size_t n_sums)
{
    bool any = false;
    for (size_t s = 0; s < n_sums && tcc_target_can(tcc_func_target(f), TCC_CAN_wgmma); s++) {
        p[s].fixed = is_computed(&p[s].a) != is_computed(&p[s].b);
        if (p[s].fixed && is_computed(&p[s].b))
            exchange(&p[s]);
        any |= p[s].fixed;
    }
    return any;
}

/* Finds m, or where A has none of its own in all sums n. */
static bool find_axis(const tcc_func *f, tcc_attr order, const sum_operands *p, size_t n_sums, size_t from,
                      const char **m, const char **n)
{
    *m = own_index(f, order, p, n_sums, false, from);
    *n = *m ? NULL : own_index(f, order, p, n_sums, true, from);
    return *m || *n;
}

/* Decides m and n, and with them which operand of each sum is A. If there are computed operands on both sides of the
 * result, one of them is B, which the instruction reads from shared memory unless it takes registers. Returns whether
 * the computed operands leave no choice. */
static bool orient(const tcc_func *f, tcc_attr order, sum_operands *p, size_t n_sums, const char **m,
                   const char **n)
{
    bool fixed = fix_computed(f, p, n_sums);
    if (!find_axis(f, order, p, n_sums, fixed ? 0 : 1, m, n) && fixed) {
        for (size_t s = 0; s < n_sums; s++)
            p[s].fixed = false;
        fixed = !find_axis(f, order, p, n_sums, 1, m, n);
    }
    size_t from = fixed ? 0 : 1;
    for (size_t s = from; s < n_sums; s++)
        if ((*m && !is_own(&p[s], *m, false)) || (*n && !is_own(&p[s], *n, true)))
            exchange(&p[s]);
    if (*m)
        *n = own_index(f, order, p, n_sums, true, n_sums);
    bool swapped = tcc_schedule_key_of(f, TCC_KEY_operands, 0);
    if (fixed || (place_in(order, *m) <= place_in(order, *n)) != swapped)
        return fixed;
    const char *x = *m; /* n is inside m, unless they are swapped, and B has it */
    *m = *n;
    *n = x;
    for (size_t s = 0; s < n_sums; s++)
        exchange(&p[s]);
    return false;
}

static const tcc_sum_operand *add_operand(tcc_space *c, const operand *f, int axis, const char *k)
{
    for (size_t i = 0; i < c->n_operands; i++) {
        const tcc_sum_operand *o = &c->operands[i];
        bool computed = is_computed(f) || tcc_sum_operand_is_computed(o);
        if (o->axis == axis && (computed ? o->value == f->value : tcc_access_same(o->read, f->read, o->k, k)))
            return o;
    }
    c->operands[c->n_operands] = (tcc_sum_operand){f->read, f->value, axis, k};
    return &c->operands[c->n_operands++];
}

/* m, n, then every other free index. */
static bool add_axes(tcc_space *c, tcc_attr order, const sum_operands *p, const char *m, const char *n)
{
    c->axes[0] = m ? m : "";
    c->extents[0] = m ? extent_in(p->a.read, m) : (tcc_dim){NULL, 1};
    c->axes[1] = n ? n : "";
    c->extents[1] = n ? extent_in(p->b.read, n) : (tcc_dim){NULL, 1};
    c->n_axes = 2;
    for (size_t i = 0; i < order.list.n; i++) {
        const char *x = order.list.items[i].s;
        if (!strcmp(x, c->axes[0]) || !strcmp(x, c->axes[1]))
            continue;
        if (c->n_axes == TCC_MAX_AXES)
            return false;
        bool is_part = c->parts.index && !strcmp(x, c->parts.index);
        c->axes[c->n_axes] = x;
        c->extents[c->n_axes++] =
            is_part ? (tcc_dim){NULL, c->parts.count}
                    : extent_in(tcc_map_position(p->a.read, x) >= 0 ? p->a.read : p->b.read, x);
    }
    return true;
}

bool tcc_contraction_is(const tcc_op *reduce)
{
    sum_operands p;
    return !tcc_contraction_is_naive(reduce->block->func) && find_sum_operands((tcc_op *)reduce, &p);
}

tcc_value *tcc_contraction_uncovered(const tcc_op *reduce)
{
    sum_operands p;
    if (tcc_contraction_is_naive(reduce->block->func) || !find_product((tcc_op *)reduce, &p) ||
        (p.a.read && p.b.read))
        return NULL;
    tcc_value *v = p.a.read ? p.b.value : p.a.value;
    return v->type->rank < TCC_VIEW(tensor_reduce, reduce)->a->type->rank ? v : NULL;
}

static bool is_computed_of(const tcc_value *v, const tcc_value *of, tcc_arena *arena)
{
    tcc_map ops = TCC_MAP(arena);
    tcc_find_elementwise(v, arena, &ops);
    return of->def && tcc_map_get(&ops, of->def) && v->type->rank == of->type->rank;
}

const char *tcc_contraction_row(const tcc_op *reduce, const tcc_value *v)
{
    sum_operands p;
    unsigned rank = v->type->rank;
    tcc_arena *arena = reduce->block->func->ir->arena;
    if (!rank || tcc_contraction_is_naive(reduce->block->func) || !find_product((tcc_op *)reduce, &p) ||
        (!is_computed_of(p.a.value, v, arena) && !is_computed_of(p.b.value, v, arena)))
        return NULL;
    const char *last = v->type->dims[rank - 1].name;
    return tcc_field_has_index(p.a.value->type, last) && tcc_field_has_index(p.b.value->type, last) ? p.k : last;
}

bool tcc_contraction_is_term_by_term(const tcc_op *reduce, tcc_scalar elems[2])
{
    sum_operands p;
    if (tcc_contraction_is_naive(reduce->block->func) || !find_factors((tcc_op *)reduce, &p) || !p.a.read || !p.b.read ||
        instr_of(&p) != TCC_INSTR_COUNT)
        return false;
    elems[0] = p.a.value->type->elem;
    elems[1] = p.b.value->type->elem;
    return true;
}

/* Whether the function's target, or its plain one, has one kind of instructions for both, or neither has any. */
static bool multiplied_alike(const sum_operands *p, const sum_operands *q)
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

bool tcc_contraction_goes_with(const tcc_op *reduce, const tcc_op *other)
{
    sum_operands p, q;
    return find_sum_operands((tcc_op *)reduce, &p) && find_sum_operands((tcc_op *)other, &q) && same_space(&p, &q) &&
           multiplied_alike(&p, &q) && (p.products == TCC_f64) == (q.products == TCC_f64);
}

bool tcc_contraction_is_naive(const tcc_func *f)
{
    return tcc_schedule_key_of(f, TCC_KEY_instr, TCC_INSTR_COUNT) == TCC_INSTR_NAIVE;
}

bool tcc_contraction_find(const tcc_func *f, tcc_space *out)
{
    return !tcc_contraction_is_naive(f) && tcc_contraction_described(f, out);
}

bool tcc_contraction_described(const tcc_func *f, tcc_space *out)
{
    TCC_VEC(sum_operands) p = {0};
    tcc_arena *arena = f->ir->arena;
    *out = (tcc_space){0};
    for (tcc_op *op = f->body->first; op; op = op->next) {
        sum_operands found;
        if (op->code != TCC_OP_tensor_reduce)
            continue;
        if (!find_sum_operands(op, &found) || (p.len && !same_space(&p.data[0], &found)))
            return false;
        TCC_PUSH(arena, &p, found);
    }
    if (!p.len || !are_outputs_in(f, p.data[0].sum->results[0].type))
        return false;
    tcc_attr order = output_order(f, p.data[0].sum->results[0].type);
    const char *m, *n;
    out->fixed = orient(f, order, p.data, p.len, &m, &n);
    out->k = p.data[0].k;
    out->parts = p.data[0].parts;
    out->order = order;
    out->k_extent = extent_in(p.data[0].a.read, out->k);
    out->sums = TCC_NEW_ARRAY(arena, tcc_sum, p.len);
    out->operands = TCC_NEW_ARRAY(arena, tcc_sum_operand, 2 * p.len);
    for (size_t i = 0; i < p.len; i++) {
        const sum_operands *of = &p.data[i];
        tcc_sum *sum = &out->sums[out->n_sums++];
        sum->op = of->sum;
        sum->k = of->k;
        sum->products = of->products;
        sum->a = add_operand(out, &of->a, 0, of->k);
        sum->b = add_operand(out, &of->b, 1, of->k);
    }
    return add_axes(out, order, &p.data[0], m, n);
}

tcc_dim tcc_contraction_extent(const tcc_space *c, const char *axis)
{
    size_t i = 0;
    while (strcmp(c->axes[i], axis))
        i++;
    return c->extents[i];
}

bool tcc_contraction_multiplies(const tcc_space *c, const tcc_value *tensor)
{
    for (size_t i = 0; i < c->n_operands; i++)
        if (TCC_VIEW(tensor_read, c->operands[i].read)->tensor == tensor)
            return true;
    return false;
}

tcc_scalar tcc_sum_operand_elem(const tcc_sum_operand *o)
{
    return o->value->type->elem;
}

static unsigned bits_of(const tcc_sum *sum)
{
    return tcc_scalar_bits(tcc_sum_operand_elem(sum->a));
}

const tcc_sum *tcc_contraction_narrowest(const tcc_space *c)
{
    const tcc_sum *found = c->sums;
    for (size_t i = 1; i < c->n_sums; i++) {
        bool ints = c->sums[i].products == TCC_i32 && found->products != TCC_i32;
        if (bits_of(&c->sums[i]) < bits_of(found) || (bits_of(&c->sums[i]) == bits_of(found) && ints))
            found = &c->sums[i];
    }
    return found;
}

const tcc_sum *tcc_contraction_widest(const tcc_space *c)
{
    const tcc_sum *found = c->sums;
    for (size_t i = 1; i < c->n_sums; i++)
        if (bits_of(&c->sums[i]) > bits_of(found))
            found = &c->sums[i];
    return found;
}

bool tcc_sum_operand_is_computed(const tcc_sum_operand *o)
{
    return o->value->def != o->read;
}

bool tcc_sum_operand_runs_across(const tcc_sum_operand *o)
{
    const char *last = tcc_access_last(o->read);
    return last && strcmp(last, o->k);
}

bool tcc_sum_operand_is_put(const tcc_space *c, const tcc_sum_operand *o)
{
    bool put = false;
    for (size_t i = 0; i < c->n_sums; i++)
        put |= (c->sums[i].a == o || c->sums[i].b == o) && tcc_sum_operand_is_computed(c->sums[i].b);
    return put && tcc_sum_operand_is_computed(o);
}

bool tcc_contraction_sums_along(const tcc_space *c, const tcc_type *field)
{
    for (size_t i = 0; i < c->n_sums; i++)
        if (tcc_field_has_index(field, c->sums[i].k))
            return true;
    return false;
}
