/* extent: how long a dimension may be.
 *
 * Kernels count tiles and iterations in 32 bits, as (extent + tile - 1) / tile. No tile is longer
 * than 8192: the shared memory of an SM would not hold a stage of it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_EXTENT_H
#define TCC_SUPPORT_EXTENT_H

#include <stdint.h>

#define TCC_MAX_EXTENT (INT32_MAX - INT32_C(8191))

#endif
