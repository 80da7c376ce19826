/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/strides.h"

bool tcc_strides_span(unsigned rank, const int64_t *extents, const int64_t *strides, int64_t *span)
{
    bool fits = true, empty = false;
    *span = 1;
    for (unsigned d = 0; d < rank; d++) {
        int64_t further;
        empty |= !extents[d];
        fits = fits && !__builtin_mul_overflow(extents[d] - 1, strides[d], &further) &&
               !__builtin_add_overflow(*span, further, span);
    }
    *span = empty ? 0 : *span;
    return fits || empty;
}

/* Whether dimension d comes after `before`, in the order of strides and then of dimensions. */
static bool comes_after(unsigned rank, const int64_t *strides, unsigned d, unsigned before)
{
    return before == rank || strides[d] > strides[before] || (strides[d] == strides[before] && d > before);
}

unsigned tcc_strides_overlap(unsigned rank, const int64_t *extents, const int64_t *strides, int64_t *least)
{
    unsigned before = rank;
    *least = 1;
    for (unsigned n = 0; n < rank; n++) {
        unsigned next = rank;
        for (unsigned d = 0; d < rank; d++)
            if (comes_after(rank, strides, d, before) && (next == rank || comes_after(rank, strides, next, d)))
                next = d;
        before = next;
        if (extents[next] < 2)
            continue;
        if (strides[next] < *least)
            return next;
        int64_t further;
        if (__builtin_mul_overflow(extents[next] - 1, strides[next], &further) ||
            __builtin_add_overflow(*least, further, least))
            return rank;
    }
    return rank;
}
