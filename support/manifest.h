/* manifest: the version and the limits of the format that a compiled module describes itself in
 * (docs/abi.md), which one room writes and another one reads.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_MANIFEST_H
#define TCC_SUPPORT_MANIFEST_H

#define TCC_MANIFEST_VERSION 2

/* The most of each that a manifest has. Those that a program determines (its arguments and ranks) are the frontend's,
 * too; the others leave room for what the compiler makes of the largest program, and bound what a launch keeps on the
 * stack. */
enum {
    TCC_MANIFEST_KERNELS = 4096,
    TCC_MANIFEST_ARGS = 64, /* of a kernel */
    TCC_MANIFEST_RANK = 16, /* of an argument */
    TCC_MANIFEST_DIMS = 2 * TCC_MANIFEST_ARGS * TCC_MANIFEST_RANK, /* extents and strides */
    TCC_MANIFEST_INDICES = 4096, /* ways in which an argument is indexed */
    TCC_MANIFEST_VARIANTS = 256,
    TCC_MANIFEST_REQUIREMENTS = 4096,                 /* of a variant */
    TCC_MANIFEST_STEPS = 2 * TCC_MANIFEST_ARGS + 4,   /* of a variant, which may copy and zero for each argument */
    TCC_MANIFEST_TENSOR_MAPS = 2 * TCC_MANIFEST_ARGS, /* of a variant */
    TCC_MANIFEST_PARAMS = 1024,                       /* of a step: words of the 4 KB that all GPUs have for them */
};

enum { TCC_WORKSPACE_ALIGN = 256 }; /* bytes that addresses of a workspace and of its tensors are multiples of */

#endif
