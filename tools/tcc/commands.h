/* commands: the subcommands of tcc. Each is a main of its own, whose argv begins with the subcommand's name.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_COMMANDS_H
#define TCC_TOOLS_COMMANDS_H

int fmt_main(int argc, char **argv);
int lsp_main(int argc, char **argv);

#endif
