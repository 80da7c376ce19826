/* expand-math: compute functions that no target has an instruction for from those that one has:
 * exp2, log2, sqrt, rsqrt and division.
 *
 * Before:  %r = math.sigmoid %a       After:  %0 = arith.mul %a, -1.4426…
 *                                             %1 = math.exp2 %0
 *                                             %2 = arith.add %1, 1.0
 *                                             %r = arith.div 1.0, %2
 *
 * Everything is computed in f32, at any level. With exp2, log2 and division good to 2^-22 the
 * relative error is at most 7 * 2^-23. For x < 0 the rounding of an exponent adds |x| 2^-23 to
 * sigmoid and silu, x^2 2^-23 to gelu and 2 (|x| + x^2) 2^-23 to gelu_tanh. Results below 2^-126
 * may be zero. The polynomials are the best of their degree: fit_math.py derives them.
 *
 * Requires nothing. Preserves control flow.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/passes.h"

/* Where the ops of an expansion go, and their type. */
typedef struct expansion {
    tcc_builder b;
    const tcc_type *type, *bool_type;
} expansion;

#define LOG2_E 1.4426950408889634
#define LN_2 0.6931471805599453

/* ---- building -------------------------------------------------------------------------- */

static tcc_value *number(expansion *e, double v)
{
    return tcc_build_float(&e->b, e->type, v);
}

#define BINARY(name, op)                                                                           \
    static tcc_value *name(expansion *e, tcc_value *a, tcc_value *b)                               \
    {                                                                                              \
        return TCC_EMIT(&e->b, op, e->type, a, b);                                                 \
    }
#define UNARY(name, op)                                                                            \
    static tcc_value *name(expansion *e, tcc_value *a)                                             \
    {                                                                                              \
        return TCC_EMIT(&e->b, op, e->type, a);                                                    \
    }
BINARY(add, arith_add)
BINARY(sub, arith_sub)
BINARY(mul, arith_mul)
BINARY(min, arith_min)
BINARY(max, arith_max)
BINARY(divide, arith_div)
UNARY(negate, arith_neg)
UNARY(magnitude, math_abs)
UNARY(exp2_of, math_exp2)
UNARY(log2_of, math_log2)
#undef BINARY
#undef UNARY

static tcc_value *scale(expansion *e, tcc_value *a, double factor)
{
    return mul(e, a, number(e, factor));
}

static tcc_value *plus(expansion *e, tcc_value *a, double b)
{
    return add(e, a, number(e, b));
}

static tcc_value *one_minus(expansion *e, tcc_value *a)
{
    return sub(e, number(e, 1), a);
}

static tcc_value *reciprocal(expansion *e, tcc_value *a)
{
    return divide(e, number(e, 1), a);
}

/* a < limit ? x : y */
static tcc_value *where_less(expansion *e, tcc_value *a, double limit, tcc_value *x, tcc_value *y)
{
    tcc_value *cond = TCC_EMIT(&e->b, arith_cmp, e->bool_type, a, number(e, limit));
    tcc_attr_set_str(e->b.func->ir, &cond->def->attrs, "pred", "lt");
    return TCC_EMIT(&e->b, arith_select, e->type, cond, x, y);
}

/* p[0] + p[1] x + p[2] x^2 + … */
static tcc_value *polynomial(expansion *e, tcc_value *x, size_t n, const double *p)
{
    tcc_value *r = number(e, p[--n]);
    while (n)
        r = plus(e, mul(e, r, x), p[--n]);
    return r;
}
#define POLYNOMIAL(e, x, p) polynomial(e, x, sizeof(p) / sizeof *(p), p)

/* ---- functions ------------------------------------------------------------------------- */

/* 2^n e^r, with n the integer next to x / log 2 and r = x - n log 2. Adding and subtracting
 * 1.5 * 2^23 rounds to an integer; log 2 is split so that its product with n is exact. */
static tcc_value *expand_exp(expansion *e, tcc_value *x)
{
    const double round = 12582912, ln_2_high = 0.693359375, ln_2_low = LN_2 - ln_2_high;
    tcc_value *n = plus(e, scale(e, x, LOG2_E), round);
    n = sub(e, n, number(e, round));
    n = max(e, n, number(e, -150));
    n = min(e, n, number(e, 127)); /* 2^n is finite */
    tcc_value *r = sub(e, x, scale(e, n, ln_2_high));
    r = sub(e, r, scale(e, n, ln_2_low));
    tcc_value *power = exp2_of(e, n);
    return mul(e, power, exp2_of(e, scale(e, r, LOG2_E)));
}

/* Near 1, where the error of log2 is not relative, a polynomial. */
static tcc_value *expand_log(expansion *e, tcc_value *x)
{
    static const double p[] = {-0.499999881, 0.333340347, -0.250023127, 0.199588224,
                               -0.165535033, 0.149370074, -0.14449057,  0.0886084437};
    tcc_value *f = sub(e, x, number(e, 1));
    tcc_value *square = mul(e, f, f);
    tcc_value *near = add(e, f, mul(e, square, POLYNOMIAL(e, f, p)));
    tcc_value *far = scale(e, log2_of(e, x), LN_2);
    return where_less(e, magnitude(e, sub(e, x, number(e, 1.06))), 0.36, near, far);
}

/* With the sign of x, a function that is odd. */
static tcc_value *odd(expansion *e, tcc_value *x, tcc_value *of_magnitude)
{
    return where_less(e, x, 0, negate(e, of_magnitude), of_magnitude);
}

/* Near 0 a polynomial, else 1 - 2 / (e^2|x| + 1). */
static tcc_value *expand_tanh(expansion *e, tcc_value *x)
{
    static const double p[] = {-0.333332598, 0.133308306, -0.0536880232, 0.0204694197,
                               -0.00551516423};
    tcc_value *a = magnitude(e, x), *u = mul(e, x, x);
    tcc_value *cube = mul(e, x, u);
    tcc_value *near = add(e, x, mul(e, cube, POLYNOMIAL(e, u, p)));
    tcc_value *power = exp2_of(e, scale(e, a, 2 * LOG2_E));
    tcc_value *half_rest = reciprocal(e, plus(e, power, 1));
    tcc_value *far = one_minus(e, scale(e, half_rest, 2));
    return where_less(e, a, 0.65, near, odd(e, x, far));
}

/* Phi(-y), y = root * a >= 0: the part of the normal distribution beyond y. It is
 * e^(-y^2 / 2) t p(t) with t = 1 / (1 + 0.35 y). */
static tcc_value *normal_tail(expansion *e, tcc_value *a, double root)
{
    static const double p[] = {0.139621407, 0.139861867,  0.119832881, 0.105507962,  -0.0231097341,
                               0.15917401,  -0.255714118, 0.143971637, -0.0291459169};
    tcc_value *t = reciprocal(e, plus(e, scale(e, a, 0.35 * root), 1));
    tcc_value *power = exp2_of(e, mul(e, scale(e, a, -LOG2_E / 2 * root * root), a));
    return mul(e, power, mul(e, t, POLYNOMIAL(e, t, p)));
}

/* Near 0 a polynomial, else 1 - 2 Phi(-sqrt 2 |x|). */
static tcc_value *expand_erf(expansion *e, tcc_value *x)
{
    static const double p[] = {1.12837917,    -0.376125574,  0.112823799,
                               -0.0267856698, 0.00502030458, -0.000612774689};
    tcc_value *a = magnitude(e, x);
    tcc_value *near = mul(e, x, POLYNOMIAL(e, mul(e, x, x), p));
    tcc_value *far = one_minus(e, scale(e, normal_tail(e, a, 1.4142135623730951), 2));
    return where_less(e, a, 0.9, near, odd(e, x, far));
}

static tcc_value *expand_relu(expansion *e, tcc_value *x)
{
    return max(e, x, number(e, 0));
}

/* Of functions, integers have relu alone, and f32 cannot hold them all. */
static tcc_value *expand_integer(tcc_op *op)
{
    tcc_builder b = tcc_builder_before(op);
    const tcc_type *type = op->results[0].type;
    return TCC_EMIT(&b, arith_max, type, op->operands[0], tcc_build_int(&b, type, 0));
}

/* 1 / (1 + 2^z) */
static tcc_value *logistic(expansion *e, tcc_value *z)
{
    return reciprocal(e, plus(e, exp2_of(e, z), 1));
}

static tcc_value *expand_sigmoid(expansion *e, tcc_value *x)
{
    return logistic(e, scale(e, x, -LOG2_E));
}

static tcc_value *expand_silu(expansion *e, tcc_value *x)
{
    return mul(e, x, expand_sigmoid(e, x));
}

/* x Phi(x). For x < 0 the tail itself, not 1 + erf, keeps small results precise. */
static tcc_value *expand_gelu(expansion *e, tcc_value *x)
{
    tcc_value *tail = normal_tail(e, magnitude(e, x), 1);
    return mul(e, x, where_less(e, x, 0, tail, one_minus(e, tail)));
}

/* (1 + tanh z) / 2 is the logistic function of 2 z. */
static tcc_value *expand_gelu_tanh(expansion *e, tcc_value *x)
{
    const double outer = -2 * LOG2_E * 0.7978845608028654; /* sqrt(2 / pi) */
    tcc_value *square = mul(e, x, x);
    tcc_value *factor = plus(e, scale(e, square, outer * 0.044715), outer);
    return mul(e, x, logistic(e, mul(e, x, factor)));
}

/* ---- the pass -------------------------------------------------------------------------- */

static const struct {
    tcc_opcode code;
    tcc_value *(*expand)(expansion *e, tcc_value *x);
} expansions[] = {
    {TCC_OP_math_exp, expand_exp},
    {TCC_OP_math_log, expand_log},
    {TCC_OP_math_tanh, expand_tanh},
    {TCC_OP_math_erf, expand_erf},
    {TCC_OP_math_relu, expand_relu},
    {TCC_OP_math_sigmoid, expand_sigmoid},
    {TCC_OP_math_silu, expand_silu},
    {TCC_OP_math_gelu, expand_gelu},
    {TCC_OP_math_gelu_tanh, expand_gelu_tanh},
};

static void expand(tcc_op *op, tcc_value *(*function)(expansion *, tcc_value *))
{
    tcc_func *f = op->block->func;
    const tcc_type *type = op->results[0].type;
    expansion e = {.b = tcc_builder_before(op),
                   .type = tcc_type_with_elem(f->ir, type, TCC_f32),
                   .bool_type = tcc_type_with_elem(f->ir, type, TCC_i1)};
    tcc_value *x = op->operands[0], *r;
    if (tcc_scalar_classify(type->elem) == TCC_CLASS_INT) {
        r = expand_integer(op);
    } else {
        bool narrow = type != e.type;
        r = function(&e, narrow ? TCC_EMIT(&e.b, arith_cast, e.type, x) : x);
        r = narrow ? TCC_EMIT(&e.b, arith_cast, type, r) : r;
    }
    tcc_replace_uses(&op->results[0], r);
    tcc_op_erase(op);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    (void)ctx;
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = tcc_walk_next(op, f->body);
        for (size_t i = 0; i < sizeof expansions / sizeof *expansions; i++)
            if (expansions[i].code == op->code) {
                expand(op, expansions[i].expand);
                *changed = true;
                break;
            }
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_expand_math = {
    "expand-math", "compute exp, log, tanh, erf and activations from instructions", run};
