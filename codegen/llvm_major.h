/* llvm_major: what differs between the major versions of LLVM that cmake/LLVM.cmake allows. TCC_LLVM_MAJOR is the one
 * that this is built with.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_LLVM_MAJOR_H
#define TCC_CODEGEN_LLVM_MAJOR_H

enum {
    /* Until 21 the parameters that are grid constants are listed in the module's !nvvm.annotations; since 22 they have
     * an attribute, and annotations made in memory are ignored. */
    TCC_LLVM_HAS_GRID_CONSTANT_ATTRIBUTE = TCC_LLVM_MAJOR >= 22,
    /* Until 20 the bounds of a launch are such annotations, too. */
    TCC_LLVM_HAS_LAUNCH_BOUND_ATTRIBUTES = TCC_LLVM_MAJOR >= 21,
    /* Until 21 llvm.nvvm.ex2.approx.ftz has an intrinsic for each type. */
    TCC_LLVM_EX2_IS_OVERLOADED = TCC_LLVM_MAJOR >= 22,
    /* Types that llvm.amdgcn.make.buffer.rsrc is overloaded by: the address's, and since 21 the result's before it. */
    TCC_LLVM_BUFFER_RSRC_TYPES = TCC_LLVM_MAJOR >= 21 ? 2 : 1,
    /* Type of llvm.amdgcn.make.buffer.rsrc's number of bytes. */
    TCC_LLVM_BUFFER_SIZE_BITS = TCC_LLVM_MAJOR >= 22 ? 64 : 32,
};

#endif
