/* command_line: what the command-line programs have in common: messages, exit status, files.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_COMMAND_LINE_H
#define TCC_TOOLS_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include <tcc/tcc.h>

#include "tools/shared/diagnostics.h"

/* Exit statuses: of a bad program or a failed check, of bad usage and of output that got lost, and
 * where there is nothing to run on. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_DRIVER = 3 };

/* The program's name in messages, with the suffix that it was built with; each program defines it. */
extern const char program_name[];

/* A callback that prints to standard error. */
void print_text(const char *text, void *user);

/* Says what is wrong with the command line and exits with EXIT_USAGE. */
void bad_usage(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Says where help is and exits with EXIT_USAGE; `command` is "" or what stands behind the program's name, " fmt". */
void point_to_help(const char *command) __attribute__((noreturn));
void out_of_memory(void) __attribute__((noreturn)); /* exits with EXIT_FAILED */

/* The argument of --check-passes; 0 for NULL, which is none. */
uint64_t parse_check_seed(const char *text);

/* The values of --color and --diagnostics. */
void parse_color(diagnostic_printer *p, const char *value);
void parse_diagnostics(diagnostic_printer *p, const char *value);

/* A whole file, "-" for standard input; the caller frees it. Exits with EXIT_USAGE where it cannot
 * be read. */
char *read_input(const char *name, size_t *size);
/* Writes a file, whole or not at all. Says what went wrong and returns false where it cannot. "-" is
 * standard output, of which finish_output says it. */
bool write_output(const char *name, const void *data, size_t size);

/* First in main: a limit to the size of files is then an error of what writes, not a signal. */
void prepare_output(void);

/* Last in main, and before every other end with a status of 0: the exit status, which is not 0
 * where something that was printed got lost. */
int finish_output(int status);

#endif
