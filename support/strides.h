/* strides: where the elements of a tensor are whose strides are given, in elements.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_STRIDES_H
#define TCC_SUPPORT_STRIDES_H

#include <stdbool.h>
#include <stdint.h>

/* The number of elements from the first to the last; 0 where there is none. False: 64 bits do not hold it. */
bool tcc_strides_span(unsigned rank, const int64_t *extents, const int64_t *strides, int64_t *span);

/* A dimension whose stride is too small for all elements to be apart, as it would have to be at least *least; rank:
 * there is none. Each stride must reach beyond what all smaller ones do, which leaves out some that would do. */
unsigned tcc_strides_overlap(unsigned rank, const int64_t *extents, const int64_t *strides, int64_t *least);

#endif
