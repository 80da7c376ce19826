/* c_names: names that C gives a meaning of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_C_NAMES_H
#define TCC_DRIVER_C_NAMES_H

#include <stdbool.h>

/* Whether neither a function nor a parameter may have this name. */
bool tcc_c_reserves(const char *name);

/* Whether the C library has a function of this name: one of a program would replace it for all that is linked with
 * it. */
bool tcc_c_has_function(const char *name);

#endif
