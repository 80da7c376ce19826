/* native: the target of the GPU that is there.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_NATIVE_H
#define TCC_TOOLS_NATIVE_H

/* For the first GPU that CUDA finds, else HIP; the caller frees it. Exits with EXIT_NO_DRIVER if there is none. */
char *native_target(void);

#endif
