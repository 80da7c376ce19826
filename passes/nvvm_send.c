/* nvvm_send: results on their way through shared memory.
 *
 * A buffer consists of panels that hold every row of the tile, or every column if these are contiguous, swizzled as by
 * TMA. Each warpgroup sends the rows that its threads hold, panel by panel; or, if rows of the tensor may be unaligned,
 * each warp stores its own rows in aligned words, neighbouring lanes storing neighbouring words.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

enum {
    WORD_BYTES = 4,
    WARP_ROWS = TCC_WGMMA_ROWS / TCC_WARPGROUP_WARPS, /* that a warp holds of a block */
    ROWS_AT_ONCE = 4                                  /* whose loads are on their way together */
};

/* A buffer of results. */
typedef struct staging {
    tcc_panels panels;
    int contiguous; /* the tile's dimension that runs through a line of a panel */
    int64_t swizzle, elem_bytes, rows, cols;
    tcc_value *base;
} staging;

static bool plan_staging(tcc_nvvm_lowering *l, const tcc_op *op, const tcc_value *buffer,
                         staging *s)
{
    const tcc_op *alloc = tcc_nvvm_buffer(l, op, buffer);
    if (!alloc)
        return false;
    const tcc_dim *dims = buffer->type->dims;
    *s = (staging){.panels = tcc_panels_of(alloc),
                   .contiguous = tcc_nvvm_contiguous(alloc),
                   .swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0),
                   .elem_bytes = tcc_scalar_bits(buffer->type->elem) / 8,
                   .rows = dims[1].size,
                   .cols = dims[2].size};
    s->base = tcc_low_add(&l->low, l->smem, tcc_attr_int(&alloc->attrs, "offset", 0));
    return true;
}

/* Address of byte `own` of a thread's columns from `col` on, in `row`. Swizzling exclusive-ors 16-byte
 * chunks with row % 8, which is the same in all rows of a thread, and a column that is a multiple of 8
 * has no bit in common with the thread's own: so it is exclusive-ored too. */
static tcc_value *address_of(tcc_nvvm_lowering *l, const staging *s, tcc_value *row, tcc_value *own,
                          tcc_value *col)
{
    tcc_lowering *low = &l->low;
    const tcc_panels *p = &s->panels;
    tcc_value *in_panel = tcc_low_mul(low, row, p->width);
    if (s->swizzle) {
        tcc_value *swizzled = tcc_nvvm_swizzle(l, in_panel, s->swizzle);
        own = tcc_low_bin(low, TCC_OP_arith_xor, own,
                          tcc_low_bin(low, TCC_OP_arith_xor, swizzled, in_panel));
    }
    tcc_value *byte = tcc_low_mul(low, col, s->elem_bytes);
    tcc_value *panel = tcc_low_mul(low, tcc_low_div(low, byte, p->width), p->panel_bytes);
    tcc_value *in_row = tcc_low_bin(low, TCC_OP_arith_xor, own, tcc_low_rem(low, byte, p->width));
    tcc_value *at = tcc_low_bin(low, TCC_OP_arith_add, s->base, in_panel);
    return tcc_low_bin(low, TCC_OP_arith_add,
                       tcc_low_bin(low, TCC_OP_arith_add, at, panel), in_row);
}

/* The operands of async.write. */
typedef struct writing {
    staging to;
    tcc_spread held;
    tcc_value *row, *col, *v;
} writing;

/* `at` and what a register adds. */
static tcc_value *moved(tcc_nvvm_lowering *l, const writing *w, tcc_value *at, int64_t number, int dim)
{
    return tcc_low_add(&l->low, at, tcc_digits_place(&w->held.registers, number, dim));
}

/* 16-bit results of 16 columns go as four 8 x 8 matrices: lane q provides the address of row q %
 * 16, columns q / 16 * 8 on. */
static void write_matrices(tcc_nvvm_lowering *l, const writing *w, int64_t number)
{
    enum { REGISTERS = 8, ROWS = 16, CHUNK = 16 };
    tcc_lowering *low = &l->low;
    tcc_value *lane = low->vendor->lane(low);
    tcc_value *row = tcc_low_digits(low, &w->held.warps, low->vendor->warp(low), 0);
    row = tcc_low_bin(low, TCC_OP_arith_add, row, tcc_low_rem(low, lane, ROWS));
    row = tcc_low_bin(low, TCC_OP_arith_add, moved(l, w, row, number, 0), w->row);
    tcc_value *own = tcc_low_mul(low, tcc_low_div(low, lane, ROWS), CHUNK);
    tcc_value *part = tcc_low_slice(low, w->v, number, REGISTERS);
    tcc_value *words = TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, TCC_i32, REGISTERS / 2), part);
    tcc_value *col = moved(l, w, w->col, number, 1);
    TCC_EMIT_V(&low->b, nvvm_stmatrix, address_of(l, &w->to, row, own, col), words);
}

static void write_pair(tcc_nvvm_lowering *l, const writing *w, int64_t number)
{
    tcc_lowering *low = &l->low;
    tcc_value *row = moved(l, w, tcc_low_own(low, &w->held, 0), number, 0);
    row = tcc_low_bin(low, TCC_OP_arith_add, row, w->row);
    tcc_value *own = tcc_low_mul(low, tcc_low_own(low, &w->held, 1), w->to.elem_bytes);
    tcc_value *col = moved(l, w, w->col, number, 1);
    tcc_value *part = tcc_low_slice(low, w->v, number, 2);
    TCC_EMIT_V(&low->b, nvvm_st_shared, address_of(l, &w->to, row, own, col), part);
}

void tcc_nvvm_write(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_async_write_operands *o = TCC_VIEW(async_write, op);
    writing w;
    tcc_held held;
    if (!plan_staging(l, op, o->buffer, &w.to) || !tcc_low_held(low, op, o->a->type, &held))
        return;
    w.held = held.spread;
    /* async.send takes the rows of each warpgroup */
    bool whole = w.held.extent[0] > 1 && w.held.extent[1] > 1 &&
                 o->a->type == tcc_hold_by_warpgroups(low->ir, o->a->type, l->role.op, TCC_AS_RESULT);
    if (!whole) {
        TCC_LOW_REFUSE(low, op, "async.write of a tile without a layout by rows of warpgroups");
        return;
    }
    if (!w.to.contiguous) {
        tcc_nvvm_write_columns(l, op);
        return;
    }
    if (!tcc_is_multiple(o->row, 8, NULL) || !tcc_is_multiple(o->col, 8, NULL)) {
        TCC_LOW_REFUSE(low, op, "async.write to a row or column that is not a multiple of 8");
        return;
    }
    w.row = tcc_value_map_get(low->map, o->row);
    w.col = tcc_value_map_get(low->map, o->col);
    w.v = tcc_low_cast(low, tcc_low_vec(low, o->buffer->type->elem, w.held.n_registers),
                       tcc_low_parts(low, o->a)->values[0]);
    bool matrices = w.to.elem_bytes == 2 && w.held.extent[1] % 16 == 0;
    for (int64_t i = 0; i < w.held.n_registers; i += matrices ? 8 : 2)
        (matrices ? write_matrices : write_pair)(l, &w, i);
}

static bool is_in_words(const tcc_op *op)
{
    return tcc_attr_is(&op->attrs, "copy", "words");
}

void tcc_nvvm_publish(tcc_nvvm_lowering *l, tcc_op *op)
{
    if (is_in_words(op)) {
        TCC_EMIT_V(&l->low.b, nvvm_warp_sync, NULL);
        return;
    }
    TCC_EMIT_V(&l->low.b, nvvm_fence_proxy_async, NULL);
    tcc_value *id = tcc_low_add(&l->low, tcc_nvvm_warpgroup(l), l->role.barrier + 1);
    tcc_nvvm_barrier(l, id, TCC_WARPGROUP_WARPS * TCC_WARP_LANES);
}

/* ---- in words ------------------------------------------------------------------------------ */

/* Whether the copy engine, which goes on by itself, has no part in storing the tensor. */
static bool is_by_threads_alone(const tcc_value *tensor)
{
    bool alone = true;
    for (const tcc_use *u = tensor->uses; u; u = u->next)
        alone &= u->op->code != TCC_OP_async_send || is_in_words(u->op);
    return alone;
}

/* A tile on its way to unaligned rows of a tensor. Lane l stores words l, l + 32, … of each, from the first that is
 * aligned on. */
typedef struct rows {
    const staging *from;
    const tcc_value *tensor;
    tcc_value *base, *origin;   /* element (0, 0) of the tile */
    tcc_value *stride;          /* from row to row */
    tcc_value *room[2], *inside; /* rows and columns that are in the tensor, at most the tile's; whether any is */
    int64_t in_word, words;     /* elements of a word, words of a row of the tile */
} rows;

/* The part of a row in a lane. */
typedef struct part {
    tcc_words to;
    tcc_value *start, *skip;          /* element 0 of the row */
    tcc_value **words, *first;        /* what it stores; the first of them in the buffer */
} part;

static void plan_rows(tcc_nvvm_lowering *l, tcc_op *op, const staging *s, rows *r)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = r->tensor->type;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    r->base = tcc_low_pointer(low, r->tensor);
    r->origin = tcc_build_int(&low->b, low->i64, 0);
    r->inside = tcc_build_int(&low->b, low->i1, 1);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one, indexed = false;
        tcc_value *at = tcc_value_map_get(low->map, op->operands[2 + d]);
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one), *extent = tcc_low_extent(low, t->dims[d]);
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d) {
                indexed = true;
                r->room[x] = tcc_low_bin(low, TCC_OP_arith_sub, extent, at);
                r->stride = x ? r->stride : stride;
            }
        r->origin = tcc_low_bin(low, TCC_OP_arith_add, r->origin, tcc_low_scaled(low, at, stride));
        if (!indexed && !tcc_is_below(op->operands[2 + d], t->dims[d]))
            r->inside = tcc_low_bin(low, TCC_OP_arith_and, r->inside, tcc_low_cmp(low, "lt", at, extent));
    }
    r->room[1] = tcc_low_bin_const(low, TCC_OP_arith_min, r->room[1], s->cols);
}

/* A word of the buffer's row: of each lane its own, `further` lanes further, in each round; the last one of the
 * row where it has no such. */
static tcc_value *load_word(tcc_nvvm_lowering *l, const rows *r, tcc_value *at, int64_t round, int64_t further)
{
    tcc_lowering *low = &l->low;
    const tcc_panels *p = &r->from->panels;
    int64_t left = r->words - round * TCC_WARP_LANES;
    tcc_value *word = tcc_low_add(low, low->vendor->lane(low), further);
    if (left < TCC_WARP_LANES + further)
        word = tcc_low_bin_const(low, TCC_OP_arith_min, word, left - 1);
    tcc_value *first = tcc_low_c32(low, 0), *byte = tcc_low_mul(low, word, r->in_word);
    tcc_value *address = address_of(l, r->from, at, first, byte);
    address = tcc_low_add(low, address, round * TCC_WARP_LANES * WORD_BYTES / p->width * p->panel_bytes);
    return tcc_low_extract(low, TCC_EMIT(&low->b, nvvm_ld_shared, tcc_low_vec(low, TCC_i32, 1), address), 0);
}

static void load_row(tcc_nvvm_lowering *l, const rows *r, tcc_value *at, part *out)
{
    tcc_lowering *low = &l->low;
    int64_t rounds = (r->words + TCC_WARP_LANES - 1) / TCC_WARP_LANES;
    out->start = tcc_low_bin(low, TCC_OP_arith_add, r->origin, tcc_low_scaled(low, at, r->stride));
    tcc_value *inside = tcc_low_bin(low, TCC_OP_arith_and, r->inside, tcc_low_cmp(low, "lt", at, r->room[0]));
    out->to = (tcc_words){r->base, inside, r->tensor->type->elem};
    out->skip = tcc_nvvm_skip(low, &out->to, out->start, 0);
    tcc_value *by = tcc_low_mul(low, out->skip, 8 * r->from->elem_bytes);
    out->words = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)rounds);
    for (int64_t i = 0; i < rounds; i++) {
        out->words[i] = load_word(l, r, at, i, 0);
        out->first = i ? out->first : out->words[i];
        if (r->in_word > 1)
            out->words[i] =
                TCC_EMIT(&low->b, nvvm_shf, low->i32, out->words[i], load_word(l, r, at, i, 1), by);
    }
}

static void store_row(tcc_nvvm_lowering *l, const rows *r, const part *from)
{
    tcc_lowering *low = &l->low;
    tcc_words to = from->to;
    tcc_value *lane = low->vendor->lane(low);
    tcc_value *col = tcc_low_bin(low, TCC_OP_arith_add, tcc_low_mul(low, lane, r->in_word), from->skip);
    tcc_value *offset = tcc_low_bin(low, TCC_OP_arith_add, from->start, tcc_low_cast(low, low->i64, col));
    for (int64_t at = 0; at * r->in_word < r->from->cols; at += TCC_WARP_LANES)
        tcc_nvvm_store_word(low, &to, from->words[at / TCC_WARP_LANES], offset, at * r->in_word, col,
                            tcc_low_add(low, r->room[1], -at * r->in_word));
    tcc_value *none = tcc_low_c32(low, 0), *leads = tcc_low_cmp(low, "eq", lane, none);
    tcc_value *skipped = tcc_low_bin(low, TCC_OP_arith_min, from->skip, r->room[1]);
    to.inside = tcc_low_bin(low, TCC_OP_arith_and, to.inside, leads);
    tcc_nvvm_store_skipped(low, &to, from->first, from->start, 0, skipped, none);
}

/* Each warp stores the rows that its lanes have written, a few at a time. */
static void send_words(tcc_nvvm_lowering *l, tcc_op *op, const staging *s, int64_t together)
{
    tcc_lowering *low = &l->low;
    rows r = {.from = s,
              .tensor = TCC_VIEW(async_send, op)->tensor,
              .in_word = WORD_BYTES / s->elem_bytes,
              .words = s->cols * s->elem_bytes / WORD_BYTES};
    if (!is_by_threads_alone(r.tensor)) {
        TCC_LOW_REFUSE(low, op, "async.send in words to '%s', to which the copy engine stores as well", r.tensor->name);
        return;
    }
    if (!tcc_low_is_ordered(low, op))
        return;
    plan_rows(l, op, s, &r);
    tcc_value *warp = low->vendor->warp(low), *own = tcc_low_mul(low, warp, WARP_ROWS);
    int64_t n = s->rows / together * WARP_ROWS;
    tcc_value *from = tcc_low_c32(low, 0), *to = tcc_low_c32(low, n / ROWS_AT_ONCE), *step = tcc_low_c32(low, 1);
    tcc_value *bounds[] = {from, to, step};
    tcc_op *loop = tcc_op_create(&low->b, TCC_OP_scf_for, 3, bounds, 0, NULL);
    tcc_attr_set_int(low->ir, &loop->attrs, "at_least_once", 1);
    tcc_value *i = tcc_block_add_arg(loop->regions[0], low->i32, "rows");
    tcc_builder outer = low->b;
    low->b = tcc_builder_at_end(loop->regions[0]);
    low->b.loc = outer.loc;
    part parts[ROWS_AT_ONCE];
    tcc_value *first = tcc_low_mul(low, i, ROWS_AT_ONCE);
    tcc_value *block = tcc_low_mul(low, tcc_low_div(low, first, WARP_ROWS), together);
    first = tcc_low_bin(low, TCC_OP_arith_add, block, tcc_low_rem(low, first, WARP_ROWS));
    first = tcc_low_bin(low, TCC_OP_arith_add, own, first);
    for (int k = 0; k < ROWS_AT_ONCE; k++)
        load_row(l, &r, tcc_low_add(low, first, k), &parts[k]);
    for (int k = 0; k < ROWS_AT_ONCE; k++)
        store_row(l, &r, &parts[k]);
    tcc_op_create(&low->b, TCC_OP_scf_yield, 0, NULL, 0, NULL);
    low->b = outer;
}

/* ---- by the copy engine -------------------------------------------------------------------- */

/* What the copy engine stores at a time, of a panel: its rows and columns of the tile. */
typedef struct box {
    int64_t size[2], first[2]; /* relative to the warpgroup's first row */
} box;

/* Where a warpgroup's row, or a column, is in the buffer, for those at which panels or groups of 8 lines begin. */
static int64_t place_of(const staging *s, int dim, int64_t at)
{
    const tcc_panels *p = &s->panels;
    return dim == s->contiguous ? at * s->elem_bytes / p->width * p->panel_bytes : at * p->width;
}

static void store_box(tcc_nvvm_lowering *l, const tcc_op *op, const staging *s, const box *b, tcc_value *from,
                      tcc_value *map, tcc_value *const *at)
{
    tcc_lowering *low = &l->low;
    unsigned rank = TCC_VIEW(async_send, op)->tensor->type->rank;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    tcc_value *operands[2 + TCC_MAX_RANK];
    operands[0] = tcc_low_add(low, from, place_of(s, 0, b->first[0]) + place_of(s, 1, b->first[1]));
    operands[1] = map;
    for (unsigned d = 0; d < rank; d++) {
        tcc_value **to = &operands[2 + rank - 1 - d];
        *to = at[d];
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d)
                *to = tcc_low_add(low, *to, b->first[x]);
    }
    tcc_op *store = tcc_op_create(&low->b, TCC_OP_nvvm_tma_store, 2 + rank, operands, 0, NULL);
    tcc_attr_carry(low->ir, &store->attrs, &op->attrs, "cache");
}

/* One thread of each warpgroup sends its rows, panel by panel: all of them if it is alone and they run through
 * panels, else those of each block. */
static void send_panels(tcc_nvvm_lowering *l, tcc_op *op, const staging *s, int64_t together)
{
    tcc_lowering *low = &l->low;
    const tcc_value *tensor = TCC_VIEW(async_send, op)->tensor;
    unsigned rank = tensor->type->rank;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    int64_t width = s->panels.width / s->elem_bytes; /* elements of a line */
    bool whole = s->contiguous && together == TCC_WGMMA_ROWS;
    int64_t block = whole ? s->rows : TCC_WGMMA_ROWS; /* rows of a warpgroup that follow each other */
    box b = {.size = {s->contiguous ? block : width, s->contiguous ? width : s->cols}};
    tcc_value *first_row = tcc_low_mul(low, tcc_nvvm_warpgroup(l), TCC_WGMMA_ROWS), *at[TCC_MAX_RANK];
    int64_t extents[TCC_MAX_RANK];
    for (unsigned d = 0; d < rank; d++) {
        bool is_row = dims.list.items[0].i == (int64_t)d, is_col = dims.list.items[1].i == (int64_t)d;
        extents[rank - 1 - d] = is_row ? b.size[0] : is_col ? b.size[1] : 1;
        at[d] = tcc_value_map_get(low->map, op->operands[2 + d]);
        if (is_row)
            at[d] = tcc_low_bin(low, TCC_OP_arith_add, at[d], first_row);
    }
    tcc_value *map = tcc_nvvm_tensormap(l, tensor, rank, extents, s->swizzle);
    tcc_value *from = tcc_low_mul(low, first_row, place_of(s, 0, TCC_WGMMA_ROWS) / TCC_WGMMA_ROWS);
    from = tcc_low_bin(low, TCC_OP_arith_add, s->base, from);
    tcc_op *one = tcc_low_if(low, tcc_nvvm_leads_warpgroup(l));
    for (int64_t row = 0; row < s->rows; row += whole ? s->rows : together)
        for (int64_t in_block = 0; in_block < block; in_block += b.size[0])
            for (b.first[1] = 0; b.first[1] < s->cols; b.first[1] += b.size[1]) {
                b.first[0] = row + in_block;
                store_box(l, op, s, &b, from, map, at);
            }
    TCC_EMIT_V(&low->b, nvvm_bulk_commit, NULL);
    tcc_low_end(low, one);
}

void tcc_nvvm_send(tcc_nvvm_lowering *l, tcc_op *op)
{
    enum { BOX_MAX = 256 }; /* of one dimension: cuTensorMapEncodeTiled */
    tcc_lowering *low = &l->low;
    const tcc_type *tensor = TCC_VIEW(async_send, op)->tensor->type;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    int row = (int)dims.list.items[0].i, col = (int)dims.list.items[1].i;
    staging s;
    if (!plan_staging(l, op, TCC_VIEW(async_send, op)->buffer, &s))
        return;
    int64_t together = l->role.warps / TCC_WARPGROUP_WARPS * TCC_WGMMA_ROWS;
    bool can = (is_in_words(op) ? tcc_can_store_in_words : tcc_can_store_by_tma)(tensor, row, col, s.cols);
    bool fits = s.contiguous || TCC_WGMMA_ROWS * s.elem_bytes % s.panels.width == 0;
    if (!can || s.contiguous != tcc_contiguous_of(tensor, row, col) || !fits || !together ||
        l->role.warps % TCC_WARPGROUP_WARPS || s.rows % together || s.rows > BOX_MAX || s.cols > BOX_MAX)
        TCC_LOW_REFUSE(low, op, "async.send of a tile whose rows are not the tensor's");
    else if (is_in_words(op))
        send_words(l, op, &s, together);
    else
        send_panels(l, op, &s, together);
}

/* Threads have read what they send when they proceed. */
static bool sends_by_engine(const tcc_op *role)
{
    bool sends = false;
    for (tcc_op *op = role->regions[0]->first; op; op = tcc_walk_next(op, role->regions[0]))
        sends |= op->code == TCC_OP_async_send && !is_in_words(op);
    return sends;
}

void tcc_nvvm_send_wait(tcc_nvvm_lowering *l, tcc_op *op)
{
    if (!sends_by_engine(l->role.op))
        return;
    tcc_op *one = tcc_low_if(&l->low, tcc_nvvm_leads_warpgroup(l));
    tcc_op *wait = TCC_EMIT_V(&l->low.b, nvvm_bulk_wait, NULL);
    tcc_attr_set_int(l->low.ir, &wait->attrs, "pending", tcc_attr_int(&op->attrs, "pending", 0));
    tcc_attr_set_int(l->low.ir, &wait->attrs, "read", 1); /* shared memory outlives the copies */
    tcc_low_end(&l->low, one);
}
