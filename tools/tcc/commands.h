/* commands: what tcc does beside compiling, and before. A subcommand is a main of its own, whose argv begins with its name.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_COMMANDS_H
#define TCC_TOOLS_COMMANDS_H

/* Prepares the heap for a compilation: heap.c. */
void use_large_pages(void);
/* Prints all targets; form: "names" for only their names, or NULL. */
void list_targets(const char *form);

int fmt_main(int argc, char **argv);
int lsp_main(int argc, char **argv);

#endif
