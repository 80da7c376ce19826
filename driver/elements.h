/* elements: tensors as a GPU has them, element by element.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_ELEMENTS_H
#define TCC_DRIVER_ELEMENTS_H

#include <stdint.h>

#include "ir/type.h"

/* Element i, exactly; of i4 and u4 two share a byte, the first below. */
double tcc_element_get(tcc_scalar elem, const void *data, int64_t i);

#endif
