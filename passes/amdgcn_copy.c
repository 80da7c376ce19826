/* amdgcn_copy: operands from memory to registers, and from registers to LDS.
 *
 * All threads copy, 16 bytes of LDS or more each at a time: a unit. The offsets of a thread's loads
 * are computed once; along k a tile is soffset bytes in. What lies outside the tensor has an offset
 * that lies outside every buffer, and so loads as 0.
 *
 * A unit of transposed rows is 8 bytes of k, 4 numbers or 8, by 4 to 16 bytes of neighbours:
 *     row k:     (k, c) (k, c+1) …     ->  at column c:  (k, c) (k+1, c) (k+2, c) (k+3, c) …
 *     row k+1:   (k+1, c) …
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <assert.h>
#include <string.h>

#include "passes/amdgcn.h"

/* Of two words: their low halves, their high ones; the bytes of their low halves, of their high
 * ones, in turn. */
enum {
    PERM_LOW = 0x05040100,
    PERM_HIGH = 0x07060302,
    PERM_LOW_BYTES = 0x05010400,
    PERM_HIGH_BYTES = 0x07030602
};

/* ---- which unit a thread copies ------------------------------------------------------------ */

/* Unit j of a thread: numbered along `fast` first; slow_add is still to be added to `slow`. */
typedef struct unit {
    tcc_value *fast, *slow;
    int64_t slow_add;
} unit;

/* Units that are left for the threads' unit j. */
static int64_t units_left(const tcc_amdgcn_lowering *l, const tcc_operand *o, int64_t j)
{
    return o->of.n - j * tcc_schedule_threads(&l->low.s);
}

/* Whether some threads have no unit j: fewer are left than there are waves. Else, where fewer are
 * left than there are threads, lanes of one wave have the same one and write the same to LDS: that
 * costs less than a branch in the loop, around which LLVM moves registers and spills them. */
static bool is_guarded(const tcc_amdgcn_lowering *l, const tcc_operand *o, int64_t j)
{
    return units_left(l, o, j) < l->low.s.waves;
}

/* The number among those left of a lane's unit: waves have about as many, each has its own. */
static tcc_value *shared_unit(tcc_amdgcn_lowering *l, int64_t left)
{
    tcc_lowering *low = &l->low;
    int64_t waves = low->s.waves, by = left % waves ? waves : 1; /* to divide by */
    tcc_value *all = tcc_low_mul(low, l->wave, by * left / waves);
    tcc_value *first = tcc_low_div(low, all, by);
    tcc_value *next = tcc_low_div(low, tcc_low_add(low, all, by * left / waves), by);
    tcc_value *own = tcc_amdgcn_add(l, first, l->lane);
    return tcc_low_bin(low, TCC_OP_arith_min, own, tcc_low_add(low, next, -1));
}

static unit unit_of(tcc_amdgcn_lowering *l, const tcc_operand *o, int64_t j, int64_t n_fast)
{
    tcc_lowering *low = &l->low;
    int64_t threads = tcc_schedule_threads(&low->s), left = units_left(l, o, j);
    int64_t first = j * threads;
    bool shared = left < threads && !is_guarded(l, o, j);
    tcc_value *u = shared ? shared_unit(l, left) : l->tid;
    if (first % n_fast)
        u = tcc_low_add(low, u, first);
    tcc_value *fast = tcc_low_rem(low, u, n_fast);
    return (unit){fast, tcc_low_div(low, u, n_fast), first % n_fast ? 0 : first / n_fast};
}

/* Where a lane's results are not neighbours, as on RDNA3, lane l of A holds row l, whose results go to
 * lane group l % groups, register l / groups, groups being wave / 16 (RDNA3 ISA, 7.9). So that a
 * lane's registers are neighbours along n, place r takes row r % groups * registers + r / groups of
 * its 16. */
static tcc_value *row_at(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *place)
{
    tcc_lowering *low = &l->low;
    if (!o->is_a || tcc_fragment_has_neighbours(l->result))
        return place;
    int64_t groups = l->low.s.wave / TCC_BLOCK, registers = TCC_BLOCK / groups;
    tcc_value *in_block = tcc_low_rem(low, place, TCC_BLOCK);
    tcc_value *block = tcc_low_bin(low, TCC_OP_arith_sub, place, in_block);
    tcc_value *row = tcc_low_mul(low, tcc_low_rem(low, in_block, groups), registers);
    row = tcc_amdgcn_add(l, row, tcc_low_div(low, in_block, groups));
    return tcc_amdgcn_add(l, block, row);
}

/* Whether a row of the tile is in the tensor, and this thread copies it. */
static tcc_value *row_inside(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *row)
{
    tcc_lowering *low = &l->low;
    tcc_value *room = tcc_low_c32(low, 1);
    if (o->own_dim >= 0) {
        tcc_value *first = tcc_value_map_get(low->map, o->at[o->own_dim]);
        room = tcc_low_bin(low, TCC_OP_arith_sub,
                           tcc_low_extent(low, o->tensor->type->dims[o->own_dim]), first);
    }
    tcc_value *inside = tcc_low_cmp(low, "lt", row, room);
    return o->last_inside ? tcc_amdgcn_and(l, inside, o->last_inside) : inside;
}

/* ---- plans ----------------------------------------------------------------------------------- */

void tcc_amdgcn_plan_operand(tcc_amdgcn_lowering *l, int place, const tcc_op *load,
                             const tcc_value *buffer)
{
    tcc_operand *o = &l->operands[place];
    int own = place, k = !place; /* dimensions of the tile */
    tcc_attr dims = tcc_attr_list(&load->attrs, "dims");
    bool copy = load->code == TCC_OP_async_copy;
    const tcc_type *stages = buffer->type; /* [stage, tile's dimensions] */
    const tcc_attrs *layout = &buffer->def->attrs;
    tcc_panels panels = tcc_panels_of(buffer->def);
    *o = (tcc_operand){.loc = load->loc,
                       .tensor = load->operands[copy ? 3 : 0],
                       .buffer = buffer,
                       .at = load->operands + (copy ? 4 : 1),
                       .bits = tcc_scalar_bits(stages->elem),
                       .own_dim = (int)dims.list.items[own].i,
                       .k_dim = (int)dims.list.items[k].i,
                       .rows = stages->dims[1 + own].size,
                       .depth = stages->dims[1 + k].size,
                       .unit = panels.width,
                       .panel_bytes = panels.panel_bytes,
                       .stage_bytes = panels.stage_bytes,
                       .places = tcc_attr_int(layout, "swizzle", 0) / TCC_UNIT_BYTES,
                       .offset = tcc_attr_int(layout, "offset", 0),
                       .is_a = place == 1};
    const char *how = tcc_attr_str(&load->attrs, "copy", "");
    bool by_element = !tcc_has_word("buffer unaligned", how);
    o->aligned = !strcmp(how, "buffer");
    o->kind = by_element ? TCC_COPY_ELEMENTS : o->unit == 8 ? TCC_COPY_TRANSPOSED : TCC_COPY_ROWS;
    o->blocks = place ? l->waves.blocks_n : l->waves.blocks_m;
}

/* Elements from the tensor's beginning to the tile's; k's coordinate is left out, it is given. */
static tcc_value *first_element(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *k)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = o->tensor->type;
    tcc_value *first = tcc_build_int(&low->b, low->i64, 0);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *at = (int)d == o->k_dim ? k : tcc_value_map_get(low->map, o->at[d]);
        if (at)
            first = tcc_amdgcn_add(l, first,
                                   tcc_low_scaled(low, at, tcc_low_stride(low, t, (int)d, &one)));
    }
    return first;
}

/* Room for one more unit's addresses. */
static tcc_value **add_unit(tcc_operand *o, int64_t write_offset)
{
    assert(o->n_units < TCC_MAX_LOADS);
    o->write_offset[o->n_units] = write_offset;
    return o->write[o->n_units++];
}

static void add_load(tcc_operand *o, tcc_value *voffset, tcc_value *k_first)
{
    assert(o->n_loads < TCC_MAX_LOADS);
    o->voffset[o->n_loads] = voffset;
    o->k_first[o->n_loads++] = k_first;
}

static tcc_value *panel_at(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *panel)
{
    return tcc_amdgcn_add(l, l->lds, tcc_low_mul(&l->low, panel, o->panel_bytes));
}

/* Where unit (panel, row) lies in stage 0. */
static void plan_write(tcc_amdgcn_lowering *l, tcc_operand *o, tcc_value *panel, int64_t panel_add,
                       tcc_value *row, int64_t row_add)
{
    tcc_value *at = panel_at(l, o, panel);
    *add_unit(o, o->offset + panel_add * o->panel_bytes + row_add * o->unit) =
        tcc_amdgcn_add(l, at, tcc_low_mul(&l->low, row, o->unit));
}

/* Bytes from a block's beginning to a row of it (row 0 to 15), and `places` places further. */
static tcc_value *in_block(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *block,
                           tcc_value *row, int64_t places)
{
    tcc_lowering *low = &l->low;
    if (o->places < 2)
        return tcc_low_add(low, tcc_low_mul(low, row, o->unit), places * TCC_UNIT_BYTES);
    int64_t rows = TCC_UNIT_BYTES / o->unit; /* of a place */
    tcc_value *place = tcc_low_add(low, tcc_low_div(low, row, rows), places);
    place = tcc_low_bin(low, TCC_OP_arith_xor, place, tcc_low_rem(low, block, o->places));
    tcc_value *in_place = tcc_low_mul(low, tcc_low_rem(low, row, rows), o->unit);
    return tcc_amdgcn_add(l, tcc_low_mul(low, place, TCC_UNIT_BYTES), in_place);
}

/* A unit's columns are in one block, for it has no more than 16 of them. */
static void plan_write_transposed(tcc_amdgcn_lowering *l, tcc_operand *o, unit u, tcc_value *col)
{
    tcc_lowering *low = &l->low;
    tcc_value *block = tcc_low_div(low, col, TCC_BLOCK), *row = tcc_low_rem(low, col, TCC_BLOCK);
    tcc_value *first = tcc_low_mul(low, block, TCC_BLOCK * o->unit);
    tcc_value *at = tcc_amdgcn_add(l, panel_at(l, o, u.slow), first);
    tcc_value **write = add_unit(o, o->offset + u.slow_add * o->panel_bytes);
    for (int64_t p = 0; p < o->of.cols * o->unit / TCC_UNIT_BYTES; p++)
        write[p] = tcc_amdgcn_add(l, at, in_block(l, o, block, row, p));
}

/* 16 bytes of a row of the tensor become 16 bytes of a row in LDS. */
static void plan_rows(tcc_amdgcn_lowering *l, tcc_operand *o, int64_t j)
{
    tcc_lowering *low = &l->low;
    int64_t chunks = o->depth * o->bits / 8 / TCC_UNIT_BYTES;
    unit u = unit_of(l, o, j, chunks);
    tcc_value *row = row_at(l, o, tcc_low_add(low, u.slow, u.slow_add));
    tcc_value *stride = tcc_amdgcn_stride(l, o->tensor, o->own_dim, o->rows);
    if (o->bits == 4)
        stride = tcc_low_div(low, stride, 2);
    tcc_value *offset = tcc_amdgcn_mul(l, row, stride);
    offset = tcc_amdgcn_add(l, offset, tcc_low_mul(low, u.fast, TCC_UNIT_BYTES));
    tcc_value *inside = row_inside(l, o, row);
    offset = tcc_amdgcn_offset(l, inside, offset);
    add_load(o, offset, tcc_low_mul(low, u.fast, TCC_UNIT_BYTES * 8 / o->bits));
    plan_write(l, o, u.fast, 0, u.slow, u.slow_add);
}

/* How many bytes of the `cols` neighbours from col on lie behind the row, 0 or more; NULL where it
 * is always 0. */
static tcc_value *bytes_beyond(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *col)
{
    tcc_lowering *low = &l->low;
    tcc_dim dim = o->tensor->type->dims[o->own_dim];
    if (!dim.name && dim.size % o->of.cols == 0)
        return NULL;
    tcc_value *first = tcc_value_map_get(low->map, o->at[o->own_dim]);
    tcc_value *room = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_extent(low, dim), first);
    tcc_value *end = tcc_low_add(low, col, o->of.cols);
    tcc_value *n = tcc_low_bin(low, TCC_OP_arith_sub, end, room);
    return tcc_low_mul(low, tcc_low_bin_const(low, TCC_OP_arith_max, n, 0), o->bits / 8);
}

/* unit_depth rows of k by `cols` neighbours. */
static void plan_transposed(tcc_amdgcn_lowering *l, tcc_operand *o, int64_t j)
{
    tcc_lowering *low = &l->low;
    unit u = unit_of(l, o, j, o->rows / o->of.cols);
    tcc_value *col = tcc_low_mul(low, u.fast, o->of.cols);
    tcc_value *k = tcc_low_mul(low, tcc_low_add(low, u.slow, u.slow_add), o->of.depth);
    tcc_value *inside = row_inside(l, o, col);
    tcc_value *along = tcc_low_mul(low, col, o->bits / 8);
    if (!o->aligned)
        o->beyond[j] = bytes_beyond(l, o, col);
    for (int64_t i = 0; i < o->of.depth; i++) {
        tcc_value *k_i = tcc_low_add(low, k, i);
        tcc_value *offset = tcc_amdgcn_add(l, tcc_amdgcn_mul(l, k_i, o->k_bytes), along);
        add_load(o, tcc_amdgcn_offset(l, inside, offset), k_i);
    }
    plan_write_transposed(l, o, u, col);
}

/* 16 bytes in LDS, whatever their strides; neighbouring lanes take neighbours in memory. */
static void plan_elements(tcc_amdgcn_lowering *l, tcc_operand *o, int64_t j)
{
    tcc_lowering *low = &l->low;
    int64_t chunks = o->depth * o->bits / 8 / TCC_UNIT_BYTES,
            per_unit = TCC_UNIT_BYTES * 8 / o->bits;
    bool k_fast = o->k_dim == (int)o->tensor->type->rank - 1;
    unit u = unit_of(l, o, j, k_fast ? chunks : o->rows);
    tcc_value *slow = tcc_low_add(low, u.slow, u.slow_add);
    tcc_value *place = k_fast ? slow : u.fast, *chunk = k_fast ? u.fast : slow;
    tcc_value *row = row_at(l, o, place), *k = tcc_low_mul(low, chunk, per_unit);
    tcc_value *inside = row_inside(l, o, row);
    o->row_inside[j] = inside;
    tcc_value *stride = tcc_amdgcn_stride(l, o->tensor, o->own_dim, o->rows);
    tcc_value *offset = tcc_amdgcn_mul(l, row, stride);
    add_load(o, tcc_amdgcn_add(l, offset, tcc_amdgcn_mul(l, k, o->k_bytes)), k);
    if (k_fast)
        plan_write(l, o, u.fast, 0, u.slow, u.slow_add);
    else
        plan_write(l, o, u.slow, u.slow_add, u.fast, 0);
}

static void plan_read(tcc_amdgcn_lowering *l, tcc_operand *o)
{
    tcc_lowering *low = &l->low;
    /* Transposed rows lie in their own order: the lane looks for its own. */
    tcc_value *row = o->kind == TCC_COPY_TRANSPOSED ? row_at(l, o, l->row) : l->row;
    tcc_value *first = l->wave_first[o->is_a], *block = tcc_low_div(low, first, TCC_BLOCK);
    tcc_value *at = tcc_amdgcn_add(l, l->lds, tcc_low_mul(low, first, o->unit));
    if (l->k_groups > 1)
        at = tcc_amdgcn_add(l, at,
                            tcc_low_mul(low, l->group, TCC_UNIT_BYTES / o->unit * o->panel_bytes));
    int64_t step = l->block_step[o->is_a] / TCC_BLOCK;
    for (o->n_reads = 1; o->n_reads * step % (o->places ? o->places : 1);)
        o->n_reads++;
    for (int64_t j = 0; j < o->n_reads && j < o->blocks; j++) {
        tcc_value *own = in_block(l, o, tcc_low_add(low, block, j * step), row, 0);
        o->read[j] = tcc_amdgcn_add(l, at, own);
    }
}

static tcc_value *is_below(tcc_amdgcn_lowering *l, tcc_value *a, int64_t b)
{
    return tcc_low_cmp(&l->low, "lt", a, tcc_low_c32(&l->low, b));
}

/* The loop's loads also reach past the last tile, to the last one again, or to the first one where
 * there is but a part of it: a load that is not aligned would end behind the tensor there. */
static void describe(tcc_amdgcn_lowering *l, tcc_operand *o)
{
    tcc_lowering *low = &l->low;
    tcc_value *first = first_element(l, o, NULL), *whole = NULL;
    o->descriptor_ahead = tcc_amdgcn_descriptor(l, o->tensor, first, NULL);
    if (l->ragged.main)
        whole = tcc_low_cmp(low, "ge", l->ragged.main, tcc_low_c32(low, o->depth));
    o->descriptor = tcc_amdgcn_descriptor(l, o->tensor, first, whole);
    tcc_dim own = o->tensor->type->dims[o->own_dim];
    if (!o->aligned && o->kind == TCC_COPY_TRANSPOSED)
        tcc_low_require_min(low, own, o->of.cols);
}

void tcc_amdgcn_plan_copies(tcc_amdgcn_lowering *l, tcc_operand *o)
{
    static void (*const plans[])(tcc_amdgcn_lowering *, tcc_operand *, int64_t) = {
        [TCC_COPY_ROWS] = plan_rows,
        [TCC_COPY_TRANSPOSED] = plan_transposed,
        [TCC_COPY_ELEMENTS] = plan_elements,
    };
    tcc_lowering *low = &l->low;
    l->low.b.loc = o->loc;
    o->of = tcc_rdna_unit_of(&low->s, o->rows, o->bits, o->kind == TCC_COPY_TRANSPOSED);
    bool by_element = o->kind == TCC_COPY_ELEMENTS;
    o->k_bytes = tcc_amdgcn_stride(l, o->tensor, o->k_dim, o->depth);
    if (!by_element) { /* a tile is in reach, K may be less; and so is every tile */
        tcc_amdgcn_stride(l, o->tensor, o->k_dim, TCC_WHOLE);
        tcc_low_require_alignment(low, o->tensor, o->aligned ? TCC_UNIT_BYTES : 1);
        describe(l, o);
    }
    for (int64_t j = 0; j < o->of.n_lane; j++) {
        if (is_guarded(l, o, j))
            o->last_inside = is_below(l, l->tid, units_left(l, o, j));
        plans[o->kind](l, o, j);
    }
    plan_read(l, o);
}

/* ---- loads --------------------------------------------------------------------------------- */

static tcc_value *buffer_load(tcc_amdgcn_lowering *l, tcc_value *descriptor, tcc_value *voffset,
                              tcc_value *soffset, const tcc_type *type)
{
    return TCC_EMIT(&l->low.b, amdgcn_buffer_load, type, descriptor, voffset, soffset);
}

tcc_value *tcc_amdgcn_load(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *descriptor,
                           tcc_value *voffset, tcc_value *soffset)
{
    l->low.b.loc = o->loc;
    tcc_value *r =
        buffer_load(l, descriptor, voffset, soffset, tcc_low_vec(&l->low, TCC_i32, o->of.words));
    if (!o->aligned)
        tcc_attr_set_int(l->low.ir, &r->def->attrs, "align", o->bits < 8 ? 1 : o->bits / 8);
    return r;
}

/* Eight numbers of 4 bits make a word. rel: elements from the descriptor's byte on. */
static tcc_value *load_nibbles(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *descriptor,
                               tcc_value *rel, tcc_value *inside, tcc_value *zero)
{
    tcc_lowering *low = &l->low;
    tcc_value *at = tcc_amdgcn_offset(l, inside, tcc_low_div(low, rel, 2));
    tcc_value *byte = buffer_load(l, descriptor, at, zero, tcc_low_vec(low, TCC_u8, 1));
    byte = tcc_low_cast(low, low->i32, tcc_low_extract(low, byte, 0));
    tcc_value *shift = tcc_low_mul(low, tcc_low_rem(low, rel, 2), o->bits);
    return tcc_low_bin_const(low, TCC_OP_arith_and, tcc_low_bin(low, TCC_OP_arith_shr, byte, shift),
                             15);
}

tcc_value *tcc_amdgcn_gather(tcc_amdgcn_lowering *l, const tcc_operand *o, int64_t i, tcc_value *k)
{
    tcc_lowering *low = &l->low;
    l->low.b.loc = o->loc;
    tcc_scalar elem = o->tensor->type->elem;
    int64_t n = TCC_UNIT_BYTES * 8 / o->bits;
    tcc_value *first = first_element(l, o, k), *zero = tcc_low_c32(low, 0);
    tcc_value *descriptor = tcc_amdgcn_descriptor(l, o->tensor, first, NULL);
    tcc_value *left =
        tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_extent(low, o->tensor->type->dims[o->k_dim]), k);
    left = tcc_low_bin(low, TCC_OP_arith_sub, left, o->k_first[i]);
    left = TCC_EMIT(&low->b, arith_select, low->i32, o->row_inside[i], left, zero);
    tcc_value *odd = NULL;
    if (o->bits == 4)
        odd = tcc_low_rem(low, tcc_low_cast(low, low->i32, first), 2);
    tcc_value *parts[TCC_UNIT_BYTES * 2], *at = o->voffset[i];
    for (int64_t e = 0; e < n; e++) {
        tcc_value *inside = tcc_low_cmp(low, "gt", left, tcc_low_c32(low, e));
        if (odd)
            parts[e] = load_nibbles(l, o, descriptor, tcc_amdgcn_add(l, at, odd), inside, zero);
        else
            parts[e] = buffer_load(l, descriptor, tcc_amdgcn_offset(l, inside, at), zero,
                                   tcc_low_vec(low, elem, 1));
        at = tcc_amdgcn_add(l, at, o->k_bytes);
    }
    const tcc_type *words = tcc_low_vec(low, TCC_i32, TCC_UNIT_BYTES / 4);
    if (!odd)
        return TCC_EMIT(&low->b, vec_bitcast, words, tcc_low_pack(low, elem, (size_t)n, parts, n));
    for (int64_t w = 0; w < TCC_UNIT_BYTES / 4; w++) {
        tcc_value *word = parts[w * 8];
        for (int64_t e = 1; e < 8; e++)
            word = tcc_low_bin(low, TCC_OP_arith_or, word,
                               tcc_low_bin_const(low, TCC_OP_arith_shl, parts[w * 8 + e], 4 * e));
        parts[w] = word;
    }
    return tcc_low_pack(low, TCC_i32, TCC_UNIT_BYTES / 4, parts, TCC_UNIT_BYTES / 4);
}

tcc_value *tcc_amdgcn_bytes_to(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *k)
{
    tcc_value *bytes = tcc_amdgcn_mul(l, k, o->k_bytes);
    /* k may be negative, and is even: no shift. */
    return o->bits == 4 ? tcc_low_bin_const(&l->low, TCC_OP_arith_div, bytes, 2) : bytes;
}

/* ---- stores to LDS ------------------------------------------------------------------------- */

static void ds_store(tcc_amdgcn_lowering *l, tcc_value *address, int64_t offset, tcc_value *v)
{
    tcc_op *op = TCC_EMIT_V(&l->low.b, amdgcn_ds_store, address, v);
    tcc_attr_set_int(l->low.ir, &op->attrs, "offset", offset);
}

static tcc_value *perm(tcc_amdgcn_lowering *l, tcc_value *high, tcc_value *low, int64_t sel)
{
    tcc_value *r = TCC_EMIT(&l->low.b, amdgcn_perm, l->low.i32, high, low);
    tcc_attr_set_int(l->low.ir, &r->def->attrs, "sel", sel);
    return r;
}

/* Words of 2 rows of k, 16 bits each, to words of 2 k. */
static void interleave_halves(tcc_amdgcn_lowering *l, tcc_value *const *rows, tcc_value **cols)
{
    cols[0] = perm(l, rows[1], rows[0], PERM_LOW);
    cols[1] = perm(l, rows[1], rows[0], PERM_HIGH);
}

/* Words of 4 rows of k, 8 bits each, to words of 4 k. */
static void interleave_bytes(tcc_amdgcn_lowering *l, tcc_value *const *rows, tcc_value **cols)
{
    for (int half = 0; half < 2; half++) {
        int64_t sel = half ? PERM_HIGH_BYTES : PERM_LOW_BYTES;
        tcc_value *pairs[2] = {perm(l, rows[1], rows[0], sel), NULL};
        pairs[1] = perm(l, rows[3], rows[2], sel);
        interleave_halves(l, pairs, cols + 2 * half);
    }
}

/* Rows of k to `cols` times 8 bytes of k, 16 bytes at a time. */
static void put_transposed(tcc_amdgcn_lowering *l, tcc_operand *o, tcc_value *const *rows,
                           tcc_value *const *addresses, int64_t offset)
{
    int64_t per_word = 32 / o->bits; /* rows of k, and columns, that are interleaved */
    for (int64_t w = 0; w < o->of.cols / per_word; w++) {
        tcc_value *words[2][4]; /* [half of the 8 bytes][column] */
        for (int64_t half = 0; half < 2; half++) {
            tcc_value *in[4];
            for (int64_t i = 0; i < per_word; i++)
                in[i] = tcc_low_extract(&l->low, rows[half * per_word + i], w);
            (o->bits == 16 ? interleave_halves : interleave_bytes)(l, in, words[half]);
        }
        for (int64_t c = 0; c < per_word; c += 2) {
            tcc_value *two[4] = {words[0][c], words[1][c], words[0][c + 1], words[1][c + 1]};
            ds_store(l, *addresses++, offset, tcc_low_pack(&l->low, TCC_i32, 4, two, 4));
        }
    }
}

void tcc_amdgcn_put(tcc_amdgcn_lowering *l, tcc_operand *o, tcc_value *const *loaded, int64_t stage)
{
    tcc_lowering *low = &l->low;
    low->b.loc = o->loc;
    for (int64_t j = 0; j < o->n_units; j++) {
        tcc_op *guard = NULL;
        if (o->last_inside && j == o->n_units - 1)
            guard = tcc_low_if(low, o->last_inside);
        int64_t offset = o->write_offset[j] + stage * o->stage_bytes;
        if (o->kind == TCC_COPY_TRANSPOSED) {
            put_transposed(l, o, loaded + o->of.depth * j, o->write[j], offset);
            if (j + 1 < o->n_units)
                tcc_amdgcn_pin(l); /* or all units are interleaved first, into more registers */
        } else
            ds_store(l, o->write[j][0], offset, loaded[j]);
        if (guard)
            tcc_low_end(low, guard);
    }
}
