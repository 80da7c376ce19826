/* ptxas is a shell script here, which says what the test needs it to say.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/codegen.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/str.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static const char ptx[] = ".version 8.0\n"             /* 1 */
                          ".visible .entry first(\n"   /* 2 */
                          ")\n"                        /* 3 */
                          "{\n"                        /* 4 */
                          "\t.loc\t1 10 0\n"           /* 5 */
                          "\tmov.b32 %r1, 0;\n"        /* 6 */
                          "\t.loc\t1 11 3\n"           /* 7 */
                          "\tsetmaxnreg.dec 40;\n"     /* 8 */
                          "\t.loc\t1 12 5\n"           /* 9 */
                          "\twgmma.mma_async {%r1};\n" /* 10 */
                          "\t.loc\t1 0 5\n"            /* 11 */
                          "\tret;\n"                   /* 12 */
                          "}\n"                        /* 13 */
                          ".visible .entry second(\n"  /* 14 */
                          ")\n"                        /* 15 */
                          "{\n"                        /* 16 */
                          "\tmov.b64 %rd1, 0;\n"       /* 17 */
                          "\t.loc\t1 20 2\n"           /* 18 */
                          "\twgmma.mma_async {%r1};\n" /* 19 */
                          "\tret;\n"                   /* 20 */
                          "}\n";                       /* 21 */

static char folder[64], script[80], temporary[80];
static tcc_str said; /* "severity line:column message\n" for each diagnostic */
static tcc_diag diag;
static void *cubin;
static size_t cubin_size;

static void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    static const char *const severities[] = {"note", "warning", "error"};
    (void)user;
    tcc_str_printf(&said, "%s %u:%u %s\n", severities[d->severity], d->line, d->column, d->message);
}

static void setup(void)
{
    strcpy(folder, "/tmp/test_ptxas-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(script, sizeof script, "%s/ptxas", folder);
    snprintf(temporary, sizeof temporary, "%s/tmp", folder);
    ck_assert_int_eq(mkdir(temporary, 0700), 0);
    setenv("TMPDIR", temporary, 1);
    diag = (tcc_diag){.file = "a.tile", .fn = on_diagnostic};
}

static void teardown(void)
{
    unlink(script);
    ck_assert_int_eq(rmdir(temporary), 0); /* nothing was left in it */
    ck_assert_int_eq(rmdir(folder), 0);
    free(cubin);
    tcc_str_free(&said);
}

/* A ptxas that says `log`, gives back its input, and has this exit status. */
static void write_script(const char *log, int status)
{
    FILE *f = fopen(script, "w");
    if (!f)
        ck_abort_msg("cannot write %s", script);
    fprintf(f,
            "#!/bin/sh\n"
            "cat >&2 <<'END'\n%sEND\n"
            "[ $# = 6 ] && [ \"$1 $2 $3 $5\" = '-arch=sm_90a -v -lineinfo -o' ] || exit 9\n"
            "[ %d = 0 ] && cp \"$4\" \"$6\"\n"
            "exit %d\n",
            log, status, status);
    fclose(f);
    chmod(script, 0700);
}

static tcc_status assemble(const char *path)
{
    tcc_ptxas_options options = {.target = "sm_90a", .ptxas = path};
    return tcc_ptxas(ptx, sizeof ptx - 1, &options, &diag, &cubin, &cubin_size);
}

static void check_says(const char *log, int exit_status, tcc_status status, const char *expected)
{
    write_script(log, exit_status);
    ck_assert_int_eq(assemble(script), status);
    ck_assert_str_eq(tcc_str_text(&said), expected);
}

/* ---- what it says ---------------------------------------------------------------------- */

START_TEST(the_result_is_the_object)
{
    check_says("", 0, TCC_OK, "");
    ck_assert_uint_eq(cubin_size, sizeof ptx - 1);
    ck_assert_mem_eq(cubin, ptx, sizeof ptx - 1);
}
END_TEST

START_TEST(plain_information_is_not_passed_on)
{
    check_says("ptxas info    : 0 bytes gmem\n"
               "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
               "ptxas info    : Function properties for first\n"
               "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
               "ptxas info    : Used 168 registers, used 16 barriers\n",
               0, TCC_OK, "");
}
END_TEST

START_TEST(serialised_products_are_warned_of_where_they_are)
{
    check_says("ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions "
               "are serialized due to non wgmma instructions in the function 'first'\n"
               "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions "
               "are serialized due to something in the function 'second'\n",
               0, TCC_OK,
               "warning 12:5 ptxas C7514: wgmma.mma_async instructions are serialized due to non "
               "wgmma instructions in the function 'first'\n"
               "warning 20:2 ptxas C7510: wgmma.mma_async instructions are serialized due to "
               "something in the function 'second'\n");
}
END_TEST

START_TEST(an_ignored_setmaxnreg_is_warned_of_where_it_is)
{
    check_says("ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable "
               "to determine register count at entry.\n",
               0, TCC_OK,
               "warning 11:3 ptxas C7508: 'setmaxnreg' ignored; unable to determine register count "
               "at entry.\n");
}
END_TEST

START_TEST(a_line_within_a_message_is_found)
{
    check_says("ptxas info    : (C7517) warpgroup.wait is injected in around line 19 by compiler\n",
               0, TCC_OK,
               "warning 20:2 ptxas C7517: warpgroup.wait is injected in around line 19 by "
               "compiler\n");
}
END_TEST

START_TEST(spills_are_warned_of_at_the_kernel)
{
    check_says("ptxas info    : Function properties for first\n"
               "    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
               "ptxas info    : Function properties for second\n"
               "    0 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads\n",
               0, TCC_OK,
               "warning 10:1 kernel 'first' spills registers: 24 bytes of stores, 32 bytes of "
               "loads\n"
               "warning 20:2 kernel 'second' spills registers: 0 bytes of stores, 4 bytes of "
               "loads\n");
}
END_TEST

START_TEST(warnings_are_warnings)
{
    check_says("ptxas warning : .minnctapersm is ignored\n"
               "ptxas k.ptx, line 8; warning : odd\n",
               0, TCC_OK,
               "warning 10:1 ptxas: .minnctapersm is ignored\n"
               "warning 11:3 ptxas: odd\n");
}
END_TEST

START_TEST(errors_are_located_and_the_closing_line_is_dropped)
{
    check_says("ptxas /tmp/k.ptx, line 10; error   : Arguments mismatch\n"
               "ptxas /tmp/k.ptx, line 12; error   : Unknown symbol 'x'\n"
               "ptxas fatal   : Ptx assembly aborted due to errors\n",
               255, TCC_ERR_TOOL,
               "error 12:5 ptxas: Arguments mismatch\n"
               "error 12:5 ptxas: Unknown symbol 'x'\n");
    ck_assert_ptr_null(cubin);
}
END_TEST

START_TEST(too_few_registers_are_an_error_at_the_instruction)
{
    check_says("ptxas fatal   : (C7602) Insufficient registers (128) to compile instruction at "
               "line 10 in function first.\n"
               "ptxas fatal   : Ptx assembly aborted due to errors\n",
               255, TCC_ERR_TOOL,
               "error 12:5 ptxas C7602: Insufficient registers (128) to compile instruction at "
               "line 10 in function first.\n");
}
END_TEST

START_TEST(a_fatal_error_alone_is_reported)
{
    check_says("ptxas fatal   : Ptx assembly aborted due to errors\n", 255, TCC_ERR_TOOL,
               "error 10:1 ptxas: Ptx assembly aborted due to errors\n");
}
END_TEST

START_TEST(ending_without_a_result_is_an_error)
{
    write_script("Segmentation fault\n", 139);
    ck_assert_int_eq(assemble(script), TCC_ERR_TOOL);
    ck_assert_ptr_nonnull(strstr(tcc_str_text(&said), "ended without a result"));
}
END_TEST

/* ---- where it is ----------------------------------------------------------------------- */

START_TEST(a_given_path_that_is_no_program_is_an_error)
{
    ck_assert_int_eq(assemble("/nonexistent/ptxas"), TCC_ERR_TOOL);
    ck_assert_str_eq(tcc_str_text(&said), "error 0:0 '/nonexistent/ptxas' is not an executable\n");
}
END_TEST

START_TEST(it_is_found_in_path)
{
    write_script("", 0);
    unsetenv("CUDA_HOME");
    char path[200];
    snprintf(path, sizeof path, "/nonexistent::%s:/bin:/usr/bin", folder);
    setenv("PATH", path, 1);
    ck_assert_int_eq(assemble(NULL), TCC_OK);
    ck_assert_uint_eq(cubin_size, sizeof ptx - 1);
}
END_TEST

START_TEST(cuda_home_comes_first)
{
    char bin[80], program[100];
    snprintf(bin, sizeof bin, "%s/bin", folder);
    snprintf(program, sizeof program, "%s/ptxas", bin);
    ck_assert_int_eq(mkdir(bin, 0700), 0);
    write_script("", 0);
    ck_assert_int_eq(rename(script, program), 0);
    setenv("CUDA_HOME", folder, 1);
    tcc_status status = assemble(NULL);
    unlink(program);
    rmdir(bin);
    ck_assert_int_eq(status, TCC_OK);
    ck_assert_uint_eq(cubin_size, sizeof ptx - 1);
}
END_TEST

START_TEST(not_found_says_where_it_was_looked_for)
{
    if (access("/usr/local/cuda/bin/ptxas", X_OK) == 0)
        return;
    setenv("CUDA_HOME", "/nonexistent", 1);
    setenv("PATH", "/nonexistent", 1);
    ck_assert_int_eq(assemble(NULL), TCC_ERR_TOOL);
    const char *text = tcc_str_text(&said);
    ck_assert_ptr_nonnull(strstr(text, "CUDA_HOME is /nonexistent"));
    ck_assert_ptr_nonnull(strstr(text, "/usr/local/cuda/bin"));
}
END_TEST

START_TEST(a_missing_temporary_folder_is_an_error)
{
    write_script("", 0);
    setenv("TMPDIR", "/nonexistent", 1);
    ck_assert_int_eq(assemble(script), TCC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(tcc_str_text(&said), "/nonexistent/tcc-"));
}
END_TEST

START_TEST(running_out_of_memory_is_reported_and_leaves_nothing_behind)
{
    write_script("", 0);
    unsigned failed = 0;
    for (long n = 0;; n++) {
        oom_fail_after(n);
        tcc_status status = assemble(script);
        oom_fail_after(-1);
        free(cubin);
        cubin = NULL;
        if (status == TCC_OK)
            break;
        failed++;
        ck_assert_int_eq(status, TCC_ERR_MEMORY);
    }
    ck_assert_uint_gt(failed, 3);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("ptxas");
    TCase *tc = tcase_create("ptxas");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_result_is_the_object);
    tcase_add_test(tc, plain_information_is_not_passed_on);
    tcase_add_test(tc, serialised_products_are_warned_of_where_they_are);
    tcase_add_test(tc, an_ignored_setmaxnreg_is_warned_of_where_it_is);
    tcase_add_test(tc, a_line_within_a_message_is_found);
    tcase_add_test(tc, spills_are_warned_of_at_the_kernel);
    tcase_add_test(tc, warnings_are_warnings);
    tcase_add_test(tc, errors_are_located_and_the_closing_line_is_dropped);
    tcase_add_test(tc, too_few_registers_are_an_error_at_the_instruction);
    tcase_add_test(tc, a_fatal_error_alone_is_reported);
    tcase_add_test(tc, ending_without_a_result_is_an_error);
    tcase_add_test(tc, a_given_path_that_is_no_program_is_an_error);
    tcase_add_test(tc, it_is_found_in_path);
    tcase_add_test(tc, cuda_home_comes_first);
    tcase_add_test(tc, not_found_says_where_it_was_looked_for);
    tcase_add_test(tc, a_missing_temporary_folder_is_an_error);
    tcase_add_test(tc, running_out_of_memory_is_reported_and_leaves_nothing_behind);
    suite_add_tcase(s, tc);
    return s;
}
