/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/arith.h"

#include "passes/loops.h"

tcc_value *tcc_arith_bin(tcc_builder *b, tcc_opcode op, tcc_value *x, tcc_value *y)
{
    return &tcc_op_create(b, op, 2, (tcc_value *[]){x, y}, 1, &x->type)->results[0];
}

tcc_value *tcc_arith_bin_const(tcc_builder *b, tcc_opcode op, tcc_value *x, int64_t y)
{
    return tcc_arith_bin(b, op, x, tcc_build_int(b, x->type, y));
}

tcc_value *tcc_arith_add(tcc_builder *b, tcc_value *x, int64_t y)
{
    return y ? tcc_arith_bin_const(b, TCC_OP_arith_add, x, y) : x;
}

tcc_value *tcc_arith_mul(tcc_builder *b, tcc_value *x, int64_t y)
{
    return y == 1 ? x : tcc_arith_bin_const(b, TCC_OP_arith_mul, x, y);
}

static int log2_of(int64_t x)
{
    int n = 0;
    while (x > 1 && x % 2 == 0) {
        x /= 2;
        n++;
    }
    return x == 1 ? n : -1;
}

tcc_value *tcc_arith_div(tcc_builder *b, tcc_value *x, int64_t y)
{
    int shift = log2_of(y);
    return shift < 0 ? tcc_arith_bin_const(b, TCC_OP_arith_div, x, y)
           : shift   ? tcc_arith_bin_const(b, TCC_OP_arith_shr, x, shift)
                     : x;
}

tcc_value *tcc_arith_rem(tcc_builder *b, tcc_value *x, int64_t y)
{
    bool whole = log2_of(y) >= 0;
    return tcc_arith_bin_const(b, whole ? TCC_OP_arith_and : TCC_OP_arith_rem, x, y - whole);
}

tcc_value *tcc_arith_cmp(tcc_builder *b, const char *pred, tcc_value *x, tcc_value *y)
{
    tcc_ir *ir = b->func->ir;
    tcc_value *v = TCC_EMIT(b, arith_cmp, tcc_type_with_elem(ir, x->type, TCC_i1), x, y);
    tcc_attr_set_str(ir, &v->def->attrs, "pred", pred);
    return v;
}

tcc_value *tcc_arith_cast(tcc_builder *b, const tcc_type *type, tcc_value *x)
{
    return x->type == type ? x : TCC_EMIT(b, arith_cast, type, x);
}

static tcc_value *operand_of(const tcc_value *v, tcc_opcode code, unsigned i)
{
    return v && v->def && v->def->code == code ? v->def->operands[i] : NULL;
}

static bool has_right(const tcc_value *v, tcc_opcode code, int64_t number)
{
    int64_t right;
    const tcc_value *o = operand_of(v, code, 1);
    return o && tcc_value_is_int(o, &right) && right == number;
}

tcc_value *tcc_arith_rest(tcc_builder *b, tcc_value *x, int64_t by)
{
    return tcc_arith_add(b, tcc_arith_rem(b, tcc_arith_add(b, x, -1), by), 1);
}

/* Whether v is what tcc_arith_rest makes of x. */
static bool is_rest(const tcc_value *v, const tcc_value *x, int64_t by)
{
    const tcc_value *below = operand_of(operand_of(v, TCC_OP_arith_add, 0), TCC_OP_arith_and, 0);
    return has_right(v, TCC_OP_arith_add, 1) &&
           has_right(operand_of(v, TCC_OP_arith_add, 0), TCC_OP_arith_and, by - 1) &&
           has_right(below, TCC_OP_arith_add, -1) && operand_of(below, TCC_OP_arith_add, 0) == x;
}

/* The loop whose index v is, or NULL. */
static const tcc_op *loop_of_index(const tcc_value *v)
{
    const tcc_op *loop = v->block ? v->block->parent : NULL;
    return tcc_is_loop(loop) && v->block->args[0] == v ? loop : NULL;
}

bool tcc_is_multiple(const tcc_value *v, int64_t by, const tcc_dim *known)
{
    int64_t number;
    if (tcc_value_is_int(v, &number))
        return number % by == 0;
    if (!v->def) {
        const tcc_op *loop = loop_of_index(v);
        return loop && tcc_is_multiple(TCC_VIEW(scf_for, loop)->lo, by, known) &&
               tcc_is_multiple(TCC_VIEW(scf_for, loop)->step, by, known);
    }
    tcc_value *const *o = v->def->operands;
    switch (v->def->code) {
    case TCC_OP_tensor_dim:
        return known && known->name && tcc_attr_is(&v->def->attrs, "name", known->name);
    case TCC_OP_arith_mul: return tcc_is_multiple(o[0], by, known) || tcc_is_multiple(o[1], by, known);
    case TCC_OP_arith_sub:
        if (is_rest(o[1], o[0], by))
            return true;
        /* fall through */
    case TCC_OP_arith_add:
    case TCC_OP_arith_min:
    case TCC_OP_arith_max: return tcc_is_multiple(o[0], by, known) && tcc_is_multiple(o[1], by, known);
    case TCC_OP_async_opaque: return tcc_is_multiple(o[0], by, known);
    default: return false;
    }
}

int64_t tcc_known_remainder(const tcc_value *v, int64_t by)
{
    int64_t number;
    if (tcc_value_is_int(v, &number))
        return number < 0 ? -1 : number % by;
    const tcc_value *rest = operand_of(v, TCC_OP_arith_add, 0);
    if (rest && tcc_value_is_int(v->def->operands[1], &number) && number >= 0) {
        int64_t of_rest = tcc_known_remainder(rest, by);
        return of_rest < 0 ? -1 : (of_rest + number) % by;
    }
    const tcc_value *factor = operand_of(v, TCC_OP_arith_mul, 1);
    return factor && tcc_value_is_int(factor, &number) && number % by == 0 ? 0 : by == 1 ? 0 : -1;
}

bool tcc_is_not_negative(const tcc_value *v)
{
    int64_t number;
    if (tcc_value_is_int(v, &number))
        return number >= 0;
    if (!v->def) { /* steps are positive */
        const tcc_op *parent = v->block->parent, *loop = loop_of_index(v);
        return loop ? tcc_is_not_negative(TCC_VIEW(scf_for, loop)->lo)
                    : parent && !tcc_is_loop(parent);
    }
    tcc_value *const *o = v->def->operands;
    switch (v->def->code) {
    case TCC_OP_tensor_dim:
    case TCC_OP_tile_take:
    case TCC_OP_tile_takes:
    case TCC_OP_arith_floor_rem: return true;
    case TCC_OP_arith_div: /* by a number above 0 */
    case TCC_OP_arith_rem:
    case TCC_OP_arith_floor_div:
    case TCC_OP_arith_and:
    case TCC_OP_arith_shr: return tcc_is_not_negative(o[0]);
    case TCC_OP_arith_mul:
    case TCC_OP_arith_add:
    case TCC_OP_arith_xor:
    case TCC_OP_arith_min: return tcc_is_not_negative(o[0]) && tcc_is_not_negative(o[1]);
    case TCC_OP_arith_max: return tcc_is_not_negative(o[0]) || tcc_is_not_negative(o[1]);
    case TCC_OP_arith_select: return tcc_is_not_negative(o[1]) && tcc_is_not_negative(o[2]);
    default: return false;
    }
}

bool tcc_is_below(const tcc_value *at, tcc_dim d)
{
    int64_t number;
    if (tcc_value_is_int(at, &number))
        return !d.name && number < d.size;
    if (!at->def || at->def->code != TCC_OP_arith_rem)
        return false;
    const tcc_value *by = at->def->operands[1];
    if (tcc_value_is_int(by, &number))
        return !d.name && number <= d.size;
    return d.name && by->def && by->def->code == TCC_OP_tensor_dim && tcc_attr_is(&by->def->attrs, "name", d.name);
}

tcc_value *tcc_build_extent(tcc_builder *b, tcc_dim d)
{
    if (!d.name)
        return tcc_build_i32(b, d.size);
    tcc_value *v = TCC_EMIT(b, tensor_dim, tcc_type_scalar(b->func->ir, TCC_i32), NULL);
    tcc_attr_set_str(b->func->ir, &v->def->attrs, "name", d.name);
    return v;
}

tcc_op *tcc_begin_if(tcc_builder *b, tcc_value *cond)
{
    tcc_op *op = tcc_op_create(b, TCC_OP_scf_if, 1, &cond, 0, NULL);
    tcc_loc loc = b->loc;
    *b = tcc_builder_at_end(op->regions[0]);
    b->loc = loc;
    return op;
}

void tcc_end_if(tcc_builder *b, tcc_op *op)
{
    tcc_loc loc = b->loc;
    *b = tcc_builder_after(op);
    b->loc = loc;
}

bool tcc_is_number(const tcc_op *op)
{
    return tcc_op_info_get(op->code)->flags & TCC_PURE && !op->n_regions && op->n_results == 1 &&
           op->results[0].type->kind == TCC_KIND_scalar && op->code != TCC_OP_tile_any;
}
