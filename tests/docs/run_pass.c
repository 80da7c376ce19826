/* Runs the pass TESTED_PASS on the textual IR in a file and prints the result: tcc-opt for a pass
 * that is in no list.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>

#include "passes/pass.h"

extern const tcc_pass TESTED_PASS;

static void show(const tcc_diagnostic *d, void *file)
{
    fputs(d->text, file);
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    tcc_diag diag = {.file = argv[1], .source = text, .size = size, .fn = show, .user = stderr};
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_ir *ir = tcc_ir_parse(arena, text, size, &diag);
    if (!ir || !tcc_ir_verify(ir, TCC_LEVEL_ALL, &diag))
        return EXIT_FAILURE;
    tcc_pass_ctx ctx = {.ir = ir, .diag = &diag, .scratch = arena};
    for (tcc_func *f = ir->first; f; f = f->next) {
        bool changed = false;
        if (TESTED_PASS.run(&ctx, f, &changed))
            return EXIT_FAILURE;
    }
    tcc_str out = {0};
    tcc_ir_print(&out, ir, 0);
    fputs(tcc_str_text(&out), stdout);
    return tcc_ir_verify(ir, TCC_LEVEL_ALL, &diag) ? EXIT_SUCCESS : EXIT_FAILURE;
}
