/* An output for each function of a module, several at a time: LLVM's code generation is most of a
 * compilation's time, and functions have nothing to do with each other.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "codegen/lower.h"
#include "ir/signature.h"
#include "support/clock.h"
#include "support/ptx.h"
#include "support/threads.h"

typedef struct piece {
    const tcc_func *func;
    size_t n_ops;
    tcc_status status;
} piece;

/* What the threads share. */
typedef struct work {
    const tcc_ir *ir;
    tcc_codegen_options options; /* of one function */
    piece *pieces;               /* functions in their order, as the objects are */
    piece **order;               /* the longest first: the others fill what it leaves of the threads */
    tcc_bytes *objects;
    size_t n;
    atomic_size_t next;
} work;

static int by_length(const void *a, const void *b)
{
    size_t n = (*(piece *const *)a)->n_ops, m = (*(piece *const *)b)->n_ops;
    return (n < m) - (n > m);
}

static void find_pieces(work *w)
{
    piece *p = w->pieces;
    for (const tcc_func *f = w->ir->first; f; f = f->next) {
        if (tcc_func_is_definition(f))
            continue;
        w->order[p - w->pieces] = p;
        p->func = f;
        for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
            p->n_ops++;
        p++;
    }
    qsort(w->order, w->n, sizeof(piece *), by_length);
}

static tcc_status make_object(work *w, const piece *p, void **machine, tcc_diag *diag)
{
    tcc_codegen_options o = w->options;
    char *data;
    tcc_bytes *object = &w->objects[p - w->pieces];
    o.only = p->func;
    o.machine = machine;
    tcc_status status = tcc_codegen(w->ir, &o, diag, &data, &object->size);
    object->data = data;
    return status;
}

/* Takes the functions that no thread has taken yet. Errors are reported later. */
static void *take_functions(void *arg)
{
    work *w = arg;
    void *machine = NULL;
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;)
        w->order[i]->status = make_object(w, w->order[i], &machine, &(tcc_diag){.file = w->options.file});
    tcc_codegen_machine_destroy(machine);
    return NULL;
}

/* Tells what is wrong in the functions' order: it goes wrong again. */
static tcc_status check(work *w, tcc_diag *diag)
{
    for (const piece *p = w->pieces; p < w->pieces + w->n; p++)
        if (p->status) {
            tcc_status status = make_object(w, p, NULL, diag);
            if (status)
                return status;
        }
    return TCC_OK;
}

/* The threads' own warnings went nowhere. */
static tcc_status warn_of_spills(const work *w, tcc_diag *diag)
{
    jmp_buf out_of_memory;
    const tcc_backend *backend = tcc_backend_of(tcc_target_find(w->options.target));
    if (!backend->warn_of_spills)
        return TCC_OK;
    tcc_arena *volatile arena = tcc_arena_create(&out_of_memory);
    volatile tcc_status status = arena ? TCC_OK : TCC_ERR_MEMORY;
    if (arena && setjmp(out_of_memory))
        status = TCC_ERR_MEMORY;
    for (size_t i = 0; !status && i < w->n; i++)
        backend->warn_of_spills(w->ir, w->options.output, w->objects[i].data, w->objects[i].size,
                                arena, diag);
    tcc_arena_destroy(arena);
    return status;
}

void tcc_codegen_objects_destroy(tcc_bytes *objects, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)objects[i].data);
    free(objects);
}

static tcc_status make_all(const tcc_ir *ir, const tcc_codegen_options *options, tcc_codegen_output output,
                           tcc_diag *diag, tcc_bytes **objects, size_t *n)
{
    double start = tcc_now_ms();
    work w = {.ir = ir, .options = *options};
    w.options.output = output;
    w.options.phase = NULL;
    const tcc_target *target = tcc_target_named(options->target, diag);
    if (!target)
        return TCC_ERR_TARGET;
    const tcc_backend *backend = tcc_backend_of(target);
    w.options.version = backend->version_for ? backend->version_for(target, ir) : 0; /* once, not for each function */
    for (const tcc_func *f = ir->first; f; f = f->next)
        w.n += !tcc_func_is_definition(f);
    *objects = NULL;
    *n = 0;
    tcc_status status = TCC_ERR_MEMORY;
    w.pieces = calloc(w.n + 1, sizeof *w.pieces);
    w.order = calloc(w.n + 1, sizeof *w.order);
    w.objects = calloc(w.n + 1, sizeof *w.objects);
    if (w.pieces && w.order && w.objects) {
        find_pieces(&w);
        if (w.n)
            tcc_run_threads(tcc_threads_for(w.n), take_functions, &w);
        status = check(&w, diag);
        if (!status)
            status = warn_of_spills(&w, diag);
    }
    if (!status) {
        *objects = w.objects;
        *n = w.n;
    } else if (w.objects) {
        tcc_codegen_objects_destroy(w.objects, w.n);
    }
    free(w.pieces);
    free(w.order);
    if (options->phase)
        options->phase("llvm", tcc_now_ms() - start, options->phase_user);
    return status;
}

tcc_status tcc_codegen_objects(const tcc_ir *ir, const tcc_codegen_options *options, tcc_diag *diag,
                               tcc_bytes **objects, size_t *n)
{
    return make_all(ir, options, TCC_CODEGEN_OBJ, diag, objects, n);
}

tcc_status tcc_codegen_ptx(const tcc_ir *ir, const tcc_codegen_options *options, tcc_diag *diag, char **out,
                           size_t *size)
{
    tcc_bytes *texts;
    size_t n;
    *out = NULL;
    *size = 0;
    tcc_status status = make_all(ir, options, TCC_CODEGEN_ASM, diag, &texts, &n);
    if (status)
        return status;
    const char **parts = calloc(n + 1, sizeof *parts);
    for (size_t i = 0; parts && i < n; i++)
        parts[i] = texts[i].data;
    if (parts && n)
        *out = tcc_ptx_join(parts, n);
    if (*out)
        *size = strlen(*out);
    else
        status = n ? TCC_ERR_MEMORY : tcc_codegen(ir, options, diag, out, size);
    free(parts);
    tcc_codegen_objects_destroy(texts, n);
    return status;
}
