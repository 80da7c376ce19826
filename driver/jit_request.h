/* jit_request: what a tcc_jit is asked for, and what that is known by.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_JIT_REQUEST_H
#define TCC_DRIVER_JIT_REQUEST_H

#include <tcc/tcc.h>

#include "support/arena.h"
#include "support/str.h"

typedef struct tcc_jit_request {
    const char *source;
    tcc_compile_options options; /* the target given */
    tcc_str key;
    bool is_quiet;      /* no caller waits for its diagnostics */
    bool in_background; /* no caller waits for its program */
    tcc_arena *arena;   /* of its own texts; NULL: all are borrowed */
} tcc_jit_request;

/* Borrows what it is given. build: the versions of libtcc and the driver. False when memory is short. */
bool tcc_jit_request_init(tcc_jit_request *r, const char *build, const char *source,
                          const tcc_compile_options *options);
/* A copy for the background, with texts of its own. False when memory is short. */
bool tcc_jit_request_copy(const tcc_jit_request *from, tcc_jit_request *to);
void tcc_jit_request_free(tcc_jit_request *r);

#endif
