/* amdgcn_stage: from registers to stages in LDS, and from there to operands of matrix instructions.
 *
 * In LDS a stage is divided along k into panels of `width` bytes, 16 or 8: the k bytes from x on of row
 * r are at x / width * panel_bytes + r * width.
 *
 * A block of 16 transposed rows is 8 places of 16 bytes, two rows each. Lanes that store at a time have
 * every `places`-th of several blocks, which would be in the same banks: place p of block b lies at
 * p ^ b % places instead. What is loaded of them is interleaved:
 *     row k:     (k, c) (k, c+1) …     ->  at column c:  (k, c) (k+1, c) (k+2, c) (k+3, c) …
 *     row k+1:   (k+1, c) …
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/amdgcn.h"

/* Of two words: their low halves, their high ones; the bytes of their low halves, of their high
 * ones, in turn. */
enum {
    PERM_LOW = 0x05040100,
    PERM_HIGH = 0x07060302,
    PERM_LOW_BYTES = 0x05010400,
    PERM_HIGH_BYTES = 0x07030602
};

/* The stages of an operand. */
typedef struct stages {
    tcc_panels panels;
    tcc_units units;
    int64_t places;
    int64_t offset;  /* of the stage, as far as it is a constant */
    tcc_value *base; /* what must be added */
} stages;

/* The stage of iteration i; false, refused, when it has no place. */
static bool find_stage(tcc_amdgcn_lowering *l, const tcc_op *user, const tcc_value *buffer,
                       const tcc_value *i, stages *s)
{
    tcc_lowering *low = &l->low;
    const tcc_op *alloc = buffer->def;
    int64_t n = buffer->type->dims[0].size;
    if (!alloc || !tcc_attr_find(&alloc->attrs, "offset") || !tcc_attr_find(&alloc->attrs, "panel") ||
        tcc_panel_width(&alloc->attrs) > TCC_UNIT_BYTES) {
        TCC_LOW_REFUSE(low, user, "a buffer without an offset, or without panels of 8 or 16 bytes");
        return false;
    }
    int k = (int)tcc_attr_int(&alloc->attrs, "contiguous", 1);
    *s = (stages){.panels = tcc_panels_of(alloc),
                  .places = tcc_attr_int(&alloc->attrs, "swizzle", 0) / TCC_UNIT_BYTES,
                  .offset = tcc_attr_int(&alloc->attrs, "offset", 0),
                  .base = l->lds};
    s->units = tcc_amdgcn_units(l, buffer->type, k, s->panels.width);
    int64_t known = tcc_known_remainder(i, n);
    if (known >= 0) {
        s->offset += known * s->panels.stage_bytes;
    } else {
        tcc_value *stage = tcc_low_rem(low, tcc_low_scalar(low, i), n);
        s->base = tcc_amdgcn_add(l, s->base, tcc_low_mul(low, stage, s->panels.stage_bytes));
    }
    return true;
}

/* Bytes from a block's beginning to a row of it (row 0 to 15), and `places` places further. */
static tcc_value *in_block(tcc_amdgcn_lowering *l, const stages *s, tcc_value *block,
                           tcc_value *row, int64_t places)
{
    tcc_lowering *low = &l->low;
    int64_t width = s->panels.width;
    if (s->places < 2)
        return tcc_low_add(low, tcc_low_mul(low, row, width), places * TCC_UNIT_BYTES);
    int64_t rows = TCC_UNIT_BYTES / width; /* of a place */
    tcc_value *place = tcc_low_add(low, tcc_low_div(low, row, rows), places);
    place = tcc_low_bin(low, TCC_OP_arith_xor, place, tcc_low_rem(low, block, s->places));
    tcc_value *in_place = tcc_low_mul(low, tcc_low_rem(low, row, rows), width);
    return tcc_amdgcn_add(l, tcc_low_mul(low, place, TCC_UNIT_BYTES), in_place);
}

/* ---- to LDS -------------------------------------------------------------------------------- */

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

/* 16 bytes of a row. */
static void put_row(tcc_amdgcn_lowering *l, const stages *s, const tcc_unit *u, tcc_value *v)
{
    tcc_lowering *low = &l->low;
    tcc_value *at = tcc_amdgcn_add(l, s->base, tcc_low_mul(low, u->k, s->panels.panel_bytes));
    at = tcc_amdgcn_add(l, at, tcc_low_mul(low, u->row, s->panels.width));
    ds_store(l, at, s->offset + u->k_add * s->panels.panel_bytes + u->row_add * s->panels.width, v);
}

/* Rows of k to `cols` times 8 bytes of k, 16 bytes at a time. A unit's columns are in one block, for it has
 * no more than 16 of them. */
static void put_transposed(tcc_amdgcn_lowering *l, const stages *s, const tcc_unit *u,
                           tcc_value *const *rows)
{
    tcc_lowering *low = &l->low;
    tcc_value *col = tcc_low_mul(low, u->row, s->units.of.cols);
    tcc_value *block = tcc_low_div(low, col, TCC_BLOCK), *row = tcc_low_rem(low, col, TCC_BLOCK);
    tcc_value *at = tcc_amdgcn_add(l, s->base, tcc_low_mul(low, u->k, s->panels.panel_bytes));
    at = tcc_amdgcn_add(l, at, tcc_low_mul(low, block, TCC_BLOCK * s->panels.width));
    int64_t per_word = 32 / s->units.bits; /* rows of k, and columns, that are interleaved */
    int64_t offset = s->offset + u->k_add * s->panels.panel_bytes, place = 0;
    for (int64_t w = 0; w < s->units.of.cols / per_word; w++) {
        tcc_value *words[2][4]; /* [half of the 8 bytes][column] */
        for (int64_t half = 0; half < 2; half++) {
            tcc_value *in[4];
            for (int64_t i = 0; i < per_word; i++)
                in[i] = tcc_low_extract(low, rows[half * per_word + i], w);
            (s->units.bits == 16 ? interleave_halves : interleave_bytes)(l, in, words[half]);
        }
        for (int64_t c = 0; c < per_word; c += 2) {
            tcc_value *two[4] = {words[0][c], words[1][c], words[0][c + 1], words[1][c + 1]};
            tcc_value *to = tcc_amdgcn_add(l, at, in_block(l, s, block, row, place++));
            ds_store(l, to, offset, tcc_low_pack(low, TCC_i32, 4, two, 4));
        }
    }
}

static bool same_units(const tcc_units *a, const tcc_units *b)
{
    return a->transposed == b->transposed && a->k == b->k && a->rows == b->rows &&
           a->depth == b->depth && a->bits == b->bits;
}

void tcc_amdgcn_put(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_async_put_operands *o = TCC_VIEW(async_put, op);
    stages s;
    if (!find_stage(l, op, o->buffer, o->i, &s))
        return;
    const tcc_parts *a = o->a->type->layout ? NULL : tcc_low_parts(low, o->a);
    if (!a || !a->units || !same_units(a->units, &s.units)) {
        TCC_LOW_REFUSE(low, op, "async.put of a tile without the layout of its buffer");
        return;
    }
    for (int64_t j = 0; j < a->units->of.n_lane; j++) {
        tcc_value *has = tcc_amdgcn_has_unit(l, a->units, j);
        tcc_op *guard = has ? tcc_low_if(low, has) : NULL;
        tcc_unit u = tcc_amdgcn_unit(l, a->units, j);
        if (!a->units->transposed) {
            put_row(l, &s, &u, a->values[j]);
        } else {
            put_transposed(l, &s, &u, a->values + a->units->of.loads * j);
            if (j + 1 < a->units->of.n_lane)
                tcc_amdgcn_pin(l); /* or all units are interleaved first, into more registers */
        }
        if (guard)
            tcc_low_end(low, guard);
    }
}

/* ---- from LDS ------------------------------------------------------------------------------ */

static tcc_value *ds_load(tcc_amdgcn_lowering *l, tcc_value *address, int64_t offset, int64_t words)
{
    tcc_value *r = TCC_EMIT(&l->low.b, amdgcn_ds_load, tcc_low_vec(&l->low, TCC_i32, words), address);
    tcc_attr_set_int(l->low.ir, &r->def->attrs, "offset", offset);
    return r;
}

/* The lane's rows from `first` on, 16 of them in its wave: `units` times 16 bytes of k from `k_bytes` on. Each
 * group of lanes takes the 16 that are next. */
static tcc_value *read_block(tcc_amdgcn_lowering *l, const stages *s, tcc_value *own, int64_t first,
                             int64_t k_bytes, int64_t units, int64_t groups)
{
    tcc_lowering *low = &l->low;
    const tcc_panels *panels = &s->panels;
    int64_t pieces = TCC_UNIT_BYTES / panels->width;
    int64_t unit = pieces * panels->panel_bytes;
    /* Transposed rows are in a different order: the lane computes the place of its own. */
    tcc_value *row = s->units.transposed ? tcc_amdgcn_row_at(l, s->units.k, l->by.row) : l->by.row;
    tcc_value *block = tcc_low_div(low, own, TCC_BLOCK);
    tcc_value *at = tcc_amdgcn_add(l, s->base, tcc_low_mul(low, own, panels->width));
    if (groups > 1)
        at = tcc_amdgcn_add(l, at, tcc_low_mul(low, l->by.group, unit));
    /* After some blocks places are the same again. */
    int64_t further = s->places ? first / TCC_BLOCK % s->places : 0;
    at = tcc_amdgcn_add(l, at, in_block(l, s, tcc_low_add(low, block, further), row, 0));
    int64_t offset = s->offset + first * panels->width + k_bytes / TCC_UNIT_BYTES * unit;
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, units * pieces);
    size_t n = 0;
    for (int64_t u = 0; u < units; u++)
        for (int64_t h = 0; h < pieces; h++)
            parts[n++] = ds_load(l, at, offset + u * groups * unit + h * panels->panel_bytes,
                                 panels->width / 4);
    return n == 1 ? parts[0] : tcc_low_pack(low, TCC_i32, n, parts, units * TCC_UNIT_BYTES / 4);
}

void tcc_amdgcn_read(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_async_read_operands *o = TCC_VIEW(async_read, op);
    const tcc_type *type = op->results[0].type;
    const tcc_attr *at = tcc_attr_list(&op->attrs, "at").list.items;
    tcc_hold_as as;
    tcc_held held;
    stages s;
    if (!tcc_low_held(low, op, type, &held) || !find_stage(l, op, o->buffer, o->i, &s))
        return;
    bool is_operand = tcc_wmma_is_packed(l->target, tcc_layout_fragment(type), &as) && as != TCC_AS_SUM;
    int k = as == TCC_AS_A;
    int64_t bits = s.units.bits, depth = type->dims[k].size;
    int64_t units = held.in_one * bits / 8 / TCC_UNIT_BYTES;
    int64_t groups = units ? depth * bits / 8 / (units * TCC_UNIT_BYTES) : 0;
    if (!is_operand || s.units.k != k || !groups || units * groups * TCC_UNIT_BYTES * 8 != depth * bits ||
        at[k].i % depth || at[!k].i || type->dims[!k].size != s.units.rows) {
        TCC_LOW_REFUSE(low, op, "async.read of a part of a round, or of its rows");
        return;
    }
    tcc_value *own = tcc_low_digits(low, &held.spread.warps, l->wave, !k);
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, held.n);
    for (size_t j = 0; j < held.n; j++) {
        int64_t first = tcc_digits_place(&held.spread.registers, (int64_t)j * held.in_one, !k);
        parts[j] = read_block(l, &s, own, first, at[k].i * bits / 8, units, groups);
    }
    tcc_low_set(low, &op->results[0], held.n, parts);
}
