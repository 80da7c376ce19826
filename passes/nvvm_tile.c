/* nvvm_tile: tiles in registers: parts of them, elementwise ops, loads and stores.
 *
 * A thread holds of a tile what wgmma leaves it of accumulators (nvvm.h, tcc_held); its registers are
 * one vec, and every op works on them in order.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

#include <string.h>

enum { GROUP_COLS = 8, HALF_ROWS = 8 };

/* ---- what a thread holds ------------------------------------------------------------------- */

bool tcc_nvvm_held(tcc_nvvm_lowering *l, const tcc_op *user, const tcc_type *tile, tcc_held *h)
{
    int64_t rows = tcc_nvvm_block_rows(l);
    int64_t m = tile->rank == 2 ? tile->dims[0].size : 0;
    int64_t n = tile->rank == 2 ? tile->dims[1].size : 0;
    bool whole = l->role.warps % TCC_WARPGROUP_WARPS == 0 &&
                 l->role.first_warp % TCC_WARPGROUP_WARPS == 0 && rows && m && n;
    if (!whole || tile->layout || (m != 1 && m % rows) || (n != 1 && n % GROUP_COLS)) {
        tcc_str text = {0};
        tcc_type_print(&text, tile);
        TCC_LOW_REFUSE(&l->low, user, "%s in the registers of %lld warps", tcc_str_text(&text),
                       (long long)l->role.warps);
        tcc_str_free(&text);
        return false;
    }
    *h = (tcc_held){.blocks = m == 1 ? 1 : m / rows,
                    .groups = n == 1 ? 1 : n / GROUP_COLS,
                    .halves = m == 1 ? 1 : 2,
                    .neighbours = n == 1 ? 1 : 2};
    h->n = h->blocks * h->groups * h->halves * h->neighbours;
    return true;
}

int64_t tcc_held_at(const tcc_held *h, int64_t block, int64_t group, int64_t half, int64_t x)
{
    return ((block * h->groups + group) * h->halves + half) * h->neighbours + x;
}

const tcc_type *tcc_nvvm_held_type(tcc_nvvm_lowering *l, const tcc_op *user, const tcc_type *tile)
{
    tcc_held h;
    return tcc_nvvm_held(l, user, tile, &h) ? tcc_low_vec(&l->low, tile->elem, h.n) : NULL;
}

tcc_value *tcc_nvvm_warpgroup(tcc_nvvm_lowering *l)
{
    tcc_value *number = tcc_low_div(&l->low, l->warp, TCC_WARPGROUP_WARPS);
    int64_t first = l->role.first_warp / TCC_WARPGROUP_WARPS;
    return first ? tcc_low_add(&l->low, number, -first) : number;
}

const tcc_lane *tcc_nvvm_lane(tcc_nvvm_lowering *l)
{
    tcc_lowering *low = &l->low;
    tcc_lane *at = &l->at;
    if (at->block == low->b.block)
        return at;
    at->block = low->b.block;
    at->lane = tcc_low_rem(low, l->tid, TCC_WARP_LANES);
    at->warp = tcc_low_rem(low, l->warp, TCC_WARPGROUP_WARPS);
    at->warpgroup = tcc_nvvm_warpgroup(l);
    at->row = tcc_low_mul(low, at->warpgroup, TCC_WGMMA_ROWS);
    at->row = tcc_low_bin(low, TCC_OP_arith_add, at->row, tcc_low_mul(low, at->warp, 16));
    at->row = tcc_low_bin(low, TCC_OP_arith_add, at->row, tcc_low_div(low, at->lane, 4));
    at->col = tcc_low_mul(low, tcc_low_rem(low, at->lane, 4), 2);
    return at;
}

tcc_value *tcc_nvvm_row(tcc_nvvm_lowering *l, int64_t block, int h)
{
    return tcc_low_add(&l->low, tcc_nvvm_lane(l)->row,
                       block * tcc_nvvm_block_rows(l) + h * HALF_ROWS);
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

/* `op`'s result is r, so many groups of each of its row blocks, which are at `group` of a, from row
 * block `block` on; past the last group the first ones follow. */
static void take_groups(tcc_nvvm_lowering *l, const tcc_op *op, int64_t block, int64_t group)
{
    tcc_lowering *low = &l->low;
    tcc_held from, to;
    if (!tcc_nvvm_held(l, op, op->operands[0]->type, &from) ||
        !tcc_nvvm_held(l, op, op->results[0].type, &to))
        return;
    tcc_value *a = lowered(l, op->operands[0]);
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)(2 * to.blocks));
    int64_t each = to.halves * to.neighbours, n_parts = 0;
    for (int64_t b = 0; b < to.blocks; b++)
        for (int64_t done = 0, n; done < to.groups; done += n) {
            int64_t at = (group + done) % from.groups;
            n = to.groups - done < from.groups - at ? to.groups - done : from.groups - at;
            parts[n_parts++] =
                tcc_low_slice(low, a, tcc_held_at(&from, block + b, at, 0, 0), n * each);
        }
    tcc_value_map_set(low->map, (tcc_value *)&op->results[0],
                      n_parts == 1 ? parts[0]
                                   : tcc_low_pack(low, a->type->elem, (size_t)n_parts, parts, to.n));
}

void tcc_nvvm_slice(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_attr *at = tcc_attr_list(&op->attrs, "at").list.items;
    const tcc_dim *a = op->operands[0]->type->dims, *r = op->results[0].type->dims;
    int64_t rows = tcc_nvvm_block_rows(l);
    bool thin = (a[0].size == 1) != (r[0].size == 1) || (a[1].size == 1) != (r[1].size == 1);
    if (thin || !rows || at[0].i % rows || at[1].i % GROUP_COLS)
        TCC_LOW_REFUSE(&l->low, op, "tile.slice of registers of several threads");
    else
        take_groups(l, op, at[0].i / rows, at[1].i / GROUP_COLS);
}

void tcc_nvvm_rotate(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_attr *by = tcc_attr_list(&op->attrs, "by").list.items;
    const tcc_dim *a = op->operands[0]->type->dims;
    if (by[0].i % a[0].size || by[1].i % a[1].size % GROUP_COLS)
        TCC_LOW_REFUSE(&l->low, op, "tile.rotate from thread to thread");
    else
        take_groups(l, op, 0, by[1].i % a[1].size / GROUP_COLS);
}

void tcc_nvvm_broadcast(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_value *from = TCC_VIEW(tile_broadcast, op)->a;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    tcc_held a, r;
    if (!tcc_nvvm_held(l, op, op->results[0].type, &r))
        return;
    tcc_value *v = lowered(l, from);
    if (from->type->kind == TCC_KIND_scalar) {
        const tcc_type *type = tcc_low_vec(low, v->type->elem, r.n);
        tcc_value_map_set(low->map, &op->results[0], TCC_EMIT(&low->b, vec_splat, type, v));
        return;
    }
    if (dims.list.n != 2 || dims.list.items[0].i != 0 || dims.list.items[1].i != 1) {
        TCC_LOW_REFUSE(low, op, "tile.broadcast that moves dimensions");
        return;
    }
    if (!tcc_nvvm_held(l, op, from->type, &a))
        return;
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)r.n);
    size_t n = 0;
    for (int64_t b = 0; b < r.blocks; b++)
        for (int64_t j = 0; j < r.groups; j++)
            for (int64_t h = 0; h < r.halves; h++)
                for (int64_t x = 0; x < r.neighbours; x++)
                    parts[n++] = tcc_low_extract(
                        low, v,
                        tcc_held_at(&a, a.halves > 1 ? b : 0, a.neighbours > 1 ? j : 0,
                                    a.halves > 1 ? h : 0, a.neighbours > 1 ? x : 0));
    tcc_value_map_set(low->map, &op->results[0],
                      a.n == r.n ? v : tcc_low_pack(low, v->type->elem, n, parts, r.n));
}

/* Four lanes share a row: what each has of it is combined in its registers, then by two shuffles. */
void tcc_nvvm_reduce(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_type *type = op->operands[0]->type;
    tcc_opcode code = tcc_low_reduction(op);
    tcc_held a, r;
    if (!tcc_nvvm_held(l, op, type, &a) || !tcc_nvvm_held(l, op, op->results[0].type, &r))
        return;
    tcc_value *v = lowered(l, op->operands[0]);
    if (a.n == r.n) {
        tcc_value_map_set(low->map, &op->results[0], v);
        return;
    }
    if (tcc_attr_int(&op->attrs, "dim", 0) != 1 || tcc_scalar_bits(type->elem) != 32) {
        TCC_LOW_REFUSE(low, op, "tile.reduce of columns, or of other than 32 bits");
        return;
    }
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)r.n);
    int64_t each = a.halves * a.neighbours, n = 0;
    for (int64_t b = 0; b < a.blocks; b++) {
        tcc_value *sum = tcc_low_slice(low, v, tcc_held_at(&a, b, 0, 0, 0), each);
        for (int64_t j = 1; j < a.groups; j++)
            sum = tcc_low_bin(low, code, sum,
                              tcc_low_slice(low, v, tcc_held_at(&a, b, j, 0, 0), each));
        for (int64_t h = 0; h < a.halves; h++) {
            tcc_value *x = tcc_low_extract(low, sum, h * a.neighbours);
            x = tcc_low_bin(low, code, x, tcc_low_extract(low, sum, h * a.neighbours + 1));
            for (int64_t lanes = 1; lanes < 4; lanes *= 2) {
                tcc_value *other = TCC_EMIT(&low->b, nvvm_shfl, x->type, x, tcc_low_c32(low, lanes));
                tcc_attr_set_str(low->ir, &other->def->attrs, "kind", "bfly");
                x = tcc_low_bin(low, code, x, other);
            }
            parts[n++] = x;
        }
    }
    tcc_value_map_set(low->map, &op->results[0],
                      tcc_low_pack(low, type->elem, (size_t)n, parts, r.n));
}

/* ---- places in memory --------------------------------------------------------------------- */

/* Where an access goes: element (r, c) of the tile is at base + origin + (r + add[0]) * stride[0] +
 * (c + add[1]) * stride[1], and is inside the tensor while r + add[0] < room[0] and
 * c + add[1] < room[1]. The thread's own column is in origin and room already. */
typedef struct place {
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
                        tcc_value *const *at, const tcc_held *held)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = tensor->type;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    place p = {.base = tcc_low_pointer(low, tensor)};
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
    if (held->neighbours > 1) { /* count columns from the thread's own */
        tcc_value *col = tcc_nvvm_lane(l)->col;
        p.room[1] = tcc_low_bin(low, TCC_OP_arith_sub, p.room[1], col);
        if (p.stride[1])
            p.origin = tcc_low_bin(low, TCC_OP_arith_add, p.origin,
                                   tcc_low_scaled(low, col, p.stride[1]));
    }
    p.pairs = p.contiguous && even && held->neighbours > 1 &&
              tcc_attr_int(&op->attrs, "pairs", 0);
    if (p.pairs)
        tcc_low_require_groups(low, tensor, 2 * (tcc_scalar_bits(t->elem) / 8));
    return p;
}

typedef struct spot {
    tcc_value *offset, *inside;
    int64_t disp;
} spot;

/* Row half h of a row block, neighbour x of a column group. */
static spot spot_of(tcc_nvvm_lowering *l, const place *p, const tcc_held *held, int64_t block, int h,
                    int64_t group, int x)
{
    tcc_lowering *low = &l->low;
    spot s = {p->origin, p->inside, 0};
    if (held->halves > 1 || p->stride[0]) {
        tcc_value *row = held->halves > 1 ? tcc_low_add(low, tcc_nvvm_row(l, block, h), p->add[0])
                                          : tcc_low_c32(low, p->add[0]);
        if (p->stride[0])
            s.offset = tcc_low_bin(low, TCC_OP_arith_add, s.offset,
                                   tcc_low_scaled(low, row, p->stride[0]));
        s.inside = tcc_low_bin(low, TCC_OP_arith_and, s.inside,
                               tcc_low_cmp(low, "lt", row, p->room[0]));
    }
    if (held->neighbours > 1 || p->stride[1]) {
        int64_t col = p->add[1] + group * GROUP_COLS + x;
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
    if (!tcc_nvvm_held(l, op, op->results[0].type, &held))
        return;
    place p = plan_place(l, op, o->tensor, op->operands + 1, &held);
    tcc_scalar elem = op->results[0].type->elem;
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)held.n);
    size_t n = 0;
    for (int64_t b = 0; b < held.blocks; b++)
        for (int64_t j = 0; j < held.groups; j++)
            for (int h = 0; h < held.halves; h++)
                for (int x = 0; x < (p.pairs ? 1 : held.neighbours); x++) {
                    spot s = spot_of(l, &p, &held, b, h, j, x);
                    parts[n] = TCC_EMIT(&low->b, nvvm_ld_global, tcc_low_vec(low, elem, 1 + p.pairs),
                                        p.base, s.offset, s.inside);
                    set_access(l, parts[n++]->def, &p, &s, elem);
                }
    tcc_value_map_set(low->map, &op->results[0], tcc_low_pack(low, elem, n, parts, held.n));
}

/* Where the tensor has no index along the tile's rows or columns, only the tile's first element in that
 * direction is in it: this thread's, if it has that. */
static tcc_value *only_first(tcc_nvvm_lowering *l, const place *p, const tcc_held *held,
                             tcc_value *inside)
{
    tcc_lowering *low = &l->low;
    tcc_value *zero = tcc_low_c32(low, 0);
    tcc_value *const at[2] = {tcc_nvvm_lane(l)->row, tcc_nvvm_lane(l)->col};
    const bool first[2] = {!p->stride[0] || held->halves == 1, !p->stride[1] || held->neighbours == 1};
    for (int x = 0; x < 2; x++)
        if (first[x])
            inside = tcc_low_bin(low, TCC_OP_arith_and, inside,
                                 tcc_low_cmp(low, "eq", at[x], zero));
    return inside;
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
    if (!tcc_nvvm_held(l, op, o->a->type, &held))
        return;
    place p = plan_place(l, op, o->tensor, op->operands + 2, &held);
    tcc_scalar elem = o->tensor->type->elem;
    tcc_value *v = tcc_low_cast(low, tcc_low_vec(low, elem, held.n), lowered(l, o->a));
    for (int64_t b = 0; b < (p.stride[0] ? held.blocks : 1); b++)
        for (int64_t j = 0; j < (p.stride[1] ? held.groups : 1); j++)
            for (int h = 0; h < (p.stride[0] ? held.halves : 1); h++)
                for (int x = 0; x < (p.pairs || !p.stride[1] ? 1 : held.neighbours); x++) {
                    spot s = spot_of(l, &p, &held, b, h, j, x);
                    s.inside = only_first(l, &p, &held, s.inside);
                    tcc_value *part =
                        tcc_low_slice(low, v, tcc_held_at(&held, b, j, h, x), 1 + p.pairs);
                    tcc_op *st =
                        TCC_EMIT_V(&low->b, nvvm_st_global, p.base, s.offset, s.inside, part);
                    set_access(l, st, &p, &s, elem);
                }
}
