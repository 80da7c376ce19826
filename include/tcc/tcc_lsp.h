/* tcc_lsp: a language server for tile programs, for editors: docs/tools.md.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TCC_LSP_H
#define TCC_TCC_LSP_H

#include <tcc/tcc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcc_lsp_options {
    size_t struct_size; /* sizeof(tcc_lsp_options): lets the struct grow */
    const char *target; /* for programs whose schedules name none; NULL: "sm_90a" */
    /* Reads `size` bytes and returns their number, which is smaller only at the end of the input. */
    size_t (*read)(void *bytes, size_t size, void *user);
    /* Sends a whole message; false ends the server. */
    bool (*write)(const void *bytes, size_t size, void *user);
    void *user;
} tcc_lsp_options;

/* Serves the Language Server Protocol, version 3.17, until the client sends `exit` or its input ends.
 *
 * Returns TCC_OK after `shutdown` and `exit`; TCC_ERR_SYNTAX if the input violates the protocol; TCC_ERR_IO if the
 * input ends without them, or the output cannot be written; TCC_ERR_ARGUMENT; TCC_ERR_TARGET; TCC_ERR_MEMORY.
 * Thread-safe. */
TCC_API tcc_status tcc_lsp_serve(const tcc_lsp_options *options);

#ifdef __cplusplus
}
#endif
#endif
