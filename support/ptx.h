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
/* Looks for the line that opens it, not at bodies: of a large text hundreds may be asked for. */
bool tcc_ptx_has_entry(const char *text, const char *entry);
/* The text with one of its entries alone, malloc'ed; NULL without memory, and where there is no such
 * entry. */
char *tcc_ptx_part(const char *text, const char *entry);
/* n > 0 texts of an entry each, which say the same around it, as one; malloc'ed, NULL without memory. */
char *tcc_ptx_join(const char *const *texts, size_t n);

#endif
