/* descriptor: shared-memory matrix descriptors of wgmma.
 *
 * PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", "Matrix Descriptor Format"
 * and "Strides". With chunks of 16 bytes and W bytes of swizzle, chunk c of row r (K-major: r along
 * m or n, c along k; MN-major: r along k, c along m or n) lies at
 *   K-major,  no swizzle   r % 8 * 16 + r / 8 * stride + c * leading
 *   K-major,  swizzled     r % 8 * W  + r / 8 * stride + c * 16
 *   MN-major, no swizzle   r % 8 * 16 + r / 8 * leading + c * stride
 *   MN-major, swizzled     r % 8 * W  + r / 8 * stride + c % (W / 16) * 16 + c / (W / 16) * leading
 * from the start address; then bits 4… of the address are exclusive-ored with bits 7….
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_DESCRIPTOR_H
#define TCC_IR_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

enum { TCC_CHUNK_BYTES = 16 };

typedef struct tcc_descriptor {
    int64_t start, leading, stride, swizzle; /* bytes */
    bool mn_major;
} tcc_descriptor;

/* Decodes a descriptor; returns what is wrong with it, or NULL. */
const char *tcc_descriptor_decode(int64_t bits, bool mn_major, tcc_descriptor *d);
int64_t tcc_descriptor_chunk(const tcc_descriptor *d, int64_t row, int64_t chunk);

#endif
