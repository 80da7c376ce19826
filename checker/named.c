/* named: how many named barriers there are.
 *
 * A barrier's number is most often that of a warpgroup plus a constant. States have a row and a column of clocks for
 * each barrier that there may be, so an upper bound of these numbers is found, from the thread's number on: constants,
 * and what is computed from bounded values. Where there is none, it is the machine's.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "support/map.h"

/* What a value is at most, in tcc_map as a pointer: 1 + that; it is not negative. NULL: nothing is known. */
static int64_t most_of(const tcc_map *bounds, const tcc_value *v)
{
    return (int64_t)(intptr_t)tcc_map_get(bounds, v) - 1;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The bound of an op's result, given those of its operands, -1 for none; -1: there is none, or none that matters. */
static int64_t bound_of(const tcc_protocol *p, const tcc_op *op, const int64_t *of)
{
    int64_t c = -1;
    bool both = of[0] >= 0 && of[1] >= 0, by = op->n_operands == 2 && tcc_value_is_int(op->operands[1], &c) && c > 0;
    switch (op->code) {
    case TCC_OP_nvvm_tid: return (int64_t)p->cta_warps * p->n_lanes - 1;
    case TCC_OP_nvvm_uniform: return of[0];
    case TCC_OP_arith_const: return tcc_value_is_int(&op->results[0], &c) ? c : -1;
    case TCC_OP_arith_add: return both ? of[0] + of[1] : -1;
    case TCC_OP_arith_mul: return both ? of[0] * of[1] : -1;
    case TCC_OP_arith_min: return both ? least(of[0], of[1]) : -1;
    case TCC_OP_arith_and: return both ? least(of[0], of[1]) : -1;
    case TCC_OP_arith_shr: return of[0] >= 0 && by && c < 32 ? of[0] >> c : -1;
    case TCC_OP_arith_div: return of[0] >= 0 && by ? of[0] / c : -1;
    case TCC_OP_arith_rem: return of[0] >= 0 && by ? least(of[0], c - 1) : -1;
    default: return -1;
    }
}

/* Numbers that matter: none of them, nor two multiplied, overflows what it is computed in. */
static bool is_kept(const tcc_op *op, int64_t most)
{
    return most >= 0 && most <= INT16_MAX && op->n_results == 1 && op->results[0].type->kind == TCC_KIND_scalar &&
           op->results[0].type->elem == TCC_i32;
}

/* The number of the barrier that an op is at, at most; -1: it is at none. */
static int64_t barrier_of(const tcc_map *bounds, const tcc_op *op)
{
    if (!tcc_op_waits(op->code, TCC_BY_WARPS))
        return -1;
    int64_t most = op->n_operands ? most_of(bounds, op->operands[0]) : 0;
    return most < 0 || most >= TCC_NAMED_BARRIERS ? TCC_NAMED_BARRIERS - 1 : most;
}

unsigned tcc_p_named_count(const tcc_protocol *p)
{
    tcc_map bounds = TCC_MAP(p->scratch);
    int64_t most = -1;
    for (tcc_op *op = p->f->body->first; op; op = tcc_walk_next(op, p->f->body)) {
        int64_t of[2] = {-1, -1};
        for (unsigned i = 0; i < op->n_operands && i < 2; i++)
            of[i] = most_of(&bounds, op->operands[i]);
        int64_t bound = bound_of(p, op, of), at = barrier_of(&bounds, op);
        if (is_kept(op, bound))
            *tcc_map_at(&bounds, &op->results[0]) = (void *)(intptr_t)(bound + 1);
        most = at > most ? at : most;
    }
    return (unsigned)(most + 1);
}
