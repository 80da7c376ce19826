/* module: the functions of a module, several at a time: they have nothing to do with each other.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "checker/checker.h"
#include "ir/signature.h"
#include "support/threads.h"

/* What the threads share. */
typedef struct work {
    const tcc_func **funcs;
    tcc_status *status; /* of each */
    size_t n;
    atomic_size_t next;
} work;

/* A proof takes memory of its own, more than the IR does. */
static tcc_status check(const tcc_func *f, tcc_arena *scratch, tcc_diag *diag)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(scratch, &oom);
    tcc_status status = tcc_protocol_check(f, scratch, diag);
    tcc_arena_clear(scratch);
    return status;
}

/* Takes the functions that nobody has taken yet. What is wrong is told later. */
static void *take_functions(void *arg)
{
    work *w = arg;
    tcc_arena *scratch = tcc_arena_create(NULL);
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
        tcc_diag silent = {0};
        w->status[i] = scratch ? check(w->funcs[i], scratch, &silent) : TCC_ERR_MEMORY;
    }
    tcc_arena_destroy(scratch);
    return NULL;
}

/* Tells what is wrong in the functions' order: it goes wrong again. */
static tcc_status tell(const work *w, tcc_diag *diag)
{
    tcc_status status = TCC_OK;
    for (size_t i = 0; i < w->n && !status; i++) {
        tcc_arena *scratch = w->status[i] ? tcc_arena_create(NULL) : NULL;
        if (w->status[i])
            status = scratch ? check(w->funcs[i], scratch, diag) : TCC_ERR_MEMORY;
        tcc_arena_destroy(scratch);
    }
    return status;
}

tcc_status tcc_protocol_check_all(const tcc_ir *ir, size_t n_threads, tcc_diag *diag)
{
    work w = {0};
    size_t n = 0;
    for (const tcc_func *f = ir->first; f; f = f->next)
        n += !tcc_func_is_definition(f);
    w.funcs = calloc(n + 1, sizeof *w.funcs);
    w.status = calloc(n + 1, sizeof *w.status);
    tcc_status status = TCC_ERR_MEMORY;
    if (w.funcs && w.status) {
        for (const tcc_func *f = ir->first; f; f = f->next)
            if (!tcc_func_is_definition(f))
                w.funcs[w.n++] = f;
        tcc_run_threads(n_threads ? n_threads : tcc_threads_for(n), take_functions, &w);
        status = tell(&w, diag);
    }
    free(w.funcs);
    free(w.status);
    return status;
}
