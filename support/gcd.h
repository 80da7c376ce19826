/* gcd: the greatest common divisor.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_GCD_H
#define TCC_SUPPORT_GCD_H

#include <stdint.h>

/* Of two nonnegative numbers; for 0 and a number it is that number. */
static inline int64_t tcc_gcd(int64_t a, int64_t b)
{
    return b ? tcc_gcd(b, a % b) : a;
}

#endif
