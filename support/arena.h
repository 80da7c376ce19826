/* arena: bump allocation, freed as a whole. Memory is zeroed. Running out of memory jumps to the
 * arena's out-of-memory handler, so that callers never test for NULL.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_ARENA_H
#define TCC_SUPPORT_ARENA_H

#include <setjmp.h>
#include <stddef.h>

typedef struct tcc_arena tcc_arena;

/* `on_oom` is jumped to (with 1) when memory is short; NULL aborts. Returns NULL when memory is
 * too short for the arena itself. */
tcc_arena *tcc_arena_create(jmp_buf *on_oom);
void tcc_arena_destroy(tcc_arena *a);
/* One that is destroyed with `of`, to whose handler it jumps when memory is short. */
tcc_arena *tcc_arena_create_in(tcc_arena *of) __attribute__((returns_nonnull));

/* Changes where out-of-memory goes; every public entry point sets its own. */
void tcc_arena_set_oom(tcc_arena *a, jmp_buf *on_oom);
/* What happens where memory is short, also other memory than the arena's. */
void tcc_arena_out_of_memory(tcc_arena *a) __attribute__((noreturn));

/* `size` zeroed bytes, aligned for any type. Never NULL. */
void *tcc_arena_alloc(tcc_arena *a, size_t size) __attribute__((returns_nonnull));
/* A copy of n bytes of s with a terminator added. */
char *tcc_arena_strndup(tcc_arena *a, const char *s, size_t n) __attribute__((returns_nonnull));
char *tcc_arena_strdup(tcc_arena *a, const char *s) __attribute__((returns_nonnull));
char *tcc_arena_printf(tcc_arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
/* Forgets all that was allocated, and keeps the memory for what comes next. */
void tcc_arena_clear(tcc_arena *a);
/* The same, and gives the memory back. */
void tcc_arena_release(tcc_arena *a);
/* Bytes handed out so far. */
size_t tcc_arena_used(const tcc_arena *a);

#define TCC_NEW(arena, type) ((type *)tcc_arena_alloc(arena, sizeof(type)))
#define TCC_NEW_ARRAY(arena, type, n) ((type *)tcc_arena_alloc(arena, sizeof(type) * (n)))

/* A growing array in an arena: TCC_VEC(int) v = {0}; TCC_PUSH(arena, &v, 3); v.data[0]. */
#define TCC_VEC(type)                                                                              \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t len, cap;                                                                           \
    }
#define TCC_PUSH(arena, v, ...)                                                                    \
    ((v)->data = tcc_arena_grow((arena), (v)->data, sizeof *(v)->data, (v)->len, &(v)->cap),       \
     (v)->data[(v)->len++] = (__VA_ARGS__))
void *tcc_arena_grow(tcc_arena *a, void *data, size_t elem, size_t len, size_t *cap);

#endif
