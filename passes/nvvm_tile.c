/* nvvm_tile: tiles in registers: how warps hold them, loads and stores.
 *
 * What a thread holds of a tile its layout says (ir/layout.h); its registers are one vec, and every op
 * works on them in order.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

enum { WIDE = 16, WORD_BYTES = 4 }; /* of the longest access of a thread, of a register */
enum { MOST_BEFORE = 16 }; /* elements of a tile before its row, and one more */
enum { LEAST_WORDS = 8 }; /* of a row that lanes store together: of fewer, too many would be at ends */

/* ---- what a thread holds ------------------------------------------------------------------- */

const tcc_type *tcc_hold_by_warpgroups(tcc_ir *ir, const tcc_type *t, const tcc_op *role, tcc_hold_as as)
{
    const tcc_fragment_id fragment = as == TCC_AS_A ? TCC_FRAGMENT_wgmma_a : TCC_FRAGMENT_wgmma_d;
    const tcc_fragment *f = &tcc_fragments[fragment];
    int64_t warps = tcc_attr_int(&role->attrs, "warps", 0);
    int64_t warpgroups = warps / TCC_WARPGROUP_WARPS, rows = f->rows * warpgroups;
    if (t->rank != 2 || !warpgroups || warps % TCC_WARPGROUP_WARPS)
        return NULL;
    int64_t m = t->dims[0].size, n = t->dims[1].size;
    if ((m != 1 && m % rows) || (n != 1 && n % f->cols))
        return NULL;
    return tcc_layout_repeated(ir, t, fragment, 3,
                               (tcc_repeat[]){{1, TCC_IN_REGISTERS, n / f->cols},
                                              {0, TCC_IN_WARPS, warpgroups},
                                              {0, TCC_IN_REGISTERS, m / rows}});
}

/* All registers are one vec, where a warpgroup multiplies. */
static bool cut(tcc_lowering *low, const tcc_type *tile, tcc_held *held)
{
    tcc_nvvm_lowering *l = (tcc_nvvm_lowering *)low;
    if (!tcc_target_can(l->target, TCC_CAN_wgmma)) {
        tcc_nvvm_cut_in_fragments(l, tile, held);
        return true;
    }
    held->n = 1;
    held->in_one = held->spread.n_registers;
    held->each = tcc_low_vec(low, tile->elem, held->in_one);
    return l->role.first_warp % TCC_WARPGROUP_WARPS == 0;
}

tcc_value *tcc_nvvm_warpgroup(tcc_nvvm_lowering *l)
{
    tcc_value *number = tcc_low_div(&l->low, l->warp, TCC_WARPGROUP_WARPS);
    return tcc_low_add(&l->low, number, -(l->role.first_warp / TCC_WARPGROUP_WARPS));
}

static tcc_value *warp_of(tcc_lowering *low)
{
    const tcc_nvvm_lowering *l = (tcc_nvvm_lowering *)low;
    return tcc_low_add(low, l->warp, -l->role.first_warp);
}

static tcc_value *lane_of(tcc_lowering *low)
{
    return tcc_low_rem(low, ((tcc_nvvm_lowering *)low)->tid, TCC_WARP_LANES);
}

static tcc_value *shuffle(tcc_lowering *low, tcc_value *v, tcc_value *lane, const char *kind)
{
    tcc_value *r = TCC_EMIT(&low->b, nvvm_shfl, v->type, v, lane);
    tcc_attr_set_str(low->ir, &r->def->attrs, "kind", kind);
    return r;
}

static tcc_value *from_lane(tcc_lowering *low, tcc_value *v, tcc_value *lane)
{
    return shuffle(low, v, lane, "idx");
}

static tcc_value *from_xor(tcc_lowering *low, tcc_value *v, int64_t mask)
{
    return shuffle(low, v, tcc_low_c32(low, mask), "bfly");
}

static void lower_block(tcc_lowering *low, tcc_block *block)
{
    tcc_nvvm_block((tcc_nvvm_lowering *)low, block);
}

/* ---- shared memory ------------------------------------------------------------------------- */

static tcc_value *shared(tcc_lowering *low)
{
    return ((tcc_nvvm_lowering *)low)->smem;
}

static tcc_value *load_shared(tcc_lowering *low, tcc_value *address, int64_t offset, const tcc_type *vec)
{
    return TCC_EMIT(&low->b, nvvm_ld_shared, vec, tcc_low_add(low, address, offset));
}

static void store_shared(tcc_lowering *low, tcc_value *address, int64_t offset, tcc_value *v)
{
    TCC_EMIT_V(&low->b, nvvm_st_shared, tcc_low_add(low, address, offset), v);
}

static void meet(tcc_lowering *low, const tcc_op *op)
{
    tcc_nvvm_meet((tcc_nvvm_lowering *)low, op);
}

/* ---- places in memory --------------------------------------------------------------------- */

/* Neighbours in a row that a thread has in one vec. */
static int64_t neighbours_in_vec(const tcc_held *held)
{
    int64_t n = tcc_layout_neighbours(&held->spread);
    while (held->in_one % n)
        n--;
    return n;
}

/* Neighbours in a row that may be one access, as many as a thread has. */
static int64_t neighbours_at_once(const tcc_access *a)
{
    int64_t bits = tcc_scalar_bits(a->tensor->type->elem), have = neighbours_in_vec(&a->held);
    if (bits < 8) /* which may be the second half of one byte and the first of the next */
        return 1;
    int64_t wide = tcc_attr_int(&a->op->attrs, "wide", 0) * 8 / bits;
    wide = a->in_groups ? tcc_attr_int(&a->op->attrs, "groups", 1) : wide;
    int64_t may = wide > 1 ? wide : tcc_attr_int(&a->op->attrs, "pairs", 0) ? 2 : 1, step = 1;
    while (2 * step <= may && have % (2 * step) == 0)
        step *= 2;
    return step;
}

/* The same of words that are put together. */
static int64_t neighbours_of_words(const tcc_access *a)
{
    int64_t bytes = tcc_scalar_bits(a->tensor->type->elem) / 8, step = WIDE / (bytes ? bytes : WIDE);
    int64_t have = neighbours_in_vec(&a->held);
    while (have % step)
        step /= 2;
    bool can = bytes && bytes < WORD_BYTES && step * bytes >= WORD_BYTES;
    return can && tcc_attr_find(&a->op->attrs, "words") ? step : 1;
}

/* Whether registers `apart` from each other are `step` neighbours in a column, the first of them at a multiple. */
static bool are_columns(const tcc_spread *held, int64_t step, int64_t apart)
{
    const tcc_digits *registers = &held->registers, *others[] = {&held->lanes, &held->warps};
    int64_t n = held->n_registers;
    bool all = n % (step * apart) == 0;
    for (int o = 0; o < 2; o++)
        for (unsigned d = 0; d < others[o]->n; d++)
            all &= others[o]->of[d].add[0] % step == 0;
    for (int64_t i = 0; i < n && all; i++)
        all = tcc_digits_place(registers, i, 0) ==
                  tcc_digits_place(registers, i - i / apart % step * apart, 0) + i / apart % step &&
              tcc_digits_place(registers, i, 1) == tcc_digits_place(registers, i - i / apart % step * apart, 1) &&
              (i / apart % step || tcc_digits_place(registers, i, 0) % step == 0);
    return all;
}

/* Lets an access take as many neighbours in a column as a thread has, where rows of the tensor run along these and begin
 * at multiples. */
static void plan_columns(tcc_lowering *low, tcc_access *a)
{
    const tcc_type *t = a->tensor->type;
    int64_t bits = tcc_scalar_bits(t->elem);
    int64_t step = tcc_attr_int(&a->op->attrs, "wide", 0) * 8 / bits, apart = tcc_layout_neighbours(&a->held.spread);
    const tcc_dim *last = &t->dims[t->rank - 1];
    step = step > apart ? apart : step;
    if (step < 2 || a->op->code != TCC_OP_tile_load || !are_columns(&a->held.spread, step, apart) ||
        !(t->row_bytes || last->name || last->size % step == 0) ||
        !tcc_low_is_multiple(low, a->at[t->rank - 1], step) || (t->strides && tcc_low_ends_in_group(low, t, step)))
        return;
    a->across = true;
    a->step = step;
    a->apart = apart;
    tcc_low_require_groups(low, a->tensor, step * bits / 8);
}

/* So many lanes from each one on have neighbouring words of a row. */
static int64_t lanes_in_row(const tcc_spread *held, int64_t in_word)
{
    int64_t n = 1;
    while (n < held->n_lanes && tcc_digits_place(&held->lanes, n, 1) == n * in_word &&
           !tcc_digits_place(&held->lanes, n, 0))
        n *= 2;
    return n;
}

/* Element (r, c) of the tile is at base + origin + (r + add[0]) * stride[0] + (c + add[1]) * stride[1], and is
 * inside the tensor while r + add[0] < room[0] and c + add[1] < room[1]. The thread's own column is in
 * origin and room already. */
static bool plan(tcc_lowering *low, tcc_access *a)
{
    const tcc_type *t = a->tensor->type;
    const tcc_spread *held = &a->held.spread;
    tcc_attr dims = tcc_attr_list(&a->op->attrs, "dims");
    a->base = tcc_low_pointer(low, a->tensor);
    a->own[0] = tcc_low_own(low, held, 0);
    a->own[1] = tcc_low_own(low, held, 1);
    bool begins_before = tcc_attr_find(&a->op->attrs, "groups");
    a->in_groups = begins_before && !tcc_attr_find(&a->op->attrs, "words");
    int64_t step = neighbours_at_once(a), of_words = neighbours_of_words(a);
    bool whole = t->rank && (t->row_bytes || t->dims[t->rank - 1].name || t->dims[t->rank - 1].size % step == 0);
    whole &= !t->strides || !tcc_low_ends_in_group(low, t, step); /* what follows a row is the caller's */
    bool runs_across = false;
    a->origin = tcc_build_int(&low->b, low->i64, 0);
    a->inside = tcc_build_int(&low->b, low->i1, 1);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one, known = tcc_is_below(a->at[d], t->dims[d]);
        tcc_value *stride = tcc_low_stride(low, t, (int)d, &one);
        tcc_value *first = tcc_low_scalar(low, a->at[d]);
        for (int x = 0; x < 2; x++)
            if (dims.list.items[x].i == (int64_t)d) {
                known = a->has[x] = true; /* its room says it */
                first = tcc_low_scalar(low, tcc_low_split(a->at[d], &a->add[x]));
                a->stride[x] = stride;
                a->room[x] = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_extent(low, t->dims[d]),
                                         first);
                a->contiguous |= x == 1 && one;
                runs_across |= x == 0 && one && d + 1 == t->rank;
                if (x == 1 && begins_before)
                    a->begin = tcc_low_bin(low, TCC_OP_arith_add, first, a->own[1]);
                whole &= x != 1 || tcc_low_is_multiple(low, a->at[d], step);
            }
        a->origin = tcc_low_bin(low, TCC_OP_arith_add, a->origin, tcc_low_scaled(low, first, stride));
        if (!known)
            a->inside = tcc_low_bin(low, TCC_OP_arith_and, a->inside,
                                    tcc_low_cmp(low, "lt", first, tcc_low_extent(low, t->dims[d])));
    }
    for (int x = 0; x < 2; x++) /* no index along this direction: one element */
        if (!a->room[x])
            a->room[x] = tcc_low_c32(low, 1);
    if (held->extent[1] > 1) { /* count columns from the thread's own */
        a->room[1] = tcc_low_bin(low, TCC_OP_arith_sub, a->room[1], a->own[1]);
        if (a->has[1])
            a->origin = tcc_low_bin(low, TCC_OP_arith_add, a->origin,
                                    tcc_low_scaled(low, a->own[1], a->stride[1]));
    }
    if (a->op->code == TCC_OP_tile_store) {
        a->of_words = a->contiguous && step == 1 && of_words > 1 && of_words == tcc_nvvm_in_word(t->elem) &&
                      lanes_in_row(held, of_words) >= LEAST_WORDS;
        a->step = a->of_words ? of_words : a->step;
    } else if (a->contiguous && step == 1 && of_words > 1) {
        a->step = of_words;
        a->of_words = true;
        tcc_low_require_address(low, a->tensor, WORD_BYTES);
    }
    if (runs_across)
        plan_columns(low, a);
    if (a->in_groups) {
        a->step = step;
        tcc_low_require(low, 3,
                        (tcc_attr[]){tcc_low_str(low, "align"), tcc_low_str(low, a->tensor->name),
                                     tcc_low_int(step * tcc_scalar_bits(t->elem) / 8)});
    } else if (!a->of_words && a->contiguous && whole && step > 1) {
        a->step = step;
        a->ends_in_step = tcc_low_ends_in_group(low, t, step);
        tcc_low_require_groups(low, a->tensor, step * tcc_scalar_bits(t->elem) / 8);
    }
    return true;
}

typedef struct spot {
    tcc_value *offset, *inside;
    int64_t disp;
} spot;

/* For a register. */
static spot spot_of(tcc_lowering *low, const tcc_access *a, int64_t number)
{
    const tcc_spread *held = &a->held.spread;
    spot s = {a->origin, a->inside, 0};
    if (held->extent[0] > 1 || a->has[0]) {
        int64_t place = tcc_digits_place(&held->registers, number, 0);
        tcc_value *row = tcc_low_add(low, a->own[0], a->add[0] + place);
        if (a->has[0])
            s.offset = tcc_low_bin(low, TCC_OP_arith_add, s.offset,
                                   tcc_low_scaled(low, row, a->stride[0]));
        s.inside = tcc_low_bin(low, TCC_OP_arith_and, s.inside,
                               tcc_low_cmp(low, "lt", row, a->room[0]));
    }
    if (held->extent[1] > 1 || a->has[1]) {
        int64_t col = a->add[1] + tcc_digits_place(&held->registers, number, 1);
        tcc_value *c = tcc_low_c32(low, col);
        if (!a->contiguous && a->has[1])
            s.offset = tcc_low_bin(low, TCC_OP_arith_add, s.offset,
                                   tcc_low_scaled(low, c, a->stride[1]));
        else if (a->contiguous)
            s.disp = col;
        s.inside = tcc_low_bin(low, TCC_OP_arith_and, s.inside,
                               tcc_low_cmp(low, "gt", a->room[1], c));
    }
    return s;
}

static void set_access(tcc_lowering *low, tcc_op *op, const tcc_access *a, const spot *s, tcc_scalar elem)
{
    if (a->step > 1)
        tcc_attr_set_int(low->ir, &op->attrs, "align", a->step * tcc_scalar_bits(elem) / 8);
    if (s->disp)
        tcc_attr_set_int(low->ir, &op->attrs, "disp", s->disp);
}

/* Whether a place in the row, of an element behind the thread's own or of one before it, is not before the row, where a
 * tile may begin. */
static tcc_value *is_behind_begin(tcc_lowering *low, const tcc_access *a, int64_t column, tcc_value *before)
{
    tcc_value *place = a->begin && column < MOST_BEFORE ? tcc_low_add(low, a->begin, column) : NULL;
    return place ? tcc_low_cmp(low, "ge", place, before) : tcc_build_int(&low->b, low->i1, 1);
}

/* From aligned words, beginning with the one that contains the first element: a word is loaded if it contains a
 * requested element of the row. `skip` elements precede the first. */
static tcc_value *load_words(tcc_lowering *low, const tcc_access *a, const spot *s)
{
    tcc_scalar elem = a->op->results[0].type->elem;
    int64_t in_word = WORD_BYTES * 8 / tcc_scalar_bits(elem), n = a->step / in_word;
    const tcc_type *word = tcc_low_vec(low, elem, in_word), *bits = tcc_low_vec(low, TCC_i32, 1);
    tcc_value *words[WIDE / WORD_BYTES + 1], *zero = tcc_low_c32(low, 0);
    int64_t rest = s->disp % in_word;
    tcc_value *first = tcc_low_add(low, s->offset, rest);
    tcc_value *from = tcc_low_bin_const(low, TCC_OP_arith_and, first, -in_word);
    tcc_value *skip = tcc_low_bin_const(low, TCC_OP_arith_and, first, in_word - 1);
    skip = tcc_low_cast(low, low->i32, skip);
    tcc_value *reach = tcc_low_bin(low, TCC_OP_arith_add, a->room[1], skip);
    for (int64_t i = 0; i <= n; i++) {
        tcc_value *wanted = s->inside;
        if (i) {
            tcc_value *in_reach = tcc_low_cmp(low, "gt", reach, tcc_low_c32(low, s->disp + i * in_word));
            wanted = tcc_low_bin(low, TCC_OP_arith_and, wanted, in_reach);
        }
        if (i == n)
            wanted = tcc_low_bin(low, TCC_OP_arith_and, wanted, tcc_low_cmp(low, "ne", skip, zero));
        tcc_value *begun = is_behind_begin(low, a, s->disp + i * in_word, skip);
        wanted = tcc_low_bin(low, TCC_OP_arith_and, wanted, begun);
        tcc_value *v = TCC_EMIT(&low->b, nvvm_ld_global, word, a->base, from, wanted);
        tcc_attr_set_int(low->ir, &v->def->attrs, "align", WORD_BYTES);
        tcc_attr_set_int(low->ir, &v->def->attrs, "over", 1);
        if (s->disp - rest + i)
            tcc_attr_set_int(low->ir, &v->def->attrs, "disp", s->disp - rest + i * in_word);
        words[i] = tcc_low_extract(low, TCC_EMIT(&low->b, vec_bitcast, bits, v), 0);
    }
    tcc_value *by = tcc_low_mul(low, skip, tcc_scalar_bits(elem));
    for (int64_t i = 0; i < n; i++)
        words[i] = TCC_EMIT(&low->b, nvvm_shf, low->i32, words[i], words[i + 1], by);
    tcc_value *all = tcc_low_pack(low, TCC_i32, (size_t)n, words, n);
    return TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, elem, a->step), all);
}

tcc_value *tcc_nvvm_load_half(tcc_lowering *low, tcc_scalar elem, tcc_value *base, tcc_value *at, tcc_value *inside)
{
    tcc_value *even = tcc_low_bin_const(low, TCC_OP_arith_and, at, -2);
    tcc_value *byte = TCC_EMIT(&low->b, nvvm_ld_global, tcc_low_vec(low, elem, 2), base, even, inside);
    tcc_value *first = tcc_low_extract(low, byte, 0), *second = tcc_low_extract(low, byte, 1);
    tcc_value *is_first = tcc_low_cmp(low, "eq", at, even);
    return TCC_EMIT(&low->b, arith_select, first->type, is_first, first, second);
}

static tcc_value *load(tcc_lowering *low, const tcc_access *a, int64_t number)
{
    tcc_scalar elem = a->op->results[0].type->elem;
    spot s = spot_of(low, a, number);
    if (tcc_scalar_bits(elem) < 8) {
        tcc_value *half = tcc_nvvm_load_half(low, elem, a->base, tcc_low_add(low, s.offset, s.disp), s.inside);
        return tcc_low_pack(low, elem, 1, &half, 1);
    }
    if (a->of_words)
        return load_words(low, a, &s);
    tcc_value *begun = is_behind_begin(low, a, a->in_groups ? MOST_BEFORE : s.disp, tcc_low_c32(low, 0));
    tcc_value *v = TCC_EMIT(&low->b, nvvm_ld_global, tcc_low_vec(low, elem, a->step), a->base, s.offset,
                            tcc_low_bin(low, TCC_OP_arith_and, s.inside, begun));
    set_access(low, v->def, a, &s, elem);
    if (a->in_groups)
        tcc_attr_set_int(low->ir, &v->def->attrs, "over", 1);
    if (!a->ends_in_step)
        return v;
    int64_t column = a->add[1] + tcc_digits_place(&a->held.spread.registers, number, 1);
    return tcc_low_clear_padding(low, v, tcc_low_c32(low, column), a->room[1]);
}

/* A lane's word, or its last elements and the next lane's first where those are one. What is left at both ends of the
 * row, or of what lanes have of it, is stored by itself. */
static void store_word(tcc_lowering *low, const tcc_access *a, int64_t number, tcc_value *v)
{
    const tcc_spread *held = &a->held.spread;
    tcc_scalar elem = a->tensor->type->elem;
    spot s = spot_of(low, a, number);
    tcc_words to = {a->base, s.inside, elem};
    int64_t in_word = a->step, lanes = lanes_in_row(held, in_word);
    tcc_value *lane = low->vendor->lane(low), *in_row = tcc_low_rem(low, lane, lanes);
    tcc_value *room = tcc_low_add(low, a->room[1], -a->add[1] - tcc_digits_place(&held->registers, number, 1));
    tcc_value *own = tcc_low_bin_const(low, TCC_OP_arith_min, room, in_word);
    tcc_value *is_last = tcc_low_cmp(low, "eq", in_row, tcc_low_c32(low, lanes - 1));
    tcc_value *left = TCC_EMIT(&low->b, arith_select, low->i32, is_last, own, room);
    tcc_value *skip = tcc_nvvm_skip(low, &to, s.offset, s.disp);
    tcc_value *offset = tcc_low_bin(low, TCC_OP_arith_add, s.offset, tcc_low_cast(low, low->i64, skip));
    tcc_value *first = tcc_low_extract(low, TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, TCC_i32, 1), v), 0);
    tcc_value *next = from_lane(low, first, tcc_low_add(low, lane, 1));
    tcc_value *by = tcc_low_mul(low, skip, tcc_scalar_bits(elem));
    tcc_value *word = TCC_EMIT(&low->b, nvvm_shf, low->i32, first, next, by);
    tcc_nvvm_store_word(low, &to, word, offset, s.disp, skip, left);
    tcc_value *none = tcc_low_c32(low, 0), *all_skipped = tcc_low_c32(low, in_word);
    tcc_value *leads = tcc_low_cmp(low, "eq", in_row, none);
    tcc_value *least = TCC_EMIT(&low->b, arith_select, low->i32, leads, none, all_skipped);
    if (in_word == 2) /* at most one is skipped: the first, which is inside */
        tcc_nvvm_store_skipped(low, &to, first, offset, s.disp - 1, skip, least);
    else
        tcc_nvvm_store_skipped(low, &to, first, s.offset, s.disp, tcc_low_bin(low, TCC_OP_arith_min, skip, room),
                               least);
}

/* Whether a tile begins at its row's first element or before it: 0 - x. */
static bool is_first_tile(const tcc_access *a)
{
    const tcc_op *op = a->at[a->tensor->type->rank - 1]->def;
    int64_t zero;
    return op && op->code == TCC_OP_arith_sub && tcc_value_is_int(op->operands[0], &zero) && !zero;
}

/* Those of `step` elements that are in the row: at once if all are, else one by one. */
static void store_group(tcc_lowering *low, const tcc_access *a, int64_t number, tcc_value *v)
{
    const tcc_spread *held = &a->held.spread;
    tcc_scalar elem = a->tensor->type->elem;
    spot s = spot_of(low, a, number);
    unsigned last = a->tensor->type->rank - 1;
    int64_t col = a->add[1] + tcc_digits_place(&held->registers, number, 1);
    tcc_value *before = tcc_low_bin(low, TCC_OP_arith_sub, tcc_low_c32(low, -col), a->begin), *whole = s.inside;
    if (!is_first_tile(a) || !tcc_low_is_below(low, held, 1, col + a->step - 1, a->tensor->type->dims[last]))
        whole = tcc_low_bin(low, TCC_OP_arith_and, whole,
                            tcc_low_cmp(low, "gt", a->room[1], tcc_low_c32(low, col + a->step - 1)));
    bool may_begin = col < a->step;
    if (may_begin)
        whole = tcc_low_bin(low, TCC_OP_arith_and, whole, tcc_low_cmp(low, "le", before, tcc_low_c32(low, 0)));
    set_access(low, TCC_EMIT_V(&low->b, nvvm_st_global, a->base, s.offset, whole, v), a, &s, elem);
    if (whole == s.inside)
        return;
    tcc_op *some = tcc_low_if(low, tcc_low_bin(low, TCC_OP_arith_xor, s.inside, whole));
    for (int64_t e = 0; e < a->step; e++) {
        tcc_value *has = tcc_low_cmp(low, "gt", a->room[1], tcc_low_c32(low, col + e));
        if (may_begin)
            has = tcc_low_bin(low, TCC_OP_arith_and, has, tcc_low_cmp(low, "le", before, tcc_low_c32(low, e)));
        tcc_op *op = TCC_EMIT_V(&low->b, nvvm_st_global, a->base, s.offset, has, tcc_low_slice(low, v, e, 1));
        if (s.disp + e)
            tcc_attr_set_int(low->ir, &op->attrs, "disp", s.disp + e);
    }
    tcc_low_end(low, some);
}

static void store(tcc_lowering *low, const tcc_access *a, int64_t number, tcc_value *v)
{
    if (a->in_groups) {
        store_group(low, a, number, tcc_low_stored(low, a, number, v));
        return;
    }
    if (a->of_words) {
        store_word(low, a, number, tcc_low_stored(low, a, number, v));
        return;
    }
    spot s = spot_of(low, a, number);
    tcc_op *op = TCC_EMIT_V(&low->b, nvvm_st_global, a->base, s.offset, s.inside,
                            tcc_low_stored(low, a, number, v));
    set_access(low, op, a, &s, a->tensor->type->elem);
}

/* ---- elements by themselves ---------------------------------------------------------------- */

/* In elements. */
static void locate(tcc_lowering *low, tcc_gather *g)
{
    bool one;
    g->base = tcc_low_pointer(low, g->tensor);
    g->origin = tcc_build_int(&low->b, low->i64, 0);
    for (unsigned d = 0; d < g->tensor->type->rank; d++) {
        g->stride[d] = tcc_low_stride(low, g->tensor->type, (int)d, &one);
        if (!g->varies[d])
            g->origin = tcc_low_bin(low, TCC_OP_arith_add, g->origin, tcc_low_scaled(low, g->first[d], g->stride[d]));
    }
}

static tcc_value *load_one(tcc_lowering *low, const tcc_gather *g, tcc_value *offset, tcc_value *inside)
{
    tcc_scalar elem = g->tensor->type->elem;
    if (tcc_scalar_bits(elem) < 8)
        return tcc_nvvm_load_half(low, elem, g->base, offset, inside);
    return TCC_EMIT(&low->b, nvvm_ld_global, tcc_low_vec(low, elem, 1), g->base, offset, inside);
}

const tcc_low_vendor tcc_low_nvvm = {.name = "lower-to-nvvm",
                                     .warps = "warps",
                                     .cta = TCC_OP_nvvm_ctaid,
                                     .launched = TCC_OP_nvvm_nctaid,
                                     .cluster = TCC_OP_nvvm_clusterid,
                                     .clusters = TCC_OP_nvvm_nclusterid,
                                     .rank = TCC_OP_nvvm_cluster_ctarank,
                                     .block = lower_block,
                                     .cut = cut,
                                     .warp = warp_of,
                                     .lane = lane_of,
                                     .from_lane = from_lane,
                                     .from_xor = from_xor,
                                     .shared = shared,
                                     .load_shared = load_shared,
                                     .store_shared = store_shared,
                                     .meet = meet,
                                     .load_opaque = tcc_nvvm_load_opaque,
                                     .store_opaque = tcc_nvvm_store_opaque,
                                     .plan = plan,
                                     .load = load,
                                     .store = store,
                                     .locate = locate,
                                     .load_one = load_one};
