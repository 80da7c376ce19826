/* amdgcn_tile: tiles in registers: loads and stores.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/amdgcn.h"

/* ---- places in memory -------------------------------------------------------------------- */

/* Where an access goes: bytes from element `rest` of the tile on, the tile being `add` further, of which
 * room[x] along each direction lie in the tensor. */
typedef struct place {
    tcc_held held;
    tcc_value *descriptor, *stride[2], *room[2], *inside; /* inside: as far as other coordinates say; or NULL */
    int64_t add[2];
    int64_t step;     /* elements of one access, neighbours along n */
    bool has[2];      /* the tensor has an index along m, n */
} place;

/* A coordinate is `rest` + a constant, neither of them negative. */
static const tcc_value *split(const tcc_value *v, int64_t *constant)
{
    if (v->def && v->def->code == TCC_OP_arith_add &&
        tcc_value_is_int(v->def->operands[1], constant) && *constant >= 0 &&
        tcc_is_not_negative(v->def->operands[0]))
        return v->def->operands[0];
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

/* Whether two accesses of a tensor have no element in common, or each lane has the same. Of a row or column
 * that all waves load one stores. */
static bool keep_apart(const tcc_op *a, const tcc_op *b, unsigned rank)
{
    const tcc_dim *tile = (is_store(a) ? a->operands[0] : &a->results[0])->type->dims;
    tcc_attr of_a = tcc_attr_list(&a->attrs, "dims"), of_b = tcc_attr_list(&b->attrs, "dims");
    bool one = tile[0].size == 1 || tile[1].size == 1;
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

static bool plan_place(tcc_amdgcn_lowering *l, place *p, const tcc_op *op, const tcc_value *tensor,
                       tcc_value *const *at, const tcc_type *tile)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = tensor->type;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    tcc_value *first = tcc_build_int(&low->b, low->i64, 0);
    int64_t bits = tcc_scalar_bits(t->elem), wide = tcc_attr_int(&op->attrs, "wide", 0) * 8 / bits;
    const tcc_value *column = NULL;
    if (bits < 8) {
        TCC_LOW_REFUSE(low, op, "'%s', of %s, outside the product", tensor->name,
                       tcc_scalar_name(t->elem));
        return false;
    }
    for (int x = 0; x < 2; x++) {
        p->room[x] = tcc_low_c32(low, 1);
        p->stride[x] = tcc_low_c32(low, 0);
    }
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one);
        const tcc_value *index = at[d];
        bool along = false;
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d) {
                along = p->has[x] = true;
                index = split(index, &p->add[x]);
                p->stride[x] =
                    tcc_amdgcn_stride(l, tensor, (int)d, p->add[x] + tile->dims[x].size);
                p->room[x] = tcc_low_extent(low, t->dims[d]);
                p->room[x] = tcc_low_bin(low, TCC_OP_arith_sub, p->room[x],
                                         tcc_low_scalar(low, index));
                if (x == 1 && one)
                    column = at[d];
            }
        first = tcc_amdgcn_add(l, first, tcc_low_scaled(low, tcc_low_scalar(low, index), stride));
        if (!along && !tcc_is_below(at[d], t->dims[d])) {
            tcc_value *end = tcc_low_extent(low, t->dims[d]);
            tcc_value *inside = tcc_low_cmp(low, "lt", tcc_low_scalar(low, index), end);
            p->inside = p->inside ? tcc_amdgcn_and(l, p->inside, inside) : inside;
        }
    }
    p->descriptor = tcc_amdgcn_descriptor(l, tensor, first, NULL);
    p->step = 1;
    const tcc_dim *last = &t->dims[t->rank ? t->rank - 1 : 0];
    bool whole = wide && column && (last->name || last->size % wide == 0);
    int64_t neighbours = tcc_layout_neighbours(&p->held.spread), step = wide < neighbours ? wide : neighbours;
    while (step > 1 && p->held.in_one % step)
        step--;
    if (whole && tcc_is_multiple(column, step, NULL)) {
        p->step = step;
        tcc_low_require_groups(low, tensor, wide * bits / 8);
    }
    return true;
}

/* The offset of a register: outside of every buffer where it is outside the tensor. Where the tensor has no
 * index along the tile's rows or columns, all of them have one place in it: of a store, the tile's first element is
 * there alone, and of the threads that hold the same one stores it. */
static tcc_value *offset_of(tcc_amdgcn_lowering *l, const place *p, int64_t number, bool store)
{
    tcc_lowering *low = &l->low;
    const tcc_spread *s = &p->held.spread;
    tcc_value *offset = NULL, *inside = p->inside;
    for (int d = 0; d < 2; d++) {
        tcc_value *own = tcc_low_own(low, s, d);
        tcc_value *index =
            tcc_low_add(low, own, tcc_digits_place(&s->registers, number, d) + p->add[d]);
        tcc_value *bytes = tcc_amdgcn_mul(l, index, p->stride[d]);
        offset = offset ? tcc_amdgcn_add(l, offset, bytes) : bytes;
        tcc_value *in = tcc_low_cmp(low, "lt", index, p->room[d]);
        inside = inside ? tcc_amdgcn_and(l, inside, in) : in;
        if (store && !p->has[d] && s->extent[d] > 1)
            inside = tcc_amdgcn_and(l, inside, tcc_low_cmp(low, "eq", own, tcc_low_c32(low, 0)));
    }
    if (store)
        inside = tcc_amdgcn_and(l, inside, tcc_low_is_first(low, s));
    return tcc_amdgcn_offset(l, inside, offset);
}

void tcc_amdgcn_tile_load(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = op->results[0].type;
    place p = {.step = 1};
    if (!t->layout && tcc_attr_find(&op->attrs, "panel")) {
        tcc_amdgcn_copy(l, op);
        return;
    }
    if (tcc_attr_find(&op->attrs, "early")) {
        TCC_LOW_REFUSE(low, op, "tile.load from before the tensor");
        return;
    }
    if (!tcc_low_held(low, op, t, &p.held) || !is_ordered(l, op, op->operands[0]) ||
        !plan_place(l, &p, op, op->operands[0], op->operands + 1, t))
        return;
    int64_t all = p.held.spread.n_registers;
    tcc_value **values = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)all);
    tcc_value *zero = tcc_low_c32(low, 0);
    size_t n = 0;
    for (int64_t i = 0; i < all; i += p.step) {
        tcc_value *offset = offset_of(l, &p, i, false);
        values[n++] = TCC_EMIT(&low->b, amdgcn_buffer_load, tcc_low_vec(low, t->elem, p.step),
                               p.descriptor, offset, zero);
    }
    tcc_low_set_registers(low, &op->results[0], &p.held, values);
}

void tcc_amdgcn_tile_store(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_tile_store_operands *o = TCC_VIEW(tile_store, op);
    tcc_scalar elem = o->tensor->type->elem;
    place p = {.step = 1};
    if (!strcmp(tcc_attr_str(&op->attrs, "copy", ""), "tma")) {
        TCC_LOW_REFUSE(low, op, "tile.store by a copy engine");
        return;
    }
    if (!tcc_low_held(low, op, o->a->type, &p.held) || !is_ordered(l, op, o->tensor) ||
        !plan_place(l, &p, op, o->tensor, op->operands + 2, o->a->type))
        return;
    tcc_value *v = NULL, *zero = tcc_low_c32(low, 0);
    for (int64_t i = 0; i < p.held.spread.n_registers; i += p.step) {
        bool is_in = true;
        for (int d = 0; d < 2; d++)
            is_in &= p.has[d] || tcc_digits_place(&p.held.spread.registers, i, d) == 0;
        if (i % p.held.in_one == 0)
            v = NULL;
        if (!is_in)
            continue;
        if (!v)
            v = tcc_low_cast(low, tcc_low_vec(low, elem, p.held.in_one),
                             tcc_low_unpacked(low, o->a, (size_t)(i / p.held.in_one)));
        tcc_value *offset = offset_of(l, &p, i, true);
        TCC_EMIT_V(&low->b, amdgcn_buffer_store, p.descriptor, offset, zero,
                   tcc_low_slice(low, v, i % p.held.in_one, p.step));
    }
}
