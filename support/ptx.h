/* ptx: the entries of a PTX text, one by one: made by several threads, compiled by a driver when they are
 * launched.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_PTX_H
#define TCC_SUPPORT_PTX_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a text can be split: it has several entries, with only comments between them. The text before the
 * first and after the last one then belongs to each. */
bool tcc_ptx_has_parts(const char *text);
/* Finds the line that opens an entry, first from a place in the text on, then before it; NULL if there is none. A large
 * text may be asked for hundreds of entries, mostly in their order, so bodies are skipped. */
const char *tcc_ptx_find(const char *text, const char *from, const char *entry);
/* The text with only one of its entries, malloc'ed; NULL if memory runs out or there is no such
 * entry. */
char *tcc_ptx_part(const char *text, const char *entry);
/* Joins n > 0 texts of one entry each, whose text around it differs at most in what is declared
 * before it; malloc'ed, NULL if memory runs out. */
char *tcc_ptx_join(const char *const *texts, size_t n);

#endif
