/* lower_exchange: tiles from warp to warp, through shared memory.
 *
 * The buffer is row-major, so an element's address is the thread's base plus a constant for each of its
 * registers. Elements held by several threads are stored by the first of them. Fragments with an opaque layout may have
 * to be apart.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/reduction.h"
#include "passes/lowering.h"

enum { MOST_BYTES = 16 }; /* that an access has */

typedef struct scratch {
    tcc_value *base;
    int64_t pitch, bytes; /* of a row, of an element */
    int64_t width, apart; /* of fragments, in columns; how many widths there are from one to the next */
    tcc_scalar elem;
} scratch;

static bool find_scratch(tcc_lowering *l, const tcc_op *op, scratch *s)
{
    const tcc_value *buffer = op->operands[1];
    const tcc_type *type = buffer->type;
    if (!buffer->def || !tcc_attr_find(&buffer->def->attrs, "offset") || tcc_scalar_bits(type->elem) < 8) {
        TCC_LOW_REFUSE(l, op, "a buffer without a place in shared memory, or of such elements");
        return false;
    }
    s->elem = type->elem;
    s->bytes = tcc_scalar_bits(type->elem) / 8;
    s->pitch = type->dims[2].size * s->bytes;
    s->base = tcc_low_add(l, l->vendor->shared(l), tcc_attr_int(&buffer->def->attrs, "offset", 0));
    const tcc_type *of[] = {op->operands[0]->type, op->results[0].type};
    s->apart = 1;
    for (int i = 0; i < 2; i++)
        if (tcc_layout_apart(of[i]) > 1) {
            s->apart = tcc_layout_apart(of[i]);
            s->width = tcc_fragments[tcc_layout_fragment(of[i])].cols;
        }
    return true;
}

static tcc_value *address(tcc_lowering *l, const scratch *s, tcc_value *row, tcc_value *col)
{
    row = tcc_low_mul(l, row, s->pitch);
    if (s->apart > 1) {
        tcc_value *others = tcc_low_mul(l, tcc_low_div(l, col, s->width), s->width * (s->apart - 1));
        col = tcc_low_bin(l, TCC_OP_arith_add, col, others);
    }
    col = tcc_low_mul(l, col, s->bytes);
    row = tcc_low_bin(l, TCC_OP_arith_add, row, col);
    return tcc_low_bin(l, TCC_OP_arith_add, s->base, row);
}

/* For the thread's own element of a tile. */
static tcc_value *own_address(tcc_lowering *l, const scratch *s, const tcc_spread *held)
{
    tcc_value *row = tcc_low_own(l, held, 0), *col = tcc_low_own(l, held, 1);
    return address(l, s, row, col);
}

/* What a register adds: never so many columns that another fragment is reached only together with the thread's own,
 * since every digit of a column is the registers', the lanes' or the warps'. */
static int64_t offset_of(const scratch *s, const tcc_spread *held, int64_t number)
{
    int64_t col = tcc_digits_place(&held->registers, number, 1);
    if (s->apart > 1)
        col += col / s->width * s->width * (s->apart - 1);
    return tcc_digits_place(&held->registers, number, 0) * s->pitch + col * s->bytes;
}

/* Whether what digits add along a row, if it is `least` or more, is a multiple of n elements. */
static bool are_multiples(const tcc_digits *digits, int64_t n, int64_t least)
{
    bool all = true;
    for (unsigned i = 0; i < digits->n; i++)
        all &= digits->of[i].add[1] < least || digits->of[i].add[1] % n == 0;
    return all;
}

/* Registers that are neighbours in a row, and aligned: one access. */
static int64_t step_of(const scratch *s, const tcc_held *held)
{
    const tcc_spread *spread = &held->spread;
    int64_t n = tcc_layout_neighbours(spread);
    for (; n > 1; n /= 2)
        if (n * s->bytes <= MOST_BYTES && (n & (n - 1)) == 0 && held->in_one % n == 0 &&
            s->pitch % (n * s->bytes) == 0 && (s->apart == 1 || n <= s->width) &&
            are_multiples(&spread->registers, n, n) && are_multiples(&spread->lanes, n, 1) &&
            are_multiples(&spread->warps, n, 1))
            break;
    return n;
}

/* For the first of the threads that hold the same; NULL: none do, and there is nothing to end. */
static tcc_op *begin_first(tcc_lowering *l, const tcc_spread *lanes, const tcc_spread *warps)
{
    int64_t always;
    tcc_value *who = tcc_low_holds_first(l, lanes, warps);
    return tcc_value_is_int(who, &always) ? NULL : tcc_low_if(l, who);
}

/* The operand of op. */
static void store(tcc_lowering *l, const scratch *s, const tcc_op *op, const tcc_held *held)
{
    const tcc_value *tile = op->operands[0];
    if (tcc_layout_is_opaque(tile->type)) {
        l->vendor->store_opaque(l, op, held, s->base, s->pitch);
        return;
    }
    tcc_value *own = own_address(l, s, &held->spread), *v = NULL;
    tcc_op *first = begin_first(l, &held->spread, &held->spread);
    int64_t step = step_of(s, held);
    for (int64_t i = 0, part = -1; i < held->spread.n_registers; i += step) {
        if (i / held->in_one != part)
            v = tcc_low_unpacked(l, tile, (size_t)(part = i / held->in_one));
        l->vendor->store_shared(l, own, offset_of(s, &held->spread, i),
                                tcc_low_slice(l, v, i % held->in_one, step));
    }
    if (first)
        tcc_low_end(l, first);
}

/* Lets all warps read what is in the buffer before any writes to it. */
static void meet_first(tcc_lowering *l, const tcc_op *op)
{
    if (!tcc_attr_int(&op->attrs, "met", 0))
        l->vendor->meet(l, op);
}

void tcc_low_exchange(tcc_lowering *l, tcc_op *op)
{
    const tcc_value *a = op->operands[0];
    tcc_held from, to;
    scratch s;
    if (!tcc_low_held(l, op, a->type, &from) || !tcc_low_held(l, op, op->results[0].type, &to) ||
        !find_scratch(l, op, &s))
        return;
    meet_first(l, op);
    store(l, &s, op, &from);
    l->vendor->meet(l, op);
    if (tcc_layout_is_opaque(op->results[0].type)) {
        l->vendor->load_opaque(l, op, &to, s.base, s.pitch);
        return;
    }
    tcc_value *own = own_address(l, &s, &to.spread);
    int64_t step = step_of(&s, &to);
    const tcc_type *vec = tcc_low_vec(l, s.elem, step);
    tcc_value **parts =
        TCC_NEW_ARRAY(l->ctx->scratch, tcc_value *, (size_t)(to.spread.n_registers / step));
    for (int64_t i = 0; i < to.spread.n_registers; i += step)
        parts[i / step] = l->vendor->load_shared(l, own, offset_of(&s, &to.spread, i), vec);
    tcc_low_set_registers(l, &op->results[0], &to, parts);
}

/* The index of the thread's warp among those along a dimension; their number. */
static tcc_value *number_along(tcc_lowering *l, const tcc_digits *warps, int dim, int64_t *n)
{
    tcc_digits along = *warps;
    *n = 1;
    for (unsigned i = 0; i < along.n; i++) {
        int64_t add = warps->of[i].add[dim] ? *n : 0;
        *n *= add ? along.of[i].n : 1;
        along.of[i].add[dim] = add;
    }
    return tcc_low_digits(l, &along, l->vendor->warp(l), dim);
}

/* Each warp's part is a row of the buffer, or a column. */
void tcc_low_combine(tcc_lowering *l, tcc_op *op)
{
    int dim = (int)tcc_attr_int(&op->attrs, "dim", 0);
    tcc_held a, r;
    scratch s;
    tcc_value **own = tcc_low_reduce_in_warp(l, op, &a, &r), *at[2];
    if (!own || !find_scratch(l, op, &s))
        return;
    int64_t n, count = r.spread.n_registers;
    at[dim] = number_along(l, &a.spread.warps, dim, &n);
    if (n > op->operands[1]->type->dims[1 + dim].size) {
        TCC_LOW_REFUSE(l, op, "%s of %lld %s through so few elements", tcc_op_info_get(op->code)->name,
                       (long long)n, l->vendor->warps);
        return;
    }
    at[!dim] = tcc_low_own(l, &r.spread, !dim);
    meet_first(l, op);
    int64_t step = dim ? 1 : step_of(&s, &r); /* neighbours in a row of the buffer */
    tcc_value *mine = address(l, &s, at[0], at[1]);
    tcc_op *first = begin_first(l, &r.spread, &a.spread);
    for (int64_t i = 0; i < count; i += step)
        l->vendor->store_shared(l, mine, offset_of(&s, &r.spread, i),
                                tcc_low_pack(l, s.elem, (size_t)step, own + i, step));
    if (first)
        tcc_low_end(l, first);
    l->vendor->meet(l, op);
    at[dim] = tcc_low_c32(l, 0);
    tcc_value *all = address(l, &s, at[0], at[1]);
    tcc_value **parts = TCC_NEW_ARRAY(l->ctx->scratch, tcc_value *, (size_t)count);
    for (int64_t i = 0; i < count; i += step)
        for (int64_t w = 0; w < n; w++) {
            int64_t further = w * (dim ? s.bytes : s.pitch);
            tcc_value *x = l->vendor->load_shared(l, all, offset_of(&s, &r.spread, i) + further,
                                                  tcc_low_vec(l, s.elem, step));
            x = step > 1 ? x : tcc_low_extract(l, x, 0);
            tcc_value **part = &parts[i / step];
            *part = w ? tcc_low_bin(l, tcc_reduction_op(tcc_reduction_of(op)), *part, x) : x;
        }
    tcc_low_set_registers(l, &op->results[0], &r, parts);
}
