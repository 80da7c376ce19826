/* emit: a checked syntax tree to tensor-level IR.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_FRONTEND_EMIT_H
#define TCC_FRONTEND_EMIT_H

#include "frontend/ast.h"

/* Appends the kernel's function to ir. */
void tcc_frontend_emit(tcc_ir *ir, tcc_ast_kernel *kernel);

#endif
