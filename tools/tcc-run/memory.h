/* memory: how much of it there is.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_MEMORY_H
#define TCC_TOOLS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that this process may still allocate without swapping, or being killed for it: what the
 * system has, its control group may have and its own limits allow. UINT64_MAX when nothing says. */
uint64_t memory_available(void);

/* A number of bytes for people, such as "1.50 GB", into text. */
void memory_print(uint64_t bytes, char *text, size_t size);

#endif
