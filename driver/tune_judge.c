/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/tune_judge.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/module.h"
#include "driver/which_kernel.h"
#include "interp/interp.h"
#include "ir/plan.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/space.h"
#include "passes/schedule.h"

static void keep_first(const tcc_diagnostic *d, void *user)
{
    tcc_refusal *why = user;
    if (!*why->text && d->severity == TCC_SEV_ERROR)
        snprintf(why->text, sizeof why->text, "%s", d->message);
}

tcc_status tcc_tune_compile(const tcc_tune_program *p, const char *schedule, tcc_emit emit, tcc_refusal *why,
                            tcc_module **out)
{
    tcc_context ctx = {.fn = keep_first, .user = why};
    tcc_compile_options o = p->compile;
    tcc_str text = {0};
    tcc_str_printf(&text, "%s\n%s", p->source, schedule);
    o.emit = emit;
    o.kernel = p->subject.kernel;
    *why->text = 0;
    *out = NULL;
    tcc_status status =
        text.failed ? TCC_ERR_MEMORY : tcc_compile_with(&ctx, tcc_str_text(&text), text.len, &o, out);
    tcc_str_free(&text);
    return status;
}

/* ---- judging ------------------------------------------------------------------------------ */

/* The function that the launch would run: the cheapest that is valid. NULL: there is none. */
static const tcc_func *find_launched(const tcc_tune_program *p, const tcc_module *mod, int64_t *cost)
{
    const tcc_interp_options options = {.dims = p->dims};
    const tcc_func *best = NULL;
    tcc_diag silent = {0};
    for (const tcc_func *f = mod->ir->first; f; f = f->next) {
        if (tcc_func_is_definition(f) || tcc_func_is_step(f) || tcc_interp_check(f, &options, mod->arena, &silent))
            continue;
        const tcc_func *signature = tcc_func_signature(f, mod->arena, &silent);
        int64_t of = tcc_variant_cost(f, signature, p->dims, &p->attrs, mod->arena);
        if (best && of >= *cost)
            continue;
        best = f;
        *cost = of;
    }
    return best;
}

/* The schedule of a kernel, complete; the caller frees it. NULL: memory is short, or the kernel is not there. */
static char *schedule_of(const tcc_module *mod, const char *kernel)
{
    const tcc_func *first = tcc_func_find(mod->ir, kernel);
    tcc_str text = {0};
    if (first)
        tcc_schedule_print(&text, first, kernel);
    return first ? tcc_str_take(&text) : NULL;
}

/* Whether a variant has the tile that the kernel's schedule says: the generic one has its own. */
static bool has_tile(const tcc_tune_program *p, const tcc_func *f, const tcc_func *first)
{
    for (size_t i = 0; i < TCC_TUNE_AXES; i++) {
        const char *axis = tcc_ir_name(f->ir, p->subject.axes[i]); /* the subject is of another module */
        if (tcc_tile_size_of(f, axis, 0) != tcc_tile_size_of(first, axis, 0))
            return false;
    }
    return true;
}

static tcc_status examine(const tcc_tune_program *p, const tcc_module *mod, tcc_verdict *v)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(mod->arena, &oom);
    const tcc_func *first = tcc_func_find(mod->ir, p->subject.kernel);
    const tcc_func *launched = find_launched(p, mod, &v->cost);
    bool found = first && launched && has_tile(p, launched, first);
    tcc_arena_set_oom(mod->arena, NULL);
    if (!found)
        return TCC_ERR_NO_VARIANT;
    v->schedule = schedule_of(mod, p->subject.kernel);
    return v->schedule ? TCC_OK : TCC_ERR_MEMORY;
}

tcc_verdict tcc_tune_judge(const tcc_tune_program *p, const tcc_point *point, tcc_refusal *why)
{
    tcc_verdict v = {.status = TCC_OK};
    tcc_module *mod = NULL;
    tcc_str text = {0};
    tcc_space_print(&text, &p->subject, point);
    v.status = text.failed ? TCC_ERR_MEMORY : tcc_tune_compile(p, tcc_str_text(&text), TCC_EMIT_TILE, why, &mod);
    if (!v.status)
        v.status = examine(p, mod, &v);
    tcc_module_destroy(mod);
    tcc_str_free(&text);
    return v;
}

/* ---- what is chosen for known extents ------------------------------------------------------ */

/* The schedule; NULL where there is none, or memory is short. */
static char *choose_for_extents(const tcc_tune_program *p, const char *const *dim_names)
{
    tcc_compile_options o = p->compile;
    tcc_context silent = {0};
    tcc_module *mod = NULL;
    tcc_define *defines = calloc(o.n_defines + p->n_dims + 1, sizeof *defines);
    if (!defines)
        return NULL;
    for (size_t i = 0; i < o.n_defines; i++)
        defines[i] = o.defines[i];
    for (size_t i = 0; i < p->n_dims; i++)
        defines[o.n_defines + i] = (tcc_define){dim_names[i], p->dims[i]};
    o.defines = defines;
    o.n_defines += p->n_dims;
    o.emit = TCC_EMIT_TILE;
    o.kernel = p->subject.kernel;
    char *schedule = tcc_compile_with(&silent, p->source, strlen(p->source), &o, &mod) ? NULL
                                                                                       : schedule_of(mod, o.kernel);
    tcc_module_destroy(mod);
    free(defines);
    return schedule;
}

/* What the launch would run costs; false: it has nothing to run. */
static bool find_cost(const tcc_tune_program *p, const tcc_module *mod, int64_t *cost)
{
    jmp_buf oom;
    if (setjmp(oom))
        return false;
    tcc_arena_set_oom(mod->arena, &oom);
    bool found = find_launched(p, mod, cost);
    tcc_arena_set_oom(mod->arena, NULL);
    return found;
}

tcc_verdict tcc_tune_judge_known(const tcc_tune_program *p, const char *const *dim_names)
{
    tcc_verdict v = {.status = TCC_ERR_NO_VARIANT, .schedule = choose_for_extents(p, dim_names)};
    tcc_module *mod = NULL;
    tcc_refusal why;
    if (v.schedule && !tcc_tune_compile(p, v.schedule, TCC_EMIT_TILE, &why, &mod) && find_cost(p, mod, &v.cost))
        v.status = TCC_OK;
    tcc_module_destroy(mod);
    return v;
}

/* ---- the program as it is ------------------------------------------------------------------ */

/* f: as the frontend made it */
static tcc_status refuse_given(const tcc_func *f, tcc_diag *diag)
{
    for (int i = 0; i < TCC_KEY_COUNT; i++) {
        const tcc_named_attr *a = tcc_attr_find(&f->attrs, tcc_schedule_keys[i].name);
        if (!a)
            continue;
        tcc_error(
            diag, TCC_ERR_ARGUMENT, a->loc,
            "kernel '%s' already has a schedule; tuning searches only for kernels without one",
            f->name);
        return TCC_ERR_ARGUMENT;
    }
    return TCC_OK;
}

static const tcc_func *find_kernel(const tcc_module *mod, const char *kernel, tcc_diag *diag)
{
    const char *name = kernel ? kernel : mod->n_kernels == 1 ? mod->kernels[0] : NULL;
    if (name)
        return tcc_func_find(mod->ir, name);
    tcc_str names = {0};
    for (size_t i = 0; i < mod->n_kernels; i++)
        tcc_which_kernel_add(&names, mod->kernels[i]);
    tcc_which_kernel(diag, "program", NULL, &names);
    return NULL;
}

static tcc_status find_subject(tcc_tune_program *p, const tcc_module *mod, const char *kernel, tcc_arena *arena,
                               tcc_diag *diag)
{
    const tcc_func *f = find_kernel(mod, kernel, diag);
    const tcc_func *signature = f ? tcc_func_signature(f, arena, diag) : NULL;
    if (!signature)
        return TCC_ERR_ARGUMENT;
    size_t n = tcc_attr_list(&signature->attrs, "dims").list.n;
    p->subject.kernel = tcc_arena_strdup(arena, f->name);
    p->subject.target = tcc_target_of(f->ir);
    if (n == p->n_dims)
        return refuse_given(f, diag);
    tcc_error(diag, TCC_ERR_ARGUMENT, f->loc, "kernel '%s' has %zu symbolic dimensions, and %zu extents are given",
              f->name, n, p->n_dims);
    return TCC_ERR_ARGUMENT;
}

/* Finds the indices that tiles are of. */
static tcc_status find_axes(tcc_tune_program *p, const tcc_module *mod, tcc_arena *arena, tcc_diag *diag)
{
    const tcc_func *f = tcc_func_find(mod->ir, p->subject.kernel);
    tcc_attr tile = tcc_attr_list(&f->attrs, "tile");
    if (tile.list.n != 2 * TCC_TUNE_AXES) {
        tcc_error(diag, TCC_ERR_UNSUPPORTED, f->loc, "not supported yet: a search for a kernel without a product");
        return TCC_ERR_UNSUPPORTED;
    }
    bool swapped = tcc_schedule_of(f).operands == TCC_OPERANDS_SWAPPED;
    for (size_t i = 0; i < TCC_TUNE_AXES; i++)
        p->subject.axes[swapped && i < 2 ? !i : i] = tcc_arena_strdup(arena, tile.list.items[2 * i].s);
    return TCC_OK;
}

tcc_status tcc_tune_look(tcc_tune_program *p, tcc_context *ctx, const char *kernel, tcc_arena *arena)
{
    tcc_compile_options o = p->compile;
    tcc_module *mod, *tiled = NULL;
    size_t size = strlen(p->source);
    o.emit = TCC_EMIT_IR;
    o.kernel = kernel;
    tcc_status status = tcc_compile_with(ctx, p->source, size, &o, &mod);
    tcc_diag diag = tcc_context_diag(ctx, o.file, p->source, size);
    if (!status)
        status = find_subject(p, mod, kernel, arena, &diag);
    o.emit = TCC_EMIT_TILE;
    o.kernel = p->subject.kernel;
    if (!status)
        status = tcc_compile_with(ctx, p->source, size, &o, &tiled);
    if (!status)
        status = find_axes(p, tiled, arena, &diag);
    tcc_module_destroy(mod);
    tcc_module_destroy(tiled);
    return status;
}
