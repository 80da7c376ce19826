/* Programs: an image loaded onto the current GPU, with its manifest.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle.h"
#include "runtime/code_object.h"
#include "support/ptx.h"
#include "runtime/runtime.h"

/* The manifest that an image carries; NULL after reporting. */
static const char *manifest_in(tcc_program *p, tcc_diag *diag, const void *image, size_t size)
{
    return tcc_is_elf(image, size) ? tcc_manifest_in_elf(p->arena, diag, image, size)
                                   : tcc_manifest_in_ptx(p->arena, diag, image, size);
}

/* Reads the manifest from `json`, or from the image where that is NULL, into the arena. */
static tcc_status read_manifest(tcc_program *p, const void *image, size_t size, const char *json)
{
    tcc_diag diag = tcc_runtime_diag(p->rt, NULL);
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(p->arena, &oom);
    p->json = json ? tcc_arena_strdup(p->arena, json) : manifest_in(p, &diag, image, size);
    return p->json ? tcc_manifest_read(p->arena, &diag, p->json, &p->manifest) : TCC_ERR_SYNTAX;
}

/* Refuses a program that the current GPU cannot run, since the driver would name neither. */
static tcc_status check_target(const tcc_program *p, bool is_elf)
{
    const tcc_driver *driver = p->rt->driver;
    const tcc_manifest *m = p->manifest;
    char arch[TCC_MAX_ARCH];
    tcc_status status = driver->arch(p->rt, arch);
    if (status || driver->runs(arch, m->target, is_elf))
        return status;
    tcc_diag diag = tcc_runtime_diag(p->rt, m->file);
    tcc_error(&diag, TCC_ERR_TARGET, (tcc_loc){0}, "compiled for %s, but this GPU is %s", m->target,
              arch);
    return TCC_ERR_TARGET;
}

/* ---- loading ---------------------------------------------------------------------------- */

static tcc_status load(tcc_program *p, const char *entry, const void *image, size_t size, void **module)
{
    tcc_status status = p->rt->driver->load(p, image, size, module);
    if (!status)
        TCC_PUSH(p->arena, &p->loaded, ((tcc_loaded){entry, *module}));
    return status;
}

/* The module that has an entry. */
static tcc_status module_of(tcc_program *p, const char *entry, void **module)
{
    for (size_t i = 0; i < p->loaded.len; i++)
        if (!p->loaded.data[i].entry || !strcmp(p->loaded.data[i].entry, entry)) {
            *module = p->loaded.data[i].module;
            return TCC_OK;
        }
    char *part = tcc_ptx_part(p->ptx, entry);
    tcc_status status = part ? load(p, entry, part, strlen(part), module) : TCC_ERR_MEMORY;
    free(part);
    return status;
}

/* Of clusters that take tile after tile there are to be as many as run at once: one that waits for another to end
 * would find its tiles only then. */
static tcc_status limit(const tcc_program *p, const tcc_entry *entry, tcc_function *f)
{
    int64_t blocks = 0;
    tcc_status status =
        entry->fewer && p->rt->driver->resident ? p->rt->driver->resident(p, entry, f->handle, &blocks) : TCC_OK;
    f->most = blocks > 0 && blocks < entry->max_grid ? (unsigned)blocks : 0;
    return status;
}

static tcc_status find_functions(tcc_program *p, const tcc_variant *v, tcc_function *functions)
{
    tcc_status status = TCC_OK;
    for (size_t i = 0; i < v->n_steps && !status; i++) {
        const tcc_entry *entry = &v->steps[i].entry;
        void *module;
        if (v->steps[i].kind != TCC_STEP_LAUNCH)
            continue;
        status = module_of(p, entry->name, &module);
        if (!status)
            status = p->rt->driver->find(p, module, entry, &functions[i].handle);
        if (!status)
            status = limit(p, entry, &functions[i]);
    }
    return status;
}

static tcc_status load_variant(const tcc_kernel *k, size_t v)
{
    jmp_buf oom;
    tcc_program *p = k->program;
    const tcc_variant *variant = &k->desc->variants[v];
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(p->arena, &oom);
    tcc_function *functions = TCC_NEW_ARRAY(p->arena, tcc_function, variant->n_steps + 1);
    tcc_status status = find_functions(p, variant, functions);
    if (!status)
        atomic_store_explicit(&k->functions[v], functions, memory_order_release);
    return status;
}

tcc_status tcc_kernel_load(const tcc_kernel *k, size_t v, const tcc_function **functions)
{
    tcc_status status = TCC_OK;
    *functions = atomic_load_explicit(&k->functions[v], memory_order_acquire);
    if (*functions)
        return TCC_OK;
    pthread_mutex_lock(&k->program->loading);
    if (!atomic_load_explicit(&k->functions[v], memory_order_relaxed)) /* another thread may have been here */
        status = load_variant(k, v);
    tcc_arena_set_oom(k->program->arena, NULL);
    *functions = atomic_load_explicit(&k->functions[v], memory_order_relaxed);
    pthread_mutex_unlock(&k->program->loading);
    return status;
}

static bool names_all(const tcc_manifest *m, const char *ptx)
{
    const char *at = ptx;
    for (size_t i = 0; i < m->n_kernels; i++)
        for (size_t j = 0; j < m->kernels[i].n_variants; j++)
            for (size_t s = 0; s < m->kernels[i].variants[j].n_steps; s++) {
                const tcc_step *step = &m->kernels[i].variants[j].steps[s];
                if (step->kind == TCC_STEP_LAUNCH && !(at = tcc_ptx_find(ptx, at, step->entry.name)))
                    return false;
            }
    return true;
}

/* PTX of several entries is only kept, because a driver takes up to 0.2 s for each; other images are
 * loaded. */
static tcc_status load_image(tcc_program *p, const void *image, size_t size)
{
    void *module;
    if (!tcc_is_elf(image, size)) {
        p->ptx = strndup(image, size);
        if (!p->ptx)
            return TCC_ERR_MEMORY;
        if (tcc_ptx_has_parts(p->ptx) && names_all(p->manifest, p->ptx))
            return TCC_OK;
        free(p->ptx);
        p->ptx = NULL;
    }
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(p->arena, &oom);
    return load(p, NULL, image, size, &module);
}

static tcc_status find_kernels(tcc_program *p)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(p->arena, &oom);
    const tcc_manifest *m = p->manifest;
    p->kernels = TCC_NEW_ARRAY(p->arena, struct tcc_kernel, m->n_kernels);
    for (size_t i = 0; i < m->n_kernels; i++) {
        struct tcc_kernel *k = &p->kernels[i];
        k->desc = &m->kernels[i];
        k->program = p;
        k->rankings = tcc_ranking_cache_create(k->desc, &p->device);
        if (!k->rankings)
            return TCC_ERR_MEMORY;
        k->functions = TCC_NEW_ARRAY(p->arena, _Atomic(tcc_function *), k->desc->n_variants);
        for (size_t j = 0; p->loaded.len && j < k->desc->n_variants; j++) {
            tcc_status status = load_variant(k, j);
            if (status)
                return status;
        }
    }
    return TCC_OK;
}

/* Loads an image, or without one describes what the manifest says. */
static tcc_status create(tcc_runtime *rt, const void *image, size_t size, const char *manifest,
                         tcc_program **out)
{
    *out = NULL;
    tcc_program *p = calloc(1, sizeof *p);
    if (!p)
        return TCC_ERR_MEMORY;
    p->rt = rt;
    p->is_loaded = image != NULL;
    pthread_mutex_init(&p->loading, NULL); /* which cannot fail: NPTL's take no resources */
    p->arena = tcc_arena_create(NULL);
    bool has_maps = image && rt->driver->encode;
    p->maps = has_maps ? tcc_tma_cache_create() : NULL;
    tcc_status status = p->arena && (p->maps || !has_maps) ? TCC_OK : TCC_ERR_MEMORY;
    if (!status)
        status = read_manifest(p, image, size, manifest);
    if (!status && image)
        status = check_target(p, tcc_is_elf(image, size));
    if (!status)
        p->device = p->manifest->device;
    if (!status && image)
        status = rt->driver->attributes(rt, &p->device);
    if (!status && image)
        status = load_image(p, image, size);
    if (!status)
        status = find_kernels(p);
    if (status) {
        p->is_loaded = true; /* the runtime stays the caller's */
        tcc_program_destroy(p);
        return status;
    }
    tcc_arena_set_oom(p->arena, NULL);
    *out = p;
    return TCC_OK;
}

/* Nothing in a bundle runs on this GPU: says what for it is. `all` as it was read. */
static tcc_status refuse(tcc_diag *diag, const tcc_bundle *all, const char *arch)
{
    char names[512] = "";
    for (size_t i = 0, n = 0; i < all->n && n < sizeof names; i++)
        if (!i || strcmp(all->images[i].target, all->images[i - 1].target))
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", all->images[i].target);
    tcc_error(diag, TCC_ERR_TARGET, (tcc_loc){0}, "compiled for %s, but this GPU is %s", names, arch);
    return TCC_ERR_TARGET;
}

/* Loads of a bundle what suits the current GPU. Where an image cannot be loaded, as a cubin of a later version
 * of CUDA, the next is tried; the last one's error is reported. */
static tcc_status load_bundle(tcc_runtime *rt, const void *data, size_t size, tcc_program **out)
{
    tcc_bundle all, fit;
    char arch[TCC_MAX_ARCH];
    tcc_diag diag = tcc_runtime_diag(rt, NULL);
    tcc_status status = tcc_bundle_read(&diag, data, size, &all);
    if (!status)
        status = rt->driver->arch(rt, arch);
    if (status)
        return status;
    fit = all;
    tcc_bundle_choose(&fit, rt->driver, arch);
    tcc_runtime quiet = *rt;
    quiet.fn = NULL;
    status = TCC_ERR_TARGET;
    for (size_t i = 0; i < fit.n && status && status != TCC_ERR_MEMORY; i++) {
        const tcc_image *image = &fit.images[i];
        status = create(i + 1 < fit.n ? &quiet : rt, image->data, image->size, image->manifest, out);
    }
    if (!status)
        (*out)->rt = rt;
    return fit.n ? status : refuse(&diag, &all, arch);
}

tcc_status tcc_program_load(tcc_runtime *rt, const void *image, size_t size, const char *manifest,
                            tcc_program **out)
{
    *out = NULL;
    if (!tcc_is_bundle(image, size))
        return create(rt, image, size, manifest, out);
    if (!manifest)
        return load_bundle(rt, image, size, out);
    tcc_diag diag = tcc_runtime_diag(rt, NULL);
    tcc_error(&diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "a bundle contains its manifests, but another one is given");
    return TCC_ERR_ARGUMENT;
}

tcc_status tcc_program_describe(const char *manifest, tcc_diagnostic_fn fn, void *user,
                                tcc_program **out)
{
    *out = NULL;
    tcc_runtime *rt = calloc(1, sizeof *rt);
    if (!rt)
        return TCC_ERR_MEMORY;
    rt->fn = fn;
    rt->user = user;
    tcc_status status = create(rt, NULL, 0, manifest, out);
    if (status)
        free(rt);
    return status;
}

void tcc_program_destroy(tcc_program *prog)
{
    if (!prog)
        return;
    for (size_t i = 0; i < prog->loaded.len; i++)
        prog->rt->driver->unload(prog, prog->loaded.data[i].module);
    for (size_t i = 0; prog->kernels && i < prog->manifest->n_kernels; i++)
        tcc_ranking_cache_destroy(prog->kernels[i].rankings);
    pthread_mutex_destroy(&prog->loading);
    free(prog->ptx);
    free(prog->image);
    tcc_tma_cache_destroy(prog->maps);
    tcc_arena_destroy(prog->arena);
    if (!prog->is_loaded)
        free(prog->rt);
    free(prog);
}

const char *tcc_program_manifest(const tcc_program *prog)
{
    return prog ? prog->json : NULL;
}

const tcc_kernel *tcc_program_kernel(const tcc_program *prog, const char *name)
{
    size_t n = tcc_program_kernel_count(prog);
    if (!name)
        return n == 1 ? &prog->kernels[0] : NULL;
    for (size_t i = 0; i < n; i++)
        if (!strcmp(prog->kernels[i].desc->name, name))
            return &prog->kernels[i];
    return NULL;
}

size_t tcc_program_kernel_count(const tcc_program *prog)
{
    return prog ? prog->manifest->n_kernels : 0;
}

const tcc_kernel *tcc_program_kernel_at(const tcc_program *prog, size_t i)
{
    return i < tcc_program_kernel_count(prog) ? &prog->kernels[i] : NULL;
}

/* ---- what a kernel takes ---------------------------------------------------------------- */

const char *tcc_kernel_name(const tcc_kernel *k)
{
    return k ? k->desc->name : NULL;
}

size_t tcc_kernel_dim_count(const tcc_kernel *k)
{
    return k ? k->desc->n_dims : 0;
}

const char *tcc_kernel_dim_name(const tcc_kernel *k, size_t i)
{
    return k && i < k->desc->n_dims ? k->desc->dims[i] : NULL;
}

double tcc_kernel_flops(const tcc_kernel *k, const int64_t *dims)
{
    size_t n = k ? k->desc->flops.n : 0;
    double flops = n ? 1 : 0;
    for (size_t i = 0; i < n; i++)
        flops *= (double)tcc_extent_value(&k->desc->flops.factors[i], dims);
    return flops;
}

const char *tcc_kernel_sum_type(const tcc_kernel *k)
{
    return k ? k->desc->sum : NULL;
}

size_t tcc_kernel_arg_count(const tcc_kernel *k)
{
    return k ? k->desc->n_args : 0;
}

const tcc_arg_info *tcc_kernel_arg(const tcc_kernel *k, size_t i)
{
    return k && i < k->desc->n_args ? &k->desc->args[i] : NULL;
}
