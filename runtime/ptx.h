/* ptx: the entries of a PTX text, one by one, so that a driver compiles only those that are launched.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_PTX_H
#define TCC_RUNTIME_PTX_H

#include <stdbool.h>

/* Whether a text can be taken apart: it has several entries, and between them nothing but comments. What is
 * in front of the first and behind the last one then belongs to each. */
bool tcc_ptx_has_parts(const char *text);
bool tcc_ptx_has_entry(const char *text, const char *entry);
/* The text with one of its entries alone, malloc'ed; NULL without memory, and where there is no such
 * entry. */
char *tcc_ptx_part(const char *text, const char *entry);

#endif
