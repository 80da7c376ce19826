/* tcc-opt: run passes on textual IR. Everything it does is libtcc's public API.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/command_line.h"

const char program_name[] = "tcc-opt";

static const char usage[] =
    "usage: tcc-opt [options] FILE.tir\n"
    "\n"
    "Parses and verifies textual IR of any level, runs passes on it and prints it. '-' is standard\n"
    "input or output.\n"
    "\n"
    "  --passes=A,B,…        run these, in this order; --list-passes shows all (default: none)\n"
    "  --emit=KIND           ir; or, of IR of the target level, llvm, ptx, asm, obj or hsaco\n"
    "                        (default: ir)\n"
    "  -o FILE               write here (default: standard output)\n"
    "  -g                    line tables in code objects, too\n"
    "  --print-after=PASS    show the IR after a pass; 'all', or 'changed': where it changed\n"
    "  --verify-each         verify the IR after every pass\n"
    "  --check-passes[=SEED] run what is at the tensor level on small shapes before and after\n"
    "                        every pass, and compare\n"
    "  --verify-pipeline     prove that barriers, copies and MMAs go together, for all sizes\n"
    "  --time-passes         show where the time goes\n"
    "  --list-passes         list the passes\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0, 1 for bad IR, 2 for bad usage and files that cannot be read or written.\n";

typedef struct arguments {
    tcc_compile_options options;
    const char *input, *output, *passes;
} arguments;

static bool is_pass(const char *name, size_t n)
{
    const char *pass;
    for (size_t i = 0; (pass = tcc_pass_name(i)); i++)
        if (strlen(pass) == n && !memcmp(pass, name, n))
            return true;
    return false;
}

static void check_names(const arguments *a)
{
    const char *after = a->options.print_after;
    for (const char *p = a->passes; *p;) {
        size_t n = strcspn(p, ",");
        if (!is_pass(p, n))
            bad_usage("--passes: no pass is named '%.*s'; see --list-passes", (int)n, p);
        p += n + (p[n] == ',');
    }
    if (after && strcmp(after, "all") != 0 && strcmp(after, "changed") != 0 &&
        !is_pass(after, strlen(after)))
        bad_usage("--print-after: no pass is named '%s'; see --list-passes", after);
}

static tcc_emit parse_emit(const char *name)
{
    static const tcc_emit kinds[] = {TCC_EMIT_IR,  TCC_EMIT_LLVM, TCC_EMIT_PTX,
                                     TCC_EMIT_ASM, TCC_EMIT_OBJ,  TCC_EMIT_HSACO};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(tcc_emit_name(kinds[i]), name))
            return kinds[i];
    bad_usage("--emit=%s: no such kind", name);
}

static void list_passes(void)
{
    for (size_t i = 0; tcc_pass_name(i); i++)
        printf("%-20s %s\n", tcc_pass_name(i), tcc_pass_summary(i));
}

static void parse_arguments(arguments *a, int argc, char **argv)
{
    enum {
        PASSES = 256,
        EMIT,
        PRINT_AFTER,
        VERIFY_EACH,
        CHECK_PASSES,
        VERIFY_PIPELINE,
        TIME_PASSES,
        LIST_PASSES,
        HELP,
        VERSION
    };
    static const struct option options[] = {
        {"passes", required_argument, NULL, PASSES},
        {"emit", required_argument, NULL, EMIT},
        {"print-after", required_argument, NULL, PRINT_AFTER},
        {"verify-each", no_argument, NULL, VERIFY_EACH},
        {"check-passes", optional_argument, NULL, CHECK_PASSES},
        {"verify-pipeline", no_argument, NULL, VERIFY_PIPELINE},
        {"time-passes", no_argument, NULL, TIME_PASSES},
        {"list-passes", no_argument, NULL, LIST_PASSES},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "o:gh", options, NULL)) != -1;)
        switch (c) {
        case 'g': a->options.line_tables = TCC_ON; break;
        case 'o': a->output = optarg; break;
        case PASSES: a->passes = optarg; break;
        case EMIT: a->options.emit = parse_emit(optarg); break;
        case PRINT_AFTER: a->options.print_after = optarg; break;
        case VERIFY_EACH: a->options.verify_each = true; break;
        case CHECK_PASSES:
            a->options.check_passes = true;
            a->options.check_seed = parse_check_seed(optarg);
            break;
        case VERIFY_PIPELINE: a->options.verify_pipeline = TCC_ON; break;
        case TIME_PASSES: a->options.time_passes = true; break;
        case LIST_PASSES: list_passes(); exit(finish_output(0));
        case 'h':
        case HELP: fputs(usage, stdout); exit(finish_output(0));
        case VERSION: printf("tcc-opt %s\n", tcc_version()); exit(finish_output(0));
        default: fputs("Try 'tcc-opt --help'.\n", stderr); exit(EXIT_USAGE);
        }
    if (optind != argc - 1)
        bad_usage(optind < argc ? "more than one input file" : "no input file");
    a->input = argv[optind];
    a->options.file = strcmp(a->input, "-") != 0 ? a->input : "<stdin>";
    check_names(a);
}

int main(int argc, char **argv)
{
    arguments a = {
        .options = {.struct_size = sizeof a.options, .emit = TCC_EMIT_IR, .print = print_text},
        .output = "-",
        .passes = ""};
    prepare_output();
    parse_arguments(&a, argc, argv);
    size_t size;
    char *ir = read_input(a.input, &size), *out = NULL;
    size_t out_size = 0;
    a.options.output_size = &out_size;
    tcc_context *ctx = tcc_context_create();
    if (!ctx)
        out_of_memory();
    tcc_context_on_diagnostic(ctx, print_diagnostic, NULL);
    int exit_status = EXIT_FAILED;
    tcc_status status = tcc_opt(ctx, ir, size, a.passes, &a.options, &out);
    if (!status)
        exit_status = write_output(a.output, out, out_size) ? 0 : EXIT_USAGE;
    else if (status == TCC_ERR_MEMORY)
        out_of_memory();
    else if (status == TCC_ERR_ARGUMENT)
        exit_status = EXIT_USAGE;
    tcc_text_destroy(out);
    tcc_context_destroy(ctx);
    free(ir);
    return finish_output(exit_status);
}
