/* suite: the end of every test program.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_SUITE_H
#define TCC_TESTS_SUITE_H

#include <check.h>

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

#endif
