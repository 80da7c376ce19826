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
    /* Type of llvm.amdgcn.make.buffer.rsrc's number of bytes. */
    TCC_LLVM_BUFFER_SIZE_BITS = TCC_LLVM_MAJOR >= 22 ? 64 : 32,
};

#endif
