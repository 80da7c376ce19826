/* jit: what the files of a tcc_jit share.
 *
 * jit.c            the handle, and which program is whose
 * jit_request.c    what is asked for
 * jit_make.c       compiling, assembling, loading, and what is kept on disk
 * jit_extents.c    programs for single extents
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_JIT_H
#define TCC_DRIVER_JIT_H

#include <stdatomic.h>

#include <tcc/tcc_jit.h>

#include "driver/jit_request.h"
#include "runtime/runtime.h"
#include "support/background.h"

enum { TCC_JIT_LISTS = 256 };

/* A program, by all that decides what it is. */
typedef struct tcc_jit_made {
    uint64_t hash; /* of the key */
    char *key;
    size_t key_size;
    tcc_program *program; /* NULL while a thread makes it */
    struct tcc_jit_made *next;
} tcc_jit_made;

/* Extents that a kernel was launched with. */
typedef struct tcc_jit_extents {
    const tcc_kernel *kernel, *own; /* own: made for them; NULL: there is none, or none yet */
    bool is_decided;
    struct tcc_jit_extents *next;
    int64_t dims[]; /* the kernel's */
} tcc_jit_extents;

struct tcc_jit {
    tcc_runtime *rt, quiet; /* quiet: the same, which reports nothing */
    const char *target;
    tcc_str build; /* the versions of libtcc and the driver */
    char *folder;  /* NULL: none */
    uint64_t limit_bytes;
    tcc_jit_when specialize, assemble;
    tcc_current current;   /* for the background */
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t done;   /* with a program, or without success; with a decision */
    tcc_jit_made *lists[TCC_JIT_LISTS];
    tcc_jit_extents *extents[TCC_JIT_LISTS];
    size_t n_extents;
    atomic_flag told; /* set once a warning said that the folder cannot be used */
    _Atomic uint64_t compiled, read, damaged, specialized, assembled;
    tcc_background background; /* has a mutex of its own, which is taken last */
};

/* Finds a program, or makes it. Thread-safe; the mutex is not held. */
tcc_status tcc_jit_find(tcc_jit *jit, const tcc_jit_request *r, const tcc_program **out);

/* Reads a program from the folder, or compiles it, and loads it. */
tcc_status tcc_jit_make(tcc_jit *jit, const tcc_jit_request *r, tcc_program **out);

/* The kernel for extents of `kernel`, which is of what is asked for: itself, or one that was made for them, now or
 * before. */
const tcc_kernel *tcc_jit_for_extents(tcc_jit *jit, const tcc_jit_request *r, const tcc_kernel *kernel,
                                      const int64_t *dims);
void tcc_jit_extents_free(tcc_jit *jit);

#endif
