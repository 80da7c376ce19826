/* context: what the driver's files share. One compilation is one arena, freed with its module.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_CONTEXT_H
#define TCC_DRIVER_CONTEXT_H

#include <stdatomic.h>
#include <tcc/tcc.h>

#include "support/arena.h"
#include "support/diag.h"

struct tcc_context {
    tcc_diagnostic_fn fn;
    void *user;
    atomic_bool interrupted;
};

/* A diag for a text of this context's caller. */
tcc_diag tcc_context_diag(const tcc_context *ctx, const char *file, const char *source,
                          size_t size);

/* Options as this version knows them: what a caller built against an older one lacks is zero. NULL: all zero. */
tcc_compile_options tcc_known_compile_options(const tcc_compile_options *given);

#endif
