/* main: runs a room's suites, all or those named, each in a process of its own, as CK_VERBOSITY and Check's other
 * variables say. Ends with 0 if there is no failure.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* A suite may replace libraries and clocks for the rest of its process. */
static int run_apart(const suite_entry *e)
{
    fflush(NULL);
    int status = 1;
    pid_t child = fork();
    if (!child)
        _exit(suite_exit_status(e->make()) | fflush(NULL));
    return child < 0 || waitpid(child, &status, 0) != child || status;
}

int main(int argc, char **argv)
{
    int failed = 0;
    setenv("CK_DEFAULT_TIMEOUT", "600", 0); /* not 4 s: sanitizers on a machine that does much else want more */
    for (const suite_entry *e = suites; argc == 1 && e->name; e++)
        failed |= run_apart(e);
    for (int i = 1; i < argc; i++) {
        const suite_entry *e = suites;
        while (e->name && strcmp(e->name, argv[i]))
            e++;
        if (!e->name)
            fprintf(stderr, "%s: there is no suite '%s'\n", argv[0], argv[i]);
        failed |= !e->name || (argc == 2 ? suite_exit_status(e->make()) : run_apart(e));
    }
    return failed;
}
