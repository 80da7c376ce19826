/* check_manifest: whether the runtime reads what the compiler has written.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_CHECK_MANIFEST_H
#define TCC_DRIVER_CHECK_MANIFEST_H

#include "driver/manifest.h"

/* Reads the manifest of a module whose kernels have these signatures. What the runtime would refuse is reported at the
 * kernel: TCC_ERR_UNSUPPORTED. */
tcc_status tcc_check_manifest(const char *json, const tcc_ir *ir, const tcc_signature *signatures, size_t n,
                              tcc_diag *diag);

#endif
