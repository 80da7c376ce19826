/* lower_tile: tiles in registers, by their layouts only: the position of each register of a thread,
 * and what the numbers of lanes and warps add. A thread holds its part of a tile in one or several
 * vecs; every op processes its registers in order.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "ir/assume.h"
#include "ir/machine.h"
#include "ir/moves.h"
#include "ir/reduction.h"
#include "passes/lowering.h"

/* ---- what a thread holds --------------------------------------------------------------------- */

bool tcc_low_held(tcc_lowering *l, const tcc_op *user, const tcc_type *tile, tcc_held *held)
{
    if (l->warps && tcc_layout_spread(tile, &held->spread) && held->spread.n_lanes == l->lanes &&
        held->spread.n_warps == l->warps && l->vendor->cut(l, tile, held))
        return true;
    tcc_str text = {0};
    tcc_type_print(&text, tile);
    const char *warps = l->vendor->warps; /* a plural */
    TCC_LOW_REFUSE(l, user, "%s in the registers of %lld %.*s", tcc_str_text(&text), (long long)l->warps,
                   (int)strlen(warps) - (l->warps == 1), warps);
    tcc_str_free(&text);
    return false;
}

/* How a tile is held, and how what op makes of it. */
static bool find_held(tcc_lowering *l, const tcc_op *op, tcc_held *from, tcc_held *to)
{
    return tcc_low_held(l, op, op->operands[0]->type, from) &&
           tcc_low_held(l, op, op->results[0].type, to);
}

tcc_value *tcc_low_unpacked(tcc_lowering *l, const tcc_value *tile, size_t part)
{
    tcc_value *v = tcc_low_parts(l, tile)->values[part];
    int64_t bits = tcc_scalar_bits(tile->type->elem);
    if (v->type->elem == tile->type->elem)
        return v;
    int64_t n = tcc_type_count(v->type) * tcc_scalar_bits(v->type->elem) / bits;
    return TCC_EMIT(&l->b, vec_bitcast, tcc_low_vec(l, tile->type->elem, n), v);
}

/* A vec of a tile, of its elements. */
static tcc_value *packed(tcc_lowering *l, const tcc_held *held, tcc_value *v)
{
    return v->type->elem == held->each->elem ? v : TCC_EMIT(&l->b, vec_bitcast, held->each, v);
}

static tcc_value **room(tcc_lowering *l, int64_t n)
{
    return TCC_NEW_ARRAY(l->ctx->scratch, tcc_value *, (size_t)n);
}

void tcc_low_set_registers(tcc_lowering *l, const tcc_value *tile, const tcc_held *held,
                           tcc_value *const *v)
{
    tcc_value **parts = room(l, (int64_t)held->n);
    for (size_t i = 0; i < held->n; i++) {
        size_t n = 0;
        for (int64_t have = 0; have < held->in_one; n++)
            have += tcc_type_count(v[n]->type);
        bool whole = n == 1 && v[0]->type->kind == TCC_KIND_vec;
        parts[i] =
            packed(l, held, whole ? v[0] : tcc_low_pack(l, tile->type->elem, n, v, held->in_one));
        v += n;
    }
    tcc_low_set(l, tile, held->n, parts);
}

/* ---- elementwise ops ------------------------------------------------------------------------- */

static bool is_zero(const tcc_op *op)
{
    if (op->code != TCC_OP_arith_const)
        return false;
    const tcc_attr value = tcc_attr_find(&op->attrs, "value")->value;
    return value.kind == TCC_ATTR_INT ? !value.i : value.f == 0 && !signbit(value.f);
}

/* The most that digits add along a dimension. */
static int64_t most_of(const tcc_digits *digits, int dim)
{
    int64_t most = 0;
    for (unsigned i = 0; i < digits->n; i++)
        most += (digits->of[i].n - 1) * digits->of[i].add[dim];
    return most;
}

/* Whether v is x & c, and so from 0 to c. */
static bool is_rest(const tcc_value *v, int64_t *c)
{
    return v->def && v->def->code == TCC_OP_arith_and && tcc_value_is_int(v->def->operands[1], c) && *c >= 0;
}

/* What a tile repeats everywhere. */
static const tcc_value *repeated(const tcc_value *v)
{
    return v->def && v->def->code == TCC_OP_tile_broadcast ? v->def->operands[0] : v;
}

/* The extent that v is, or that it is as large as at least; false: neither. */
static bool is_of_extent(const tcc_value *v, tcc_dim *extent)
{
    int64_t most;
    if (v->def && v->def->code == TCC_OP_arith_add && is_rest(v->def->operands[1], &most))
        v = v->def->operands[0];
    *extent = (tcc_dim){0};
    if (v->def && v->def->code == TCC_OP_tensor_dim)
        extent->name = tcc_attr_str(&v->def->attrs, "name", NULL);
    return extent->name || tcc_value_is_int(v, &extent->size);
}

bool tcc_low_is_below(tcc_lowering *l, const tcc_spread *spread, int dim, int64_t place, tcc_dim extent)
{
    int64_t most = place + most_of(&spread->lanes, dim) + most_of(&spread->warps, dim);
    if (!tcc_assumes_min(l->f, extent, most + 1))
        return false;
    tcc_low_require_min(l, extent, most + 1);
    return true;
}

/* Whether op, a comparison of places in a tile, holds for a register at any launch of the variant. */
static bool is_sure(tcc_lowering *l, const tcc_op *op, const tcc_held *held, int64_t number)
{
    const tcc_op *index = op->operands[0]->def;
    const tcc_value *with = repeated(op->operands[1]);
    int along = (int)tcc_attr_int(&index->attrs, "dim", 0);
    int64_t place = tcc_digits_place(&held->spread.registers, number, along), most;
    tcc_dim extent;
    if (tcc_attr_is(&op->attrs, "pred", "ge"))
        return is_rest(with, &most) && place >= most;
    return tcc_attr_is(&op->attrs, "pred", "lt") && is_of_extent(with, &extent) &&
           tcc_low_is_below(l, &held->spread, along, place, extent);
}

/* A comparison of places in a tile, part i of it; NULL: op is another. */
static tcc_value *build_comparison(tcc_lowering *l, const tcc_op *op, const tcc_held *held, tcc_value *const *operands,
                                   size_t i)
{
    int64_t first = (int64_t)i * held->in_one, run;
    bool compares = op->code == TCC_OP_arith_cmp && op->operands[0]->def && op->operands[0]->def->code == TCC_OP_tile_index;
    tcc_value **parts = compares ? room(l, held->in_one) : NULL;
    size_t n = 0;
    for (int64_t at = 0; compares && at < held->in_one; at += run) {
        bool sure = is_sure(l, op, held, first + at);
        for (run = 1; at + run < held->in_one && is_sure(l, op, held, first + at + run) == sure;)
            run++;
        tcc_value *of[2];
        for (int o = 0; o < 2; o++)
            of[o] = tcc_low_slice(l, operands[o], at, run);
        parts[n++] = sure ? tcc_build_int(&l->b, tcc_low_vec(l, TCC_i1, run), 1) : tcc_low_elementwise(l, op, of, run);
    }
    return n == 1 ? parts[0] : n ? tcc_low_pack(l, TCC_i1, n, parts, held->in_one) : NULL;
}

void tcc_low_tile_op(tcc_lowering *l, tcc_op *op)
{
    tcc_held held;
    if (!tcc_low_held(l, op, op->results[0].type, &held))
        return;
    bool words = held.each->elem != op->results[0].type->elem && is_zero(op);
    tcc_value **parts = room(l, (int64_t)held.n), *operands[3];
    for (size_t i = 0; i < held.n; i++) {
        for (unsigned o = 0; o < op->n_operands; o++)
            operands[o] = tcc_low_unpacked(l, op->operands[o], i);
        parts[i] = words ? tcc_build_int(&l->b, held.each, 0) : build_comparison(l, op, &held, operands, i);
        if (!parts[i])
            parts[i] = packed(l, &held, tcc_low_elementwise(l, op, operands, held.in_one));
    }
    tcc_low_set(l, &op->results[0], held.n, parts);
}

/* ---- registers of one thread ----------------------------------------------------------------- */

/* A vec of these registers of a tile. */
static tcc_value *gather(tcc_lowering *l, const tcc_value *tile, const tcc_held *from,
                         const tcc_held *to, const int64_t *source)
{
    tcc_value **parts = room(l, to->in_one), *v = NULL;
    int64_t run, part = -1;
    size_t n = 0;
    bool same = to->in_one > 1;
    for (int64_t i = 1; i < to->in_one; i++)
        same &= source[i] == source[0];
    for (int64_t i = 0; i < to->in_one; i += run) {
        for (run = 1; i + run < to->in_one && source[i + run] == source[i] + run &&
                      source[i + run] % from->in_one;)
            run++;
        if (run == from->in_one && run == to->in_one && from->each == to->each)
            return tcc_low_parts(l, tile)->values[source[i] / from->in_one];
        if (source[i] / from->in_one != part)
            v = tcc_low_unpacked(l, tile, (size_t)(part = source[i] / from->in_one));
        bool one = run == 1 && to->in_one > 1;
        int64_t first = source[i] % from->in_one;
        if (!n || !same)
            parts[n++] = one ? tcc_low_extract(l, v, first) : tcc_low_slice(l, v, first, run);
    }
    const tcc_type *vec = tcc_low_vec(l, tile->type->elem, to->in_one);
    if (same)
        return packed(l, to, TCC_EMIT(&l->b, vec_splat, vec, parts[0]));
    return packed(l, to,
                  n == 1 ? parts[0] : tcc_low_pack(l, tile->type->elem, n, parts, to->in_one));
}

/* ---- from lane to lane ----------------------------------------------------------------------- */

/* The lane from which each takes it: the exclusive or of the contributions of the bits of its own
 * number. */
static tcc_value *source_lane(tcc_lowering *l, const tcc_lane_sources *s)
{
    tcc_value *r = tcc_low_c32(l, s->lane[0]);
    for (unsigned b = 0; 1 << b < l->lanes; b++)
        if (s->lane[1 << b] != s->lane[0]) {
            tcc_value *bit = tcc_low_rem(l, tcc_low_div(l, l->vendor->lane(l), 1 << b), 2);
            tcc_value *adds = tcc_low_mul(l, bit, s->lane[1 << b] ^ s->lane[0]);
            r = tcc_low_bin(l, TCC_OP_arith_xor, r, adds);
        }
    return r;
}

/* Each register that some lane takes is sent by itself; then every lane chooses its own. */
static tcc_value *exchange(tcc_lowering *l, const tcc_value *tile, const tcc_held *from,
                           const tcc_lane_sources *s, tcc_value *lane)
{
    tcc_value *r = NULL;
    uint32_t done = 0;
    for (int64_t i = 0; i < l->lanes; i++) {
        uint32_t takers = 0;
        for (int64_t k = 0; k < l->lanes; k++)
            takers |= s->number[k] == s->number[i] ? 1u << k : 0;
        if (done & takers)
            continue;
        done |= takers;
        tcc_value *v = tcc_low_unpacked(l, tile, (size_t)(s->number[i] / from->in_one));
        tcc_value *sent =
            l->vendor->from_lane(l, tcc_low_extract(l, v, s->number[i] % from->in_one), lane);
        if (!r) {
            r = sent;
            continue;
        }
        tcc_value *mask = tcc_low_c32(l, (int32_t)takers);
        tcc_value *bit = tcc_low_bin(l, TCC_OP_arith_shr, mask, l->vendor->lane(l));
        bit = tcc_low_bin_const(l, TCC_OP_arith_and, bit, 1);
        tcc_value *takes = tcc_low_cmp(l, "ne", bit, tcc_low_c32(l, 0));
        r = TCC_EMIT(&l->b, arith_select, r->type, takes, sent, r);
    }
    return r;
}

/* Every lane takes what it needs from one of its warp; false where that does not do. */
static bool shuffle(tcc_lowering *l, const tcc_op *op, const tcc_held *from, const tcc_held *to)
{
    const tcc_value *tile = op->operands[0];
    tcc_value **parts = room(l, to->spread.n_registers);
    if (op->code != TCC_OP_tile_convert || !l->vendor->from_lane ||
        tcc_scalar_bits(tile->type->elem) != 32)
        return false;
    for (int64_t i = 0; i < to->spread.n_registers; i++) {
        tcc_lane_sources s;
        if (!tcc_moves_in_warp(&from->spread, &to->spread, i, &s))
            return false;
        parts[i] = exchange(l, tile, from, &s, source_lane(l, &s));
    }
    tcc_low_set_registers(l, &op->results[0], to, parts);
    return true;
}

enum { WORD_BITS = 32 };

/* The words of a tile, of which a vec has `each`. */
static tcc_value **words_of(tcc_lowering *l, const tcc_value *tile, int64_t n, int64_t each)
{
    tcc_value **words = room(l, n), *part = NULL;
    for (int64_t i = 0; i < n; i++) {
        if (i % each == 0) {
            part = tcc_low_parts(l, tile)->values[i / each];
            if (part->type->elem != TCC_i32)
                part = TCC_EMIT(&l->b, vec_bitcast, tcc_low_vec(l, TCC_i32, each), part);
        }
        words[i] = tcc_low_extract(l, part, i % each);
    }
    return words;
}

/* Of each two words that are `step` apart, lanes whose number has the bit give away the first, the others the
 * second. */
static void swap(tcc_lowering *l, tcc_value **words, int64_t n, unsigned lane_bit, int64_t step)
{
    tcc_value *bit = tcc_low_rem(l, tcc_low_div(l, l->vendor->lane(l), 1 << lane_bit), 2);
    tcc_value *has = tcc_low_cmp(l, "ne", bit, tcc_low_c32(l, 0));
    for (int64_t i = 0; i < n; i++) {
        tcc_value **a = &words[i], **b = &words[i | step];
        if (a == b)
            continue;
        tcc_value *got = TCC_EMIT(&l->b, arith_select, l->i32, has, *a, *b);
        got = l->vendor->from_xor(l, got, 1 << lane_bit);
        *a = TCC_EMIT(&l->b, arith_select, l->i32, has, got, *a);
        *b = TCC_EMIT(&l->b, arith_select, l->i32, has, *b, got);
    }
}

/* Every lane trades words with others, and then has all; false where that does not do. */
static bool swap_lanes(tcc_lowering *l, const tcc_op *op, const tcc_held *from, const tcc_held *to)
{
    const tcc_value *tile = op->operands[0];
    unsigned bits = tcc_scalar_bits(tile->type->elem);
    tcc_lane_swaps swaps;
    const int64_t *source = NULL;
    if (op->code == TCC_OP_tile_convert && l->vendor->from_lane)
        source = tcc_swaps_in_warp(l->ctx->scratch, &from->spread, &to->spread, bits, &swaps);
    int64_t in_word = source ? WORD_BITS / bits : 1, n = from->spread.n_registers / in_word;
    if (!source || from->in_one % in_word || to->in_one % in_word)
        return false;
    tcc_value **words = words_of(l, tile, n, from->in_one / in_word);
    for (unsigned i = 0; i < swaps.n; i++)
        swap(l, words, n, swaps.of[i].lane_bit, (1 << swaps.of[i].register_bit) / in_word);
    tcc_value **parts = room(l, (int64_t)to->n), **own = room(l, to->in_one / in_word);
    for (size_t i = 0; i < to->n; i++) {
        for (int64_t w = 0; w < to->in_one / in_word; w++)
            own[w] = words[source[(int64_t)i * to->in_one + w * in_word] / in_word];
        tcc_value *v = tcc_low_pack(l, TCC_i32, (size_t)(to->in_one / in_word), own, to->in_one / in_word);
        parts[i] = v->type == to->each ? v : TCC_EMIT(&l->b, vec_bitcast, to->each, v);
    }
    tcc_low_set(l, &op->results[0], to->n, parts);
    return true;
}

/* ---- ops that move elements ------------------------------------------------------------------ */

void tcc_low_regroup(tcc_lowering *l, tcc_op *op)
{
    const char *by = op->code == TCC_OP_tile_slice    ? "at"
                     : op->code == TCC_OP_tile_rotate ? "by"
                                                      : NULL;
    const tcc_attr *items = by ? tcc_attr_list(&op->attrs, by).list.items : NULL;
    const int64_t at[2] = {items ? items[0].i : 0, items ? items[1].i : 0};
    tcc_held from, to;
    if (!find_held(l, op, &from, &to))
        return;
    const int64_t *source = tcc_moves_in_thread(l->ctx->scratch, &from.spread, &to.spread, at);
    tcc_value **parts = room(l, (int64_t)to.n);
    for (size_t i = 0; source && i < to.n; i++)
        parts[i] = gather(l, op->operands[0], &from, &to, source + (int64_t)i * to.in_one);
    if (source)
        tcc_low_set(l, &op->results[0], to.n, parts);
    else if (!swap_lanes(l, op, &from, &to) && !shuffle(l, op, &from, &to))
        TCC_LOW_REFUSE(l, op, "%s from thread to thread", tcc_op_info_get(op->code)->name);
}

void tcc_low_broadcast(tcc_lowering *l, tcc_op *op)
{
    const tcc_value *a = TCC_VIEW(tile_broadcast, op)->a;
    const tcc_type *type = op->results[0].type;
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    tcc_held held;
    if (a->type->kind == TCC_KIND_scalar) {
        if (!tcc_low_held(l, op, type, &held))
            return;
        tcc_value **parts = room(l, (int64_t)held.n);
        for (size_t i = 0; i < held.n; i++)
            parts[i] = packed(l, &held,
                              TCC_EMIT(&l->b, vec_splat, tcc_low_vec(l, type->elem, held.in_one),
                                       tcc_low_scalar(l, a)));
        tcc_low_set(l, &op->results[0], held.n, parts);
    } else if (dims.list.n != 2 || dims.list.items[0].i != 0 || dims.list.items[1].i != 1) {
        TCC_LOW_REFUSE(l, op, "tile.broadcast that moves dimensions");
    } else {
        tcc_low_regroup(l, op);
    }
}

static const tcc_type *wide_of(tcc_lowering *l, tcc_scalar elem)
{
    return tcc_scalar_classify(elem) == TCC_CLASS_FLOAT ? l->f32 : l->i32;
}

/* Combines a thread's elements along dimension dim at `place` of the other one, in two chains of every
 * other element, since a single chain would always wait for its previous result. In 32 bits or more, as lanes
 * exchange them. */
static tcc_value *reduce_own(tcc_lowering *l, tcc_opcode code, const tcc_value *tile,
                             const tcc_held *held, int dim, int64_t place)
{
    tcc_value *chains[2] = {NULL, NULL};
    for (int64_t i = 0, n = 0; i < held->spread.n_registers; i++)
        if (tcc_digits_place(&held->spread.registers, i, !dim) == place) {
            tcc_value *v = tcc_low_unpacked(l, tile, (size_t)(i / held->in_one));
            tcc_value **chain = &chains[n++ % 2], *x = tcc_low_extract(l, v, i % held->in_one);
            if (tcc_scalar_bits(x->type->elem) < WORD_BITS)
                x = tcc_low_cast(l, wide_of(l, x->type->elem), x);
            *chain = *chain ? tcc_low_bin(l, code, *chain, x) : x;
        }
    return chains[1] ? tcc_low_bin(l, code, chains[0], chains[1]) : chains[0];
}

/* The value of v, of one word or two, in the lane whose number differs in the bits of the mask. */
static tcc_value *words_from_xor(tcc_lowering *l, tcc_value *v, int64_t mask)
{
    const tcc_type *type = v->type, *pair = tcc_low_vec(l, TCC_i32, 2);
    tcc_value *words[2];
    if (tcc_scalar_bits(type->elem) == WORD_BITS)
        return l->vendor->from_xor(l, v, mask);
    v = TCC_EMIT(&l->b, vec_bitcast, pair, TCC_EMIT(&l->b, vec_splat, tcc_low_vec(l, type->elem, 1), v));
    for (int i = 0; i < 2; i++)
        words[i] = l->vendor->from_xor(l, tcc_low_extract(l, v, i), mask);
    v = tcc_low_pack(l, TCC_i32, 2, words, 2);
    return tcc_low_extract(l, TCC_EMIT(&l->b, vec_bitcast, tcc_low_vec(l, type->elem, 1), v), 0);
}

/* A thread's part of a row or column is combined in its registers, then with the lanes that have
 * other parts. */
tcc_value **tcc_low_reduce_in_warp(tcc_lowering *l, const tcc_op *op, tcc_held *a, tcc_held *r)
{
    const tcc_value *tile = op->operands[0];
    int dim = (int)tcc_attr_int(&op->attrs, "dim", 0);
    tcc_opcode code = tcc_reduction_op(tcc_reduction_of(op));
    if (!find_held(l, op, a, r))
        return NULL;
    if (!tcc_layout_same_threads(&a->spread, &r->spread, !dim)) {
        TCC_LOW_REFUSE(l, op, "%s whose result is in other threads", tcc_op_info_get(op->code)->name);
        return NULL;
    }
    tcc_value **parts = room(l, r->spread.n_registers);
    for (int64_t i = 0; i < r->spread.n_registers; i++) {
        tcc_value *x =
            reduce_own(l, code, tile, a, dim, tcc_digits_place(&r->spread.registers, i, !dim));
        for (int64_t lane = 1; lane < l->lanes; lane *= 2)
            if (tcc_digits_place(&a->spread.lanes, lane, dim))
                x = tcc_low_bin(l, code, x, words_from_xor(l, x, lane));
        parts[i] = tcc_low_cast(l, tcc_type_scalar(l->ir, tile->type->elem), x);
    }
    return parts;
}

void tcc_low_reduce(tcc_lowering *l, tcc_op *op)
{
    const tcc_type *from = op->operands[0]->type;
    tcc_held a, r;
    if (from == op->results[0].type) {
        if (find_held(l, op, &a, &r))
            tcc_low_set(l, &op->results[0], r.n, tcc_low_parts(l, op->operands[0])->values);
        return;
    }
    if (!tcc_can_reduce_in_warp(from, (int)tcc_attr_int(&op->attrs, "dim", 0))) {
        TCC_LOW_REFUSE(l, op, "tile.reduce over several %s", l->vendor->warps);
        return;
    }
    tcc_value **parts = tcc_low_reduce_in_warp(l, op, &a, &r);
    if (parts)
        tcc_low_set_registers(l, &op->results[0], &r, parts);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Digit i of a number. */
static tcc_value *digit_of(tcc_lowering *l, const tcc_digits *digits, tcc_value *number, unsigned i)
{
    int64_t weight = 1;
    for (unsigned k = 0; k < i; k++)
        weight *= digits->of[k].n;
    number = tcc_low_div(l, number, weight);
    return i + 1 < digits->n ? tcc_low_rem(l, number, digits->of[i].n) : number;
}

tcc_value *tcc_low_digits(tcc_lowering *l, const tcc_digits *digits, tcc_value *number, int dim)
{
    tcc_value *sum = NULL;
    for (unsigned i = 0; i < digits->n; i++)
        if (digits->of[i].add[dim]) {
            tcc_value *adds = digit_of(l, digits, number, i);
            adds = tcc_low_mul(l, adds, digits->of[i].add[dim]);
            sum = sum ? tcc_low_bin(l, TCC_OP_arith_add, sum, adds) : adds;
        }
    return sum ? sum : tcc_low_c32(l, 0);
}

tcc_value *tcc_low_own(tcc_lowering *l, const tcc_spread *s, int dim)
{
    tcc_value *of_warp = tcc_low_digits(l, &s->warps, l->vendor->warp(l), dim);
    return tcc_low_bin(l, TCC_OP_arith_add, of_warp,
                       tcc_low_digits(l, &s->lanes, l->vendor->lane(l), dim));
}

/* Whether all that digits add along a dimension are multiples. */
static bool add_multiples(const tcc_digits *digits, int dim, int64_t of)
{
    bool all = true;
    for (unsigned i = 0; i < digits->n; i++)
        all &= digits->of[i].add[dim] % of == 0;
    return all;
}

void tcc_low_index(tcc_lowering *l, tcc_op *op)
{
    int dim = (int)tcc_attr_int(&op->attrs, "dim", 0);
    int64_t unit = tcc_attr_int(&op->attrs, "unit", 1);
    tcc_held held;
    if (!tcc_low_held(l, op, op->results[0].type, &held))
        return;
    tcc_value **parts = room(l, held.spread.n_registers), *own = tcc_low_own(l, &held.spread, dim);
    bool whole = add_multiples(&held.spread.lanes, dim, unit) && add_multiples(&held.spread.warps, dim, unit);
    for (int64_t i = 0; i < held.spread.n_registers; i++) {
        int64_t place = tcc_digits_place(&held.spread.registers, i, dim);
        parts[i] = tcc_low_add(l, own, whole ? place / unit * unit : place);
        if (!whole)
            parts[i] = tcc_low_mul(l, tcc_low_div(l, parts[i], unit), unit);
    }
    tcc_low_set_registers(l, &op->results[0], &held, parts);
}

static tcc_value *are_first(tcc_lowering *l, const tcc_digits *digits, tcc_value *number)
{
    tcc_value *all = tcc_build_int(&l->b, l->i1, 1), *zero = tcc_low_c32(l, 0);
    for (unsigned i = 0; i < digits->n; i++)
        if (!digits->of[i].add[0] && !digits->of[i].add[1]) {
            tcc_value *is_zero = tcc_low_cmp(l, "eq", digit_of(l, digits, number, i), zero);
            all = tcc_low_bin(l, TCC_OP_arith_and, all, is_zero);
        }
    return all;
}

tcc_value *tcc_low_holds_first(tcc_lowering *l, const tcc_spread *lanes, const tcc_spread *warps)
{
    tcc_value *warp = are_first(l, &warps->warps, l->vendor->warp(l));
    tcc_value *lane = are_first(l, &lanes->lanes, l->vendor->lane(l));
    return tcc_low_bin(l, TCC_OP_arith_and, warp, lane);
}

/* ---- loads and stores ------------------------------------------------------------------------ */

tcc_value *tcc_low_split(tcc_value *v, int64_t *constant)
{
    *constant = 0;
    if (v->def && v->def->code == TCC_OP_arith_add &&
        tcc_value_is_int(v->def->operands[1], constant))
        return v->def->operands[0];
    return v;
}

/* Neighbours in a column, from a register on: each is a register of its own. */
static void turn(tcc_lowering *l, const tcc_access *a, int64_t number, tcc_value **values)
{
    tcc_value *v = l->vendor->load(l, a, number);
    for (int64_t e = 0; e < a->step; e++)
        values[number + e * a->apart] = tcc_low_extract(l, v, e);
}

void tcc_low_load(tcc_lowering *l, tcc_op *op)
{
    const tcc_value *tile = &op->results[0];
    tcc_access a = {.op = op, .tensor = op->operands[0], .at = op->operands + 1, .step = 1};
    if (tcc_attr_find(&op->attrs, "early")) {
        TCC_LOW_REFUSE(l, op, "tile.load from before the tensor");
        return;
    }
    if (!tcc_low_held(l, op, tile->type, &a.held) || !tcc_low_is_ordered(l, op) || !l->vendor->plan(l, &a))
        return;
    tcc_value **values = room(l, a.held.spread.n_registers);
    size_t n = 0;
    for (int64_t i = 0; i < a.held.spread.n_registers && !a.across; i += a.step)
        values[n++] = l->vendor->load(l, &a, i);
    for (int64_t i = 0; i < a.held.spread.n_registers && a.across; i++)
        if (i / a.apart % a.step == 0)
            turn(l, &a, i, values);
    tcc_low_set_registers(l, tile, &a.held, values);
}

/* Only one of the threads that hold the same element stores it; and if the tensor has no index along the
 * tile's rows or columns, only the tile's first element in that direction is in it. */
static tcc_value *who_stores(tcc_lowering *l, const tcc_access *a)
{
    const tcc_spread *s = &a->held.spread;
    tcc_value *who = tcc_low_holds_first(l, s, s);
    for (int d = 0; d < 2; d++)
        if (!a->has[d] && s->extent[d] > 1)
            who = tcc_low_bin(l, TCC_OP_arith_and, who,
                              tcc_low_cmp(l, "eq", a->own[d], tcc_low_c32(l, 0)));
    return who;
}

static bool is_in_tensor(const tcc_access *a, int64_t number)
{
    bool is_in = true;
    for (int d = 0; d < 2; d++)
        is_in &= a->has[d] || tcc_digits_place(&a->held.spread.registers, number, d) == 0;
    return is_in;
}

void tcc_low_store(tcc_lowering *l, tcc_op *op)
{
    const tcc_tile_store_operands *o = TCC_VIEW(tile_store, op);
    tcc_access a = {.op = op, .tensor = o->tensor, .at = op->operands + 2, .step = 1};
    if (tcc_attr_is(&op->attrs, "copy", "tma")) {
        TCC_LOW_REFUSE(l, op, "tile.store by the copy engine from registers");
        return;
    }
    if (!tcc_low_held(l, op, o->a->type, &a.held) || !tcc_low_is_ordered(l, op) || !l->vendor->plan(l, &a))
        return;
    a.inside = tcc_low_bin(l, TCC_OP_arith_and, a.inside, who_stores(l, &a));
    const tcc_type *vec = tcc_low_vec(l, o->tensor->type->elem, a.held.in_one);
    tcc_value *v = NULL;
    for (int64_t i = 0, part = -1; i < a.held.spread.n_registers; i += a.step) {
        if (!is_in_tensor(&a, i))
            continue;
        if (i / a.held.in_one != part)
            v = tcc_low_cast(l, vec, tcc_low_unpacked(l, o->a, (size_t)(part = i / a.held.in_one)));
        l->vendor->store(l, &a, i, v);
    }
}
