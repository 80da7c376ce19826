/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof signals / sizeof signals[0] };

/* A signal's handler has no argument: this is of the process. */
static struct {
    char path[PATH_MAX], temporary[PATH_MAX]; /* the latter "" where the file is written as it is */
    struct sigaction before[N_SIGNALS];
} current;

static void remove_and_end(int number)
{
    unlink(current.temporary);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_signals(void)
{
    struct sigaction action = {.sa_handler = remove_and_end};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_SIGNALS; i++) {
        sigaction(signals[i], NULL, &current.before[i]);
        if (current.before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

static void leave_signals(void)
{
    for (int i = 0; i < N_SIGNALS; i++)
        sigaction(signals[i], &current.before[i], NULL);
}

static FILE *open_temporary(void)
{
    int n = snprintf(current.temporary, sizeof current.temporary, "%s.%ld.tmp", current.path,
                     (long)getpid());
    if ((size_t)n >= sizeof current.temporary) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    watch_signals(); /* before there is anything to remove */
    int fd = open(current.temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (f)
        return f;
    int error = errno;
    if (fd >= 0) {
        close(fd);
        unlink(current.temporary);
    }
    leave_signals();
    errno = error;
    return NULL;
}

FILE *whole_file_open(const char *path)
{
    struct stat st;
    bool exists = !stat(path, &st);
    current.temporary[0] = 0;
    if (exists && !S_ISREG(st.st_mode))
        return fopen(path, "wb");
    if (strlen(path) >= sizeof current.path) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (!exists || !realpath(path, current.path)) /* a link stays one */
        strcpy(current.path, path);
    return open_temporary();
}

bool whole_file_close(FILE *f, bool ok)
{
    int error = errno;
    if (fclose(f) && ok) {
        error = errno;
        ok = false;
    }
    if (!current.temporary[0]) {
        errno = error;
        return ok;
    }
    if (ok && rename(current.temporary, current.path)) {
        error = errno;
        ok = false;
    }
    if (!ok)
        unlink(current.temporary);
    leave_signals();
    errno = error;
    return ok;
}
