/* bundle: packs modules of several targets into what runtime/bundle.h reads.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "driver/module.h"
#include "runtime/bundle.h"
#include "support/str.h"

enum { MAX_MODULES = TCC_MAX_IMAGES / 2 }; /* each with a cubin beside its PTX */

/* ---- what goes together ----------------------------------------------------------------- */

static const char *target_of(const tcc_module *mod)
{
    return tcc_attr_str(&mod->ir->attrs, "target", "");
}

static bool is_equal(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool args_are_equal(const tcc_arg_info *a, const tcc_arg_info *b)
{
    bool equal = is_equal(a->name, b->name) && is_equal(a->type, b->type) && a->role == b->role && a->rank == b->rank;
    for (unsigned i = 0; equal && i < a->rank; i++)
        equal = is_equal(a->dims[i], b->dims[i]) && a->extents[i] == b->extents[i];
    return equal;
}

static bool kernels_are_equal(const tcc_kernel *a, const tcc_kernel *b)
{
    bool equal = is_equal(tcc_kernel_name(a), tcc_kernel_name(b)) &&
                 tcc_kernel_dim_count(a) == tcc_kernel_dim_count(b) &&
                 tcc_kernel_arg_count(a) == tcc_kernel_arg_count(b);
    for (size_t i = 0; equal && i < tcc_kernel_dim_count(a); i++)
        equal = is_equal(tcc_kernel_dim_name(a, i), tcc_kernel_dim_name(b, i));
    for (size_t i = 0; equal && i < tcc_kernel_arg_count(a); i++)
        equal = args_are_equal(tcc_kernel_arg(a, i), tcc_kernel_arg(b, i));
    return equal;
}

static bool programs_are_equal(const tcc_program *a, const tcc_program *b)
{
    bool equal = tcc_program_kernel_count(a) == tcc_program_kernel_count(b);
    for (size_t i = 0; equal && i < tcc_program_kernel_count(a); i++)
        equal = kernels_are_equal(tcc_program_kernel_at(a, i), tcc_program_kernel_at(b, i));
    return equal;
}

static bool can_be_loaded(const tcc_module *mod)
{
    return mod && (mod->emit == TCC_EMIT_PTX || mod->emit == TCC_EMIT_CUBIN || mod->emit == TCC_EMIT_HSACO);
}

#define REFUSE(ctx, ...)                                                                           \
    do {                                                                                           \
        tcc_diag diag_ = tcc_context_diag(ctx, NULL, NULL, 0);                                     \
        tcc_error(&diag_, TCC_ERR_ARGUMENT, (tcc_loc){0}, __VA_ARGS__);                            \
        return TCC_ERR_ARGUMENT;                                                                   \
    } while (0)

/* Module i beside those before it. */
static tcc_status check_module(tcc_context *ctx, const tcc_module *const *modules, size_t i,
                               const tcc_program *first)
{
    tcc_program *program;
    for (size_t j = 0; j < i; j++)
        if (modules[j]->emit == modules[i]->emit && !strcmp(target_of(modules[j]), target_of(modules[i])))
            REFUSE(ctx, "two of these modules are for %s", target_of(modules[i]));
    tcc_status status = tcc_program_describe(tcc_module_manifest(modules[i]), ctx->fn, ctx->user, &program);
    if (status)
        return status;
    bool equal = programs_are_equal(first, program);
    tcc_program_destroy(program);
    if (!equal)
        REFUSE(ctx, "for %s these modules have other kernels, or other arguments, than for %s",
               target_of(modules[i]), target_of(modules[0]));
    return TCC_OK;
}

tcc_status tcc_bundle_check(tcc_context *ctx, const tcc_module *const *modules, size_t n,
                            tcc_program **out)
{
    *out = NULL;
    if (!n || n > MAX_MODULES)
        REFUSE(ctx, "a bundle of %zu modules: it has from 1 to %d", n, MAX_MODULES);
    for (size_t i = 0; i < n; i++)
        if (!can_be_loaded(modules[i]))
            REFUSE(ctx, "module %zu of a bundle cannot be loaded: it must be PTX, a cubin or a code object", i);
    tcc_status status = tcc_program_describe(tcc_module_manifest(modules[0]), ctx->fn, ctx->user, out);
    for (size_t i = 1; i < n && !status; i++)
        status = check_module(ctx, modules, i, *out);
    if (status) {
        tcc_program_destroy(*out);
        *out = NULL;
    }
    return status;
}

/* ---- cubins ----------------------------------------------------------------------------- */

typedef struct packing {
    tcc_context *ctx;
    tcc_bundle_options options;
    tcc_image images[TCC_MAX_IMAGES];
    void *cubins[MAX_MODULES];
    size_t n, n_cubins;
} packing;

typedef struct first_error {
    char message[256];
} first_error;

static void keep_first_error(const tcc_diagnostic *d, void *user)
{
    first_error *first = user;
    if (d->severity == TCC_SEV_ERROR && !first->message[0])
        snprintf(first->message, sizeof first->message, "%s", d->message);
}

bool tcc_can_assemble(const char *target)
{
    return tcc_target_emit(target) == TCC_EMIT_PTX && tcc_ptxas_is_there();
}

/* The cubin was not requested explicitly: the PTX works without it, and a note says so. */
static tcc_status try_to_assemble(packing *p, const tcc_module *mod, void **cubin, size_t *size)
{
    first_error first = {""};
    if (!tcc_ptxas_is_there())
        return TCC_OK;
    tcc_diag diag = {.file = mod->file, .fn = keep_first_error, .user = &first};
    tcc_status status = tcc_ptxas(mod->output, mod->size, &(tcc_ptxas_options){target_of(mod), NULL}, &diag,
                                  cubin, size);
    if (status != TCC_ERR_TOOL)
        return status;
    tcc_diag told = tcc_context_diag(p->ctx, mod->file, NULL, 0);
    tcc_warn(&told, (tcc_loc){0}, "no cubin for %s, whose PTX drivers compile: %s", target_of(mod), first.message);
    return TCC_OK;
}

static tcc_status assemble(packing *p, const tcc_module *mod, void **cubin, size_t *size)
{
    const tcc_bundle_options *o = &p->options;
    if (mod->emit != TCC_EMIT_PTX || o->cubins == TCC_OFF)
        return TCC_OK;
    if (o->cubins == TCC_DEFAULT && !o->ptxas)
        return try_to_assemble(p, mod, cubin, size);
    tcc_diag diag = tcc_context_diag(p->ctx, mod->file, mod->source, mod->source_size);
    return tcc_ptxas(mod->output, mod->size, &(tcc_ptxas_options){target_of(mod), o->ptxas}, &diag, cubin, size);
}

static tcc_status add_module(packing *p, const tcc_module *mod)
{
    void *cubin = NULL;
    size_t size = 0;
    tcc_status status = assemble(p, mod, &cubin, &size);
    if (cubin) {
        p->cubins[p->n_cubins++] = cubin;
        p->images[p->n++] = (tcc_image){target_of(mod), cubin, size, mod->manifest};
    }
    const char *manifest = mod->emit == TCC_EMIT_CUBIN ? mod->manifest : NULL;
    p->images[p->n++] = (tcc_image){target_of(mod), mod->output, mod->size, manifest};
    return status;
}

/* ---- writing ---------------------------------------------------------------------------- */

/* Appends bytes at the next multiple of `align`, and returns where that is. */
static uint64_t append(tcc_str *out, const void *data, size_t size, size_t align)
{
    static const char zeros[TCC_BUNDLE_ALIGN];
    tcc_str_append(out, zeros, (align - out->len % align) % align);
    uint64_t at = out->len;
    tcc_str_append(out, data, size);
    return at;
}

static tcc_status write_bundle(const packing *p, tcc_text *out)
{
    tcc_bundle_head head = {.version = TCC_BUNDLE_VERSION, .n = (uint32_t)p->n};
    tcc_bundle_row rows[TCC_MAX_IMAGES] = {0};
    tcc_str text = {0};
    memcpy(head.magic, tcc_bundle_magic, sizeof head.magic);
    append(&text, &head, sizeof head, 1);
    uint64_t at = append(&text, rows, p->n * sizeof *rows, 1);
    for (size_t i = 0; i < p->n; i++) {
        const tcc_image *image = &p->images[i];
        snprintf(rows[i].target, sizeof rows[i].target, "%s", image->target);
        rows[i].image_size = image->size;
        rows[i].image = append(&text, image->data, image->size, TCC_BUNDLE_ALIGN);
        rows[i].manifest_size = image->manifest ? strlen(image->manifest) + 1 : 0;
        rows[i].manifest = append(&text, image->manifest, rows[i].manifest_size, 1);
    }
    if (!text.failed)
        memcpy(text.data + at, rows, p->n * sizeof *rows);
    out->size = text.len;
    out->data = tcc_str_take(&text);
    return out->data ? TCC_OK : TCC_ERR_MEMORY;
}

static tcc_bundle_options known_options(const tcc_bundle_options *given)
{
    tcc_bundle_options o = {0};
    size_t n = given ? given->struct_size : 0;
    if (given)
        memcpy(&o, given, n && n < sizeof o ? n : sizeof o);
    return o;
}

tcc_status tcc_bundle_make(tcc_context *ctx, const tcc_module *const *modules, size_t n,
                           const tcc_bundle_options *options, tcc_text *out)
{
    tcc_program *program;
    *out = (tcc_text){0};
    tcc_status status = tcc_bundle_check(ctx, modules, n, &program);
    tcc_program_destroy(program);
    if (status)
        return status;
    packing p = {.ctx = ctx, .options = known_options(options)};
    for (size_t i = 0; i < n && !status; i++)
        status = add_module(&p, modules[i]);
    if (!status)
        status = write_bundle(&p, out);
    for (size_t i = 0; i < p.n_cubins; i++)
        free(p.cubins[i]);
    return status;
}
