/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/jit_request.h"

#include <setjmp.h>
#include <string.h>

/* All that decides what is compiled. Names are told by their lengths. */
static void print_key(tcc_jit_request *r, const char *build)
{
    tcc_str *key = &r->key;
    const tcc_compile_options *o = &r->options;
    const char *file = o->file ? o->file : "";
    tcc_str_printf(key, "%s\n%s tiles %u lines %d verify %d\n%d:%zu:%s\n", build, o->target, o->tiles,
                   (int)o->line_tables, (int)o->verify_pipeline, o->file != NULL, strlen(file), file);
    for (size_t i = 0; i < o->n_defines; i++)
        tcc_str_printf(key, "%zu:%s=%lld\n", strlen(o->defines[i].name), o->defines[i].name,
                       (long long)o->defines[i].value);
    for (size_t i = 0; i < o->n_ranges; i++)
        tcc_str_printf(key, "%zu:%s=%lld..%lld\n", strlen(o->ranges[i].name), o->ranges[i].name,
                       (long long)o->ranges[i].least, (long long)o->ranges[i].most);
    tcc_str_printf(key, "%s\n", o->kernel ? o->kernel : "");
    tcc_str_puts(key, r->source);
}

bool tcc_jit_request_init(tcc_jit_request *r, const char *build, const char *source,
                          const tcc_compile_options *options)
{
    *r = (tcc_jit_request){.source = source, .options = *options};
    r->options.struct_size = sizeof r->options; /* whatever the caller was built against */
    print_key(r, build);
    if (r->key.failed)
        tcc_str_free(&r->key);
    return r->key.data;
}

static const char *copy_text(tcc_arena *arena, const char *text)
{
    return text ? tcc_arena_strdup(arena, text) : NULL;
}

static void copy_texts(tcc_jit_request *r)
{
    tcc_arena *arena = r->arena;
    tcc_compile_options *o = &r->options;
    tcc_define *defines = TCC_NEW_ARRAY(arena, tcc_define, o->n_defines + 1);
    tcc_range *ranges = TCC_NEW_ARRAY(arena, tcc_range, o->n_ranges + 1);
    for (size_t i = 0; i < o->n_defines; i++)
        defines[i] = (tcc_define){copy_text(arena, o->defines[i].name), o->defines[i].value};
    for (size_t i = 0; i < o->n_ranges; i++)
        ranges[i] = (tcc_range){copy_text(arena, o->ranges[i].name), o->ranges[i].least, o->ranges[i].most};
    o->defines = defines;
    o->ranges = ranges;
    o->target = copy_text(arena, o->target);
    o->file = copy_text(arena, o->file);
    o->kernel = copy_text(arena, o->kernel);
    r->source = copy_text(arena, r->source);
}

bool tcc_jit_request_copy(const tcc_jit_request *from, tcc_jit_request *to)
{
    jmp_buf oom;
    *to = (tcc_jit_request){
        .source = from->source, .options = from->options, .is_quiet = true, .in_background = true};
    to->arena = tcc_arena_create(NULL);
    if (!to->arena)
        return false;
    if (setjmp(oom)) {
        tcc_jit_request_free(to);
        return false;
    }
    tcc_arena_set_oom(to->arena, &oom);
    copy_texts(to);
    tcc_arena_set_oom(to->arena, NULL);
    tcc_str_append(&to->key, from->key.data, from->key.len);
    if (to->key.failed)
        tcc_jit_request_free(to);
    return to->arena;
}

void tcc_jit_request_free(tcc_jit_request *r)
{
    tcc_str_free(&r->key);
    if (r->arena)
        tcc_arena_destroy(r->arena);
    *r = (tcc_jit_request){0};
}
