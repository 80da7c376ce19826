/* amdgcn_tile: tiles in registers: loads and stores.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/amdgcn.h"
#include "passes/loops.h"

/* ---- places in memory -------------------------------------------------------------------- */

/* A coordinate is `rest` + a constant, neither of them negative. */
static tcc_value *split(tcc_value *v, int64_t *constant)
{
    tcc_value *rest = tcc_low_split(v, constant);
    if (*constant >= 0 && tcc_is_not_negative(rest))
        return rest;
    *constant = 0;
    return v;
}

/* Of an access, as far as others of the tensor want to know: where it begins, at base + factor * varying +
 * first, and how long it is. */
typedef struct extent {
    const tcc_value *base, *varying;
    int64_t factor, first, size;
} extent;

static bool is_store(const tcc_op *op)
{
    return op->code == TCC_OP_tile_store;
}

static extent extent_along(const tcc_op *op, unsigned d)
{
    const tcc_dim *tile = (is_store(op) ? op->operands[0] : &op->results[0])->type->dims;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    extent e = {.factor = 1, .size = 1};
    e.varying = split(op->operands[1 + is_store(op) + d], &e.first);
    if (e.varying->def && e.varying->def->code == TCC_OP_arith_add) {
        e.base = e.varying->def->operands[0];
        e.varying = e.varying->def->operands[1];
    }
    if (e.varying->def && e.varying->def->code == TCC_OP_arith_mul &&
        tcc_value_is_int(e.varying->def->operands[1], &e.factor))
        e.varying = e.varying->def->operands[0];
    for (int x = 0; x < 2; x++)
        if (dims.list.items[x].i == (int64_t)d)
            e.size = tile[x].size;
    return e;
}

static bool begin_alike(const extent *x, const extent *y)
{
    return x->base == y->base && x->varying == y->varying && x->factor == y->factor;
}

static bool are_apart(const extent *x, const extent *y)
{
    return x->first + x->size <= y->first || y->first + y->size <= x->first;
}

/* Whether every element of a tile is in one register of one lane. */
static bool is_held_once(const tcc_type *tile)
{
    tcc_spread s;
    return tcc_layout_spread(tile, &s) &&
           s.n_registers * s.n_lanes * s.n_warps == tile->dims[0].size * tile->dims[1].size;
}

/* Whether two accesses of a tensor have no element in common, or each lane has the same. Of a row or column
 * that all waves load one stores. */
static bool keep_apart(const tcc_op *a, const tcc_op *b, unsigned rank)
{
    const tcc_type *type = (is_store(a) ? a->operands[0] : &a->results[0])->type;
    const tcc_dim *tile = type->dims;
    tcc_attr of_a = tcc_attr_list(&a->attrs, "dims"), of_b = tcc_attr_list(&b->attrs, "dims");
    bool one = (tile[0].size == 1 || tile[1].size == 1) && !is_held_once(type);
    bool same = tcc_attr_equal(&of_a, &of_b) && (!one || is_store(a) == is_store(b));
    for (unsigned d = 0; d < rank; d++) {
        extent x = extent_along(a, d), y = extent_along(b, d);
        bool alike = begin_alike(&x, &y);
        if (alike && are_apart(&x, &y))
            return true;
        same &= alike && x.first == y.first && x.size == y.size;
    }
    return same;
}

static bool stays(const extent *x, const tcc_op *loop)
{
    return (!x->base || tcc_is_invariant(x->base, loop)) && tcc_is_invariant(x->varying, loop);
}

/* How far an access moves from one iteration of a loop to the next; 0: that is not known. */
static int64_t moves(const extent *x, const tcc_op *loop)
{
    int64_t step;
    bool known = x->varying == loop->regions[0]->args[0] && x->factor > 0 &&
                 (!x->base || tcc_is_invariant(x->base, loop)) &&
                 tcc_value_is_int(loop->operands[2], &step);
    return known ? x->factor * step : 0;
}

/* The same of accesses in different iterations of a loop around both. */
static bool keep_apart_in(const tcc_op *loop, const tcc_op *a, const tcc_op *b, unsigned rank)
{
    bool stay = true;
    for (unsigned d = 0; d < rank; d++) {
        extent x = extent_along(a, d), y = extent_along(b, d);
        int64_t first = x.first < y.first ? x.first : y.first;
        int64_t end = x.first + x.size > y.first + y.size ? x.first + x.size : y.first + y.size;
        bool alike = begin_alike(&x, &y), still = stays(&x, loop) && stays(&y, loop);
        if (alike && (still ? are_apart(&x, &y) : end - first <= moves(&x, loop)))
            return true;
        stay &= still;
    }
    return stay && keep_apart(a, b, rank);
}

/* Waves are at different places: what one stores another may store, load or have loaded. Whether two
 * accesses, one of which is a store, have nothing to do with that. */
static bool are_ordered(const tcc_op *a, const tcc_op *b, unsigned rank)
{
    if (!keep_apart(a, b, rank))
        return false;
    for (const tcc_op *loop = a->block->parent; loop; loop = loop->block->parent)
        if (tcc_is_loop(loop) && tcc_ancestor_in((tcc_op *)b, loop->regions[0]) &&
            !keep_apart_in(loop, a, b, rank))
            return false;
    return true;
}

/* False, refused, where what others access is not ordered. */
static bool is_ordered(tcc_amdgcn_lowering *l, const tcc_op *op, const tcc_value *tensor)
{
    TCC_PUSH(l->low.ctx->scratch, &l->accesses, op);
    for (size_t i = 0; i < l->accesses.len; i++) {
        const tcc_op *before = l->accesses.data[i];
        bool stored = is_store(before);
        if (before->operands[stored] != tensor || !(is_store(op) || stored) ||
            are_ordered(before, op, tensor->type->rank))
            continue;
        TCC_LOW_REFUSE(&l->low, op, "an access of elements of '%s' that may have been %s before",
                       tensor->name, stored ? "stored" : "loaded");
        return false;
    }
    return true;
}

/* Bytes from element `rest` of the tile on, the tile being `add` further, of which room[x] along each
 * direction lie in the tensor. */
bool tcc_amdgcn_plan(tcc_lowering *low, tcc_access *a)
{
    tcc_amdgcn_lowering *l = (tcc_amdgcn_lowering *)low;
    const tcc_type *t = a->tensor->type, *tile = (is_store(a->op) ? a->op->operands[0] : a->op->results)->type;
    tcc_attr dims = tcc_attr_list(&a->op->attrs, "dims");
    if (!is_ordered(l, a->op, a->tensor))
        return false;
    tcc_value *first = tcc_build_int(&low->b, low->i64, 0);
    int64_t bits = tcc_scalar_bits(t->elem), wide = tcc_attr_int(&a->op->attrs, "wide", 0) * 8 / bits;
    const tcc_value *column = NULL;
    if (bits < 8) {
        TCC_LOW_REFUSE(low, a->op, "'%s', of %s, outside the product", a->tensor->name,
                       tcc_scalar_name(t->elem));
        return false;
    }
    a->inside = tcc_build_int(&low->b, low->i1, 1);
    for (int x = 0; x < 2; x++) {
        a->room[x] = tcc_low_c32(low, 1);
        a->stride[x] = tcc_low_c32(low, 0);
    }
    for (unsigned d = 0; d < t->rank; d++) {
        bool one, along = false;
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one), *index = a->at[d];
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d) {
                along = a->has[x] = true;
                index = split(index, &a->add[x]);
                a->stride[x] =
                    tcc_amdgcn_stride(l, a->tensor, (int)d, a->add[x] + tile->dims[x].size);
                a->room[x] = tcc_low_extent(low, t->dims[d]);
                a->room[x] = tcc_low_bin(low, TCC_OP_arith_sub, a->room[x],
                                         tcc_low_scalar(low, index));
                if (x == 1 && one)
                    column = a->at[d];
            }
        first = tcc_amdgcn_add(l, first, tcc_low_scaled(low, tcc_low_scalar(low, index), stride));
        if (!along && !tcc_is_below(a->at[d], t->dims[d])) {
            tcc_value *end = tcc_low_extent(low, t->dims[d]);
            a->inside = tcc_amdgcn_and(l, a->inside,
                                       tcc_low_cmp(low, "lt", tcc_low_scalar(low, index), end));
        }
    }
    a->base = tcc_amdgcn_descriptor(l, a->tensor, first, NULL);
    const tcc_dim *last = &t->dims[t->rank ? t->rank - 1 : 0];
    bool whole = wide && column && (last->name || last->size % wide == 0);
    int64_t neighbours = tcc_layout_neighbours(&a->held.spread);
    int64_t step = wide < neighbours ? wide : neighbours;
    while (step > 1 && a->held.in_one % step)
        step--;
    if (whole && tcc_is_multiple(column, step, NULL)) {
        a->step = step;
        tcc_low_require_groups(low, a->tensor, wide * bits / 8);
    }
    a->own[0] = tcc_low_own(low, &a->held.spread, 0);
    a->own[1] = tcc_low_own(low, &a->held.spread, 1);
    return true;
}

/* The offset of a register: outside of every buffer where it is outside the tensor. */
static tcc_value *offset_of(tcc_lowering *low, const tcc_access *a, int64_t number)
{
    tcc_amdgcn_lowering *l = (tcc_amdgcn_lowering *)low;
    tcc_value *offset = NULL, *inside = a->inside;
    for (int d = 0; d < 2; d++) {
        int64_t place = tcc_digits_place(&a->held.spread.registers, number, d);
        tcc_value *index = tcc_low_add(low, a->own[d], place + a->add[d]);
        tcc_value *bytes = tcc_amdgcn_mul(l, index, a->stride[d]);
        offset = offset ? tcc_amdgcn_add(l, offset, bytes) : bytes;
        inside = tcc_amdgcn_and(l, inside, tcc_low_cmp(low, "lt", index, a->room[d]));
    }
    return tcc_amdgcn_offset(l, inside, offset);
}

tcc_value *tcc_amdgcn_load_registers(tcc_lowering *low, const tcc_access *a, int64_t number)
{
    const tcc_type *type = tcc_low_vec(low, a->op->results[0].type->elem, a->step);
    tcc_value *zero = tcc_low_c32(low, 0), *offset = offset_of(low, a, number);
    return TCC_EMIT(&low->b, amdgcn_buffer_load, type, a->base, offset, zero);
}

void tcc_amdgcn_store_registers(tcc_lowering *low, const tcc_access *a, int64_t number, tcc_value *v)
{
    tcc_value *zero = tcc_low_c32(low, 0), *offset = offset_of(low, a, number);
    TCC_EMIT_V(&low->b, amdgcn_buffer_store, a->base, offset, zero,
               tcc_low_stored(low, a, number, v));
}

void tcc_amdgcn_tile_load(tcc_amdgcn_lowering *l, tcc_op *op)
{
    if (!op->results[0].type->layout && tcc_attr_find(&op->attrs, "panel"))
        tcc_amdgcn_copy(l, op);
    else
        tcc_low_load(&l->low, op);
}
