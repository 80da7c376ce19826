/* amdgcn_epilogue: element-wise ops and stores on the accumulators of a wave.
 *
 * Block after block of 16 x 16: its loads, its arithmetic, its stores. Of a block a lane has one
 * row m and `per_lane` neighbours along n (amdgcn_copy.c, row_at): row lane % 16, columns from lane
 * / 16 * per_lane on. So a tile of extent 1 along m has per_lane elements in a lane, along n one.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/amdgcn.h"
#include "support/map.h"

enum { MAX_SIDE = 16, MAX_PER_LANE = 8, ACCESS_BYTES = 16 };

/* Where an access goes: bytes from the tile's first element on, of which room[x] along each
 * direction lie in the tensor. */
typedef struct place {
    tcc_value *descriptor, *stride[2], *room[2];
    int64_t step; /* elements of one access, neighbours along n */
    bool has[2];  /* the tensor has an index along m, n */
    tcc_value *row_offset[MAX_SIDE], *row_inside[MAX_SIDE]; /* of a block along m */
} place;

typedef struct item {
    tcc_op *op;
    bool rows, cols;                      /* extent of the result along m and n is not 1 */
    place at;                             /* of loads and stores */
    tcc_value *value[MAX_SIDE][MAX_SIDE]; /* [m block][n block], 0 where there is but one */
} item;

typedef struct epilogue {
    tcc_amdgcn_lowering *l;
    item *items;
    size_t n_items;
    tcc_map by_value;     /* results to their items */
    int64_t m, n;         /* the current block */
    tcc_value *row, *col; /* of the lane in block (0, 0), in the tile */
    tcc_value *zero;
} epilogue;

/* ---- values of a block ------------------------------------------------------------------- */

static int64_t elements(const epilogue *e, bool cols)
{
    return cols ? e->l->per_lane : 1;
}

static tcc_value *splat_const(epilogue *e, const tcc_value *v)
{
    const tcc_type *type =
        tcc_low_vec(&e->l->low, v->type->elem, elements(e, v->type->dims[1].size != 1));
    tcc_op *op = tcc_op_create(&e->l->low.b, TCC_OP_arith_const, 0, NULL, 1, &type);
    op->attrs = v->def->attrs;
    return &op->results[0];
}

/* The accumulators of the block, in their own type. */
static tcc_value *accumulators(epilogue *e)
{
    tcc_amdgcn_lowering *l = e->l;
    tcc_value *acc = l->acc[tcc_amdgcn_acc_at(l, e->m, e->n)];
    tcc_scalar type = l->wmma->acc;
    if (tcc_scalar_bits(type) == 32)
        return acc;
    int64_t n = tcc_type_count(acc->type) * 2;
    tcc_value *all = TCC_EMIT(&l->low.b, vec_bitcast, tcc_low_vec(&l->low, type, n), acc);
    if (!l->halves)
        return all;
    tcc_value *parts[MAX_PER_LANE];
    for (int64_t i = 0; i < l->per_lane; i++)
        parts[i] = tcc_low_extract(&l->low, all, 2 * i + e->n % 2);
    return tcc_low_pack(&l->low, type, (size_t)l->per_lane, parts, l->per_lane);
}

/* The current block of a tile: of the product, or computed before. */
static tcc_value *value_of(epilogue *e, tcc_value *v)
{
    const item *it = tcc_map_get(&e->by_value, v);
    if (it)
        return it->value[it->rows ? e->m : 0][it->cols ? e->n : 0];
    if (v->def && v->def->code == TCC_OP_arith_const)
        return splat_const(e, v);
    return accumulators(e);
}

/* Repeats a number over the lane's columns. */
static tcc_value *spread(epilogue *e, tcc_value *v, bool to_cols)
{
    tcc_amdgcn_lowering *l = e->l;
    int64_t n = elements(e, to_cols);
    if (tcc_type_count(v->type) == n && v->type->kind == TCC_KIND_vec)
        return v;
    tcc_value *number = v->type->kind == TCC_KIND_vec ? tcc_low_extract(&l->low, v, 0) : v;
    return TCC_EMIT(&l->low.b, vec_splat, tcc_low_vec(&l->low, v->type->elem, n), number);
}

/* ---- addresses ------------------------------------------------------------------------------ */

static bool rows_are_whole(const tcc_type *t)
{
    const tcc_dim *last = &t->dims[t->rank - 1];
    return last->name || last->size * tcc_scalar_bits(t->elem) / 8 % ACCESS_BYTES == 0;
}

static void plan_place(epilogue *e, place *p, const tcc_op *op, const tcc_value *tensor,
                       tcc_value *const *at)
{
    tcc_amdgcn_lowering *l = e->l;
    tcc_lowering *low = &l->low;
    const tcc_type *t = tensor->type;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    tcc_value *first = tcc_build_int(&low->b, low->i64, 0);
    bool neighbours = false;
    if (tcc_scalar_bits(t->elem) < 8) {
        TCC_LOW_REFUSE(low, op, "'%s', of %s, outside the product", tensor->name,
                       tcc_scalar_name(t->elem));
        return;
    }
    const int64_t extents[2] = {low->s.m, low->s.n};
    for (int x = 0; x < 2; x++) {
        p->room[x] = tcc_low_c32(low, 1);
        p->stride[x] = e->zero;
    }
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one);
        tcc_value *index = tcc_value_map_get(low->map, at[d]);
        first = tcc_amdgcn_add(l, first, tcc_low_scaled(low, index, stride));
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d) {
                p->has[x] = true;
                p->stride[x] = tcc_amdgcn_stride(l, tensor, (int)d, extents[x]);
                p->room[x] =
                    tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_extent(low, t->dims[d]), index);
                neighbours |= x == 1 && one;
            }
    }
    p->descriptor = tcc_amdgcn_descriptor(l, tensor, first, NULL);
    p->step = 1;
    if (neighbours && l->aligned && rows_are_whole(t)) {
        p->step = ACCESS_BYTES * 8 / tcc_scalar_bits(t->elem);
        if (p->step > l->per_lane)
            p->step = l->per_lane;
        tcc_low_require_groups(low, tensor, ACCESS_BYTES);
    }
}

/* An offset into the tile, and whether it lies in the tensor. */
typedef struct spot {
    tcc_value *offset, *inside;
} spot;

/* Of element x of the lane in the current block. */
static spot spot_of(epilogue *e, place *p, bool rows, bool cols, int64_t x)
{
    tcc_amdgcn_lowering *l = e->l;
    tcc_lowering *low = &l->low;
    int64_t m = rows ? e->m : 0;
    if (!p->row_offset[m]) {
        tcc_value *row = tcc_low_add(low, e->row, m * l->block_step[0]);
        p->row_offset[m] = rows ? tcc_amdgcn_mul(l, row, p->stride[0]) : e->zero;
        p->row_inside[m] = tcc_low_cmp(low, "lt", rows ? row : e->zero, p->room[0]);
    }
    spot s = {p->row_offset[m], p->row_inside[m]};
    if (cols) {
        tcc_value *col = tcc_low_add(low, e->col, e->n * l->block_step[1] + x);
        s.offset = tcc_amdgcn_add(l, s.offset, tcc_amdgcn_mul(l, col, p->stride[1]));
        s.inside = tcc_amdgcn_and(l, s.inside, tcc_low_cmp(low, "lt", col, p->room[1]));
    }
    return s;
}

/* ---- loads and stores ---------------------------------------------------------------------- */

static tcc_value *load_block(epilogue *e, item *it)
{
    tcc_amdgcn_lowering *l = e->l;
    tcc_scalar elem = it->op->results[0].type->elem;
    int64_t n = elements(e, it->cols), step = it->cols ? it->at.step : 1;
    tcc_value *parts[MAX_PER_LANE];
    size_t k = 0;
    for (int64_t x = 0; x < n; x += step) {
        spot s = spot_of(e, &it->at, it->rows, it->cols, x);
        parts[k++] = TCC_EMIT(&l->low.b, amdgcn_buffer_load, tcc_low_vec(&l->low, elem, step),
                              it->at.descriptor, tcc_amdgcn_offset(l, s.inside, s.offset), e->zero);
    }
    return k == 1 ? parts[0] : tcc_low_pack(&l->low, elem, k, parts, n);
}

/* Where the tensor has no index along the tile's rows or columns, all of them have one place in
 * it: the first one's number goes there, the others may be anything. */
static tcc_value *only_first(epilogue *e, const place *p, tcc_value *inside)
{
    tcc_amdgcn_lowering *l = e->l;
    tcc_value *const at[2] = {e->row, e->col};
    for (int x = 0; x < 2; x++)
        if (!p->has[x])
            inside = tcc_amdgcn_and(l, inside, tcc_low_cmp(&l->low, "eq", at[x], e->zero));
    return inside;
}

static void store_block(epilogue *e, item *it)
{
    tcc_amdgcn_lowering *l = e->l;
    const tcc_tile_store_operands *o = TCC_VIEW(tile_store, it->op);
    tcc_scalar elem = o->tensor->type->elem;
    if ((!it->at.has[0] && e->m) || (!it->at.has[1] && e->n))
        return;
    tcc_value *v = spread(e, value_of(e, o->a), true);
    v = tcc_low_cast(&l->low, tcc_low_vec(&l->low, elem, l->per_lane), v);
    int64_t n = it->at.has[1] ? l->per_lane : 1, step = it->at.has[1] ? it->at.step : 1;
    for (int64_t x = 0; x < n; x += step) {
        spot s = spot_of(e, &it->at, true, true, x);
        s.inside = only_first(e, &it->at, s.inside);
        tcc_value *offset = tcc_amdgcn_offset(l, s.inside, s.offset);
        TCC_EMIT_V(&l->low.b, amdgcn_buffer_store, it->at.descriptor, offset, e->zero,
                   tcc_low_slice(&l->low, v, x, step));
    }
}

/* ---- the walk ------------------------------------------------------------------------------ */

static void compute(epilogue *e, item *it)
{
    tcc_amdgcn_lowering *l = e->l;
    tcc_op *op = it->op;
    tcc_value **slot = &it->value[it->rows ? e->m : 0][it->cols ? e->n : 0];
    if (*slot)
        return; /* of another block: the same */
    if (op->code == TCC_OP_tile_load) {
        *slot = load_block(e, it);
    } else if (op->code == TCC_OP_tile_broadcast) {
        tcc_value *from = TCC_VIEW(tile_broadcast, op)->a;
        bool scalar = from->type->kind == TCC_KIND_scalar;
        *slot =
            spread(e, scalar ? tcc_value_map_get(l->low.map, from) : value_of(e, from), it->cols);
    } else { /* element-wise */
        tcc_value *operands[3];
        for (unsigned i = 0; i < op->n_operands; i++)
            operands[i] = value_of(e, op->operands[i]);
        *slot = tcc_low_elementwise(&l->low, op, operands, elements(e, it->cols));
    }
}

/* Takes the ops of the block from `first` on; scalars among them are lowered at once. */
static void collect(epilogue *e, tcc_op *first)
{
    tcc_amdgcn_lowering *l = e->l;
    size_t n = 0;
    for (tcc_op *op = first; op; op = op->next)
        n++;
    e->items = TCC_NEW_ARRAY(l->low.ctx->scratch, item, n);
    for (tcc_op *op = first; op && !l->low.failed; op = op->next) {
        bool store = op->code == TCC_OP_tile_store;
        const tcc_type *t = tcc_low_tile_of(op);
        if (!t) {
            if (op->code != TCC_OP_func_return)
                tcc_amdgcn_op(l, op);
            continue;
        }
        item *it = &e->items[e->n_items++];
        it->op = op;
        it->rows = t->dims[0].size != 1;
        it->cols = t->dims[1].size != 1;
        if (!store)
            *tcc_map_at(&e->by_value, &op->results[0]) = it;
        l->low.b.loc = op->loc;
        if (op->code == TCC_OP_tile_load)
            plan_place(e, &it->at, op, TCC_VIEW(tile_load, op)->tensor, op->operands + 1);
        else if (store)
            plan_place(e, &it->at, op, TCC_VIEW(tile_store, op)->tensor, op->operands + 2);
    }
}

/* Of the lane in a block. Where its results are not neighbours in the instruction, row_at has made
 * them so, lane group after lane group. Else the bits of the group add what the fragment says: RDNA4's
 * waves of 64 deal each 8 to lanes 16 g and 16 g + 32 (RDNA4 ISA, 7.12). */
static tcc_value *first_column(epilogue *e)
{
    enum { GROUP_BIT = 4 }; /* of the lane's number: 16 lanes are a group */
    tcc_amdgcn_lowering *l = e->l;
    tcc_lowering *low = &l->low;
    const tcc_fragment_bits *lanes = &l->result->lanes;
    bool in_turn = true;
    for (unsigned i = GROUP_BIT; i < lanes->n; i++)
        in_turn &= lanes->adds[i].row == l->per_lane << (i - GROUP_BIT);
    if (in_turn || !tcc_fragment_has_neighbours(l->result))
        return tcc_low_mul(low, l->group, l->per_lane);
    tcc_value *column = NULL;
    for (unsigned i = GROUP_BIT; i < lanes->n; i++) {
        tcc_value *bit = i == GROUP_BIT ? l->group : tcc_low_div(low, l->group, 1 << (i - GROUP_BIT));
        if (i + 1 < lanes->n)
            bit = tcc_low_rem(low, bit, 2);
        tcc_value *adds = tcc_low_mul(low, bit, lanes->adds[i].row);
        column = column ? tcc_amdgcn_add(l, column, adds) : adds;
    }
    return column;
}

static void walk_block(epilogue *e)
{
    for (size_t i = 0; i < e->n_items; i++) {
        item *it = &e->items[i];
        e->l->low.b.loc = it->op->loc;
        if (it->op->code == TCC_OP_tile_store)
            store_block(e, it);
        else
            compute(e, it);
    }
}

/* Neighbours along n that share registers. */
static int64_t blocks_together(const tcc_amdgcn_lowering *l)
{
    return l->halves ? 2 : 1;
}

/* Registers have no run-time index: the accumulators of an iteration's blocks, some neighbours along
 * n, come first, and go to the end for the next ones. Rows and columns are counted from there on. */
static void loop_over_blocks(epilogue *e, int64_t together)
{
    tcc_amdgcn_lowering *l = e->l;
    tcc_lowering *low = &l->low;
    size_t n = (size_t)tcc_amdgcn_acc_at(l, l->waves.blocks_m, 0);
    size_t turned = (size_t)tcc_amdgcn_acc_at(l, 0, together);
    tcc_value **operands = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, 3 + n);
    const tcc_type **types = TCC_NEW_ARRAY(low->ctx->scratch, const tcc_type *, n);
    operands[0] = e->zero;
    operands[1] = tcc_low_c32(low, (int64_t)(n / turned));
    operands[2] = tcc_low_c32(low, 1);
    for (size_t i = 0; i < n; i++) {
        operands[3 + i] = l->acc[i];
        types[i] = l->acc[i]->type;
    }
    tcc_op *loop = tcc_op_create(&low->b, TCC_OP_scf_for, 3 + n, operands, n, types);
    tcc_attr_set_int(low->ir, &loop->attrs, "at_least_once", 1);
    low->b = tcc_builder_at_end(loop->regions[0]);
    tcc_value *block = tcc_block_add_arg(loop->regions[0], low->i32, "block");
    for (size_t i = 0; i < n; i++)
        l->acc[i] = tcc_block_add_arg(loop->regions[0], types[i], NULL);

    int64_t in_row = l->waves.blocks_n / together;
    tcc_value *m = tcc_low_div(low, block, in_row), *along_n = tcc_low_rem(low, block, in_row);
    e->row = tcc_amdgcn_add(l, e->row, tcc_low_mul(low, m, l->block_step[0]));
    e->col = tcc_amdgcn_add(l, e->col, tcc_low_mul(low, along_n, together * l->block_step[1]));
    for (e->n = 0; e->n < together; e->n++) {
        walk_block(e);
        tcc_amdgcn_pin(l);
    }
    for (size_t i = 0; i < n; i++)
        operands[i] = l->acc[(i + turned) % n];
    tcc_op_create(&low->b, TCC_OP_scf_yield, n, operands, 0, NULL);
    tcc_low_end(low, loop);
}

static void unroll_blocks(epilogue *e)
{
    const tcc_rdna_waves *waves = &e->l->waves;
    /* Along m first: what is the same for all rows then lives for 16 columns. */
    for (e->n = 0; e->n < waves->blocks_n; e->n++)
        for (e->m = 0; e->m < waves->blocks_m; e->m++) {
            walk_block(e);
            tcc_amdgcn_pin(e->l); /* or loads of all blocks move up, into too many registers */
        }
}

void tcc_amdgcn_epilogue(tcc_amdgcn_lowering *l, tcc_op *first)
{
    tcc_lowering *low = &l->low;
    epilogue *e = TCC_NEW(low->ctx->scratch, epilogue);
    e->l = l;
    e->by_value = TCC_MAP(low->ctx->scratch);
    low->b.loc = first->loc;
    e->zero = tcc_low_c32(low, 0);
    tcc_amdgcn_place_lane(l, TCC_EMIT(&low->b, amdgcn_lane, low->i32, NULL));
    e->row = tcc_amdgcn_add(l, l->wave_first[0], l->row);
    e->col = tcc_amdgcn_add(l, l->wave_first[1], first_column(e));
    collect(e, first);
    if (l->low.failed)
        return;
    const tcc_rdna_waves *w = &l->waves;
    bool whole = w->blocks_n % blocks_together(l) == 0; /* no pair has but one */
    if (whole && tcc_low_should_loop(first, w->blocks_m * w->blocks_n * l->per_lane))
        loop_over_blocks(e, blocks_together(l));
    else if (whole && !l->aligned && w->blocks_m > 1) /* each element is an access of its own */
        loop_over_blocks(e, w->blocks_n);
    else
        unroll_blocks(e);
}
