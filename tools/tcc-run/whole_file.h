/* whole_file: a file that is there whole or not at all, whatever interrupts the writing.
 *
 * It is written under another name beside its own, which it gets at the end. A signal that ends
 * the process removes it before; for that, one file at a time can be open. What is no plain file,
 * such as a pipe, is written as it is.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_WHOLE_FILE_H
#define TCC_TOOLS_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Opens a file for writing; NULL with errno set when that fails. */
FILE *whole_file_open(const char *path);

/* Closes it, and lets it replace what was there when `ok` holds and nothing failed; otherwise
 * nothing is left of it. Returns whether it is there; errno says why not. */
bool whole_file_close(FILE *f, bool ok);

#endif
