/* nvvm_chunks: copies into shared memory by threads, one chunk each at a time: started and awaited in groups
 * (cp.async), or loaded to registers and put into a stage later.
 *
 * Rows of the tensor are distributed to the threads chunk by chunk: 16 bytes if they are aligned and run along lines of
 * the stage as well, else one element. A thread's chunks are at the same columns of rows at a fixed distance,
 * repeatedly along the row. From one of its rows to the next its address grows by the same number, which is added
 * repeatedly, so that few registers hold addresses; elements outside the tensor are copied as zeros.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/nvvm.h"
#include "support/gcd.h"

enum { CHUNK_BYTES = 16, SECTOR_BYTES = 32, WORD_BYTES = 4 };
enum { PERIOD = 1024 }; /* bytes, after which swizzling begins again */

typedef struct chunks {
    tcc_units of;
    tcc_panels panels; /* of the stage */
    int64_t swizzle;
    tcc_value *x, *row;         /* of the thread: chunk in a row, first row */
    tcc_value *base, *offset;   /* of the tensor; elements to the thread's first chunk, i64 */
    tcc_value *step;            /* elements from its row to its next, i64 */
    tcc_value *left, *room;     /* rows in the tensor from its first on; elements from its chunk on */
    bool whole_rows, whole_columns; /* all of the tile's are in the tensor where the first is */
} chunks;

/* ---- which thread copies what ------------------------------------------------------------- */

/* The coordinates of an async.copy or a tile.load. */
static tcc_value *const *coordinates_of(const tcc_op *op)
{
    return op->operands + (op->code == TCC_OP_async_copy ? 4 : 1);
}

static const tcc_type *tensor_of(const tcc_op *op)
{
    return coordinates_of(op)[-1]->type;
}

/* For a tile with these extents, by all threads of the role. attrs: of the op with the layout of its stage. False,
 * refused, if they do not share it evenly. */
static bool find_units(tcc_nvvm_lowering *l, const tcc_op *op, const tcc_attrs *attrs, const tcc_dim *extents,
                       tcc_units *u)
{
    const tcc_type *tensor = tensor_of(op);
    int64_t threads = tcc_nvvm_threads(l);
    int inner = tcc_attr_int(attrs, "contiguous", 1) ? 1 : 0, last = (int)tensor->rank - 1;
    u->elem = tensor->elem;
    u->panel_width = tcc_panel_width(attrs);
    u->elem_bytes = tcc_scalar_bits(tensor->elem) / 8;
    u->contiguous = inner;
    u->transposed = tcc_nvvm_tensor_dim(op, inner) != last && tcc_nvvm_tensor_dim(op, !inner) == last;
    int along = u->transposed ? !inner : inner;
    bool single = u->transposed || tcc_has_word("cp_async_elements elements", tcc_attr_str(&op->attrs, "copy", ""));
    u->elems = single ? 1 : CHUNK_BYTES * 8 / tcc_scalar_bits(tensor->elem);
    u->bytes = single ? u->elem_bytes : CHUNK_BYTES;
    if (!u->bytes) {
        TCC_LOW_REFUSE(&l->low, op, "%s of single 4-bit elements by threads", tcc_op_info_get(op->code)->name);
        return false;
    }
    int64_t in_row = extents[along].size / u->elems;
    u->rows = extents[!along].size;
    /* Transposed, a warp takes sectors of rows that become chunks of lines, and has at least two words of a line for
     * itself. A panel's chunks follow each other in shared memory; narrow panels are as far apart as banks like it. */
    int64_t sector = u->transposed ? SECTOR_BYTES / u->elem_bytes : 0; /* halves of bytes are not */
    int64_t filled = TCC_WARP_LANES * u->elem_bytes / (2 * WORD_BYTES);
    u->beside = u->transposed                   ? tcc_gcd(in_row, sector < filled ? sector : filled)
                : tcc_attr_find(attrs, "panel") ? tcc_gcd(in_row, threads)
                                                : u->panel_width / u->bytes;
    u->at_once = u->beside ? threads / u->beside : 0;
    if (!u->at_once || threads % u->beside || in_row % u->beside || extents[along].size % u->elems) {
        TCC_LOW_REFUSE(&l->low, op, "%s of lines that threads do not share evenly", tcc_op_info_get(op->code)->name);
        return false;
    }
    u->n_beside = in_row / u->beside;
    return true;
}

static void place_thread(tcc_nvvm_lowering *l, chunks *c)
{
    c->x = tcc_low_rem(&l->low, tcc_nvvm_thread(l), c->of.beside);
    c->row = tcc_low_div(&l->low, tcc_nvvm_thread(l), c->of.beside);
}

static void place_stage(const tcc_op *alloc, chunks *c)
{
    c->panels = tcc_panels_of(alloc);
    c->swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0);
}

/* ---- in the tensor ------------------------------------------------------------------------- */

/* Whether a tensor's extent consists of whole tiles, and a tile begins where one of these does: powers of two. */
static bool is_of_whole_tiles(tcc_dim extent, const tcc_value *begin, int64_t tile)
{
    return !extent.name && !(tile & (tile - 1)) && extent.size % tile == 0 && tcc_is_multiple(begin, tile, NULL);
}

/* Where the thread's chunks are in the tensor, and how much of it follows. */
static bool plan_tensor(tcc_nvvm_lowering *l, const tcc_op *op, chunks *c)
{
    tcc_lowering *low = &l->low;
    const tcc_units *u = &c->of;
    tcc_value *const *coordinates = coordinates_of(op);
    const tcc_type *t = tensor_of(op);
    int inner = u->contiguous != u->transposed, along = tcc_nvvm_tensor_dim(op, inner);
    tcc_value *outside[TCC_MAX_RANK];
    unsigned n_outside = 0;
    int across = tcc_nvvm_tensor_dim(op, !inner);
    const char *name = tcc_op_info_get(op->code)->name;
    if (along < 0 || along != (int)t->rank - 1 || across == along || !tcc_type_has_rows(t)) {
        TCC_LOW_REFUSE(low, op, "%s by threads of a tile whose rows are not the tensor's", name);
        return false;
    }
    if (!u->transposed && !tcc_is_multiple(coordinates[along], u->elems, NULL)) {
        TCC_LOW_REFUSE(low, op, "%s by threads of a tile that does not begin at a multiple of 16 bytes", name);
        return false;
    }
    c->base = tcc_low_pointer(low, coordinates[-1]);
    c->offset = c->step = tcc_build_int(&low->b, low->i64, 0);
    c->left = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_c32(low, 1), c->row);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one), *index = tcc_low_scalar(low, coordinates[d]);
        tcc_value *left = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_extent(low, t->dims[d]), index);
        if (along == (int)d) {
            tcc_value *own = tcc_low_mul(low, c->x, u->elems);
            index = tcc_low_bin(low, TCC_OP_arith_add, index, own);
            c->room = tcc_low_bin(low, TCC_OP_arith_sub, left, own);
            c->whole_columns = is_of_whole_tiles(t->dims[d], coordinates[d], u->n_beside * u->beside * u->elems);
        } else if (across == (int)d) {
            index = tcc_low_bin(low, TCC_OP_arith_add, index, c->row);
            c->left = tcc_low_bin(low, TCC_OP_arith_sub, left, c->row);
            c->whole_rows = is_of_whole_tiles(t->dims[d], coordinates[d], u->rows);
            c->step = tcc_low_scaled(low, tcc_low_c32(low, u->at_once), stride);
        } else if (!tcc_is_below(coordinates[d], t->dims[d])) {
            outside[n_outside++] = tcc_low_cmp(low, "lt", left, tcc_low_c32(low, 1));
        }
        c->offset = tcc_low_bin(low, TCC_OP_arith_add, c->offset, tcc_low_scaled(low, index, stride));
    }
    tcc_value *none = n_outside ? tcc_low_c32(low, 0) : NULL;
    for (unsigned i = 0; i < n_outside; i++)
        c->left = TCC_EMIT(&low->b, arith_select, low->i32, outside[i], none, c->left);
    return true;
}

/* For the chunk this many further along a row: the remaining rows if it is in the tensor, else 0; room: elements of the
 * row from it on. */
static tcc_value *rows_left(tcc_nvvm_lowering *l, const chunks *c, int64_t further, tcc_value **room)
{
    tcc_lowering *low = &l->low;
    tcc_value *zero = tcc_low_c32(low, 0);
    *room = tcc_low_add(low, c->room, c->whole_columns ? 0 : -further * c->of.elems);
    return TCC_EMIT(&low->b, arith_select, low->i32, tcc_low_cmp(low, "gt", *room, zero), c->left, zero);
}

/* Whether chunks are inside or outside a row, which does not end within one: what follows it is anything. required:
 * that rows are of whole chunks, which those of padded tensors need not be. */
static bool are_whole(tcc_lowering *low, const tcc_units *u, const tcc_type *tensor, bool required)
{
    tcc_dim row = tensor->dims[tensor->rank - 1];
    return u->elems == 1 || (required && !tcc_type_has_gaps(tensor)) || (!row.name && row.size % u->elems == 0) ||
           (tensor->strides && tcc_low_require_multiple(low, row, u->elems));
}

/* Whether the row this many further is in the tensor: left counts from its end. */
static tcc_value *is_inside(tcc_lowering *low, const chunks *c, tcc_value *left, int64_t rows)
{
    return tcc_low_cmp(low, "gt", left, tcc_low_c32(low, c->whole_rows ? 0 : rows));
}

/* Whether the thread has a row this many further; NULL: all have. */
static tcc_value *has_row(tcc_lowering *low, const chunks *c, int64_t rows)
{
    const tcc_units *u = &c->of;
    return rows + u->at_once > u->rows ? tcc_low_cmp(low, "lt", c->row, tcc_low_c32(low, u->rows - rows)) : NULL;
}

/* ---- in the stage -------------------------------------------------------------------------- */

/* The address in the stage of a chunk this many further along its row, and this many rows further. */
static tcc_value *address(tcc_nvvm_lowering *l, const chunks *c, tcc_value *stage, int64_t chunks_further,
                          int64_t rows_further)
{
    tcc_lowering *low = &l->low;
    tcc_value *chunk = tcc_low_add(low, c->x, chunks_further), *row = tcc_low_add(low, c->row, rows_further);
    tcc_value *line = c->of.transposed ? chunk : row;
    tcc_value *byte = c->of.transposed ? tcc_low_mul(low, row, c->of.elem_bytes) : tcc_low_mul(low, chunk, c->of.bytes);
    tcc_value *panel = tcc_low_mul(low, tcc_low_div(low, byte, c->panels.width), c->panels.panel_bytes);
    tcc_value *begin = tcc_low_mul(low, line, c->panels.width);
    byte = tcc_low_bin(low, TCC_OP_arith_add, begin, tcc_low_rem(low, byte, c->panels.width));
    tcc_value *first = tcc_low_bin(low, TCC_OP_arith_add, stage, panel);
    return tcc_low_bin(low, TCC_OP_arith_add, first, tcc_nvvm_swizzle(l, byte, c->swizzle));
}

/* How many bytes further in the stage than the thread's first chunk that is, whichever it is; false when that depends
 * on the thread. */
static bool is_further(const chunks *c, int64_t chunks_further, int64_t rows_further, int64_t *bytes)
{
    int64_t lines = c->of.transposed ? chunks_further : rows_further;
    int64_t across = c->of.transposed ? rows_further * c->of.elem_bytes : chunks_further * c->of.bytes;
    *bytes = lines * c->panels.width + across / c->panels.width * c->panels.panel_bytes;
    return across % c->panels.width == 0 && (!c->swizzle || lines * c->panels.width % PERIOD == 0);
}

/* Where a row's chunks are that were not placed by those before. */
typedef struct line {
    tcc_value *stage, *first, *of_row; /* first: the address of the thread's first chunk */
    int64_t rows;                      /* this many rows further */
} line;

/* The address of the chunk this many further along the row: if rows are not swizzled alike, chunks of one row
 * may be. */
static tcc_value *address_in(tcc_nvvm_lowering *l, const chunks *c, line *of, int64_t chunks_further)
{
    int64_t further, in_row;
    tcc_value *at;
    if (is_further(c, chunks_further, of->rows, &further))
        at = tcc_low_add(&l->low, of->first, further);
    else if (of->of_row && is_further(c, chunks_further, 0, &in_row))
        at = tcc_low_add(&l->low, of->of_row, in_row);
    else
        at = address(l, c, of->stage, chunks_further, of->rows);
    of->of_row = chunks_further ? of->of_row : at;
    return at;
}

static line first_line(tcc_nvvm_lowering *l, const chunks *c, const tcc_op *alloc, tcc_value *i)
{
    tcc_value *stage = tcc_nvvm_stage(l, alloc, i);
    return (line){stage, address(l, c, stage, 0, 0), NULL, 0};
}

/* ---- copies that are waited for in groups -------------------------------------------------- */

/* What the thread copies of its row that is this many rows further. */
static void copy_row(tcc_nvvm_lowering *l, const chunks *c, line of, tcc_value *offset, tcc_value *const *left,
                     tcc_value *const *bytes)
{
    tcc_lowering *low = &l->low;
    tcc_value *has = has_row(low, c, of.rows);
    tcc_op *guard = has ? tcc_low_if(low, has) : NULL;
    for (int64_t p = 0; p < c->of.n_beside; p++) {
        tcc_value *at = address_in(l, c, &of, p * c->of.beside);
        tcc_value *inside = is_inside(low, c, left[p], of.rows);
        tcc_value *size = TCC_EMIT(&low->b, arith_select, low->i32, inside, bytes[p], tcc_low_c32(low, 0));
        tcc_op *op = TCC_EMIT_V(&low->b, nvvm_cp_async, at, c->base, offset, size);
        tcc_attr_set_int(low->ir, &op->attrs, "bytes", c->of.bytes);
        if (p)
            tcc_attr_set_int(low->ir, &op->attrs, "disp", p * c->of.beside * c->of.elems);
    }
    if (guard)
        tcc_low_end(low, guard);
}

void tcc_nvvm_copy_in_groups(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc, tcc_value *i)
{
    tcc_lowering *low = &l->low;
    chunks c = {0};
    const tcc_value *tensor = TCC_VIEW(async_copy, copy)->tensor;
    if (!find_units(l, copy, &alloc->attrs, alloc->results[0].type->dims + 1, &c.of))
        return;
    if (c.of.bytes < WORD_BYTES) {
        TCC_LOW_REFUSE(low, copy, "async.copy by threads of a tile whose rows are not the tensor's, of less than 4 "
                                  "bytes an element");
        return;
    }
    place_stage(alloc, &c);
    place_thread(l, &c);
    if (!plan_tensor(l, copy, &c))
        return;
    tcc_low_require_alignment(low, tensor, c.of.bytes);
    bool whole = are_whole(low, &c.of, tensor->type, tensor->type->rank > 1);
    if (!whole && tcc_scalar_bits(tensor->type->elem) < 8) {
        TCC_LOW_REFUSE(low, copy, "async.copy by threads of a row that may end in half a byte");
        return;
    }
    tcc_value **left = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)c.of.n_beside);
    tcc_value **bytes = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)c.of.n_beside);
    for (int64_t p = 0; p < c.of.n_beside; p++) {
        tcc_value *room;
        left[p] = rows_left(l, &c, p * c.of.beside, &room);
        bytes[p] = tcc_low_c32(low, c.of.bytes);
        if (!whole)
            bytes[p] = tcc_low_mul(low, tcc_low_bin_const(low, TCC_OP_arith_min, room, c.of.elems), c.of.elem_bytes);
    }
    tcc_value *offset = c.offset;
    line of = first_line(l, &c, alloc, i);
    for (; of.rows < c.of.rows; of.rows += c.of.at_once) {
        copy_row(l, &c, of, offset, left, bytes);
        offset = tcc_low_bin(low, TCC_OP_arith_add, offset, c.step);
    }
}

/* ---- through registers --------------------------------------------------------------------- */

static bool are_same(const tcc_units *a, const tcc_units *b)
{
    return a->elem == b->elem && a->panel_width == b->panel_width && a->elems == b->elems && a->rows == b->rows &&
           a->beside == b->beside && a->n_beside == b->n_beside && a->transposed == b->transposed &&
           a->contiguous == b->contiguous;
}

const tcc_units *tcc_nvvm_units(tcc_nvvm_lowering *l, const tcc_units *u)
{
    for (size_t i = 0; i < l->units.len; i++)
        if (are_same(l->units.data[i], u))
            return l->units.data[i];
    tcc_units *own = TCC_NEW(l->low.ctx->scratch, tcc_units);
    *own = *u;
    TCC_PUSH(l->low.ctx->scratch, &l->units, own);
    return own;
}

/* Registers hold elements of less than a word in words. */
static const tcc_type *held_as(tcc_lowering *low, const tcc_units *u)
{
    return u->bytes >= WORD_BYTES && u->elem_bytes < WORD_BYTES ? tcc_low_vec(low, TCC_i32, u->bytes / WORD_BYTES)
                                                                : tcc_low_vec(low, u->elem, u->elems);
}

static tcc_value *cast_bits(tcc_lowering *low, const tcc_type *type, tcc_value *v)
{
    return v->type == type ? v : TCC_EMIT(&low->b, vec_bitcast, type, v);
}

/* Words of ones where a chunk is in its row, which has room for so many elements. */
static tcc_value *ones_inside(tcc_lowering *low, const tcc_units *u, tcc_value *room)
{
    enum { WORD_BITS = 8 * WORD_BYTES };
    tcc_value *words[CHUNK_BYTES / WORD_BYTES], *zero = tcc_low_c32(low, 0), *all = tcc_low_c32(low, -1);
    tcc_value *inside = tcc_low_bin_const(low, TCC_OP_arith_min, room, u->elems);
    inside = tcc_low_mul(low, inside, tcc_scalar_bits(u->elem));
    int64_t n = u->bytes / WORD_BYTES;
    for (int64_t w = 0; w < n; w++) {
        tcc_value *outside = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_c32(low, (w + 1) * WORD_BITS), inside);
        tcc_value *begins = tcc_low_cmp(low, "lt", outside, tcc_low_c32(low, WORD_BITS));
        tcc_value *by = tcc_low_bin_const(low, TCC_OP_arith_max, outside, 0);
        tcc_value *ones = tcc_low_bin(low, TCC_OP_arith_shr, all, by);
        words[w] = TCC_EMIT(&low->b, arith_select, low->i32, begins, ones, zero);
    }
    return tcc_low_pack(low, TCC_i32, (size_t)n, words, n);
}

void tcc_nvvm_load_chunks(tcc_nvvm_lowering *l, tcc_op *load)
{
    tcc_lowering *low = &l->low;
    const tcc_type *tile = load->results[0].type;
    chunks c = {0};
    if (!find_units(l, load, &load->attrs, tile->dims, &c.of))
        return;
    place_thread(l, &c);
    if (!plan_tensor(l, load, &c))
        return;
    tcc_low_require_groups(low, load->operands[0], c.of.bytes);
    const tcc_units *u = tcc_nvvm_units(l, &c.of);
    size_t n = 0, most = (size_t)((u->rows + u->at_once - 1) / u->at_once * u->n_beside);
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, most), *offset = c.offset, *room;
    tcc_value **left = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)u->n_beside);
    tcc_value **ones = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)u->n_beside);
    bool whole = are_whole(low, u, load->operands[0]->type, true);
    if (!whole && load->operands[0]->type->strides) {
        TCC_LOW_REFUSE(low, load, "tile.load by threads of 16 bytes that may hold a row's end");
        return;
    }
    for (int64_t p = 0; p < u->n_beside; p++) {
        left[p] = rows_left(l, &c, p * u->beside, &room);
        ones[p] = whole ? NULL : ones_inside(low, u, room);
    }
    for (int64_t rows = 0; rows < u->rows; rows += u->at_once) {
        tcc_value *has = has_row(low, &c, rows);
        for (int64_t p = 0; p < u->n_beside; p++) {
            tcc_value *inside = is_inside(low, &c, left[p], rows);
            inside = has ? tcc_low_bin(low, TCC_OP_arith_and, inside, has) : inside;
            tcc_value *v =
                TCC_EMIT(&low->b, nvvm_ld_global, tcc_low_vec(low, u->elem, u->elems), c.base, offset, inside);
            if (u->elems > 1)
                tcc_attr_set_int(low->ir, &v->def->attrs, "align", u->bytes);
            if (p)
                tcc_attr_set_int(low->ir, &v->def->attrs, "disp", p * u->beside * u->elems);
            if (!whole) {
                v = cast_bits(low, ones[p]->type, v);
                v = TCC_EMIT(&low->b, arith_and, v->type, v, ones[p]);
            }
            parts[n++] = cast_bits(low, held_as(low, u), v);
        }
        offset = tcc_low_bin(low, TCC_OP_arith_add, offset, c.step);
    }
    tcc_low_set(low, &load->results[0], n, parts)->units = u;
}

/* Whether chunks are what a buffer has in a stage. */
static bool are_of_buffer(const tcc_units *u, const tcc_op *alloc)
{
    const tcc_type *t = alloc->results[0].type;
    int along = u->transposed ? !u->contiguous : u->contiguous;
    return u->elem == t->elem && u->panel_width == tcc_panel_width(&alloc->attrs) &&
           u->contiguous == tcc_nvvm_contiguous(alloc) && u->rows == t->dims[1 + !along].size &&
           u->beside * u->n_beside * u->elems == t->dims[1 + along].size;
}

void tcc_nvvm_put(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_async_put_operands *o = TCC_VIEW(async_put, op);
    if (o->a->type->layout) {
        tcc_nvvm_put_registers(l, op);
        return;
    }
    const tcc_op *alloc = tcc_nvvm_buffer(l, op, o->buffer);
    if (!alloc)
        return;
    const tcc_parts *a = tcc_low_parts(low, o->a);
    if (!a || !a->units || !are_of_buffer(a->units, alloc)) {
        TCC_LOW_REFUSE(low, op, "async.put of a tile without the layout of its buffer");
        return;
    }
    chunks c = {.of = *a->units};
    const tcc_type *vec = tcc_low_vec(low, c.of.elem, c.of.elems);
    place_stage(alloc, &c);
    place_thread(l, &c);
    tcc_value *const *part = a->values;
    line of = first_line(l, &c, alloc, tcc_low_scalar(low, o->i));
    for (; of.rows < c.of.rows; of.rows += c.of.at_once) {
        tcc_value *has = has_row(low, &c, of.rows);
        tcc_op *guard = has ? tcc_low_if(low, has) : NULL;
        line here = of;
        for (int64_t p = 0; p < c.of.n_beside; p++) {
            tcc_value *at = address_in(l, &c, &here, p * c.of.beside);
            TCC_EMIT_V(&low->b, nvvm_st_shared, at, cast_bits(low, vec, *part++));
        }
        if (guard)
            tcc_low_end(low, guard);
    }
}
