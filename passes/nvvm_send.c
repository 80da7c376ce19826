/* nvvm_send: results on their way through shared memory.
 *
 * A buffer lies in panels that hold every row of the tile, swizzled as TMA does it. Each warpgroup sends
 * the rows that its threads hold, panel by panel.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

/* A buffer of results. */
typedef struct staging {
    tcc_panels panels;
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
                   .swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0),
                   .elem_bytes = tcc_scalar_bits(buffer->type->elem) / 8,
                   .rows = dims[1].size,
                   .cols = dims[2].size};
    if (!tcc_attr_int(&alloc->attrs, "contiguous", 1)) {
        TCC_LOW_REFUSE(&l->low, op, "%s of a buffer with contiguous columns",
                       tcc_op_info_get(op->code)->name);
        return false;
    }
    s->base = tcc_low_add(&l->low, l->smem, tcc_attr_int(&alloc->attrs, "offset", 0));
    return true;
}

/* Address of byte `own` of a thread's columns from `col` on, in `row`. Swizzling exclusive-ors 16-byte
 * chunks with row % 8, which is the same in all rows of a thread, and a column that is a multiple of 8
 * has no bit in common with the thread's own: so it is exclusive-ored too. */
static tcc_value *address(tcc_nvvm_lowering *l, const staging *s, tcc_value *row, tcc_value *own,
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

/* What async.write says. */
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

/* 16-bit results of 16 columns go as four 8 x 8 matrices: lane q gives the address of row q % 16,
 * columns q / 16 * 8 on. */
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
    TCC_EMIT_V(&low->b, nvvm_stmatrix, address(l, &w->to, row, own, col), words);
}

static void write_pair(tcc_nvvm_lowering *l, const writing *w, int64_t number)
{
    tcc_lowering *low = &l->low;
    tcc_value *row = moved(l, w, tcc_low_own(low, &w->held, 0), number, 0);
    row = tcc_low_bin(low, TCC_OP_arith_add, row, w->row);
    tcc_value *own = tcc_low_mul(low, tcc_low_own(low, &w->held, 1), w->to.elem_bytes);
    tcc_value *col = moved(l, w, w->col, number, 1);
    tcc_value *part = tcc_low_slice(low, w->v, number, 2);
    TCC_EMIT_V(&low->b, nvvm_st_shared, address(l, &w->to, row, own, col), part);
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
        TCC_LOW_REFUSE(low, op, "async.write of a tile that is not held by the rows of warpgroups");
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

void tcc_nvvm_publish(tcc_nvvm_lowering *l, tcc_op *op)
{
    (void)op;
    TCC_EMIT_V(&l->low.b, nvvm_fence_proxy_async, NULL);
    tcc_value *id = tcc_low_add(&l->low, tcc_nvvm_warpgroup(l), l->role.barrier + 1);
    tcc_nvvm_barrier(l, id, TCC_WARPGROUP_WARPS * TCC_WARP_LANES);
}

/* One thread of each warpgroup sends its rows, panel by panel. */
void tcc_nvvm_send(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_value *tensor = TCC_VIEW(async_send, op)->tensor;
    unsigned rank = tensor->type->rank;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    staging s;
    if (!plan_staging(l, op, TCC_VIEW(async_send, op)->buffer, &s))
        return;
    int64_t warpgroups = l->role.warps / TCC_WARPGROUP_WARPS, together = warpgroups * TCC_WGMMA_ROWS;
    bool can = tcc_can_store_by_tma(tensor->type, (int)dims.list.items[0].i,
                                    (int)dims.list.items[1].i, s.cols);
    if (!can || !together || l->role.warps % TCC_WARPGROUP_WARPS || s.rows % together ||
        s.rows > 256) {
        TCC_LOW_REFUSE(low, op, "async.send of a tile whose rows are not the tensor's");
        return;
    }
    int64_t box_rows = warpgroups == 1 ? s.rows : TCC_WGMMA_ROWS;
    int64_t panel_elems = s.panels.width / s.elem_bytes;
    tcc_value *first_row = tcc_low_mul(low, tcc_nvvm_warpgroup(l), TCC_WGMMA_ROWS);
    int64_t box[TCC_MAX_RANK];
    tcc_value *at[TCC_MAX_RANK], *operands[2 + TCC_MAX_RANK];
    for (unsigned d = 0; d < rank; d++) {
        bool is_row = dims.list.items[0].i == (int64_t)d, is_col = d == rank - 1;
        box[rank - 1 - d] = is_row ? box_rows : is_col ? panel_elems : 1;
        at[d] = tcc_value_map_get(low->map, op->operands[2 + d]);
        if (is_row)
            at[d] = tcc_low_bin(low, TCC_OP_arith_add, at[d], first_row);
    }
    operands[1] = tcc_nvvm_tensormap(l, tensor, rank, box, s.swizzle);
    tcc_value *from = tcc_low_bin(low, TCC_OP_arith_add, s.base,
                                  tcc_low_mul(low, first_row, s.panels.width));
    tcc_op *one = tcc_low_if(low, tcc_nvvm_leads_warpgroup(l));
    for (int64_t row = 0; row < s.rows; row += warpgroups == 1 ? s.rows : together)
        for (int64_t p = 0; p < s.panels.n; p++) {
            operands[0] = tcc_low_add(low, from, p * s.panels.panel_bytes + row * s.panels.width);
            for (unsigned d = 0; d < rank; d++)
                operands[2 + rank - 1 - d] =
                    d == rank - 1 ? tcc_low_add(low, at[d], p * panel_elems)
                    : dims.list.items[0].i == (int64_t)d ? tcc_low_add(low, at[d], row)
                                                         : at[d];
            tcc_op_create(&low->b, TCC_OP_nvvm_tma_store, 2 + rank, operands, 0, NULL);
        }
    TCC_EMIT_V(&low->b, nvvm_bulk_commit, NULL);
    tcc_low_end(low, one);
}

void tcc_nvvm_send_wait(tcc_nvvm_lowering *l, tcc_op *op)
{
    (void)op;
    tcc_op *one = tcc_low_if(&l->low, tcc_nvvm_leads_warpgroup(l));
    tcc_op *wait = TCC_EMIT_V(&l->low.b, nvvm_bulk_wait, NULL);
    tcc_attr_set_int(l->low.ir, &wait->attrs, "pending", 0);
    tcc_attr_set_int(l->low.ir, &wait->attrs, "read", 1); /* shared memory outlives the copies */
    tcc_low_end(&l->low, one);
}
