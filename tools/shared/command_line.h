/* command_line: what the command-line programs have in common: messages, exit status, files.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_COMMAND_LINE_H
#define TCC_TOOLS_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include <tcc/tcc.h>

enum { EXIT_PROGRAM = 1, EXIT_USAGE = 2 };

/* The program's name in messages; each program defines it. */
extern const char program_name[];

/* Callbacks that print to standard error. */
void print_diagnostic(const tcc_diagnostic *d, void *user);
void print_text(const char *text, void *user);

/* Says what is wrong with the command line and exits with EXIT_USAGE. */
void bad_usage(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void out_of_memory(void) __attribute__((noreturn)); /* exits with EXIT_PROGRAM */

/* The argument of --check-passes; 0 for NULL, which is none. */
uint64_t parse_check_seed(const char *text);

/* A whole file, "-" for standard input; the caller frees it. Exits with EXIT_USAGE where it cannot
 * be read. */
char *read_input(const char *name, size_t *size);
/* Writes a file, "-" for standard output. Says what went wrong and returns false where it cannot.
 */
bool write_output(const char *name, const void *data, size_t size);

#endif
