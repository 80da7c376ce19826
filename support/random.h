/* random: numbers that a seed decides, the same on every machine.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_RANDOM_H
#define TCC_SUPPORT_RANDOM_H

#include <stdint.h>

/* A number below n, which is at least 1. The state is a seed at first; any will do. */
uint64_t tcc_random(uint64_t *state, uint64_t n);

#endif
