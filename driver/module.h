/* module: what a tcc_module holds, however it was made.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_MODULE_H
#define TCC_DRIVER_MODULE_H

#include <tcc/tcc.h>

#include "driver/context.h"
#include "ir/ir.h"

struct tcc_module {
    tcc_arena *arena;
    char *output; /* malloc'ed: text or a device object */
    size_t size;
    tcc_emit emit; /* the kind of output; TCC_EMIT_DEFAULT: textual IR */
    char *manifest, *schedule, *plan; /* malloc'ed */
    const char **kernels;
    size_t n_kernels;
    /* For tcc_interpret; locations are in `file`, of which the source may be NULL. */
    const tcc_ir *ir;
    const char *file, *source;
    size_t source_size;
};

/* Parses and verifies textual IR of any level, and looks its target up. On success diag is about
 * the file that locations are in: where that is not this text, no source lines are shown. Errors
 * are reported. */
tcc_status tcc_module_read_ir(tcc_arena *arena, const char *text, size_t size, tcc_diag *diag,
                              tcc_ir **out);

#endif
