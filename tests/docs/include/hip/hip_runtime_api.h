/* The part of HIP's hip_runtime_api.h that the programs of docs/ use, for machines without HIP.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/hip_driver.h"

#define DECLARE(function, result, params) result function params;
TCC_HIP_ENTRY_POINTS(DECLARE)
