/* nvvm_groups: copies into shared memory that threads start, a chunk each, and wait for in groups.
 *
 * Rows of the tensor are dealt to the threads chunk by chunk: 16 bytes where they run through lines of the stage as well
 * and are aligned, else an element. A thread's chunks are in the same place of every so many-th row, again and again along it. From one
 * row to the next its place in the tensor grows by the same number, which is added one time after the other, so that few
 * registers keep addresses; what lies outside of the tensor is copied as zeros.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/nvvm.h"

enum { CHUNK_BYTES = 16, SECTOR_BYTES = 32, WORD_BYTES = 4, PERIOD = 1024 /* bytes, after which swizzling begins again */ };

typedef struct chunks {
    tcc_panels panels;
    int64_t swizzle, elem_bytes, elems, bytes; /* of a chunk: elems, bytes */
    int64_t rows, beside, at_once, n_beside; /* rows of the tile in the tensor; chunks beside each other and rows of
                                                all threads; how often they take chunks of a row */
    bool transposed;            /* rows of the tensor are no lines of the stage */
    tcc_value *x, *row;         /* of the thread: chunk in a row, first row */
    tcc_value *base, *offset;   /* of the tensor; elements to the thread's first chunk, i64 */
    tcc_value *step;            /* elements from its row to its next, i64 */
    tcc_value *left, *room;     /* rows in the tensor from its first on; elements from its chunk on */
    bool whole;                 /* chunks of the tensor are inside or outside */
} chunks;

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

static bool plan_threads(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc, chunks *c)
{
    const tcc_type *buffer = alloc->results[0].type;
    const tcc_type *tensor = TCC_VIEW(async_copy, copy)->tensor->type;
    int64_t threads = l->role.warps * TCC_WARP_LANES;
    int inner = tcc_nvvm_contiguous(alloc), last = (int)tensor->rank - 1;
    c->panels = tcc_panels_of(alloc);
    c->swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0);
    c->elem_bytes = tcc_scalar_bits(buffer->elem) / 8;
    c->transposed = tcc_nvvm_tensor_dim(copy, inner) != last && tcc_nvvm_tensor_dim(copy, !inner) == last;
    int along = c->transposed ? !inner : inner;
    bool single = c->transposed || !strcmp(tcc_attr_str(&copy->attrs, "copy", ""), "cp_async_elements");
    if (single && c->elem_bytes < WORD_BYTES) {
        TCC_LOW_REFUSE(&l->low, copy, "async.copy by threads of a tile whose rows are not the tensor's, of less than 4 bytes an element");
        return false;
    }
    c->elems = single ? 1 : CHUNK_BYTES * 8 / tcc_scalar_bits(buffer->elem);
    c->bytes = single ? c->elem_bytes : CHUNK_BYTES;
    int64_t in_row = buffer->dims[1 + along].size / c->elems;
    c->rows = buffer->dims[1 + !along].size;
    /* Transposed, a warp takes sectors of rows that become chunks of lines. A panel's chunks follow each other in shared
     * memory; narrow panels are as far apart as banks like it. */
    c->beside = c->transposed                      ? common_divisor(in_row, SECTOR_BYTES / c->elem_bytes)
                : c->panels.width == CHUNK_BYTES ? common_divisor(in_row, threads)
                                                   : c->panels.width / c->bytes;
    c->at_once = c->beside ? threads / c->beside : 0;
    if (!c->at_once || threads % c->beside || in_row % c->beside) {
        TCC_LOW_REFUSE(&l->low, copy, "async.copy of lines that threads do not share evenly");
        return false;
    }
    c->n_beside = in_row / c->beside;
    c->x = tcc_low_rem(&l->low, tcc_nvvm_thread(l), c->beside);
    c->row = tcc_low_div(&l->low, tcc_nvvm_thread(l), c->beside);
    return true;
}

/* Where the thread's chunks are in the tensor, and how much of it follows. */
static bool plan_tensor(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc, chunks *c)
{
    tcc_lowering *low = &l->low;
    const tcc_value *tensor = TCC_VIEW(async_copy, copy)->tensor;
    const tcc_type *t = tensor->type;
    int inner = tcc_nvvm_contiguous(alloc) != c->transposed, along = tcc_nvvm_tensor_dim(copy, inner);
    tcc_value *at[TCC_MAX_RANK], *outside[TCC_MAX_RANK];
    unsigned n_outside = 0;
    int across = tcc_nvvm_tensor_dim(copy, !inner);
    if (along < 0 || along != (int)t->rank - 1 || across == along) {
        TCC_LOW_REFUSE(low, copy, "async.copy by threads of a tile whose rows are not the tensor's");
        return false;
    }
    if (!c->transposed && !tcc_is_multiple(copy->operands[4 + along], c->elems, NULL)) {
        TCC_LOW_REFUSE(low, copy, "async.copy by threads of a tile that does not begin at a multiple of 16 bytes");
        return false;
    }
    tcc_nvvm_coordinates(l, copy, t->rank, at);
    c->base = tcc_low_pointer(low, tensor);
    c->offset = c->step = tcc_build_int(&low->b, low->i64, 0);
    c->left = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_c32(low, 1), c->row);
    c->whole = t->rank > 1 || c->elems == 1;
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one), *index = at[d];
        tcc_value *left = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_extent(low, t->dims[d]), at[d]);
        if (along == (int)d) {
            tcc_value *own = tcc_low_mul(low, c->x, c->elems);
            index = tcc_low_bin(low, TCC_OP_arith_add, index, own);
            c->room = tcc_low_bin(low, TCC_OP_arith_sub, left, own);
        } else if (across == (int)d) {
            index = tcc_low_bin(low, TCC_OP_arith_add, index, c->row);
            c->left = tcc_low_bin(low, TCC_OP_arith_sub, left, c->row);
            c->step = tcc_low_scaled(low, tcc_low_c32(low, c->at_once), stride);
        } else if (!tcc_is_below(copy->operands[4 + d], t->dims[d])) {
            outside[n_outside++] = tcc_low_cmp(low, "lt", left, tcc_low_c32(low, 1));
        }
        c->offset = tcc_low_bin(low, TCC_OP_arith_add, c->offset, tcc_low_scaled(low, index, stride));
    }
    tcc_value *none = n_outside ? tcc_low_c32(low, 0) : NULL;
    for (unsigned i = 0; i < n_outside; i++)
        c->left = TCC_EMIT(&low->b, arith_select, low->i32, outside[i], none, c->left);
    tcc_low_require_alignment(low, tensor, c->elems * c->elem_bytes);
    return true;
}

/* In the stage: of a chunk so many further along its row, and so many rows further. */
static tcc_value *address(tcc_nvvm_lowering *l, const chunks *c, tcc_value *stage, int64_t chunks_further,
                          int64_t rows_further)
{
    tcc_lowering *low = &l->low;
    tcc_value *chunk = tcc_low_add(low, c->x, chunks_further), *row = tcc_low_add(low, c->row, rows_further);
    tcc_value *line = c->transposed ? chunk : row;
    tcc_value *byte = c->transposed ? tcc_low_mul(low, row, c->elem_bytes) : tcc_low_mul(low, chunk, c->bytes);
    tcc_value *panel = tcc_low_mul(low, tcc_low_div(low, byte, c->panels.width), c->panels.panel_bytes);
    tcc_value *begin = tcc_low_mul(low, line, c->panels.width);
    byte = tcc_low_bin(low, TCC_OP_arith_add, begin, tcc_low_rem(low, byte, c->panels.width));
    tcc_value *first = tcc_low_bin(low, TCC_OP_arith_add, stage, panel);
    return tcc_low_bin(low, TCC_OP_arith_add, first, tcc_nvvm_swizzle(l, byte, c->swizzle));
}

/* How many bytes further in the stage than the thread's first chunk that is, whichever it is; false when that depends on
 * the thread. */
static bool is_further(const chunks *c, int64_t chunks_further, int64_t rows_further, int64_t *bytes)
{
    int64_t lines = c->transposed ? chunks_further : rows_further;
    int64_t across = c->transposed ? rows_further * c->elem_bytes : chunks_further * c->bytes;
    *bytes = lines * c->panels.width + across / c->panels.width * c->panels.panel_bytes;
    return across % c->panels.width == 0 && (!c->swizzle || lines * c->panels.width % PERIOD == 0);
}

/* Bytes of the thread's chunk that are in the tensor, of a row whose number counts from the end of the tensor:
 * left - further is more than 0 there. */
static tcc_value *bytes_inside(tcc_lowering *low, tcc_value *left, tcc_value *bytes, int64_t further)
{
    tcc_value *inside = tcc_low_cmp(low, "gt", left, tcc_low_c32(low, further));
    return TCC_EMIT(&low->b, arith_select, low->i32, inside, bytes, tcc_low_c32(low, 0));
}

/* Of the chunk so many further along a row: the rows that are left where it is in the tensor, else 0; and bytes of it. */
static void plan_chunk(tcc_nvvm_lowering *l, const chunks *c, int64_t further, tcc_value **left, tcc_value **bytes)
{
    tcc_lowering *low = &l->low;
    tcc_value *room = tcc_low_add(low, c->room, -further * c->elems), *zero = tcc_low_c32(low, 0);
    tcc_value *inside = tcc_low_cmp(low, "gt", room, zero);
    *left = TCC_EMIT(&low->b, arith_select, low->i32, inside, c->left, zero);
    *bytes = tcc_low_c32(low, c->bytes);
    if (!c->whole)
        *bytes = tcc_low_mul(low, tcc_low_bin_const(low, TCC_OP_arith_min, room, c->elems), CHUNK_BYTES / c->elems);
}

/* What the thread copies of its row so many rows further. first: the address of its first chunk */
static void copy_row(tcc_nvvm_lowering *l, const chunks *c, int64_t rows, tcc_value *stage, tcc_value *first,
                     tcc_value *offset, tcc_value *const *left, tcc_value *const *bytes)
{
    tcc_lowering *low = &l->low;
    tcc_op *guard = NULL;
    if (rows + c->at_once > c->rows)
        guard = tcc_low_if(low, tcc_low_cmp(low, "lt", c->row, tcc_low_c32(low, c->rows - rows)));
    tcc_value *of_row = NULL; /* where rows do not swizzle alike, chunks of one may */
    for (int64_t p = 0; p < c->n_beside; p++) {
        int64_t further, in_row;
        tcc_value *at;
        if (is_further(c, p * c->beside, rows, &further))
            at = tcc_low_add(low, first, further);
        else if (of_row && is_further(c, p * c->beside, 0, &in_row))
            at = tcc_low_add(low, of_row, in_row);
        else
            at = address(l, c, stage, p * c->beside, rows);
        of_row = p ? of_row : at;
        tcc_value *size = bytes_inside(low, left[p], bytes[p], rows);
        tcc_op *op = TCC_EMIT_V(&low->b, nvvm_cp_async, at, c->base, offset, size);
        tcc_attr_set_int(low->ir, &op->attrs, "bytes", c->bytes);
        if (p)
            tcc_attr_set_int(low->ir, &op->attrs, "disp", p * c->beside * c->elems);
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
    tcc_value **left = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)c.n_beside);
    tcc_value **bytes = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)c.n_beside);
    for (int64_t p = 0; p < c.n_beside; p++)
        plan_chunk(l, &c, p * c.beside, &left[p], &bytes[p]);
    tcc_value *stage = tcc_nvvm_stage(l, alloc, i), *first = address(l, &c, stage, 0, 0), *offset = c.offset;
    for (int64_t rows = 0; rows < c.rows; rows += c.at_once) {
        copy_row(l, &c, rows, stage, first, offset, left, bytes);
        offset = tcc_low_bin(low, TCC_OP_arith_add, offset, c.step);
    }
}
