/* oom: makes allocations fail. It reaches malloc, calloc, realloc and mmap called from the rooms and the
 * test, which are linked with --wrap, and nothing inside shared libraries. Check allocates too:
 * assert after disarming.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_OOM_H
#define TCC_TESTS_OOM_H

#include <stdbool.h>

/* The next n allocations succeed and the one after them, alone, fails; -1 disarms. */
void oom_fail_after(long n);
/* Whether that failure is still to come. */
bool oom_is_armed(void);

#endif
