/* The expansions are computed here in f32, with exp2, log2 and division as wrong as an
 * instruction may be, in either direction.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <check.h>
#include <float.h>
#include <math.h>
#include <mpfr.h>

#include "passes/passes.h"
#include "support/map.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;
static tcc_ir *ir;

static void setup(void)
{
    arena = tcc_arena_create(NULL);
    ir = tcc_ir_create(arena);
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

/* Whether every target has an instruction for it. */
static bool is_native(tcc_opcode code)
{
    static const bool native[TCC_OP_COUNT] = {
#define MATH(...)
#define MATH_NATIVE(name, ...) [TCC_OP_math_##name] = true,
#include "ir/math.def"
    };
    return native[code];
}

/* func @f(%x: type) { %0 = code %x }, expanded: its result is the last op's. */
static tcc_func *expanded(tcc_opcode code, const tcc_type *type)
{
    tcc_func *f = tcc_func_create(ir, "f", (tcc_loc){1, 1});
    tcc_value *x = tcc_block_add_arg(f->body, type, "x");
    tcc_builder b = tcc_builder_at_end(f->body);
    tcc_op_create(&b, code, 1, &x, 1, &type);
    tcc_pass_ctx ctx = {.ir = ir, .scratch = arena};
    bool changed = false;
    ck_assert_int_eq(tcc_pass_expand_math.run(&ctx, f, &changed), TCC_OK);
    ck_assert(changed == !is_native(code));
    return f;
}

/* ---- evaluation ------------------------------------------------------------------------ */

/* How wrong instructions are, from -1 to 1 times what the PTX ISA allows, which is more than RDNA's
 * have. */
typedef struct wrongness {
    int exp2, other;
} wrongness;

/* The f32 that is farthest from v and not more than `most` away, on the side of `side`. */
static float off(double v, int side, double most)
{
    if (!isfinite(v))
        return (float)v;
    float r = (float)(v + side * most);
    return !isfinite(r) || fabs((double)r - v) <= most ? r : nextafterf(r, (float)v);
}

static double flush(double v)
{
    return fabs(v) < 0x1p-126 ? copysign(0, v) : v;
}

static float evaluate_op(const tcc_op *op, const float *a, wrongness w)
{
    double r, size;
    switch (op->code) {
    case TCC_OP_arith_const: return (float)tcc_attr_find(&op->attrs, "value")->value.f;
    case TCC_OP_arith_add: return a[0] + a[1];
    case TCC_OP_arith_sub: return a[0] - a[1];
    case TCC_OP_arith_mul: return a[0] * a[1];
    case TCC_OP_arith_fma: return fmaf(a[0], a[1], a[2]);
    case TCC_OP_arith_min: return fminf(a[0], a[1]);
    case TCC_OP_arith_max: return fmaxf(a[0], a[1]);
    case TCC_OP_arith_cmp: return a[0] < a[1] ? 1 : 0;
    case TCC_OP_arith_select: return a[0] != 0 ? a[1] : a[2];
    case TCC_OP_arith_neg: return -a[0];
    case TCC_OP_math_abs: return fabsf(a[0]);
    case TCC_OP_math_rcp:
        r = flush(1 / flush((double)a[0]));
        return off(r, w.other, fabs(r) * 0x1p-23);
    case TCC_OP_math_sqrt: r = sqrt((double)a[0]); return off(r, w.other, r * 0x1p-23);
    case TCC_OP_math_rsqrt: r = 1 / sqrt((double)a[0]); return off(r, w.other, fabs(r) * exp2(-22.9));
    case TCC_OP_math_exp2: r = flush(exp2((double)a[0])); return off(r, w.exp2, r * exp2(-22.5));
    case TCC_OP_math_log2:
        r = log2((double)a[0]);
        size = a[0] > 0.5f && a[0] < 2 ? 1 : fabs(r);
        return off(r, w.other, size * exp2(-22.6));
    default: ck_abort_msg("%s is not an instruction", tcc_op_info_get(op->code)->name);
    }
}

/* A function's ops with the places of their operands: the argument is at 0, op i's result at i + 1.
 */
enum { MAX_OPS = 127, MAX_OPERANDS = 3 };
typedef struct program {
    size_t n;
    const tcc_op *ops[MAX_OPS];
    size_t places[MAX_OPS][MAX_OPERANDS];
} program;

static program program_of(const tcc_func *f)
{
    program p = {0};
    tcc_map places = TCC_MAP(arena);
    *tcc_map_at(&places, f->body->args[0]) = (void *)(uintptr_t)1;
    for (const tcc_op *op = f->body->first; op; op = op->next, p.n++) {
        ck_assert(p.n < MAX_OPS && op->n_operands <= MAX_OPERANDS);
        p.ops[p.n] = op;
        for (unsigned i = 0; i < op->n_operands; i++)
            p.places[p.n][i] = (uintptr_t)tcc_map_get(&places, op->operands[i]) - 1;
        *tcc_map_at(&places, &op->results[0]) = (void *)(uintptr_t)(p.n + 2);
    }
    return p;
}

static float evaluate(const program *p, float x, wrongness w)
{
    float values[MAX_OPS + 1] = {x};
    for (size_t k = 0; k < p->n; k++) {
        float a[MAX_OPERANDS] = {0};
        for (unsigned i = 0; i < p->ops[k]->n_operands; i++)
            a[i] = values[p->places[k][i]];
        values[k + 1] = evaluate_op(p->ops[k], a, w);
    }
    return values[p->n];
}

static const wrongness exact = {0, 0};

/* ---- what it should be: exact_NAME for each of ir/math.def ------------------------------- */

/* All are computed with 200 bits, r being the result and x unchanged. */
enum { PRECISION = 200 };

#define EXACT_BY_MPFR(name)                                                                        \
    static void exact_##name(mpfr_t r, const mpfr_t x)                                             \
    {                                                                                              \
        mpfr_##name(r, x, MPFR_RNDN);                                                              \
    }
EXACT_BY_MPFR(exp)
EXACT_BY_MPFR(log)
EXACT_BY_MPFR(sqrt)
EXACT_BY_MPFR(tanh)
EXACT_BY_MPFR(erf)

static void exact_rsqrt(mpfr_t r, const mpfr_t x)
{
    exact_sqrt(r, x);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

/* 1 / (1 + exp(-x)) */
static void exact_sigmoid(mpfr_t r, const mpfr_t x)
{
    mpfr_neg(r, x, MPFR_RNDN);
    mpfr_exp(r, r, MPFR_RNDN);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

static void exact_silu(mpfr_t r, const mpfr_t x)
{
    exact_sigmoid(r, x);
    mpfr_mul(r, r, x, MPFR_RNDN);
}

/* x * erfc(-x / sqrt 2) / 2 */
static void exact_gelu(mpfr_t r, const mpfr_t x)
{
    mpfr_sqrt_ui(r, 2, MPFR_RNDN);
    mpfr_div(r, x, r, MPFR_RNDN);
    mpfr_neg(r, r, MPFR_RNDN);
    mpfr_erfc(r, r, MPFR_RNDN);
    mpfr_mul(r, r, x, MPFR_RNDN);
    mpfr_div_ui(r, r, 2, MPFR_RNDN);
}

/* x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 x^3)), the factor being sqrt(8 / pi) */
static void exact_gelu_tanh(mpfr_t r, const mpfr_t x)
{
    mpfr_t inner;
    mpfr_init2(inner, PRECISION);
    mpfr_sqr(inner, x, MPFR_RNDN);
    mpfr_mul_ui(inner, inner, 44715, MPFR_RNDN);
    mpfr_div_ui(inner, inner, 1000000, MPFR_RNDN);
    mpfr_add_ui(inner, inner, 1, MPFR_RNDN);
    mpfr_mul(inner, inner, x, MPFR_RNDN);
    mpfr_const_pi(r, MPFR_RNDN);
    mpfr_ui_div(r, 8, r, MPFR_RNDN);
    mpfr_sqrt(r, r, MPFR_RNDN);
    mpfr_mul(inner, inner, r, MPFR_RNDN);
    exact_sigmoid(r, inner);
    mpfr_mul(r, r, x, MPFR_RNDN);
    mpfr_clear(inner);
}

static void exact_relu(mpfr_t r, const mpfr_t x)
{
    mpfr_set(r, x, MPFR_RNDN);
    if (mpfr_sgn(x) < 0)
        mpfr_set_zero(r, 1);
}

static long double exact_at(void (*function)(mpfr_t, const mpfr_t), float x)
{
    mpfr_t r, at;
    mpfr_inits2(PRECISION, r, at, (mpfr_ptr)NULL);
    mpfr_set_flt(at, x, MPFR_RNDN);
    function(r, at);
    long double result = mpfr_get_ld(r, MPFR_RNDN);
    mpfr_clears(r, at, (mpfr_ptr)NULL);
    return result;
}

/* What ir/math.def allows; results below 2^least may be 0. */
static const struct {
    tcc_opcode code;
    void (*function)(mpfr_t, const mpfr_t);
    double ulps, below, slope, square;
    int least;
} functions[] = {
    {TCC_OP_math_relu, exact_relu, 0, 0, 0, 0, -150},
#define MATH(name, doc, value, shape, ulps, below, slope, square, least)                           \
    {TCC_OP_math_##name, exact_##name, ulps, below, slope, square, least},
#include "ir/math.def"
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static double ulp(long double v)
{
    int e = v == 0 ? -149 : ilogbl(v) - 23;
    return ldexp(1, e < -149 ? -149 : e > 104 ? 104 : e);
}

/* Those above the largest f32 are infinite. */
static bool is_right(int i, float x, float got, long double want, double *error)
{
    double size = x < 0 ? -(double)x : 0, bound = x < 0 ? functions[i].below : functions[i].ulps;
    bound += functions[i].slope * size + functions[i].square * size * size;
    *error = 0;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (want != 0 && !signbit(want) != !signbit(got))
        return false;
    if (isinf(got) || isinf(want))
        return fabsl(want) + bound * ulp(want) > (long double)FLT_MAX;
    if (got == 0 && fabsl(want) < ldexpl(1, functions[i].least))
        return true;
    *error = (double)(fabsl((long double)got - want) / (long double)ulp(want));
    return *error <= bound;
}

static void check_at(int i, const program *p, float x)
{
    static const wrongness wrong[] = {{0, 0}, {1, 1}, {1, -1}, {-1, 1}, {-1, -1}};
    long double want = exact_at(functions[i].function, x);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        double error;
        float got = evaluate(p, x, wrong[k]);
        if (!is_right(i, x, got, want, &error))
            ck_abort_msg("%s(%a) is %a, should be %La: error %g ulp",
                         tcc_op_info_get(functions[i].code)->name, (double)x, (double)got, want,
                         error);
    }
}

/* Numbers of all magnitudes, most of them where functions are not flat. */
START_TEST(errors_are_small)
{
    const program p = program_of(expanded(functions[_i].code, tcc_type_scalar(ir, TCC_f32)));
    uint64_t seed = 1;
    for (int e = -149; e < 128; e++)
        for (int k = 0, n = e < -12 || e > 7 ? 8 : 600; k < n; k++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            float x = (float)ldexp(1 + (double)(seed >> 40) * 0x1p-24, e);
            if (k == 0)
                x = ldexpf(1, e);
            check_at(_i, &p, x);
            check_at(_i, &p, -x);
            if (e < -1)
                check_at(_i, &p, 1 + x);
            if (e < -2)
                check_at(_i, &p, 1 - x);
        }
    check_at(_i, &p, FLT_MAX);
    check_at(_i, &p, -FLT_MAX);
    check_at(_i, &p, 0);
    check_at(_i, &p, -0.0f);
}
END_TEST

/* ---- quotients --------------------------------------------------------------------------- */

#define MATH(...)
#define MATH_QUOTIENT(ulps) static const double quotient_ulps = ulps;
#include "ir/math.def"

/* PTX ISA, div.full: 2 ulp. */
static float quotient_ptx(float x, float y, int side)
{
    double q = (double)x / (double)y;
    return off(q, side, 2 * ulp((long double)q));
}

/* RDNA, as amdgcn_math.tir shows it: the quotient of the fractions, through a reciprocal that may be
 * off by 1 ulp, which is then scaled. */
static float quotient_rdna(float x, float y, int side)
{
    int x_exponent, y_exponent;
    float numerator = frexpf(x, &x_exponent);
    double r = 1 / (double)frexpf(y, &y_exponent);
    float reciprocal = off(r, side, ulp((long double)r));
    return ldexpf(numerator * reciprocal, x_exponent - y_exponent);
}

static void check_quotient(float x, float y)
{
    float (*const quotients[])(float, float, int) = {quotient_ptx, quotient_rdna};
    long double want = (long double)x / (long double)y;
    for (size_t k = 0; k < 2; k++)
        for (int side = -1; side <= 1; side++) {
            float got = quotients[k](x, y, side);
            double error = (double)(fabsl((long double)got - want) / (long double)ulp(want));
            bool large = fabsl(want) + quotient_ulps * ulp(want) > (long double)FLT_MAX;
            ck_assert_msg(error <= quotient_ulps || (isinf(got) && large),
                          "%a / %a is %a, should be %La: error %g ulp", (double)x, (double)y,
                          (double)got, want, error);
        }
}

/* Numbers of all magnitudes; the errors are largest where the reciprocal's fraction is small and the
 * quotient's is large. */
START_TEST(quotients_are_near)
{
    uint64_t seed = 1;
    for (int e = -149; e < 128; e++)
        for (int k = 0; k < 2000; k++) {
            float v[2];
            for (int i = 0; i < 2; i++) {
                seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                double fraction = (double)(seed >> 40) * 0x1p-24;
                v[i] = (float)(k % 2 ? 2 - 0x1p-5 * fraction : 1 + fraction);
            }
            int of_y = (int)(seed >> 20 & 255) % 277 - 149;
            check_quotient(ldexpf(v[0], e), ldexpf(-v[1], of_y));
        }
}
END_TEST

START_TEST(infinities_and_nan)
{
    static const struct {
        tcc_opcode code;
        double at_minus, at_plus;
    } limits[] = {
        {TCC_OP_math_exp, 0, INFINITY},    {TCC_OP_math_log, NAN, INFINITY},
        {TCC_OP_math_tanh, -1, 1},         {TCC_OP_math_erf, -1, 1},
        {TCC_OP_math_sigmoid, 0, 1},       {TCC_OP_math_silu, NAN, INFINITY},
        {TCC_OP_math_gelu, NAN, INFINITY}, {TCC_OP_math_gelu_tanh, NAN, INFINITY},
    };
    const double ends[2] = {limits[_i].at_minus, limits[_i].at_plus};
    const program p = program_of(expanded(limits[_i].code, tcc_type_scalar(ir, TCC_f32)));
    ck_assert(isnan(evaluate(&p, NAN, exact)));
    for (int side = 0; side < 2; side++) {
        double got = (double)evaluate(&p, side ? INFINITY : -INFINITY, exact);
        ck_assert(isnan(ends[side]) ? isnan(got) : got == ends[side]);
    }
}
END_TEST

START_TEST(exp_overflows_where_it_should)
{
    const program p = program_of(expanded(TCC_OP_math_exp, tcc_type_scalar(ir, TCC_f32)));
    ck_assert(isfinite(evaluate(&p, 88.7f, exact)));
    ck_assert(isinf(evaluate(&p, 88.8f, exact)));
    ck_assert(evaluate(&p, 1e30f, exact) > 0);
    ck_assert(evaluate(&p, -1e30f, exact) == 0);
}
END_TEST

START_TEST(narrow_elements_are_computed_in_f32)
{
    const tcc_type *type = tcc_type_sized(ir, TCC_KIND_vec, TCC_f16, 1, (int64_t[]){8});
    tcc_func *f = expanded(TCC_OP_math_sigmoid, type);
    ck_assert_int_eq(f->body->first->code, TCC_OP_arith_cast);
    ck_assert_int_eq(f->body->first->results[0].type->elem, TCC_f32);
    ck_assert_int_eq(f->body->last->code, TCC_OP_arith_cast);
    ck_assert_ptr_eq(f->body->last->results[0].type, type);
}
END_TEST

Suite *SUITE(void)
{
    TCase *tc = tcase_create("expand_math");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, errors_are_small, 0, N_FUNCTIONS);
    tcase_add_test(tc, quotients_are_near);
    tcase_add_loop_test(tc, infinities_and_nan, 0, 8);
    tcase_add_test(tc, exp_overflows_where_it_should);
    tcase_add_test(tc, narrow_elements_are_computed_in_f32);
    Suite *s = suite_create("expand_math");
    suite_add_tcase(s, tc);
    return s;
}
