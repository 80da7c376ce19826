/* bundle: what is common to a bundle and the C file that has one.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_BUNDLE_H
#define TCC_DRIVER_BUNDLE_H

#include <tcc/tcc_bundle.h>
#include <tcc/tcc_runtime.h>

#include "support/diag.h"

/* Checks that modules can be loaded and have the same kernels, and describes these: *out belongs to the caller where
 * TCC_OK is returned. */
tcc_status tcc_bundle_check(tcc_context *ctx, const tcc_module *const *modules, size_t n,
                            tcc_program **out);

/* Whether machine code can be put beside what is loaded on a target: that is PTX, and ptxas is found. */
bool tcc_can_assemble(const char *target);

#endif
