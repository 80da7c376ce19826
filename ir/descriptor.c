/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/descriptor.h"

#include <stddef.h>

enum { UNIT_ROWS = 8 };

const char *tcc_descriptor_decode(int64_t bits, bool mn_major, tcc_descriptor *d)
{
    static const int64_t swizzles[] = {0, 128, 64, 32};
    const uint64_t used = UINT64_C(0xc00e3fff3fff3fff);
    uint64_t u = (uint64_t)bits;
    *d = (tcc_descriptor){.start = (int64_t)(u & 0x3fff) * TCC_CHUNK_BYTES,
                          .leading = (int64_t)(u >> 16 & 0x3fff) * TCC_CHUNK_BYTES,
                          .stride = (int64_t)(u >> 32 & 0x3fff) * TCC_CHUNK_BYTES,
                          .swizzle = swizzles[u >> 62],
                          .mn_major = mn_major};
    return u & ~used ? "has reserved bits" : u >> 49 & 7 ? "has a base offset" : NULL;
}

int64_t tcc_descriptor_chunk(const tcc_descriptor *d, int64_t row, int64_t chunk)
{
    int64_t width = d->swizzle ? d->swizzle : TCC_CHUNK_BYTES;
    int64_t a = d->start + row % UNIT_ROWS * width, unit = row / UNIT_ROWS;
    if (!d->swizzle)
        return a + (d->mn_major ? unit * d->leading + chunk * d->stride
                                : unit * d->stride + chunk * d->leading);
    a += unit * d->stride;
    uint32_t c = (uint32_t)chunk, chunks = (uint32_t)width / TCC_CHUNK_BYTES; /* divided faster than 64 bits */
    if (d->mn_major)
        a += c % chunks * TCC_CHUNK_BYTES + c / chunks * d->leading;
    else
        a += chunk * TCC_CHUNK_BYTES;
    return a ^ (a >> 3 & (d->swizzle - TCC_CHUNK_BYTES));
}
