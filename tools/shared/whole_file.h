/* whole_file: files that are written completely or not at all, whatever interrupts the writing.
 *
 * It is written under a temporary name in the same folder and renamed at the end, with the mode of
 * the file that it replaces. A signal that ends the process removes it first. Symbolic links are
 * followed and kept. Anything but a plain file, such as a pipe, is written directly, and so are
 * names below /dev and /proc, which stand for open files, and a file in a folder where none can be
 * created.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_WHOLE_FILE_H
#define TCC_TOOLS_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Opens a file for writing; NULL with errno set when that fails, and when too many are open. From
 * one thread at a time. */
FILE *whole_file_open(const char *path);

/* Closes it, and lets it replace what was there when `ok` holds and nothing failed; otherwise
 * nothing is left of it. Returns whether it is there; errno says why not. */
bool whole_file_close(FILE *f, bool ok);

/* The rest of a stream, followed by a 0 byte that *size does not count; the caller frees it. NULL
 * with errno set on failure. */
char *whole_file_read(FILE *f, size_t *size);

#endif
