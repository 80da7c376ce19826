/* tcc lsp: the language server, on standard input and output.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>

#include <tcc/tcc_lsp.h>

#include "tools/shared/command_line.h"
#include "tools/shared/option_table.h"
#include "tools/tcc/commands.h"

static size_t read_bytes(void *bytes, size_t size, void *user)
{
    (void)user;
    return fread(bytes, 1, size, stdin);
}

static bool write_bytes(const void *bytes, size_t size, void *user)
{
    (void)user;
    return fwrite(bytes, 1, size, stdout) == size && !fflush(stdout);
}

static void take_option(tcc_lsp_options *o, int id, const char *value)
{
    switch (id) {
    case OPTION_OPERAND: bad_usage("lsp: it takes no files: editors send them");
    case OPTION_LSP_TARGET: o->target = value; break;
    case OPTION_LSP_STDIO: break; /* the only way there is */
    case OPTION_LSP_HELP: print_help(TOOL_LSP); exit(finish_output(EXIT_OK));
    case OPTION_LSP_VERSION: printf("tcc lsp %s\n", tcc_version()); exit(finish_output(EXIT_OK));
    default: point_to_help(" lsp");
    }
}

int lsp_main(int argc, char **argv)
{
    tcc_lsp_options o = {.struct_size = sizeof o, .read = read_bytes, .write = write_bytes};
    option_reader reader;
    const char *value;
    option_reader_begin(&reader, TOOL_LSP, false);
    for (int id; (id = option_next(&reader, argc, argv, &value)) != OPTION_END;)
        take_option(&o, id, value);
    tcc_status status = tcc_lsp_serve(&o);
    if (status == TCC_ERR_TARGET)
        bad_usage("lsp: --target=%s: no such target; see --list-targets", o.target);
    if (status)
        fprintf(stderr, "%s: lsp: %s\n", program_name, tcc_status_name(status));
    return status == TCC_ERR_IO ? EXIT_USAGE : status ? EXIT_FAILED : EXIT_OK;
}
