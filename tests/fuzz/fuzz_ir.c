/* fuzz_ir: textual IR that parses prints to text that reads back as the same IR, and the verifier
 * says the same of both. Nothing else is promised of a text, but that no one crashes on it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Its text, and whether the verifier took it; no text when it did not parse. */
static tcc_str read_and_print(const char *text, size_t size, unsigned flags, bool *valid)
{
    tcc_str out = {0};
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag = {.file = "fuzz", .source = text, .size = size};
    tcc_ir *ir = arena ? tcc_ir_parse(arena, text, size, &diag) : NULL;
    if (ir) {
        *valid = tcc_ir_verify(ir, TCC_LEVEL_ALL, &diag);
        tcc_str_puts(&out, "\n");
        tcc_ir_print(&out, ir, flags);
    }
    tcc_arena_destroy(arena);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (unsigned flags = 0; flags <= TCC_PRINT_LOCS; flags++) {
        bool valid = false, valid_again = false;
        tcc_str once = read_and_print((const char *)data, size, flags, &valid);
        if (!once.len)
            return 0;
        tcc_str twice = read_and_print(once.data, once.len, flags, &valid_again);
        if (valid != valid_again || strcmp(once.data, tcc_str_text(&twice)) != 0)
            abort();
        tcc_str_free(&once);
        tcc_str_free(&twice);
    }
    return 0;
}
