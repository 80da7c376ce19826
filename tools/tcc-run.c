/* tcc-run: runs kernels on the GPU or the interpreter, checks them against a reference, times them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <string.h>

#include "tools/shared/option_table.h"
#include "tools/tcc-run/merge.h"
#include "tools/tcc-run/result.h"
#include "tools/tcc-run/run.h"
#include "tools/tcc-run/script.h"

const char program_name[] = "tcc-run" TCC_PROGRAM_SUFFIX;

static int run_file(const options *o)
{
    session s = {.diagnostics = {.color = o->color, .json = o->json}};
    run_result r;
    run_case(&s, o, &r);
    if (r.status == EXIT_NO_DRIVER)
        fprintf(stderr, "%s: no GPU: %s\n", program_name, r.message);
    else if (r.status != EXIT_USAGE)
        result_print(stdout, &r);
    session_close(&s);
    return r.status;
}

int main(int argc, char **argv)
{
    options o;
    char why[256];
    int status = EXIT_OK;
    prepare_output();
    if (argc > 1 && !strcmp(argv[1], "merge"))
        return merge_main(argc - 1, argv + 1);
    if (!options_parse(argc, argv, NULL, &o, why, sizeof why)) {
        bad_usage("%s", why);
    }
    if (o.help)
        print_help(TOOL_RUN);
    else if (o.version)
        printf("tcc-run %s\n", tcc_version());
    else
        status = o.script ? script_run(&o) : run_file(&o);
    return finish_output(status);
}
