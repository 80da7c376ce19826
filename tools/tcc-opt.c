/* tcc-opt: run passes on textual IR. Everything it does is libtcc's public API.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/command_line.h"
#include "tools/shared/option_table.h"

const char program_name[] = "tcc-opt" TCC_PROGRAM_SUFFIX;

typedef struct arguments {
    tcc_compile_options options;
    const char *input, *output, *passes;
    diagnostic_printer diagnostics;
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

static void take_option(arguments *a, int id, const char *value)
{
    switch (id) {
    case OPTION_OPERAND:
        if (a->input)
            bad_usage("more than one input file");
        a->input = value;
        break;
    case OPTION_OPT_LINES: a->options.line_tables = TCC_ON; break;
    case OPTION_OPT_OUTPUT: a->output = value; break;
    case OPTION_OPT_PASSES: a->passes = value; break;
    case OPTION_OPT_EMIT: a->options.emit = parse_emit(value); break;
    case OPTION_OPT_PRINT_AFTER: a->options.print_after = value; break;
    case OPTION_OPT_VERIFY_EACH: a->options.verify_each = true; break;
    case OPTION_OPT_CHECK_PASSES:
        a->options.check_passes = true;
        a->options.check_seed = parse_check_seed(value);
        break;
    case OPTION_OPT_VERIFY_PIPELINE: a->options.verify_pipeline = TCC_ON; break;
    case OPTION_OPT_NO_VERIFY_PIPELINE: a->options.verify_pipeline = TCC_OFF; break;
    case OPTION_OPT_TIME_PASSES: a->options.time_passes = true; break;
    case OPTION_OPT_LIST_PASSES: list_passes(); exit(finish_output(0));
    case OPTION_OPT_COLOR: parse_color(&a->diagnostics, value); break;
    case OPTION_OPT_DIAGNOSTICS: parse_diagnostics(&a->diagnostics, value); break;
    case OPTION_OPT_HELP: print_help(TOOL_OPT); exit(finish_output(0));
    case OPTION_OPT_VERSION: printf("tcc-opt %s\n", tcc_version()); exit(finish_output(0));
    default: point_to_help("");
    }
}

static void parse_arguments(arguments *a, int argc, char **argv)
{
    option_reader reader;
    const char *value;
    option_reader_begin(&reader, TOOL_OPT, false);
    for (int id; (id = option_next(&reader, argc, argv, &value)) != OPTION_END;)
        take_option(a, id, value);
    if (!a->input)
        bad_usage("no input file");
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
    tcc_context_on_diagnostic(ctx, print_diagnostic, &a.diagnostics);
    int exit_status = EXIT_FAILED;
    tcc_status status = tcc_opt(ctx, ir, size, a.passes, &a.options, &out);
    end_diagnostics(&a.diagnostics);
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
