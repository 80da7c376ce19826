/* fake_hsaco: what fake_hip reads of a code object: the architecture, and the kernels as the
 * metadata lists them. (AMDGPU usage, "Header" and "Code Object Metadata".)
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RUNTIME_FAKE_HSACO_H
#define TCC_TESTS_RUNTIME_FAKE_HSACO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HSACO_MAX_ARGS = 32 };

typedef struct hsaco_arg {
    char name[64];
    uint32_t offset, size;
    bool is_pointer, is_hidden;
} hsaco_arg;

typedef struct hsaco_kernel {
    char name[128];
    uint32_t group_bytes, kernarg_bytes, max_block;
    uint32_t block[3]; /* that it must have; 0: any */
    hsaco_arg args[HSACO_MAX_ARGS];
    size_t n_args;
} hsaco_kernel;

/* The architecture that an image is for, "gfx1100"; NULL where it is not a code object. */
const char *hsaco_arch(const void *image);

/* Reads the kernel of this name. False where there is none, or where its arguments do not lie where
 * the rules put them: each at a multiple of its size, in order, within the bytes that there are. */
bool hsaco_kernel_find(const void *image, const char *name, hsaco_kernel *out);

/* Whether the metadata can be read. */
bool hsaco_is_valid(const void *image);

#endif
