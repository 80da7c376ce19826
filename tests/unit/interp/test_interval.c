/* What a machine that rounds computes of any numbers in intervals is in the interval of the result.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/interval.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/elementwise.h"
#include "ir/streaming.h"
#include "support/random.h"
#include "tests/unit/suite.h"

enum { DRAWS = 3000, N_VALUES = 64 };

static const char text[] = "func @f(%a: f32, %b: f32) {\n"
                           "  %add = arith.add %a, %b : f32\n"
                           "  %sub = arith.sub %a, %b : f32\n"
                           "  %mul = arith.mul %a, %b : f32\n"
                           "  %div = arith.div %a, %b : f32\n"
                           "  %min = arith.min %a, %b : f32\n"
                           "  %max = arith.max %a, %b : f32\n"
                           "  %neg = arith.neg %a : f32\n"
                           "  %abs = math.abs %a : f32\n"
                           "  %exp = math.exp %a : f32\n"
                           "  %exp2 = math.exp2 %a : f32\n"
                           "  %log = math.log %a : f32\n"
                           "  %log2 = math.log2 %a : f32\n"
                           "  %sqrt = math.sqrt %a : f32\n"
                           "  %rsqrt = math.rsqrt %a : f32\n"
                           "  %tanh = math.tanh %a : f32\n"
                           "  %erf = math.erf %a : f32\n"
                           "  %relu = math.relu %a : f32\n"
                           "  %even = math.roundeven %a : f32\n"
                           "  %sigmoid = math.sigmoid %a : f32\n"
                           "  %silu = math.silu %a : f32\n"
                           "  %gelu = math.gelu %a : f32\n"
                           "  %gelu_tanh = math.gelu_tanh %a : f32\n"
                           "  %f16 = arith.cast %a : f16\n"
                           "  %bf16 = arith.cast %a : bf16\n"
                           "  %e4m3 = arith.cast %a : e4m3\n"
                           "  %e5m2 = arith.cast %a : e5m2\n"
                           "  %wide = arith.cast %f16 : f32\n"
                           "  %i32 = arith.cast %even : i32\n"
                           "  %i8 = arith.cast %even : i8\n"
                           "  %seven = arith.const {value = 7} : i32\n"
                           "  %iadd = arith.add %i32, %seven : i32\n"
                           "  %imul = arith.mul %i32, %seven : i32\n"
                           "  %imax = arith.max %iadd, %imul : i32\n"
                           "  %irem = arith.rem %imax, %seven : i32\n"
                           "  %float = arith.cast %imax : f32\n"
                           "  %lt = arith.cmp %a, %b {pred = lt} : i1\n"
                           "  %ge = arith.cmp %a, %b {pred = ge} : i1\n"
                           "  %eq = arith.cmp %a, %b {pred = eq} : i1\n"
                           "  %ne = arith.cmp %imax, %irem {pred = ne} : i1\n"
                           "  %select = arith.select %lt, %tanh, %mul : f32\n"
                           "  %again = arith.sub %mul, %select : f32\n"
                           "  %x64 = arith.cast %a : f64\n"
                           "  %y64 = arith.cast %b : f64\n"
                           "  %add64 = arith.add %x64, %y64 : f64\n"
                           "  %mul64 = arith.mul %x64, %y64 : f64\n"
                           "  %div64 = arith.div %x64, %y64 : f64\n"
                           "  %fma64 = arith.fma %x64, %y64, %div64 : f64\n"
                           "  %sqrt64 = math.sqrt %mul64 : f64\n"
                           "  %rsqrt64 = math.rsqrt %add64 : f64\n"
                           "  %narrow = arith.cast %sqrt64 : f32\n"
                           "  return\n"
                           "}\n";

static tcc_arena *arena;
static const tcc_func *f;
static uint64_t state;

/* A value as the machine has it, as the reference has it, and its interval. */
static struct value {
    const tcc_value *v;
    tcc_cell machine, exact, low, high;
} values[N_VALUES];
static size_t n_values;

static void setup(void)
{
    tcc_diag diag = {.file = "f"};
    arena = tcc_arena_create(NULL);
    tcc_ir *ir = tcc_ir_parse(arena, text, strlen(text), &diag);
    ck_assert_ptr_nonnull(ir);
    f = ir->first;
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

static struct value *value_of(const tcc_value *v)
{
    for (size_t i = 0; i < n_values; i++)
        if (values[i].v == v)
            return &values[i];
    return NULL;
}

static double unit(void)
{
    return (double)tcc_random(&state, 1 << 30) * 0x1p-30;
}

/* A number of f32, mostly of a size for which functions do something. */
static double draw(void)
{
    static const double special[] = {0, -0.0, INFINITY, -INFINITY, 0x1p-149, 0x1.fffffep127, 1, -1};
    double exponent = tcc_random(&state, 4) ? unit() * 14 - 9 : unit() * 280 - 145;
    if (!tcc_random(&state, 40))
        return special[tcc_random(&state, 8)];
    return (float)ldexp(tcc_random(&state, 2) ? 1 + unit() : -1 - unit(), (int)exponent);
}

static void set(const tcc_value *v)
{
    double x = draw(), e = tcc_random(&state, 2) ? 0 : fabs(draw()) * unit();
    double low = isfinite(x) ? x - e : x, high = isfinite(x) ? x + e * unit() : x;
    double machine = (float)(x - (e > 0 && isfinite(x) ? e * unit() : 0));
    machine = machine < low || machine > high || isnan(machine) ? x : machine;
    values[n_values++] = (struct value){v, {.f = machine}, {.f = x}, {.f = low}, {.f = high}};
}

/* Computes an op three times: as the machine does, exactly, and as an interval. */
static void run(const tcc_op *op)
{
    struct value *r = &values[n_values++];
    tcc_elements machine = {.op = op, .r = &r->machine, .n = 1}, exact = machine;
    tcc_interval_row row = {.op = op, .r = &r->exact, .low = &r->low, .high = &r->high, .n = 1};
    r->v = &op->results[0];
    exact.r = &r->exact;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const struct value *a = value_of(op->operands[i]);
        machine.a[i] = &a->machine;
        exact.a[i] = &a->exact;
        row.a_low[i] = &a->low;
        row.a_high[i] = &a->high;
    }
    tcc_elementwise(&machine, true);
    tcc_elementwise(&exact, false);
    tcc_intervals(&row);
}

static bool is_inside(const struct value *r)
{
    if (tcc_scalar_classify(r->v->type->elem) != TCC_CLASS_FLOAT)
        return r->machine.i >= r->low.i && r->machine.i <= r->high.i;
    bool anything = isinf(r->low.f) && isinf(r->high.f) && r->low.f < r->high.f;
    return anything || (isnan(r->low.f) ? isnan(r->high.f) && isnan(r->machine.f)
                                        : r->machine.f >= r->low.f && r->machine.f <= r->high.f);
}

static void run_all(void)
{
    n_values = 0;
    set(f->body->args[0]);
    set(f->body->args[1]);
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->n_results)
            run(op);
}

START_TEST(the_machines_results_are_inside)
{
    state = (uint64_t)_i;
    for (int i = 0; i < DRAWS; i++) {
        run_all();
        for (size_t v = 0; v < n_values; v++)
            if (!is_inside(&values[v])) /* an assertion takes too long for each */
                ck_abort_msg("%s of %a in [%a, %a] and %a in [%a, %a] is %a (%lld), "
                             "not in [%a, %a]", values[v].v->name ? values[v].v->name : "?",
                             values[0].machine.f, values[0].low.f, values[0].high.f,
                             values[1].machine.f, values[1].low.f, values[1].high.f,
                             values[v].machine.f, (long long)values[v].machine.i,
                             values[v].low.f, values[v].high.f);
    }
}
END_TEST

/* What is in an interval of a few ulp is far from what is off by a thousandth. */
START_TEST(exact_operands_give_small_intervals)
{
    size_t n = 0, small = 0;
    state = 1;
    for (int i = 0; i < DRAWS; i++) {
        run_all();
        if (values[0].low.f != values[0].high.f || values[1].low.f != values[1].high.f)
            continue;
        for (size_t v = 2; v < n_values; v++) {
            if (values[v].v->type->elem != TCC_f32 || !isnormal((float)values[v].exact.f))
                continue;
            double width = values[v].high.f - values[v].low.f;
            n++;
            small += width <= 1e-3 * fabs(values[v].exact.f);
        }
    }
    ck_assert_uint_gt(n, 1000);
    ck_assert_uint_gt(small, n * 9 / 10);
}
END_TEST

/* The op of a name. */
static const tcc_op *op_of(const char *name)
{
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->n_results && op->results[0].name && !strcmp(op->results[0].name, name))
            return op;
    ck_abort_msg("no %s", name);
    return NULL;
}

/* What is rounded relative to any number, and multiplied by it, is off by half a unit of its last place. */
START_TEST(what_is_rounded_in_step_is_inside)
{
    static const struct {
        const char *op;
        double least, most; /* of what is rounded */
    } types[] = {{"f16", 0x1p-14, 60000}, {"bf16", 0x1p-100, 0x1p100}};
    unsigned others = 0, n = 0;
    state = (uint64_t)_i;
    for (int i = 0; i < DRAWS; i++) {
        int t = i % 2;
        const tcc_op *op = op_of(types[t].op);
        tcc_cell x = {.f = draw()}, r, low, high;
        double by = ldexp(1 + unit(), -(int)tcc_random(&state, 8)), y = x.f / by;
        if (!(fabs(x.f) >= types[t].least && fabs(y) <= types[t].most))
            continue;
        double machine = tcc_round_float(y, op->results[0].type->elem) * by;
        tcc_interval_row row = {.op = op, .a_low = {&x}, .a_high = {&x}, .r = &r, .low = &low, .high = &high,
                                .n = 1, .in_step = true};
        tcc_intervals(&row);
        ck_assert(low.f <= machine && machine <= high.f);
        ck_assert(high.f - low.f <= 0x1p-6 * fabs(x.f));
        others += machine != tcc_round_float(x.f, op->results[0].type->elem);
        n++;
    }
    ck_assert_uint_gt(others, n / 4);
}
END_TEST

/* It is what depends on a reduction over an index, and is summed over it. */
START_TEST(factors_of_a_cascade_are_rounded_in_step)
{
    static const char cascade[] =
        "func @g(%X: tensor<f32[I, J]>, %w: field<f32[j, e]>) {dims = [I, J, E], extents = [[e, E]]} {\n"
        "  %a = tensor.read %X {map = [i, j]} : field<f32[i, j]>\n"
        "  %m = tensor.reduce %a {over = [j], kind = max} : field<f32[i]>\n"
        "  %d = arith.sub %a, %m : field<f32[i, j]>\n"
        "  %e = math.exp %d : field<f32[i, j]>\n"
        "  %summed = arith.cast %e : field<bf16[i, j]>\n"
        "  %eight = arith.cast %e : field<e4m3[i, j]>\n"
        "  %kept = arith.cast %e : field<f16[i, j]>\n"
        "  %own = arith.cast %a : field<f16[i, j]>\n"
        "  %of_rows = arith.cast %m : field<f16[i]>\n"
        "  %wide = arith.cast %summed : field<f32[i, j]>\n"
        "  %p = arith.mul %wide, %w : field<f32[i, j, e]>\n"
        "  %s = tensor.reduce %p {over = [j], kind = sum} : field<f32[i, e]>\n"
        "  %s8 = tensor.reduce %eight {over = [j], kind = sum} : field<e4m3[i]>\n"
        "  %so = tensor.reduce %own {over = [j], kind = sum} : field<f16[i]>\n"
        "  %result = arith.cast %s : field<bf16[i, e]>\n"
        "  return\n"
        "}\n";
    static const char *const others[] = {"eight", "kept", "own", "of_rows", "wide", "result", "e"};
    tcc_diag diag = {.file = "g"};
    tcc_ir *ir = tcc_ir_parse(arena, cascade, strlen(cascade), &diag);
    ck_assert_ptr_nonnull(ir);
    f = ir->first;
    ck_assert(tcc_streaming_rounds(op_of("summed"), arena));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tcc_streaming_rounds(op_of(others[i]), arena))
            ck_abort_msg("%s is", others[i]);
}
END_TEST

/* A sum in f32, in any order, cut off or contracted. */
START_TEST(sums_are_inside)
{
    enum { MAX_TERMS = 3000 };
    static float a[MAX_TERMS], b[MAX_TERMS];
    state = (uint64_t)_i;
    size_t n = 1 + tcc_random(&state, MAX_TERMS);
    double exact = 0, magnitudes = 0, shrink = unit() < 0.5 ? 1 : 1e-3;
    for (size_t i = 0; i < n; i++) {
        a[i] = (float)(unit() * 2 - shrink); /* sums that cancel, and some that do not */
        b[i] = (float)(unit() * 2 - 1) + (i % 2 ? (float)shrink : 0);
        a[i] = (float)tcc_round_float(a[i], TCC_f16);
        b[i] = (float)tcc_round_float(b[i], TCC_f16);
        exact += (double)a[i] * (double)b[i];
        magnitudes += fabs((double)a[i] * (double)b[i]);
    }
    float forth = 0, back = 0, cut = 0;
    for (size_t i = 0; i < n; i++) {
        forth = fmaf(a[i], b[i], forth);
        back += a[n - 1 - i] * b[n - 1 - i];
        double sum = (double)cut + (double)a[i] * (double)b[i];
        cut = (float)sum;
        if (fabs((double)cut) > fabs(sum))
            cut = nextafterf(cut, 0);
    }
    double low = exact, high = exact;
    tcc_interval_of_sum(TCC_f32, false, (double)n, magnitudes, &low, &high);
    ck_assert((double)forth >= low && (double)forth <= high);
    ck_assert((double)back >= low && (double)back <= high);
    ck_assert((double)cut >= low && (double)cut <= high);
    ck_assert_double_le(high - low, 1e-6 * (double)(n + 20) * magnitudes);
}
END_TEST

/* Sums in 16 bits, rounded after every `step` products, and what an error in them may not be taken for. */
START_TEST(sums_in_16_bits_are_inside)
{
    enum { TERMS = 200 };
    static const tcc_scalar elems[] = {TCC_f16, TCC_bf16};
    tcc_scalar elem = elems[_i % 2];
    state = (uint64_t)_i;
    double scale = _i % 4 < 2 ? 1 : 0x1p-24; /* or denormal numbers */
    for (size_t step = 1; step <= 16; step *= 2) {
        double exact = 0, magnitudes = 0, sum = 0;
        for (size_t i = 0; i < TERMS;) {
            double part = 0;
            for (size_t j = 0; j < step && i < TERMS; j++, i++) {
                double term = (unit() * 2 - (_i % 8 < 4 ? 1 : 0)) * scale;
                part += term;
                magnitudes += fabs(term);
            }
            exact += part;
            sum = tcc_round_float(sum + part, elem);
        }
        double low = exact, high = exact;
        tcc_interval_of_sum(elem, false, TERMS, magnitudes, &low, &high);
        ck_assert(sum >= low && sum <= high);
        double limit = elem == TCC_f16 ? 0.11 : 0.85;
        ck_assert_double_le(high - exact, limit * magnitudes + TERMS * 0x1p-24);
    }
}
END_TEST

/* ---- products of 8-bit floats -------------------------------------------------------------- */

static double cut(double x, double unit)
{
    return trunc(x / unit) * unit;
}

/* The power of two that is at most |x|. */
static double exponent_of(double x)
{
    return x == 0 ? 0 : exp2(floor(log2(fabs(x))));
}

/* The sum of products as a tensor core adds them, so many at a time, with 14 bits. */
static double sum_with_14_bits(const double *a, const double *b, size_t n, size_t at_a_time)
{
    double sum = 0;
    for (size_t i = 0; i < n; i += at_a_time) {
        size_t end = i + at_a_time < n ? i + at_a_time : n;
        double largest = exponent_of(sum);
        for (size_t j = i; j < end; j++)
            largest = fmax(largest, exponent_of(a[j]) * exponent_of(b[j]));
        double unit = largest * 0x1p-13, next = largest > 0 ? cut(sum, unit) : 0;
        for (size_t j = i; j < end && largest > 0; j++)
            next += cut(a[j] * b[j], unit);
        sum = next == 0 ? 0 : cut(next, exponent_of(next) * 0x1p-13);
    }
    return sum;
}

enum { MAX_PRODUCTS = 3000 };

typedef struct products {
    double a[MAX_PRODUCTS], b[MAX_PRODUCTS], exact, magnitudes;
    size_t n;
} products;

/* One in 50 of b is that many times as large. */
static void draw_products(products *p, size_t n, tcc_scalar a, tcc_scalar b, double shift, double times)
{
    p->n = n;
    p->exact = p->magnitudes = 0;
    for (size_t i = 0; i < n; i++) {
        p->a[i] = tcc_round_float(unit() * 2 - shift, a);
        p->b[i] = tcc_round_float((unit() * 2 - shift) * (i % 50 ? 1 : times), b);
        double product = p->a[i] * p->b[i];
        p->exact += product;
        p->magnitudes += fabs(product);
    }
}

START_TEST(sums_of_8_bit_products_are_inside)
{
    static products p;
    state = (uint64_t)_i;
    double shift = _i % 2 ? 1 : 0; /* of both signs, or all positive */
    draw_products(&p, 1 + tcc_random(&state, MAX_PRODUCTS), TCC_e4m3, _i % 4 < 2 ? TCC_e4m3 : TCC_e5m2, shift, 100);
    double low = p.exact, high = p.exact, single_low = p.exact, single_high = p.exact;
    tcc_interval_of_sum(TCC_f32, true, (double)p.n, p.magnitudes, &low, &high);
    tcc_interval_of_sum(TCC_f32, false, (double)p.n, p.magnitudes, &single_low, &single_high);
    ck_assert(low < single_low && high > single_high);
    for (size_t at_a_time = 16; at_a_time <= 32; at_a_time += 16) {
        double sum = sum_with_14_bits(p.a, p.b, p.n, at_a_time);
        ck_assert(sum >= low && sum <= high);
        if (!shift && p.n > 200)
            ck_assert(sum < single_low); /* what f32 would not explain */
    }
}
END_TEST

/* In sums of a few products, one too few or too many is not taken for an error of rounding. */
START_TEST(a_lost_8_bit_product_is_outside)
{
    static products p;
    state = (uint64_t)_i;
    draw_products(&p, 16 + tcc_random(&state, 64), TCC_e4m3, TCC_e4m3, 1, 1);
    double low = p.exact, high = p.exact, sum = sum_with_14_bits(p.a, p.b, p.n, 32);
    double product = p.magnitudes / (double)p.n;
    tcc_interval_of_sum(TCC_f32, true, (double)p.n, p.magnitudes, &low, &high);
    ck_assert(sum >= low && sum <= high);
    ck_assert(sum - product < low);
    ck_assert(sum + product > high);
}
END_TEST

START_TEST(sums_that_may_overflow_may_be_anything)
{
    double low = 3, high = 3;
    tcc_interval_of_sum(TCC_f16, false, 4, 70000, &low, &high);
    ck_assert(isinf(low) && isinf(high) && low < high);
    low = high = 3;
    tcc_interval_of_sum(TCC_f32, false, 4, 70000, &low, &high);
    ck_assert(low < 3 && high > 3 && high < 3.2);
    low = high = (double)INFINITY;
    tcc_interval_of_sum(TCC_f32, false, 4, (double)INFINITY, &low, &high);
    ck_assert(isinf(low) && low > 0);
    low = high = (double)NAN;
    tcc_interval_of_sum(TCC_f32, false, 4, (double)NAN, &low, &high);
    ck_assert(isnan(low) && isnan(high));
    low = high = 0;
    tcc_interval_of_sum(TCC_f32, false, 0, 0, &low, &high);
    ck_assert(low == 0 && high == 0);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("interval");
    TCase *t = tcase_create("interval");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, the_machines_results_are_inside, 0, 8);
    tcase_add_test(t, exact_operands_give_small_intervals);
    tcase_add_loop_test(t, what_is_rounded_in_step_is_inside, 0, 8);
    tcase_add_test(t, factors_of_a_cascade_are_rounded_in_step);
    tcase_add_loop_test(t, sums_are_inside, 0, 40);
    tcase_add_loop_test(t, sums_in_16_bits_are_inside, 0, 40);
    tcase_add_loop_test(t, sums_of_8_bit_products_are_inside, 0, 40);
    tcase_add_loop_test(t, a_lost_8_bit_product_is_outside, 0, 40);
    tcase_add_test(t, sums_that_may_overflow_may_be_anything);
    suite_add_tcase(s, t);
    return s;
}
