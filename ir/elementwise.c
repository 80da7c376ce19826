/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/elementwise.h"

#include <math.h>
#include <string.h>

#include "ir/index.h"

static bool is_float(const tcc_type *t)
{
    return tcc_scalar_classify(t->elem) == TCC_CLASS_FLOAT;
}

static inline tcc_cell operand(const tcc_elements *e, int which, size_t i)
{
    return e->a[which][i * e->step[which]];
}

/* Whether no operand repeats an element, as none does on machines. */
static bool is_dense(const tcc_elements *e)
{
    bool dense = true;
    for (unsigned k = 0; k < e->op->n_operands; k++)
        dense &= e->step[k] == 1;
    return dense;
}

/* Defines map_ID by its body, which dense rows have for themselves, where loops over them can be of vectors. */
#define MAP_OF(id)                                                                                 \
    static inline __attribute__((always_inline)) void map_any_##id(const tcc_elements *e);         \
    static void map_##id(const tcc_elements *e)                                                    \
    {                                                                                              \
        if (is_dense(e)) {                                                                         \
            tcc_elements dense = *e;                                                               \
            dense.step[0] = dense.step[1] = dense.step[2] = 1;                                     \
            map_any_##id(&dense);                                                                  \
        } else {                                                                                   \
            map_any_##id(e);                                                                       \
        }                                                                                          \
    }                                                                                              \
    static inline __attribute__((always_inline)) void map_any_##id(const tcc_elements *e)

/* ---- numbers --------------------------------------------------------------------------- */

/* The smaller; the number if one is NaN; -0 is smaller than 0, which C leaves open. */
static double min_float(double a, double b)
{
    return a == b ? (signbit(a) ? a : b) : fmin(a, b);
}

static double max_float(double a, double b)
{
    return a == b ? (signbit(a) ? b : a) : fmax(a, b);
}

/* Zero for a subnormal f32, with its sign. */
static double flush(double a)
{
    return fabs(a) < 0x1p-126 ? copysign(0, a) : a;
}

/* a * b + c of f32 numbers, so that rounding it to f32 gives the nearest: the product is exact in
 * double, and a sum that is not gets an odd last bit, which no midpoint of two f32 has. */
static double fma_f32(double a, double b, double c)
{
    double p = a * b, s = p + c, rest = s - p;
    double error = (p - (s - rest)) + (c - rest);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    if (!isfinite(s) || error == 0 || bits & 1)
        return s;
    return nextafter(s, error > 0 ? (double)INFINITY : -(double)INFINITY);
}

/* Signed integers wrap; unsigned arithmetic says so to the C compiler. */
static int64_t add_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t sub_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t mul_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t div_int(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? sub_int(0, a) : a / b;
}

static int64_t rem_int(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return tcc_floor_div(a, b < 1 ? 1 : b);
}

static int64_t floor_rem(int64_t a, int64_t b)
{
    return b < 1 ? 0 : a - b * tcc_floor_div(a, b);
}

static int64_t shl_int(int64_t a, int64_t b)
{
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

static int64_t shr_int(int64_t a, int64_t b, tcc_scalar elem)
{
    uint64_t bits = tcc_encode((tcc_cell){.i = a}, elem);
    return b < 0 || b > 63 ? 0 : (int64_t)(bits >> b);
}

/* ---- rows ------------------------------------------------------------------------------ */

#define UNARY(id, float_result, int_result)                                                        \
    MAP_OF(id)                                                                                     \
    {                                                                                              \
        if (is_float(e->op->operands[0]->type)) {                                                  \
            for (size_t i = 0; i < e->n; i++) {                                                    \
                double a = operand(e, 0, i).f;                                                     \
                e->r[i].f = (float_result);                                                        \
            }                                                                                      \
        } else {                                                                                   \
            for (size_t i = 0; i < e->n; i++) {                                                    \
                int64_t a = operand(e, 0, i).i;                                                    \
                e->r[i].i = (int_result);                                                          \
            }                                                                                      \
        }                                                                                          \
    }

#define BINARY(id, float_result, int_result)                                                       \
    MAP_OF(id)                                                                                     \
    {                                                                                              \
        if (is_float(e->op->operands[0]->type)) {                                                  \
            for (size_t i = 0; i < e->n; i++) {                                                    \
                double a = operand(e, 0, i).f, b = operand(e, 1, i).f;                             \
                e->r[i].f = (float_result);                                                        \
            }                                                                                      \
        } else {                                                                                   \
            for (size_t i = 0; i < e->n; i++) {                                                    \
                int64_t a = operand(e, 0, i).i, b = operand(e, 1, i).i;                            \
                e->r[i].i = (int_result);                                                          \
            }                                                                                      \
        }                                                                                          \
    }

#define FLOAT_UNARY(id, result)                                                                    \
    static void map_##id(const tcc_elements *e)                                                    \
    {                                                                                              \
        for (size_t i = 0; i < e->n; i++) {                                                        \
            double a = operand(e, 0, i).f;                                                         \
            e->r[i].f = (result);                                                                  \
        }                                                                                          \
    }

#define INT_BINARY(id, result)                                                                     \
    MAP_OF(id)                                                                                     \
    {                                                                                              \
        for (size_t i = 0; i < e->n; i++) {                                                        \
            int64_t a = operand(e, 0, i).i, b = operand(e, 1, i).i;                                \
            e->r[i].i = (result);                                                                  \
        }                                                                                          \
    }

/* clang-format off */
BINARY(arith_add, a + b, add_int(a, b))
BINARY(arith_sub, a - b, sub_int(a, b))
BINARY(arith_mul, a * b, mul_int(a, b))
BINARY(arith_div, a / b, div_int(a, b))
BINARY(arith_min, min_float(a, b), a < b ? a : b)
BINARY(arith_max, max_float(a, b), a > b ? a : b)
INT_BINARY(arith_rem, rem_int(a, b))
INT_BINARY(arith_floor_div, floor_div(a, b))
INT_BINARY(arith_floor_rem, floor_rem(a, b))
INT_BINARY(arith_and, a & b)
INT_BINARY(arith_or, a | b)
INT_BINARY(arith_xor, a ^ b)
INT_BINARY(arith_shl, shl_int(a, b))
INT_BINARY(arith_shr, shr_int(a, b, e->op->results[0].type->elem))
UNARY(arith_neg, -a, sub_int(0, a))
UNARY(math_abs, fabs(a), a < 0 ? sub_int(0, a) : a)
UNARY(math_relu, max_float(a, 0), a > 0 ? a : 0)
FLOAT_UNARY(math_exp2, flush(exp2(a)))
FLOAT_UNARY(math_log2, log2(a))
FLOAT_UNARY(math_rcp, flush(1 / flush(a)))
FLOAT_UNARY(math_roundeven, nearbyint(a))
#define MATH(name, doc, value, ...) FLOAT_UNARY(math_##name, value)
#include "ir/math.def"
/* clang-format on */

static void map_arith_const(const tcc_elements *e)
{
    const tcc_attr *value = &tcc_attr_find(&e->op->attrs, "value")->value;
    tcc_scalar elem = e->op->results[0].type->elem;
    tcc_cell v = value->kind == TCC_ATTR_FLOAT ? (tcc_cell){.f = tcc_round_float(value->f, elem)}
                                               : (tcc_cell){.i = value->i};
    for (size_t i = 0; i < e->n; i++)
        e->r[i] = v;
}

static void map_arith_fma(const tcc_elements *e)
{
    double (*multiply_add)(double, double, double) = e->op->results[0].type->elem == TCC_f64 ? fma : fma_f32;
    for (size_t i = 0; i < e->n; i++)
        e->r[i].f = multiply_add(operand(e, 0, i).f, operand(e, 1, i).f, operand(e, 2, i).f);
}

const tcc_predicate *tcc_predicate_get(const char *name)
{
    static const tcc_predicate predicates[] = {
        {"eq", false, true, false, false}, {"ne", true, false, true, true},
        {"lt", true, false, false, false}, {"le", true, true, false, false},
        {"gt", false, false, true, false}, {"ge", false, true, true, false},
    };
    size_t p = 0;
    while (strcmp(predicates[p].name, name))
        p++;
    return &predicates[p];
}

static void map_arith_cmp(const tcc_elements *e)
{
    const tcc_predicate *p = tcc_predicate_get(tcc_attr_str(&e->op->attrs, "pred", ""));
    bool floats = is_float(e->op->operands[0]->type);
    for (size_t i = 0; i < e->n; i++) {
        tcc_cell a = operand(e, 0, i), b = operand(e, 1, i);
        bool less = floats ? a.f < b.f : a.i < b.i;
        bool greater = floats ? a.f > b.f : a.i > b.i;
        bool equal = floats ? a.f == b.f : a.i == b.i;
        e->r[i].i = less      ? p->less
                    : greater ? p->greater
                    : equal   ? p->equal
                              : p->unordered;
    }
}

static void map_arith_select(const tcc_elements *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->r[i] = operand(e, operand(e, 0, i).i ? 1 : 2, i);
}

static void map_arith_cast(const tcc_elements *e)
{
    tcc_scalar to = e->op->results[0].type->elem;
    bool from_float = is_float(e->op->operands[0]->type);
    bool to_float = is_float(e->op->results[0].type);
    for (size_t i = 0; i < e->n; i++) {
        tcc_cell a = operand(e, 0, i);
        if (to_float)
            e->r[i].f = tcc_round_float(from_float ? a.f : (double)a.i, to);
        else
            e->r[i].i = from_float ? tcc_int_saturate(to, tcc_truncate(a.f)) : a.i;
    }
}

/* ---- by opcode ------------------------------------------------------------------------- */

static void (*const maps[TCC_OP_COUNT])(const tcc_elements *) = {
#define MAP(id) [TCC_OP_##id] = map_##id,
    TCC_ELEMENTWISE_OPS(MAP)
#define MATH(name, ...) MAP(math_##name)
#include "ir/math.def"
#undef MAP
};

/* What depends on poison is poison, also where a function would leave a NaN out. */
static void keep_poison(const tcc_elements *e)
{
    if (e->op->code == TCC_OP_arith_select) /* takes one operand as it is */
        return;
    for (unsigned k = 0; k < e->op->n_operands; k++) {
        bool any_nan = false;
        if (!is_float(e->op->operands[k]->type))
            continue;
        for (size_t i = 0; i < e->n; i++)
            any_nan |= isnan(operand(e, (int)k, i).f);
        for (size_t i = 0; any_nan && i < e->n; i++)
            if (tcc_is_poison(operand(e, (int)k, i).f))
                e->r[i].f = tcc_poison();
    }
}

bool tcc_elementwise(const tcc_elements *e, bool machine)
{
    if (!maps[e->op->code])
        return false;
    maps[e->op->code](e);
    const tcc_type *type = e->op->results[0].type;
    const tcc_scalar elem = type->elem;
    if (elem == TCC_i32) {
        for (size_t i = 0; i < e->n; i++)
            e->r[i].i = (int32_t)e->r[i].i;
        return true;
    }
    if (!is_float(type)) {
        for (size_t i = 0; i < e->n; i++)
            e->r[i].i = tcc_int_wrap(elem, e->r[i].i);
        return true;
    }
    keep_poison(e);
    for (size_t i = 0; machine && i < e->n; i++)
        e->r[i].f = tcc_round_float(e->r[i].f, elem);
    return true;
}
