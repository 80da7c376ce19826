/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/bundle.h"
#include "driver/context.h"
#include "runtime/bundle.h"
#include "runtime/disk_cache.h"

/* The runtime that a request's diagnostics go to. */
static tcc_runtime *runtime_of(tcc_jit *jit, const tcc_jit_request *r)
{
    return r->is_quiet ? &jit->quiet : jit->rt;
}

/* ---- the folder --------------------------------------------------------------------------- */

/* A folder that cannot be used is told once. */
static void keep(tcc_jit *jit, const tcc_jit_request *r, tcc_bytes image)
{
    const tcc_bytes key = {r->key.data, r->key.len};
    if (!jit->folder || tcc_disk_cache_put(jit->folder, jit->limit_bytes, key, image) || r->is_quiet ||
        atomic_flag_test_and_set(&jit->told))
        return;
    tcc_diag diag = tcc_runtime_diag(jit->rt, NULL);
    tcc_warn(&diag, (tcc_loc){0}, "compiled code is not cached in '%s': %s", jit->folder,
             strerror(errno));
}

/* ---- machine code ------------------------------------------------------------------------- */

static tcc_status compile(tcc_jit *jit, const tcc_jit_request *r, tcc_module **out)
{
    const tcc_runtime *rt = runtime_of(jit, r);
    tcc_context ctx = {.fn = rt->fn, .user = rt->user};
    return tcc_compile_with(&ctx, r->source, strlen(r->source), &r->options, out);
}

/* Makes a bundle of a module, with its cubin where ptxas can do that; where memory is short *out stays empty. The
 * caller destroys it. */
static void assemble(tcc_jit *jit, const tcc_module *mod, tcc_text *out)
{
    tcc_context silent = {0};
    tcc_bundle_head head = {.n = 0};
    if (!tcc_bundle_make(&silent, &mod, 1, NULL, out))
        memcpy(&head, out->data, sizeof head);
    jit->assembled += head.n > 1;
}

typedef struct assembly {
    tcc_job job;
    tcc_jit *jit;
    tcc_jit_request request;
    tcc_module *mod; /* NULL: to be compiled */
} assembly;

static void run_assembly(tcc_job *job, bool is_wanted)
{
    assembly *a = (assembly *)job;
    tcc_text bundle = {0};
    if (is_wanted && (a->mod || !compile(a->jit, &a->request, &a->mod)))
        assemble(a->jit, a->mod, &bundle);
    if (bundle.data)
        keep(a->jit, &a->request, (tcc_bytes){bundle.data, bundle.size});
    tcc_text_destroy(bundle.data);
    tcc_module_destroy(a->mod);
    tcc_jit_request_free(&a->request);
    free(a);
}

/* Has machine code kept for later. Takes the module, which may be NULL. */
static void assemble_later(tcc_jit *jit, const tcc_jit_request *r, tcc_module *mod)
{
    assembly *a = calloc(1, sizeof *a);
    if (!a || !tcc_jit_request_copy(r, &a->request)) {
        tcc_module_destroy(mod);
        free(a);
        return;
    }
    a->job.run = run_assembly;
    a->jit = jit;
    a->mod = mod;
    tcc_background_add(&jit->background, &a->job);
}

/* Who is in the background already need not put it off. */
static bool assembles_now(const tcc_jit *jit, const tcc_jit_request *r)
{
    return jit->assemble == TCC_JIT_AT_ONCE || (jit->assemble == TCC_JIT_BACKGROUND && r->in_background);
}

/* ---- programs ----------------------------------------------------------------------------- */

/* Loads the code of all variants, of which a launch would load the one that it runs. */
static tcc_status load_all(const tcc_program *p)
{
    tcc_status status = TCC_OK;
    const tcc_kernel *k;
    const tcc_function *functions;
    for (size_t i = 0; !status && (k = tcc_program_kernel_at(p, i)); i++)
        for (size_t v = 0; !status && v < k->desc->n_variants; v++)
            status = tcc_kernel_load(k, v, &functions);
    return status;
}

/* Errors of later calls are reported, whichever thread loaded it. */
static tcc_status load(tcc_jit *jit, const tcc_jit_request *r, tcc_bytes image, tcc_program **out)
{
    tcc_status status = tcc_program_load(runtime_of(jit, r), image.data, image.size, NULL, out);
    if (!status && r->in_background)
        status = load_all(*out);
    if (!status) {
        (*out)->rt = jit->rt;
        return TCC_OK;
    }
    tcc_program_destroy(*out);
    *out = NULL;
    return status;
}

static tcc_status compile_and_load(tcc_jit *jit, const tcc_jit_request *r, tcc_program **out)
{
    tcc_module *mod;
    tcc_bytes image;
    tcc_text bundle = {0};
    tcc_status status = compile(jit, r, &mod);
    if (status)
        return status;
    bool can_assemble = jit->assemble && tcc_can_assemble(r->options.target);
    if (can_assemble && assembles_now(jit, r))
        assemble(jit, mod, &bundle);
    image.data = bundle.data ? bundle.data : tcc_module_output(mod, &image.size);
    if (bundle.data)
        image.size = bundle.size;
    status = load(jit, r, image, out);
    if (!status) {
        jit->compiled++;
        keep(jit, r, image);
    }
    tcc_text_destroy(bundle.data);
    if (!status && jit->folder && can_assemble && !assembles_now(jit, r))
        assemble_later(jit, r, mod);
    else
        tcc_module_destroy(mod);
    return status;
}

/* The entry on disk; *out is unchanged if there is none. */
static tcc_status read_kept(tcc_jit *jit, const tcc_jit_request *r, tcc_program **out)
{
    char *data;
    size_t size;
    const tcc_bytes key = {r->key.data, r->key.len};
    tcc_disk_found found =
        jit->folder ? tcc_disk_cache_get(jit->folder, key, &data, &size) : TCC_DISK_MISS;
    jit->damaged += found == TCC_DISK_DAMAGED;
    if (found != TCC_DISK_HIT)
        return TCC_OK;
    tcc_status status = load(jit, r, (tcc_bytes){data, size}, out);
    jit->read += !status;
    bool is_bundle = tcc_is_bundle(data, size);
    free(data);
    if (!status && !is_bundle && jit->assemble && tcc_can_assemble(r->options.target))
        assemble_later(jit, r, NULL); /* the process that compiled it ended before that */
    return status;
}

tcc_status tcc_jit_make(tcc_jit *jit, const tcc_jit_request *r, tcc_program **out)
{
    tcc_status status = read_kept(jit, r, out);
    return status || *out ? status : compile_and_load(jit, r, out);
}
