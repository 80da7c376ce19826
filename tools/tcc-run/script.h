/* script: many command lines in one process and one CUDA context.
 *
 * The lines run in a child process, which hands each result back through a pipe. A kernel that
 * hangs or crashes ends that process and fails its line; another takes over from the next line.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_SCRIPT_H
#define TCC_TOOLS_SCRIPT_H

#include "tools/tcc-run/options.h"
#include "tools/tcc-run/result.h"

enum { SCRIPT_MAX_WORDS = 64 };

/* One command line: words as argv has them, words[0] the program's name. */
typedef struct script_line {
    char *words[SCRIPT_MAX_WORDS + 1];
    int n_words;
    int number; /* 1-based, in the file */
} script_line;

/* Who is told of results. */
typedef struct script_sink {
    void (*machine)(const run_result *r, void *user); /* what they are of, before the first */
    void (*line)(const script_line *line, const run_result *r, void *user);
    void *user;
} script_sink;

/* Runs lines. o: of the command that does so, with what is for all of them. Returns an exit status. */
int script_run_lines(const options *o, script_line *lines, size_t n, const script_sink *sink);

/* Runs the script of the options, prints a row for each line and the closing counts. Returns an
 * exit status. */
int script_run(const options *o);

#endif
