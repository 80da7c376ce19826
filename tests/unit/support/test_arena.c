/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/arena.h"

#include <check.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;

static void setup(void)
{
    arena = tcc_arena_create(NULL);
    ck_assert_ptr_nonnull(arena);
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

START_TEST(memory_is_zeroed_and_aligned)
{
    for (size_t size = 0; size < 100; size++) {
        unsigned char *p = tcc_arena_alloc(arena, size);
        ck_assert_uint_eq((uintptr_t)p % alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            ck_assert_uint_eq(p[i], 0);
        memset(p, 0xff, size);
    }
}
END_TEST

START_TEST(blocks_do_not_overlap)
{
    enum { N = 2000, BYTES = 48 };
    unsigned char *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = tcc_arena_alloc(arena, BYTES);
        memset(blocks[i], i & 0xff, BYTES);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < BYTES; j++)
            ck_assert_uint_eq(blocks[i][j], i & 0xff);
}
END_TEST

START_TEST(a_block_may_exceed_every_chunk)
{
    enum { BYTES = 5 * 1024 * 1024 };
    unsigned char *p = tcc_arena_alloc(arena, BYTES);
    p[0] = p[BYTES - 1] = 1;
    ck_assert_uint_ge(tcc_arena_used(arena), BYTES);
}
END_TEST

/* With its own blocks, and those of one inside it. */
START_TEST(an_arena_is_destroyed_with_another)
{
    tcc_arena *in = tcc_arena_create_in(arena), *deep = tcc_arena_create_in(in);
    char *p = tcc_arena_alloc(in, 1000), *q = tcc_arena_alloc(deep, 1000);
    memset(p, 1, 1000);
    memset(q, 2, 1000);
    ck_assert_uint_eq(tcc_arena_used(arena), 0);
    tcc_arena_clear(arena); /* forgets what it had, not them */
    ck_assert_int_eq(p[999] + q[999], 3);
}
END_TEST

START_TEST(memory_that_is_short_inside_is_short_outside)
{
    jmp_buf oom;
    tcc_arena_set_oom(arena, &oom);
    tcc_arena *in = tcc_arena_create_in(tcc_arena_create_in(arena));
    if (!setjmp(oom)) {
        tcc_arena_alloc(in, SIZE_MAX / 2 + 1);
        ck_abort_msg("there is that much");
    }
}
END_TEST

/* Blocks of many chunks, and one that exceeds them all. */
START_TEST(clearing_keeps_memory_and_zeroes_it)
{
    enum { N = 300, BYTES = 10000, LARGE = 5 << 20 };
    char *first = NULL;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            size_t size = i == N / 2 ? LARGE : BYTES;
            char *p = tcc_arena_alloc(arena, size);
            first = first ? first : p;
            ck_assert(i || p == first);
            for (size_t b = 0; b < size; b += 7)
                if (p[b])
                    ck_abort_msg("byte %zu of block %d is %d", b, i, p[b]);
            memset(p, 1 + round, size);
        }
        tcc_arena_clear(arena);
        ck_assert_uint_eq(tcc_arena_used(arena), 0);
    }
}
END_TEST

START_TEST(used_counts_rounded_bytes)
{
    ck_assert_uint_eq(tcc_arena_used(arena), 0);
    tcc_arena_alloc(arena, 1);
    ck_assert_uint_eq(tcc_arena_used(arena), alignof(max_align_t));
}
END_TEST

START_TEST(strings_are_copied_and_terminated)
{
    char text[] = "tile";
    char *dup = tcc_arena_strdup(arena, text), *part = tcc_arena_strndup(arena, text, 2);
    memset(text, 'x', 4);
    ck_assert_str_eq(dup, "tile");
    ck_assert_str_eq(part, "ti");
    ck_assert_str_eq(tcc_arena_strndup(arena, "", 0), "");
    ck_assert_str_eq(tcc_arena_printf(arena, "%s=%d", "m", 128), "m=128");
}
END_TEST

START_TEST(a_vector_keeps_its_elements_while_it_grows)
{
    TCC_VEC(int) v = {0};
    for (int i = 0; i < 1000; i++)
        TCC_PUSH(arena, &v, i * i);
    ck_assert_uint_eq(v.len, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(v.data[i], i * i);
}
END_TEST

START_TEST(destroying_nothing_is_allowed)
{
    tcc_arena_destroy(NULL);
}
END_TEST

START_TEST(create_returns_null_when_memory_is_short)
{
    oom_fail_after(0);
    ck_assert_ptr_null(tcc_arena_create(NULL));
}
END_TEST

/* Allocates until the n-th chunk fails; true when the handler was reached. */
static bool jumps_when_chunk_fails(long n)
{
    jmp_buf handler;
    tcc_arena *a = tcc_arena_create(NULL);
    if (setjmp(handler)) {
        tcc_arena_destroy(a);
        return true;
    }
    tcc_arena_set_oom(a, &handler);
    oom_fail_after(n);
    for (int i = 0; i < 10000; i++)
        tcc_arena_alloc(a, 64);
    oom_fail_after(-1);
    tcc_arena_destroy(a);
    return false;
}

START_TEST(a_failing_chunk_jumps_to_the_handler)
{
    for (long n = 0; n < 5; n++)
        ck_assert(jumps_when_chunk_fails(n));
    ck_assert(!jumps_when_chunk_fails(1000));
}
END_TEST

/* True when `request` of an arena ends in its handler. */
static bool jumps(void (*request)(tcc_arena *))
{
    jmp_buf handler;
    tcc_arena *a = tcc_arena_create(&handler);
    bool jumped = setjmp(handler);
    if (!jumped)
        request(a);
    tcc_arena_destroy(a);
    return jumped;
}

static void alloc_size_max(tcc_arena *a)
{
    tcc_arena_alloc(a, SIZE_MAX);
}

static void alloc_half_of_size_max(tcc_arena *a)
{
    tcc_arena_alloc(a, SIZE_MAX / 2 + 1);
}

START_TEST(sizes_that_overflow_jump_to_the_handler)
{
    ck_assert(jumps(alloc_size_max));
    ck_assert(jumps(alloc_half_of_size_max));
}
END_TEST

START_TEST(without_a_handler_it_aborts)
{
    oom_fail_after(0);
    tcc_arena_alloc(arena, 1);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("arena");
    TCase *tc = tcase_create("arena");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, memory_is_zeroed_and_aligned);
    tcase_add_test(tc, blocks_do_not_overlap);
    tcase_add_test(tc, a_block_may_exceed_every_chunk);
    tcase_add_test(tc, an_arena_is_destroyed_with_another);
    tcase_add_test(tc, memory_that_is_short_inside_is_short_outside);
    tcase_add_test(tc, clearing_keeps_memory_and_zeroes_it);
    tcase_add_test(tc, used_counts_rounded_bytes);
    tcase_add_test(tc, strings_are_copied_and_terminated);
    tcase_add_test(tc, a_vector_keeps_its_elements_while_it_grows);
    tcase_add_test(tc, destroying_nothing_is_allowed);
    tcase_add_test(tc, create_returns_null_when_memory_is_short);
    tcase_add_test(tc, a_failing_chunk_jumps_to_the_handler);
    tcase_add_test(tc, sizes_that_overflow_jump_to_the_handler);
    tcase_add_test_raise_signal(tc, without_a_handler_it_aborts, SIGABRT);
    suite_add_tcase(s, tc);
    return s;
}
