/* nvvm_tile: tiles in registers: parts of them, elementwise ops, loads and stores.
 *
 * What a thread holds of a tile its layout says (ir/layout.h); its registers are one vec, and every op
 * works on them in order.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

#include <string.h>

/* ---- what a thread holds ------------------------------------------------------------------- */

const tcc_type *tcc_hold_by_warpgroups(tcc_ir *ir, const tcc_type *t, const tcc_op *role,
                                       bool as_operand)
{
    const tcc_fragment_id fragment = as_operand ? TCC_FRAGMENT_wgmma_a : TCC_FRAGMENT_wgmma_d;
    const tcc_fragment *f = &tcc_fragments[fragment];
    int64_t warps = tcc_attr_int(&role->attrs, "warps", 0);
    int64_t warpgroups = warps / TCC_WARPGROUP_WARPS, rows = f->rows * warpgroups;
    if (t->rank != 2 || !warpgroups || warps % TCC_WARPGROUP_WARPS)
        return NULL;
    int64_t m = t->dims[0].size, n = t->dims[1].size;
    if ((m != 1 && m % rows) || (n != 1 && n % f->cols))
        return NULL;
    const tcc_repeat all[] = {{1, false, n / f->cols}, {0, true, warpgroups}, {0, false, m / rows}};
    tcc_repeat repeats[3];
    unsigned count = 0;
    for (int i = 0; i < 3; i++)
        if (all[i].n > 1)
            repeats[count++] = all[i];
    return tcc_type_with_repeats(ir, t, tcc_layout_of_fragment(fragment), count, repeats);
}

bool tcc_nvvm_held(tcc_nvvm_lowering *l, const tcc_op *user, const tcc_type *tile, tcc_spread *s)
{
    bool whole = l->role.first_warp % TCC_WARPGROUP_WARPS == 0;
    if (whole && tcc_layout_spread(tile, s) && s->n_lanes == TCC_WARP_LANES &&
        s->n_warps == l->role.warps)
        return true;
    tcc_str text = {0};
    tcc_type_print(&text, tile);
    TCC_LOW_REFUSE(&l->low, user, "%s in the registers of %lld warps", tcc_str_text(&text),
                   (long long)l->role.warps);
    tcc_str_free(&text);
    return false;
}

const tcc_type *tcc_nvvm_held_type(tcc_nvvm_lowering *l, const tcc_op *user, const tcc_type *tile)
{
    tcc_spread s;
    return tcc_nvvm_held(l, user, tile, &s) ? tcc_low_vec(&l->low, tile->elem, s.n_registers) : NULL;
}

tcc_value *tcc_nvvm_warpgroup(tcc_nvvm_lowering *l)
{
    tcc_value *number = tcc_low_div(&l->low, l->warp, TCC_WARPGROUP_WARPS);
    return tcc_low_add(&l->low, number, -(l->role.first_warp / TCC_WARPGROUP_WARPS));
}

tcc_value *tcc_nvvm_warp(tcc_nvvm_lowering *l)
{
    return tcc_low_add(&l->low, l->warp, -l->role.first_warp);
}

tcc_value *tcc_nvvm_lane(tcc_nvvm_lowering *l)
{
    return tcc_low_rem(&l->low, l->tid, TCC_WARP_LANES);
}

tcc_value *tcc_nvvm_own(tcc_nvvm_lowering *l, const tcc_spread *s, int dim)
{
    tcc_value *of_warp = tcc_low_digits(&l->low, &s->warps, tcc_nvvm_warp(l), dim);
    return tcc_low_bin(&l->low, TCC_OP_arith_add, of_warp,
                       tcc_low_digits(&l->low, &s->lanes, tcc_nvvm_lane(l), dim));
}

/* ---- values ------------------------------------------------------------------------------- */

static tcc_value *lowered(tcc_nvvm_lowering *l, const tcc_value *v)
{
    return tcc_value_map_get(l->low.map, (tcc_value *)v);
}

void tcc_nvvm_tile_op(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_type *type = tcc_nvvm_held_type(l, op, op->results[0].type);
    tcc_value *operands[3];
    if (!type)
        return;
    for (unsigned i = 0; i < op->n_operands; i++)
        operands[i] = lowered(l, op->operands[i]);
    tcc_value_map_set(l->low.map, &op->results[0],
                      tcc_low_elementwise(&l->low, op, operands, tcc_type_count(type)));
}

/* Where each lane has what it needs for one register: in which lane, in which register there. */
typedef struct sources {
    int64_t lane[TCC_WARP_LANES], number[TCC_WARP_LANES];
} sources;

static bool find_sources(const tcc_spread *from, const tcc_spread *to, int64_t number, sources *s)
{
    for (int64_t lane = 0; lane < TCC_WARP_LANES; lane++) {
        int64_t place[2], at = -1;
        for (int d = 0; d < 2; d++)
            place[d] = tcc_digits_place(&to->registers, number, d) +
                       tcc_digits_place(&to->lanes, lane, d);
        for (int64_t i = 0; i < TCC_WARP_LANES && at < 0; i++) {
            int64_t other = lane ^ i; /* of those that hold the same, so that they follow from bits */
            at = tcc_layout_register(from, place[0] - tcc_digits_place(&from->lanes, other, 0),
                                     place[1] - tcc_digits_place(&from->lanes, other, 1));
            s->lane[lane] = other;
        }
        s->number[lane] = at;
        if (at < 0)
            return false;
    }
    return true;
}

/* The lane from which each takes it, exclusive-ored of what the bits of its own number stand for; NULL where it
 * is not so simple. */
static tcc_value *source_lane(tcc_nvvm_lowering *l, const sources *s)
{
    tcc_lowering *low = &l->low;
    tcc_value *r = tcc_low_c32(low, s->lane[0]);
    for (int64_t lane = 0; lane < TCC_WARP_LANES; lane++) {
        int64_t sum = s->lane[0];
        for (int64_t bit = 1; bit < TCC_WARP_LANES; bit *= 2)
            sum ^= lane & bit ? s->lane[bit] ^ s->lane[0] : 0;
        if (sum != s->lane[lane])
            return NULL;
    }
    for (unsigned b = 0; 1 << b < TCC_WARP_LANES; b++)
        if (s->lane[1 << b] != s->lane[0]) {
            tcc_value *bit = tcc_low_rem(low, tcc_low_div(low, tcc_nvvm_lane(l), 1 << b), 2);
            tcc_value *adds = tcc_low_mul(low, bit, s->lane[1 << b] ^ s->lane[0]);
            r = tcc_low_bin(low, TCC_OP_arith_xor, r, adds);
        }
    return r;
}

/* Each register that some lane takes is sent by itself; then every lane chooses its own. */
static tcc_value *exchange(tcc_nvvm_lowering *l, tcc_value *v, const sources *s, tcc_value *lane)
{
    tcc_lowering *low = &l->low;
    tcc_value *r = NULL;
    uint32_t done = 0;
    for (int64_t i = 0; i < TCC_WARP_LANES; i++) {
        uint32_t takers = 0;
        for (int64_t k = 0; k < TCC_WARP_LANES; k++)
            takers |= s->number[k] == s->number[i] ? 1u << k : 0;
        if (done & takers)
            continue;
        done |= takers;
        tcc_value *own = tcc_low_extract(low, v, s->number[i]);
        tcc_value *sent = TCC_EMIT(&low->b, nvvm_shfl, own->type, own, lane);
        tcc_attr_set_str(low->ir, &sent->def->attrs, "kind", "idx");
        if (!r) {
            r = sent;
            continue;
        }
        tcc_value *mask = tcc_low_c32(low, (int32_t)takers);
        tcc_value *bit = tcc_low_bin(low, TCC_OP_arith_shr, mask, tcc_nvvm_lane(l));
        bit = tcc_low_bin_const(low, TCC_OP_arith_and, bit, 1);
        tcc_value *takes = tcc_low_cmp(low, "ne", bit, tcc_low_c32(low, 0));
        r = TCC_EMIT(&low->b, arith_select, r->type, takes, sent, r);
    }
    return r;
}

/* Every lane takes what it needs from one of its warp; NULL where that does not do. */
static tcc_value *shuffle(tcc_nvvm_lowering *l, const tcc_spread *from, tcc_value *v,
                          const tcc_spread *to)
{
    tcc_value **parts = TCC_NEW_ARRAY(l->low.ctx->scratch, tcc_value *, (size_t)to->n_registers);
    for (int d = 0; d < 2; d++)
        for (int64_t w = 0; w < to->n_warps; w++)
            if (tcc_digits_place(&from->warps, w, d) != tcc_digits_place(&to->warps, w, d))
                return NULL;
    for (int64_t i = 0; i < to->n_registers; i++) {
        sources s;
        tcc_value *lane = find_sources(from, to, i, &s) ? source_lane(l, &s) : NULL;
        if (!lane)
            return NULL;
        parts[i] = exchange(l, v, &s, lane);
    }
    return tcc_low_pack(&l->low, v->type->elem, (size_t)to->n_registers, parts, to->n_registers);
}

/* op's result is its operand from row at[0] and column at[1] on. */
static void regroup(tcc_nvvm_lowering *l, tcc_op *op, const int64_t at[2])
{
    tcc_spread from, to;
    if (!tcc_nvvm_held(l, op, op->operands[0]->type, &from) ||
        !tcc_nvvm_held(l, op, op->results[0].type, &to))
        return;
    tcc_value *v = lowered(l, op->operands[0]);
    tcc_value *r = tcc_low_regroup(&l->low, &from, v, &to, at);
    if (!r && op->code == TCC_OP_tile_convert && tcc_scalar_bits(v->type->elem) == 32)
        r = shuffle(l, &from, v, &to);
    if (r)
        tcc_value_map_set(l->low.map, &op->results[0], r);
    else
        TCC_LOW_REFUSE(&l->low, op, "%s from thread to thread", tcc_op_info_get(op->code)->name);
}

void tcc_nvvm_slice(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_attr *at = tcc_attr_list(&op->attrs, "at").list.items;
    regroup(l, op, (int64_t[]){at[0].i, at[1].i});
}

void tcc_nvvm_rotate(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_attr *by = tcc_attr_list(&op->attrs, "by").list.items;
    regroup(l, op, (int64_t[]){by[0].i, by[1].i});
}

void tcc_nvvm_convert(tcc_nvvm_lowering *l, tcc_op *op)
{
    regroup(l, op, (int64_t[]){0, 0});
}

void tcc_nvvm_broadcast(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_value *from = TCC_VIEW(tile_broadcast, op)->a;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    if (from->type->kind == TCC_KIND_scalar) {
        const tcc_type *type = tcc_nvvm_held_type(l, op, op->results[0].type);
        if (type)
            tcc_value_map_set(low->map, &op->results[0],
                              TCC_EMIT(&low->b, vec_splat, type, lowered(l, from)));
    } else if (dims.list.n != 2 || dims.list.items[0].i != 0 || dims.list.items[1].i != 1) {
        TCC_LOW_REFUSE(low, op, "tile.broadcast that moves dimensions");
    } else {
        regroup(l, op, (int64_t[]){0, 0});
    }
}

/* What a thread has of a row or column is combined in its registers, then by shuffles with the lanes that
 * have more of it. */
void tcc_nvvm_reduce(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_type *type = op->operands[0]->type;
    int dim = (int)tcc_attr_int(&op->attrs, "dim", 0);
    tcc_opcode code = tcc_low_reduction(op);
    tcc_spread a, r;
    if (!tcc_nvvm_held(l, op, type, &a) || !tcc_nvvm_held(l, op, op->results[0].type, &r))
        return;
    tcc_value *v = lowered(l, op->operands[0]);
    if (op->operands[0]->type == op->results[0].type) {
        tcc_value_map_set(low->map, &op->results[0], v);
        return;
    }
    bool one_warp = true;
    for (int64_t w = 0; w < a.n_warps; w++)
        one_warp &= tcc_digits_place(&a.warps, w, dim) == 0;
    if (!one_warp || !tcc_layout_same_threads(&a, &r, !dim) || tcc_scalar_bits(type->elem) != 32) {
        TCC_LOW_REFUSE(low, op, "tile.reduce over several warps, or of other than 32 bits");
        return;
    }
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)r.n_registers);
    for (int64_t i = 0; i < r.n_registers; i++) {
        tcc_value *x = tcc_low_reduce_own(low, code, &a, v, dim,
                                          tcc_digits_place(&r.registers, i, !dim));
        for (int64_t lane = 1; lane < TCC_WARP_LANES; lane *= 2) {
            if (!tcc_digits_place(&a.lanes, lane, dim))
                continue;
            tcc_value *other = TCC_EMIT(&low->b, nvvm_shfl, x->type, x, tcc_low_c32(low, lane));
            tcc_attr_set_str(low->ir, &other->def->attrs, "kind", "bfly");
            x = tcc_low_bin(low, code, x, other);
        }
        parts[i] = x;
    }
    tcc_value_map_set(
        low->map, &op->results[0],
        tcc_low_pack(low, type->elem, (size_t)r.n_registers, parts, r.n_registers));
}

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
    p.own[0] = tcc_nvvm_own(l, held, 0);
    p.own[1] = tcc_nvvm_own(l, held, 1);
    bool even = t->rank && (t->dims[t->rank - 1].name || t->dims[t->rank - 1].size % 2 == 0);
    p.origin = tcc_build_int(&low->b, low->i64, 0);
    p.inside = tcc_build_int(&low->b, low->i1, 1);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one, known = tcc_is_below(at[d], t->dims[d]);
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one), *first = lowered(l, at[d]);
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d) {
                known = true; /* its room says it */
                first = lowered(l, split(at[d], &p.add[x]));
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
    tcc_spread held;
    if (tcc_attr_find(&op->attrs, "early")) {
        TCC_LOW_REFUSE(low, op, "tile.load from before the tensor");
        return;
    }
    if (!tcc_nvvm_held(l, op, op->results[0].type, &held))
        return;
    place p = plan_place(l, op, o->tensor, op->operands + 1, &held);
    tcc_scalar elem = op->results[0].type->elem;
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)held.n_registers);
    size_t n = 0;
    for (int64_t i = 0; i < held.n_registers; i += 1 + p.pairs) {
        spot s = spot_of(l, &p, i);
        parts[n] = TCC_EMIT(&low->b, nvvm_ld_global, tcc_low_vec(low, elem, 1 + p.pairs), p.base,
                            s.offset, s.inside);
        set_access(l, parts[n++]->def, &p, &s, elem);
    }
    tcc_value_map_set(low->map, &op->results[0],
                      tcc_low_pack(low, elem, n, parts, held.n_registers));
}

/* Of the threads that hold the same one stores it; and where the tensor has no index along the tile's rows
 * or columns, only the tile's first element in that direction is in it. */
static tcc_value *who_stores(tcc_nvvm_lowering *l, const place *p)
{
    tcc_lowering *low = &l->low;
    tcc_value *warp = tcc_low_is_first(low, &p->held.warps, tcc_nvvm_warp(l));
    tcc_value *lane = tcc_low_is_first(low, &p->held.lanes, tcc_nvvm_lane(l));
    tcc_value *who = tcc_low_bin(low, TCC_OP_arith_and, warp, lane);
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
    tcc_spread held;
    if (!strcmp(tcc_attr_str(&op->attrs, "copy", ""), "tma")) {
        TCC_LOW_REFUSE(low, op, "tile.store by the copy engine from registers");
        return;
    }
    if (!tcc_nvvm_held(l, op, o->a->type, &held))
        return;
    place p = plan_place(l, op, o->tensor, op->operands + 2, &held);
    p.inside = tcc_low_bin(low, TCC_OP_arith_and, p.inside, who_stores(l, &p));
    tcc_scalar elem = o->tensor->type->elem;
    tcc_value *v = tcc_low_cast(low, tcc_low_vec(low, elem, held.n_registers), lowered(l, o->a));
    for (int64_t i = 0; i < held.n_registers; i += 1 + p.pairs) {
        bool is_in = true;
        for (int x = 0; x < 2; x++)
            is_in &= p.stride[x] || tcc_digits_place(&held.registers, i, x) == 0;
        if (!is_in)
            continue;
        spot s = spot_of(l, &p, i);
        tcc_op *st = TCC_EMIT_V(&low->b, nvvm_st_global, p.base, s.offset, s.inside,
                                tcc_low_slice(low, v, i, 1 + p.pairs));
        set_access(l, st, &p, &s, elem);
    }
}
