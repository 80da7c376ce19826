/* message: what client and server send each other: a header with a length, and a JSON text.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_LSP_MESSAGE_H
#define TCC_LSP_MESSAGE_H

#include <tcc/tcc_lsp.h>

#include "support/json.h"

enum { LSP_MAX_BYTES = 64 * 1024 * 1024 }; /* of a message */

/* Reads the next message into the arena. NULL with TCC_OK at the end of the input, with TCC_ERR_SYNTAX for anything
 * that is not a message. */
char *lsp_message_read(const tcc_lsp_options *io, tcc_arena *arena, size_t *size, tcc_status *status);
/* Sends a text. */
tcc_status lsp_message_write(const tcc_lsp_options *io, const tcc_str *text);

#endif
