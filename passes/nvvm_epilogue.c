/* nvvm_epilogue: element-wise ops and stores on the accumulators of a warpgroup.
 *
 * The tile is walked in chunks of 16 columns (8 where the instruction's width is not a multiple of
 * 16), each chunk for every block of 64 rows: its loads, its arithmetic, its stores. So few values
 * live beside the accumulators. Loads run TCC_LOOKAHEAD chunks ahead of their use, unless the
 * function is `separate`: then they are loaded, computed and stored in groups of so many.
 *
 * In a chunk a thread holds, for each 8 columns j, row half h and neighbour e, element
 * j * 4 + h * 2 + e (nvvm_mma.c). A tile of extent 1 along n has one element for each h, along m
 * one for each j and e, along both one.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

#include <string.h>

#include "passes/pressure.h"
#include "support/map.h"

enum {
    MAX_CHUNKS = 32,
    MAX_BLOCKS = 4, /* of 64 rows in a warpgroup */
    CONSUMER_BARRIER = 1, /* of all consumers; then one for each warpgroup */
};

/* Where an access goes: element (r, c) of the tile lies at base + origin + r * stride[0] +
 * c * stride[1], and is inside the tensor while r < room[0] and c < room[1]. */
typedef struct place {
    tcc_value *base, *origin, *stride[2], *room[2];
    bool contiguous; /* stride[1] is 1 */
    bool pairs;      /* two neighbouring columns are one aligned access */
    /* Of the thread's first column, in each of its rows; what is left is a constant. */
    tcc_value *offset[MAX_BLOCKS][2], *inside[MAX_BLOCKS][2];
} place;

/* Results of a tma store on their way through shared memory, in panels of `width` bytes that hold
 * every row of the tile, swizzled as TMA does. */
typedef struct staging {
    int64_t width, swizzle, elem_bytes, panel_bytes; /* width 0: none */
    tcc_value *base;
    tcc_value *row[MAX_BLOCKS][2]; /* address of the thread's rows in the first panel */
    tcc_value *own;                /* the thread's byte in a row, swizzled */
} staging;

typedef struct item {
    tcc_op *op;
    bool rows, cols; /* extent of the result along m and n is not 1 */
    place at;        /* of loads and interleaved stores */
    staging stage;   /* of tma stores */
    tcc_value *value[MAX_CHUNKS][MAX_BLOCKS];
} item;

typedef struct epilogue {
    tcc_nvvm_lowering *l;
    item *items;
    size_t n_items;
    tcc_map by_value;                  /* results to their items */
    int64_t chunk, n_chunks, n_blocks; /* columns of a chunk; how many; blocks of rows */
    int64_t instr_n;
    tcc_value *first_row; /* of the warpgroup, in the tile */
    tcc_value *row, *col; /* of the thread in a block of 64 rows and in 8 columns */
    tcc_value *lane, *warp;
    int64_t c, b; /* current chunk and block */
    tcc_value *first_col; /* of the chunk where ptxas is not to know it; else NULL */
    tcc_value *acc; /* in a loop over chunks, where c is 0: turned so that the chunk's come first in
                       each block; else NULL */
} epilogue;

static tcc_value *add(epilogue *e, tcc_value *a, tcc_value *b)
{
    return tcc_low_bin(&e->l->low, TCC_OP_arith_add, a, b);
}

/* ---- values of a chunk -------------------------------------------------------------------- */

static item *find_item(const epilogue *e, const tcc_value *v)
{
    return tcc_map_get(&e->by_value, v);
}

static int64_t elements(const epilogue *e, bool rows, bool cols)
{
    return (rows ? 2 : 1) * (cols ? e->chunk / 4 : 1);
}

/* What a tile of one constant is in a chunk. */
static tcc_value *splat_const(epilogue *e, const tcc_value *v)
{
    const tcc_dim *dims = v->type->dims;
    const tcc_type *type =
        tcc_low_vec(&e->l->low, v->type->elem, elements(e, dims[0].size != 1, dims[1].size != 1));
    tcc_op *op = tcc_op_create(&e->l->low.b, TCC_OP_arith_const, 0, NULL, 1, &type);
    op->attrs = v->def->attrs;
    return &op->results[0];
}

/* The current chunk of a tile: of the accumulators, or computed before. */
static tcc_value *value_of(epilogue *e, tcc_value *v)
{
    item *it = find_item(e, v);
    if (it)
        return it->value[it->cols ? e->c : 0][it->rows ? e->b : 0];
    if (v->def && v->def->code == TCC_OP_arith_const)
        return splat_const(e, v);
    tcc_value *acc = e->acc ? e->acc : tcc_value_map_get(e->l->low.map, v);
    int64_t col = e->c * e->chunk, per_block = e->instr_n / 2;
    int64_t block = e->b * (e->l->low.s.n / e->instr_n) + col / e->instr_n;
    return tcc_low_slice(&e->l->low, acc, block * per_block + col % e->instr_n / 2,
                         elements(e, true, true));
}

/* Repeats v, which has elements along `rows` and `cols` only, over the whole chunk. */
static tcc_value *spread(epilogue *e, tcc_value *v, bool rows, bool cols, bool to_rows,
                         bool to_cols)
{
    if (rows == to_rows && cols == to_cols)
        return v;
    int64_t n = elements(e, to_rows, to_cols);
    tcc_value *parts[64];
    int64_t groups = to_cols ? e->chunk / 8 : 1, halves = to_rows ? 2 : 1,
            neighbours = to_cols ? 2 : 1;
    size_t k = 0;
    for (int64_t j = 0; j < groups; j++)
        for (int64_t h = 0; h < halves; h++)
            for (int64_t x = 0; x < neighbours; x++)
                parts[k++] = tcc_low_extract(&e->l->low, v,
                                             cols   ? (j * (rows ? 2 : 1) + (rows ? h : 0)) * 2 + x
                                             : rows ? h
                                                    : 0);
    return tcc_low_pack(&e->l->low, v->type->elem, k, parts, n);
}

/* ---- addresses ------------------------------------------------------------------------------ */

static place plan_place(epilogue *e, const tcc_op *op, const tcc_value *tensor,
                        tcc_value *const *at)
{
    tcc_nvvm_lowering *l = e->l;
    const tcc_type *t = tensor->type;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    place p = {.base = tcc_low_pointer(&l->low, tensor)};
    p.origin = tcc_build_int(&l->low.b, l->low.i64, 0);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(&l->low, t, (int)d, &one);
        tcc_value *first = tcc_value_map_get(l->low.map, at[d]);
        p.origin = add(e, p.origin, tcc_low_scaled(&l->low, first, stride));
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d) {
                p.stride[x] = stride;
                p.room[x] = tcc_low_bin(&l->low, TCC_OP_arith_sub,
                                        tcc_low_extent(&l->low, t->dims[d]), first);
                p.contiguous |= x == 1 && one;
            }
    }
    for (int x = 0; x < 2; x++) /* no index along this direction: one element */
        if (!p.room[x])
            p.room[x] = tcc_low_c32(&l->low, 1);
    /* Count columns from the thread's own. */
    p.room[1] = tcc_low_bin(&l->low, TCC_OP_arith_sub, p.room[1], e->col);
    if (p.stride[1])
        p.origin = add(e, p.origin, tcc_low_scaled(&l->low, e->col, p.stride[1]));
    bool even = t->rank && (t->dims[t->rank - 1].name || t->dims[t->rank - 1].size % 2 == 0);
    p.pairs = p.contiguous && l->aligned && even;
    if (p.pairs)
        tcc_low_require_groups(&l->low, tensor, 2 * (tcc_scalar_bits(t->elem) / 8));
    return p;
}

/* Column `col` of the current chunk, in the tile. */
static tcc_value *column(epilogue *e, int64_t col)
{
    return e->first_col ? tcc_low_add(&e->l->low, e->first_col, col)
                        : tcc_low_c32(&e->l->low, e->c * e->chunk + col);
}

/* The thread's row h in the current block. */
static tcc_value *row_of(epilogue *e, int h)
{
    return tcc_low_add(&e->l->low, add(e, e->first_row, e->row), e->b * 64 + h * 8);
}

/* Where row half h of the current block begins: once for all chunks. */
static void plan_row(epilogue *e, place *p, int h, bool rows)
{
    if (p->offset[e->b][h])
        return;
    tcc_nvvm_lowering *l = e->l;
    p->offset[e->b][h] = p->origin;
    p->inside[e->b][h] = tcc_build_int(&l->low.b, l->low.i1, 1);
    if (!rows)
        return;
    tcc_value *row = row_of(e, h);
    if (p->stride[0])
        p->offset[e->b][h] = add(e, p->origin, tcc_low_scaled(&e->l->low, row, p->stride[0]));
    p->inside[e->b][h] = tcc_low_cmp(&l->low, "lt", row, p->room[0]);
}

typedef struct spot {
    tcc_value *offset, *inside;
    int64_t disp;
} spot;

/* Row half h, columns group j, neighbour x of the current chunk and block. */
static spot spot_of(epilogue *e, place *p, int h, int64_t j, int x, bool rows, bool cols)
{
    tcc_nvvm_lowering *l = e->l;
    plan_row(e, p, h, rows);
    spot s = {p->offset[e->b][h], p->inside[e->b][h], 0};
    if (!cols)
        return s;
    int64_t in_chunk = j * 8 + x;
    tcc_value *col = column(e, in_chunk);
    if (!p->contiguous && p->stride[1]) {
        s.offset = add(e, s.offset, tcc_low_scaled(&l->low, col, p->stride[1]));
    } else if (p->contiguous && e->first_col) {
        s.offset = add(e, s.offset, tcc_low_cast(&l->low, l->low.i64, e->first_col));
        s.disp = in_chunk;
    } else if (p->contiguous) {
        s.disp = e->c * e->chunk + in_chunk;
    }
    s.inside = tcc_low_bin(&l->low, TCC_OP_arith_and, s.inside,
                           tcc_low_cmp(&l->low, "gt", p->room[1], col));
    return s;
}

static void set_access(epilogue *e, tcc_op *op, const place *p, const spot *s, tcc_scalar elem)
{
    if (p->pairs)
        tcc_attr_set_int(e->l->low.ir, &op->attrs, "align", tcc_scalar_bits(elem) / 4);
    if (s->disp)
        tcc_attr_set_int(e->l->low.ir, &op->attrs, "disp", s->disp);
}

static tcc_value *load_chunk(epilogue *e, item *it)
{
    const tcc_type *t = it->op->results[0].type;
    int64_t n = elements(e, it->rows, it->cols), groups = it->cols ? e->chunk / 8 : 1;
    int neighbours = it->cols && !it->at.pairs ? 2 : 1, halves = it->rows ? 2 : 1;
    bool pair = it->cols && it->at.pairs;
    tcc_value *parts[64];
    size_t k = 0;
    for (int64_t j = 0; j < groups; j++)
        for (int h = 0; h < halves; h++)
            for (int x = 0; x < neighbours; x++) {
                spot s = spot_of(e, &it->at, h, j, x, it->rows, it->cols);
                parts[k] = TCC_EMIT(&e->l->low.b, nvvm_ld_global,
                                    tcc_low_vec(&e->l->low, t->elem, pair ? 2 : 1), it->at.base,
                                    s.offset, s.inside);
                set_access(e, parts[k++]->def, &it->at, &s, t->elem);
            }
    return tcc_low_pack(&e->l->low, t->elem, k, parts, n);
}

/* ---- stores ---------------------------------------------------------------------------- */

/* Where the tensor has no index along the tile's rows or columns, all of them have one place in it:
 * the first one's number goes there, the others may be anything. */
static bool is_of_tensor(const epilogue *e, const place *p, int h, int64_t j, int x)
{
    return (p->stride[0] || (e->b == 0 && h == 0)) &&
           (p->stride[1] || (e->c == 0 && j == 0 && x == 0));
}

static tcc_value *only_first(epilogue *e, const place *p, tcc_value *inside)
{
    tcc_nvvm_lowering *l = e->l;
    tcc_value *zero = tcc_low_c32(&l->low, 0);
    if (!p->stride[0])
        inside = tcc_low_bin(&l->low, TCC_OP_arith_and, inside,
                             tcc_low_cmp(&l->low, "eq", add(e, e->first_row, e->row), zero));
    if (!p->stride[1])
        inside = tcc_low_bin(&l->low, TCC_OP_arith_and, inside,
                             tcc_low_cmp(&l->low, "eq", add(e, e->col, column(e, 0)), zero));
    return inside;
}

static void store_interleaved(epilogue *e, item *it, tcc_value *v)
{
    tcc_scalar elem = v->type->elem;
    for (int64_t j = 0; j < e->chunk / 8; j++)
        for (int h = 0; h < 2; h++)
            for (int x = 0; x < (it->at.pairs ? 1 : 2); x++) {
                if (!is_of_tensor(e, &it->at, h, j, x))
                    continue;
                spot s = spot_of(e, &it->at, h, j, x, true, true);
                s.inside = only_first(e, &it->at, s.inside);
                tcc_value *part =
                    tcc_low_slice(&e->l->low, v, j * 4 + h * 2 + x, it->at.pairs ? 2 : 1);
                tcc_op *op =
                    TCC_EMIT_V(&e->l->low.b, nvvm_st_global, it->at.base, s.offset, s.inside, part);
                set_access(e, op, &it->at, &s, elem);
            }
}

static staging plan_staging(epilogue *e, const tcc_op *store, int64_t offset)
{
    int64_t eb = tcc_scalar_bits(TCC_VIEW(tile_store, store)->tensor->type->elem) / 8;
    int64_t width = 128; /* a store's box is one panel wide; it must divide the tile */
    while (e->l->low.s.n * eb % width)
        width /= 2;
    return (staging){.width = width,
                     .swizzle = width > 16 ? width : 0,
                     .elem_bytes = eb,
                     .panel_bytes = e->l->low.s.m * width,
                     .base = tcc_low_add(&e->l->low, e->l->smem, offset)};
}

/* Remembers the address of `row`, and of the thread's own bytes in it. Swizzling exclusive-ors
 * 16-byte chunks with row % 8, which is the same in all rows of a thread, and the constant part
 * of a column has no bit in common with the thread's own: so it is exclusive-ored too. */
static void plan_staged_row(epilogue *e, staging *s, int h, tcc_value *row, tcc_value *own)
{
    tcc_nvvm_lowering *l = e->l;
    if (s->row[e->b][h])
        return;
    tcc_value *byte = tcc_low_mul(&l->low, row, s->width);
    s->row[e->b][h] = add(e, s->base, byte);
    if (s->own)
        return;
    s->own = own;
    if (s->swizzle) {
        tcc_value *swizzled = tcc_nvvm_swizzle(l, byte, s->swizzle);
        s->own = tcc_low_bin(&l->low, TCC_OP_arith_xor, own,
                             tcc_low_bin(&l->low, TCC_OP_arith_xor, swizzled, byte));
    }
}

/* Of column `col` of the current chunk. */
static tcc_value *staged_address(epilogue *e, const staging *s, int h, int64_t col)
{
    tcc_lowering *low = &e->l->low;
    tcc_value *byte = tcc_low_mul(low, column(e, col), s->elem_bytes);
    tcc_value *panel = tcc_low_mul(low, tcc_low_div(low, byte, s->width), s->panel_bytes);
    tcc_value *in_row = tcc_low_bin(low, TCC_OP_arith_xor, s->own, tcc_low_rem(low, byte, s->width));
    return add(e, add(e, s->row[e->b][h], panel), in_row);
}

/* 16-bit results of 16 columns go as four 8 x 8 matrices: lane q gives the address of row q % 16,
 * columns q / 16 * 8 on. */
static void stage_matrices(epilogue *e, staging *s, tcc_value *v)
{
    tcc_nvvm_lowering *l = e->l;
    tcc_value *row = tcc_low_mul(&l->low, e->warp, 16);
    row = add(e, row, tcc_low_rem(&l->low, e->lane, 16));
    row = tcc_low_add(&l->low, add(e, e->first_row, row), e->b * 64);
    plan_staged_row(e, s, 0, row, tcc_low_mul(&l->low, tcc_low_div(&l->low, e->lane, 16), 16));
    tcc_value *words = TCC_EMIT(&l->low.b, vec_bitcast, tcc_low_vec(&e->l->low, TCC_i32, 4), v);
    TCC_EMIT_V(&l->low.b, nvvm_stmatrix, staged_address(e, s, 0, 0), words);
}

static void stage_pairs(epilogue *e, staging *s, tcc_value *v)
{
    for (int h = 0; h < 2; h++) {
        tcc_value *row = row_of(e, h);
        plan_staged_row(e, s, h, row, tcc_low_mul(&e->l->low, e->col, s->elem_bytes));
        for (int64_t j = 0; j < e->chunk / 8; j++) {
            tcc_value *at = staged_address(e, s, h, j * 8);
            TCC_EMIT_V(&e->l->low.b, nvvm_st_shared, at,
                       tcc_low_slice(&e->l->low, v, j * 4 + h * 2, 2));
        }
    }
}

static void lower_store(epilogue *e, item *it)
{
    tcc_scalar out = TCC_VIEW(tile_store, it->op)->tensor->type->elem;
    tcc_value *v = value_of(e, TCC_VIEW(tile_store, it->op)->a);
    v = tcc_low_cast(&e->l->low, tcc_low_vec(&e->l->low, out, e->chunk / 2), v);
    if (!it->stage.width)
        store_interleaved(e, it, v);
    else if (it->stage.elem_bytes == 2 && e->chunk == 16)
        stage_matrices(e, &it->stage, v);
    else
        stage_pairs(e, &it->stage, v);
}

/* One thread of each warpgroup sends its rows, panel by panel, when all of them are written. */
static void send_staged(epilogue *e, const item *it)
{
    tcc_nvvm_lowering *l = e->l;
    const tcc_value *tensor = TCC_VIEW(tile_store, it->op)->tensor;
    unsigned rank = tensor->type->rank;
    tcc_attr dims = tcc_attr_list(&it->op->attrs, "dims");
    const staging *s = &it->stage;
    int64_t rows = l->low.s.m / l->low.s.warpgroups, panel_elems = s->width / s->elem_bytes;
    int64_t box[TCC_MAX_RANK];
    tcc_value *at[TCC_MAX_RANK], *operands[2 + TCC_MAX_RANK];
    for (unsigned d = 0; d < rank; d++) {
        bool is_row = dims.list.items[0].i == (int64_t)d,
             is_col = dims.list.items[1].i == (int64_t)d;
        box[rank - 1 - d] = is_row ? rows : is_col ? panel_elems : 1;
        at[d] = tcc_value_map_get(l->low.map, it->op->operands[2 + d]);
        if (is_row)
            at[d] = add(e, at[d], e->first_row);
    }
    operands[1] = tcc_nvvm_tensormap(l, tensor, box, s->swizzle);
    tcc_value *from = add(e, s->base, tcc_low_mul(&l->low, e->first_row, s->width));
    for (int64_t p = 0; p * panel_elems < l->low.s.n; p++) {
        operands[0] = tcc_low_add(&l->low, from, p * s->panel_bytes);
        for (unsigned d = 0; d < rank; d++)
            operands[2 + rank - 1 - d] = dims.list.items[1].i == (int64_t)d
                                             ? tcc_low_add(&l->low, at[d], p * panel_elems)
                                             : at[d];
        tcc_op_create(&l->low.b, TCC_OP_nvvm_tma_store, 2 + rank, operands, 0, NULL);
    }
}

static void send_all(epilogue *e)
{
    tcc_nvvm_lowering *l = e->l;
    TCC_EMIT_V(&l->low.b, nvvm_fence_proxy_async, NULL);
    tcc_value *id = tcc_low_add(&l->low, tcc_low_div(&l->low, l->warp, 4), CONSUMER_BARRIER + 1);
    TCC_EMIT_V(&l->low.b, nvvm_barrier, id, tcc_low_c32(&l->low, 128));
    tcc_op *one = tcc_low_if(&l->low, tcc_nvvm_leads_warpgroup(l));
    for (size_t i = 0; i < e->n_items; i++)
        if (e->items[i].stage.width)
            send_staged(e, &e->items[i]);
    TCC_EMIT_V(&l->low.b, nvvm_bulk_commit, NULL);
    tcc_op *wait = TCC_EMIT_V(&l->low.b, nvvm_bulk_wait, NULL);
    tcc_attr_set_int(l->low.ir, &wait->attrs, "pending", 0);
    tcc_attr_set_int(l->low.ir, &wait->attrs, "read", 1); /* shared memory outlives the copies */
    tcc_low_end(&l->low, one);
}

/* ---- the walk -------------------------------------------------------------------------- */

static void compute(epilogue *e, item *it)
{
    tcc_nvvm_lowering *l = e->l;
    tcc_op *op = it->op;
    l->low.b.loc = op->loc;
    tcc_scalar elem = op->results[0].type->elem;
    tcc_value **slot = &it->value[it->cols ? e->c : 0][it->rows ? e->b : 0];
    if (*slot)
        return; /* of another block or chunk: the same */
    if (op->code == TCC_OP_tile_load) {
        *slot = load_chunk(e, it);
    } else if (op->code == TCC_OP_tile_broadcast) {
        tcc_value *from = TCC_VIEW(tile_broadcast, op)->a;
        const tcc_type *t = from->type;
        if (t->kind == TCC_KIND_scalar)
            *slot = TCC_EMIT(&l->low.b, vec_splat,
                             tcc_low_vec(&e->l->low, elem, elements(e, it->rows, it->cols)),
                             tcc_value_map_get(l->low.map, from));
        else
            *slot = spread(e, value_of(e, from), t->dims[0].size != 1, t->dims[1].size != 1,
                           it->rows, it->cols);
    } else { /* element-wise */
        tcc_value *operands[3];
        for (unsigned i = 0; i < op->n_operands; i++)
            operands[i] = value_of(e, op->operands[i]);
        *slot = tcc_low_elementwise(&l->low, op, operands, elements(e, it->rows, it->cols));
    }
}

enum { LOADS = 1, OTHERS = 2 };

/* What `which` says of block b of chunk c. */
static void walk_block(epilogue *e, int64_t c, int64_t b, unsigned which)
{
    e->c = c;
    e->b = b;
    for (size_t i = 0; i < e->n_items; i++) {
        item *it = &e->items[i];
        if (!(which & (it->op->code == TCC_OP_tile_load ? LOADS : OTHERS)))
            continue;
        e->l->low.b.loc = it->op->loc;
        if (it->op->code == TCC_OP_tile_store)
            lower_store(e, it);
        else
            compute(e, it);
    }
}

static void walk_chunk(epilogue *e, int64_t c, unsigned which)
{
    for (int64_t b = 0; b < e->n_blocks; b++)
        walk_block(e, c, b, which);
}

/* What the ops take that none of them computes. */
static tcc_value *find_accumulators(const epilogue *e)
{
    for (size_t i = 0; i < e->n_items; i++)
        for (unsigned o = 0; o < e->items[i].op->n_operands; o++) {
            tcc_value *v = e->items[i].op->operands[o];
            if (v->type->kind == TCC_KIND_tile && !find_item(e, v) &&
                !(v->def && v->def->code == TCC_OP_arith_const))
                return v;
        }
    return NULL;
}

/* All accumulators of a block, turned by one chunk: what comes first in it then comes last. */
static tcc_value *turn(epilogue *e)
{
    int64_t chunk = elements(e, true, true), block = e->n_chunks * chunk;
    tcc_value *parts[2 * MAX_BLOCKS];
    size_t k = 0;
    for (int64_t b = 0; b < e->n_blocks; b++) {
        parts[k++] = tcc_low_slice(&e->l->low, e->acc, b * block + chunk, block - chunk);
        parts[k++] = tcc_low_slice(&e->l->low, e->acc, b * block, chunk);
    }
    return tcc_low_pack(&e->l->low, e->acc->type->elem, k, parts, e->n_blocks * block);
}

/* Registers have no run-time index: each iteration finds its accumulators in the same place. */
static void loop_over_chunks(epilogue *e, tcc_value *acc)
{
    tcc_lowering *low = &e->l->low;
    tcc_value *operands[4] = {tcc_low_c32(low, 0)};
    operands[1] = tcc_low_c32(low, e->n_chunks);
    operands[2] = tcc_low_c32(low, 1);
    operands[3] = acc;
    tcc_op *loop = tcc_op_create(&low->b, TCC_OP_scf_for, 4, operands, 1, &acc->type);
    tcc_attr_set_int(low->ir, &loop->attrs, "at_least_once", 1);
    low->b = tcc_builder_at_end(loop->regions[0]);
    tcc_value *chunk = tcc_block_add_arg(loop->regions[0], low->i32, "chunk");
    e->first_col = tcc_low_mul(low, chunk, e->chunk);
    e->acc = tcc_block_add_arg(loop->regions[0], acc->type, "acc");
    walk_chunk(e, 0, LOADS | OTHERS);
    tcc_value *turned = turn(e);
    tcc_op_create(&low->b, TCC_OP_scf_yield, 1, &turned, 0, NULL);
    tcc_low_end(low, loop);
}

/* With loads a few chunks ahead. */
static void unroll_chunks(epilogue *e)
{
    for (int64_t c = 0; c < e->n_chunks + TCC_LOOKAHEAD; c++) {
        if (c < e->n_chunks)
            walk_chunk(e, c, LOADS);
        if (c >= TCC_LOOKAHEAD)
            walk_chunk(e, c - TCC_LOOKAHEAD, OTHERS);
    }
}

/* Blocks of chunks in groups of so many, where registers are short. ptxas would take up loads and
 * addresses of all of them at once, and spill: it moves no access across the barrier, and no address
 * across the shuffle that hides the column. */
static void separate_groups(epilogue *e, int64_t group)
{
    tcc_lowering *low = &e->l->low;
    int64_t n = e->n_chunks * e->n_blocks;
    tcc_value *cols[MAX_CHUNKS];
    for (int64_t begin = 0; begin < n; begin += group) {
        int64_t end = begin + group < n ? begin + group : n;
        for (int64_t i = begin; i < end; i++) {
            int64_t c = i / e->n_blocks;
            tcc_value *col = tcc_low_c32(low, c * e->chunk);
            if (i == begin || i % e->n_blocks == 0)
                cols[c] = TCC_EMIT(&low->b, nvvm_uniform, low->i32, col);
            e->first_col = cols[c];
            walk_block(e, c, i % e->n_blocks, LOADS);
        }
        for (int64_t i = begin; i < end; i++) {
            e->first_col = cols[i / e->n_blocks];
            walk_block(e, i / e->n_blocks, i % e->n_blocks, OTHERS);
        }
        TCC_EMIT_V(&low->b, nvvm_warp_sync, NULL);
    }
}

/* Takes the ops of the consumer's block from `first` on; scalars among them are lowered at once. */
static void collect(epilogue *e, tcc_op *first)
{
    tcc_nvvm_lowering *l = e->l;
    int64_t staged = 0;
    size_t n = 0;
    for (tcc_op *op = first; op; op = op->next)
        n++;
    e->items = TCC_NEW_ARRAY(l->low.ctx->scratch, item, n);
    for (tcc_op *op = first; op; op = op->next) {
        bool store = op->code == TCC_OP_tile_store;
        const tcc_type *t = tcc_low_tile_of(op);
        if (!t) {
            if (op->code != TCC_OP_func_return)
                tcc_nvvm_op(l, op);
            continue;
        }
        item *it = &e->items[e->n_items++];
        it->op = op;
        it->rows = t->dims[0].size != 1;
        it->cols = t->dims[1].size != 1;
        if (!store)
            *tcc_map_at(&e->by_value, &op->results[0]) = it;
        l->low.b.loc = op->loc;
        if (op->code == TCC_OP_tile_load) {
            it->at = plan_place(e, op, TCC_VIEW(tile_load, op)->tensor, op->operands + 1);
        } else if (store && !strcmp(tcc_attr_str(&op->attrs, "copy", ""), "tma")) {
            it->stage = plan_staging(e, op, staged);
            staged += tcc_stage_bytes(tcc_type_count(t) * it->stage.elem_bytes);
        } else if (store) {
            it->at = plan_place(e, op, TCC_VIEW(tile_store, op)->tensor, op->operands + 2);
        }
    }
}

void tcc_nvvm_epilogue(tcc_nvvm_lowering *l, tcc_op *first)
{
    epilogue *e = TCC_NEW(l->low.ctx->scratch, epilogue);
    e->l = l;
    e->by_value = TCC_MAP(l->low.ctx->scratch);
    e->instr_n = tcc_schedule_instr_n(&l->low.s, tcc_target_of(l->low.ir));
    e->chunk = e->instr_n % 16 ? 8 : 16;
    e->n_chunks = l->low.s.n / e->chunk;
    int64_t rows = l->low.s.m / l->low.s.warpgroups;
    e->n_blocks = rows / 64;
    e->lane = tcc_low_rem(&l->low, l->tid, 32);
    e->warp = tcc_low_rem(&l->low, l->warp, 4);
    e->first_row = tcc_low_mul(&l->low, tcc_low_div(&l->low, l->warp, 4), rows);
    e->row = tcc_low_mul(&l->low, e->warp, 16);
    e->row = add(e, e->row, tcc_low_div(&l->low, e->lane, 4));
    e->col = tcc_low_mul(&l->low, tcc_low_rem(&l->low, e->lane, 4), 2);
    collect(e, first);

    if (l->staged_bytes) /* results go where the stages were: nobody may read those any more */
        tcc_nvvm_barrier(l, CONSUMER_BARRIER, l->low.s.warpgroups * 128);
    tcc_value *acc = find_accumulators(e);
    if (acc && e->n_chunks > 1 &&
        tcc_low_should_loop(first, e->n_blocks * e->n_chunks * elements(e, true, true)))
        loop_over_chunks(e, tcc_value_map_get(l->low.map, acc));
    else if (tcc_attr_int(&l->low.f->attrs, "separate", 0) > 0)
        separate_groups(e, tcc_attr_int(&l->low.f->attrs, "separate", 0));
    else
        unroll_chunks(e);
    if (l->staged_bytes)
        send_all(e);
}
