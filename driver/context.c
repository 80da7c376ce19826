/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/context.h"

#include <stdlib.h>

#include "passes/passes.h"

const char *tcc_version(void)
{
    return TCC_VERSION_STRING;
}

tcc_context *tcc_context_create(void)
{
    return calloc(1, sizeof(tcc_context));
}

void tcc_context_destroy(tcc_context *ctx)
{
    free(ctx);
}

void tcc_context_on_diagnostic(tcc_context *ctx, tcc_diagnostic_fn fn, void *user)
{
    if (!ctx)
        return;
    ctx->fn = fn;
    ctx->user = user;
}

void tcc_context_interrupt(tcc_context *ctx)
{
    if (ctx)
        atomic_store(&ctx->interrupted, true);
}

tcc_diag tcc_context_diag(const tcc_context *ctx, const char *file, const char *source, size_t size)
{
    return (tcc_diag){.file = file ? file : "<source>",
                      .source = source,
                      .size = size,
                      .fn = ctx ? ctx->fn : NULL,
                      .user = ctx ? ctx->user : NULL};
}

const char *tcc_pass_name(size_t i)
{
    const tcc_pass *p = tcc_pass_at(i);
    return p ? p->name : NULL;
}

const char *tcc_pass_summary(size_t i)
{
    const tcc_pass *p = tcc_pass_at(i);
    return p ? p->summary : NULL;
}
