/* folder: a folder for one test, with what is in it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RUNTIME_FOLDER_H
#define TCC_TESTS_RUNTIME_FOLDER_H

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static inline void make_folder(void)
{
    strcpy(folder, "/tmp/tcc-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Calls fn with the path of every file in it; returns how many there are. */
static inline int each_file(void (*fn)(const char *path))
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        if (*d->d_name == '.')
            continue;
        n++;
        if (fn)
            fn(path);
    }
    if (dir)
        closedir(dir);
    return n;
}

static inline void remove_file(const char *path)
{
    unlink(path);
}

static inline void remove_folder(void)
{
    each_file(remove_file);
    rmdir(folder);
}

#endif
