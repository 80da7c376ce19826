/* build_id: identifies this build of libtcc.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_BUILD_ID_H
#define TCC_DRIVER_BUILD_ID_H

#include "support/str.h"

/* Appends the version, and of the ELF file that this code is in the build id, in hexadecimal: builds of one version
 * write different code, too. */
void tcc_build_id(tcc_str *out);

#endif
