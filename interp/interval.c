/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/interval.h"

#include <math.h>
#include <string.h>

#include "ir/elementwise.h"

/* A float's interval, or an integer's as doubles, which hold every i32. */
typedef struct interval {
    double low, high;
} interval;

static const interval anything = {-(double)INFINITY, (double)INFINITY};
static const interval not_a_number = {(double)NAN, (double)NAN};

static bool is_float(const tcc_type *t)
{
    return tcc_scalar_classify(t->elem) == TCC_CLASS_FLOAT;
}

static bool is_nan(interval x)
{
    return isnan(x.low);
}

static bool is_anything(interval x)
{
    return x.low == -(double)INFINITY && x.high == (double)INFINITY;
}

/* Both or either: what may be NaN and may be a number may be anything. */
static interval hull(interval x, interval y)
{
    if (is_nan(x) || is_nan(y))
        return is_nan(x) && is_nan(y) ? x : anything;
    return (interval){fmin(x.low, y.low), fmax(x.high, y.high)};
}

/* ---- rounding --------------------------------------------------------------------------- */

/* Results of f32 arithmetic are off by half an ulp, or not, where it is contracted; quotients,
 * roots and functions by what the target's instructions and expansions make of them (docs/language.md
 * has the errors; these are many times as large). Denormals may be lost. Of f64 quotients and roots are
 * rounded once, and so are the doubles here: the interval has room for both. */
typedef struct precision {
    double rounding, of_functions, smallest, largest;
} precision;
static const precision single = {0x1p-23, 0x1p-15, 0x1p-126, 0x1.fffffep127},
                       wide = {0x1p-52, 0x1p-50, 0x1p-1022, 0x1.fffffffffffffp1023};

static const precision *precision_of(const tcc_type *t)
{
    return t->elem == TCC_f64 ? &wide : &single;
}

/* Beyond the largest number the machine has infinity, or what a wider intermediate keeps. */
static interval widen(const precision *p, interval x, double relative, double absolute)
{
    if (is_nan(x))
        return x;
    double low = x.low - fabs(x.low) * relative - absolute;
    double high = x.high + fabs(x.high) * relative + absolute;
    if (isnan(low) || isnan(high)) /* an infinity on the wrong side */
        return x.low == x.high ? x : anything;
    return (interval){low < -p->largest ? -(double)INFINITY : low,
                      high > p->largest ? (double)INFINITY : high};
}

static interval rounded(const precision *p, interval x)
{
    return x.low == x.high && isinf(x.low) ? x : widen(p, x, p->rounding, p->smallest);
}

/* ---- arithmetic ------------------------------------------------------------------------- */

/* Smallest and largest of four; NaN among them makes it anything. */
static interval of_corners(double a, double b, double c, double d)
{
    if (isnan(a) || isnan(b) || isnan(c) || isnan(d))
        return anything;
    return (interval){fmin(fmin(a, b), fmin(c, d)), fmax(fmax(a, b), fmax(c, d))};
}

/* Where every operand is one number the result is op's, which may be NaN. */
static interval binary(const precision *p, interval x, interval y, interval result, double exact)
{
    bool points = x.low == x.high && y.low == y.high;
    if (is_nan(x) || is_nan(y) || (points && isnan(exact)))
        return not_a_number;
    if (is_anything(x) || is_anything(y) || isnan(result.low) || isnan(result.high))
        return anything;
    return rounded(p, result);
}

static interval add(const precision *p, interval x, interval y)
{
    return binary(p, x, y, (interval){x.low + y.low, x.high + y.high}, x.low + y.low);
}

static interval negate(interval x)
{
    return (interval){-x.high, -x.low};
}

static interval subtract(const precision *p, interval x, interval y)
{
    return add(p, x, negate(y));
}

static interval multiply(const precision *p, interval x, interval y)
{
    return binary(p, x, y,
                  of_corners(x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high),
                  x.low * y.low);
}

static interval divide(const precision *p, interval x, interval y)
{
    if (!is_nan(x) && !is_nan(y) && y.low <= p->smallest && y.high >= -p->smallest)
        return anything;
    interval r = binary(p, x, y,
                        of_corners(x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high),
                        x.low / y.low);
    return widen(p, r, p->of_functions, p->smallest);
}

/* The number, if the other one is NaN. */
static interval smaller(interval x, interval y)
{
    return (interval){fmin(x.low, y.low), fmin(x.high, y.high)};
}

static interval larger(interval x, interval y)
{
    return (interval){fmax(x.low, y.low), fmax(x.high, y.high)};
}

static interval magnitude(interval x)
{
    double least = x.low <= 0 && x.high >= 0 ? 0 : fmin(fabs(x.low), fabs(x.high));
    if (is_nan(x) || is_anything(x))
        return x;
    return (interval){least, fmax(fabs(x.low), fabs(x.high))};
}

/* ---- functions -------------------------------------------------------------------------- */

#define MATH(name, doc, value, ...)                                                                \
    static double name##_of(double a)                                                              \
    {                                                                                              \
        return value;                                                                              \
    }
#include "ir/math.def"

/* A function that rises, or falls, from `from` on and is NaN below; or that falls to one minimum and
 * rises after it. */
typedef struct curve {
    double (*f)(double x);
    double least; /* the exponent: smaller ones may be 0 */
    double from;
    bool falls, is_positive, has_minimum;
    double at, minimum; /* where it has one */
} curve;

#define EVERYWHERE .from = -(double)INFINITY
#define RISES EVERYWHERE
#define RISES_ABOVE_0 EVERYWHERE, .is_positive = true
#define RISES_FROM_0 .from = 0
#define FALLS_FROM_0 .from = 0, .falls = true, .is_positive = true
#define DIPS(place, value) EVERYWHERE, .has_minimum = true, .at = place, .minimum = value

static const curve curves[TCC_OP_COUNT] = {
    [TCC_OP_math_exp2] = {exp2, -126, RISES_ABOVE_0},
    [TCC_OP_math_log2] = {log2, -126, RISES_FROM_0},
#define MATH(name, doc, value, shape, ulps, below, slope, square, least)                           \
    [TCC_OP_math_##name] = {name##_of, least, shape},
#include "ir/math.def"
};

static interval apply(const precision *p, const curve *c, interval x)
{
    if (is_nan(x) || x.high < c->from)
        return not_a_number;
    if (is_anything(x) || x.low < c->from || (c->falls && x.low == 0)) /* of either sign */
        return anything;
    if (c->has_minimum && isinf(x.low) && x.low < 0) /* times a sigmoid of 0 */
        return anything;
    interval r = {c->f(c->falls ? x.high : x.low), c->f(c->falls ? x.low : x.high)};
    if (c->has_minimum)
        r = (interval){x.low <= c->at && x.high >= c->at ? c->minimum : fmin(r.low, r.high),
                       fmax(r.low, r.high)};
    r = widen(p, r, p->of_functions, p == &wide ? p->smallest : fmax(p->smallest, exp2(c->least)));
    return c->is_positive ? larger(r, (interval){0, 0}) : r;
}

/* ---- choices and conversions ------------------------------------------------------------ */

/* Whether each of less, equal and greater is possible, for floats and for NaNs. */
static interval compare(const char *pred, interval x, interval y)
{
    const tcc_predicate *p = tcc_predicate_get(pred);
    bool nan = is_nan(x) || is_nan(y), any = is_anything(x) || is_anything(y);
    bool less = !nan && x.low < y.high, greater = !nan && x.high > y.low;
    bool equal = !nan && x.low <= y.high && x.high >= y.low;
    bool yes = (less && p->less) || (equal && p->equal) || (greater && p->greater) ||
               (nan && p->unordered);
    bool no = (less && !p->less) || (equal && !p->equal) || (greater && !p->greater) ||
              (nan && !p->unordered);
    return (interval){any || no ? 0 : 1, any || yes};
}

static interval select(interval condition, interval x, interval y)
{
    return condition.low == 1 ? x : condition.high == 0 ? y : hull(x, y);
}

static interval of_type(tcc_scalar elem)
{
    return (interval){(double)tcc_int_saturate(elem, INT64_MIN),
                      (double)tcc_int_saturate(elem, INT64_MAX)};
}

static interval cast(tcc_scalar from, tcc_scalar to, interval x)
{
    bool from_float = tcc_scalar_classify(from) == TCC_CLASS_FLOAT;
    if (tcc_scalar_classify(to) == TCC_CLASS_FLOAT) {
        if (tcc_scalar_widens(from, to) || is_nan(x) || is_anything(x))
            return x;
        double low = tcc_round_float(x.low, to), high = tcc_round_float(x.high, to);
        bool overflows = isnan(low) || isnan(high); /* of a type without infinity, to NaN */
        bool alike = isnan(low) && isnan(high) && (x.low > 0) == (x.high > 0);
        return overflows && !alike ? anything : (interval){low, high};
    }
    if (!from_float)
        return x.low == x.high ? (interval){(double)tcc_int_wrap(to, (int64_t)x.low),
                                            (double)tcc_int_wrap(to, (int64_t)x.low)}
                               : of_type(to);
    return (interval){(double)tcc_int_saturate(to, tcc_truncate(x.low)),
                      (double)tcc_int_saturate(to, tcc_truncate(x.high))};
}

/* Of a number to 16 bits that is multiplied later: by half a unit of its last place, not to a number of the type. */
static interval round_in_step(tcc_scalar to, interval x)
{
    static const precision half = {0x1p-11, 0, 0x1p-25, 65504}, bhalf = {0x1p-8, 0, 0x1p-134, 0x1.fep127};
    const precision *p = to == TCC_f16 ? &half : &bhalf;
    return is_anything(x) ? x : widen(p, x, p->rounding, p->smallest);
}

/* ---- by opcode -------------------------------------------------------------------------- */

static interval evaluate(const tcc_op *op, const interval *x)
{
    const precision *p = precision_of(op->results[0].type);
    switch (op->code) {
    case TCC_OP_arith_add: return add(p, x[0], x[1]);
    case TCC_OP_arith_sub: return subtract(p, x[0], x[1]);
    case TCC_OP_arith_mul: return multiply(p, x[0], x[1]);
    case TCC_OP_arith_fma: return add(p, multiply(p, x[0], x[1]), x[2]);
    case TCC_OP_arith_div: return is_float(op->results[0].type) ? divide(p, x[0], x[1]) : anything;
    case TCC_OP_arith_min: return smaller(x[0], x[1]);
    case TCC_OP_arith_max: return larger(x[0], x[1]);
    case TCC_OP_arith_neg: return negate(x[0]);
    case TCC_OP_math_abs: return magnitude(x[0]);
    case TCC_OP_math_relu: return larger(x[0], (interval){0, 0});
    case TCC_OP_math_roundeven: return (interval){nearbyint(x[0].low), nearbyint(x[0].high)};
    case TCC_OP_arith_cmp: return compare(tcc_attr_str(&op->attrs, "pred", ""), x[0], x[1]);
    case TCC_OP_arith_select: return select(x[0], x[1], x[2]);
    case TCC_OP_arith_cast:
        return cast(op->operands[0]->type->elem, op->results[0].type->elem, x[0]);
    default: return curves[op->code].f ? apply(p, &curves[op->code], x[0]) : anything;
    }
}

/* For integers, without wrapping: an overflow may be any number of the type. */
static interval keep_in_type(tcc_scalar elem, interval x)
{
    interval all = of_type(elem);
    return x.low < all.low || x.high > all.high || isnan(x.low) ? all : x;
}

static interval operand(const tcc_interval_row *row, unsigned which, size_t i)
{
    tcc_cell low = row->a_low[which][i * row->step[which]];
    tcc_cell high = row->a_high[which][i * row->step[which]];
    return is_float(row->op->operands[which]->type) ? (interval){low.f, high.f}
                                                    : (interval){(double)low.i, (double)high.i};
}

/* Whether the result is as exact as its value: a constant's, and an integer's of exact integers. */
static bool is_exact(const tcc_interval_row *row, const interval *x)
{
    const tcc_op *op = row->op;
    bool exact = op->code == TCC_OP_arith_const || !is_float(op->results[0].type) ||
                 (op->code == TCC_OP_arith_cast && !row->in_step);
    for (unsigned i = 0; exact && i < op->n_operands; i++)
        exact = x[i].low == x[i].high;
    return exact;
}

void tcc_intervals(const tcc_interval_row *row)
{
    const tcc_type *type = row->op->results[0].type;
    for (size_t i = 0; i < row->n; i++) {
        interval x[3];
        for (unsigned o = 0; o < row->op->n_operands; o++)
            x[o] = operand(row, o, i);
        if (is_exact(row, x)) {
            row->low[i] = row->high[i] = row->r[i];
        } else if (is_float(type)) {
            interval r = row->in_step ? round_in_step(type->elem, x[0]) : evaluate(row->op, x);
            row->low[i].f = r.low;
            row->high[i].f = r.high;
        } else {
            interval r = keep_in_type(type->elem, evaluate(row->op, x));
            row->low[i].i = tcc_truncate(nearbyint(r.low)); /* `rounded` has widened it a little */
            row->high[i].i = tcc_truncate(nearbyint(r.high));
        }
    }
}

/* ---- sums ------------------------------------------------------------------------------- */

/* How often and by how much an addition changes the sum: once for each term, by half an ulp, and by as much again where
 * it cuts off. Of f64 nothing is cut off: once for the machine, once for this sum in doubles. Sums
 * in 16 bits are rounded to nearest, at most once for each term: by matrix instructions after four products or more. */
typedef struct accumulation {
    double unit, per_term, smallest, largest; /* unit: half an ulp of 1 */
} accumulation;
static const accumulation accumulations[TCC_SCALAR_COUNT] = {
    [TCC_f64] = {0x1p-53, 2, 0x1p-1022, 0x1.fffffffffffffp1023},
    [TCC_f32] = {0x1p-24, 2, 0x1p-126, 0x1.fffffep127},
    [TCC_f16] = {0x1p-11, 1, 0x1p-24, 65504},
    [TCC_bf16] = {0x1p-8, 1, 0x1p-126, 0x1.fep127},
};

static bool is_8_bit_float(const tcc_value *v)
{
    const tcc_op *op = v->def;
    const tcc_type *from = op && op->code == TCC_OP_arith_cast ? op->operands[0]->type : v->type;
    return from->elem == TCC_e4m3 || from->elem == TCC_e5m2;
}

bool tcc_adds_8_bit_products(const tcc_op *sum)
{
    const tcc_op *term = sum->operands[0]->def;
    return term && term->code == TCC_OP_arith_mul && is_8_bit_float(term->operands[0]) &&
           is_8_bit_float(term->operands[1]);
}

enum { FEW = 16 }; /* terms that an instruction adds beside the sum */

/* Each time the partial sum is at most as large as all terms together. */
static double error_of_sum(const accumulation *in, double n_terms, double magnitudes)
{
    return in->unit * in->per_term * (n_terms + FEW) * magnitudes + n_terms * in->smallest;
}

/* Ada's and Hopper's tensor cores align 16 or 32 products of 8-bit floats, and the sum, to the largest exponent among
 * them, cut each off 13 bits below it, and cut the result off after as many (arXiv 2412.19437, 2511.10909): in all one
 * cut for each product and two for each instruction. A cut makes a number smaller, so no partial sum is larger than all
 * positive terms together or than all negative ones, which is what each cut is relative to. */
static double error_of_8_bit_products(double n_terms, double magnitudes, double value)
{
    double most = (magnitudes + value) / 2;
    return 0x1p-13 * (n_terms * (1 + 2.0 / 16) + FEW) * most;
}

void tcc_interval_of_sum(tcc_scalar elem, bool of_8_bits, double n_terms, double magnitudes, double *low,
                         double *high)
{
    const accumulation *in = &accumulations[elem];
    double value = fmax(fabs(*low), fabs(*high));
    double error = n_terms > 0 ? error_of_sum(in, n_terms, magnitudes) : 0;
    bool infinite = isinf(*low) && *low == *high; /* one of its terms is */
    if (isnan(*low) || infinite)
        return;
    if (of_8_bits && n_terms > 0)
        error += error_of_8_bit_products(n_terms, magnitudes, value);
    bool overflows = !(magnitudes + error <= in->largest);
    *low = overflows ? anything.low : *low - error;
    *high = overflows ? anything.high : *high + error;
}
