/* verdict: what the compiler makes of a text, with every pass checked.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RANDOM_VERDICT_H
#define TCC_TESTS_RANDOM_VERDICT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum verdict_kind {
    PASSED,
    REFUSED, /* it does not fit the target, or is not supported, and the message says where */
    FAILED
} verdict_kind;

typedef struct verdict {
    verdict_kind kind;
    bool left_out;   /* some variant of it was not run */
    char way[160];   /* of failing: the first error without names and numbers */
    char said[4096]; /* every diagnostic, as a terminal shows it */
} verdict;

/* A compilation in a process of its own, which may crash or hang. */
typedef struct compilation {
    pid_t pid;
    int from;
} compilation;

typedef struct verdict_options {
    const char *target;
    uint64_t check_seed;
    unsigned seconds;    /* of processor time, after which it hangs */
    const char *fail_on; /* a text that has this fails, to try out what then happens; or NULL */
} verdict_options;

/* Begins a compilation; false when there can be no more processes. */
bool compilation_begin(compilation *c, const char *text, const verdict_options *o);
/* Whether its verdict is there, or it has ended without one. */
bool compilation_is_done(const compilation *c);
/* Waits for its end. */
verdict compilation_end(compilation *c);

#endif
