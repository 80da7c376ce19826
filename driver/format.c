/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <stdlib.h>

#include "driver/context.h"
#include "frontend/frontend.h"

typedef struct texts {
    tcc_str scratch, out;
} texts;

static tcc_status format(tcc_arena *arena, const char *source, size_t size, tcc_diag *diag, texts *t)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(arena, &oom);
    if (!tcc_frontend_format(arena, source, size, diag, &t->scratch, &t->out))
        return diag->status;
    tcc_str_puts(&t->out, "");
    return t->scratch.failed || t->out.failed ? TCC_ERR_MEMORY : TCC_OK;
}

tcc_status tcc_format(tcc_context *ctx, const char *source, size_t size, const char *file, char **out)
{
    texts t = {0};
    *out = NULL;
    tcc_arena *arena = tcc_arena_create(NULL);
    if (!arena)
        return TCC_ERR_MEMORY;
    tcc_diag diag = tcc_context_diag(ctx, file, source, size);
    tcc_status status = format(arena, source, size, &diag, &t);
    if (!status)
        *out = tcc_str_take(&t.out);
    tcc_str_free(&t.scratch);
    tcc_str_free(&t.out);
    tcc_arena_destroy(arena);
    return status;
}
