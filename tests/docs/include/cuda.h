/* The part of NVIDIA's cuda.h that the programs of docs/ use, for machines without the toolkit.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/cuda_driver.h"

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

#define DECLARE(function, symbol, params) CUresult function params __asm__(symbol);
TCC_CUDA_ENTRY_POINTS(DECLARE)
