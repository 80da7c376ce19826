/* The heap of a process that compiles and ends: in large pages, and never given back before.
 *
 * A compilation touches 20 MB for the first time. 4 KB at a time, these faults take a tenth of its CPU time.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>
#include <stdlib.h>

#include "tools/tcc/commands.h"

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LARGE_PAGE_BYTES = 2 << 20,
    HEAP_BYTES = 32 << 20,       /* what is not used takes no memory */
    THREAD_HEAP_BYTES = 4 << 20, /* the first size of a thread's own heap */
    MMAP_BYTES = 32 << 20        /* the most that mallopt takes */
};

static void *volatile grown; /* or the compiler would leave the allocation out */

void use_large_pages(void)
{
    uintptr_t begin = (uintptr_t)sbrk(0);
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    mallopt(M_TRIM_THRESHOLD, 2 * HEAP_BYTES);
    mallopt(M_TOP_PAD, HEAP_BYTES);
    grown = malloc(LARGE_PAGE_BYTES);
    free(grown);
    mallopt(M_TOP_PAD, THREAD_HEAP_BYTES);
    begin += -begin % LARGE_PAGE_BYTES;
    uintptr_t end = (uintptr_t)sbrk(0);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* where there are none, pages are small */
}
#else
void use_large_pages(void)
{
}
#endif
