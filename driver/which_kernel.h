/* which_kernel: what is said where a name is that of no kernel, or none is given and there are several.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_WHICH_KERNEL_H
#define TCC_DRIVER_WHICH_KERNEL_H

#include "support/diag.h"
#include "support/str.h"

/* Adds one of those to choose from. */
void tcc_which_kernel_add(tcc_str *names, const char *name);
/* Reports that a program, a module or a manifest (`whole`) has no kernel of that name, or that there is no name
 * (NULL), and what it has. Frees the names; TCC_ERR_ARGUMENT. */
tcc_status tcc_which_kernel(tcc_diag *diag, const char *whole, const char *kernel, tcc_str *names);

#endif
