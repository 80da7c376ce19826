/* contain: keeps LLVM's fatal errors, and memory that runs out in it, from ending the process.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_CONTAIN_H
#define TCC_CODEGEN_CONTAIN_H

#include <setjmp.h>
#include <stdbool.h>

#include <tcc/status.h>

typedef struct tcc_contained {
    jmp_buf out;
    tcc_status status; /* TCC_OK while nothing went wrong */
    char reason[256];  /* of a fatal error, from LLVM */
} tcc_contained;

/* Calls run(user), which may call LLVM, and returns what it returns; or, if LLVM aborts in it,
 * c->status: TCC_ERR_INTERNAL with a reason, or TCC_ERR_MEMORY. LLVM then leaks what it held.
 * Thread-safe.
 *
 * LLVM's handlers are global to the process. Ours are installed while a call runs; on other threads
 * they behave like LLVM's and C++'s defaults. */
tcc_status tcc_contain(tcc_contained *c, tcc_status (*run)(void *user), void *user);

#endif
