/* tcc fmt: lays tile programs out in the canonical way.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/command_line.h"
#include "tools/shared/option_table.h"
#include "tools/tcc/commands.h"

typedef struct fmt {
    tcc_context *ctx;
    diagnostic_printer diagnostics;
    const char **files;
    size_t n_files;
    bool check;
} fmt;

static void take_option(fmt *a, int id, const char *value)
{
    switch (id) {
    case OPTION_OPERAND: a->files[a->n_files++] = value; break;
    case OPTION_FMT_CHECK: a->check = true; break;
    case OPTION_FMT_COLOR: parse_color(&a->diagnostics, value); break;
    case OPTION_FMT_DIAGNOSTICS: parse_diagnostics(&a->diagnostics, value); break;
    case OPTION_FMT_HELP: print_help(TOOL_FMT); exit(finish_output(EXIT_OK));
    case OPTION_FMT_VERSION: printf("tcc fmt %s\n", tcc_version()); exit(finish_output(EXIT_OK));
    default: point_to_help(" fmt");
    }
}

/* An exit status. */
static int format_file(fmt *a, const char *file)
{
    bool is_stdin = !strcmp(file, "-");
    size_t size;
    char *source = read_input(file, &size), *text = NULL;
    tcc_status status = tcc_format(a->ctx, source, size, is_stdin ? "<stdin>" : file, &text);
    end_diagnostics(&a->diagnostics);
    if (status == TCC_ERR_MEMORY)
        out_of_memory();
    int result = status ? EXIT_FAILED : EXIT_OK;
    size_t length = text ? strlen(text) : 0;
    bool same = text && length == size && !memcmp(source, text, size);
    if (!status && a->check && !same) {
        puts(is_stdin ? "<stdin>" : file);
        result = EXIT_FAILED;
    } else if (!status && !a->check && (is_stdin || !same)) {
        result = write_output(file, text, length) ? EXIT_OK : EXIT_USAGE;
    }
    tcc_text_destroy(text);
    free(source);
    return result;
}

int fmt_main(int argc, char **argv)
{
    fmt a = {.files = calloc((size_t)argc, sizeof *a.files), .ctx = tcc_context_create()};
    option_reader reader;
    const char *value;
    if (!a.files || !a.ctx)
        out_of_memory();
    option_reader_begin(&reader, TOOL_FMT, false);
    for (int id; (id = option_next(&reader, argc, argv, &value)) != OPTION_END;)
        take_option(&a, id, value);
    if (!a.n_files)
        bad_usage("fmt: no input file");
    tcc_context_on_diagnostic(a.ctx, print_diagnostic, &a.diagnostics);
    int status = EXIT_OK;
    for (size_t i = 0; i < a.n_files; i++) {
        int one = format_file(&a, a.files[i]);
        status = one > status ? one : status;
    }
    tcc_context_destroy(a.ctx);
    free(a.files);
    return finish_output(status);
}
