/* ptx: the entries of a PTX text, one by one: made by several threads, compiled by a driver when they are
 * launched.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_PTX_H
#define TCC_SUPPORT_PTX_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a text can be taken apart: it has several entries, and between them nothing but comments. What is
 * in front of the first and behind the last one then belongs to each. */
bool tcc_ptx_has_parts(const char *text);
/* The line that opens an entry, looked for from a place in the text on, then in front of it; NULL where there is none.
 * Of a large text hundreds are asked for, mostly in their order: bodies are passed over. */
const char *tcc_ptx_find(const char *text, const char *from, const char *entry);
/* The text with one of its entries alone, malloc'ed; NULL without memory, and where there is no such
 * entry. */
char *tcc_ptx_part(const char *text, const char *entry);
/* n > 0 texts of an entry each, which say the same around it, as one; malloc'ed, NULL without memory. */
char *tcc_ptx_join(const char *const *texts, size_t n);

#endif
