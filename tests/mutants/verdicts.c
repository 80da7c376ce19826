/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/mutants/verdicts.h"

#include <stdio.h>
#include <stdlib.h>

#define KERNEL_FAIL(...) (fprintf(stderr, __VA_ARGS__), exit(2))
#include "tests/unit/interp/kernel.h"

enum { SEEDS = 5 };

struct bench {
    const subject *subject;
    kernel kernels[MAX_SHAPES];
    tcc_status expected[MAX_SHAPES]; /* ok, or that the function is not valid for the shape */
    unsigned n_shapes;
    char *text;
    char said[512];
};

/* ---- subjects ---------------------------------------------------------------------------------- */

static void die(const subject *s, const char *what, const char *said)
{
    fprintf(stderr, "mutants: '%s': %s\n%s\n", s->name, what, said);
    exit(2);
}

static char *read_file(const subject *s)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", TCC_TEST_DIR, s->file);
    FILE *file = fopen(path, "rb");
    if (!file)
        die(s, "cannot be read", path);
    tcc_str text = {0};
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        tcc_str_append(&text, part, n);
    fclose(file);
    return tcc_str_take(&text);
}

/* The module with no other function. */
static char *text_of(const subject *s, tcc_ir *ir)
{
    tcc_func *f = tcc_func_find(ir, s->function);
    if (!f)
        die(s, "has no such function", s->function);
    for (tcc_func *other = ir->first, *next; other; other = next) {
        next = other->next;
        if (other != f)
            tcc_func_remove(other);
    }
    tcc_str text = {0};
    tcc_ir_print(&text, ir, TCC_PRINT_LOCS);
    return tcc_str_take(&text);
}

bench *bench_open(const subject *s)
{
    bench *b = calloc(1, sizeof *b);
    if (!b)
        die(s, "no memory", "");
    b->subject = s;
    while (b->n_shapes < MAX_SHAPES && s->shapes[b->n_shapes].m) {
        kernel *k = &b->kernels[b->n_shapes];
        const extents e = {s->shapes[b->n_shapes].m, s->shapes[b->n_shapes].n,
                           s->shapes[b->n_shapes].k, s->shapes[b->n_shapes].p};
        kernel_open(k, s->source, e);
        if (kernel_run(k, k->signature, false, 0, k->want))
            die(s, "cannot be computed", k->said);
        b->n_shapes++;
    }
    kernel *k = &b->kernels[0];
    if (s->file)
        b->text = read_file(s);
    else if (tcc_run_passes(k->ir, tcc_pipeline, NULL, &k->diag))
        die(s, "does not compile", k->said);
    else
        b->text = text_of(s, k->ir);

    tcc_arena *arena = tcc_arena_create(NULL);
    const tcc_func *f = bench_copy(b, arena);
    for (unsigned i = 0; i < b->n_shapes; i++) {
        b->expected[i] = kernel_run(&b->kernels[i], f, true, 0, b->kernels[i].got);
        if (b->expected[i] == TCC_ERR_INTERNAL)
            die(s, "is wrong as it is", b->kernels[i].said);
    }
    tcc_arena_destroy(arena);
    return b;
}

void bench_close(bench *b)
{
    for (unsigned i = 0; i < b->n_shapes; i++)
        kernel_close(&b->kernels[i]);
    free(b->text);
    free(b);
}

const char *bench_text(const bench *b)
{
    return b->text;
}

tcc_func *bench_copy(const bench *b, tcc_arena *arena)
{
    kernel *k = (kernel *)&b->kernels[0];
    *k->said = 0;
    tcc_ir *ir = tcc_ir_parse(arena, b->text, strlen(b->text), &k->diag);
    tcc_func *f = ir ? tcc_func_find(ir, b->subject->function) : NULL;
    if (!f)
        die(b->subject, "does not read back", k->said);
    return f;
}

/* ---- verdicts ---------------------------------------------------------------------------------- */

const char *checker_says(bench *b, const tcc_func *f)
{
    (void)b, (void)f;
    return NULL;
}

/* The first element that is not what it should be, -1: none. */
static int64_t first_difference(const kernel *k, size_t arg)
{
    for (int64_t i = 0; i < k->counts[arg]; i++)
        if (!(k->got[arg][i] == k->want[arg][i]))
            return i;
    return -1;
}

static bool result_differs(bench *b, const kernel *k)
{
    for (size_t a = 0; a < KERNEL_MAX_ARGS; a++) {
        int64_t i = first_difference(k, a);
        if (i < 0)
            continue;
        snprintf(b->said, sizeof b->said, "element %lld of argument %zu is %g, wants %g",
                 (long long)i, a, k->got[a][i], k->want[a][i]);
        return true;
    }
    return false;
}

const char *interpreter_says(bench *b, const tcc_func *f)
{
    for (unsigned i = 0; i < b->n_shapes * SEEDS; i++) {
        unsigned shape = i % b->n_shapes;
        kernel *k = &b->kernels[shape];
        k->diag.n_errors = 0;
        tcc_status status = kernel_run(k, f, true, i / b->n_shapes, k->got);
        if (status != b->expected[shape]) {
            snprintf(b->said, sizeof b->said, "%.*s", (int)sizeof b->said - 1, k->said);
            return *b->said ? b->said : "it is not valid for a shape for which it should be";
        }
        if (!status && result_differs(b, k))
            return b->said;
    }
    return NULL;
}
