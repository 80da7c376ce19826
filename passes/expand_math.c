/* expand-math: compute functions that no target has an instruction for from those that one has:
 * exp2, log2, rcp and fma.
 *
 * Before:  %r = math.sigmoid %a       After:  %0 = arith.mul %a, -1.4426…
 *                                             %1 = math.exp2 %0
 *                                             %2 = arith.add %1, 1.0
 *                                             %r = math.rcp %2
 *
 * Everything is computed in f32, at any level. docs/language.md has the errors that come of the
 * instructions, as wrong as the PTX ISA allows, and of rounding: for x < 0 that of an exponent adds
 * |x| ulps to sigmoid and silu, x^2 to gelu. The polynomials are the best of their degree:
 * fit_math.py derives them.
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
#define LN_2_HIGH 0x1.62e43p-1 /* as an f32 */

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
UNARY(negate, arith_neg)
UNARY(magnitude, math_abs)
UNARY(exp2_of, math_exp2)
UNARY(log2_of, math_log2)
UNARY(reciprocal, math_rcp)
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

static tcc_value *fma_of(expansion *e, tcc_value *a, tcc_value *b, tcc_value *c)
{
    return TCC_EMIT(&e->b, arith_fma, e->type, a, b, c);
}

/* a * factor + b */
static tcc_value *line(expansion *e, tcc_value *a, double factor, double b)
{
    tcc_value *f = number(e, factor);
    return fma_of(e, a, f, number(e, b));
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
        r = fma_of(e, r, x, number(e, p[--n]));
    return r;
}
#define POLYNOMIAL(e, x, p) polynomial(e, x, sizeof(p) / sizeof *(p), p)

/* ---- functions ------------------------------------------------------------------------- */

/* z = x / log 2 is rounded. The rest of x, t, is small: e^x = 2^z e^t = 2^z (1 + t). The product of
 * z and the upper part of log 2 is subtracted exactly. 2^z stays finite, so only t makes a result
 * infinite, or a NaN. */
static tcc_value *expand_exp(expansion *e, tcc_value *x)
{
    const double most = 127.99999, least = -150;
    tcc_value *z = scale(e, x, LOG2_E);
    tcc_value *bounded = min(e, z, number(e, most));
    tcc_value *t = fma_of(e, bounded, number(e, -LN_2_HIGH), x);
    t = fma_of(e, bounded, number(e, -(LN_2 - LN_2_HIGH)), t);
    tcc_value *power = exp2_of(e, bounded);
    tcc_value *r = fma_of(e, power, t, power);
    return where_less(e, z, least, number(e, 0), r);
}

/* Near 1, where the error of log2 is not relative, a polynomial. */
static tcc_value *expand_log(expansion *e, tcc_value *x)
{
    static const double p[] = {-0.50000006,   0.333331972, -0.249992967, 0.200067952,
                               -0.166935891,  0.141905978, -0.120887987, 0.114282563,
                               -0.125481725,  0.107828379, -0.0422024094};
    tcc_value *f = sub(e, x, number(e, 1));
    tcc_value *square = mul(e, f, f);
    tcc_value *near = fma_of(e, square, POLYNOMIAL(e, f, p), f);
    tcc_value *far = scale(e, log2_of(e, x), LN_2);
    return where_less(e, magnitude(e, sub(e, x, number(e, 1.127))), 0.521, near, far);
}

/* With the sign of x, a function that is odd. */
static tcc_value *odd(expansion *e, tcc_value *x, tcc_value *of_magnitude)
{
    return where_less(e, x, 0, negate(e, of_magnitude), of_magnitude);
}

/* Near 0 a polynomial, else 1 - 2 / (e^2|x| + 1). */
static tcc_value *expand_tanh(expansion *e, tcc_value *x)
{
    static const double p[] = {1,             -0.333332598, 0.133308306,
                               -0.0536880232, 0.0204694197, -0.00551516423};
    tcc_value *a = magnitude(e, x), *u = mul(e, x, x);
    tcc_value *near = mul(e, x, POLYNOMIAL(e, u, p)); /* -0 stays what it is */
    tcc_value *power = exp2_of(e, scale(e, a, 2 * LOG2_E));
    tcc_value *far = line(e, reciprocal(e, plus(e, power, 1)), -2, 1);
    return where_less(e, a, 0.65, near, odd(e, x, far));
}

/* Phi(-y), y = root * a >= 0: the part of the normal distribution beyond y. It is
 * e^(-y^2 / 2) t p(t) with t = 1 / (1 + 0.35 y). *rest gets what is left of 1, if it is asked for. */
static tcc_value *normal_tail(expansion *e, tcc_value *a, double root, tcc_value **rest)
{
    static const double p[] = {0.139621407, 0.139861867,  0.119832881, 0.105507962,  -0.0231097341,
                               0.15917401,  -0.255714118, 0.143971637, -0.0291459169};
    tcc_value *t = reciprocal(e, line(e, a, 0.35 * root, 1));
    tcc_value *power = exp2_of(e, mul(e, scale(e, a, -LOG2_E / 2 * root * root), a));
    tcc_value *factor = mul(e, t, POLYNOMIAL(e, t, p));
    if (rest) {
        tcc_value *negative = negate(e, factor);
        *rest = fma_of(e, power, negative, number(e, 1));
    }
    return mul(e, power, factor);
}

/* Near 0 a polynomial, else 1 - 2 Phi(-sqrt 2 |x|). */
static tcc_value *expand_erf(expansion *e, tcc_value *x)
{
    static const double p[] = {1.12837917,    -0.376125574,  0.112823799,
                               -0.0267856698, 0.00502030458, -0.000612774689};
    tcc_value *a = magnitude(e, x);
    tcc_value *near = mul(e, x, POLYNOMIAL(e, mul(e, x, x), p));
    tcc_value *far = line(e, normal_tail(e, a, 1.4142135623730951, NULL), -2, 1);
    return where_less(e, a, 0.9, near, odd(e, x, far));
}

static tcc_value *expand_relu(expansion *e, tcc_value *x)
{
    return max(e, x, number(e, 0));
}

/* The only function of integers is relu, and f32 cannot represent all of them. */
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
    tcc_value *rest, *tail = normal_tail(e, magnitude(e, x), 1, &rest);
    return mul(e, x, where_less(e, x, 0, tail, rest));
}

/* (1 + tanh z) / 2 is the logistic function of 2 z. */
static tcc_value *expand_gelu_tanh(expansion *e, tcc_value *x)
{
    const double outer = -2 * LOG2_E * 0.7978845608028654; /* sqrt(2 / pi) */
    tcc_value *square = mul(e, x, x);
    tcc_value *factor = line(e, square, outer * 0.044715, outer);
    return mul(e, x, logistic(e, mul(e, x, factor)));
}

/* ---- the pass -------------------------------------------------------------------------- */

/* Instructions that each function becomes, about. */
enum {
    N_exp = 8,
    N_log = 21,
    N_tanh = 18,
    N_erf = 30,
    N_sigmoid = 4,
    N_silu = 5,
    N_gelu = 22,
    N_gelu_tanh = 7
};

static const struct {
    tcc_opcode code;
    tcc_value *(*expand)(expansion *e, tcc_value *x);
    size_t instructions;
} expansions[] = {
    {TCC_OP_math_relu, expand_relu, 1},
#define MATH(name, ...) {TCC_OP_math_##name, expand_##name, N_##name},
#define MATH_NATIVE(...)
#include "ir/math.def"
};

size_t tcc_expanded_instructions(tcc_opcode code)
{
    for (size_t i = 0; i < sizeof expansions / sizeof *expansions; i++)
        if (expansions[i].code == code)
            return expansions[i].instructions;
    return 1;
}

static void expand(tcc_op *op, tcc_value *(*function)(expansion *, tcc_value *))
{
    tcc_func *f = op->block->func;
    const tcc_type *type = op->results[0].type;
    expansion e = {.b = tcc_builder_before(op),
                   .type = type->elem == TCC_f64 ? type : tcc_type_with_elem(f->ir, type, TCC_f32),
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
    "expand-math", "compute exp, log, tanh, erf and activations from instructions", .run = run};
