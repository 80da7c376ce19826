/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct chunk {
    struct chunk *next;
    size_t cap, used;
    size_t dirty; /* so many bytes were used before, and may not be 0 */
    bool huge;
    alignas(max_align_t) char data[];
} chunk;

struct tcc_arena {
    chunk *head;
    chunk *spare;
    jmp_buf *on_oom;
    size_t used;
    tcc_arena *of;          /* which this one is destroyed with, or NULL */
    tcc_arena *first, *next; /* those that are destroyed with this one; another one of `of` */
};

/* Small chunks double; behind these come huge pages, since a fault for each small page may take longer than what is
 * done with it. */
enum { FIRST_CHUNK_BYTES = 16 * 1024, MAX_SMALL_CHUNK_BYTES = 256 * 1024, HUGE_PAGE_BYTES = 2 * 1024 * 1024 };
enum { HUGE_CHUNK_BYTES = HUGE_PAGE_BYTES - sizeof(chunk) };

tcc_arena *tcc_arena_create(jmp_buf *on_oom)
{
    tcc_arena *a = calloc(1, sizeof *a);
    if (a)
        a->on_oom = on_oom;
    return a;
}

void tcc_arena_destroy(tcc_arena *a)
{
    for (tcc_arena *in = a ? a->first : NULL, *next; in; in = next) {
        next = in->next;
        tcc_arena_destroy(in);
    }
    if (a)
        tcc_arena_release(a);
    free(a);
}

void tcc_arena_clear(tcc_arena *a)
{
    for (chunk *c = a->head, *next; c; c = next) {
        next = c->next;
        c->dirty = c->used > c->dirty ? c->used : c->dirty;
        c->used = 0;
        c->next = a->spare;
        a->spare = c;
    }
    a->head = NULL;
    a->used = 0;
}

void tcc_arena_release(tcc_arena *a)
{
    tcc_arena_clear(a);
    for (chunk *c = a->spare, *next; c; c = next) {
        next = c->next;
        if (c->huge)
            munmap(c, HUGE_PAGE_BYTES);
        else
            free(c);
    }
    a->spare = NULL;
}

void tcc_arena_set_oom(tcc_arena *a, jmp_buf *on_oom)
{
    a->on_oom = on_oom;
}

void tcc_arena_out_of_memory(tcc_arena *a)
{
    while (a->of)
        a = a->of;
    if (a->on_oom)
        longjmp(*a->on_oom, 1);
    abort();
}

/* A spare chunk with so much room, or NULL. */
static chunk *take_spare(tcc_arena *a, size_t size)
{
    chunk **at = &a->spare;
    while (*at && (*at)->cap < size)
        at = &(*at)->next;
    chunk *c = *at;
    if (c)
        *at = c->next;
    return c;
}

/* A chunk that is a huge page, or as many small ones where there are none; NULL when memory is short. */
static chunk *map_huge_chunk(void)
{
    char *p = mmap(NULL, 2 * HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)p % HUGE_PAGE_BYTES;
    if (before)
        munmap(p, before);
    munmap(p + before + HUGE_PAGE_BYTES, HUGE_PAGE_BYTES - before);
    madvise(p + before, HUGE_PAGE_BYTES, MADV_HUGEPAGE);
    chunk *c = (chunk *)(void *)(p + before);
    c->huge = true;
    return c;
}

static chunk *create_chunk(tcc_arena *a, size_t size)
{
    size_t next = a->head ? a->head->cap * 2 : FIRST_CHUNK_BYTES;
    bool small = next <= MAX_SMALL_CHUNK_BYTES, huge = !small && size <= HUGE_CHUNK_BYTES;
    size_t cap = huge ? HUGE_CHUNK_BYTES : small && size < next ? next : size;
    chunk *c = huge ? map_huge_chunk() : calloc(1, sizeof *c + cap);
    if (!c)
        tcc_arena_out_of_memory(a);
    c->cap = cap;
    return c;
}

tcc_arena *tcc_arena_create_in(tcc_arena *of)
{
    tcc_arena *a = tcc_arena_create(NULL);
    if (!a)
        tcc_arena_out_of_memory(of);
    a->of = of;
    a->next = of->first;
    of->first = a;
    return a;
}

void *tcc_arena_alloc(tcc_arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        tcc_arena_out_of_memory(a);
    size = (size + align - 1) & ~(align - 1);
    if (!a->head || a->head->cap - a->head->used < size) {
        chunk *c = take_spare(a, size);
        c = c ? c : create_chunk(a, size);
        c->next = a->head;
        a->head = c;
    }
    chunk *c = a->head;
    void *p = c->data + c->used;
    if (c->used < c->dirty)
        memset(p, 0, c->dirty - c->used < size ? c->dirty - c->used : size);
    c->used += size;
    a->used += size;
    return p;
}

char *tcc_arena_strndup(tcc_arena *a, const char *s, size_t n)
{
    char *p = tcc_arena_alloc(a, n + 1);
    memcpy(p, s, n);
    return p;
}

char *tcc_arena_strdup(tcc_arena *a, const char *s)
{
    return tcc_arena_strndup(a, s, strlen(s));
}

char *tcc_arena_printf(tcc_arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *p = tcc_arena_alloc(a, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(p, (size_t)n + 1, format, args);
    va_end(args);
    return p;
}

size_t tcc_arena_used(const tcc_arena *a)
{
    return a->used;
}

void *tcc_arena_grow(tcc_arena *a, void *data, size_t elem, size_t len, size_t *cap)
{
    if (len < *cap)
        return data;
    size_t new_cap = *cap ? *cap * 2 : 8;
    void *p = tcc_arena_alloc(a, new_cap * elem);
    if (len)
        memcpy(p, data, len * elem);
    *cap = new_cap;
    return p;
}
