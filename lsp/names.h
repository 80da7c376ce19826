/* names: the meaning of each name in a program.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_LSP_NAMES_H
#define TCC_LSP_NAMES_H

#include "frontend/ast.h"

/* One place where a name is written. */
typedef struct lsp_name {
    tcc_loc loc;
    size_t len;
    tcc_loc defined; /* where; line 0: not in the program */
    size_t defined_len;
    const char *code; /* what it is, in the language's syntax; NULL: nothing is known */
    const char *doc;  /* in words, or NULL */
    const char *kernel, *target; /* whose schedule belongs to it; NULL: none, or for any target */
} lsp_name;

typedef struct lsp_names {
    tcc_arena *arena;
    tcc_ast_file *file; /* NULL where the text cannot be read */
    TCC_VEC(lsp_name) all;
} lsp_names;

/* Reads a program; what is wrong with it is not told, and names of what can be read come. */
void lsp_names_find(lsp_names *names, tcc_arena *arena, const char *source, size_t size, const char *target);

/* The name at a place, NULL where there is none. */
const lsp_name *lsp_name_at(const lsp_names *names, tcc_loc loc);

/* The i-th function of the language, false past the last. */
bool lsp_function_at(size_t i, const char **name, const char **doc);
const char *lsp_key_doc(size_t key);

#endif
