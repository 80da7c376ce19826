/* native: which target a GPU is compiled for.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_NATIVE_H
#define TCC_DRIVER_NATIVE_H

#include "runtime/driver.h"

/* The best target whose code a GPU of this architecture runs: "sm_90a" for "sm_90"; NULL where there is none. */
const char *tcc_native_target(const tcc_driver *driver, const char *arch);

#endif
