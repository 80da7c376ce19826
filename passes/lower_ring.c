/* lower_ring: stages, barriers and copies into shared memory.
 *
 * Iteration i uses stage i % stages, for the (i / stages)-th time. A full barrier completes a
 * phase each time its stage is filled, an empty barrier each time all consumers have released
 * it. So iteration i waits for phase (i / stages) of full, and before copying for phase
 * (i / stages) - 1 of empty: parity 1 of a new barrier counts as complete (PTX ISA,
 * mbarrier.try_wait), which lets the first round through.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/lower.h"

#include <assert.h>
#include <string.h>

/* The matrix instruction and TMA see 128-byte swizzles in units of 1024 bytes. */
enum { STAGE_ALIGN = 1024, BARRIER_BYTES = 8, CORE_ROW_BYTES = 16 };

static int64_t align_up(int64_t x, int64_t a)
{
    return (x + a - 1) / a * a;
}

static void add_buffer(tcc_lower *l, const tcc_op *alloc)
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
    buf->stage_bytes = align_up(buf->rows * buf->row_elems * buf->elem_bytes, STAGE_ALIGN);
    buf->offset = l->ring_bytes;
    l->stages = t->dims[0].size;
    l->ring_bytes += l->stages * buf->stage_bytes;
}

void tcc_low_plan_memory(tcc_lower *l, tcc_op *grid)
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
            l->staged_bytes += align_up(
                tcc_type_count(tile) * tcc_scalar_bits(out->elem) / 8, STAGE_ALIGN);
        }
    int64_t region_bytes = l->ring_bytes > l->staged_bytes ? l->ring_bytes : l->staged_bytes;
    l->full = region_bytes;
    l->empty = l->full + l->stages * BARRIER_BYTES;
    l->smem_bytes = l->empty + l->stages * BARRIER_BYTES;
}

/* Threads that copy together where no TMA does it. */
static int64_t copying_threads(const tcc_lower *l)
{
    int64_t producers = tcc_schedule_producer_threads(&l->s);
    return producers ? producers : l->s.warpgroups * 128;
}

void tcc_low_init_ring(tcc_lower *l)
{
    tcc_op *first = tcc_low_if(l, tcc_low_cmp(l, "eq", l->tid, tcc_low_c32(l, 0)));
    l->init = first->regions[0];
    for (int64_t s = 0; s < l->stages; s++) {
        TCC_EMIT_V(&l->b, nvvm_mbarrier_init, tcc_low_add(l, l->smem, l->full + s * BARRIER_BYTES),
                   tcc_low_c32(l, l->by_tma ? 1 : copying_threads(l)));
        TCC_EMIT_V(&l->b, nvvm_mbarrier_init, tcc_low_add(l, l->smem, l->empty + s * BARRIER_BYTES),
                   tcc_low_c32(l, l->s.warpgroups));
    }
    TCC_EMIT_V(&l->b, nvvm_fence_mbarrier_init, NULL);
    tcc_low_end(l, first);
    TCC_EMIT_V(&l->b, nvvm_barrier, tcc_low_c32(l, 0),
               tcc_low_c32(l, tcc_schedule_threads(&l->s)));
}

void tcc_low_prefetch_maps(tcc_lower *l)
{
    if (!l->init)
        return;
    tcc_builder b = tcc_builder_before(l->init->first);
    for (size_t i = 0; i < l->body->n_args; i++)
        if (l->body->args[i]->type->kind == TCC_KIND_tensormap)
            TCC_EMIT_V(&b, nvvm_prefetch_tensormap, l->body->args[i]);
}

const tcc_buffer *tcc_low_buffer(const tcc_lower *l, const tcc_value *alloc)
{
    const tcc_buffer *buf = l->buffers;
    while (buf->alloc != alloc)
        buf++;
    return buf;
}

tcc_value *tcc_low_stage(tcc_lower *l, const tcc_buffer *buf, tcc_value *i)
{
    tcc_value *stage = tcc_low_rem(l, i, l->stages);
    tcc_value *offset = tcc_low_add(l, tcc_low_mul(l, stage, buf->stage_bytes), buf->offset);
    return tcc_low_bin(l, TCC_OP_arith_add, l->smem, offset);
}

static tcc_value *barrier_of(tcc_lower *l, int64_t first, tcc_value *i)
{
    tcc_value *offset = tcc_low_mul(l, tcc_low_rem(l, i, l->stages), BARRIER_BYTES);
    return tcc_low_bin(l, TCC_OP_arith_add, l->smem, tcc_low_add(l, offset, first));
}

/* (i / stages) % 2, or its opposite. */
static tcc_value *parity_of(tcc_lower *l, tcc_value *i, int64_t flip)
{
    tcc_value *p = tcc_low_rem(l, tcc_low_div(l, i, l->stages), 2);
    return flip ? tcc_low_bin(l, TCC_OP_arith_xor, p, tcc_low_c32(l, 1)) : p;
}

/* ---- copies --------------------------------------------------------------------------- */

/* The coordinates of an async.copy, in the new function. */
static void coordinates(tcc_lower *l, const tcc_op *copy, unsigned rank, tcc_value **out)
{
    for (unsigned d = 0; d < rank; d++)
        out[d] = tcc_value_map_get(l->map, copy->operands[4 + d]);
}

/* The tensor dimension along which tile dimension d runs, -1 for none. */
static int tensor_dim(const tcc_op *copy, int d)
{
    return (int)tcc_attr_list(&copy->attrs, "dims").list.items[d].i;
}

/* One TMA load for each panel. TMA always writes, and counts, the whole box: what lies outside
 * the tensor is zero. */
static void copy_by_tma(tcc_lower *l, const tcc_op *copy, const tcc_buffer *buf, tcc_value *i)
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
    operands[1] = tcc_low_tensormap(l, tensor, box, buf->swizzle);
    operands[2] = barrier_of(l, l->full, i);
    tcc_value *stage = tcc_low_stage(l, buf, i);
    for (int64_t p = 0; p * panel_elems < buf->row_elems; p++) {
        operands[0] = tcc_low_add(l, stage, p * buf->panel_bytes);
        for (unsigned d = 0; d < rank; d++)
            operands[3 + rank - 1 - d] =
                (int)d == inner ? tcc_low_add(l, at[d], p * panel_elems) : at[d];
        tcc_op_create(&l->b, TCC_OP_nvvm_tma_load, 3 + rank, operands, 0, NULL);
        l->tx_bytes += box_elems * buf->elem_bytes;
    }
}

/* Element by element, for any address and any strides: thread t copies elements t, t + threads, …
 * of the stage, in its own order, and zeros where the tensor ends. */
typedef struct element_copy {
    const tcc_buffer *buf;
    tcc_value *base, *stage;         /* address of the tensor, of the stage */
    tcc_value *origin;               /* i64 offset of the tile's first element */
    tcc_value *stride[2];            /* i64, along and across rows of the stage */
    tcc_value *room[2];              /* i32, elements of the tensor from the tile's first on */
    const tcc_type *elem;
} element_copy;

static tcc_value *load_element(tcc_lower *l, const element_copy *c, tcc_value *x, tcc_value *row)
{
    tcc_value *offset = c->origin, *at[] = {x, row};
    tcc_value *inside = NULL;
    for (int d = 0; d < 2; d++) {
        if (!c->stride[d])
            continue;
        offset = tcc_low_bin(l, TCC_OP_arith_add, offset,
                             tcc_low_bin(l, TCC_OP_arith_mul, tcc_low_cast(l, l->i64, at[d]),
                                         c->stride[d]));
    }
    for (int d = 0; d < 2; d++) {
        tcc_value *in = tcc_low_cmp(l, "lt", at[d], c->room[d]);
        inside = inside ? tcc_low_bin(l, TCC_OP_arith_and, inside, in) : in;
    }
    return TCC_EMIT(&l->b, nvvm_ld_global, c->elem, c->base, offset, inside);
}

static void store_element(tcc_lower *l, const element_copy *c, tcc_value *x, tcc_value *row,
                          tcc_value *v)
{
    const tcc_buffer *buf = c->buf;
    int64_t panel_elems = buf->width / buf->elem_bytes;
    tcc_value *byte = tcc_low_mul(l, tcc_low_div(l, x, panel_elems), buf->panel_bytes);
    byte = tcc_low_bin(l, TCC_OP_arith_add, byte, tcc_low_mul(l, row, buf->width));
    byte = tcc_low_bin(l, TCC_OP_arith_add, byte,
                       tcc_low_mul(l, tcc_low_rem(l, x, panel_elems), buf->elem_bytes));
    byte = tcc_low_swizzle(l, byte, buf->swizzle);
    TCC_EMIT_V(&l->b, nvvm_st_shared, tcc_low_bin(l, TCC_OP_arith_add, c->stage, byte), v);
}

static element_copy plan_element_copy(tcc_lower *l, const tcc_op *copy, const tcc_buffer *buf,
                                      tcc_value *i)
{
    const tcc_value *tensor = TCC_VIEW(async_copy, copy)->tensor;
    const tcc_type *t = tensor->type;
    tcc_value *at[TCC_MAX_RANK];
    coordinates(l, copy, t->rank, at);
    element_copy c = {.buf = buf,
                      .base = tcc_low_pointer(l, tensor),
                      .stage = tcc_low_stage(l, buf, i),
                      .origin = tcc_build_int(&l->b, l->i64, 0),
                      .elem = tcc_type_sized(l->ir, TCC_KIND_vec, t->elem, 1, (int64_t[]){1})};
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(l, t, (int)d, &one);
        c.origin = tcc_low_bin(
            l, TCC_OP_arith_add, c.origin,
            tcc_low_bin(l, TCC_OP_arith_mul, tcc_low_cast(l, l->i64, at[d]), stride));
        for (int x = 0; x < 2; x++)
            if (tensor_dim(copy, x ? !buf->contiguous : buf->contiguous) == (int)d) {
                c.stride[x] = stride;
                c.room[x] = tcc_low_bin(l, TCC_OP_arith_sub, tcc_low_extent(l, t->dims[d]), at[d]);
            }
    }
    for (int x = 0; x < 2; x++) /* no index along this direction: one element */
        if (!c.room[x])
            c.room[x] = tcc_low_c32(l, 1);
    return c;
}

static void copy_elements(tcc_lower *l, const tcc_op *copy, const tcc_buffer *buf, tcc_value *i)
{
    enum { IN_FLIGHT = 8 }; /* loads that a thread starts before it stores the first */
    element_copy c = plan_element_copy(l, copy, buf, i);
    int64_t threads = copying_threads(l), total = buf->rows * buf->row_elems;
    tcc_value *first = tcc_low_c32(l, l->role == TCC_ROLE_PRODUCER ? l->s.warpgroups * 128 : 0);
    tcc_value *t = tcc_low_bin(l, TCC_OP_arith_sub, l->tid, first);
    int64_t step = threads * IN_FLIGHT;
    tcc_value *bounds[] = {tcc_low_c32(l, 0), tcc_low_c32(l, total), tcc_low_c32(l, step)};
    tcc_op *loop = tcc_op_create(&l->b, TCC_OP_scf_for, 3, bounds, 0, NULL);
    tcc_attr_set_int(l->ir, &loop->attrs, "at_least_once", 1);
    tcc_value *base = tcc_block_add_arg(loop->regions[0], l->i32, NULL);
    tcc_builder outer = l->b;
    l->b = tcc_builder_at_end(loop->regions[0]);
    l->b.loc = outer.loc;
    tcc_value *x[IN_FLIGHT], *row[IN_FLIGHT], *v[IN_FLIGHT];
    base = tcc_low_bin(l, TCC_OP_arith_add, base, t);
    for (int u = 0; u < IN_FLIGHT; u++) {
        tcc_value *index = tcc_low_add(l, base, u * threads);
        x[u] = tcc_low_rem(l, index, buf->row_elems);
        row[u] = tcc_low_div(l, index, buf->row_elems);
        v[u] = load_element(l, &c, x[u], row[u]);
    }
    for (int u = 0; u < IN_FLIGHT; u++) {
        tcc_op *guard = NULL;
        if (total % step) /* the last round may go past the stage */
            guard = tcc_low_if(l, tcc_low_cmp(l, "lt", row[u], tcc_low_c32(l, buf->rows)));
        store_element(l, &c, x[u], row[u], v[u]);
        if (guard)
            tcc_low_end(l, guard);
    }
    tcc_op_create(&l->b, TCC_OP_scf_yield, 0, NULL, 0, NULL);
    l->b = outer;
}

static void lower_copy_op(tcc_lower *l, tcc_op *op)
{
    l->b.loc = op->loc;
    tcc_value *i = tcc_value_map_get(l->map, op->operands[1]);
    if (op->code == TCC_OP_async_acquire) {
        TCC_EMIT_V(&l->b, nvvm_mbarrier_wait, barrier_of(l, l->empty, i), parity_of(l, i, 1));
        l->tx_bytes = 0;
    } else if (op->code == TCC_OP_async_copy) {
        const tcc_buffer *buf = tcc_low_buffer(l, TCC_VIEW(async_copy, op)->buffer);
        (l->by_tma ? copy_by_tma : copy_elements)(l, op, buf, i);
    } else if (l->by_tma) { /* async.commit; the phase cannot end before this arrival */
        TCC_EMIT_V(&l->b, nvvm_mbarrier_arrive_expect_tx, barrier_of(l, l->full, i),
                   tcc_low_c32(l, l->tx_bytes));
    } else {
        TCC_EMIT_V(&l->b, nvvm_fence_proxy_async, NULL);
        TCC_EMIT_V(&l->b, nvvm_mbarrier_arrive, barrier_of(l, l->full, i));
    }
}

static bool is_copy_op(const tcc_op *op)
{
    return op->code == TCC_OP_async_acquire || op->code == TCC_OP_async_copy;
}

tcc_op *tcc_low_copies(tcc_lower *l, tcc_op *first)
{
    tcc_op *last = first;
    for (; last->code != TCC_OP_async_commit; last = last->next)
        if (!is_copy_op(last))
            tcc_low_op(l, last);
    /* A producer that works by TMA is one thread already. */
    tcc_op *guard = NULL;
    if (l->by_tma && l->role == TCC_ROLE_CONSUMER)
        guard = tcc_low_if(l, tcc_low_cmp(l, "eq", l->tid, tcc_low_c32(l, 0)));
    for (tcc_op *op = first; op != last; op = op->next)
        if (is_copy_op(op))
            lower_copy_op(l, op);
    lower_copy_op(l, last);
    if (guard)
        tcc_low_end(l, guard);
    return last;
}

void tcc_low_wait(tcc_lower *l, const tcc_op *op)
{
    tcc_value *i = tcc_value_map_get(l->map, TCC_VIEW(async_wait, op)->i);
    TCC_EMIT_V(&l->b, nvvm_mbarrier_wait, barrier_of(l, l->full, i), parity_of(l, i, 0));
}

/* One thread of each warpgroup arrives: a product completes for its four warps together. */
void tcc_low_release(tcc_lower *l, const tcc_op *op)
{
    tcc_value *i = tcc_value_map_get(l->map, TCC_VIEW(async_release, op)->i);
    tcc_value *first = tcc_low_cmp(l, "eq", tcc_low_rem(l, l->tid, 128), tcc_low_c32(l, 0));
    tcc_value *valid = tcc_low_cmp(l, "ge", i, tcc_low_c32(l, 0));
    tcc_op *guard = tcc_low_if(l, tcc_low_bin(l, TCC_OP_arith_and, first, valid));
    TCC_EMIT_V(&l->b, nvvm_mbarrier_arrive, barrier_of(l, l->empty, i));
    tcc_low_end(l, guard);
}
