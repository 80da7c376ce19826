/* nvvm_ring: stages, barriers and copies into shared memory.
 *
 * Iteration i uses stage i % stages, for the (i / stages)-th time. A full barrier completes a
 * phase each time its stage is filled, an empty barrier each time all consumers have released
 * it. So iteration i waits for phase (i / stages) of full, and before copying for phase
 * (i / stages) - 1 of empty: parity 1 of a new barrier counts as complete (PTX ISA,
 * mbarrier.try_wait), which lets the first round through.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

#include <assert.h>
#include <string.h>

enum { CORE_ROW_BYTES = 16 };

static void add_buffer(tcc_nvvm_lowering *l, const tcc_op *alloc)
{
    const tcc_type *t = alloc->results[0].type;
    assert(l->n_buffers < TCC_MAX_BUFFERS);
    tcc_buffer *buf = &l->buffers[l->n_buffers++];
    buf->alloc = &alloc->results[0];
    buf->contiguous = (int)tcc_attr_int(&alloc->attrs, "contiguous", 1);
    buf->swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0);
    buf->width = buf->swizzle ? buf->swizzle : CORE_ROW_BYTES;
    buf->elem_bytes = tcc_scalar_bits(t->elem) / 8;
    buf->rows = t->dims[1 + !buf->contiguous].size;
    buf->row_elems = t->dims[1 + buf->contiguous].size;
    buf->panel_bytes = buf->rows * buf->width;
    buf->stage_bytes = tcc_stage_bytes(buf->rows * buf->row_elems * buf->elem_bytes);
    buf->offset = l->ring_bytes;
    l->stages = t->dims[0].size;
    l->ring_bytes += l->stages * buf->stage_bytes;
}

void tcc_nvvm_plan_memory(tcc_nvvm_lowering *l, tcc_op *grid)
{
    tcc_block *region = grid->regions[0];
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region))
        if (op->code == TCC_OP_async_alloc) {
            add_buffer(l, op);
        } else if (op->code == TCC_OP_async_copy) {
            l->by_tma = !strcmp(tcc_attr_str(&op->attrs, "copy", ""), "tma");
        } else if (op->code == TCC_OP_tile_store &&
                   !strcmp(tcc_attr_str(&op->attrs, "copy", ""), "tma")) {
            const tcc_type *tile = TCC_VIEW(tile_store, op)->a->type;
            const tcc_type *out = TCC_VIEW(tile_store, op)->tensor->type;
            l->staged_bytes +=
                tcc_stage_bytes(tcc_type_count(tile) * tcc_scalar_bits(out->elem) / 8);
        }
    int64_t region_bytes = l->ring_bytes > l->staged_bytes ? l->ring_bytes : l->staged_bytes;
    l->full = region_bytes;
    l->empty = l->full + l->stages * TCC_BARRIER_BYTES;
    l->smem_bytes = l->empty + l->stages * TCC_BARRIER_BYTES;
}

/* Threads that copy together where no TMA does it. */
static int64_t copying_threads(const tcc_nvvm_lowering *l)
{
    int64_t producers = tcc_schedule_producer_threads(&l->low.s);
    return producers ? producers : l->low.s.warpgroups * 128;
}

static void init_barrier(tcc_nvvm_lowering *l, int64_t offset, int64_t arrivals)
{
    tcc_value *address = tcc_low_add(&l->low, l->smem, offset);
    TCC_EMIT_V(&l->low.b, nvvm_mbarrier_init, address, tcc_low_c32(&l->low, arrivals));
}

void tcc_nvvm_init_ring(tcc_nvvm_lowering *l)
{
    tcc_op *first =
        tcc_low_if(&l->low, tcc_low_cmp(&l->low, "eq", l->tid, tcc_low_c32(&l->low, 0)));
    l->init = first->regions[0];
    for (int64_t s = 0; s < l->stages; s++) {
        init_barrier(l, l->full + s * TCC_BARRIER_BYTES, l->by_tma ? 1 : copying_threads(l));
        init_barrier(l, l->empty + s * TCC_BARRIER_BYTES, l->low.s.warpgroups);
    }
    TCC_EMIT_V(&l->low.b, nvvm_fence_mbarrier_init, NULL);
    tcc_low_end(&l->low, first);
    tcc_nvvm_barrier(l, 0, tcc_schedule_threads(&l->low.s));
}

void tcc_nvvm_prefetch_maps(tcc_nvvm_lowering *l)
{
    if (!l->init)
        return;
    tcc_builder b = tcc_builder_before(l->init->first);
    for (size_t i = 0; i < l->low.body->n_args; i++)
        if (l->low.body->args[i]->type->kind == TCC_KIND_tensormap)
            TCC_EMIT_V(&b, nvvm_prefetch_tensormap, l->low.body->args[i]);
}

const tcc_buffer *tcc_nvvm_buffer(const tcc_nvvm_lowering *l, const tcc_value *alloc)
{
    const tcc_buffer *buf = l->buffers;
    while (buf->alloc != alloc)
        buf++;
    return buf;
}

tcc_value *tcc_nvvm_stage(tcc_nvvm_lowering *l, const tcc_buffer *buf, tcc_value *i)
{
    tcc_value *stage = tcc_low_rem(&l->low, i, l->stages);
    tcc_value *offset =
        tcc_low_add(&l->low, tcc_low_mul(&l->low, stage, buf->stage_bytes), buf->offset);
    return tcc_low_bin(&l->low, TCC_OP_arith_add, l->smem, offset);
}

static tcc_value *barrier_of(tcc_nvvm_lowering *l, int64_t first, tcc_value *i)
{
    tcc_value *offset = tcc_low_mul(&l->low, tcc_low_rem(&l->low, i, l->stages), TCC_BARRIER_BYTES);
    return tcc_low_bin(&l->low, TCC_OP_arith_add, l->smem, tcc_low_add(&l->low, offset, first));
}

/* (i / stages) % 2, or its opposite. */
static tcc_value *parity_of(tcc_nvvm_lowering *l, tcc_value *i, int64_t flip)
{
    tcc_value *p = tcc_low_rem(&l->low, tcc_low_div(&l->low, i, l->stages), 2);
    return flip ? tcc_low_bin(&l->low, TCC_OP_arith_xor, p, tcc_low_c32(&l->low, 1)) : p;
}

/* ---- copies --------------------------------------------------------------------------- */

/* The coordinates of an async.copy, in the new function. */
static void coordinates(tcc_nvvm_lowering *l, const tcc_op *copy, unsigned rank, tcc_value **out)
{
    for (unsigned d = 0; d < rank; d++)
        out[d] = tcc_value_map_get(l->low.map, copy->operands[4 + d]);
}

/* The tensor dimension along which tile dimension d runs, -1 for none. */
static int tensor_dim(const tcc_op *copy, int d)
{
    return (int)tcc_attr_list(&copy->attrs, "dims").list.items[d].i;
}

/* One TMA load for each panel. TMA always writes, and counts, the whole box: what lies outside
 * the tensor is zero. */
static void copy_by_tma(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_buffer *buf,
                        tcc_value *i)
{
    const tcc_value *tensor = TCC_VIEW(async_copy, copy)->tensor;
    unsigned rank = tensor->type->rank;
    int inner = tensor_dim(copy, buf->contiguous), outer = tensor_dim(copy, !buf->contiguous);
    int64_t panel_elems = buf->width / buf->elem_bytes, box_elems = 1;
    int64_t box[TCC_MAX_RANK];
    for (unsigned d = 0; d < rank; d++) {
        bool is_inner = (int)d == inner, is_outer = (int)d == outer;
        box[rank - 1 - d] = is_inner ? panel_elems : is_outer ? buf->rows : 1;
        box_elems *= box[rank - 1 - d];
    }
    tcc_value *operands[3 + TCC_MAX_RANK], *at[TCC_MAX_RANK];
    coordinates(l, copy, rank, at);
    operands[1] = tcc_nvvm_tensormap(l, tensor, box, buf->swizzle);
    operands[2] = barrier_of(l, l->full, i);
    tcc_value *stage = tcc_nvvm_stage(l, buf, i);
    for (int64_t p = 0; p * panel_elems < buf->row_elems; p++) {
        operands[0] = tcc_low_add(&l->low, stage, p * buf->panel_bytes);
        for (unsigned d = 0; d < rank; d++)
            operands[3 + rank - 1 - d] =
                (int)d == inner ? tcc_low_add(&l->low, at[d], p * panel_elems) : at[d];
        tcc_op_create(&l->low.b, TCC_OP_nvvm_tma_load, 3 + rank, operands, 0, NULL);
        l->tx_bytes += box_elems * buf->elem_bytes;
    }
}

/* Element by element, for any address and any strides, zeros where the tensor ends. Each row of the
 * stage is taken by as many neighbouring threads as the power of two that covers it, and all
 * threads together take `rows_at_once` rows, IN_FLIGHT times before the first store. */
enum { IN_FLIGHT = 8 };

typedef struct element_copy {
    const tcc_buffer *buf;
    int64_t lanes, rows_at_once, rounds, in_flight;
    tcc_value *x, *row;      /* of the thread: its element in a row, its first row */
    tcc_value *base, *stage; /* address of the tensor, of the stage */
    tcc_value *offset;       /* i64, of the thread's first element */
    tcc_value *stride;       /* i64, from row to row */
    tcc_value *x_inside,
        *rows_inside; /* x is in the tensor; i32, rows of the tensor from here on */
} element_copy;

static void plan_threads(tcc_nvvm_lowering *l, element_copy *c)
{
    const tcc_buffer *buf = c->buf;
    for (c->lanes = 1; c->lanes < buf->row_elems;)
        c->lanes *= 2;
    c->rows_at_once = copying_threads(l) / c->lanes;
    c->rounds = (buf->rows + c->rows_at_once - 1) / c->rows_at_once;
    for (c->in_flight = IN_FLIGHT; c->rounds % c->in_flight;)
        c->in_flight--;
    tcc_value *first =
        tcc_low_c32(&l->low, l->role == TCC_ROLE_PRODUCER ? l->low.s.warpgroups * 128 : 0);
    tcc_value *t = tcc_low_bin(&l->low, TCC_OP_arith_sub, l->tid, first);
    c->x = tcc_low_rem(&l->low, t, c->lanes);
    c->row = tcc_low_div(&l->low, t, c->lanes);
}

static element_copy plan_element_copy(tcc_nvvm_lowering *l, const tcc_op *copy,
                                      const tcc_buffer *buf, tcc_value *i)
{
    const tcc_value *tensor = TCC_VIEW(async_copy, copy)->tensor;
    const tcc_type *t = tensor->type;
    element_copy c = {.buf = buf, .base = tcc_low_pointer(&l->low, tensor)};
    c.stage = tcc_nvvm_stage(l, buf, i);
    c.offset = c.stride = tcc_build_int(&l->low.b, l->low.i64, 0);
    plan_threads(l, &c);
    tcc_value *at[TCC_MAX_RANK];
    coordinates(l, copy, t->rank, at);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(&l->low, t, (int)d, &one), *index = at[d];
        tcc_value *room =
            tcc_low_bin(&l->low, TCC_OP_arith_sub, tcc_low_extent(&l->low, t->dims[d]), at[d]);
        if (tensor_dim(copy, buf->contiguous) == (int)d) {
            index = tcc_low_bin(&l->low, TCC_OP_arith_add, index, c.x);
            c.x_inside = tcc_low_cmp(&l->low, "lt", c.x, room);
        } else if (tensor_dim(copy, !buf->contiguous) == (int)d) {
            c.rows_inside = room;
            c.stride = stride;
        }
        c.offset = tcc_low_bin(&l->low, TCC_OP_arith_add, c.offset,
                               tcc_low_scaled(&l->low, index, stride));
    }
    /* No index along a direction: one element. */
    tcc_value *one = tcc_low_c32(&l->low, 1);
    c.x_inside = c.x_inside ? c.x_inside : tcc_low_cmp(&l->low, "lt", c.x, one);
    c.rows_inside = c.rows_inside ? c.rows_inside : one;
    return c;
}

/* Where the thread's element of a row lies in the stage. */
static tcc_value *element_address(tcc_nvvm_lowering *l, const element_copy *c, tcc_value *row)
{
    const tcc_buffer *buf = c->buf;
    int64_t panel_elems = buf->width / buf->elem_bytes;
    tcc_value *byte =
        tcc_low_mul(&l->low, tcc_low_div(&l->low, c->x, panel_elems), buf->panel_bytes);
    byte = tcc_low_bin(&l->low, TCC_OP_arith_add, byte, tcc_low_mul(&l->low, row, buf->width));
    byte =
        tcc_low_bin(&l->low, TCC_OP_arith_add, byte,
                    tcc_low_mul(&l->low, tcc_low_rem(&l->low, c->x, panel_elems), buf->elem_bytes));
    return tcc_low_bin(&l->low, TCC_OP_arith_add, c->stage,
                       tcc_nvvm_swizzle(l, byte, buf->swizzle));
}

/* The elements of in_flight rounds from row `row` of the thread on. */
static void copy_rounds(tcc_nvvm_lowering *l, const element_copy *c, tcc_value *row,
                        const tcc_type *elem)
{
    const tcc_buffer *buf = c->buf;
    tcc_value *v[IN_FLIGHT], *rows[IN_FLIGHT];
    tcc_value *offset =
        tcc_low_bin(&l->low, TCC_OP_arith_add, c->offset, tcc_low_scaled(&l->low, row, c->stride));
    tcc_value *step = tcc_low_scaled(&l->low, tcc_low_c32(&l->low, c->rows_at_once), c->stride);
    for (int64_t u = 0; u < c->in_flight; u++) {
        rows[u] = tcc_low_add(&l->low, row, u * c->rows_at_once);
        tcc_value *inside = tcc_low_bin(&l->low, TCC_OP_arith_and, c->x_inside,
                                        tcc_low_cmp(&l->low, "lt", rows[u], c->rows_inside));
        v[u] = TCC_EMIT(&l->low.b, nvvm_ld_global, elem, c->base, offset, inside);
        offset = tcc_low_bin(&l->low, TCC_OP_arith_add, offset, step);
    }
    tcc_op *guard = NULL;
    if (c->lanes != buf->row_elems)
        guard = tcc_low_if(&l->low,
                           tcc_low_cmp(&l->low, "lt", c->x, tcc_low_c32(&l->low, buf->row_elems)));
    /* Whole swizzle patterns of 8 rows apart, addresses differ by a constant. */
    int64_t bytes = c->rows_at_once * buf->width, period = 1;
    while (period * bytes % (8 * 128))
        period *= 2;
    tcc_value *address[IN_FLIGHT];
    for (int64_t u = 0; u < c->in_flight; u++) {
        address[u] = u < period
                         ? element_address(l, c, rows[u])
                         : tcc_low_add(&l->low, address[u % period], u / period * period * bytes);
        tcc_op *last = NULL;
        if (c->rounds * c->rows_at_once != buf->rows)
            last = tcc_low_if(&l->low,
                              tcc_low_cmp(&l->low, "lt", rows[u], tcc_low_c32(&l->low, buf->rows)));
        TCC_EMIT_V(&l->low.b, nvvm_st_shared, address[u], v[u]);
        if (last)
            tcc_low_end(&l->low, last);
    }
    if (guard)
        tcc_low_end(&l->low, guard);
}

static void copy_elements(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_buffer *buf,
                          tcc_value *i)
{
    element_copy c = plan_element_copy(l, copy, buf, i);
    tcc_scalar type = TCC_VIEW(async_copy, copy)->tensor->type->elem;
    const tcc_type *elem = tcc_type_sized(l->low.ir, TCC_KIND_vec, type, 1, (int64_t[]){1});
    tcc_value *bounds[] = {tcc_low_c32(&l->low, 0), NULL, NULL};
    bounds[1] = tcc_low_c32(&l->low, c.rounds * c.rows_at_once);
    bounds[2] = tcc_low_c32(&l->low, c.in_flight * c.rows_at_once);
    tcc_op *loop = tcc_op_create(&l->low.b, TCC_OP_scf_for, 3, bounds, 0, NULL);
    tcc_attr_set_int(l->low.ir, &loop->attrs, "at_least_once", 1);
    tcc_value *first = tcc_block_add_arg(loop->regions[0], l->low.i32, "row");
    tcc_builder outer = l->low.b;
    l->low.b = tcc_builder_at_end(loop->regions[0]);
    l->low.b.loc = outer.loc;
    copy_rounds(l, &c, tcc_low_bin(&l->low, TCC_OP_arith_add, first, c.row), elem);
    tcc_op_create(&l->low.b, TCC_OP_scf_yield, 0, NULL, 0, NULL);
    l->low.b = outer;
}

/* Waits for iteration i's stage to be filled, or to be empty. */
static void wait_for(tcc_nvvm_lowering *l, int64_t barriers, tcc_value *i)
{
    tcc_value *bar = barrier_of(l, barriers, i);
    TCC_EMIT_V(&l->low.b, nvvm_mbarrier_wait, bar, parity_of(l, i, barriers == l->empty));
}

static void lower_copy(tcc_nvvm_lowering *l, tcc_op *op)
{
    l->low.b.loc = op->loc;
    tcc_value *i = tcc_value_map_get(l->low.map, op->operands[1]);
    if (op->code == TCC_OP_async_acquire) {
        wait_for(l, l->empty, i);
        l->tx_bytes = 0;
    } else if (op->code == TCC_OP_async_copy) {
        const tcc_buffer *buf = tcc_nvvm_buffer(l, TCC_VIEW(async_copy, op)->buffer);
        (l->by_tma ? copy_by_tma : copy_elements)(l, op, buf, i);
    } else if (l->by_tma) { /* async.commit; the phase cannot end before this arrival */
        tcc_value *bar = barrier_of(l, l->full, i);
        TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive_expect_tx, bar,
                   tcc_low_c32(&l->low, l->tx_bytes));
    } else {
        TCC_EMIT_V(&l->low.b, nvvm_fence_proxy_async, NULL);
        TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive, barrier_of(l, l->full, i));
    }
}

static bool is_copy_op(const tcc_op *op)
{
    return op->code == TCC_OP_async_acquire || op->code == TCC_OP_async_copy;
}

tcc_op *tcc_nvvm_copies(tcc_nvvm_lowering *l, tcc_op *first)
{
    tcc_op *last = first;
    for (; last->code != TCC_OP_async_commit; last = last->next)
        if (!is_copy_op(last))
            tcc_nvvm_op(l, last);
    /* A producer that works by TMA is one thread already. */
    tcc_op *guard = NULL;
    if (l->by_tma && l->role == TCC_ROLE_CONSUMER)
        guard = tcc_low_if(&l->low, tcc_low_cmp(&l->low, "eq", l->tid, tcc_low_c32(&l->low, 0)));
    for (tcc_op *op = first; op != last; op = op->next)
        if (is_copy_op(op))
            lower_copy(l, op);
    lower_copy(l, last);
    if (guard)
        tcc_low_end(&l->low, guard);
    return last;
}

void tcc_nvvm_wait(tcc_nvvm_lowering *l, const tcc_op *op)
{
    wait_for(l, l->full, tcc_value_map_get(l->low.map, TCC_VIEW(async_wait, op)->i));
}

/* One thread of each warpgroup arrives: a product completes for its four warps together. */
void tcc_nvvm_release(tcc_nvvm_lowering *l, const tcc_op *op)
{
    tcc_value *i = tcc_value_map_get(l->low.map, TCC_VIEW(async_release, op)->i);
    tcc_value *first = tcc_nvvm_leads_warpgroup(l);
    tcc_value *valid = tcc_low_cmp(&l->low, "ge", i, tcc_low_c32(&l->low, 0));
    tcc_op *guard = tcc_low_if(&l->low, tcc_low_bin(&l->low, TCC_OP_arith_and, first, valid));
    TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive, barrier_of(l, l->empty, i));
    tcc_low_end(&l->low, guard);
}
