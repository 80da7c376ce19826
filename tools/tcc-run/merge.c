/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tcc/tcc_tune.h>

#include "tools/shared/command_line.h"
#include "tools/shared/option_table.h"

typedef struct merge {
    tcc_context *ctx;
    diagnostic_printer diagnostics;
    tcc_tune_part *parts;
    size_t n_parts;
    const char *output;
} merge;

static void take_option(merge *m, int id, const char *value)
{
    switch (id) {
    case OPTION_OPERAND: m->parts[m->n_parts++].file = value; break;
    case OPTION_MERGE_OUTPUT: m->output = value; break;
    case OPTION_MERGE_COLOR: parse_color(&m->diagnostics, value); break;
    case OPTION_MERGE_DIAGNOSTICS: parse_diagnostics(&m->diagnostics, value); break;
    case OPTION_MERGE_HELP: print_help(TOOL_MERGE); exit(finish_output(EXIT_OK));
    case OPTION_MERGE_VERSION: printf("tcc-run merge %s\n", tcc_version()); exit(finish_output(EXIT_OK));
    default: point_to_help(" merge");
    }
}

static void read_parts(merge *m)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        tcc_tune_part *part = &m->parts[i];
        part->text = read_input(part->file, &part->size);
        if (!strcmp(part->file, "-"))
            part->file = "<stdin>";
    }
}

/* An exit status. */
static int write_merged(merge *m)
{
    char *text;
    tcc_status status = tcc_tune_merge(m->ctx, m->parts, m->n_parts, &text);
    end_diagnostics(&m->diagnostics);
    if (status == TCC_ERR_MEMORY)
        out_of_memory();
    int result = status ? EXIT_FAILED : write_output(m->output, text, strlen(text)) ? EXIT_OK : EXIT_USAGE;
    tcc_text_destroy(text);
    return result;
}

int merge_main(int argc, char **argv)
{
    merge m = {.ctx = tcc_context_create(), .parts = calloc((size_t)argc, sizeof *m.parts), .output = "-"};
    option_reader reader;
    const char *value;
    if (!m.ctx || !m.parts)
        out_of_memory();
    option_reader_begin(&reader, TOOL_MERGE, false);
    for (int id; (id = option_next(&reader, argc, argv, &value)) != OPTION_END;)
        take_option(&m, id, value);
    if (!m.n_parts)
        bad_usage("merge: no file of results");
    tcc_context_on_diagnostic(m.ctx, print_diagnostic, &m.diagnostics);
    read_parts(&m);
    int status = write_merged(&m);
    for (size_t i = 0; i < m.n_parts; i++)
        free((char *)m.parts[i].text);
    free(m.parts);
    tcc_context_destroy(m.ctx);
    return finish_output(status);
}
