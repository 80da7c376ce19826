/* amdgcn_tile: tiles in registers: MMAs, parts of tiles, elementwise ops, loads and stores.
 *
 * A tile becomes a vec for each block of 16 x 16 that a wave has of it, those of one m together. Of a block a
 * lane has one row m and `per_lane` neighbours along n (amdgcn_copy.c, tcc_amdgcn_row_at): row lane % 16. A
 * tile of extent 1 along m has per_lane elements of a block, along n one. Accumulators of 16 bits are
 * packed as the instruction wants them.
 *
 * The matrix instruction computes the transposed product: its A is the operand of n and its B that of m, so
 * that what a lane holds of D are neighbours along n, as results are stored.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "passes/amdgcn.h"

enum { MAX_PER_LANE = 8 };

/* ---- what a wave holds ------------------------------------------------------------------- */

/* Blocks of a wave along a direction, 1 where the extent is 1; 0 when it is no number of blocks. */
static int64_t blocks_of(const tcc_amdgcn_lowering *l, const tcc_type *t, int x)
{
    int64_t n = t->dims[x].size, all = l->by.waves[x] * TCC_BLOCK;
    return n == 1 ? 1 : n % all ? 0 : n / all;
}

static bool is_packed(const tcc_type *t)
{
    return t->layout == TCC_LAYOUT_accumulator && tcc_scalar_bits(t->elem) == 16;
}

static const tcc_wmma *instruction(const tcc_amdgcn_lowering *l, tcc_scalar elem, tcc_scalar acc)
{
    return tcc_wmma_find(l->target, elem, elem, acc, 0);
}

/* Whether two blocks along n share their registers, each in its half. */
static bool in_halves(const tcc_amdgcn_lowering *l, const tcc_type *t)
{
    return is_packed(t) && tcc_wmma_sums_in_halves(l->target, t->elem);
}

/* The number of the value that has block (m, n). */
static int64_t value_at(const tcc_amdgcn_lowering *l, const tcc_type *t, int64_t m, int64_t n)
{
    int64_t in_one = in_halves(l, t) ? 2 : 1;
    return m * ((blocks_of(l, t, 1) + in_one - 1) / in_one) + n / in_one;
}

static int64_t operand_words(const tcc_amdgcn_lowering *l, const tcc_type *t, int k)
{
    bool ints = tcc_scalar_classify(t->elem) != TCC_CLASS_FLOAT;
    const tcc_wmma *w = instruction(l, t->elem, ints ? TCC_i32 : TCC_f32);
    unsigned bits = tcc_scalar_bits(t->elem);
    int64_t groups = w ? tcc_wmma_k_groups(l->target, w->k, bits, l->by.lanes) : 0;
    return w && t->dims[k].size % w->k == 0 ? t->dims[k].size * bits / 32 / groups : 0;
}

size_t tcc_amdgcn_held(tcc_amdgcn_lowering *l, const tcc_op *user, const tcc_type *tile,
                       const tcc_type **each)
{
    tcc_lowering *low = &l->low;
    int64_t blocks[2] = {0, 0}, words = 0, n = 0;
    for (int x = 0; l->by.role && tile->rank == 2 && x < 2; x++)
        blocks[x] = blocks_of(l, tile, x);
    if (tile->layout == TCC_LAYOUT_operand_a || tile->layout == TCC_LAYOUT_operand_b) {
        int k = tile->layout == TCC_LAYOUT_operand_a;
        words = tile->rank == 2 ? operand_words(l, tile, k) : 0;
        n = words && tile->dims[!k].size > 1 ? blocks[!k] : 0;
        *each = words ? tcc_low_vec(low, TCC_i32, words) : NULL;
    } else if (tile->layout != TCC_LAYOUT_units && blocks[0] && blocks[1]) {
        bool whole = tile->dims[0].size > 1 && tile->dims[1].size > 1;
        const tcc_wmma *w = is_packed(tile) ? instruction(l, tile->elem, tile->elem) : NULL;
        n = value_at(l, tile, blocks[0], 0);
        if (is_packed(tile) ? !w || !whole : tile->layout && !whole)
            n = 0;
        else if (w)
            *each = tcc_low_vec(low, TCC_i32, tcc_wmma_result_words(w, l->by.lanes));
        else
            *each = tcc_low_vec(low, tile->elem, tile->dims[1].size == 1 ? 1 : l->by.per_lane);
    }
    if (!n) {
        tcc_str text = {0};
        tcc_type_print(&text, tile);
        TCC_LOW_REFUSE(low, user, "%s in the registers of %lld waves", tcc_str_text(&text),
                       (long long)l->by.warps);
        tcc_str_free(&text);
    }
    return (size_t)n;
}

static tcc_value **room(const tcc_amdgcn_lowering *l, size_t n)
{
    return TCC_NEW_ARRAY(l->low.ctx->scratch, tcc_value *, n);
}

/* ---- MMAs -------------------------------------------------------------------------------- */

static tcc_value *multiply(tcc_amdgcn_lowering *l, const tcc_op *op, tcc_value *m, tcc_value *n,
                           tcc_value *c, int64_t k, bool high)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    tcc_value *r = TCC_EMIT(&l->low.b, amdgcn_wmma, c->type, n, m, c);
    tcc_attrs *attrs = &r->def->attrs;
    tcc_attr_set_str(l->low.ir, attrs, "a", tcc_scalar_name(o->b->type->elem));
    tcc_attr_set_str(l->low.ir, attrs, "b", tcc_scalar_name(o->a->type->elem));
    tcc_attr_set_str(l->low.ir, attrs, "acc", tcc_scalar_name(o->c->type->elem));
    tcc_attr_set_int(l->low.ir, attrs, "k", k);
    if (high)
        tcc_attr_set_int(l->low.ir, attrs, "high", 1);
    return r;
}

void tcc_amdgcn_mma(tcc_amdgcn_lowering *l, tcc_op *op)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    const tcc_type *a = o->a->type, *b = o->b->type, *c = o->c->type, *each;
    tcc_attr instr = tcc_attr_list(&op->attrs, "instr");
    int64_t k = instr.list.n == 3 ? instr.list.items[2].i : 0;
    unsigned bits = tcc_scalar_bits(a->elem);
    const tcc_wmma *w = tcc_wmma_find(l->target, b->elem, a->elem, c->elem, k);
    if (tcc_mma_accumulate(op)) {
        TCC_LOW_REFUSE(&l->low, op, "tile.mma that may not add");
        return;
    }
    if (a->layout != TCC_LAYOUT_operand_a || b->layout != TCC_LAYOUT_operand_b ||
        c->layout != TCC_LAYOUT_accumulator) {
        TCC_LOW_REFUSE(&l->low, op, "tile.mma of tiles that are not held as the instruction wants them");
        return;
    }
    size_t n = tcc_amdgcn_held(l, op, c, &each);
    if (!n || !tcc_amdgcn_held(l, op, a, &each) || !tcc_amdgcn_held(l, op, b, &each))
        return;
    int64_t words = w && k ? tcc_wmma_operand_words(l->target, k, bits, l->by.lanes) : 0;
    int64_t steps = k ? a->dims[1].size / k : 0;
    if (!words || instr.list.items[0].i != TCC_BLOCK || instr.list.items[1].i != TCC_BLOCK ||
        tcc_scalar_bits(b->elem) != bits || steps * words != tcc_type_count(each)) {
        TCC_LOW_REFUSE(&l->low, op, "this instruction for %s by %s in %s", tcc_scalar_name(a->elem),
                       tcc_scalar_name(b->elem), tcc_scalar_name(c->elem));
        return;
    }
    const tcc_parts *m = tcc_amdgcn_parts(l, o->a), *along_n = tcc_amdgcn_parts(l, o->b);
    tcc_value **acc = room(l, n);
    memcpy(acc, tcc_amdgcn_parts(l, o->c)->values, n * sizeof *acc);
    bool halves = in_halves(l, c);
    for (int64_t s = 0; s < steps; s++)
        for (size_t j = 0; j < along_n->n; j++)
            for (size_t i = 0; i < m->n; i++) {
                tcc_value **r = &acc[value_at(l, c, (int64_t)i, (int64_t)j)];
                tcc_value *of_n = tcc_low_slice(&l->low, along_n->values[j], s * words, words);
                tcc_value *of_m = tcc_low_slice(&l->low, m->values[i], s * words, words);
                *r = multiply(l, op, of_m, of_n, *r, k, halves && j % 2);
            }
    tcc_amdgcn_set(l, &op->results[0], n, acc);
}

/* ---- layouts ----------------------------------------------------------------------------- */

/* Block (m, n) of a tile, unpacked. */
static tcc_value *block_of(tcc_amdgcn_lowering *l, const tcc_value *tile, int64_t m, int64_t n)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = tile->type;
    tcc_value *v = tcc_amdgcn_parts(l, tile)->values[value_at(l, t, m, n)];
    if (!is_packed(t))
        return v;
    tcc_value *all =
        TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, t->elem, tcc_type_count(v->type) * 2), v);
    if (!in_halves(l, t))
        return all;
    tcc_value *parts[MAX_PER_LANE];
    for (int64_t i = 0; i < l->by.per_lane; i++)
        parts[i] = tcc_low_extract(low, all, 2 * i + n % 2);
    return tcc_low_pack(low, t->elem, (size_t)l->by.per_lane, parts, l->by.per_lane);
}

/* Blocks low and high, or low alone, in a tile like `t`. */
static tcc_value *pack(tcc_amdgcn_lowering *l, const tcc_type *t, const tcc_type *each,
                       tcc_value *first, tcc_value *second)
{
    tcc_lowering *low = &l->low;
    tcc_value *parts[2 * MAX_PER_LANE];
    if (in_halves(l, t)) {
        for (int64_t i = 0; i < l->by.per_lane; i++) {
            parts[2 * i] = tcc_low_extract(low, first, i);
            parts[2 * i + 1] = tcc_low_extract(low, second ? second : first, i);
        }
        first = tcc_low_pack(low, t->elem, (size_t)(2 * l->by.per_lane), parts, 2 * l->by.per_lane);
    }
    return TCC_EMIT(&low->b, vec_bitcast, each, first);
}

void tcc_amdgcn_convert(tcc_amdgcn_lowering *l, tcc_op *op)
{
    const tcc_value *a = TCC_VIEW(tile_convert, op)->a;
    const tcc_type *from = a->type, *to = op->results[0].type, *each, *each_from;
    bool known = (from->layout == TCC_LAYOUT_none || from->layout == TCC_LAYOUT_accumulator) &&
                 (to->layout == TCC_LAYOUT_none || to->layout == TCC_LAYOUT_accumulator);
    if (!known) {
        TCC_LOW_REFUSE(&l->low, op, "tile.convert between lanes");
        return;
    }
    size_t n = tcc_amdgcn_held(l, op, to, &each);
    if (!n || !tcc_amdgcn_held(l, op, from, &each_from))
        return;
    tcc_value **parts = room(l, n);
    int64_t blocks_n = blocks_of(l, to, 1), together = in_halves(l, to) ? 2 : 1;
    for (int64_t m = 0; m < blocks_of(l, to, 0); m++)
        for (int64_t j = 0; j < blocks_n; j += together) {
            tcc_value *v = block_of(l, a, m, j);
            if (is_packed(to))
                v = pack(l, to, each, v,
                         together > 1 && j + 1 < blocks_n ? block_of(l, a, m, j + 1) : NULL);
            parts[value_at(l, to, m, j)] = v;
        }
    tcc_amdgcn_set(l, &op->results[0], n, parts);
}

void tcc_amdgcn_slice(tcc_amdgcn_lowering *l, tcc_op *op)
{
    const tcc_value *a = TCC_VIEW(tile_slice, op)->a;
    const tcc_type *from = a->type, *to = op->results[0].type, *each;
    const tcc_attr *at = tcc_attr_list(&op->attrs, "at").list.items;
    bool ok = to->layout == TCC_LAYOUT_none &&
              (from->layout == TCC_LAYOUT_none || from->layout == TCC_LAYOUT_accumulator);
    for (int x = 0; l->by.role && x < 2; x++)
        ok &= (from->dims[x].size == 1) == (to->dims[x].size == 1) &&
              at[x].i % (l->by.waves[x] * TCC_BLOCK) == 0;
    if (!ok) {
        TCC_LOW_REFUSE(&l->low, op, "tile.slice of registers of several waves");
        return;
    }
    size_t n = tcc_amdgcn_held(l, op, to, &each);
    if (!n || !tcc_amdgcn_held(l, op, from, &each))
        return;
    tcc_value **parts = room(l, n);
    for (int64_t i = 0; i < blocks_of(l, to, 0); i++)
        for (int64_t j = 0; j < blocks_of(l, to, 1); j++)
            parts[value_at(l, to, i, j)] = block_of(l, a, i + at[0].i / (l->by.waves[0] * TCC_BLOCK),
                                                    j + at[1].i / (l->by.waves[1] * TCC_BLOCK));
    tcc_amdgcn_set(l, &op->results[0], n, parts);
}

void tcc_amdgcn_rotate(tcc_amdgcn_lowering *l, tcc_op *op)
{
    const tcc_value *a = TCC_VIEW(tile_rotate, op)->a;
    const tcc_type *t = a->type, *each;
    const tcc_attr *by = tcc_attr_list(&op->attrs, "by").list.items;
    size_t n = tcc_amdgcn_held(l, op, t, &each);
    if (!n)
        return;
    int64_t blocks[2], turns[2], together = in_halves(l, t) ? 2 : 1;
    bool ok = true;
    for (int x = 0; x < 2; x++) {
        int64_t block = l->by.waves[x] * TCC_BLOCK, rest = by[x].i % t->dims[x].size;
        blocks[x] = blocks_of(l, t, x);
        turns[x] = rest / block;
        ok &= rest % block == 0;
    }
    if (!ok || turns[1] % together || blocks[1] % together) {
        TCC_LOW_REFUSE(&l->low, op, "tile.rotate from wave to wave");
        return;
    }
    tcc_value **parts = room(l, n), *const *from = tcc_amdgcn_parts(l, a)->values;
    for (int64_t i = 0; i < blocks[0]; i++)
        for (int64_t j = 0; j < blocks[1]; j += together)
            parts[value_at(l, t, i, j)] =
                from[value_at(l, t, (i + turns[0]) % blocks[0], (j + turns[1]) % blocks[1])];
    tcc_amdgcn_set(l, &op->results[0], n, parts);
}

static bool is_zero(const tcc_op *op)
{
    if (op->code != TCC_OP_arith_const)
        return false;
    const tcc_attr value = tcc_attr_find(&op->attrs, "value")->value;
    return value.kind == TCC_ATTR_INT ? !value.i : value.f == 0 && !signbit(value.f);
}

void tcc_amdgcn_tile_op(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_type *type = op->results[0].type, *each;
    size_t n = tcc_amdgcn_held(l, op, type, &each);
    if (!n)
        return;
    bool packed = type->layout > TCC_LAYOUT_accumulator || is_packed(type);
    if (packed && !is_zero(op)) {
        TCC_LOW_REFUSE(low, op, "%s of packed elements", tcc_op_info_get(op->code)->name);
        return;
    }
    tcc_value **parts = room(l, n);
    for (size_t i = 0; i < n; i++) {
        tcc_value *operands[3];
        for (unsigned o = 0; o < op->n_operands; o++)
            operands[o] = tcc_amdgcn_parts(l, op->operands[o])->values[i];
        parts[i] = packed ? tcc_build_int(&low->b, each, 0)
                          : tcc_low_elementwise(low, op, operands, tcc_type_count(each));
    }
    tcc_amdgcn_set(l, &op->results[0], n, parts);
}

/* v, a vec of one number, of several, or a number, n times. */
static tcc_value *spread(tcc_amdgcn_lowering *l, tcc_value *v, int64_t n)
{
    tcc_lowering *low = &l->low;
    if (v->type->kind == TCC_KIND_vec && tcc_type_count(v->type) == n)
        return v;
    tcc_value *number = v->type->kind == TCC_KIND_vec ? tcc_low_extract(low, v, 0) : v;
    return TCC_EMIT(&low->b, vec_splat, tcc_low_vec(low, v->type->elem, n), number);
}

void tcc_amdgcn_broadcast(tcc_amdgcn_lowering *l, tcc_op *op)
{
    const tcc_value *a = TCC_VIEW(tile_broadcast, op)->a;
    const tcc_type *type = op->results[0].type, *each, *from;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    bool scalar = a->type->kind == TCC_KIND_scalar;
    if (type->layout || (!scalar && (a->type->layout || dims.list.n != 2 || dims.list.items[0].i != 0 ||
                                     dims.list.items[1].i != 1))) {
        TCC_LOW_REFUSE(&l->low, op, "tile.broadcast that moves dimensions");
        return;
    }
    size_t n = tcc_amdgcn_held(l, op, type, &each);
    if (!n || (!scalar && !tcc_amdgcn_held(l, op, a->type, &from)))
        return;
    tcc_value **parts = room(l, n);
    for (int64_t i = 0; i < blocks_of(l, type, 0); i++)
        for (int64_t j = 0; j < blocks_of(l, type, 1); j++) {
            int64_t m = !scalar && a->type->dims[0].size > 1 ? i : 0;
            int64_t k = !scalar && a->type->dims[1].size > 1 ? j : 0;
            tcc_value *v = scalar ? tcc_amdgcn_scalar(l, a) : block_of(l, a, m, k);
            parts[value_at(l, type, i, j)] = spread(l, v, tcc_type_count(each));
        }
    tcc_amdgcn_set(l, &op->results[0], n, parts);
}

/* Lanes 16 apart have columns of the same row, neighbouring lanes columns of different rows: what each has of
 * what is combined is done in its registers, then from lane to lane. */
void tcc_amdgcn_reduce(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_value *a = TCC_VIEW(tile_reduce, op)->a;
    const tcc_type *t = a->type, *type = op->results[0].type, *each, *from;
    int dim = (int)tcc_attr_int(&op->attrs, "dim", 0);
    tcc_opcode code = tcc_low_reduction(op);
    size_t n = tcc_amdgcn_held(l, op, type, &each);
    if (!n || !tcc_amdgcn_held(l, op, t, &from))
        return;
    bool shared = t->dims[dim].size > 1 && l->by.waves[dim] > 1;
    if (shared || type->layout || t->layout > TCC_LAYOUT_accumulator || tcc_scalar_bits(t->elem) != 32) {
        TCC_LOW_REFUSE(low, op, "tile.reduce of %s",
                       shared ? "what several waves have" : "other than 32 bits");
        return;
    }
    tcc_value **parts = room(l, n);
    int64_t first = dim ? TCC_BLOCK : 1, end = dim ? l->by.lanes : TCC_BLOCK;
    for (int64_t i = 0; i < blocks_of(l, t, !dim); i++) {
        tcc_value *sum = block_of(l, a, dim ? i : 0, dim ? 0 : i), *lane[MAX_PER_LANE];
        for (int64_t j = 1; j < blocks_of(l, t, dim); j++)
            sum = tcc_low_bin(low, code, sum, block_of(l, a, dim ? i : j, dim ? j : i));
        int64_t n_lane = tcc_type_count(sum->type);
        for (int64_t e = 0; e < n_lane; e++)
            lane[e] = tcc_low_extract(low, sum, e);
        for (; dim && n_lane > 1; n_lane--)
            lane[0] = tcc_low_bin(low, code, lane[0], lane[n_lane - 1]);
        for (int64_t e = 0; e < n_lane && t->dims[dim].size > 1; e++)
            for (int64_t mask = first; mask < end; mask *= 2) {
                tcc_value *other = TCC_EMIT(&low->b, amdgcn_lane_xor, lane[e]->type, lane[e]);
                tcc_attr_set_int(low->ir, &other->def->attrs, "mask", mask);
                lane[e] = tcc_low_bin(low, code, lane[e], other);
            }
        parts[value_at(l, type, dim ? i : 0, dim ? 0 : i)] =
            tcc_low_pack(low, t->elem, (size_t)n_lane, lane, n_lane);
    }
    tcc_amdgcn_set(l, &op->results[0], n, parts);
}

/* ---- places in memory -------------------------------------------------------------------- */

/* Of the lane in a block. Where its results are not neighbours in the instruction, row_at has made
 * them so, lane group after lane group. Else the bits of the group add what the fragment says: RDNA4's
 * waves of 64 deal each 8 to lanes 16 g and 16 g + 32 (RDNA4 ISA, 7.12). */
static tcc_value *first_column(tcc_amdgcn_lowering *l, tcc_value *group)
{
    enum { GROUP_BIT = 4 }; /* of the lane's number: 16 lanes are a group */
    tcc_lowering *low = &l->low;
    const tcc_fragment_bits *lanes = &l->by.result->lanes;
    bool in_turn = true;
    for (unsigned i = GROUP_BIT; i < lanes->n; i++)
        in_turn &= lanes->adds[i].row == l->by.per_lane << (i - GROUP_BIT);
    if (in_turn || !tcc_fragment_has_neighbours(l->by.result))
        return tcc_low_mul(low, group, l->by.per_lane);
    tcc_value *column = NULL;
    for (unsigned i = GROUP_BIT; i < lanes->n; i++) {
        tcc_value *bit = i == GROUP_BIT ? group : tcc_low_div(low, group, 1 << (i - GROUP_BIT));
        if (i + 1 < lanes->n)
            bit = tcc_low_rem(low, bit, 2);
        tcc_value *adds = tcc_low_mul(low, bit, lanes->adds[i].row);
        column = column ? tcc_amdgcn_add(l, column, adds) : adds;
    }
    return column;
}

static const tcc_spot *spot(tcc_amdgcn_lowering *l)
{
    tcc_lowering *low = &l->low;
    tcc_spot *at = &l->spot;
    if (at->block == low->b.block)
        return at;
    at->block = low->b.block;
    tcc_value *lane = TCC_EMIT(&low->b, amdgcn_lane, low->i32, NULL);
    at->row = tcc_amdgcn_add(l, l->by.first[0], tcc_low_rem(low, lane, TCC_BLOCK));
    at->col = tcc_amdgcn_add(l, l->by.first[1], first_column(l, tcc_low_div(low, lane, TCC_BLOCK)));
    return at;
}

/* Where an access goes: bytes from element `rest` of the tile on, the tile being `add` further, of which
 * room[x] along each direction lie in the tensor. */
typedef struct place {
    tcc_value *descriptor, *stride[2], *room[2], *inside; /* inside: as far as other coordinates say; or NULL */
    int64_t add[2];
    int64_t step;     /* elements of one access, neighbours along n */
    bool has[2];      /* the tensor has an index along m, n */
    bool extent_1[2]; /* the tile has one row, one column */
} place;

/* A coordinate is `rest` + a constant, neither of them negative. */
static const tcc_value *split(const tcc_value *v, int64_t *constant)
{
    if (v->def && v->def->code == TCC_OP_arith_add &&
        tcc_value_is_int(v->def->operands[1], constant) && *constant >= 0 &&
        tcc_is_not_negative(v->def->operands[0]))
        return v->def->operands[0];
    *constant = 0;
    return v;
}

/* Of an access, as far as others of the tensor want to know: where it begins, at base + factor * varying +
 * first, and how long it is. */
typedef struct extent {
    const tcc_value *base, *varying;
    int64_t factor, first, size;
} extent;

static bool is_store(const tcc_op *op)
{
    return op->code == TCC_OP_tile_store;
}

static extent extent_along(const tcc_op *op, unsigned d)
{
    const tcc_dim *tile = (is_store(op) ? op->operands[0] : &op->results[0])->type->dims;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    extent e = {.factor = 1, .size = 1};
    e.varying = split(op->operands[1 + is_store(op) + d], &e.first);
    if (e.varying->def && e.varying->def->code == TCC_OP_arith_add) {
        e.base = e.varying->def->operands[0];
        e.varying = e.varying->def->operands[1];
    }
    if (e.varying->def && e.varying->def->code == TCC_OP_arith_mul &&
        tcc_value_is_int(e.varying->def->operands[1], &e.factor))
        e.varying = e.varying->def->operands[0];
    for (int x = 0; x < 2; x++)
        if (dims.list.items[x].i == (int64_t)d)
            e.size = tile[x].size;
    return e;
}

static bool begin_alike(const extent *x, const extent *y)
{
    return x->base == y->base && x->varying == y->varying && x->factor == y->factor;
}

static bool are_apart(const extent *x, const extent *y)
{
    return x->first + x->size <= y->first || y->first + y->size <= x->first;
}

/* Whether two accesses of a tensor have no element in common, or each lane has the same. Of a row or column
 * that all waves load one stores. */
static bool keep_apart(const tcc_op *a, const tcc_op *b, unsigned rank)
{
    const tcc_dim *tile = (is_store(a) ? a->operands[0] : &a->results[0])->type->dims;
    tcc_attr of_a = tcc_attr_list(&a->attrs, "dims"), of_b = tcc_attr_list(&b->attrs, "dims");
    bool one = tile[0].size == 1 || tile[1].size == 1;
    bool same = tcc_attr_equal(&of_a, &of_b) && (!one || is_store(a) == is_store(b));
    for (unsigned d = 0; d < rank; d++) {
        extent x = extent_along(a, d), y = extent_along(b, d);
        bool alike = begin_alike(&x, &y);
        if (alike && are_apart(&x, &y))
            return true;
        same &= alike && x.first == y.first && x.size == y.size;
    }
    return same;
}

static bool stays(const extent *x, const tcc_op *loop)
{
    return (!x->base || tcc_is_invariant(x->base, loop)) && tcc_is_invariant(x->varying, loop);
}

/* How far an access moves from one iteration of a loop to the next; 0: that is not known. */
static int64_t moves(const extent *x, const tcc_op *loop)
{
    int64_t step;
    bool known = x->varying == loop->regions[0]->args[0] && x->factor > 0 &&
                 (!x->base || tcc_is_invariant(x->base, loop)) &&
                 tcc_value_is_int(loop->operands[2], &step);
    return known ? x->factor * step : 0;
}

/* The same of accesses in different iterations of a loop around both. */
static bool keep_apart_in(const tcc_op *loop, const tcc_op *a, const tcc_op *b, unsigned rank)
{
    bool stay = true;
    for (unsigned d = 0; d < rank; d++) {
        extent x = extent_along(a, d), y = extent_along(b, d);
        int64_t first = x.first < y.first ? x.first : y.first;
        int64_t end = x.first + x.size > y.first + y.size ? x.first + x.size : y.first + y.size;
        bool alike = begin_alike(&x, &y), still = stays(&x, loop) && stays(&y, loop);
        if (alike && (still ? are_apart(&x, &y) : end - first <= moves(&x, loop)))
            return true;
        stay &= still;
    }
    return stay && keep_apart(a, b, rank);
}

/* Waves are at different places: what one stores another may store, load or have loaded. Whether two
 * accesses, one of which is a store, have nothing to do with that. */
static bool are_ordered(const tcc_op *a, const tcc_op *b, unsigned rank)
{
    if (!keep_apart(a, b, rank))
        return false;
    for (const tcc_op *loop = a->block->parent; loop; loop = loop->block->parent)
        if (tcc_is_loop(loop) && tcc_ancestor_in((tcc_op *)b, loop->regions[0]) &&
            !keep_apart_in(loop, a, b, rank))
            return false;
    return true;
}

/* False, refused, where what others access is not ordered. */
static bool is_ordered(tcc_amdgcn_lowering *l, const tcc_op *op, const tcc_value *tensor)
{
    TCC_PUSH(l->low.ctx->scratch, &l->accesses, op);
    for (size_t i = 0; i < l->accesses.len; i++) {
        const tcc_op *before = l->accesses.data[i];
        bool stored = is_store(before);
        if (before->operands[stored] != tensor || !(is_store(op) || stored) ||
            are_ordered(before, op, tensor->type->rank))
            continue;
        TCC_LOW_REFUSE(&l->low, op, "an access of elements of '%s' that may have been %s before",
                       tensor->name, stored ? "stored" : "loaded");
        return false;
    }
    return true;
}

static bool plan_place(tcc_amdgcn_lowering *l, place *p, const tcc_op *op, const tcc_value *tensor,
                       tcc_value *const *at, const tcc_type *tile)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = tensor->type;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    tcc_value *first = tcc_build_int(&low->b, low->i64, 0);
    int64_t bits = tcc_scalar_bits(t->elem), wide = tcc_attr_int(&op->attrs, "wide", 0) * 8 / bits;
    const tcc_value *column = NULL;
    if (bits < 8) {
        TCC_LOW_REFUSE(low, op, "'%s', of %s, outside the product", tensor->name,
                       tcc_scalar_name(t->elem));
        return false;
    }
    for (int x = 0; x < 2; x++) {
        p->room[x] = tcc_low_c32(low, 1);
        p->stride[x] = tcc_low_c32(low, 0);
        p->extent_1[x] = tile->dims[x].size == 1;
    }
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one);
        const tcc_value *index = at[d];
        bool along = false;
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d) {
                along = p->has[x] = true;
                index = split(index, &p->add[x]);
                p->stride[x] =
                    tcc_amdgcn_stride(l, tensor, (int)d, p->add[x] + tile->dims[x].size);
                p->room[x] = tcc_low_extent(low, t->dims[d]);
                p->room[x] = tcc_low_bin(low, TCC_OP_arith_sub, p->room[x],
                                         tcc_amdgcn_scalar(l, index));
                if (x == 1 && one)
                    column = at[d];
            }
        first = tcc_amdgcn_add(l, first, tcc_low_scaled(low, tcc_amdgcn_scalar(l, index), stride));
        if (!along && !tcc_is_below(at[d], t->dims[d])) {
            tcc_value *end = tcc_low_extent(low, t->dims[d]);
            tcc_value *inside = tcc_low_cmp(low, "lt", tcc_amdgcn_scalar(l, index), end);
            p->inside = p->inside ? tcc_amdgcn_and(l, p->inside, inside) : inside;
        }
    }
    p->descriptor = tcc_amdgcn_descriptor(l, tensor, first, NULL);
    p->step = 1;
    const tcc_dim *last = &t->dims[t->rank ? t->rank - 1 : 0];
    bool whole = wide && column && (last->name || last->size % wide == 0);
    int64_t step = wide < l->by.per_lane ? wide : l->by.per_lane;
    if (whole && tcc_is_multiple(column, step, NULL)) {
        p->step = step;
        tcc_low_require_groups(low, tensor, wide * bits / 8);
    }
    return true;
}

/* The offset of element x of the lane in block (m, n): outside of every buffer where it is outside the
 * tensor. Where the tensor has no index along the tile's rows or columns, all of them have one place in it:
 * `first` takes the tile's first element alone there. */
static tcc_value *offset_of(tcc_amdgcn_lowering *l, const place *p, int64_t m, int64_t n, int64_t x,
                            bool first)
{
    tcc_lowering *low = &l->low;
    const tcc_spot *at = spot(l);
    tcc_value *zero = tcc_low_c32(low, 0), *offset = NULL, *inside = p->inside;
    tcc_value *const own[2] = {at->row, at->col};
    const int64_t block[2] = {m, n}, element[2] = {0, x};
    for (int d = 0; d < 2; d++) {
        tcc_value *index = p->extent_1[d] ? zero : own[d];
        index = tcc_low_add(low, index,
                            block[d] * l->by.waves[d] * TCC_BLOCK + element[d] + p->add[d]);
        tcc_value *bytes = tcc_amdgcn_mul(l, index, p->stride[d]);
        offset = offset ? tcc_amdgcn_add(l, offset, bytes) : bytes;
        tcc_value *in = tcc_low_cmp(low, "lt", index, p->room[d]);
        inside = inside ? tcc_amdgcn_and(l, inside, in) : in;
    }
    for (int d = 0; first && d < 2; d++)
        if (!p->has[d] || p->extent_1[d])
            inside = tcc_amdgcn_and(l, inside, tcc_low_cmp(low, "eq", own[d], zero));
    return tcc_amdgcn_offset(l, inside, offset);
}

void tcc_amdgcn_tile_load(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = op->results[0].type, *each;
    place p = {.step = 1};
    if (t->layout == TCC_LAYOUT_units) {
        tcc_amdgcn_copy(l, op);
        return;
    }
    if (t->layout || tcc_attr_find(&op->attrs, "early")) {
        TCC_LOW_REFUSE(low, op, "tile.load in this layout, or from before the tensor");
        return;
    }
    size_t n = tcc_amdgcn_held(l, op, t, &each);
    if (!n || !is_ordered(l, op, op->operands[0]) ||
        !plan_place(l, &p, op, op->operands[0], op->operands + 1, t))
        return;
    tcc_value **values = room(l, n), *zero = tcc_low_c32(low, 0);
    int64_t all = tcc_type_count(each), step = all == 1 ? 1 : p.step;
    for (int64_t i = 0; i < blocks_of(l, t, 0); i++)
        for (int64_t j = 0; j < blocks_of(l, t, 1); j++) {
            tcc_value *parts[MAX_PER_LANE];
            size_t k = 0;
            for (int64_t x = 0; x < all; x += step)
                parts[k++] = TCC_EMIT(&low->b, amdgcn_buffer_load, tcc_low_vec(low, t->elem, step),
                                      p.descriptor, offset_of(l, &p, i, j, x, false), zero);
            values[value_at(l, t, i, j)] =
                k == 1 ? parts[0] : tcc_low_pack(low, t->elem, k, parts, all);
        }
    tcc_amdgcn_set(l, &op->results[0], n, values);
}

void tcc_amdgcn_tile_store(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_tile_store_operands *o = TCC_VIEW(tile_store, op);
    const tcc_type *t = o->a->type, *each;
    tcc_scalar elem = o->tensor->type->elem;
    place p = {.step = 1};
    if (t->layout || !strcmp(tcc_attr_str(&op->attrs, "copy", ""), "tma")) {
        TCC_LOW_REFUSE(low, op, "tile.store in this layout, or by a copy engine");
        return;
    }
    if (!tcc_amdgcn_held(l, op, t, &each) || !is_ordered(l, op, o->tensor) ||
        !plan_place(l, &p, op, o->tensor, op->operands + 2, t))
        return;
    int64_t all = p.has[1] ? tcc_type_count(each) : 1, step = all == 1 ? 1 : p.step;
    tcc_value *zero = tcc_low_c32(low, 0);
    for (int64_t i = 0; i < (p.has[0] ? blocks_of(l, t, 0) : 1); i++)
        for (int64_t j = 0; j < (p.has[1] ? blocks_of(l, t, 1) : 1); j++) {
            tcc_value *v = block_of(l, o->a, i, j);
            v = tcc_low_cast(low, tcc_low_vec(low, elem, tcc_type_count(each)), v);
            for (int64_t x = 0; x < all; x += step) {
                tcc_value *offset = offset_of(l, &p, i, j, x, true);
                TCC_EMIT_V(&low->b, amdgcn_buffer_store, p.descriptor, offset, zero,
                           tcc_low_slice(low, v, x, step));
            }
        }
}
