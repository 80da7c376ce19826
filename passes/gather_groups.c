/* gather_groups: which of a thread's registers tile.gather loads once: those of neighbouring columns of a row for which
 * coordinates are the same, as quotients are.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/lowering.h"

enum {
    WHOLE = 1 << 20, /* columns, more than a tile has */
    DEEP = 12        /* ops that are looked through */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The number that v is in all elements; NULL: it is none. */
static const tcc_value *number_in(const tcc_value *v)
{
    bool repeats = v->def && v->def->code == TCC_OP_tile_broadcast;
    if (repeats && v->def->operands[0]->type->kind == TCC_KIND_scalar)
        return v->def->operands[0];
    return v->def && v->def->code == TCC_OP_arith_const ? v : NULL;
}

/* The largest power of two of which a number is known to be a multiple. */
static int64_t divisor_of(const tcc_value *number)
{
    int64_t n = 1;
    while (n < WHOLE && tcc_is_multiple(number, 2 * n, NULL))
        n *= 2;
    return n;
}

/* v is the number of an element's column and a multiple of this power of two more; 0: it is anything else. */
static int64_t counts_from(const tcc_value *v)
{
    int64_t n = WHOLE;
    for (int i = 0; i < DEEP && v->def; i++) {
        tcc_value *const *o = v->def->operands;
        switch (v->def->code) {
        case TCC_OP_tile_index: return tcc_attr_int(&v->def->attrs, "dim", 0) == 1 ? n : 0;
        case TCC_OP_tile_broadcast: v = o[0]; break;
        case TCC_OP_arith_add: {
            const tcc_value *right = number_in(o[1]), *number = right ? right : number_in(o[0]);
            if (!number)
                return 0;
            n = least(n, divisor_of(number));
            v = right ? o[0] : o[1];
            break;
        }
        default: return 0;
        }
    }
    return 0;
}

/* From each multiple of this power of two on so many columns of a row have the same number. */
static int64_t run_of(const tcc_value *v, int depth)
{
    if (number_in(v) || v->type->kind == TCC_KIND_scalar || v->type->dims[1].size == 1)
        return WHOLE;
    const tcc_op *op = v->def;
    if (!op || depth == DEEP)
        return 1;
    if (op->code == TCC_OP_tile_index)
        return tcc_attr_int(&op->attrs, "dim", 0) == 1 ? 1 : WHOLE;
    if (op->code != TCC_OP_tile_broadcast && !(tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE))
        return 1;
    int64_t n = WHOLE, by;
    for (unsigned i = 0; i < op->n_operands; i++)
        n = least(n, run_of(op->operands[i], depth + 1));
    const tcc_value *divisor = op->code == TCC_OP_arith_floor_div ? number_in(op->operands[1]) : NULL;
    if (!divisor || !tcc_value_is_int(divisor, &by) || by < 1)
        return n;
    int64_t of_quotient = least(counts_from(op->operands[0]), by & -by);
    return of_quotient > n ? of_quotient : n;
}

int64_t tcc_low_gather_run(const tcc_op *gather)
{
    int64_t n = WHOLE;
    for (unsigned i = 1; i < gather->n_operands; i++)
        n = least(n, run_of(gather->operands[i], 0));
    return n;
}

/* Whether two registers of a row are in the same run in every thread. */
static bool share_run(const tcc_spread *s, int64_t i, int64_t j, int64_t run)
{
    int64_t first = tcc_digits_place(&s->registers, i, 1), other = tcc_digits_place(&s->registers, j, 1);
    bool same = true;
    for (int64_t w = 0; w < s->n_warps && same; w++)
        for (int64_t l = 0; l < s->n_lanes && same; l++) {
            int64_t own = tcc_digits_place(&s->warps, w, 1) + tcc_digits_place(&s->lanes, l, 1);
            same = (own + first) / run == (own + other) / run;
        }
    return same;
}

int64_t tcc_low_gather_before(const tcc_spread *s, int64_t number, int64_t run)
{
    int64_t row = tcc_digits_place(&s->registers, number, 0), before = number - 1;
    while (before >= 0 && tcc_digits_place(&s->registers, before, 0) != row)
        before--;
    return run > 1 && before >= 0 && share_run(s, number, before, run) ? before : -1;
}
