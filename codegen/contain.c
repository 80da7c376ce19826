/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/contain.h"

#include <llvm-c/ErrorHandling.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* What has no name in C: of LLVM's Support/ErrorHandling.h, and of C++'s <new>. */
typedef void new_handler(void);
typedef void bad_alloc_handler(void *user, const char *reason, bool crash);
new_handler *std_set_new_handler(new_handler *h) __asm__("_ZSt15set_new_handlerPFvvE");
void std_throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv");
void llvm_install_bad_alloc_handler(bad_alloc_handler *h, void *user) __asm__(
    "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");
void llvm_remove_bad_alloc_handler(void) __asm__("_ZN4llvm30remove_bad_alloc_error_handlerEv");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_running;                     /* calls of tcc_contain, on all threads */
static _Atomic(new_handler *) foreign_handler; /* the process's own */
static _Thread_local tcc_contained *running;   /* on this thread; NULL: none */

static void jump_out(tcc_status status)
{
    running->status = status;
    longjmp(running->out, 1);
}

/* ---- handlers ---------------------------------------------------------------------------- */

static void on_fatal_error(const char *reason)
{
    if (!running) { /* without a handler LLVM says this; after it, it ends the process either way */
        fprintf(stderr, "LLVM ERROR: %s\n", reason);
        return;
    }
    snprintf(running->reason, sizeof running->reason, "%s", reason);
    jump_out(TCC_ERR_INTERNAL);
}

/* For malloc, called by LLVM. */
static void on_bad_alloc(void *user, const char *reason, bool crash)
{
    (void)user, (void)reason, (void)crash;
    if (running)
        jump_out(TCC_ERR_MEMORY);
    fprintf(stderr, "LLVM ERROR: out of memory\n");
    abort();
}

/* For operator new. */
static void on_no_memory(void)
{
    if (running)
        jump_out(TCC_ERR_MEMORY);
    new_handler *foreign = foreign_handler;
    if (foreign)
        foreign();
    else
        std_throw_bad_alloc();
}

/* LLVM has no way to query the installed handler, so ours are removed without restoring one. */
static void install(void)
{
    pthread_mutex_lock(&lock);
    if (!n_running++) {
        LLVMResetFatalErrorHandler();
        LLVMInstallFatalErrorHandler(on_fatal_error);
        llvm_remove_bad_alloc_handler();
        llvm_install_bad_alloc_handler(on_bad_alloc, NULL);
        foreign_handler = std_set_new_handler(on_no_memory);
    }
    pthread_mutex_unlock(&lock);
}

static void remove_handlers(void)
{
    pthread_mutex_lock(&lock);
    if (!--n_running) {
        LLVMResetFatalErrorHandler();
        llvm_remove_bad_alloc_handler();
        new_handler *last = std_set_new_handler(foreign_handler);
        if (last != on_no_memory) /* somebody else's, set in the meantime */
            std_set_new_handler(last);
    }
    pthread_mutex_unlock(&lock);
}

tcc_status tcc_contain(tcc_contained *c, tcc_status (*run)(void *user), void *user)
{
    install();
    running = c;
    c->status = TCC_OK;
    tcc_status status = setjmp(c->out) ? c->status : run(user);
    running = NULL;
    remove_handlers();
    return status;
}
