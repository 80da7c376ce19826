/* script: many command lines in one process and one CUDA context.
 *
 * The lines run in a child process, which hands each result back through a pipe. A kernel that
 * hangs or crashes ends that process and fails its line; another takes over from the next line.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_SCRIPT_H
#define TCC_TOOLS_SCRIPT_H

#include "tools/tcc-run/options.h"

/* Runs the script of the options, prints a row for each line and the closing counts. Returns an
 * exit status. */
int script_run(const options *o);

#endif
