/* The check of passes says what a pass broke: each test plays a pass that does harm, after one of
 * the compiler's own, and reads the report.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/check_passes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/shapes.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tests/unit/suite.h"

static const char matmul[] =
    "kernel f(A: f16[M, K], B: f16[K, N], bias: f32[N]) -> (C: f16[M, N])\n"
    "{\n"
    "    C[m, n] = gelu(0.125 * sum(k) A[m, k] * B[k, n] + bias[n]);\n"
    "}\n"
    "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; }\n";

/* Its sums round: exponentials are rounded to f16, and what they are multiplied by cancels them. */
static const char computed[] =
    "kernel f(A: f16[M, K], B: f16[K, N], bias: f32[N]) -> (C: f32[M, N])\n"
    "{\n"
    "    C[m, n] = 0.125 * sum(k) exp(A[m, k]) * B[k, n] + bias[n];\n"
    "}\n"
    "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; }\n";

/* ---- a check that harm comes into -------------------------------------------------------- */

typedef struct check {
    tcc_arena *arena;
    tcc_diag diag;
    tcc_ir *ir;
    tcc_pass_check *passes;
    const char *harmed; /* the pass after which harm is done; NULL: never */
    void (*harm)(tcc_func *f);
    char said[4096];
} check;

static void listen(const tcc_diagnostic *d, void *user)
{
    check *c = user;
    size_t n = strlen(c->said);
    snprintf(c->said + n, sizeof c->said - n, "%s", d->text);
}

static tcc_status after(const tcc_ir *ir, const char *pass, void *user)
{
    check *c = user;
    if (c->harmed && !strcmp(pass, c->harmed)) {
        c->harmed = NULL;
        c->harm(ir->first);
    }
    return tcc_pass_check_after(c->passes, ir, pass);
}

static void open_check_of(check *c, const char *source, const tcc_pass_check_options *o)
{
    *c = (check){.arena = tcc_arena_create(NULL)};
    c->diag = (tcc_diag){
        .file = "f.tile", .source = source, .size = strlen(source), .fn = listen, .user = c};
    c->ir = tcc_frontend(c->arena, source, strlen(source), "sm_90a", NULL, 0, &c->diag);
    ck_assert_msg(c->ir != NULL, "%s", c->said);
    ck_assert_int_eq(tcc_pass_check_create(c->arena, c->ir, o, &c->diag, &c->passes), TCC_OK);
}

static void open_check(check *c, const char *source)
{
    open_check_of(c, source, &(tcc_pass_check_options){.seed = 3});
}

static tcc_status run_passes(check *c)
{
    const tcc_pass_options o = {.verify_each = true, .check = after, .user = c};
    tcc_status status = tcc_run_passes(c->ir, tcc_pipeline(tcc_target_of(c->ir)), &o, &c->diag);
    return status ? status : tcc_pass_check_finish(c->passes, c->ir);
}

static void close_check(check *c)
{
    tcc_pass_check_destroy(c->passes);
    tcc_arena_destroy(c->arena);
}

static void expect(const check *c, const char *text)
{
    ck_assert_msg(strstr(c->said, text) != NULL, "no '%s' in:\n%s", text, c->said);
}

/* ---- harm -------------------------------------------------------------------------------- */

static tcc_op *find(const tcc_func *f, tcc_opcode code)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == code)
            return op;
    ck_abort_msg("no such op");
    return NULL;
}

static void replace_const(tcc_func *f, double from, double to)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        tcc_attr value = {.kind = TCC_ATTR_FLOAT, .f = to};
        const tcc_named_attr *a = tcc_attr_find(&op->attrs, "value");
        if (op->code == TCC_OP_arith_const && a->value.kind == TCC_ATTR_FLOAT && a->value.f == from)
            tcc_attr_set(f->ir, &op->attrs, "value", value, op->loc);
    }
}

static void scale_otherwise(tcc_func *f)
{
    replace_const(f, 0.125, 0.1250001);
}

static void forget_the_bias(tcc_func *f)
{
    tcc_op *op = find(f, TCC_OP_arith_fma);
    tcc_builder b = tcc_builder_before(op);
    tcc_value *r = TCC_EMIT(&b, arith_mul, op->results[0].type, op->operands[0], op->operands[1]);
    tcc_replace_uses(&op->results[0], r);
}

static void another_function(tcc_func *f)
{
    tcc_op *op = find(f, TCC_OP_math_gelu);
    tcc_builder b = tcc_builder_before(op);
    tcc_value *r = TCC_EMIT(&b, math_gelu_tanh, op->results[0].type, op->operands[0]);
    tcc_replace_uses(&op->results[0], r);
}

static void another_exponential(tcc_func *f)
{
    tcc_op *op = find(f, TCC_OP_math_exp);
    tcc_builder b = tcc_builder_before(op);
    tcc_value *r = TCC_EMIT(&b, math_exp2, op->results[0].type, op->operands[0]);
    tcc_replace_uses(&op->results[0], r);
}

/* The first values of k are left out. */
static void forget_an_iteration(tcc_func *f)
{
    tcc_op *loop = find(f, TCC_OP_scf_for);
    tcc_attr_remove(&loop->attrs, "at_least_once");
    tcc_op_set_operand(loop, 0, TCC_VIEW(scf_for, loop)->step);
}

static void forget_to_store(tcc_func *f)
{
    tcc_op_erase(find(f, TCC_OP_tile_store));
}

static void forget_to_wait(tcc_func *f)
{
    tcc_op_erase(find(f, TCC_OP_nvvm_mbarrier_wait));
}

/* Keeps the condition that comes first, that K is at least 1, and no pitch that TMA needs. */
static void valid_for_any_rows(tcc_func *f)
{
    tcc_attr requires = tcc_attr_list(&f->attrs, "requires");
    ck_assert_uint_gt(requires.list.n, 1);
    requires.list.n = 1;
    tcc_attr_set(f->ir, &f->attrs, "requires", requires, (tcc_loc){0, 0});
}

/* Where harm is done to a program, and what is said of it. */
static const struct {
    const char *source, *pass;
    void (*harm)(tcc_func *f);
    const char *says[3];
} harms[] = {
    {matmul,
     "canonicalize",
     scale_otherwise,
     {"pass canonicalize changes what kernel 'f' computes"}},
    {matmul, "cse", forget_the_bias, {"pass cse changes", "element [", "] of 'C' is "}},
    {matmul, "tile", another_function, {"pass tile changes"}},
    {matmul, "tile", forget_an_iteration, {"pass tile changes"}},
    {matmul,
     "tile",
     forget_to_store,
     {"pass tile changes", "of 'C' is not written"}},
    {matmul, "expand-math", scale_otherwise, {"pass expand-math changes"}},
    {matmul, "lower-to-nvvm", forget_to_wait, {"after pass lower-to-nvvm with M="}},
    {matmul, "licm", forget_to_wait, {"this is @f after pass licm with M="}},
    {matmul, "lower-to-nvvm", valid_for_any_rows, {"this is @f after pass lower-to-nvvm with M="}},
    {computed,
     "canonicalize",
     another_exponential,
     {"pass canonicalize changes", "] of 'C' is ", ", not from "}},
    {computed, "cse", forget_the_bias, {"pass cse changes", ", not from "}},
    {computed,
     "tile",
     forget_an_iteration,
     {"pass tile changes", ", not from "}},
    {computed,
     "tile",
     forget_to_store,
     {"pass tile changes", "of 'C' is not written"}},
    {computed, "lower-to-nvvm", forget_to_wait, {"after pass lower-to-nvvm with M="}},
};
enum { N_HARMS = sizeof harms / sizeof *harms };

START_TEST(harm_is_reported)
{
    check c;
    open_check(&c, harms[_i].source);
    c.harmed = harms[_i].pass;
    c.harm = harms[_i].harm;
    ck_assert_int_eq(run_passes(&c), TCC_ERR_INTERNAL);
    for (int i = 0; i < 3 && harms[_i].says[i]; i++)
        expect(&c, harms[_i].says[i]);
    expect(&c, "order ");
    close_check(&c);
}
END_TEST

#define ARGS "(A: f16[M, K], B: f16[K, N], s: f32[K], t: f32[M, N])"
#define SCHEDULE "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; }"

/* Sums whose operands are computed: of rounded numbers, of numbers that cancel, of what a
 * rounded number decides, and with steps behind them. */
static const char *const unharmed[] = {
    matmul,
    computed,
    "kernel f" ARGS
    " -> (C: f16[M, N]) { C[m, n] = t[m, n] + sum(k) silu(3 * A[m, k] * s[k]) * B[k, n]; }" SCHEDULE,
    "kernel f" ARGS
    " -> (C: f32[M, N]) { C[m, n] = t[m, n] * sum(k) (0.1 * A[m, k] + s[k]) * B[k, n]; }" SCHEDULE,
    "kernel f" ARGS " -> (C: i8[M, N])"
    "{ C[m, n] = i8(t[m, n] + sum(k) where(exp(A[m, k]) < s[k], A[m, k], 0.3) * B[k, n]); }" SCHEDULE,
    "kernel f" ARGS " -> (C: f32[M, N])"
    "{ y[m, n] = sum(k) exp(A[m, k] * s[k]) * B[k, n];"
    "  C[m, n] = where(y[m, n] > t[m, n], gelu(y[m, n]), t[m, n] / y[m, n]); }" SCHEDULE,
};

/* Harm that is there after cse alone: nothing but the run after cse can find it. */
static tcc_status after_harmful_cse(const tcc_ir *ir, const char *pass, void *user)
{
    check *c = user;
    if (strcmp(pass, "cse"))
        return tcc_pass_check_after(c->passes, ir, pass);
    replace_const(ir->first, 0.125, 0.25);
    tcc_status status = tcc_pass_check_after(c->passes, ir, pass);
    replace_const(ir->first, 0.25, 0.125);
    return status;
}

static bool finds_what_is_undone(uint64_t seed, bool sampled)
{
    check c;
    open_check_of(&c, matmul, &(tcc_pass_check_options){.seed = seed, .sampled = sampled});
    const tcc_pass_options o = {.check = after_harmful_cse, .user = &c};
    tcc_status status = tcc_run_passes(c.ir, "canonicalize,cse,dce", &o, &c.diag);
    if (!status)
        status = tcc_pass_check_finish(c.passes, c.ir);
    ck_assert_int_eq(status, *c.said ? TCC_ERR_INTERNAL : TCC_OK);
    close_check(&c);
    return status;
}

START_TEST(a_sample_of_changes_is_run)
{
    enum { SEEDS = 48, ONE_IN = 6 };
    unsigned n = 0, n_sampled = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        n += finds_what_is_undone(seed, false);
        n_sampled += finds_what_is_undone(seed, true);
    }
    ck_assert_uint_eq(n, SEEDS);
    ck_assert_uint_ge(n_sampled, SEEDS / ONE_IN / 2);
    ck_assert_uint_le(n_sampled, SEEDS / ONE_IN * 2);
}
END_TEST

START_TEST(no_harm_is_not_reported)
{
    check c;
    open_check(&c, unharmed[_i]);
    tcc_status status = run_passes(&c);
    ck_assert_msg(status == TCC_OK && !*c.said, "%s", c.said);
    close_check(&c);
}
END_TEST

START_TEST(what_cannot_be_run_is_said)
{
    check c;
    open_check(&c, "kernel f(A: f16[9000, 9000], B: f16[9000, 9000]) -> (C: f16[9000, 9000])\n"
                   "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n");
    ck_assert_int_eq(run_passes(&c), TCC_OK);
    expect(&c, "warning: @f was not run: the known extents make it too large");
    close_check(&c);
}
END_TEST

/* ---- shapes ------------------------------------------------------------------------------- */

static int64_t iterations(int64_t extent, int64_t tile)
{
    return (extent + tile - 1) / tile;
}

/* Schedule: m 64, n 16, k 16, 2 stages. dims: M, K, N. */
START_TEST(shapes_reach_the_corners_of_a_schedule)
{
    enum { ONE, EMPTY_SUM, NOTHING, WHOLE, RAGGED_M, RAGGED_N, WRAPS, FEW, ODD, N_CORNERS };
    bool reached[N_CORNERS] = {0};
    check c;
    open_check(&c, matmul);
    ck_assert_int_eq(tcc_run_passes(c.ir, "choose-axes,choose-variants,choose-schedule", NULL, &c.diag), 0);
    tcc_shapes shapes = tcc_shapes_choose(c.arena, c.ir->first, c.ir->first, (uint64_t)_i);
    for (size_t i = 0; i < shapes.n; i++) {
        const int64_t *d = shapes.dims[i], m = d[0], k = d[1], n = d[2];
        reached[ONE] |= m == 1 && k == 1 && n == 1;
        reached[EMPTY_SUM] |= k == 0 && m && n;
        reached[NOTHING] |= m == 0;
        reached[WHOLE] |= m == 64 && n == 16 && k % 16 == 0;
        reached[RAGGED_M] |= m > 64 && m % 64;
        reached[RAGGED_N] |= n > 16 && n % 16;
        reached[WRAPS] |= iterations(k, 16) > 4;
        reached[FEW] |= iterations(k, 16) == 1;
        reached[ODD] |= k % 2 && n % 2;
        double work = tcc_shape_work(c.ir->first, d);
        ck_assert(work >= 0 && work < 3e6);
    }
    for (int i = 0; i < N_CORNERS; i++)
        ck_assert_msg(reached[i], "corner %d is not reached", i);
    close_check(&c);
}
END_TEST

START_TEST(shapes_are_different)
{
    check c;
    open_check(&c, "kernel f(A: f16[32, 64], B: f16[64, N]) -> (C: f16[32, N])\n"
                   "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n");
    ck_assert_int_eq(tcc_run_passes(c.ir, "choose-axes,choose-variants,choose-schedule", NULL, &c.diag), 0);
    tcc_shapes shapes = tcc_shapes_choose(c.arena, c.ir->first, c.ir->first, 0);
    ck_assert_uint_ge(shapes.n, 4);
    for (size_t i = 0; i < shapes.n; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_int_ne(shapes.dims[i][0], shapes.dims[j][0]);
    close_check(&c);
}
END_TEST

/* Threads take the places of a tile that nothing is computed in, too. */
START_TEST(work_counts_what_a_tile_passes_over)
{
    static const char *const tiles[] = {"tile m 1, n 32;", "tile m 1, n 256;"};
    double work[2];
    for (int n = 0; n < 2; n++) {
        check c;
        char source[256];
        snprintf(source, sizeof source,
                 "kernel f(A: f32[M, 2]) -> (C: f32[M, 2]) { C[m, n] = exp(A[m, n]); }\n"
                 "schedule f for sm_90a { %s }",
                 tiles[n]);
        open_check(&c, source);
        ck_assert_int_eq(tcc_run_passes(c.ir, "choose-axes,choose-variants,choose-schedule", NULL, &c.diag), 0);
        work[n] = tcc_shape_work(c.ir->first, (int64_t[]){128});
        close_check(&c);
    }
    ck_assert(work[1] > 5 * work[0]);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("check_passes");
    TCase *t = tcase_create("check_passes");
    tcase_add_loop_test(t, harm_is_reported, 0, N_HARMS);
    tcase_add_test(t, a_sample_of_changes_is_run);
    tcase_add_loop_test(t, no_harm_is_not_reported, 0, sizeof unharmed / sizeof *unharmed);
    tcase_add_test(t, what_cannot_be_run_is_said);
    tcase_add_loop_test(t, shapes_reach_the_corners_of_a_schedule, 0, 10);
    tcase_add_test(t, shapes_are_different);
    tcase_add_test(t, work_counts_what_a_tile_passes_over);
    suite_add_tcase(s, t);
    return s;
}
