/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/options.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

static options o;
static char why[256];

/* Parses words separated by single spaces, of a script's line where there is one. */
static bool parse_line(const char *line, const options *script)
{
    static char text[4096];
    char *argv[256], *state = NULL;
    int argc = 0;
    strcpy(text, line);
    argv[argc++] = "tcc-run";
    for (char *word = strtok_r(text, " ", &state); word; word = strtok_r(NULL, " ", &state))
        argv[argc++] = word;
    why[0] = 0;
    return options_parse(argc, argv, script, &o, why, sizeof why);
}

static bool parse(const char *line)
{
    return parse_line(line, NULL);
}

START_TEST(values_follow_or_are_joined)
{
    ck_assert(parse("a.tile --size M=1,N=2 --size=K=0 --kernel k --seed=9 -D X=-3 -DY=4"));
    ck_assert_str_eq(o.file, "a.tile");
    ck_assert_int_eq(option_find(&o.sizes, "M")->extent, 1);
    ck_assert_int_eq(option_find(&o.sizes, "K")->extent, 0);
    ck_assert_ptr_null(option_find(&o.sizes, "X"));
    ck_assert_str_eq(o.kernel, "k");
    ck_assert_uint_eq(o.seed, 9);
    ck_assert_int_eq(option_find(&o.defines, "X")->extent, -3);
    ck_assert_int_eq(option_find(&o.defines, "Y")->extent, 4);
    ck_assert_ptr_null(o.target);
}
END_TEST

START_TEST(lists_may_be_given_in_parts)
{
    ck_assert(parse("a.ptx --set a=0.5,b=1e-3 --set c=2"));
    ck_assert(option_find(&o.scalars, "b")->number == 1e-3);
    ck_assert(option_find(&o.scalars, "c")->number == 2);
}
END_TEST

START_TEST(a_name_is_given_once)
{
    static const struct {
        const char *line, *why;
    } lines[] = {{"a.ptx --set a=0.5,b=1 --set a=2", "--set: 'a' is given twice"},
                 {"a.ptx --size M=1,N=1,M=1", "--size: 'M' is given twice"},
                 {"a.ptx --input A=x --input A=x", "--input: 'A' is given twice"},
                 {"a.ptx --output C=x --output C=y", "--output: 'C' is given twice"},
                 {"a.ptx --misalign A,A", "--misalign: 'A' is given twice"},
                 {"a.tile -D M=1 -DM=1", "-D: 'M' is given twice"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert(!parse(lines[i].line));
        ck_assert_str_eq(why, lines[i].why);
    }
    ck_assert(parse("a.tile -D M=1 --size M=1")); /* what that means the program says */
}
END_TEST

START_TEST(files_may_have_any_name)
{
    ck_assert(parse("a.ptx --input A=x,y=z.npy --output C=c.npy --misalign A,B"));
    ck_assert_str_eq(option_find(&o.inputs, "A")->path, "x,y=z.npy");
    ck_assert_str_eq(option_find(&o.outputs, "C")->path, "c.npy");
    ck_assert_ptr_nonnull(option_find(&o.misaligned, "B"));
}
END_TEST

START_TEST(checking_and_timing)
{
    ck_assert(parse("a.ptx --check"));
    ck_assert(o.check && !o.bench && o.tolerance == 0);
    ck_assert(parse("a.ptx --check=1e-2 --rows 7"));
    ck_assert(o.check && o.tolerance == 1e-2 && o.rows == 7);
    ck_assert(parse("a.ptx --against=cublas"));
    ck_assert(o.bench && o.against == AGAINST_PRODUCT);
    ck_assert(parse("a.ptx --against=cublas:relu_bias"));
    ck_assert(o.against == AGAINST_RELU_BIAS);
    ck_assert(parse("--script a --table t.md --timeout 5"));
    ck_assert(o.script && o.table && o.timeout_s == 5);
    ck_assert(parse("--help"));
    ck_assert(o.help);
    ck_assert(parse("--version"));
    ck_assert(o.version);
}
END_TEST

START_TEST(what_runs_the_kernel)
{
    ck_assert(parse("a.tile"));
    ck_assert(o.on == ON_DEFAULT && !o.level && !o.threads);
    ck_assert(o.order.kind == TCC_INTERPRET_RANDOM && o.order.seed == 1);
    ck_assert(parse("a.ir --on=interp --order early --threads 3"));
    ck_assert(o.on == ON_INTERP && o.order.kind == TCC_INTERPRET_EARLY && o.threads == 3);
    ck_assert(parse("a.tile --on interp --order=random:12 --level async"));
    ck_assert(o.order.kind == TCC_INTERPRET_RANDOM && o.order.seed == 12);
    ck_assert(o.level == TCC_EMIT_ASYNC);
    ck_assert(parse("a.hsaco --on=hip --manifest a.json"));
    ck_assert(o.on == ON_HIP);
    ck_assert_str_eq(o.manifest, "a.json");
    ck_assert(parse("a.tile --on=hip --target gfx1100"));
    ck_assert_str_eq(o.target, "gfx1100");
    ck_assert(parse("--script b --on=hip --device 2"));
    const options script = o;
    ck_assert(parse_line("a.tile", &script));
    ck_assert(o.on == ON_HIP && o.device == 2);
}
END_TEST

START_TEST(lines_inherit_what_their_script_says)
{
    ck_assert(parse("--script a --on=interp --order=late --threads 2 --level tile"));
    const options script = o;
    ck_assert(parse_line("a.tile", &script));
    ck_assert(o.on == ON_INTERP && o.order.kind == TCC_INTERPRET_LATE && o.threads == 2);
    ck_assert(o.level == TCC_EMIT_TILE);
    ck_assert(parse_line("a.tir --order=early", &script));
    ck_assert(o.on == ON_INTERP && o.order.kind == TCC_INTERPRET_EARLY && !o.level);
    ck_assert(parse_line("a.tile --on=gpu --bench", &script));
    ck_assert(o.on == ON_GPU && !o.order.given && !o.level && !o.threads);
    ck_assert(!parse_line("a.tile --on=hip --device=1", &script));
    ck_assert_str_eq(why, "--device is for the command line of the script");
    ck_assert(!parse_line("a.tile --bench", &script));
    ck_assert_str_eq(why, "--bench needs a GPU: timings on the interpreter are meaningless");
}
END_TEST

static const struct {
    const char *line, *message;
} faults[] = {
    {"", "either a file or --script FILE is needed"},
    {"a.ptx --script b", "either a file or --script FILE is needed"},
    {"a.ptx --table t.md", "--table belongs to --script"},
    {"a.ptx b.ptx", "two files: 'a.ptx' and 'b.ptx'"},
    {"a.ptx --frobnicate", "unknown option '--frobnicate'"},
    {"a.ptx --siz M=1", "unknown option '--siz'"},
    {"a.ptx -x", "unknown option '-x'"},
    {"a.ptx --size", "--size needs a value"},
    {"a.ptx --size M", "bad value of --size: 'M'"},
    {"a.ptx --size M=", "bad value of --size: 'M='"},
    {"a.ptx --size =1", "bad value of --size: '=1'"},
    {"a.ptx --size M=-1", "bad value of --size: 'M=-1'"},
    {"a.ptx --size M=1x", "bad value of --size: 'M=1x'"},
    {"a.ptx --size M=1,,N=2", "bad value of --size: 'M=1,,N=2'"},
    {"a.ptx --size M=99999999999999999999", "bad value of --size: 'M=99999999999999999999'"},
    {"a.ptx --set a=b", "bad value of --set: 'a=b'"},
    {"a.ptx --input A", "bad value of --input: 'A'"},
    {"a.ptx --misalign A=1", "bad value of --misalign: 'A=1'"},
    {"a.ptx --check=no", "bad value of --check: 'no'"},
    {"a.ptx --check=0", "bad value of --check: '0'"},
    {"a.ptx --bench=1", "bad value of --bench: '1'"},
    {"a.ptx --against=mkl", "bad value of --against: 'mkl'"},
    {"a.ptx --rows 0", "bad value of --rows: '0'"},
    {"a.ptx --seed -1", "bad value of --seed: '-1'"},
    {"a.ptx --timeout 0", "bad value of --timeout: '0'"},
    {"a.ptx --kernel=", "bad value of --kernel: ''"},
    {"a.tile --on=cpu", "bad value of --on: 'cpu'"},
    {"a.tile --on=interp --order=random", "bad value of --order: 'random'"},
    {"a.tile --on=interp --order=random:x", "bad value of --order: 'random:x'"},
    {"a.tile --on=interp --level ptx", "bad value of --level: 'ptx'"},
    {"a.tile --on=interp --threads 0", "bad value of --threads: '0'"},
    {"a.tile --order=early", "--order belongs to --on=interp"},
    {"a.tile --level=tile", "--level belongs to --on=interp"},
    {"a.tile --on=gpu --threads 2", "--threads belongs to --on=interp"},
    {"a.tir --on=interp --level=tile", "--level is for .tile files: other IR is of one level"},
    {"a.ptx --on=interp", "--on=interp runs .tile and .tir files"},
    {"a.tile --on=interp --bench", "--bench needs a GPU: timings on the interpreter are meaningless"},
    {"a.ir --on=interp -D M=1", "-D is for .tile files"},
    {"a.ptx --target=sm_90a", "--target is for .tile files: others are for one target"},
    {"a.tile --rows 3", "--rows belongs to --check"},
    {"a.tile --device=-1", "bad value of --device: '-1'"},
    {"a.tile --on=interp --device 1", "--device is for GPUs"},
    {"a.tile --on=hip --against=cublas", "--against needs CUDA: it is cuBLASLt's product"},
    {"a.tile --on=hip --order=early", "--order belongs to --on=interp"},
    {"a.tile --on=hip --manifest=a.json", "--manifest is for files that are compiled already"},
    {"a.tile --on=interp --against=cublas",
     "--against needs a GPU: timings on the interpreter are meaningless"},
};

START_TEST(bad_usage_is_told)
{
    ck_assert(!parse(faults[_i].line));
    ck_assert_str_eq(why, faults[_i].message);
}
END_TEST

START_TEST(too_many_pairs_are_refused)
{
    char line[2048] = "a.ptx --size a0=1";
    for (int i = 1; i < MAX_PAIRS; i++)
        sprintf(strchr(line, 0), ",a%d=1", i);
    ck_assert(parse(line));
    strcat(line, ",a=1");
    ck_assert(!parse(line));
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("options");
    TCase *tcase = tcase_create("options");
    tcase_add_test(tcase, values_follow_or_are_joined);
    tcase_add_test(tcase, lists_may_be_given_in_parts);
    tcase_add_test(tcase, a_name_is_given_once);
    tcase_add_test(tcase, files_may_have_any_name);
    tcase_add_test(tcase, checking_and_timing);
    tcase_add_loop_test(tcase, bad_usage_is_told, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_test(tcase, what_runs_the_kernel);
    tcase_add_test(tcase, lines_inherit_what_their_script_says);
    tcase_add_test(tcase, too_many_pairs_are_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
