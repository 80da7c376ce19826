/* fuzz_tile: any bytes as a .tile file. What compiles must verify, and its text must read back.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include "frontend/frontend.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Rendering messages is part of what is tested. */
static void receive(const tcc_diagnostic *diagnostic, void *user)
{
    (void)user;
    check(diagnostic->message && diagnostic->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *source = (const char *)data;
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag = {.file = "fuzz.tile", .source = source, .size = size, .fn = receive};
    tcc_ir *ir = tcc_frontend(arena, source, size, "sm_90a", NULL, 0, &diag);
    check((ir != NULL) == (diag.n_errors == 0) && (diag.status == TCC_OK) == (ir != NULL));
    if (ir) {
        check(tcc_ir_verify(ir, TCC_LEVEL_TENSOR, &diag));
        tcc_str text = {0};
        tcc_ir_print(&text, ir, 0);
        check(tcc_ir_parse(arena, tcc_str_text(&text), text.len, &diag) != NULL);
        tcc_str_free(&text);
    }
    tcc_arena_destroy(arena);
    return 0;
}
