/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/shared/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_OPEN = 4, MAX_LINKS = 40 };

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof signals / sizeof signals[0] };

/* A file under its other name. */
typedef struct pending {
    FILE *f;    /* NULL: the entry is free */
    pid_t owner; /* a child process has the parent's entries, too */
    char path[PATH_MAX], temporary[PATH_MAX];
} pending;

/* A signal's handler has no argument: these are of the process. */
static struct {
    pending files[MAX_OPEN];
    int n;
    struct sigaction before[N_SIGNALS];
} current;

/* ---- signals ---------------------------------------------------------------------------- */

static void remove_and_end(int number)
{
    for (int i = 0; i < MAX_OPEN; i++)
        if (current.files[i].temporary[0] && current.files[i].owner == getpid())
            unlink(current.files[i].temporary);
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

/* ---- writing ---------------------------------------------------------------------------- */

static bool copy_path(char *out, const char *path)
{
    if (strlen(path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(out, path);
    return true;
}

/* Replaces a path by what the symbolic link there names, relative to the link's folder. */
static bool follow_link(char *path)
{
    char target[PATH_MAX], *slash = strrchr(path, '/');
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return false;
    target[n] = 0;
    if (target[0] == '/' || !slash)
        return copy_path(path, target);
    size_t folder = (size_t)(slash + 1 - path);
    if (folder + (size_t)n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(path + folder, target);
    return true;
}

static bool follow_links(char *path)
{
    struct stat st;
    for (int i = 0; !lstat(path, &st) && S_ISLNK(st.st_mode); i++) {
        if (i == MAX_LINKS) {
            errno = ELOOP;
            return false;
        }
        if (!follow_link(path))
            return false;
    }
    return true;
}

static pending *free_entry(void)
{
    for (int i = 0; i < MAX_OPEN; i++)
        if (!current.files[i].temporary[0])
            return &current.files[i];
    errno = EMFILE;
    return NULL;
}

static void forget(pending *p)
{
    p->temporary[0] = 0;
    p->f = NULL;
    if (!--current.n)
        leave_signals();
}

/* Gives a file the owner and the group of another, where that is allowed, and its mode. */
static bool take_over(int fd, const struct stat *old)
{
    mode_t mode = old->st_mode & 07777;
    if (fchown(fd, old->st_uid, old->st_gid) && fchown(fd, (uid_t)-1, old->st_gid))
        mode &= 0777; /* set-user-ID is of an owner */
    return !fchmod(fd, mode);
}

/* Opens the file's other name, with the owner and the mode that *old has. */
static FILE *open_temporary(pending *p, const struct stat *old)
{
    char name[PATH_MAX];
    int n = snprintf(name, sizeof name, "%s.%ld.tmp", p->path, (long)getpid());
    if ((size_t)n >= sizeof name) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (!current.n++) /* before there is anything to remove */
        watch_signals();
    p->owner = getpid();
    strcpy(p->temporary, name);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && (!old || take_over(fd, old));
    p->f = ok ? fdopen(fd, "wb") : NULL;
    if (p->f)
        return p->f;
    int error = errno;
    if (fd >= 0) {
        close(fd);
        unlink(name);
    }
    forget(p);
    errno = error;
    return NULL;
}

static bool is_written_as_it_is(const char *path)
{
    return !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
}

FILE *whole_file_open(const char *path)
{
    pending *p = free_entry();
    struct stat st;
    if (!p || !copy_path(p->path, path) || !follow_links(p->path))
        return NULL;
    bool exists = !stat(p->path, &st);
    if (is_written_as_it_is(path) || (exists && !S_ISREG(st.st_mode)))
        return fopen(path, "wb");
    if (exists && access(p->path, W_OK)) /* the file has been renamed */
        return NULL;
    FILE *f = open_temporary(p, exists ? &st : NULL);
    bool takes_none = errno == EACCES || errno == EPERM || errno == EROFS;
    return f || !exists || !takes_none ? f : fopen(path, "wb");
}

static pending *entry_of(const FILE *f)
{
    for (int i = 0; i < MAX_OPEN; i++)
        if (current.files[i].f == f)
            return &current.files[i];
    return NULL;
}

bool whole_file_close(FILE *f, bool ok)
{
    pending *p = entry_of(f);
    int error = errno;
    if (fclose(f) && ok) {
        error = errno;
        ok = false;
    }
    if (p && ok && rename(p->temporary, p->path)) {
        error = errno;
        ok = false;
    }
    if (p && !ok)
        unlink(p->temporary);
    if (p)
        forget(p);
    errno = error;
    return ok;
}

/* ---- reading ---------------------------------------------------------------------------- */

char *whole_file_read(FILE *f, size_t *size)
{
    enum { MIN_ROOM = 65536 };
    size_t n = 0, cap = 0, got;
    char *data = NULL;
    do {
        if (cap - n < MIN_ROOM) {
            cap = 2 * cap + MIN_ROOM;
            char *grown = realloc(data, cap);
            if (!grown) {
                free(data);
                return NULL;
            }
            data = grown;
        }
        got = fread(data + n, 1, cap - n - 1, f);
        n += got;
    } while (got);
    if (ferror(f)) {
        free(data);
        return NULL;
    }
    data[n] = 0;
    *size = n;
    return data;
}
