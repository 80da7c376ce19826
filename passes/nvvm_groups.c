/* nvvm_groups: copies into shared memory that threads start, 16 bytes each, and wait for in groups.
 *
 * Lines of the stage, as wide as its panels, are dealt to the threads chunk by chunk: a thread's chunks are in
 * the same place of every so many-th line, in each panel. From one to the next its place in the tensor grows by
 * the same number, which is added one time after the other, so that few registers keep addresses; what lies
 * outside of the tensor is copied as zeros.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

enum { CHUNK_BYTES = 16, PERIOD = 1024 /* bytes, after which swizzling begins again */ };

typedef struct chunks {
    tcc_panels panels;
    int64_t swizzle, elems;     /* of a chunk */
    int64_t per_line, at_once;  /* chunks of a line of a panel; lines of all threads */
    tcc_value *x, *line, *dst;  /* of the thread: chunk in a line, first line, address of its first chunk */
    tcc_value *base, *offset;   /* of the tensor; elements to the thread's first chunk, i64 */
    tcc_value *step;            /* elements from its line to its next, i64 */
    tcc_value *lines, *room;    /* left in the tensor from its first line on; elements from its chunk on */
    bool whole;                 /* chunks of the tensor are inside or outside */
} chunks;

static bool plan_threads(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc, chunks *c)
{
    int64_t threads = l->role.warps * TCC_WARP_LANES;
    c->panels = tcc_panels_of(alloc);
    c->swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0);
    c->elems = CHUNK_BYTES * 8 / tcc_scalar_bits(alloc->results[0].type->elem);
    c->per_line = c->panels.width / CHUNK_BYTES;
    c->at_once = threads / c->per_line;
    if (!c->at_once || threads % c->per_line) {
        TCC_LOW_REFUSE(&l->low, copy, "async.copy of lines that threads do not share evenly");
        return false;
    }
    c->x = tcc_low_rem(&l->low, tcc_nvvm_thread(l), c->per_line);
    c->line = tcc_low_div(&l->low, tcc_nvvm_thread(l), c->per_line);
    return true;
}

/* Where the thread's chunks are in the tensor, and how much of it follows. */
static bool plan_tensor(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc, chunks *c)
{
    tcc_lowering *low = &l->low;
    const tcc_value *tensor = TCC_VIEW(async_copy, copy)->tensor;
    const tcc_type *t = tensor->type;
    int inner = tcc_nvvm_contiguous(alloc), along = tcc_nvvm_tensor_dim(copy, inner);
    tcc_value *at[TCC_MAX_RANK], *outside[TCC_MAX_RANK];
    unsigned n_outside = 0;
    int across = tcc_nvvm_tensor_dim(copy, !inner);
    if (along < 0 || along != (int)t->rank - 1 || across == along) {
        TCC_LOW_REFUSE(low, copy, "async.copy by threads of a tile whose rows are not the tensor's");
        return false;
    }
    if (!tcc_is_multiple(copy->operands[4 + along], c->elems, NULL)) {
        TCC_LOW_REFUSE(low, copy, "async.copy by threads of a tile that does not begin at a multiple of 16 bytes");
        return false;
    }
    tcc_nvvm_coordinates(l, copy, t->rank, at);
    c->base = tcc_low_pointer(low, tensor);
    c->offset = c->step = tcc_build_int(&low->b, low->i64, 0);
    c->lines = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_c32(low, 1), c->line);
    c->whole = t->rank > 1;
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one), *index = at[d];
        tcc_value *left = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_extent(low, t->dims[d]), at[d]);
        if (along == (int)d) {
            tcc_value *own = tcc_low_mul(low, c->x, c->elems);
            index = tcc_low_bin(low, TCC_OP_arith_add, index, own);
            c->room = tcc_low_bin(low, TCC_OP_arith_sub, left, own);
        } else if (across == (int)d) {
            index = tcc_low_bin(low, TCC_OP_arith_add, index, c->line);
            c->lines = tcc_low_bin(low, TCC_OP_arith_sub, left, c->line);
            c->step = tcc_low_scaled(low, tcc_low_c32(low, c->at_once), stride);
        } else if (!tcc_is_below(copy->operands[4 + d], t->dims[d])) {
            outside[n_outside++] = tcc_low_cmp(low, "lt", left, tcc_low_c32(low, 1));
        }
        c->offset = tcc_low_bin(low, TCC_OP_arith_add, c->offset, tcc_low_scaled(low, index, stride));
    }
    tcc_value *none = n_outside ? tcc_low_c32(low, 0) : NULL;
    for (unsigned i = 0; i < n_outside; i++)
        c->lines = TCC_EMIT(&low->b, arith_select, low->i32, outside[i], none, c->lines);
    tcc_low_require_alignment(low, tensor, CHUNK_BYTES);
    return true;
}

/* In the stage, of so many lines further; the thread's first where lines of a period swizzle alike. */
static tcc_value *address(tcc_nvvm_lowering *l, const chunks *c, tcc_value *stage, int64_t lines)
{
    tcc_lowering *low = &l->low;
    tcc_value *byte = tcc_low_mul(low, tcc_low_add(low, c->line, lines), c->panels.width);
    byte = tcc_low_bin(low, TCC_OP_arith_add, byte, tcc_low_mul(low, c->x, CHUNK_BYTES));
    return tcc_low_bin(low, TCC_OP_arith_add, stage, tcc_nvvm_swizzle(l, byte, c->swizzle));
}

/* Bytes of the thread's chunk of a panel that are in the tensor, where a line is whose number counts from the
 * end of the tensor: left - further is more than 0 there. */
static tcc_value *bytes_inside(tcc_lowering *low, tcc_value *left, tcc_value *bytes, int64_t further)
{
    tcc_value *inside = tcc_low_cmp(low, "gt", left, tcc_low_c32(low, further));
    return TCC_EMIT(&low->b, arith_select, low->i32, inside, bytes, tcc_low_c32(low, 0));
}

/* Of a panel: the lines that are left where its chunk is in the tensor, else 0; and bytes of the chunk. */
static void plan_panel(tcc_nvvm_lowering *l, const chunks *c, int64_t panel, tcc_value **left, tcc_value **bytes)
{
    tcc_lowering *low = &l->low;
    tcc_value *room = tcc_low_add(low, c->room, -panel * c->per_line * c->elems), *zero = tcc_low_c32(low, 0);
    tcc_value *inside = tcc_low_cmp(low, "gt", room, zero);
    *left = TCC_EMIT(&low->b, arith_select, low->i32, inside, c->lines, zero);
    *bytes = tcc_low_c32(low, CHUNK_BYTES);
    if (!c->whole)
        *bytes = tcc_low_mul(low, tcc_low_bin_const(low, TCC_OP_arith_min, room, c->elems), CHUNK_BYTES / c->elems);
}

/* Line number `round` of the thread in every panel. */
static void copy_line(tcc_nvvm_lowering *l, const chunks *c, int64_t round, tcc_value *dst, tcc_value *offset,
                      tcc_value *const *left, tcc_value *const *bytes)
{
    tcc_lowering *low = &l->low;
    int64_t lines = round * c->at_once;
    tcc_op *guard = NULL;
    if (lines + c->at_once > c->panels.rows)
        guard = tcc_low_if(low, tcc_low_cmp(low, "lt", c->line, tcc_low_c32(low, c->panels.rows - lines)));
    for (int64_t p = 0; p < c->panels.n; p++) {
        tcc_value *at = tcc_low_add(low, dst, p * c->panels.panel_bytes);
        tcc_value *size = bytes_inside(low, left[p], bytes[p], lines);
        tcc_op *op = TCC_EMIT_V(&low->b, nvvm_cp_async, at, c->base, offset, size);
        tcc_attr_set_int(low->ir, &op->attrs, "bytes", CHUNK_BYTES);
        if (p)
            tcc_attr_set_int(low->ir, &op->attrs, "disp", p * c->per_line * c->elems);
    }
    if (guard)
        tcc_low_end(low, guard);
}

void tcc_nvvm_copy_in_groups(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc, tcc_value *i)
{
    tcc_lowering *low = &l->low;
    chunks c = {0};
    if (!plan_threads(l, copy, alloc, &c) || !plan_tensor(l, copy, alloc, &c))
        return;
    tcc_value **left = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)c.panels.n);
    tcc_value **bytes = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)c.panels.n);
    for (int64_t p = 0; p < c.panels.n; p++)
        plan_panel(l, &c, p, &left[p], &bytes[p]);
    tcc_value *stage = tcc_nvvm_stage(l, alloc, i), *first = address(l, &c, stage, 0), *offset = c.offset;
    bool alike = !c.swizzle || c.at_once * c.panels.width % PERIOD == 0;
    for (int64_t round = 0; round * c.at_once < c.panels.rows; round++) {
        int64_t lines = round * c.at_once;
        tcc_value *dst = alike ? tcc_low_add(low, first, lines * c.panels.width) : address(l, &c, stage, lines);
        copy_line(l, &c, round, dst, offset, left, bytes);
        offset = tcc_low_bin(low, TCC_OP_arith_add, offset, c.step);
    }
}
