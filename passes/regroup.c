/* regroup: tiles in registers, by their layouts alone: which register of a thread goes where, and what the
 * numbers of lanes and warps add.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/lowering.h"

/* All threads at once: where their numbers add the same in both tiles, a register of one tile is a register
 * of the other. */
tcc_value *tcc_low_regroup(tcc_lowering *l, const tcc_spread *from, tcc_value *v,
                           const tcc_spread *to, const int64_t at[2])
{
    tcc_value **parts = TCC_NEW_ARRAY(l->ctx->scratch, tcc_value *, (size_t)to->n_registers);
    size_t n = 0;
    for (int d = 0; d < 2; d++)
        if (from->extent[d] != 1 && !tcc_layout_same_threads(from, to, d))
            return NULL;
    for (int64_t i = 0, first = 0, run = 0; i <= to->n_registers; i++) {
        int64_t place[2] = {0, 0}, source = -1;
        for (int d = 0; d < 2 && i < to->n_registers; d++)
            place[d] = (tcc_digits_place(&to->registers, i, d) + at[d]) % from->extent[d];
        if (i < to->n_registers && (source = tcc_layout_register(from, place[0], place[1])) < 0)
            return NULL;
        if (run && source != first + run) {
            bool one = run == 1 && to->n_registers > 1;
            parts[n++] = one ? tcc_low_extract(l, v, first) : tcc_low_slice(l, v, first, run);
            run = 0;
        }
        first = run ? first : source;
        run++;
    }
    return n == 1 ? parts[0] : tcc_low_pack(l, v->type->elem, n, parts, to->n_registers);
}

/* In two chains, of every other element: one alone would wait for itself all the time. */
tcc_value *tcc_low_reduce_own(tcc_lowering *l, tcc_opcode op, const tcc_spread *s, tcc_value *v,
                              int dim, int64_t place)
{
    tcc_value *chains[2] = {NULL, NULL};
    for (int64_t i = 0, n = 0; i < s->n_registers; i++)
        if (tcc_digits_place(&s->registers, i, !dim) == place) {
            tcc_value **chain = &chains[n++ % 2], *x = tcc_low_extract(l, v, i);
            *chain = *chain ? tcc_low_bin(l, op, *chain, x) : x;
        }
    return chains[1] ? tcc_low_bin(l, op, chains[0], chains[1]) : chains[0];
}

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

tcc_value *tcc_low_is_first(tcc_lowering *l, const tcc_digits *digits, tcc_value *number)
{
    tcc_value *all = tcc_build_int(&l->b, l->i1, 1), *zero = tcc_low_c32(l, 0);
    for (unsigned i = 0; i < digits->n; i++)
        if (!digits->of[i].add[0] && !digits->of[i].add[1]) {
            tcc_value *is_zero = tcc_low_cmp(l, "eq", digit_of(l, digits, number, i), zero);
            all = tcc_low_bin(l, TCC_OP_arith_and, all, is_zero);
        }
    return all;
}
