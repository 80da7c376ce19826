/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/disk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/str.h"

/* An entry: this, the key, the data. The last byte of the magic number counts formats. */
typedef struct header {
    char magic[8];
    uint64_t key_size, data_size, sum; /* of key and data */
} header;

static const char magic[8] = {'t', 'c', 'c', 'k', 'e', 'p', 't', 2};

static const char suffix[] = ".tcc", unfinished[] = "unfinished-";

enum { ABANDONED_SECONDS = 3600 }; /* an unfinished file of this age has no writer any more */

/* FNV-1a, with the finaliser of splitmix64 for the low bits. */
uint64_t tcc_hash(tcc_bytes bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const unsigned char *p = bytes.data;
    for (size_t i = 0; i < bytes.size; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    return h ^ h >> 31;
}

/* Of whole words, for entries have megabytes: no change of one word leaves it as it is. */
static uint64_t sum_of(const char *data, size_t size)
{
    uint64_t sum = size;
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, data + i, size - i < sizeof word ? size - i : sizeof word);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    return sum;
}

tcc_status tcc_disk_cache_folder(const char *given, char **folder)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"TCC_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "/tcc"}, {"HOME", "/.cache/tcc"}};
    const char *below = "";
    for (size_t i = 0; !given && i < sizeof places / sizeof places[0]; i++) {
        given = getenv(places[i].variable);
        below = places[i].below;
    }
    *folder = NULL;
    if (!given || !*given)
        return TCC_OK;
    tcc_str text = {0};
    tcc_str_printf(&text, "%s%s", given, below);
    *folder = tcc_str_take(&text);
    return *folder ? TCC_OK : TCC_ERR_MEMORY;
}

/* The name of an entry: the caller frees it; NULL when memory is short. */
static char *path_of(const char *folder, tcc_bytes key)
{
    tcc_str path = {0};
    tcc_str_printf(&path, "%s/%016llx%s", folder, (unsigned long long)tcc_hash(key), suffix);
    return tcc_str_take(&path);
}

static bool has_suffix(const char *name)
{
    size_t n = strlen(name), s = sizeof suffix - 1;
    return n > s && !strcmp(name + n - s, suffix);
}

/* ---- reading ---------------------------------------------------------------------------- */

/* The rest of a file, which the caller frees; NULL when it cannot be read. */
static char *read_all(int file, size_t *size)
{
    struct stat st;
    if (fstat(file, &st) || !S_ISREG(st.st_mode))
        return NULL;
    *size = (size_t)st.st_size;
    char *data = malloc(*size + 1);
    size_t done = 0;
    while (data && done < *size) {
        ssize_t n = read(file, data + done, *size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    if (data && done == *size)
        return data;
    free(data);
    return NULL;
}

static bool is_sound(const char *file, size_t size)
{
    header h;
    if (size < sizeof h)
        return false;
    memcpy(&h, file, sizeof h);
    size_t rest = size - sizeof h;
    return !memcmp(h.magic, magic, sizeof magic) && h.key_size <= rest &&
           h.data_size == rest - h.key_size && h.sum == sum_of(file + sizeof h, rest);
}

/* The contents of a file for the key. *data is only set on a hit. */
static tcc_disk_found look(char *file, size_t file_size, tcc_bytes key, char **data, size_t *size)
{
    header h;
    if (!is_sound(file, file_size))
        return TCC_DISK_DAMAGED;
    memcpy(&h, file, sizeof h);
    if (h.key_size != key.size || memcmp(file + sizeof h, key.data, key.size))
        return TCC_DISK_MISS; /* of another key with this hash */
    memmove(file, file + sizeof h + key.size, h.data_size);
    *data = file;
    *size = h.data_size;
    return TCC_DISK_HIT;
}

tcc_disk_found tcc_disk_cache_get(const char *folder, tcc_bytes key, char **data, size_t *size)
{
    char *path = path_of(folder, key), *bytes = NULL;
    size_t n = 0;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (file >= 0)
        bytes = read_all(file, &n);
    tcc_disk_found found = bytes ? look(bytes, n, key, data, size) : TCC_DISK_MISS;
    if (found == TCC_DISK_HIT)
        futimens(file, NULL); /* used now; where that is not allowed, the age is its writing's */
    else
        free(bytes);
    if (found == TCC_DISK_DAMAGED)
        unlink(path);
    if (file >= 0)
        close(file);
    free(path);
    return found;
}

/* ---- writing ---------------------------------------------------------------------------- */

bool tcc_make_folders(char *path)
{
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            bool made = !mkdir(path, 0777) || errno == EEXIST;
            *p = '/';
            if (!made)
                return false;
        }
    return !mkdir(path, 0700) || errno == EEXIST;
}

static bool write_all(int file, const void *data, size_t size)
{
    const char *p = data;
    while (size) {
        ssize_t n = write(file, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

static bool write_entry(int file, tcc_bytes key, tcc_bytes data)
{
    header h = {.key_size = key.size, .data_size = data.size};
    memcpy(h.magic, magic, sizeof magic);
    char *both = malloc(sizeof h + key.size + data.size);
    if (!both)
        return false;
    memcpy(both + sizeof h, key.data, key.size);
    memcpy(both + sizeof h + key.size, data.data, data.size);
    h.sum = sum_of(both + sizeof h, key.size + data.size);
    memcpy(both, &h, sizeof h);
    bool ok = write_all(file, both, sizeof h + key.size + data.size);
    free(both);
    return ok;
}

/* Writes under a name of its own, which is then exchanged for the entry's. */
static bool write_whole(const char *folder, const char *path, tcc_bytes key, tcc_bytes data)
{
    tcc_str name = {0};
    tcc_str_printf(&name, "%s/%sXXXXXX", folder, unfinished);
    char *temporary = tcc_str_take(&name);
    if (!temporary)
        return false;
    int file = mkstemp(temporary);
    bool ok = file >= 0 && write_entry(file, key, data);
    if (file >= 0 && close(file))
        ok = false;
    ok = ok && !rename(temporary, path);
    int error = errno;
    if (file >= 0 && !ok)
        unlink(temporary);
    free(temporary);
    errno = error;
    return ok;
}

/* ---- the limit -------------------------------------------------------------------------- */

typedef struct kept {
    struct timespec used;
    uint64_t bytes;
    char name[32];
} kept;

static int by_age(const void *a, const void *b)
{
    const kept *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void remove_abandoned(int folder, const char *name, const struct stat *st)
{
    if (!strncmp(name, unfinished, sizeof unfinished - 1) &&
        st->st_mtime < time(NULL) - ABANDONED_SECONDS)
        unlinkat(folder, name, 0);
}

/* Makes room for one more of n; false when memory is short. */
static bool grow(kept **all, size_t n)
{
    bool is_full = !(n & (n - 1)); /* 0 and powers of two */
    kept *more = is_full ? realloc(*all, (n ? 2 * n : 1) * sizeof *more) : *all;
    if (more)
        *all = more;
    return more;
}

/* The n entries of a folder, which the caller frees; some when memory is short. */
static kept *list(DIR *dir, size_t *n)
{
    kept *all = NULL;
    *n = 0;
    for (struct dirent *d; (d = readdir(dir));) {
        struct stat st;
        if (fstatat(dirfd(dir), d->d_name, &st, 0))
            continue;
        remove_abandoned(dirfd(dir), d->d_name, &st);
        if (!has_suffix(d->d_name) || strlen(d->d_name) >= sizeof all->name)
            continue;
        if (!grow(&all, *n))
            break;
        all[*n] = (kept){.used = st.st_mtim, .bytes = (uint64_t)st.st_size};
        strcpy(all[(*n)++].name, d->d_name);
    }
    return all;
}

static void remove_oldest(const char *folder, uint64_t limit_bytes)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    size_t n;
    uint64_t bytes = 0;
    kept *all = list(dir, &n);
    for (size_t i = 0; i < n; i++)
        bytes += all[i].bytes;
    if (n)
        qsort(all, n, sizeof *all, by_age);
    for (size_t i = 0; bytes > limit_bytes && i < n; i++) {
        unlinkat(dirfd(dir), all[i].name, 0);
        bytes -= all[i].bytes;
    }
    free(all);
    closedir(dir);
}

bool tcc_disk_cache_put(const char *folder, uint64_t limit_bytes, tcc_bytes key, tcc_bytes data)
{
    if (sizeof(header) + key.size + data.size > limit_bytes) {
        errno = EFBIG;
        return false;
    }
    char *path = path_of(folder, key), *folders = strdup(folder);
    bool ok = path && folders && tcc_make_folders(folders) && write_whole(folder, path, key, data);
    int error = errno;
    if (ok)
        remove_oldest(folder, limit_bytes);
    free(path);
    free(folders);
    errno = error;
    return ok;
}
