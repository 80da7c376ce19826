/* The two functions by which the static libstdc++ and libgcc of Debian 12 need more than glibc
 * 2.34. Linked into libtcc.so only together with them, and never exported.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void);
int _dl_find_object(void *address, void *result);

/* Seeds std::random_device, which LLVM uses for temporary file names. */
uint32_t arc4random(void)
{
    uint32_t value = 0;
    while (getrandom(&value, sizeof value, 0) != sizeof value)
        continue;
    return value;
}

/* Where a code address's unwind tables are: nowhere. LLVM is built without exceptions, so that
 * nothing in this library catches one; a std::bad_alloc ends in std::terminate either way. */
int _dl_find_object(void *address, void *result)
{
    (void)address, (void)result;
    return -1;
}
