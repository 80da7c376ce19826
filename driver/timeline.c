/* timeline: what a launch of a kernel that was compiled for a timeline has recorded.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <string.h>

#include "driver/module.h"
#include "interp/replay.h"
#include "ir/signature.h"

typedef struct request {
    const tcc_module *mod;
    const char *variant;
    const void *workspace;
    size_t bytes;
    const char *beside;
    tcc_arena *arena;
    tcc_diag diag;
    tcc_str timeline, summary;
} request;

static tcc_status read(request *r)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(r->arena, &oom);
    const tcc_func *f = tcc_func_find(r->mod->ir, r->variant);
    if (!f || !tcc_func_is_entry(f)) {
        tcc_error(&r->diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0}, "the module has no entry '%s'", r->variant);
        return TCC_ERR_ARGUMENT;
    }
    const tcc_timeline *t = tcc_replay(f, r->workspace, r->bytes, r->arena, &r->diag);
    if (!t)
        return TCC_ERR_ARGUMENT;
    tcc_timeline_print(&r->timeline, t, r->beside);
    tcc_timeline_summarize(&r->summary, t);
    return r->timeline.failed || r->summary.failed ? TCC_ERR_MEMORY : TCC_OK;
}

tcc_status tcc_timeline_read(tcc_context *ctx, const tcc_module *mod, const char *variant, const void *workspace,
                             size_t bytes, const char *beside, char **timeline, char **summary)
{
    if (!mod || !variant || !workspace || !timeline)
        return TCC_ERR_ARGUMENT;
    request r = {.mod = mod, .variant = variant, .workspace = workspace, .bytes = bytes, .beside = beside,
                 .arena = tcc_arena_create(NULL),
                 .diag = tcc_context_diag(ctx, mod->file, mod->source, mod->source_size)};
    *timeline = NULL;
    if (summary)
        *summary = NULL;
    if (!r.arena)
        return TCC_ERR_MEMORY;
    tcc_status status = read(&r);
    if (!status) {
        *timeline = tcc_str_take(&r.timeline);
        if (summary)
            *summary = tcc_str_take(&r.summary);
    }
    tcc_arena_destroy(r.arena);
    tcc_str_free(&r.timeline);
    tcc_str_free(&r.summary);
    return status;
}
