/* canonicalize: fold constants and bring equal expressions to one form.
 *
 * Before:  %a = arith.add %two, %x         After:  %c = arith.add %x, %five
 *          %b = arith.add %a, %three               %d = (the consts 2 and 3, unused: dce)
 *          %c = arith.mul %b, %one
 *          scf.if %true { A } { B }                A
 *          scf.for 0, 1, 1 { A }                   the same, with 0 for its index in A
 *
 * One walk, in which operands are replaced before their op is looked at. Integers wrap around as
 * they do at run time; of floats only f32 is computed, rounded after every op, and no law of
 * arithmetic is used that rounding, infinities, NaN or the sign of zero breaks: an extremum of terms
 * times a positive number is that of the terms, times it.
 *
 * Requires nothing. Preserves loops and everything that has an effect.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>

#include "ir/index.h"
#include "ir/reduction.h"
#include "passes/passes.h"
#include "support/map.h"

/* ---- integers -------------------------------------------------------------------------- */

static bool compare_ints(const char *pred, int64_t a, int64_t b)
{
    switch (pred[0] << 8 | pred[1]) {
    case 'e' << 8 | 'q': return a == b;
    case 'n' << 8 | 'e': return a != b;
    case 'l' << 8 | 't': return a < b;
    case 'l' << 8 | 'e': return a <= b;
    case 'g' << 8 | 't': return a > b;
    default: return a >= b;
    }
}

/* a op b, both in the range of s; false where it has no value. */
static bool fold_ints(tcc_opcode code, tcc_scalar s, int64_t a, int64_t b, int64_t *out)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b, r;
    unsigned bits = tcc_scalar_bits(s);
    switch (code) {
    case TCC_OP_arith_add: r = x + y; break;
    case TCC_OP_arith_sub: r = x - y; break;
    case TCC_OP_arith_mul: r = x * y; break;
    case TCC_OP_arith_div:
    case TCC_OP_arith_rem:
        if (b == 0 || b == -1) /* the least integer has no negative */
            return false;
        r = (uint64_t)(code == TCC_OP_arith_div ? a / b : a % b);
        break;
    case TCC_OP_arith_floor_div: r = (uint64_t)tcc_floor_div(a, b < 1 ? 1 : b); break;
    case TCC_OP_arith_floor_rem: r = b < 1 ? 0 : x - y * (uint64_t)tcc_floor_div(a, b); break;
    case TCC_OP_arith_min: r = (uint64_t)(a < b ? a : b); break;
    case TCC_OP_arith_max: r = (uint64_t)(a > b ? a : b); break;
    case TCC_OP_arith_and: r = x & y; break;
    case TCC_OP_arith_or: r = x | y; break;
    case TCC_OP_arith_xor: r = x ^ y; break;
    case TCC_OP_arith_shl:
    case TCC_OP_arith_shr:
        if (b < 0 || b >= bits)
            return false;
        r = code == TCC_OP_arith_shl ? x << b : (x & (~0ull >> (64 - bits))) >> b;
        break;
    default: return false;
    }
    *out = tcc_int_wrap(s, (int64_t)r);
    return true;
}

/* Which operand of a op b is the result when b is this constant: x + 0, x * 1, x & -1, … are x,
 * x * 0, x & 0, … are b. */
static tcc_value *int_identity(const tcc_op *op, int64_t b)
{
    tcc_scalar s = op->results[0].type->elem;
    int64_t ones = tcc_int_wrap(s, -1);
    tcc_value *x = op->operands[0], *c = op->operands[1];
    switch (op->code) {
    case TCC_OP_arith_add:
    case TCC_OP_arith_sub:
    case TCC_OP_arith_shl:
    case TCC_OP_arith_shr:
    case TCC_OP_arith_xor: return b == 0 ? x : NULL;
    case TCC_OP_arith_mul: return b == 1 ? x : b == 0 ? c : NULL;
    case TCC_OP_arith_div: return b == 1 ? x : NULL;
    case TCC_OP_arith_floor_div: return b <= 1 ? x : NULL;
    case TCC_OP_arith_and: return b == ones ? x : b == 0 ? c : NULL;
    case TCC_OP_arith_or: return b == 0 ? x : b == ones ? c : NULL;
    default: return NULL;
    }
}

/* ---- f32 ------------------------------------------------------------------------------- */

static bool compare_floats(const char *pred, float a, float b)
{
    if (isnan(a) || isnan(b))
        return pred[0] == 'n';
    return compare_ints(pred, a > b ? 1 : a < b ? -1 : 0, 0);
}

/* The smaller; the number if one is NaN; -0 is smaller than 0. */
static float min_float(float a, float b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}

static bool fold_floats(tcc_opcode code, float a, float b, float *out)
{
    switch (code) {
    case TCC_OP_arith_add: *out = a + b; return true;
    case TCC_OP_arith_sub: *out = a - b; return true;
    case TCC_OP_arith_mul: *out = a * b; return true;
    case TCC_OP_arith_div: *out = a / b; return true;
    case TCC_OP_arith_min: *out = min_float(a, b); return true;
    case TCC_OP_arith_max: *out = -min_float(-a, -b); return true;
    default: return false;
    }
}

/* x * 1, x / 1, x - 0 and x + -0 are x. */
static bool is_float_identity(tcc_opcode code, double b)
{
    switch (code) {
    case TCC_OP_arith_mul:
    case TCC_OP_arith_div: return b == 1;
    case TCC_OP_arith_sub: return b == 0 && !signbit(b);
    case TCC_OP_arith_add: return b == 0 && signbit(b);
    default: return false;
    }
}

/* ---- one op ---------------------------------------------------------------------------- */

typedef struct canonicalizer {
    tcc_builder b;    /* before the op at hand */
    tcc_map replaced; /* value -> what it is equal to */
    TCC_VEC(tcc_op *) dead;
    tcc_arena *scratch;
    bool changed;
} canonicalizer;

/* i is meant in op's element type, not more than 64 bits of it. */
static tcc_value *int_result(canonicalizer *c, const tcc_op *op, int64_t i)
{
    return tcc_build_int(&c->b, op->results[0].type, i);
}

static bool is_associative(tcc_opcode code)
{
    switch (code) {
    case TCC_OP_arith_add:
    case TCC_OP_arith_mul:
    case TCC_OP_arith_min:
    case TCC_OP_arith_max:
    case TCC_OP_arith_and:
    case TCC_OP_arith_or:
    case TCC_OP_arith_xor: return true;
    default: return false;
    }
}

/* (x op c) op b = x op (c op b), on integers. */
static void reassociate(canonicalizer *c, tcc_op *op, int64_t b)
{
    tcc_op *inner = op->operands[0]->def;
    int64_t a, r;
    if (!is_associative(op->code) || !inner || inner->code != op->code ||
        inner->results[0].type != op->results[0].type ||
        inner->operands[0]->type != op->results[0].type ||
        !tcc_value_is_int(inner->operands[1], &a) ||
        !fold_ints(op->code, op->results[0].type->elem, a, b, &r))
        return;
    tcc_value *folded = tcc_build_int(&c->b, op->operands[1]->type, r);
    tcc_op_set_operand(op, 0, inner->operands[0]);
    tcc_op_set_operand(op, 1, folded);
    c->changed = true;
}

static void commute(canonicalizer *c, tcc_op *op)
{
    tcc_value *a = op->operands[0], *b = op->operands[1];
    bool a_is_const = a->def && a->def->code == TCC_OP_arith_const;
    bool b_is_const = b->def && b->def->code == TCC_OP_arith_const;
    if (!(tcc_op_info_get(op->code)->flags & TCC_COMMUTES) || !a_is_const || b_is_const)
        return;
    tcc_op_set_operand(op, 0, b);
    tcc_op_set_operand(op, 1, a);
    c->changed = true;
}

/* At the tensor level what depends on a sum stays so: a kernel without one cannot be computed. */
static bool keeps_sum(const tcc_op *op)
{
    return op->operands[0]->type->kind == TCC_KIND_field;
}

static tcc_value *simplify_binary(canonicalizer *c, tcc_op *op)
{
    tcc_scalar s = op->results[0].type->elem;
    int64_t a, b, r;
    double x, y;
    float f;
    commute(c, op);
    if (tcc_value_is_int(op->operands[1], &b)) {
        if (tcc_value_is_int(op->operands[0], &a))
            return fold_ints(op->code, s, a, b, &r) ? int_result(c, op, r) : NULL;
        tcc_value *same = int_identity(op, b);
        if (same)
            return same;
        if ((op->code == TCC_OP_arith_rem && b == 1) || (op->code == TCC_OP_arith_floor_rem && b <= 1))
            return int_result(c, op, 0);
        reassociate(c, op, b);
    } else if (tcc_value_is_float(op->operands[1], &y)) {
        if (s == TCC_f32 && tcc_value_is_float(op->operands[0], &x))
            return fold_floats(op->code, (float)x, (float)y, &f)
                       ? tcc_build_float(&c->b, op->results[0].type, (double)f)
                       : NULL;
        return is_float_identity(op->code, y) ? op->operands[0] : NULL;
    }
    if (op->operands[0] != op->operands[1] || keeps_sum(op))
        return NULL;
    bool is_float = tcc_scalar_classify(s) == TCC_CLASS_FLOAT;
    switch (op->code) {
    case TCC_OP_arith_min:
    case TCC_OP_arith_max:
    case TCC_OP_arith_and:
    case TCC_OP_arith_or: return op->operands[0];
    case TCC_OP_arith_xor: return int_result(c, op, 0);
    case TCC_OP_arith_sub: return is_float ? NULL : int_result(c, op, 0);
    default: return NULL;
    }
}

static tcc_value *simplify_unary(canonicalizer *c, tcc_op *op)
{
    const tcc_type *type = op->results[0].type;
    const tcc_op *inner = op->operands[0]->def;
    int64_t i;
    double x;
    if (op->code == TCC_OP_arith_neg && inner && inner->code == TCC_OP_arith_neg)
        return inner->operands[0];
    if (tcc_value_is_int(op->operands[0], &i)) {
        if (op->code == TCC_OP_arith_neg || (op->code == TCC_OP_math_abs && i < 0))
            return int_result(c, op, tcc_int_wrap(type->elem, (int64_t)(0 - (uint64_t)i)));
        return int_result(c, op, op->code == TCC_OP_math_relu && i < 0 ? 0 : i);
    }
    if (type->elem != TCC_f32 || !tcc_value_is_float(op->operands[0], &x))
        return NULL;
    x = (float)x;
    if (op->code == TCC_OP_arith_neg)
        x = -x;
    else if (op->code == TCC_OP_math_abs)
        x = fabs(x);
    else
        x = x > 0 ? x : 0;
    return tcc_build_float(&c->b, type, x);
}

static tcc_value *simplify_cmp(canonicalizer *c, tcc_op *op)
{
    const char *pred = tcc_attr_str(&op->attrs, "pred", "eq");
    tcc_value *a = op->operands[0], *b = op->operands[1];
    int64_t i, j;
    double x, y;
    if (tcc_value_is_int(a, &i) && tcc_value_is_int(b, &j))
        return int_result(c, op, compare_ints(pred, i, j));
    if (a == b && tcc_scalar_classify(a->type->elem) != TCC_CLASS_FLOAT && !keeps_sum(op))
        return int_result(c, op, compare_ints(pred, 0, 0));
    if (a->type->elem == TCC_f32 && tcc_value_is_float(a, &x) && tcc_value_is_float(b, &y))
        return int_result(c, op, compare_floats(pred, (float)x, (float)y));
    return NULL;
}

static tcc_value *simplify_select(canonicalizer *c, tcc_op *op)
{
    int64_t cond;
    (void)c;
    if (tcc_value_is_int(op->operands[0], &cond))
        return op->operands[cond ? 1 : 2];
    return op->operands[1] == op->operands[2] ? op->operands[1] : NULL;
}

static tcc_value *simplify_cast(canonicalizer *c, tcc_op *op)
{
    const tcc_type *type = op->results[0].type;
    int64_t i;
    double x;
    if (op->operands[0]->type->elem == type->elem)
        return op->operands[0];
    tcc_scalar_class to = tcc_scalar_classify(type->elem);
    if (tcc_value_is_int(op->operands[0], &i)) {
        if (to == TCC_CLASS_INT)
            return int_result(c, op, tcc_int_wrap(type->elem, i));
        if (type->elem == TCC_f32)
            return tcc_build_float(&c->b, type, (double)(float)i);
    }
    if (tcc_value_is_float(op->operands[0], &x) && op->operands[0]->type->elem == TCC_f32) {
        float f = (float)x;
        if (to == TCC_CLASS_INT && f >= -0x1p63f && f < 0x1p63f)
            return int_result(c, op, tcc_int_saturate(type->elem, (int64_t)f));
    }
    return NULL;
}

/* A constant repeated is a constant. */
static tcc_value *simplify_repeat(canonicalizer *c, tcc_op *op)
{
    int64_t i;
    double x;
    if (tcc_value_is_int(op->operands[0], &i))
        return int_result(c, op, i);
    if (tcc_value_is_float(op->operands[0], &x))
        return tcc_build_float(&c->b, op->results[0].type, x);
    return NULL;
}

/* The extremum of terms times a positive number is that of the terms, times it: rounding keeps their order. Where a
 * schedule names what is stored, that must be left. */
static tcc_value *simplify_reduce(canonicalizer *c, tcc_op *op)
{
    tcc_reduction kind = tcc_reduction_of(op);
    tcc_op *product = op->operands[0]->def;
    tcc_scalar elem = op->results[0].type->elem;
    if ((kind != TCC_REDUCTION_MAX && kind != TCC_REDUCTION_MIN) || !product || product->code != TCC_OP_arith_mul ||
        (elem != TCC_f32 && elem != TCC_f64) || tcc_attr_find(&op->block->func->attrs, "separate"))
        return NULL;
    for (unsigned i = 0; i < 2; i++) {
        double by;
        tcc_value *number = product->operands[i], *terms = product->operands[1 - i];
        if (!tcc_value_is_float(number, &by) || !(by > 0) || !isfinite(by) || terms->type != product->results[0].type)
            continue;
        tcc_value_map *map = tcc_value_map_create(c->scratch);
        tcc_value_map_set(map, op->operands[0], terms);
        tcc_value *extremum = &tcc_op_clone(&c->b, op, map)->results[0];
        extremum->name = NULL;
        tcc_value *r = TCC_EMIT(&c->b, arith_mul, extremum->type, extremum, number);
        r->name = op->results[0].name;
        return r;
    }
    return NULL;
}

typedef tcc_value *simplify_fn(canonicalizer *c, tcc_op *op);

/* Each returns the value to which the op's result is equal, or NULL; it may change the op. */
static simplify_fn *const simplify[TCC_OP_COUNT] = {
    [TCC_OP_arith_add] = simplify_binary,      [TCC_OP_arith_sub] = simplify_binary,
    [TCC_OP_arith_mul] = simplify_binary,      [TCC_OP_arith_div] = simplify_binary,
    [TCC_OP_arith_rem] = simplify_binary,      [TCC_OP_arith_floor_div] = simplify_binary,
    [TCC_OP_arith_min] = simplify_binary,      [TCC_OP_arith_floor_rem] = simplify_binary,
    [TCC_OP_arith_max] = simplify_binary,      [TCC_OP_arith_and] = simplify_binary,
    [TCC_OP_arith_or] = simplify_binary,       [TCC_OP_arith_xor] = simplify_binary,
    [TCC_OP_arith_shl] = simplify_binary,      [TCC_OP_arith_shr] = simplify_binary,
    [TCC_OP_arith_neg] = simplify_unary,       [TCC_OP_math_abs] = simplify_unary,
    [TCC_OP_math_relu] = simplify_unary,       [TCC_OP_arith_cmp] = simplify_cmp,
    [TCC_OP_arith_select] = simplify_select,   [TCC_OP_arith_cast] = simplify_cast,
    [TCC_OP_tile_broadcast] = simplify_repeat, [TCC_OP_vec_splat] = simplify_repeat,
    [TCC_OP_tensor_reduce] = simplify_reduce,
};

/* ---- control flow ---------------------------------------------------------------------- */

static void replace(canonicalizer *c, tcc_op *op, tcc_value *const *values)
{
    for (unsigned i = 0; i < op->n_results; i++)
        *tcc_map_at(&c->replaced, &op->results[i]) = values[i];
    TCC_PUSH(c->scratch, &c->dead, op);
    c->changed = true;
}

static void clear(tcc_block *block)
{
    while (block->last)
        tcc_op_erase(block->last);
}

/* Puts the ops of the region that runs after the scf.if, where the walk comes to them next. */
static void inline_if(canonicalizer *c, tcc_op *op, tcc_block *taken)
{
    static tcc_value *const nothing[1];
    tcc_value *const *values = nothing;
    tcc_builder after = tcc_builder_after(op);
    for (tcc_op *in = taken->first, *next; in; in = next) {
        next = in->next;
        if (in->code == TCC_OP_scf_yield)
            values = in->operands;
        else
            tcc_op_move(&after, in);
    }
    replace(c, op, values);
    clear(op->regions[0]);
    clear(op->regions[1]);
}

/* Whether a loop with known bounds makes one iteration at most. */
static bool makes_one_iteration(const tcc_op *loop, int64_t lo, int64_t hi)
{
    int64_t step;
    return lo < hi && tcc_value_is_int(loop->operands[2], &step) && step > 0 &&
           (uint64_t)hi - (uint64_t)lo <= (uint64_t)step;
}

static void simplify_loop(canonicalizer *c, tcc_op *op)
{
    int64_t lo, hi;
    tcc_block *body = op->regions[0];
    if (!tcc_value_is_int(op->operands[0], &lo) || !tcc_value_is_int(op->operands[1], &hi))
        return;
    if (makes_one_iteration(op, lo, hi)) {
        *tcc_map_at(&c->replaced, body->args[0]) = op->operands[0];
    } else if (lo >= hi && !tcc_attr_int(&op->attrs, "at_least_once", 0)) {
        replace(c, op, op->operands + 3);
        clear(body);
    }
}

static void simplify_control(canonicalizer *c, tcc_op *op)
{
    int64_t cond;
    if (op->code == TCC_OP_scf_if && tcc_value_is_int(op->operands[0], &cond))
        inline_if(c, op, op->regions[cond ? 0 : 1]);
    else if (op->code == TCC_OP_scf_for)
        simplify_loop(c, op);
}

/* ---- the pass -------------------------------------------------------------------------- */

/* What an inlined region yields may itself be replaced later, hence the loop. */
static tcc_value *resolve(const canonicalizer *c, tcc_value *v)
{
    for (tcc_value *equal; (equal = tcc_map_get(&c->replaced, v));)
        v = equal;
    return v;
}

static void visit(canonicalizer *c, tcc_op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        tcc_value *equal = resolve(c, op->operands[i]);
        if (equal == op->operands[i])
            continue;
        tcc_op_set_operand(op, i, equal);
        c->changed = true;
    }
    c->b = tcc_builder_before(op);
    if (op->n_regions) {
        simplify_control(c, op);
        return;
    }
    tcc_value *equal = simplify[op->code] ? simplify[op->code](c, op) : NULL;
    if (equal && equal->type == op->results[0].type) /* a field may have fewer indices */
        replace(c, op, &equal);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    canonicalizer c = {.replaced = TCC_MAP(ctx->scratch), .scratch = ctx->scratch};
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        visit(&c, op);
    while (c.dead.len)
        tcc_op_erase(c.dead.data[--c.dead.len]);
    *changed = c.changed;
    return TCC_OK;
}

const tcc_pass tcc_pass_canonicalize = {
    "canonicalize", "fold constants and bring equal expressions to one form", .run = run};
