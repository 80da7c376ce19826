/* nvdisasm is a shell script here, which prints what the test needs it to print.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/codegen.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/str.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static const char source[] = "kernel f\n"
                             "{\n"
                             "\tacc[m] = A[m]; \n"
                             "    C[m] = acc[m];\r\n"
                             "}\n";
static const char cubin[] = "\177ELF of a test";

static char folder[64], script[80], ptxas[80], temporary[80];
static tcc_str said; /* "severity line message\n" for each diagnostic */
static tcc_diag diag;
static char *text;
static size_t size;

static void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    static const char *const severities[] = {"note", "warning", "error"};
    (void)user;
    tcc_str_printf(&said, "%s %u %s\n", severities[d->severity], d->line, d->message);
}

static void setup(void)
{
    strcpy(folder, "/tmp/test_sass-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(script, sizeof script, "%s/nvdisasm", folder);
    snprintf(ptxas, sizeof ptxas, "%s/ptxas", folder);
    snprintf(temporary, sizeof temporary, "%s/tmp", folder);
    ck_assert_int_eq(mkdir(temporary, 0700), 0);
    setenv("TMPDIR", temporary, 1);
    diag = (tcc_diag){.file = "a.tile", .source = source, .size = sizeof source - 1, .fn = on_diagnostic};
}

static void teardown(void)
{
    unlink(script);
    unlink(ptxas);
    ck_assert_int_eq(rmdir(temporary), 0); /* nothing was left in it */
    ck_assert_int_eq(rmdir(folder), 0);
    free(text);
    tcc_str_free(&said);
}

static void write_program(const char *path, const char *body)
{
    FILE *f = fopen(path, "w");
    if (!f)
        ck_abort_msg("cannot write %s", path);
    fprintf(f, "#!/bin/sh\n%s", body);
    fclose(f);
    chmod(path, 0700);
}

/* An nvdisasm that prints `out` and says `log`, if its arguments are right and its input is the cubin. */
static void write_script(const char *out, const char *log)
{
    tcc_str body = {0};
    tcc_str_printf(&body,
                   "[ \"$# $1 $2 $3\" = '4 -c -g -sort' ] || exit 9\n"
                   "[ \"$(tail -c +2 \"$4\")\" = '%s' ] || exit 9\n"
                   "cat <<'END'\n%sEND\ncat >&2 <<'END'\n%sEND\n",
                   cubin + 1, out, log);
    write_program(script, tcc_str_text(&body));
    tcc_str_free(&body);
}

static tcc_status list(const char *nvdisasm, const char *beside)
{
    return tcc_sass(cubin, sizeof cubin - 1, &(tcc_sass_options){nvdisasm, beside}, &diag, &text, &size);
}

static void check_lists(const char *printed, const char *expected)
{
    write_script(printed, "");
    ck_assert_int_eq(list(script, NULL), TCC_OK);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(size, strlen(expected));
    ck_assert_str_eq(tcc_str_text(&said), "");
}

/* ---- what is listed -------------------------------------------------------------------- */

START_TEST(instructions_stand_below_their_lines)
{
    check_lists("\t.target\tsm_90a\n"
                "//--------------------- .text.f  --------------------------\n"
                "\t.section\t.text.f,\"ax\",@progbits\n"
                "        .type           f,@function\n"
                "f:\n"
                ".text.f:\n"
                "\t//## File \"a.tile\", line 1\n"
                "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
                "\t//## File \"a.tile\", line 3\n"
                "        /*0010*/               @P0 EXIT ;\n"
                "\t//## File \"a.tile\", line 3\n"
                "        /*0020*/                   LDG.E R2, desc[UR4][R2.64] ;\n"
                "\t//## File \"a.tile\", line 4\n"
                "        /*0030*/              @!P1 STG.E [R2.64], R4 ;\n",
                "f:\n"
                "// a.tile:1: kernel f\n"
                "    0000        LDC R1, c[0x0][0x28]\n"
                "// a.tile:3: acc[m] = A[m];\n"
                "    0010  @P0   EXIT\n"
                "    0020        LDG.E R2, desc[UR4][R2.64]\n"
                "// a.tile:4: C[m] = acc[m];\n"
                "    0030  @!P1  STG.E [R2.64], R4\n");
}
END_TEST

START_TEST(labels_show_the_line_again_and_are_named_as_they_are)
{
    check_lists("f:\n"
                "\t//## File \"a.tile\", line 3\n"
                "        /*0000*/                   NOP ;\n"
                ".L_x_1:\n"
                "        /*0010*/              @!P0 BRA `(.L_x_1) ;\n"
                "        /*0020*/                   BRX R4 -0x30 (*\"BRANCH_TARGETS .L_x_1\"*) ;\n",
                "f:\n"
                "// a.tile:3: acc[m] = A[m];\n"
                "    0000        NOP\n"
                ".L_x_1:\n"
                "// a.tile:3: acc[m] = A[m];\n"
                "    0010  @!P0  BRA .L_x_1\n"
                "    0020        BRX R4 -0x30 (*\"BRANCH_TARGETS .L_x_1\"*)\n");
}
END_TEST

START_TEST(a_kernel_does_not_go_on_with_the_line_of_another)
{
    check_lists("f:\n"
                "\t//## File \"a.tile\", line 3\n"
                "        /*0000*/                   NOP ;\n"
                "g:\n"
                "        /*0000*/                   EXIT ;\n",
                "f:\n"
                "// a.tile:3: acc[m] = A[m];\n"
                "    0000        NOP\n"
                "\n"
                "g:\n"
                "    0000        EXIT\n");
}
END_TEST

START_TEST(lines_that_the_source_does_not_have_are_numbers)
{
    check_lists("f:\n"
                "\t//## File \"odd, line 7.tile\", line 99\n"
                "        /*0000*/                   NOP ;\n"
                "\t//## File \"a.tile\", line 0\n"
                "        /*0010*/                   EXIT ;\n",
                "f:\n"
                "// a.tile:99\n"
                "    0000        NOP\n"
                "    0010        EXIT\n");
}
END_TEST

/* ---- what goes wrong ------------------------------------------------------------------- */

static void check_fails(const char *out, const char *log, const char *expected)
{
    write_script(out, log);
    ck_assert_int_eq(list(script, NULL), TCC_ERR_TOOL);
    ck_assert_ptr_null(text);
    ck_assert_str_eq(tcc_str_text(&said), expected);
}

START_TEST(what_it_complains_of_is_the_error)
{
    check_fails("", "nvdisasm error   : Unrecognized operation for functional unit 'uC'\nmore\n",
                "error 0 nvdisasm error   : Unrecognized operation for functional unit 'uC'\n");
}
END_TEST

START_TEST(a_listing_without_instructions_is_an_error)
{
    char expected[160];
    snprintf(expected, sizeof expected, "error 0 '%s' ended without a result\n", script);
    check_fails("\t.target\tsm_90a\n", "", expected);
}
END_TEST

START_TEST(a_given_path_that_is_no_program_is_an_error)
{
    ck_assert_int_eq(list("/nonexistent/nvdisasm", NULL), TCC_ERR_TOOL);
    ck_assert_str_eq(tcc_str_text(&said), "error 0 '/nonexistent/nvdisasm' is not an executable\n");
}
END_TEST

START_TEST(the_one_beside_ptxas_comes_first)
{
    write_script("f:\n        /*0000*/                   EXIT ;\n", "");
    write_program(ptxas, "exit 0\n");
    setenv("CUDA_HOME", "/nonexistent", 1);
    ck_assert_int_eq(list(NULL, ptxas), TCC_OK);
    ck_assert_str_eq(text, "f:\n    0000        EXIT\n");
}
END_TEST

START_TEST(not_found_says_where_it_was_looked_for)
{
    if (access("/usr/local/cuda/bin/nvdisasm", X_OK) == 0)
        return;
    write_program(ptxas, "exit 0\n");
    setenv("CUDA_HOME", "/nonexistent", 1);
    setenv("PATH", "/nonexistent", 1);
    ck_assert_int_eq(list(NULL, ptxas), TCC_ERR_TOOL);
    tcc_str expected = {0};
    tcc_str_printf(&expected,
                   "error 0 nvdisasm was not found beside %s, in CUDA_HOME/bin (CUDA_HOME is /nonexistent), PATH or "
                   "/usr/local/cuda/bin; it comes with NVIDIA's CUDA toolkit\n",
                   ptxas);
    ck_assert_str_eq(tcc_str_text(&said), tcc_str_text(&expected));
    tcc_str_free(&expected);
}
END_TEST

START_TEST(running_out_of_memory_is_reported_and_leaves_nothing_behind)
{
    write_script("f:\n        /*0000*/                   EXIT ;\n", "");
    unsigned failed = 0;
    for (long n = 0;; n++) {
        oom_fail_after(n);
        tcc_status status = list(script, script);
        oom_fail_after(-1);
        if (status == TCC_OK)
            break;
        failed++;
        ck_assert_int_eq(status, TCC_ERR_MEMORY);
        ck_assert_ptr_null(text);
    }
    ck_assert_uint_gt(failed, 3);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("sass");
    TCase *tc = tcase_create("sass");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, instructions_stand_below_their_lines);
    tcase_add_test(tc, labels_show_the_line_again_and_are_named_as_they_are);
    tcase_add_test(tc, a_kernel_does_not_go_on_with_the_line_of_another);
    tcase_add_test(tc, lines_that_the_source_does_not_have_are_numbers);
    tcase_add_test(tc, what_it_complains_of_is_the_error);
    tcase_add_test(tc, a_listing_without_instructions_is_an_error);
    tcase_add_test(tc, a_given_path_that_is_no_program_is_an_error);
    tcase_add_test(tc, the_one_beside_ptxas_comes_first);
    tcase_add_test(tc, not_found_says_where_it_was_looked_for);
    tcase_add_test(tc, running_out_of_memory_is_reported_and_leaves_nothing_behind);
    suite_add_tcase(s, tc);
    return s;
}
