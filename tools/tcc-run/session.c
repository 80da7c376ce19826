/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/whole_file.h"

typedef struct loaded {
    struct loaded *next;
    char *key; /* machine, file, target, kernel and definitions */
    program program;
} loaded;

static void keep_message(session *s, const char *message)
{
    if (!s->message[0])
        snprintf(s->message, sizeof s->message, "%s", message);
}

void session_on_diagnostic(const tcc_diagnostic *d, void *user)
{
    session *s = user;
    if (d->severity == TCC_SEV_ERROR)
        keep_message(s, d->message);
    if (!s->quiet)
        print_diagnostic(d, &s->diagnostics);
}

void session_error(session *s, const char *format, ...)
{
    char message[MAX_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    keep_message(s, message);
    end_diagnostics(&s->diagnostics);
    if (!s->quiet)
        fprintf(stderr, "%s: %s\n", program_name, message);
}

void session_close(session *s)
{
    end_diagnostics(&s->diagnostics);
    cublaslt_close(s->lt);
    for (loaded *p = s->programs, *next; p; p = next) {
        next = p->next;
        program_free(&p->program);
        free(p->key);
        free(p);
    }
    for (size_t i = 0; i < sizeof s->gpus / sizeof s->gpus[0]; i++) {
        tcc_device_close(s->gpus[i].dev);
        tcc_runtime_destroy(s->gpus[i].rt);
    }
    if (s->compiler)
        tcc_context_destroy(s->compiler);
    *s = (session){0};
}

cublaslt *session_cublaslt(session *s)
{
    char why[256];
    if (!s->lt && !(s->lt = cublaslt_open(why, sizeof why)))
        session_error(s, "%s", why);
    return s->lt;
}

/* ---- programs --------------------------------------------------------------------------- */

char *session_read_file(session *s, const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *text = f ? whole_file_read(f, size) : NULL;
    if (!text)
        session_error(s, "%s: %s", path, strerror(errno));
    if (f)
        fclose(f);
    return text;
}

/* The context, made on first use; NULL when memory is short. */
static tcc_context *compiler(session *s)
{
    if (!s->compiler)
        s->compiler = tcc_context_create();
    if (s->compiler)
        tcc_context_on_diagnostic(s->compiler, session_on_diagnostic, s);
    return s->compiler;
}

tcc_status session_compile(session *s, const options *o, const char *target, tcc_emit emit,
                           const char *text, size_t size, tcc_module **out)
{
    tcc_define defines[MAX_PAIRS];
    for (size_t i = 0; i < o->defines.n; i++)
        defines[i] = (tcc_define){o->defines.pairs[i].name, o->defines.pairs[i].extent};
    if (!compiler(s))
        return TCC_ERR_MEMORY;
    return tcc_compile_with(s->compiler, text, size,
                            &(tcc_compile_options){.struct_size = sizeof(tcc_compile_options),
                                                   .target = o->target ? o->target : target,
                                                   .file = o->file,
                                                   .kernel = o->kernel,
                                                   .emit = emit,
                                                   .defines = defines,
                                                   .n_defines = o->defines.n,
                                                   .timeline = o->timeline && s->on->is_gpu,
                                                   .timeline_cta = o->timeline_cta},
                            out);
}

tcc_status session_parse(session *s, const options *o, const char *text, size_t size,
                         tcc_module **out)
{
    return compiler(s) ? tcc_module_parse(s->compiler, text, size, o->file, out) : TCC_ERR_MEMORY;
}

tcc_status session_assemble(session *s, const options *o, tcc_emit emit, const char *text,
                            size_t size, char **out, size_t *out_size)
{
    if (!compiler(s))
        return TCC_ERR_MEMORY;
    return tcc_opt(s->compiler, text, size, "",
                   &(tcc_compile_options){.struct_size = sizeof(tcc_compile_options),
                                          .file = o->file,
                                          .emit = emit,
                                          .output_size = out_size},
                   out);
}

void program_free(program *p)
{
    tcc_program_destroy(p->handle);
    tcc_module_destroy(p->module);
    *p = (program){NULL, NULL};
}

static tcc_status load(session *s, const options *o, program *out)
{
    size_t size;
    char *text = session_read_file(s, o->file, &size);
    if (!text)
        return TCC_ERR_IO;
    tcc_status status = s->on->load(s, o, text, size, out);
    if (status)
        program_free(out);
    free(text);
    return status;
}

static bool make_key(const options *o, char *key, size_t size)
{
    int n = snprintf(key, size, "%d %d\n%s\n%s\n%s\n%s", (int)o->on, (int)o->level, o->file,
                     o->target ? o->target : "", o->manifest ? o->manifest : "", o->kernel ? o->kernel : "");
    for (size_t i = 0; i < o->defines.n && (size_t)n < size; i++)
        n += snprintf(key + n, size - (size_t)n, "\n%s=%" PRId64, o->defines.pairs[i].name,
                      o->defines.pairs[i].extent);
    return (size_t)n < size;
}

tcc_status session_program(session *s, const options *o, const program **out)
{
    char key[8192];
    if (!make_key(o, key, sizeof key)) {
        session_error(s, "the file's name is too long");
        return TCC_ERR_ARGUMENT;
    }
    for (const loaded *p = s->programs; p; p = p->next)
        if (!strcmp(p->key, key)) {
            *out = &p->program;
            return TCC_OK;
        }
    loaded *p = calloc(1, sizeof *p);
    char *kept = strdup(key);
    tcc_status status = p && kept ? load(s, o, &p->program) : TCC_ERR_MEMORY;
    if (status) {
        free(p);
        free(kept);
        return status;
    }
    p->key = kept;
    p->next = s->programs;
    s->programs = p;
    *out = &p->program;
    return TCC_OK;
}
