/* kernel: a kernel's source, what the passes make of it, and a trial of both.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_INTERP_KERNEL_H
#define TCC_TESTS_INTERP_KERNEL_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/check_passes.h"
#include "driver/trial.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "support/str.h"

enum { KERNEL_MAX_DIMS = 4, MAX_SAID = 16384 };

typedef struct kernel {
    tcc_arena *arena, *scratch;
    tcc_diag diag;
    char said[MAX_SAID];
    const char *target;
    const tcc_func *signature; /* as the frontend made it */
    tcc_ir *ir;                /* as the passes change it */
    int64_t dims[KERNEL_MAX_DIMS];
    tcc_trial trial;
} kernel;

static inline void kernel_listen(const tcc_diagnostic *d, void *user)
{
    kernel *k = user;
    size_t n = strlen(k->said);
    snprintf(k->said + n, sizeof k->said - n, "%s", d->text);
}

static inline tcc_ir *kernel_parse(kernel *k, const char *source)
{
    tcc_ir *ir = tcc_frontend(k->arena, source, strlen(source), k->target, NULL, 0, &k->diag);
    if (!ir)
        ck_abort_msg("%s\n%s", source, k->said);
    return ir;
}

/* What the dimensions M, N, K and P are, whichever of them the kernel has, in whatever order. */
typedef struct extents {
    int64_t m, n, k, p;
} extents;

static inline void kernel_bind(kernel *k, extents e)
{
    tcc_attr dims = tcc_attr_list(&k->signature->attrs, "dims");
    ck_assert_uint_le(dims.list.n, KERNEL_MAX_DIMS);
    for (size_t i = 0; i < dims.list.n; i++)
        k->dims[i] = *dims.list.items[i].s == 'M'   ? e.m
                     : *dims.list.items[i].s == 'N' ? e.n
                     : *dims.list.items[i].s == 'K' ? e.k
                                                    : e.p;
}

static inline void kernel_open_for(kernel *k, const char *target, const char *source, extents e)
{
    *k = (kernel){.arena = tcc_arena_create(NULL), .scratch = tcc_arena_create(NULL), .target = target};
    source = tcc_arena_strdup(k->arena, source);
    k->diag = (tcc_diag){.file = "test.tile",
                         .source = source,
                         .size = strlen(source),
                         .fn = kernel_listen,
                         .user = k};
    k->signature = kernel_parse(k, source)->first;
    k->ir = kernel_parse(k, source);
    kernel_bind(k, e);
    tcc_status status = tcc_trial_prepare(&k->trial, k->arena, k->scratch, k->signature, k->dims, 0, &k->diag);
    ck_assert_msg(!status, "%s", k->said);
}

static inline void kernel_open(kernel *k, const char *source, extents e)
{
    kernel_open_for(k, "sm_90a", source, e);
}

static inline void kernel_close(kernel *k)
{
    tcc_arena_destroy(k->scratch);
    tcc_arena_destroy(k->arena);
}

static inline tcc_status kernel_run(kernel *k, const tcc_func *f, uint64_t seed)
{
    *k->said = 0;
    return tcc_trial_run(&k->trial, f, seed, &k->diag);
}

/* The test fails when what ran last did not compute what the kernel does. */
static inline void kernel_compare(kernel *k, const tcc_func *f, uint64_t seed)
{
    tcc_difference d;
    tcc_str text = {0};
    if (tcc_trial_agrees(&k->trial, f, &d))
        return;
    tcc_difference_print(&text, &k->trial, &d);
    ck_abort_msg("@%s, seed %llu: %s", f->name, (unsigned long long)seed, tcc_str_text(&text));
}

#endif
