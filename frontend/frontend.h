/* frontend: .tile text to tensor-level IR (docs/language.md).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_FRONTEND_FRONTEND_H
#define TCC_FRONTEND_FRONTEND_H

#include "ir/ir.h"
#include "support/str.h"

/* -D NAME=VALUE: binds a symbolic dimension or overrides a constant. */
typedef struct tcc_frontend_define {
    const char *name;
    int64_t value;
} tcc_frontend_define;

/* Parses and checks a source text and builds tensor-level IR: a module with one function for each
 * kernel, in source order.
 *
 * target  whose schedules apply; schedules for others are checked only
 * A function's attributes are `dims` (its symbolic dimensions), `roles` (in, out, inout or scalar
 * for each argument) and the settings of the schedule in force, as written. Its location is that
 * of the kernel's name, an op's that of its operator or name, an attribute's that of its value.
 * Returns NULL when there were errors: diag has them, and diag->status is the first one's. */
tcc_ir *tcc_frontend(tcc_arena *arena, const char *source, size_t size, const char *target,
                     const tcc_frontend_define *defines, size_t n_defines, tcc_diag *diag);

/* Whether a text can be read: not too long, and UTF-8. Reports why not. */
bool tcc_frontend_check_text(const char *source, size_t size, tcc_diag *diag);

/* Appends a text in the language's canonical layout: the same tokens and comments in the same order. False where it
 * cannot be parsed: diag has why. Both texts are the caller's to free; where one failed, memory ran out. */
bool tcc_frontend_format(tcc_arena *arena, const char *source, size_t size, tcc_diag *diag, tcc_str *scratch,
                         tcc_str *out);

#endif
