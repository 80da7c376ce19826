/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/mutants/verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker/checker.h"
#include "driver/trial.h"
#include "frontend/frontend.h"
#include "ir/signature.h"
#include "passes/passes.h"
#include "support/str.h"

/* Without an end after so many ops it is taken to have none. */
enum { MAX_STEPS = 1 << 20, SAID = 512, MAX_ARGS = 8 };

typedef struct shape {
    int64_t dims[MAX_DIMS], alignments[MAX_ARGS];
    bool aligned;
    tcc_trial trial;
    tcc_status expected; /* ok, or that the function is not valid for it */
} shape;

struct bench {
    const subject *subject;
    tcc_arena *arena, *scratch;
    tcc_diag diag;
    char said[SAID];
    const tcc_func *kernel; /* as the frontend made it */
    shape shapes[MAX_SHAPES];
    unsigned n_shapes;
    const char *text;
};

/* ---- subjects ---------------------------------------------------------------------------- */

static void listen(const tcc_diagnostic *d, void *user)
{
    bench *b = user;
    if (!*b->said && d->severity == TCC_SEV_ERROR)
        snprintf(b->said, sizeof b->said, "line %u: %s", d->line, d->message);
}

static void die(const bench *b, const char *what)
{
    fprintf(stderr, "mutants: '%s' %s: %s\n", b->subject->name, what, b->said);
    exit(2);
}

static const char *read_file(bench *b)
{
    char part[4096];
    snprintf(b->said, sizeof b->said, "%s/%s", TCC_TEST_DIR, b->subject->file);
    FILE *file = fopen(b->said, "rb");
    if (!file)
        die(b, "cannot be read");
    tcc_str text = {0};
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        tcc_str_append(&text, part, n);
    fclose(file);
    const char *copy = tcc_arena_strdup(b->arena, tcc_str_text(&text));
    tcc_str_free(&text);
    return copy;
}

/* The module with no other function than the steps that run with the one that is broken. */
static const char *text_of(bench *b, tcc_ir *ir)
{
    const tcc_func *f = tcc_func_find(ir, b->subject->function);
    if (!f)
        die(b, "has no such function");
    const tcc_func *variant = tcc_func_main(f);
    for (tcc_func *other = ir->first, *next; other; other = next) {
        bool runs = false;
        next = other->next;
        for (size_t i = 0; i < tcc_func_step_count(variant); i++)
            runs |= tcc_func_step_at(variant, i) == other;
        if (!runs)
            tcc_func_remove(other);
    }
    tcc_str text = {0};
    tcc_ir_print(&text, ir, TCC_PRINT_LOCS);
    const char *copy = tcc_arena_strdup(b->arena, tcc_str_text(&text));
    tcc_str_free(&text);
    return copy;
}

/* The module before any pass. */
static tcc_ir *parse(bench *b)
{
    const char *source = b->subject->file ? read_file(b) : b->subject->source;
    const char *target = b->subject->target ? b->subject->target : "sm_90a";
    tcc_ir *ir = b->subject->file
                     ? tcc_ir_parse(b->arena, source, strlen(source), &b->diag)
                     : tcc_frontend(b->arena, source, strlen(source), target, NULL, 0, &b->diag);
    if (!ir)
        die(b, "is not a kernel");
    return ir;
}

/* Extents in the order of the kernel's dimensions, which are called M, N, K and P. */
static void bind(const bench *b, const extents *e, int64_t *dims)
{
    tcc_attr names = tcc_attr_list(&b->kernel->attrs, "dims");
    for (size_t i = 0; i < names.list.n && i < MAX_DIMS; i++)
        dims[i] = *names.list.items[i].s == 'M'   ? e->m
                  : *names.list.items[i].s == 'N' ? e->n
                  : *names.list.items[i].s == 'K' ? e->k
                                                  : e->p;
}

static tcc_status run(bench *b, shape *s, const tcc_func *f, uint64_t seed)
{
    const tcc_interp_options o = {.dims = s->dims,
                                  .signature = b->kernel,
                                  .alignments = s->aligned ? s->alignments : NULL,
                                  .machine = true,
                                  .seed = seed,
                                  .max_steps = MAX_STEPS};
    *b->said = 0;
    b->diag.n_errors = 0;
    return tcc_trial_run_with(&s->trial, f, &o, &b->diag);
}

static void add_shape(bench *b, const extents *e)
{
    shape *s = &b->shapes[b->n_shapes++];
    bind(b, e, s->dims);
    s->aligned = b->subject->aligned >> (b->n_shapes - 1) & 1;
    for (int i = 0; i < MAX_ARGS; i++)
        s->alignments[i] = 16;
    if (tcc_trial_prepare(&s->trial, b->arena, b->scratch, b->kernel, s->dims, b->n_shapes - 1, &b->diag))
        die(b, "cannot be computed");
}

/* A subject is valid for its first shape, and right for all for which it is valid. */
static void check_subject(bench *b)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    const tcc_func *f = bench_copy(b, arena);
    if (checker_says(b, f))
        die(b, "is wrong as it is");
    for (unsigned i = 0; i < b->n_shapes; i++) {
        b->shapes[i].expected = run(b, &b->shapes[i], f, 0);
        if (b->shapes[i].expected && (i == 0 || b->shapes[i].expected != TCC_ERR_NO_VARIANT))
            die(b, "is wrong as it is");
    }
    if (interpreter_says(b, f, 0, N_ORDERS))
        die(b, "is wrong as it is");
    tcc_arena_destroy(arena);
}

bench *bench_open(const subject *s)
{
    bench *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->subject = s;
    b->arena = tcc_arena_create(NULL);
    b->scratch = tcc_arena_create(NULL);
    b->diag = (tcc_diag){.file = s->name, .fn = listen, .user = b};
    b->kernel = parse(b)->first;
    tcc_ir *ir = parse(b);
    if (!s->file && tcc_run_passes(ir, tcc_pipeline(tcc_target_of(ir)), NULL, &b->diag))
        die(b, "does not compile");
    b->text = text_of(b, ir);
    for (unsigned i = 0; i < MAX_SHAPES && s->shapes[i].m; i++)
        add_shape(b, &s->shapes[i]);
    check_subject(b);
    return b;
}

void bench_close(bench *b)
{
    tcc_arena_destroy(b->scratch);
    tcc_arena_destroy(b->arena);
    free(b);
}

tcc_func *bench_copy(bench *b, tcc_arena *arena)
{
    *b->said = 0;
    tcc_ir *ir = tcc_ir_parse(arena, b->text, strlen(b->text), &b->diag);
    tcc_func *f = ir ? tcc_func_find(ir, b->subject->function) : NULL;
    if (!f)
        die(b, "does not read back");
    return f;
}

/* ---- verdicts ---------------------------------------------------------------------------- */

const char *checker_says(bench *b, const tcc_func *f)
{
    *b->said = 0;
    b->diag.n_errors = 0;
    tcc_status status = tcc_protocol_check(f, b->scratch, &b->diag);
    tcc_arena_clear(b->scratch);
    return status == TCC_ERR_INTERNAL ? b->said : NULL; /* what cannot be followed is not wrong */
}

static const char *difference(bench *b, shape *s, const tcc_func *f)
{
    tcc_difference d;
    tcc_str text = {0};
    if (tcc_trial_agrees(&s->trial, f, &d))
        return NULL;
    tcc_difference_print(&text, &s->trial, &d);
    snprintf(b->said, sizeof b->said, "%s", tcc_str_text(&text));
    tcc_str_free(&text);
    return b->said;
}

const char *interpreter_says(bench *b, const tcc_func *f, unsigned order, unsigned n_orders)
{
    for (unsigned i = 0; i < b->n_shapes * n_orders; i++) {
        shape *s = &b->shapes[i % b->n_shapes];
        tcc_status status = run(b, s, f, (order + i / b->n_shapes) % N_ORDERS);
        if (status != s->expected)
            return *b->said ? b->said : "is valid for other shapes than it should be";
        const char *wrong = status ? NULL : difference(b, s, f);
        if (wrong)
            return wrong;
    }
    return NULL;
}
