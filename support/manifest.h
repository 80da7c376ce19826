/* manifest: the version of the format that a compiled module describes itself in (docs/abi.md),
 * which one room writes and another one reads.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_MANIFEST_H
#define TCC_SUPPORT_MANIFEST_H

#define TCC_MANIFEST_VERSION 2

enum { TCC_WORKSPACE_ALIGN = 256 }; /* bytes that addresses of a workspace and of its tensors are multiples of */

#endif
