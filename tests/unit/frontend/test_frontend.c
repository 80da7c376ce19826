/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/frontend.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static const char gemm[] = "kernel gemm(A: f16[M, K], B: f16[K, N], alpha: f32) -> (C: f16[M, N])\n"
                           "{\n"
                           "    acc[m, n] = sum(k) A[m, k] * B[k, n];\n"
                           "    C[m, n]   = where(acc[m, n] > 0.5, alpha, -acc[m, n]);\n"
                           "}\n"
                           "schedule gemm for sm_90a\n"
                           "{\n"
                           "    tile m 128, n 256;\n"
                           "    stages 4;\n"
                           "}\n";

static tcc_arena *arena;

static void setup(void)
{
    arena = tcc_arena_create(NULL);
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

static tcc_ir *compile(const char *source, const char *target, tcc_diag *diag)
{
    *diag = (tcc_diag){.file = "a.tile", .source = source, .size = strlen(source)};
    return tcc_frontend(arena, source, strlen(source), target, NULL, 0, diag);
}

static tcc_status status_of(const char *source)
{
    tcc_diag diag;
    ck_assert_ptr_null(compile(source, "sm_90a", &diag));
    ck_assert_uint_ge(diag.n_errors, 1);
    return diag.status;
}

static tcc_op *find_op(const tcc_func *f, tcc_opcode code)
{
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == code)
            return op;
    return NULL;
}

static void check_loc(tcc_loc loc, unsigned line, unsigned column)
{
    ck_assert_uint_eq(loc.line, line);
    ck_assert_uint_eq(loc.column, column);
}

START_TEST(everything_has_its_place_in_the_source)
{
    tcc_diag diag;
    tcc_ir *ir = compile(gemm, "sm_90a", &diag);
    ck_assert_ptr_nonnull(ir);
    const tcc_func *f = ir->first;
    check_loc(f->loc, 1, 8);
    check_loc(find_op(f, TCC_OP_tensor_read)->loc, 3, 24);
    check_loc(find_op(f, TCC_OP_arith_cast)->loc, 3, 24);
    check_loc(find_op(f, TCC_OP_arith_mul)->loc, 3, 32);
    check_loc(find_op(f, TCC_OP_tensor_reduce)->loc, 3, 17);
    check_loc(find_op(f, TCC_OP_arith_cmp)->loc, 4, 33);
    check_loc(find_op(f, TCC_OP_arith_const)->loc, 4, 35);
    check_loc(find_op(f, TCC_OP_arith_neg)->loc, 4, 47);
    check_loc(find_op(f, TCC_OP_arith_select)->loc, 4, 17);
    check_loc(find_op(f, TCC_OP_tensor_write)->loc, 4, 5);
    check_loc(tcc_attr_find(&f->attrs, "tile")->loc, 8, 10);
    check_loc(tcc_attr_find(&f->attrs, "stages")->loc, 9, 12);
}
END_TEST

START_TEST(the_module_knows_file_and_target)
{
    tcc_diag diag;
    tcc_ir *ir = compile(gemm, "sm_90a", &diag);
    ck_assert_str_eq(tcc_attr_str(&ir->attrs, "file", ""), "a.tile");
    ck_assert_str_eq(tcc_attr_str(&ir->attrs, "target", ""), "sm_90a");
}
END_TEST

START_TEST(a_schedule_for_another_target_does_not_apply)
{
    tcc_diag diag;
    tcc_ir *ir = compile(gemm, "sm_80", &diag);
    ck_assert_ptr_nonnull(ir);
    ck_assert_ptr_null(tcc_attr_find(&ir->first->attrs, "stages"));
}
END_TEST

START_TEST(what_is_built_verifies_and_reads_back)
{
    tcc_diag diag;
    tcc_ir *ir = compile(gemm, "sm_90a", &diag);
    ck_assert(tcc_ir_verify(ir, TCC_LEVEL_TENSOR, &diag));
    tcc_str text = {0}, again = {0};
    tcc_ir_print(&text, ir, 0);
    tcc_ir *parsed = tcc_ir_parse(arena, tcc_str_text(&text), text.len, &diag);
    ck_assert_ptr_nonnull(parsed);
    tcc_ir_print(&again, parsed, 0);
    ck_assert_str_eq(tcc_str_text(&text), tcc_str_text(&again));
    tcc_str_free(&text);
    tcc_str_free(&again);
}
END_TEST

START_TEST(the_status_says_what_kind_of_error)
{
    ck_assert_int_eq(status_of("kernel"), TCC_ERR_SYNTAX);
    ck_assert_int_eq(status_of(""), TCC_ERR_SYNTAX);
    ck_assert_int_eq(status_of("\377"), TCC_ERR_SYNTAX);
    ck_assert_int_eq(status_of("kernel k(A: f16[M]) -> (C: f16[M]) { C[m] = x; }"), TCC_ERR_TYPE);
    ck_assert_int_eq(status_of("kernel k(A: i4[M]) -> (C: i4[M]) { C[m] = A[m]; }"),
                     TCC_ERR_UNSUPPORTED);
    ck_assert_int_eq(status_of("kernel k(A: f16[M, K], B: f16[K]) -> (C: f16[M])\n"
                               "{ C[m] = sum(k) A[m, k] * B[k]; } schedule k for z80 {}"),
                     TCC_ERR_TARGET);
}
END_TEST

START_TEST(an_unknown_define_is_an_argument_error)
{
    tcc_diag diag = {.file = "a.tile", .source = gemm, .size = sizeof gemm - 1};
    tcc_frontend_define define = {"P", 4};
    ck_assert_ptr_null(tcc_frontend(arena, gemm, sizeof gemm - 1, "sm_90a", &define, 1, &diag));
    ck_assert_int_eq(diag.status, TCC_ERR_ARGUMENT);
}
END_TEST

START_TEST(the_source_needs_no_terminator)
{
    static const char source[] = "kernel k(A: f16[M, K], B: f16[K]) -> (C: f16[M])\n"
                                 "{ C[m] = 2 * sum(k) A[m, k] * B[k]; }";
    for (size_t size = 0; size < sizeof source; size++) {
        char *exact = malloc(size); /* so that a sanitizer sees a read past the end */
        memcpy(exact, source, size);
        tcc_diag diag = {.source = exact, .size = size};
        tcc_ir *ir = tcc_frontend(arena, exact, size, "sm_90a", NULL, 0, &diag);
        ck_assert_int_eq(ir != NULL, size == sizeof source - 1);
        free(exact);
    }
}
END_TEST

/* Compiles with the n-th allocation failing; false when it did fail. */
static bool compile_with_failure(const char *source, long n)
{
    jmp_buf on_oom;
    tcc_arena *volatile own = NULL;
    volatile bool done = false;
    oom_fail_after(n);
    if (!setjmp(on_oom)) {
        own = tcc_arena_create(&on_oom);
        if (own) {
            tcc_diag diag = {.source = source, .size = strlen(source)};
            tcc_frontend(own, source, strlen(source), "sm_90a", NULL, 0, &diag);
            done = true;
        }
    }
    oom_fail_after(-1);
    tcc_arena_destroy(own);
    return done;
}

START_TEST(every_allocation_may_fail)
{
    static const char wrong[] = "const a = 1; const a = 2; kernel k(A: f16[M, K]) -> (C: f16[M])\n"
                                "{ C[m] = rleu(A[m, k]); } schedule k for sm_90b { stages 4; }";
    const char *sources[] = {gemm, wrong};
    for (size_t i = 0; i < 2; i++) {
        long n = 0;
        while (!compile_with_failure(sources[i], n))
            n++;
        ck_assert_int_ge(n, 2);
    }
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("frontend");
    TCase *tc = tcase_create("frontend");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, everything_has_its_place_in_the_source);
    tcase_add_test(tc, the_module_knows_file_and_target);
    tcase_add_test(tc, a_schedule_for_another_target_does_not_apply);
    tcase_add_test(tc, what_is_built_verifies_and_reads_back);
    tcase_add_test(tc, the_status_says_what_kind_of_error);
    tcase_add_test(tc, an_unknown_define_is_an_argument_error);
    tcase_add_test(tc, the_source_needs_no_terminator);
    tcase_add_test(tc, every_allocation_may_fail);
    suite_add_tcase(s, tc);
    return s;
}
