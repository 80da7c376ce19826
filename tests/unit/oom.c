/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "oom.h"

#include <stddef.h>
#include <sys/mman.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);

static _Thread_local long countdown = -1;

void oom_fail_after(long n)
{
    countdown = n;
}

bool oom_is_armed(void)
{
    return countdown >= 0;
}

static bool fails(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    return fails() ? MAP_FAILED : __real_mmap(at, size, protection, flags, file, offset);
}
