/* complete: what may come next at a place of a program.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_LSP_COMPLETE_H
#define TCC_LSP_COMPLETE_H

#include "lsp/names.h"
#include "support/str.h"

/* Appends the members of a "CompletionItem" array for a text that is cut off where the cursor is. */
void lsp_complete(tcc_str *out, const lsp_names *names, const char *text, size_t size, const char *target);

#endif
