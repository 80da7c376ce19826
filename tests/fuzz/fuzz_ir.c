/* fuzz_ir: textual IR that parses prints to text that reads back as the same IR, and the verifier
 * says the same of both. Valid IR stays valid through the passes that simplify it. Nothing else is
 * promised of a text, but that no one crashes on it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "passes/passes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop(const tcc_diagnostic *d, void *user)
{
    (void)d;
    (void)user;
}

/* Its text, and whether the verifier took it; no text when it did not parse. */
static tcc_str read_and_print(const char *text, size_t size, unsigned flags, bool *valid)
{
    tcc_str out = {0};
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag = {.file = "fuzz", .source = text, .size = size, .fn = drop};
    tcc_ir *ir = arena ? tcc_ir_parse(arena, text, size, &diag) : NULL;
    if (ir) {
        *valid = tcc_ir_verify(ir, TCC_LEVEL_ALL, &diag);
        tcc_str_puts(&out, "\n");
        tcc_ir_print(&out, ir, flags);
    }
    tcc_arena_destroy(arena);
    return out;
}

static void simplify(const char *text, size_t size)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag = {.file = "fuzz", .fn = drop};
    tcc_ir *ir = arena ? tcc_ir_parse(arena, text, size, &diag) : NULL;
    const tcc_pass_options each = {.verify_each = true};
    if (ir && tcc_run_passes(ir, "canonicalize,cse,licm,dce,canonicalize,dce", &each, &diag))
        abort();
    tcc_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    bool valid = false, valid_again = false;
    for (unsigned flags = 0; flags <= TCC_PRINT_LOCS; flags++) {
        tcc_str once = read_and_print(text, size, flags, &valid);
        if (!once.len)
            return 0;
        tcc_str twice = read_and_print(once.data, once.len, flags, &valid_again);
        if (valid != valid_again || strcmp(once.data, tcc_str_text(&twice)) != 0)
            abort();
        tcc_str_free(&once);
        tcc_str_free(&twice);
    }
    if (valid)
        simplify(text, size);
    return 0;
}
