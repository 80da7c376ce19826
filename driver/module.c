/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/module.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "driver/manifest.h"
#include "ir/signature.h"
#include "ir/target.h"

/* ---- from textual IR ---------------------------------------------------------------------- */

tcc_status tcc_module_read_ir(tcc_arena *arena, const char *text, size_t size, tcc_diag *diag,
                              tcc_ir **out)
{
    tcc_ir *ir = tcc_ir_parse(arena, text, size, diag);
    if (!ir)
        return diag->status ? diag->status : TCC_ERR_SYNTAX;
    const char *target = tcc_attr_str(&ir->attrs, "target", "sm_90a");
    if (!tcc_target_named(target, diag))
        return TCC_ERR_TARGET;
    const char *file = tcc_attr_str(&ir->attrs, "file", NULL);
    if (file) {
        diag->file = file;
        diag->source = NULL;
    }
    *out = ir;
    return tcc_ir_verify(ir, TCC_LEVEL_ALL, diag) ? TCC_OK : TCC_ERR_TYPE;
}

/* What a kernel computes, where the module says it: its definition, or the kernel itself. */
static const tcc_func *definition_of(const tcc_func *f)
{
    tcc_diag silent = {0};
    const tcc_func *definition = tcc_func_definition(f->ir, tcc_func_kernel(f));
    if (definition)
        return definition;
    return !tcc_func_is_entry(f) && tcc_func_verify(f, TCC_LEVEL_TENSOR, &silent) ? f : NULL;
}

typedef struct kernels {
    const tcc_func **signatures;
    tcc_signature *printed;
    size_t n;
} kernels;

static tcc_status add_function(tcc_module *mod, kernels *k, const tcc_func *f, tcc_diag *diag)
{
    const tcc_func *signature = tcc_func_signature(f, mod->arena, diag);
    if (!signature)
        return TCC_ERR_TYPE;
    for (size_t i = 0; i < k->n; i++) {
        if (strcmp(k->signatures[i]->name, signature->name))
            continue;
        if (tcc_signature_equal(k->signatures[i], signature))
            return TCC_OK;
        tcc_error(diag, TCC_ERR_TYPE, f->loc,
                  "func @%s: it has other arguments than its kernel '%s' before it", f->name,
                  signature->name);
        return TCC_ERR_TYPE;
    }
    tcc_signature_print(&k->printed[k->n], signature, definition_of(f));
    mod->kernels[k->n] = signature->name;
    k->signatures[k->n++] = signature;
    mod->n_kernels = k->n;
    return TCC_OK;
}

static tcc_status describe(tcc_module *mod, tcc_diag *diag)
{
    size_t n = 0;
    for (const tcc_func *f = mod->ir->first; f; f = f->next)
        n++;
    kernels k = {TCC_NEW_ARRAY(mod->arena, const tcc_func *, n),
                 TCC_NEW_ARRAY(mod->arena, tcc_signature, n), 0};
    mod->kernels = TCC_NEW_ARRAY(mod->arena, const char *, n);
    tcc_status status = TCC_OK;
    for (const tcc_func *f = mod->ir->first; f && !status; f = f->next)
        if (!tcc_func_is_definition(f))
            status = add_function(mod, &k, f, diag);
    tcc_str manifest = {0};
    tcc_manifest_print(&manifest, mod->ir, diag->file, k.printed, k.n);
    mod->manifest = tcc_str_take(&manifest);
    for (size_t i = 0; i < k.n; i++)
        tcc_str_free(&k.printed[i].json);
    return status ? status : mod->manifest ? TCC_OK : TCC_ERR_MEMORY;
}

static tcc_status parse(tcc_module *mod, const char *text, size_t size, tcc_diag *diag)
{
    jmp_buf oom;
    tcc_ir *ir;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(mod->arena, &oom);
    mod->source = tcc_arena_strndup(mod->arena, text, size);
    tcc_status status = tcc_module_read_ir(mod->arena, text, size, diag, &ir);
    if (status)
        return status;
    mod->ir = ir;
    mod->file = tcc_arena_strdup(mod->arena, diag->file);
    mod->source = diag->source ? mod->source : NULL;
    mod->source_size = size;
    tcc_str output = {0};
    tcc_str_append(&output, text, size);
    mod->size = output.len;
    mod->output = tcc_str_take(&output);
    return mod->output ? describe(mod, diag) : TCC_ERR_MEMORY;
}

tcc_status tcc_module_parse(tcc_context *ctx, const char *ir, size_t size, const char *file,
                            tcc_module **out)
{
    *out = NULL;
    tcc_module *mod = calloc(1, sizeof *mod);
    tcc_arena *arena = tcc_arena_create(NULL);
    if (!mod || !arena) {
        free(mod);
        tcc_arena_destroy(arena);
        return TCC_ERR_MEMORY;
    }
    mod->arena = arena;
    tcc_diag diag = tcc_context_diag(ctx, file, ir, size);
    tcc_status status = parse(mod, ir, size, &diag);
    tcc_arena_set_oom(arena, NULL);
    if (status)
        tcc_module_destroy(mod);
    else
        *out = mod;
    return status;
}

/* ---- what modules hold -------------------------------------------------------------------- */

void tcc_module_destroy(tcc_module *mod)
{
    if (!mod)
        return;
    free(mod->output);
    free(mod->manifest);
    free(mod->schedule);
    free(mod->plan);
    tcc_arena_destroy(mod->arena);
    free(mod);
}

const void *tcc_module_output(const tcc_module *mod, size_t *size)
{
    if (size)
        *size = mod ? mod->size : 0;
    return mod ? mod->output : NULL;
}

const char *tcc_module_manifest(const tcc_module *mod)
{
    return mod && mod->manifest ? mod->manifest : "";
}

const char *tcc_module_schedule(const tcc_module *mod)
{
    return mod && mod->schedule ? mod->schedule : "";
}

const char *tcc_module_plan(const tcc_module *mod)
{
    return mod && mod->plan ? mod->plan : "";
}

size_t tcc_module_kernel_count(const tcc_module *mod)
{
    return mod ? mod->n_kernels : 0;
}

const char *tcc_module_kernel_name(const tcc_module *mod, size_t i)
{
    return mod && i < mod->n_kernels ? mod->kernels[i] : NULL;
}
