/* suite: what the test program of a room runs, tests of which sanitizers get some, and assertions that cost little.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_SUITE_H
#define TCC_TESTS_SUITE_H

#include <check.h>

/* Check writes to a file where each assertion that holds is, for tests that crash: the system's time for that is most
 * of what tests of tables take. */
#define _mark_point(file, line) ((void)0)

#ifdef TCC_SANITIZED /* slow; and they look at other things than what a test expects */
enum { SUITE_EACH = 7 };
#else
enum { SUITE_EACH = 1 };
#endif

/* Adds a loop test of n rounds; with sanitizers one in seven. */
static inline void suite_add_sampled(TCase *cases, const TTest *test, int n)
{
    for (int i = 0; i < n; i += SUITE_EACH)
        tcase_add_loop_test(cases, test, i, i + 1);
}

/* Runs a suite, as CK_VERBOSITY says, and frees it. Returns what the program ends with: 0 when no
 * test failed. */
static inline int suite_exit_status(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* What a file of tests defines; CMake names it after the file: suite_hash in test_hash.c. */
#ifdef SUITE
Suite *SUITE(void);
#endif

/* The suites of a room, by name; the last one has none. CMake lists them. */
typedef struct suite_entry {
    const char *name;
    Suite *(*make)(void);
} suite_entry;
extern const suite_entry suites[];

#endif
