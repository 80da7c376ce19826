/* The expansions are computed here in f32, with exp2, log2 and division as wrong as an
 * instruction may be, in either direction.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <check.h>
#include <math.h>
#include <string.h>

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
    ck_assert(changed);
    return f;
}

/* ---- evaluation ------------------------------------------------------------------------ */

static float off(double v, double relative)
{
    return (float)(v * (1 + relative));
}

static float evaluate_op(const tcc_op *op, const float *a, double err)
{
    switch (op->code) {
    case TCC_OP_arith_const: return (float)tcc_attr_find(&op->attrs, "value")->value.f;
    case TCC_OP_arith_add: return a[0] + a[1];
    case TCC_OP_arith_sub: return a[0] - a[1];
    case TCC_OP_arith_mul: return a[0] * a[1];
    case TCC_OP_arith_div: return off((double)a[0] / (double)a[1], err * 0x1p-23);
    case TCC_OP_arith_min: return fminf(a[0], a[1]);
    case TCC_OP_arith_max: return fmaxf(a[0], a[1]);
    case TCC_OP_arith_cmp: return a[0] < a[1] ? 1 : 0;
    case TCC_OP_arith_select: return a[0] != 0 ? a[1] : a[2];
    case TCC_OP_arith_neg: return -a[0];
    case TCC_OP_math_abs: return fabsf(a[0]);
    case TCC_OP_math_exp2: return off(exp2((double)a[0]), err * 0x1p-22);
    case TCC_OP_math_log2: {
        double r = log2((double)a[0]), size = a[0] > 0.5 && a[0] < 2 ? 1 : r;
        return isfinite(r) ? (float)(r + err * 0x1p-22 * size) : (float)r;
    }
    default: ck_abort_msg("%s is no instruction", tcc_op_info_get(op->code)->name);
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

/* What p gives for x; err, from -1 to 1, is how wrong the instructions are. */
static float evaluate(const program *p, float x, double err)
{
    float values[MAX_OPS + 1] = {x};
    for (size_t k = 0; k < p->n; k++) {
        float a[MAX_OPERANDS] = {0};
        for (unsigned i = 0; i < p->ops[k]->n_operands; i++)
            a[i] = values[p->places[k][i]];
        values[k + 1] = evaluate_op(p->ops[k], a, err);
    }
    return values[p->n];
}

/* ---- what it should be ----------------------------------------------------------------- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double gelu(double x)
{
    return x * erfc(-x / sqrt(2)) / 2;
}

static double gelu_tanh(double x)
{
    return x * sigmoid(2 * sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x));
}

static double relu(double x)
{
    return x > 0 ? x : 0;
}

/* `slope` and `square`: further error for x < 0, in |x| 2^-24 and x^2 2^-24. */
static const struct {
    tcc_opcode code;
    double (*function)(double);
    double lo, hi, ulps, slope, square;
} functions[] = {
    {TCC_OP_math_exp, exp, -87, 88, 5, 0, 0},
    {TCC_OP_math_log, log, 1e-37, 1e38, 5, 0, 0},
    {TCC_OP_math_tanh, tanh, -20, 20, 2, 0, 0},
    {TCC_OP_math_erf, erf, -6, 6, 2, 0, 0},
    {TCC_OP_math_relu, relu, -9, 9, 0, 0, 0},
    {TCC_OP_math_sigmoid, sigmoid, -80, 80, 5, 2, 0},
    {TCC_OP_math_silu, silu, -80, 80, 5, 2, 0},
    {TCC_OP_math_gelu, gelu, -9, 9, 7, 0, 2},
    {TCC_OP_math_gelu_tanh, gelu_tanh, -6, 6, 5, 4, 4},
};

static void check_at(size_t i, const program *p, float x)
{
    double expected = functions[i].function((double)x), size = x < 0 ? -(double)x : 0;
    double bound = functions[i].ulps * 0x1p-23 + functions[i].slope * size * 0x1p-24 +
                   functions[i].square * size * size * 0x1p-24;
    for (int err = -1; err <= 1; err++) {
        float got = evaluate(p, x, err);
        ck_assert_msg(fabs((double)got - expected) <= bound * fabs(expected) + 0x1p-126,
                      "%s(%a) is %a, should be %a: error %g 2^-23",
                      tcc_op_info_get(functions[i].code)->name, (double)x, (double)got, expected,
                      fabs((double)got / expected - 1) * 0x1p23);
    }
}

START_TEST(errors_are_relative_and_small)
{
    const program p = program_of(expanded(functions[_i].code, tcc_type_scalar(ir, TCC_f32)));
    double lo = functions[_i].lo, hi = functions[_i].hi;
    for (int k = 0; k <= 4000; k++)
        if (lo < 0)
            check_at((size_t)_i, &p, (float)(lo + (hi - lo) * k / 4000));
    double x = 1e-30;
    while (x < hi) { /* both signs, and the neighbourhood of 1 */
        if (x > lo)
            check_at((size_t)_i, &p, (float)x);
        if (-x > lo)
            check_at((size_t)_i, &p, (float)-x);
        if (x < 0.25)
            check_at((size_t)_i, &p, (float)(1 + x));
        x *= 1.02;
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
    ck_assert(isnan(evaluate(&p, NAN, 0)));
    for (int side = 0; side < 2; side++) {
        double got = (double)evaluate(&p, side ? INFINITY : -INFINITY, 0);
        ck_assert(isnan(ends[side]) ? isnan(got) : got == ends[side]);
    }
}
END_TEST

START_TEST(exp_overflows_where_it_should)
{
    const program p = program_of(expanded(TCC_OP_math_exp, tcc_type_scalar(ir, TCC_f32)));
    ck_assert(isfinite(evaluate(&p, 88.7f, 0)));
    ck_assert(isinf(evaluate(&p, 88.8f, 0)));
    ck_assert(evaluate(&p, 1e30f, 0) > 0);
    ck_assert(evaluate(&p, -1e30f, 0) == 0);
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

START_TEST(other_ops_are_left_alone)
{
    const tcc_type *type = tcc_type_scalar(ir, TCC_f32);
    tcc_func *f = tcc_func_create(ir, "f", (tcc_loc){1, 1});
    tcc_value *x = tcc_block_add_arg(f->body, type, "x");
    tcc_builder b = tcc_builder_at_end(f->body);
    tcc_op *op = tcc_op_create(&b, TCC_OP_math_rsqrt, 1, &x, 1, &type);
    tcc_pass_ctx ctx = {.ir = ir, .scratch = arena};
    bool changed = false;
    ck_assert_int_eq(tcc_pass_expand_math.run(&ctx, f, &changed), TCC_OK);
    ck_assert(!changed);
    ck_assert_ptr_eq(f->body->first, op);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("expand_math");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, errors_are_relative_and_small, 0,
                        (int)(sizeof functions / sizeof *functions));
    tcase_add_loop_test(tc, infinities_and_nan, 0, 8);
    tcase_add_test(tc, exp_overflows_where_it_should);
    tcase_add_test(tc, narrow_elements_are_computed_in_f32);
    tcase_add_test(tc, other_ops_are_left_alone);
    Suite *s = suite_create("expand_math");
    suite_add_tcase(s, tc);
    return suite_exit_status(s);
}
