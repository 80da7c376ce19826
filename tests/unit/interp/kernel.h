/* kernel: a kernel's source, run at the tensor level and after each pass, and compared.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_INTERP_KERNEL_H
#define TCC_TESTS_INTERP_KERNEL_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "interp/interp.h"
#include "passes/passes.h"

enum { KERNEL_MAX_ARGS = 8 };

typedef struct kernel {
    tcc_arena *arena;
    tcc_diag diag;
    char said[4096];
    const tcc_func *signature; /* as the frontend made it */
    tcc_ir *ir;                /* as the passes change it */
    int64_t dims[4];
    int64_t counts[KERNEL_MAX_ARGS];
    double *inputs[KERNEL_MAX_ARGS], *want[KERNEL_MAX_ARGS], *got[KERNEL_MAX_ARGS];
    double tolerance; /* relative, of outputs */
    unsigned runs;
} kernel;

static inline void kernel_listen(const tcc_diagnostic *d, void *user)
{
    kernel *k = user;
    size_t n = strlen(k->said);
    snprintf(k->said + n, sizeof k->said - n, "%s", d->text);
}

static inline tcc_ir *kernel_parse(kernel *k, const char *source)
{
    tcc_ir *ir = tcc_frontend(k->arena, source, strlen(source), "sm_90a", NULL, 0, &k->diag);
    if (!ir)
        ck_abort_msg("%s\n%s", source, k->said);
    return ir;
}

static inline int64_t kernel_extent(const kernel *k, tcc_dim d)
{
    tcc_attr dims = tcc_attr_list(&k->signature->attrs, "dims");
    for (size_t i = 0; d.name && i < dims.list.n; i++)
        if (!strcmp(dims.list.items[i].s, d.name))
            return k->dims[i];
    return d.size;
}

/* Small whole numbers, so that sums are exact in every order; outputs begin as nonsense. */
static inline void kernel_fill(kernel *k)
{
    const tcc_block *body = k->signature->body;
    tcc_attr roles = tcc_attr_list(&k->signature->attrs, "roles");
    uint32_t random = 12345;
    ck_assert_uint_le(body->n_args, KERNEL_MAX_ARGS);
    for (size_t a = 0; a < body->n_args; a++) {
        int64_t n = 1;
        for (unsigned d = 0; d < body->args[a]->type->rank; d++)
            n *= kernel_extent(k, body->args[a]->type->dims[d]);
        bool is_output = !strcmp(roles.list.items[a].s, "out");
        k->counts[a] = n;
        k->inputs[a] = TCC_NEW_ARRAY(k->arena, double, (size_t)n + 1);
        k->want[a] = TCC_NEW_ARRAY(k->arena, double, (size_t)n + 1);
        k->got[a] = TCC_NEW_ARRAY(k->arena, double, (size_t)n + 1);
        for (int64_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            k->inputs[a][i] = is_output ? -777 : (double)(int32_t)(random >> 16) / 8192 - 4;
            k->inputs[a][i] = nearbyint(k->inputs[a][i]);
        }
    }
}

/* What the dimensions M, N, K and P are, whichever of them the kernel has, in whatever order. */
typedef struct extents {
    int64_t m, n, k, p;
} extents;

static inline void kernel_bind(kernel *k, extents e)
{
    tcc_attr dims = tcc_attr_list(&k->signature->attrs, "dims");
    for (size_t i = 0; i < dims.list.n; i++)
        k->dims[i] = *dims.list.items[i].s == 'M'   ? e.m
                     : *dims.list.items[i].s == 'N' ? e.n
                     : *dims.list.items[i].s == 'K' ? e.k
                                                    : e.p;
}

static inline void kernel_open(kernel *k, const char *source, extents e)
{
    *k = (kernel){.arena = tcc_arena_create(NULL)};
    source = tcc_arena_strdup(k->arena, source);
    k->diag = (tcc_diag){.file = "test.tile",
                         .source = source,
                         .size = strlen(source),
                         .fn = kernel_listen,
                         .user = k};
    k->signature = kernel_parse(k, source)->first;
    k->ir = kernel_parse(k, source);
    kernel_bind(k, e);
    kernel_fill(k);
}

static inline void kernel_close(kernel *k)
{
    tcc_arena_destroy(k->arena);
}

static inline tcc_status kernel_run(kernel *k, const tcc_func *f, bool machine, uint64_t seed,
                                    double **args)
{
    tcc_interp_options o = {
        .dims = k->dims, .signature = k->signature, .machine = machine, .seed = seed};
    for (size_t a = 0; a < KERNEL_MAX_ARGS; a++)
        if (k->counts[a])
            memcpy(args[a], k->inputs[a], (size_t)k->counts[a] * sizeof(double));
    tcc_arena *scratch = tcc_arena_create(NULL);
    *k->said = 0;
    tcc_status status = tcc_interp_run(f, &o, args, scratch, &k->diag);
    tcc_arena_destroy(scratch);
    k->runs++;
    return status;
}

static inline void kernel_compare(const kernel *k, const char *what)
{
    for (size_t a = 0; a < KERNEL_MAX_ARGS; a++)
        for (int64_t i = 0; i < k->counts[a]; i++) {
            double want = k->want[a][i], got = k->got[a][i];
            bool close = want == got || fabs(want - got) <= k->tolerance * (1 + fabs(want));
            if (!close)
                ck_abort_msg("%s: element %lld of argument %zu is %.17g, wants %.17g", what,
                             (long long)i, a, got, want);
        }
}

/* Runs the functions that are valid for the extents, all of them or one, which the seed chooses.
 * Returns how many were. */
static inline unsigned kernel_check(kernel *k, const char *after, bool all, uint64_t seed)
{
    unsigned n = 0, n_funcs = 0, i = 0;
    for (const tcc_func *f = k->ir->first; f; f = f->next)
        n_funcs++;
    for (const tcc_func *f = k->ir->first; f; f = f->next) {
        if (!all && i++ != seed % n_funcs)
            continue;
        char what[128];
        snprintf(what, sizeof what, "%s after %s, seed %llu", f->name, after,
                 (unsigned long long)seed);
        tcc_status status = kernel_run(k, f, false, seed, k->got);
        if (status == TCC_ERR_NO_VARIANT)
            continue;
        if (status) {
            tcc_str text = {0};
            if (getenv("KERNEL_PRINT"))
                tcc_func_print(&text, f, 0);
            ck_abort_msg("%s:\n%s%s", what, k->said, tcc_str_text(&text));
        }
        kernel_compare(k, what);
        n++;
    }
    return n;
}

static inline char *kernel_text(const kernel *k)
{
    tcc_str text = {0};
    tcc_ir_print(&text, k->ir, 0);
    return tcc_str_take(&text);
}

/* Runs the compiler's passes one by one, a variant of the kernel after each that changed
 * something, and all variants at the end. */
static inline void kernel_check_passes(kernel *k, uint64_t seed)
{
    tcc_status status = kernel_run(k, k->signature, false, 0, k->want);
    ck_assert_msg(!status, "%s", k->said);
    char *before = kernel_text(k);
    for (const char *p = tcc_pipeline; *p;) {
        char pass[64];
        size_t n = strcspn(p, ",");
        snprintf(pass, sizeof pass, "%.*s", (int)n, p);
        p += n + (p[n] == ',');
        *k->said = 0;
        status = tcc_run_passes(k->ir, pass, NULL, &k->diag);
        ck_assert_msg(!status, "%s", k->said);
        ck_assert_msg(tcc_ir_verify(k->ir, TCC_LEVEL_ALL, &k->diag), "after %s: %s", pass, k->said);
        char *after = kernel_text(k);
        bool decides = !strncmp(pass, "choose-", 7); /* what others do then */
        if (!decides && strcmp(before, after))
            kernel_check(k, pass, false, seed++);
        free(before);
        before = after;
    }
    free(before);
    ck_assert_uint_ge(kernel_check(k, "the last pass", true, seed), 1);
}

#endif
