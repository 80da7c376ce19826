/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/codegen.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/str.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static const char program[] = "func @f(%out: ptr<f32>, %x: f32) {block = 128} {\n"
                              "  %o = arith.const {value = 0} : i64\n"
                              "  %yes = arith.const {value = 1} : i1\n"
                              "  %v = vec.splat %x : vec<f32[64]>\n"
                              "  %r = math.sqrt %v : vec<f32[64]>\n"
                              "  %k = arith.const {value = 0} : i32\n"
                              "  %n = arith.const {value = 9} : i32\n"
                              "  %1 = arith.const {value = 1} : i32\n"
                              "  %s = scf.for %k, %n, %1, %r : vec<f32[64]> {\n"
                              "  ^(%i: i32, %acc: vec<f32[64]>):\n"
                              "    %m = arith.mul %acc, %v : vec<f32[64]>\n"
                              "    scf.yield %m\n"
                              "  }\n"
                              "  nvvm.st.global %out, %o, %yes, %s {align = 16}\n"
                              "  return\n"
                              "}\n";

/* A compilation of its own: arena, IR, diagnostics, output. */
typedef struct compilation {
    tcc_arena *arena;
    tcc_ir *ir;
    tcc_diag diag;
    tcc_str said;
    tcc_codegen_options options;
    char *out;
    size_t size;
} compilation;

static compilation one;

static void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    tcc_str_puts(user, d->text);
}

static void begin(compilation *c, const char *text)
{
    *c = (compilation){.options = {.target = "sm_90a", .output = TCC_CODEGEN_ASM}};
    c->arena = tcc_arena_create(NULL);
    c->diag = (tcc_diag){.file = "a.tir", .fn = on_diagnostic, .user = &c->said};
    c->ir = tcc_ir_parse(c->arena, text, strlen(text), &c->diag);
    ck_assert_msg(c->ir != NULL, "%s", tcc_str_text(&c->said));
}

static tcc_status generate(compilation *c)
{
    return tcc_codegen(c->ir, &c->options, &c->diag, &c->out, &c->size);
}

static void end(compilation *c)
{
    free(c->out);
    tcc_str_free(&c->said);
    tcc_arena_destroy(c->arena);
}

static void setup(void)
{
    begin(&one, program);
}

static void teardown(void)
{
    end(&one);
}

START_TEST(the_text_is_terminated)
{
    ck_assert_int_eq(generate(&one), TCC_OK);
    ck_assert_uint_eq(strlen(one.out), one.size);
    ck_assert_ptr_nonnull(strstr(one.out, ".visible .entry f("));
}
END_TEST

START_TEST(llvm_ir_is_before_its_passes)
{
    one.options.output = TCC_CODEGEN_LLVM;
    ck_assert_int_eq(generate(&one), TCC_OK);
    ck_assert_uint_eq(strlen(one.out), one.size);
    ck_assert_ptr_nonnull(strstr(one.out, "define ptx_kernel void @f("));
    ck_assert_ptr_nonnull(strstr(one.out, "br i1 true, label %loop, label %done"));
}
END_TEST

START_TEST(without_a_file_there_are_no_line_tables)
{
    ck_assert_int_eq(generate(&one), TCC_OK);
    ck_assert_ptr_null(strstr(one.out, ".loc"));
    free(one.out);
    one.options.file = "src/a.tile";
    ck_assert_int_eq(generate(&one), TCC_OK);
    ck_assert_ptr_nonnull(strstr(one.out, ".loc"));
    ck_assert_ptr_nonnull(strstr(one.out, ".file\t1 \"src/a.tile\""));
}
END_TEST

START_TEST(an_unknown_target_is_an_error)
{
    one.options.target = "sm_1";
    ck_assert_int_eq(generate(&one), TCC_ERR_TARGET);
    ck_assert_ptr_nonnull(strstr(tcc_str_text(&one.said), "a.tir: error: no target is named 'sm_1'"));
    ck_assert_ptr_null(one.out);
}
END_TEST

START_TEST(what_cannot_be_translated_is_reported_once)
{
    compilation c;
    begin(&c, "func @f(%x: f32) {\n"
              "  %y = math.erf %x : f32\n"
              "  %z = math.erf %y : f32\n"
              "  return\n"
              "}\n");
    ck_assert_int_eq(generate(&c), TCC_ERR_INTERNAL);
    ck_assert_uint_eq(c.diag.n_errors, 1);
    ck_assert_ptr_null(c.out);
    end(&c);
}
END_TEST

static void add_name(const char *name, double milliseconds, void *user)
{
    ck_assert(milliseconds >= 0);
    tcc_str_printf(user, "%s ", name);
}

START_TEST(phases_are_timed)
{
    one.options.phase = add_name;
    one.options.phase_user = &one.said;
    ck_assert_int_eq(generate(&one), TCC_OK);
    ck_assert_str_eq(tcc_str_text(&one.said), "llvm-build llvm-passes llvm-codegen ");
}
END_TEST

START_TEST(memory_may_run_out_anywhere)
{
    unsigned failed = 0;
    for (long n = 0;; n++) {
        oom_fail_after(n);
        tcc_status status = generate(&one);
        oom_fail_after(-1);
        if (status == TCC_OK)
            break;
        failed++;
        ck_assert_int_eq(status, TCC_ERR_MEMORY);
        ck_assert_ptr_null(one.out);
    }
    ck_assert_uint_gt(failed, 3);
}
END_TEST

static void *generate_many(void *argument)
{
    compilation *c = argument;
    for (int i = 0; i < 8; i++) {
        free(c->out);
        c->out = NULL;
        if (generate(c) != TCC_OK)
            return c;
    }
    return NULL;
}

START_TEST(threads_generate_the_same_at_once)
{
    enum { N = 4 };
    static compilation all[N];
    pthread_t threads[N];
    for (int i = 0; i < N; i++)
        begin(&all[i], program);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, generate_many, &all[i]), 0);
    for (int i = 0; i < N; i++) {
        void *failed;
        ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
        ck_assert_ptr_null(failed);
    }
    for (int i = 1; i < N; i++)
        ck_assert_str_eq(all[i].out, all[0].out);
    for (int i = 0; i < N; i++)
        end(&all[i]);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("codegen");
    TCase *tc = tcase_create("codegen");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_text_is_terminated);
    tcase_add_test(tc, llvm_ir_is_before_its_passes);
    tcase_add_test(tc, without_a_file_there_are_no_line_tables);
    tcase_add_test(tc, an_unknown_target_is_an_error);
    tcase_add_test(tc, what_cannot_be_translated_is_reported_once);
    tcase_add_test(tc, phases_are_timed);
    tcase_add_test(tc, memory_may_run_out_anywhere);
    tcase_add_test(tc, threads_generate_the_same_at_once);
    suite_add_tcase(s, tc);
    return s;
}
