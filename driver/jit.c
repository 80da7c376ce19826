/* jit: programs of source texts, in memory and on disk.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/jit.h"

#include <stdlib.h>
#include <string.h>

#include "driver/build_id.h"
#include "driver/context.h"
#include "driver/native.h"
#include "driver/which_kernel.h"
#include "runtime/disk_cache.h"

#define DEFAULT_CACHE_BYTES (UINT64_C(256) << 20)

/* ---- handles ---------------------------------------------------------------------------- */

/* Finds out what is compiled for, and by what. */
static tcc_status describe(tcc_jit *jit)
{
    char arch[TCC_MAX_ARCH];
    int version = 0;
    const tcc_driver *driver = jit->rt->driver;
    tcc_status status = driver->arch(jit->rt, arch);
    if (!status)
        status = driver->version(jit->rt, &version);
    if (!status)
        status = driver->note_current(jit->rt, &jit->current);
    if (status)
        return status;
    tcc_build_id(&jit->build);
    tcc_str_printf(&jit->build, " driver %d", version);
    if (jit->build.failed)
        return TCC_ERR_MEMORY;
    jit->target = tcc_native_target(driver, arch);
    if (jit->target)
        return TCC_OK;
    tcc_diag diag = tcc_runtime_diag(jit->rt, NULL);
    tcc_error(&diag, TCC_ERR_TARGET, (tcc_loc){0}, "this GPU, %s, suits no target", arch);
    return TCC_ERR_TARGET;
}

/* First in the background. If it fails, loading there fails as well, and no caller waits for that. */
static void begin_background(void *user)
{
    const tcc_jit *jit = user;
    jit->rt->driver->adopt_current(&jit->quiet, jit->current);
}

tcc_status tcc_jit_create(tcc_runtime *rt, const tcc_jit_options *options, tcc_jit **out)
{
    tcc_jit_options o = {0};
    size_t n = options ? options->struct_size : 0;
    if (options)
        memcpy(&o, options, n && n < sizeof o ? n : sizeof o);
    *out = NULL;
    tcc_jit *jit = calloc(1, sizeof *jit);
    if (!jit)
        return TCC_ERR_MEMORY;
    jit->rt = rt;
    jit->quiet = *rt;
    jit->quiet.fn = NULL;
    jit->specialize = o.specialize;
    jit->assemble = o.assemble;
    tcc_background_init(&jit->background, begin_background, jit);
    jit->limit_bytes = o.cache_bytes ? o.cache_bytes : DEFAULT_CACHE_BYTES;
    pthread_mutex_init(&jit->mutex, NULL);
    pthread_cond_init(&jit->done, NULL);
    tcc_status status = tcc_disk_cache_folder(o.cache_dir, &jit->folder);
    if (!status)
        status = describe(jit);
    if (status)
        tcc_jit_destroy(jit);
    else
        *out = jit;
    return status;
}

static void free_made(tcc_jit_made *m)
{
    if (!m)
        return;
    tcc_program_destroy(m->program);
    free(m->key);
    free(m);
}

void tcc_jit_destroy(tcc_jit *jit)
{
    if (!jit)
        return;
    tcc_background_end(&jit->background);
    tcc_background_destroy(&jit->background);
    tcc_jit_extents_free(jit);
    for (size_t i = 0; i < TCC_JIT_LISTS; i++)
        for (tcc_jit_made *m = jit->lists[i], *next; m; m = next) {
            next = m->next;
            free_made(m);
        }
    pthread_cond_destroy(&jit->done);
    pthread_mutex_destroy(&jit->mutex);
    tcc_str_free(&jit->build);
    free(jit->folder);
    free(jit);
}

const char *tcc_jit_target(const tcc_jit *jit)
{
    return jit ? jit->target : NULL;
}

tcc_jit_counts tcc_jit_count(tcc_jit *jit)
{
    if (!jit)
        return (tcc_jit_counts){0};
    return (tcc_jit_counts){jit->compiled, jit->read, jit->damaged, jit->specialized, jit->assembled};
}

void tcc_jit_wait(tcc_jit *jit)
{
    if (jit)
        tcc_background_wait(&jit->background);
}

void tcc_jit_end_background(tcc_jit *jit)
{
    if (jit)
        tcc_background_end(&jit->background);
}

/* ---- finding it ------------------------------------------------------------------------- */

/* The place of a key's program, or at which it would be. */
static tcc_jit_made **find(tcc_jit *jit, uint64_t hash, tcc_bytes key)
{
    tcc_jit_made **at = &jit->lists[hash % TCC_JIT_LISTS];
    while (*at && ((*at)->hash != hash || (*at)->key_size != key.size ||
                   memcmp((*at)->key, key.data, key.size)))
        at = &(*at)->next;
    return at;
}

static tcc_jit_made *create_made(uint64_t hash, tcc_bytes key)
{
    tcc_jit_made *m = calloc(1, sizeof *m);
    char *copy = malloc(key.size);
    if (!m || !copy) {
        free(m);
        free(copy);
        return NULL;
    }
    memcpy(copy, key.data, key.size);
    *m = (tcc_jit_made){.hash = hash, .key = copy, .key_size = key.size};
    return m;
}

static tcc_bytes key_of(const tcc_jit_request *r)
{
    return (tcc_bytes){r->key.data, r->key.len};
}

/* Makes a program that the caller has announced; the mutex is held except while it is made. */
static tcc_status fulfil(tcc_jit *jit, const tcc_jit_request *r, tcc_jit_made *m)
{
    tcc_program *program = NULL;
    pthread_mutex_unlock(&jit->mutex);
    tcc_status status = tcc_jit_make(jit, r, &program);
    pthread_mutex_lock(&jit->mutex);
    m->program = program;
    if (status) { /* callers that wait for it try themselves, and receive the error */
        tcc_jit_made **at = find(jit, m->hash, key_of(r));
        *at = m->next;
        free_made(m);
    }
    pthread_cond_broadcast(&jit->done);
    return status;
}

tcc_status tcc_jit_find(tcc_jit *jit, const tcc_jit_request *r, const tcc_program **out)
{
    tcc_bytes key = key_of(r);
    uint64_t hash = tcc_hash(key);
    tcc_status status = TCC_OK;
    tcc_jit_made **at;
    pthread_mutex_lock(&jit->mutex);
    while (*(at = find(jit, hash, key)) && !(*at)->program)
        pthread_cond_wait(&jit->done, &jit->mutex);
    tcc_jit_made *m = *at;
    if (!m) {
        m = *at = create_made(hash, key);
        status = m ? fulfil(jit, r, m) : TCC_ERR_MEMORY;
    }
    if (!status)
        *out = m->program;
    pthread_mutex_unlock(&jit->mutex);
    return status;
}

/* ---- what callers ask for ----------------------------------------------------------------- */

static bool has_other_options(const tcc_compile_options *o)
{
    return o->emit || o->print_after || o->verify_each || o->time_passes || o->ptxas ||
           o->reproducer || o->print || o->check_passes || o->output_size || o->nvdisasm || o->timeline;
}

/* Takes what a caller asks for; tcc_jit_request_free is due where that is TCC_OK. */
static tcc_status take_request(tcc_jit *jit, const char *source, const tcc_compile_options *options, tcc_jit_request *r)
{
    if (!jit || !source)
        return TCC_ERR_ARGUMENT;
    tcc_compile_options o = tcc_known_compile_options(options);
    if (has_other_options(&o)) {
        tcc_diag diag = tcc_runtime_diag(jit->rt, o.file);
        tcc_error(&diag, TCC_ERR_ARGUMENT, (tcc_loc){0},
                  "an option is set that does not apply to cached programs");
        return TCC_ERR_ARGUMENT;
    }
    if (!o.target)
        o.target = jit->target;
    return tcc_jit_request_init(r, tcc_str_text(&jit->build), source, &o) ? TCC_OK : TCC_ERR_MEMORY;
}

static tcc_status find_kernel(tcc_jit *jit, const tcc_jit_request *r, const char *kernel, const tcc_kernel **out)
{
    const tcc_program *program;
    tcc_status status = tcc_jit_find(jit, r, &program);
    if (status)
        return status;
    *out = tcc_program_kernel(program, kernel);
    if (*out)
        return TCC_OK;
    tcc_str names = {0};
    for (size_t i = 0; i < tcc_program_kernel_count(program); i++)
        tcc_which_kernel_add(&names, tcc_kernel_name(tcc_program_kernel_at(program, i)));
    tcc_diag diag = tcc_runtime_diag(jit->rt, r->options.file);
    return tcc_which_kernel(&diag, "program", kernel, &names);
}

/* Whether a launch can be served by a kernel for its extents: that counts on addresses as allocators give them. */
static bool is_aligned(const tcc_kernel *k, size_t n_dims, const tcc_arg *args, size_t n_args)
{
    enum { ACCESS_BYTES = 16 };
    if (n_dims != tcc_kernel_dim_count(k) || n_args != tcc_kernel_arg_count(k))
        return false;
    for (size_t i = 0; i < n_args; i++)
        if (tcc_kernel_arg(k, i)->role != TCC_ARG_SCALAR && args[i].device % ACCESS_BYTES)
            return false;
    return true;
}

tcc_status tcc_jit_program(tcc_jit *jit, const char *source, const tcc_compile_options *options,
                           const tcc_program **out)
{
    tcc_jit_request r;
    *out = NULL;
    tcc_status status = take_request(jit, source, options, &r);
    if (status)
        return status;
    status = tcc_jit_find(jit, &r, out);
    tcc_jit_request_free(&r);
    return status;
}

tcc_status tcc_jit_kernel(tcc_jit *jit, const char *source, const tcc_compile_options *options,
                          const char *kernel, const tcc_kernel **out)
{
    return tcc_jit_kernel_for(jit, source, options, kernel, NULL, 0, NULL, 0, out);
}

tcc_status tcc_jit_kernel_for(tcc_jit *jit, const char *source, const tcc_compile_options *options,
                              const char *kernel, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                              size_t n_args, const tcc_kernel **out)
{
    tcc_jit_request r;
    *out = NULL;
    tcc_status status = take_request(jit, source, options, &r);
    if (status)
        return status;
    status = find_kernel(jit, &r, kernel, out);
    if (!status && jit->specialize && n_dims && is_aligned(*out, n_dims, args, n_args))
        *out = tcc_jit_for_extents(jit, &r, *out, dims);
    tcc_jit_request_free(&r);
    return status;
}

tcc_status tcc_jit_launch(tcc_jit *jit, const char *source, const tcc_compile_options *options,
                          const char *kernel, const int64_t *dims, size_t n_dims,
                          const tcc_arg *args, size_t n_args, void *stream)
{
    const tcc_kernel *k;
    tcc_status status = tcc_jit_kernel_for(jit, source, options, kernel, dims, n_dims, args, n_args, &k);
    return status ? status : tcc_kernel_launch(k, dims, n_dims, args, n_args, stream);
}
