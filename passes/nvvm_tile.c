/* nvvm_tile: tiles in registers: how warps hold them, loads and stores.
 *
 * What a thread holds of a tile its layout says (ir/layout.h); its registers are one vec, and every op
 * works on them in order.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

#include <string.h>

/* ---- what a thread holds ------------------------------------------------------------------- */

const tcc_type *tcc_hold_by_warpgroups(tcc_ir *ir, const tcc_type *t, const tcc_op *role, tcc_hold_as as)
{
    const tcc_fragment_id fragment = as == TCC_AS_A ? TCC_FRAGMENT_wgmma_a : TCC_FRAGMENT_wgmma_d;
    const tcc_fragment *f = &tcc_fragments[fragment];
    int64_t warps = tcc_attr_int(&role->attrs, "warps", 0);
    int64_t warpgroups = warps / TCC_WARPGROUP_WARPS, rows = f->rows * warpgroups;
    if (t->rank != 2 || !warpgroups || warps % TCC_WARPGROUP_WARPS)
        return NULL;
    int64_t m = t->dims[0].size, n = t->dims[1].size;
    if ((m != 1 && m % rows) || (n != 1 && n % f->cols))
        return NULL;
    return tcc_layout_repeated(ir, t, fragment, 3,
                               (tcc_repeat[]){{1, TCC_IN_REGISTERS, n / f->cols},
                                              {0, TCC_IN_WARPS, warpgroups},
                                              {0, TCC_IN_REGISTERS, m / rows}});
}

/* All registers are one vec. */
static bool cut(tcc_lowering *low, const tcc_type *tile, tcc_held *held)
{
    const tcc_nvvm_lowering *l = (tcc_nvvm_lowering *)low;
    held->n = 1;
    held->in_one = held->spread.n_registers;
    held->each = tcc_low_vec(low, tile->elem, held->in_one);
    return l->role.first_warp % TCC_WARPGROUP_WARPS == 0;
}

tcc_value *tcc_nvvm_warpgroup(tcc_nvvm_lowering *l)
{
    tcc_value *number = tcc_low_div(&l->low, l->warp, TCC_WARPGROUP_WARPS);
    return tcc_low_add(&l->low, number, -(l->role.first_warp / TCC_WARPGROUP_WARPS));
}

static tcc_value *warp_of(tcc_lowering *low)
{
    const tcc_nvvm_lowering *l = (tcc_nvvm_lowering *)low;
    return tcc_low_add(low, l->warp, -l->role.first_warp);
}

static tcc_value *lane_of(tcc_lowering *low)
{
    return tcc_low_rem(low, ((tcc_nvvm_lowering *)low)->tid, TCC_WARP_LANES);
}

static tcc_value *shuffle(tcc_lowering *low, tcc_value *v, tcc_value *lane, const char *kind)
{
    tcc_value *r = TCC_EMIT(&low->b, nvvm_shfl, v->type, v, lane);
    tcc_attr_set_str(low->ir, &r->def->attrs, "kind", kind);
    return r;
}

static tcc_value *from_lane(tcc_lowering *low, tcc_value *v, tcc_value *lane)
{
    return shuffle(low, v, lane, "idx");
}

static tcc_value *from_xor(tcc_lowering *low, tcc_value *v, int64_t mask)
{
    return shuffle(low, v, tcc_low_c32(low, mask), "bfly");
}

static void lower_block(tcc_lowering *low, tcc_block *block)
{
    tcc_nvvm_block((tcc_nvvm_lowering *)low, block);
}

const tcc_low_vendor tcc_low_nvvm = {.name = "lower-to-nvvm",
                                     .warps = "warps",
                                     .cta = TCC_OP_nvvm_ctaid,
                                     .block = lower_block,
                                     .cut = cut,
                                     .warp = warp_of,
                                     .lane = lane_of,
                                     .from_lane = from_lane,
                                     .from_xor = from_xor};

/* ---- places in memory --------------------------------------------------------------------- */

/* Where an access goes: element (r, c) of the tile is at base + origin + (r + add[0]) * stride[0] +
 * (c + add[1]) * stride[1], and is inside the tensor while r + add[0] < room[0] and
 * c + add[1] < room[1]. The thread's own column is in origin and room already. */
typedef struct place {
    tcc_spread held;
    tcc_value *own[2]; /* the thread's first row and column */
    tcc_value *base, *origin, *stride[2], *room[2];
    tcc_value *inside; /* as far as the tile's coordinates alone say */
    int64_t add[2];  /* what the coordinates add, as constants, to what is shared by many accesses */
    bool contiguous; /* stride[1] is 1 */
    bool pairs;      /* two neighbouring columns are one aligned access */
} place;

/* A coordinate is `rest` + a constant. */
static tcc_value *split(tcc_value *v, int64_t *constant)
{
    *constant = 0;
    if (v->def && v->def->code == TCC_OP_arith_add &&
        tcc_value_is_int(v->def->operands[1], constant))
        return v->def->operands[0];
    return v;
}

static place plan_place(tcc_nvvm_lowering *l, const tcc_op *op, const tcc_value *tensor,
                        tcc_value *const *at, const tcc_spread *held)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = tensor->type;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    place p = {.held = *held, .base = tcc_low_pointer(low, tensor)};
    p.own[0] = tcc_low_own(low, held, 0);
    p.own[1] = tcc_low_own(low, held, 1);
    bool even = t->rank && (t->dims[t->rank - 1].name || t->dims[t->rank - 1].size % 2 == 0);
    p.origin = tcc_build_int(&low->b, low->i64, 0);
    p.inside = tcc_build_int(&low->b, low->i1, 1);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one, known = tcc_is_below(at[d], t->dims[d]);
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one), *first = tcc_low_scalar(low, at[d]);
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d) {
                known = true; /* its room says it */
                first = tcc_low_scalar(low, split(at[d], &p.add[x]));
                p.stride[x] = stride;
                p.room[x] = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_extent(low, t->dims[d]),
                                        first);
                p.contiguous |= x == 1 && one;
                even &= x != 1 || tcc_is_multiple(at[d], 2, NULL);
            }
        p.origin = tcc_low_bin(low, TCC_OP_arith_add, p.origin, tcc_low_scaled(low, first, stride));
        if (!known)
            p.inside = tcc_low_bin(low, TCC_OP_arith_and, p.inside,
                                   tcc_low_cmp(low, "lt", first, tcc_low_extent(low, t->dims[d])));
    }
    for (int x = 0; x < 2; x++) /* no index along this direction: one element */
        if (!p.room[x])
            p.room[x] = tcc_low_c32(low, 1);
    if (held->extent[1] > 1) { /* count columns from the thread's own */
        p.room[1] = tcc_low_bin(low, TCC_OP_arith_sub, p.room[1], p.own[1]);
        if (p.stride[1])
            p.origin = tcc_low_bin(low, TCC_OP_arith_add, p.origin,
                                   tcc_low_scaled(low, p.own[1], p.stride[1]));
    }
    p.pairs = p.contiguous && even && tcc_layout_register(held, 0, 1) == 1 &&
              tcc_attr_int(&op->attrs, "pairs", 0);
    if (p.pairs)
        tcc_low_require_groups(low, tensor, 2 * (tcc_scalar_bits(t->elem) / 8));
    return p;
}

typedef struct spot {
    tcc_value *offset, *inside;
    int64_t disp;
} spot;

/* Of a register. */
static spot spot_of(tcc_nvvm_lowering *l, const place *p, int64_t number)
{
    tcc_lowering *low = &l->low;
    spot s = {p->origin, p->inside, 0};
    if (p->held.extent[0] > 1 || p->stride[0]) {
        tcc_value *row = tcc_low_add(low, p->own[0], p->add[0] + tcc_digits_place(&p->held.registers,
                                                                                  number, 0));
        if (p->stride[0])
            s.offset = tcc_low_bin(low, TCC_OP_arith_add, s.offset,
                                   tcc_low_scaled(low, row, p->stride[0]));
        s.inside = tcc_low_bin(low, TCC_OP_arith_and, s.inside,
                               tcc_low_cmp(low, "lt", row, p->room[0]));
    }
    if (p->held.extent[1] > 1 || p->stride[1]) {
        int64_t col = p->add[1] + tcc_digits_place(&p->held.registers, number, 1);
        tcc_value *c = tcc_low_c32(low, col);
        if (!p->contiguous && p->stride[1])
            s.offset = tcc_low_bin(low, TCC_OP_arith_add, s.offset,
                                   tcc_low_scaled(low, c, p->stride[1]));
        else if (p->contiguous)
            s.disp = col;
        s.inside = tcc_low_bin(low, TCC_OP_arith_and, s.inside,
                               tcc_low_cmp(low, "gt", p->room[1], c));
    }
    return s;
}

static void set_access(tcc_nvvm_lowering *l, tcc_op *op, const place *p, const spot *s,
                       tcc_scalar elem)
{
    if (p->pairs)
        tcc_attr_set_int(l->low.ir, &op->attrs, "align", tcc_scalar_bits(elem) / 4);
    if (s->disp)
        tcc_attr_set_int(l->low.ir, &op->attrs, "disp", s->disp);
}

/* ---- loads and stores ---------------------------------------------------------------------- */

void tcc_nvvm_load(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_tile_load_operands *o = TCC_VIEW(tile_load, op);
    tcc_held held;
    if (tcc_attr_find(&op->attrs, "early")) {
        TCC_LOW_REFUSE(low, op, "tile.load from before the tensor");
        return;
    }
    if (!tcc_low_held(low, op, op->results[0].type, &held))
        return;
    place p = plan_place(l, op, o->tensor, op->operands + 1, &held.spread);
    tcc_scalar elem = op->results[0].type->elem;
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)held.in_one);
    size_t n = 0;
    for (int64_t i = 0; i < held.in_one; i += 1 + p.pairs) {
        spot s = spot_of(l, &p, i);
        parts[n] = TCC_EMIT(&low->b, nvvm_ld_global, tcc_low_vec(low, elem, 1 + p.pairs), p.base,
                            s.offset, s.inside);
        set_access(l, parts[n++]->def, &p, &s, elem);
    }
    tcc_low_set_registers(low, &op->results[0], &held, parts);
}

/* Of the threads that hold the same one stores it; and where the tensor has no index along the tile's rows
 * or columns, only the tile's first element in that direction is in it. */
static tcc_value *who_stores(tcc_nvvm_lowering *l, const place *p)
{
    tcc_lowering *low = &l->low;
    tcc_value *who = tcc_low_is_first(low, &p->held);
    for (int x = 0; x < 2; x++)
        if (!p->stride[x] && p->held.extent[x] > 1)
            who = tcc_low_bin(low, TCC_OP_arith_and, who,
                              tcc_low_cmp(low, "eq", p->own[x], tcc_low_c32(low, 0)));
    return who;
}

void tcc_nvvm_store(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_tile_store_operands *o = TCC_VIEW(tile_store, op);
    tcc_held held;
    if (!strcmp(tcc_attr_str(&op->attrs, "copy", ""), "tma")) {
        TCC_LOW_REFUSE(low, op, "tile.store by the copy engine from registers");
        return;
    }
    if (!tcc_low_held(low, op, o->a->type, &held))
        return;
    place p = plan_place(l, op, o->tensor, op->operands + 2, &held.spread);
    p.inside = tcc_low_bin(low, TCC_OP_arith_and, p.inside, who_stores(l, &p));
    tcc_scalar elem = o->tensor->type->elem;
    tcc_value *v = tcc_low_cast(low, tcc_low_vec(low, elem, held.in_one), tcc_low_parts(low, o->a)->values[0]);
    for (int64_t i = 0; i < held.in_one; i += 1 + p.pairs) {
        bool is_in = true;
        for (int x = 0; x < 2; x++)
            is_in &= p.stride[x] || tcc_digits_place(&held.spread.registers, i, x) == 0;
        if (!is_in)
            continue;
        spot s = spot_of(l, &p, i);
        tcc_op *st = TCC_EMIT_V(&low->b, nvvm_st_global, p.base, s.offset, s.inside,
                                tcc_low_slice(low, v, i, 1 + p.pairs));
        set_access(l, st, &p, &s, elem);
    }
}
