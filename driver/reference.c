/* reference: what a kernel computes, by running its tensor-level IR on the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <string.h>

#include "driver/context.h"
#include "interp/interp.h"
#include "runtime/manifest.h"

typedef struct request {
    const tcc_context *ctx;
    const char *manifest, *kernel;
    const int64_t *dims;
    double *const *args;
    const int64_t *rows;
    size_t n_rows;
} request;

static const char *find_reference(const tcc_manifest *m, const char *kernel)
{
    for (size_t i = 0; i < m->n_kernels; i++)
        if (!strcmp(m->kernels[i].name, kernel))
            return m->kernels[i].reference;
    return NULL;
}

static tcc_status run(const request *r, tcc_arena *arena)
{
    tcc_diag diag = tcc_context_diag(r->ctx, "<manifest>", NULL, 0);
    const tcc_manifest *m;
    tcc_status status = tcc_manifest_read(arena, &diag, r->manifest, &m);
    if (status)
        return status;
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(arena, &oom);
    const char *text = find_reference(m, r->kernel);
    if (!text) {
        tcc_error(&diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0},
                  "the manifest has no reference for a kernel '%s'", r->kernel);
        return TCC_ERR_ARGUMENT;
    }
    diag = tcc_context_diag(r->ctx, "<reference>", text, strlen(text));
    tcc_ir *ir = tcc_ir_parse(arena, text, strlen(text), &diag);
    if (!ir || !ir->first)
        return TCC_ERR_SYNTAX;
    if (!tcc_ir_verify(ir, TCC_LEVEL_TENSOR, &diag))
        return TCC_ERR_TYPE;
    const tcc_interp_options o = {.dims = r->dims, .rows = r->rows, .n_rows = r->n_rows};
    return tcc_interp_run(ir->first, &o, r->args, arena, &diag);
}

tcc_status tcc_reference(tcc_context *ctx, const char *manifest, const char *kernel,
                         const int64_t *dims, double *const *args, const int64_t *rows,
                         size_t n_rows)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    if (!arena)
        return TCC_ERR_MEMORY;
    const request r = {ctx, manifest, kernel, dims, args, rows, n_rows};
    tcc_status status = run(&r, arena);
    tcc_arena_destroy(arena);
    return status;
}
