/* amdgcn_copy: tiles from memory to registers, in units as they are copied to LDS.
 *
 * All threads copy, 16 bytes of LDS or more each at a time: a unit. Elements outside the tensor have an
 * offset outside every buffer, and so load as 0.
 *
 * A unit of transposed rows is 8 bytes of k, 4 numbers or 8, by 4 to 16 bytes of neighbours; a piece of it
 * is one row of k.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/amdgcn.h"

/* ---- units ------------------------------------------------------------------------------- */

tcc_units tcc_amdgcn_units(const tcc_amdgcn_lowering *l, const tcc_type *tile, int k, int64_t panel)
{
    unsigned stages = tile->kind == TCC_KIND_smem;
    tcc_units u = {.transposed = panel < TCC_UNIT_BYTES,
                   .k = k,
                   .rows = tile->dims[stages + !k].size,
                   .depth = tile->dims[stages + k].size,
                   .bits = tcc_scalar_bits(tile->elem)};
    u.rows_first = u.transposed;
    u.of = tcc_rdna_unit_of(l->low.warps * l->low.lanes, u.rows, u.depth, u.bits, u.transposed);
    return u;
}

/* Units that are left for the threads' unit j. */
static int64_t units_left(const tcc_amdgcn_lowering *l, const tcc_units *u, int64_t j)
{
    return u->of.n - j * l->low.warps * l->low.lanes;
}

/* Whether some threads have no unit j: fewer are left than there are waves. Else, where fewer are
 * left than there are threads, lanes of one wave have the same one and write the same to LDS: that
 * costs less than a branch in the loop, around which LLVM moves registers and spills them. */
static bool is_guarded(const tcc_amdgcn_lowering *l, const tcc_units *u, int64_t j)
{
    return units_left(l, u, j) < l->low.warps;
}

tcc_value *tcc_amdgcn_has_unit(tcc_amdgcn_lowering *l, const tcc_units *u, int64_t j)
{
    return is_guarded(l, u, j) ? tcc_low_cmp(&l->low, "lt", l->tid,
                                             tcc_low_c32(&l->low, units_left(l, u, j)))
                               : NULL;
}

/* The number of a lane's unit among the remaining ones, which are divided evenly among the
 * waves. */
static tcc_value *shared_unit(tcc_amdgcn_lowering *l, int64_t left)
{
    tcc_lowering *low = &l->low;
    int64_t waves = l->low.warps, by = left % waves ? waves : 1; /* to divide by */
    tcc_value *all = tcc_low_mul(low, l->wave, by * left / waves);
    tcc_value *first = tcc_low_div(low, all, by);
    tcc_value *next = tcc_low_div(low, tcc_low_add(low, all, by * left / waves), by);
    tcc_value *own = tcc_amdgcn_add(l, first, l->by.lane);
    return tcc_low_bin(low, TCC_OP_arith_min, own, tcc_low_add(low, next, -1));
}

tcc_unit tcc_amdgcn_unit(tcc_amdgcn_lowering *l, const tcc_units *u, int64_t j)
{
    tcc_lowering *low = &l->low;
    int64_t n = u->rows_first ? u->rows / u->of.cols : u->depth / u->of.depth;
    int64_t threads = l->low.warps * l->low.lanes, left = units_left(l, u, j), first = j * threads;
    bool shared = left < threads && !is_guarded(l, u, j);
    tcc_value *number = shared ? shared_unit(l, left) : l->tid;
    if (first % n)
        number = tcc_low_add(low, number, first);
    tcc_value *fast = tcc_low_rem(low, number, n), *slow = tcc_low_div(low, number, n);
    int64_t add = first % n ? 0 : first / n;
    return u->rows_first ? (tcc_unit){fast, slow, 0, add} : (tcc_unit){slow, fast, add, 0};
}

/* Where a lane's results are not neighbours, as on RDNA3, lane l of A holds row l, whose results go to
 * lane group l % groups, register l / groups, groups being wave / 16 (RDNA3 ISA, 7.9). So that a
 * lane's registers are neighbours along n, place r takes row r % groups * registers + r / groups of
 * its 16. A is the operand of n, whose first dimension is k. */
tcc_value *tcc_amdgcn_row_at(tcc_amdgcn_lowering *l, int k, tcc_value *place)
{
    tcc_lowering *low = &l->low;
    if (k != 0 || tcc_fragment_has_neighbours(tcc_wmma_result(l->target, (unsigned)l->low.lanes)))
        return place;
    int64_t groups = l->low.lanes / TCC_BLOCK, registers = TCC_BLOCK / groups;
    tcc_value *in_block = tcc_low_rem(low, place, TCC_BLOCK);
    tcc_value *block = tcc_low_bin(low, TCC_OP_arith_sub, place, in_block);
    tcc_value *row = tcc_low_mul(low, tcc_low_rem(low, in_block, groups), registers);
    row = tcc_amdgcn_add(l, row, tcc_low_div(low, in_block, groups));
    return tcc_amdgcn_add(l, block, row);
}

/* ---- places in memory -------------------------------------------------------------------- */

int64_t tcc_amdgcn_chunk(const tcc_source *s)
{
    return TCC_UNIT_BYTES * 8 / s->units.bits;
}

tcc_value *tcc_amdgcn_rest(tcc_amdgcn_lowering *l, const tcc_source *s)
{
    tcc_value *k = tcc_low_extent(&l->low, s->tensor->type->dims[s->along_k]);
    return tcc_arith_rest(&l->low.b, k, tcc_amdgcn_chunk(s));
}

tcc_value *tcc_amdgcn_missing(tcc_amdgcn_lowering *l, const tcc_source *s)
{
    tcc_value *whole = tcc_low_c32(&l->low, tcc_amdgcn_chunk(s));
    return tcc_low_bin(&l->low, TCC_OP_arith_sub, whole, tcc_amdgcn_rest(l, s));
}

static tcc_value *coordinate(tcc_amdgcn_lowering *l, const tcc_source *s, int d)
{
    return tcc_low_scalar(&l->low, s->op->operands[1 + d]);
}

/* Rows of the tensor from the tile's first on. */
static tcc_value *room_from(tcc_amdgcn_lowering *l, const tcc_source *s)
{
    tcc_value *extent = tcc_low_extent(&l->low, s->tensor->type->dims[s->own]);
    return tcc_low_bin(&l->low, TCC_OP_arith_sub, extent, coordinate(l, s, s->own));
}

/* Whether a row of the tile is in the tensor, and this thread copies it. */
static tcc_value *row_inside(tcc_amdgcn_lowering *l, const tcc_source *s, tcc_value *row,
                             tcc_value *has)
{
    tcc_lowering *low = &l->low;
    tcc_value *room = tcc_low_c32(low, 1);
    if (s->own >= 0)
        room = room_from(l, s);
    tcc_value *inside = tcc_low_cmp(low, "lt", row, room);
    return has ? tcc_amdgcn_and(l, inside, has) : inside;
}

/* Elements from the tensor's beginning to the tile's; along k only where k is given. */
static tcc_value *first_element(tcc_amdgcn_lowering *l, const tcc_source *s, tcc_value *k)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = s->tensor->type;
    tcc_value *first = tcc_build_int(&low->b, low->i64, 0);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *at = (int)d == s->along_k ? k : coordinate(l, s, (int)d);
        if (at)
            first = tcc_amdgcn_add(l, first,
                                   tcc_low_scaled(low, at, tcc_low_stride(low, t, (int)d, &one)));
    }
    return first;
}

/* How many bytes of the `cols` neighbours from col on are beyond the row, 0 or more; NULL if always
 * 0. */
static tcc_value *bytes_beyond(tcc_amdgcn_lowering *l, const tcc_source *s, tcc_value *col)
{
    tcc_lowering *low = &l->low;
    tcc_dim dim = s->tensor->type->dims[s->own];
    int64_t cols = s->units.of.cols;
    if (s->aligned || (!dim.name && dim.size % cols == 0))
        return NULL;
    tcc_value *room = room_from(l, s);
    tcc_value *n = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_add(low, col, cols), room);
    return tcc_low_mul(low, tcc_low_bin_const(low, TCC_OP_arith_max, n, 0), s->units.bits / 8);
}

/* How many bytes of the last 16 of a row are beyond it, where they are loaded with the row's end; NULL if always 0. */
static tcc_value *bytes_missing(tcc_amdgcn_lowering *l, const tcc_source *s)
{
    tcc_dim k = s->tensor->type->dims[s->along_k];
    if (s->aligned || s->early || !s->last || (!k.name && k.size % tcc_amdgcn_chunk(s) == 0))
        return NULL;
    tcc_value *bits = tcc_low_mul(&l->low, tcc_amdgcn_missing(l, s), s->units.bits);
    return tcc_low_div(&l->low, bits, 8);
}

/* 16 bytes of a row of the tensor become 16 bytes of a row in LDS. */
static void plan_row(tcc_amdgcn_lowering *l, const tcc_source *s, int64_t j, tcc_piece *piece)
{
    tcc_lowering *low = &l->low;
    tcc_unit u = tcc_amdgcn_unit(l, &s->units, j);
    tcc_value *row = tcc_amdgcn_row_at(l, s->units.k, tcc_low_add(low, u.row, u.row_add));
    tcc_value *stride = tcc_amdgcn_stride(l, s->tensor, s->own, s->units.rows);
    if (s->units.bits == 4)
        stride = tcc_low_div(low, stride, 2);
    tcc_value *offset = tcc_amdgcn_mul(l, row, stride);
    offset = tcc_amdgcn_add(l, offset, tcc_low_mul(low, u.k, TCC_UNIT_BYTES));
    tcc_value *inside = row_inside(l, s, row, tcc_amdgcn_has_unit(l, &s->units, j));
    piece->offset = tcc_amdgcn_offset(l, inside, offset);
    piece->k = tcc_low_mul(low, u.k, tcc_amdgcn_chunk(s));
    piece->beyond = bytes_missing(l, s);
}

/* of.depth rows of k by of.cols neighbours. */
static void plan_transposed(tcc_amdgcn_lowering *l, const tcc_source *s, int64_t j,
                            tcc_piece *pieces)
{
    tcc_lowering *low = &l->low;
    tcc_unit u = tcc_amdgcn_unit(l, &s->units, j);
    tcc_value *col = tcc_low_mul(low, u.row, s->units.of.cols);
    tcc_value *k = tcc_low_mul(low, tcc_low_add(low, u.k, u.k_add), s->units.of.depth);
    tcc_value *inside = row_inside(l, s, col, tcc_amdgcn_has_unit(l, &s->units, j));
    tcc_value *along = tcc_low_mul(low, col, s->units.bits / 8);
    tcc_value *beyond = bytes_beyond(l, s, col);
    for (int64_t i = 0; i < s->units.of.depth; i++) {
        tcc_value *k_i = tcc_low_add(low, k, i);
        tcc_value *offset = tcc_amdgcn_add(l, tcc_amdgcn_mul(l, k_i, s->k_bytes), along);
        pieces[i] = (tcc_piece){tcc_amdgcn_offset(l, inside, offset), k_i, beyond};
    }
}

tcc_value *tcc_amdgcn_bytes_to(tcc_amdgcn_lowering *l, const tcc_source *s, tcc_value *k)
{
    tcc_value *bytes = tcc_amdgcn_mul(l, k, s->k_bytes);
    /* k may be negative, and is even: no shift. */
    return s->units.bits == 4 ? tcc_low_bin_const(&l->low, TCC_OP_arith_div, bytes, 2) : bytes;
}

/* ---- loads --------------------------------------------------------------------------------- */

static tcc_value *buffer_load(tcc_amdgcn_lowering *l, tcc_value *descriptor, tcc_value *voffset,
                              tcc_value *soffset, const tcc_type *type)
{
    return TCC_EMIT(&l->low.b, amdgcn_buffer_load, type, descriptor, voffset, soffset);
}

tcc_value *tcc_amdgcn_load(tcc_amdgcn_lowering *l, const tcc_source *s, tcc_value *descriptor,
                           tcc_value *voffset, tcc_value *soffset)
{
    tcc_value *r = buffer_load(l, descriptor, voffset, soffset,
                               tcc_low_vec(&l->low, TCC_i32, s->units.of.words));
    if (!s->aligned)
        tcc_attr_set_int(l->low.ir, &r->def->attrs, "align",
                         s->units.bits < 8 ? 1 : s->units.bits / 8);
    return r;
}

tcc_value *tcc_amdgcn_load_half(tcc_amdgcn_lowering *l, tcc_value *descriptor, tcc_value *at, tcc_value *inside)
{
    enum { BITS = 4, MASK = 15 };
    tcc_lowering *low = &l->low;
    tcc_value *offset = tcc_amdgcn_offset(l, inside, tcc_low_div(low, at, 2));
    tcc_value *byte = buffer_load(l, descriptor, offset, tcc_low_c32(low, 0), tcc_low_vec(low, TCC_u8, 1));
    byte = tcc_low_cast(low, low->i32, tcc_low_extract(low, byte, 0));
    tcc_value *shift = tcc_low_mul(low, tcc_low_rem(low, at, 2), BITS);
    return tcc_low_bin_const(low, TCC_OP_arith_and, tcc_low_bin(low, TCC_OP_arith_shr, byte, shift),
                             MASK);
}

/* Unit j, 16 bytes in LDS, element by element, whatever its strides; neighbouring lanes take neighbours
 * in memory. */
static tcc_value *gather(tcc_amdgcn_lowering *l, const tcc_source *s, int64_t j)
{
    tcc_lowering *low = &l->low;
    const tcc_units *units = &s->units;
    tcc_scalar elem = s->tensor->type->elem;
    int64_t n = units->of.depth;
    tcc_unit u = tcc_amdgcn_unit(l, units, j);
    tcc_value *row = tcc_amdgcn_row_at(l, units->k, tcc_low_add(low, u.row, u.row_add));
    tcc_value *k = tcc_low_mul(low, tcc_low_add(low, u.k, u.k_add), n);
    tcc_value *stride = tcc_amdgcn_stride(l, s->tensor, s->own, units->rows);
    tcc_value *at = tcc_amdgcn_mul(l, row, stride);
    at = tcc_amdgcn_add(l, at, tcc_amdgcn_mul(l, k, s->k_bytes));
    tcc_value *row_in = row_inside(l, s, row, tcc_amdgcn_has_unit(l, units, j));
    tcc_value *first = first_element(l, s, s->k), *zero = tcc_low_c32(low, 0);
    tcc_value *descriptor = tcc_amdgcn_descriptor(l, s->tensor, first, NULL);
    tcc_value *left = tcc_low_bin(low, TCC_OP_arith_sub,
                                  tcc_low_extent(low, s->tensor->type->dims[s->along_k]), s->k);
    left = tcc_low_bin(low, TCC_OP_arith_sub, left, k);
    left = TCC_EMIT(&low->b, arith_select, low->i32, row_in, left, zero);
    tcc_value *odd = NULL;
    if (units->bits == 4)
        odd = tcc_low_rem(low, tcc_low_cast(low, low->i32, first), 2);
    tcc_value *parts[TCC_UNIT_BYTES * 2];
    for (int64_t e = 0; e < n; e++) {
        tcc_value *inside = tcc_low_cmp(low, "gt", left, tcc_low_c32(low, e));
        if (odd)
            parts[e] = tcc_amdgcn_load_half(l, descriptor, tcc_amdgcn_add(l, at, odd), inside);
        else
            parts[e] = buffer_load(l, descriptor, tcc_amdgcn_offset(l, inside, at), zero,
                                   tcc_low_vec(low, elem, 1));
        at = tcc_amdgcn_add(l, at, s->k_bytes);
    }
    const tcc_type *words = tcc_low_vec(low, TCC_i32, TCC_UNIT_BYTES / 4);
    if (!odd)
        return TCC_EMIT(&low->b, vec_bitcast, words, tcc_low_pack(low, elem, (size_t)n, parts, n));
    for (int64_t w = 0; w < TCC_UNIT_BYTES / 4; w++) { /* eight numbers of 4 bits make a word */
        tcc_value *word = parts[w * 8];
        for (int64_t e = 1; e < 8; e++)
            word = tcc_low_bin(low, TCC_OP_arith_or, word,
                               tcc_low_bin_const(low, TCC_OP_arith_shl, parts[w * 8 + e], 4 * e));
        parts[w] = word;
    }
    return tcc_low_pack(low, TCC_i32, TCC_UNIT_BYTES / 4, parts, TCC_UNIT_BYTES / 4);
}

/* The lowered form of the tile; equal tiles share their units. */
static tcc_parts *set_pieces(tcc_amdgcn_lowering *l, const tcc_source *s, size_t n, tcc_value *const *pieces)
{
    tcc_parts *r = tcc_low_set(&l->low, &s->op->results[0], n, pieces);
    for (size_t i = 0; i < l->units.len && !r->units; i++)
        if (!memcmp(l->units.data[i], &s->units, sizeof s->units))
            r->units = l->units.data[i];
    if (!r->units) {
        tcc_units *u = TCC_NEW(l->low.ctx->scratch, tcc_units);
        *u = s->units;
        TCC_PUSH(l->low.ctx->scratch, &l->units, u);
        r->units = u;
    }
    return r;
}

static void copy_by_element(tcc_amdgcn_lowering *l, tcc_source *s)
{
    tcc_value **parts =
        TCC_NEW_ARRAY(l->low.ctx->scratch, tcc_value *, (size_t)s->units.of.n_lane);
    for (int64_t j = 0; j < s->units.of.n_lane; j++)
        parts[j] = gather(l, s, j);
    set_pieces(l, s, (size_t)s->units.of.n_lane, parts);
}

/* If the tile does not exist, in a sum of whole tiles, its loads, which are not used and not checked,
 * could end beyond the tensor: then an empty tensor is used. */
static tcc_value *has_whole_tile(tcc_amdgcn_lowering *l, const tcc_source *s)
{
    tcc_lowering *low = &l->low;
    if (s->aligned)
        return NULL;
    tcc_value *k = tcc_low_extent(low, s->tensor->type->dims[s->along_k]);
    k = tcc_low_bin(low, TCC_OP_arith_sub, k, tcc_amdgcn_rest(l, s));
    return tcc_low_cmp(low, "ge", k, tcc_low_c32(low, s->units.depth));
}

/* The position of a tile relative to the tensor along k: inside; partly before it; partly beyond
 * it. */
typedef enum lies { INSIDE, EARLY, ANYWHERE } lies;

static lies how_it_lies(const tcc_op *load)
{
    return tcc_attr_find(&load->attrs, "early")    ? EARLY
           : tcc_attr_find(&load->attrs, "inside") ? INSIDE
                                                   : ANYWHERE;
}

/* Where pieces must not extend beyond the end of the tensor; NULL: nowhere. */
static tcc_value *last_of(tcc_amdgcn_lowering *l, const tcc_source *s, lies how)
{
    tcc_lowering *low = &l->low;
    if (s->aligned || how == INSIDE)
        return NULL;
    if (how == EARLY)
        return tcc_low_c32(low, -1);
    tcc_value *k = tcc_low_extent(low, s->tensor->type->dims[s->along_k]);
    return s->units.transposed ? tcc_low_add(low, k, -1) : tcc_low_bin(low, TCC_OP_arith_sub, k, tcc_amdgcn_rest(l, s));
}

/* Loads 16 bytes at a time; a tile inside the tensor begins at soffset bytes. */
static void copy_pieces(tcc_amdgcn_lowering *l, tcc_source *s)
{
    tcc_lowering *low = &l->low;
    const tcc_units *u = &s->units;
    lies how = how_it_lies(s->op);
    s->early = how == EARLY;
    s->last = last_of(l, s, how);
    size_t n = (size_t)(u->of.n_lane * u->of.loads);
    tcc_piece *pieces = TCC_NEW_ARRAY(low->ctx->scratch, tcc_piece, n);
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, n);
    tcc_dim k = s->tensor->type->dims[s->along_k];
    tcc_amdgcn_stride(l, s->tensor, s->along_k, TCC_WHOLE); /* every tile is in reach */
    tcc_low_require_alignment(low, s->tensor, s->aligned ? TCC_UNIT_BYTES : 1);
    tcc_amdgcn_require_iterations(l, k);
    if (!s->aligned) {
        tcc_low_require_min(low, k, tcc_amdgcn_chunk(s));
        if (u->transposed)
            tcc_low_require_min(low, s->tensor->type->dims[s->own], u->of.cols);
    }
    tcc_value *first = first_element(l, s, NULL), *whole = how == INSIDE ? has_whole_tile(l, s) : NULL;
    tcc_value *descriptor = tcc_amdgcn_descriptor(l, s->tensor, first, whole);
    for (int64_t j = 0; j < u->of.n_lane; j++)
        (u->transposed ? plan_transposed : plan_row)(l, s, j, pieces + j * u->of.loads);
    tcc_value *soffset = how == INSIDE ? tcc_amdgcn_bytes_to(l, s, s->k) : NULL;
    for (size_t i = 0; i < n; i++)
        parts[i] = how == INSIDE  ? tcc_amdgcn_load(l, s, descriptor, pieces[i].offset, soffset)
                   : how == EARLY ? tcc_amdgcn_load_early(l, s, descriptor, &pieces[i])
                                  : tcc_amdgcn_load_checked(l, s, descriptor, &pieces[i]);
    set_pieces(l, s, n, parts)->mending = how == INSIDE ? NULL : tcc_amdgcn_mending(l, s, n, pieces);
}

static bool are_whole(const tcc_units *u)
{
    return u->depth % u->of.depth == 0 && u->rows % u->of.cols == 0;
}

static const char *why_not_by_element(const tcc_source *s)
{
    return s->units.transposed                        ? "element by element, transposed"
           : tcc_attr_find(&s->op->attrs, "early")    ? "element by element from before the tensor"
           : !are_whole(&s->units)                    ? "parts of units"
                                                      : NULL;
}

static const char *why_not_in_pieces(const tcc_source *s)
{
    const tcc_units *u = &s->units;
    const tcc_attrs *attrs = &s->op->attrs;
    lies how = how_it_lies(s->op);
    int64_t chunk = tcc_amdgcn_chunk(s);
    const tcc_type *t = s->tensor->type;
    const tcc_dim *rows = &t->dims[t->rank - 1];
    if (how != ANYWHERE && tcc_attr_int(attrs, how == EARLY ? "early" : "inside", -1) != u->k)
        return "the sum runs along another dimension";
    if (how == EARLY && tcc_attr_int(attrs, "chunk", 0) != (s->aligned ? 0 : chunk))
        return "a last chunk of another size";
    if ((u->transposed ? s->own : s->along_k) != (int)t->rank - 1)
        return "another dimension is contiguous";
    if (u->transposed && u->bits == 4)
        return "transposed elements of 4 bits";
    if (!u->transposed &&
        !tcc_is_multiple(s->op->operands[1 + s->along_k], chunk, s->aligned ? rows : NULL))
        return "from within a unit";
    if (u->transposed && s->aligned &&
        !tcc_is_multiple(s->op->operands[1 + s->own], u->of.cols, NULL))
        return "from within a unit";
    return are_whole(u) ? NULL : "parts of units";
}

void tcc_amdgcn_copy(tcc_amdgcn_lowering *l, tcc_op *op)
{
    const tcc_attrs *attrs = &op->attrs;
    const tcc_attr *dims = tcc_attr_list(attrs, "dims").list.items;
    const tcc_type *tile = op->results[0].type;
    const char *how = tcc_attr_str(attrs, "copy", "");
    int64_t panel = tcc_attr_int(attrs, "panel", 0);
    int k = (int)tcc_attr_int(attrs, "contiguous", 0);
    tcc_source s = {.op = op, .tensor = op->operands[0], .aligned = !strcmp(how, "buffer")};
    bool by_element = !strcmp(how, "predicated");
    if (!panel || panel > TCC_UNIT_BYTES || tile->rank != 2 || dims[k].i < 0 || (!by_element && dims[!k].i < 0) ||
        !tcc_has_word("buffer unaligned predicated", how)) {
        TCC_LOW_REFUSE(&l->low, op, "tile.load into units without a layout");
        return;
    }
    s.units = tcc_amdgcn_units(l, tile, k, panel);
    s.own = (int)dims[!k].i;
    s.along_k = (int)dims[k].i;
    const char *why = by_element ? why_not_by_element(&s) : why_not_in_pieces(&s);
    if (!why && s.aligned && tcc_low_ends_in_group(&l->low, s.tensor->type, tcc_amdgcn_chunk(&s)))
        why = "16 bytes that may hold a row's end";
    if (why) {
        TCC_LOW_REFUSE(&l->low, op, "tile.load into units: %s", why);
        return;
    }
    int last = (int)s.tensor->type->rank - 1;
    s.units.rows_first |= by_element && s.along_k != last;
    s.k = tcc_low_scalar(&l->low, op->operands[1 + s.along_k]);
    s.k_bytes = tcc_amdgcn_stride(l, s.tensor, s.along_k, s.units.depth);
    (by_element ? copy_by_element : copy_pieces)(l, &s);
}
