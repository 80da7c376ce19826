/* jit: programs of source texts, in memory and on disk.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc_jit.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver/build_id.h"
#include "driver/context.h"
#include "driver/native.h"
#include "runtime/disk_cache.h"
#include "runtime/runtime.h"
#include "support/str.h"

enum { LISTS = 256 };

#define DEFAULT_CACHE_BYTES (UINT64_C(256) << 20)

/* A program, by all that decides what it is. */
typedef struct made {
    uint64_t hash; /* of the key */
    char *key;
    size_t key_size;
    tcc_program *program; /* NULL while a thread makes it */
    struct made *next;
} made;

struct tcc_jit {
    tcc_runtime *rt;
    const char *target;
    tcc_str build; /* the versions of libtcc and the driver */
    char *folder;  /* NULL: none */
    uint64_t limit_bytes;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t done;   /* with a program, or without success */
    made *lists[LISTS];
    atomic_flag told; /* that the folder cannot be used */
    _Atomic uint64_t compiled, read, damaged;
};

/* What is asked for. */
typedef struct request {
    const char *source;
    tcc_compile_options options; /* the target given */
    tcc_bytes key;
} request;

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
    tcc_error(&diag, TCC_ERR_TARGET, (tcc_loc){0}, "this GPU is %s, which no target suits", arch);
    return TCC_ERR_TARGET;
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

static void free_made(made *m)
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
    for (size_t i = 0; i < LISTS; i++)
        for (made *m = jit->lists[i], *next; m; m = next) {
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
    return jit ? (tcc_jit_counts){jit->compiled, jit->read, jit->damaged} : (tcc_jit_counts){0};
}

/* ---- making a program ------------------------------------------------------------------- */

/* A folder that cannot be used is told once. */
static void keep(tcc_jit *jit, const request *r, tcc_bytes image)
{
    if (!jit->folder || tcc_disk_cache_put(jit->folder, jit->limit_bytes, r->key, image) ||
        atomic_flag_test_and_set(&jit->told))
        return;
    tcc_diag diag = tcc_runtime_diag(jit->rt, NULL);
    tcc_warn(&diag, (tcc_loc){0}, "compiled code is not kept in '%s': %s", jit->folder,
             strerror(errno));
}

static tcc_status compile(tcc_jit *jit, const request *r, tcc_program **out)
{
    tcc_context ctx = {jit->rt->fn, jit->rt->user};
    tcc_module *mod;
    tcc_bytes image;
    tcc_status status = tcc_compile_with(&ctx, r->source, strlen(r->source), &r->options, &mod);
    if (status)
        return status;
    image.data = tcc_module_output(mod, &image.size);
    status = tcc_program_load(jit->rt, image.data, image.size, NULL, out);
    if (!status) {
        jit->compiled++;
        keep(jit, r, image);
    }
    tcc_module_destroy(mod);
    return status;
}

/* What the folder has; *out is left alone where it has nothing. */
static tcc_status read_kept(tcc_jit *jit, const request *r, tcc_program **out)
{
    char *image;
    size_t size;
    tcc_disk_found found =
        jit->folder ? tcc_disk_cache_get(jit->folder, r->key, &image, &size) : TCC_DISK_MISS;
    jit->damaged += found == TCC_DISK_DAMAGED;
    if (found != TCC_DISK_HIT)
        return TCC_OK;
    tcc_status status = tcc_program_load(jit->rt, image, size, NULL, out);
    jit->read += !status;
    free(image);
    return status;
}

static tcc_status make(tcc_jit *jit, const request *r, tcc_program **out)
{
    tcc_status status = read_kept(jit, r, out);
    return status || *out ? status : compile(jit, r, out);
}

/* ---- finding it ------------------------------------------------------------------------- */

/* The place of a key's program, or at which it would be. */
static made **find(tcc_jit *jit, uint64_t hash, tcc_bytes key)
{
    made **at = &jit->lists[hash % LISTS];
    while (*at && ((*at)->hash != hash || (*at)->key_size != key.size ||
                   memcmp((*at)->key, key.data, key.size)))
        at = &(*at)->next;
    return at;
}

static made *create_made(uint64_t hash, tcc_bytes key)
{
    made *m = calloc(1, sizeof *m);
    char *copy = malloc(key.size);
    if (!m || !copy) {
        free(m);
        free(copy);
        return NULL;
    }
    memcpy(copy, key.data, key.size);
    *m = (made){.hash = hash, .key = copy, .key_size = key.size};
    return m;
}

/* Makes a program that the caller has announced, with the mutex held but for the making. */
static tcc_status fulfil(tcc_jit *jit, const request *r, made *m)
{
    tcc_program *program = NULL;
    pthread_mutex_unlock(&jit->mutex);
    tcc_status status = make(jit, r, &program);
    pthread_mutex_lock(&jit->mutex);
    m->program = program;
    if (status) { /* who waits for it tries himself, and is told the reason */
        made **at = find(jit, m->hash, r->key);
        *at = m->next;
        free_made(m);
    }
    pthread_cond_broadcast(&jit->done);
    return status;
}

static tcc_status find_or_make(tcc_jit *jit, const request *r, const tcc_program **out)
{
    uint64_t hash = tcc_hash(r->key);
    tcc_status status = TCC_OK;
    made **at;
    pthread_mutex_lock(&jit->mutex);
    while (*(at = find(jit, hash, r->key)) && !(*at)->program)
        pthread_cond_wait(&jit->done, &jit->mutex);
    made *m = *at;
    if (!m) {
        m = *at = create_made(hash, r->key);
        status = m ? fulfil(jit, r, m) : TCC_ERR_MEMORY;
    }
    if (!status)
        *out = m->program;
    pthread_mutex_unlock(&jit->mutex);
    return status;
}

/* All that decides what is compiled. Names are told by their lengths. */
static void print_key(tcc_str *key, const tcc_jit *jit, const request *r)
{
    const tcc_compile_options *o = &r->options;
    const char *file = o->file ? o->file : "";
    tcc_str_printf(key, "%s\n%s tiles %u lines %d verify %d\n%d:%zu:%s\n", tcc_str_text(&jit->build),
                   o->target, o->tiles, (int)o->line_tables, (int)o->verify_pipeline, o->file != NULL,
                   strlen(file), file);
    for (size_t i = 0; i < o->n_defines; i++)
        tcc_str_printf(key, "%zu:%s=%lld\n", strlen(o->defines[i].name), o->defines[i].name,
                       (long long)o->defines[i].value);
    for (size_t i = 0; i < o->n_ranges; i++)
        tcc_str_printf(key, "%zu:%s=%lld..%lld\n", strlen(o->ranges[i].name), o->ranges[i].name,
                       (long long)o->ranges[i].least, (long long)o->ranges[i].most);
    tcc_str_printf(key, "%s\n", o->kernel ? o->kernel : "");
    tcc_str_puts(key, r->source);
}

static bool has_other_options(const tcc_compile_options *o)
{
    return o->emit || o->print_after || o->verify_each || o->time_passes || o->ptxas ||
           o->reproducer || o->print || o->check_passes || o->output_size;
}

tcc_status tcc_jit_program(tcc_jit *jit, const char *source, const tcc_compile_options *options,
                           const tcc_program **out)
{
    *out = NULL;
    if (!jit || !source)
        return TCC_ERR_ARGUMENT;
    request r = {.source = source, .options = tcc_known_compile_options(options)};
    if (has_other_options(&r.options)) {
        tcc_diag diag = tcc_runtime_diag(jit->rt, r.options.file);
        tcc_error(&diag, TCC_ERR_ARGUMENT, (tcc_loc){0},
                  "an option is set that has no meaning for what is kept");
        return TCC_ERR_ARGUMENT;
    }
    if (!r.options.target)
        r.options.target = jit->target;
    tcc_str key = {0};
    print_key(&key, jit, &r);
    r.key = (tcc_bytes){key.data, key.len};
    tcc_status status = key.failed ? TCC_ERR_MEMORY : find_or_make(jit, &r, out);
    tcc_str_free(&key);
    return status;
}

tcc_status tcc_jit_kernel(tcc_jit *jit, const char *source, const tcc_compile_options *options,
                          const char *kernel, const tcc_kernel **out)
{
    const tcc_program *program;
    *out = NULL;
    tcc_status status = tcc_jit_program(jit, source, options, &program);
    if (status)
        return status;
    *out = tcc_program_kernel(program, kernel);
    if (*out)
        return TCC_OK;
    tcc_diag diag = tcc_runtime_diag(jit->rt, options ? options->file : NULL);
    if (kernel)
        tcc_error(&diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "the program has no kernel '%s'", kernel);
    else
        tcc_error(&diag, TCC_ERR_ARGUMENT, (tcc_loc){0},
                  "the program has %zu kernels, and none is named",
                  tcc_program_kernel_count(program));
    return TCC_ERR_ARGUMENT;
}

tcc_status tcc_jit_launch(tcc_jit *jit, const char *source, const tcc_compile_options *options,
                          const char *kernel, const int64_t *dims, size_t n_dims,
                          const tcc_arg *args, size_t n_args, void *stream)
{
    const tcc_kernel *k;
    tcc_status status = tcc_jit_kernel(jit, source, options, kernel, &k);
    return status ? status : tcc_kernel_launch(k, dims, n_dims, args, n_args, stream);
}
