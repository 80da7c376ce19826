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

/* Bytes from element `rest` of the tile on, the tile being `add` further, of which room[x] along each
 * direction are in the tensor. */
bool tcc_amdgcn_plan(tcc_lowering *low, tcc_access *a)
{
    tcc_amdgcn_lowering *l = (tcc_amdgcn_lowering *)low;
    const tcc_type *t = a->tensor->type, *tile = (a->op->n_results ? a->op->results : a->op->operands[0])->type;
    tcc_attr dims = tcc_attr_list(&a->op->attrs, "dims");
    tcc_value *first = tcc_build_int(&low->b, low->i64, 0);
    int64_t bits = tcc_scalar_bits(t->elem), wide = tcc_attr_int(&a->op->attrs, "wide", 0) * 8 / bits;
    int64_t least = bits < 8 ? 8 / bits : 1; /* whole bytes */
    const tcc_value *column = NULL;
    if (bits < 8 && !a->op->n_results) {
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
    a->origin = bits < 8 ? tcc_low_rem(low, tcc_low_cast(low, low->i32, first), 2) : NULL;
    const tcc_dim *last = &t->dims[t->rank ? t->rank - 1 : 0];
    bool whole = wide && column && (last->name || last->size % wide == 0);
    int64_t neighbours = tcc_layout_neighbours(&a->held.spread);
    int64_t step = wide < neighbours ? wide : neighbours;
    while (step > 1 && a->held.in_one % step)
        step--;
    whole &= !t->strides || !tcc_low_ends_in_group(low, t, step);
    if (whole && step % least == 0 && tcc_low_is_multiple(low, column, step)) {
        a->step = step;
        a->ends_in_step = tcc_low_ends_in_group(low, t, step);
        tcc_low_require_groups(low, a->tensor, wide * bits / 8);
    }
    a->own[0] = tcc_low_own(low, &a->held.spread, 0);
    a->own[1] = tcc_low_own(low, &a->held.spread, 1);
    return true;
}

/* The offset of a register in bytes, of 4-bit elements in elements, and whether it is inside the tensor. */
static tcc_value *offset_of(tcc_lowering *low, const tcc_access *a, int64_t number, tcc_value **inside)
{
    tcc_amdgcn_lowering *l = (tcc_amdgcn_lowering *)low;
    tcc_value *offset = NULL;
    *inside = a->inside;
    for (int d = 0; d < 2; d++) {
        int64_t place = tcc_digits_place(&a->held.spread.registers, number, d);
        tcc_value *index = tcc_low_add(low, a->own[d], place + a->add[d]);
        tcc_value *bytes = tcc_amdgcn_mul(l, index, a->stride[d]);
        offset = offset ? tcc_amdgcn_add(l, offset, bytes) : bytes;
        *inside = tcc_amdgcn_and(l, *inside, tcc_low_cmp(low, "lt", index, a->room[d]));
    }
    return offset;
}

/* 4-bit elements, one or whole bytes of them. */
static tcc_value *load_halves(tcc_lowering *low, const tcc_access *a, tcc_value *offset, tcc_value *inside)
{
    tcc_amdgcn_lowering *l = (tcc_amdgcn_lowering *)low;
    tcc_scalar elem = a->op->results[0].type->elem;
    offset = tcc_amdgcn_add(l, offset, a->origin);
    if (a->step == 1) {
        tcc_value *half = tcc_low_cast(low, tcc_type_scalar(low->ir, elem),
                                       tcc_amdgcn_load_half(l, a->base, offset, inside));
        return tcc_low_pack(low, elem, 1, &half, 1);
    }
    offset = tcc_amdgcn_offset(l, inside, tcc_low_div(low, offset, 2));
    tcc_value *bytes = TCC_EMIT(&low->b, amdgcn_buffer_load, tcc_low_vec(low, TCC_u8, a->step / 2), a->base, offset,
                                tcc_low_c32(low, 0));
    return TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, elem, a->step), bytes);
}

static tcc_value *load_elements(tcc_lowering *low, const tcc_access *a, tcc_value *offset, tcc_value *inside)
{
    const tcc_type *type = tcc_low_vec(low, a->op->results[0].type->elem, a->step);
    offset = tcc_amdgcn_offset((tcc_amdgcn_lowering *)low, inside, offset);
    return TCC_EMIT(&low->b, amdgcn_buffer_load, type, a->base, offset, tcc_low_c32(low, 0));
}

tcc_value *tcc_amdgcn_load_registers(tcc_lowering *low, const tcc_access *a, int64_t number)
{
    tcc_value *inside, *offset = offset_of(low, a, number, &inside);
    tcc_value *v = a->origin ? load_halves(low, a, offset, inside) : load_elements(low, a, offset, inside);
    if (!a->ends_in_step)
        return v;
    int64_t place = tcc_digits_place(&a->held.spread.registers, number, 1);
    return tcc_low_clear_padding(low, v, tcc_low_add(low, a->own[1], place + a->add[1]), a->room[1]);
}

void tcc_amdgcn_store_registers(tcc_lowering *low, const tcc_access *a, int64_t number, tcc_value *v)
{
    tcc_value *inside, *offset = offset_of(low, a, number, &inside);
    offset = tcc_amdgcn_offset((tcc_amdgcn_lowering *)low, inside, offset);
    tcc_value *zero = tcc_low_c32(low, 0);
    TCC_EMIT_V(&low->b, amdgcn_buffer_store, a->base, offset, zero, tcc_low_stored(low, a, number, v));
}

/* In bytes, of 4-bit elements in elements. What lanes add to the first place is within a buffer's reach: the launch
 * requires it of the dimensions that vary. */
void tcc_amdgcn_locate(tcc_lowering *low, tcc_gather *g)
{
    tcc_amdgcn_lowering *l = (tcc_amdgcn_lowering *)low;
    const tcc_type *t = g->tensor->type;
    tcc_value *first = tcc_build_int(&low->b, low->i64, 0);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        if (g->varies[d])
            g->stride[d] = tcc_amdgcn_stride(l, g->tensor, (int)d, TCC_WHOLE);
        else
            first = tcc_amdgcn_add(l, first, tcc_low_scaled(low, g->first[d], tcc_low_stride(low, t, (int)d, &one)));
    }
    g->base = tcc_amdgcn_descriptor(l, g->tensor, first, NULL);
    g->origin = tcc_low_c32(low, 0);
    if (tcc_scalar_bits(t->elem) < 8)
        g->origin = tcc_low_rem(low, tcc_low_cast(low, low->i32, first), 2);
}

tcc_value *tcc_amdgcn_load_one(tcc_lowering *low, const tcc_gather *g, tcc_value *offset, tcc_value *inside)
{
    tcc_amdgcn_lowering *l = (tcc_amdgcn_lowering *)low;
    tcc_scalar elem = g->tensor->type->elem;
    if (tcc_scalar_bits(elem) < 8)
        return tcc_low_cast(low, tcc_type_scalar(low->ir, elem), tcc_amdgcn_load_half(l, g->base, offset, inside));
    offset = tcc_amdgcn_offset(l, inside, offset);
    return TCC_EMIT(&low->b, amdgcn_buffer_load, tcc_low_vec(low, elem, 1), g->base, offset, tcc_low_c32(low, 0));
}

void tcc_amdgcn_tile_load(tcc_amdgcn_lowering *l, tcc_op *op)
{
    if (!op->results[0].type->layout && tcc_attr_find(&op->attrs, "panel"))
        tcc_amdgcn_copy(l, op);
    else
        tcc_low_load(&l->low, op);
}
