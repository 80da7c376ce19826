/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/random.h"

/* SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators"). */
uint64_t tcc_random(uint64_t *state, uint64_t n)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % n;
}
