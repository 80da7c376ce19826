/* document: a text as an editor has it, whose places are lines and UTF-16 units, from 0; ours are lines and bytes,
 * from 1.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_LSP_DOCUMENT_H
#define TCC_LSP_DOCUMENT_H

#include "support/diag.h"
#include "support/json.h"

typedef struct lsp_document {
    struct lsp_document *next;
    char *uri, *text; /* on the heap */
    size_t size;
} lsp_document;

/* The place of a "position", limited to the end of its line. */
tcc_loc lsp_document_place(const lsp_document *d, const tcc_json *position);
/* The byte at a place. */
size_t lsp_document_offset(const lsp_document *d, tcc_loc loc);
/* A "range" in a line, from a place on up to a column. */
void lsp_document_print_range(tcc_str *out, const lsp_document *d, tcc_loc from, size_t end_column);
/* That of the whole text. */
void lsp_document_print_whole(tcc_str *out, const lsp_document *d);

#endif
