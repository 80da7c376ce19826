/* fake: how a test gets at a stand-in for a driver's library.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RUNTIME_FAKE_H
#define TCC_TESTS_RUNTIME_FAKE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Loads the library, and returns its control, the symbol of this name. From here on dlopen finds the library by its
 * soname, too. */
static inline const void *load_fake(const char *path, const char *control)
{
    void *library = dlopen(path, RTLD_NOW);
    const void *found = library ? dlsym(library, control) : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    return found;
}

#endif
