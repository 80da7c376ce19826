/* progress: a line on a terminal that says how far something is that takes longer than two seconds, or than
 * TCC_PROGRESS_AFTER says, and how long the rest will take. Elsewhere nothing is shown.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_PROGRESS_H
#define TCC_TOOLS_PROGRESS_H

#include <stdbool.h>

typedef struct progress {
    const char *what; /* "tcc-run: interpreting" */
    bool on_terminal, shown;
    double silent_s, began_s, told_s;
} progress;

/* Something begins now. */
progress progress_begin(const char *what);
/* So much of the whole is done, a part from 0 to 1. */
void progress_tell(progress *p, double part);
/* The same in the caller's words. */
void progress_say(progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes the line away: in the end, and before anything else is printed. */
void progress_clear(progress *p);

#endif
