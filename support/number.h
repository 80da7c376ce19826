/* number: doubles as text and back, exactly, and the same in every C locale.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_NUMBER_H
#define TCC_SUPPORT_NUMBER_H

#include "support/str.h"

/* Appends a decimal that reads back as v, of as few of 15 to 17 digits as that takes. It has a
 * point or an exponent, so that no integer looks like it; or it is inf, -inf or nan. */
void tcc_str_double(tcc_str *s, double v);

/* Reads a whole text of n bytes as a decimal or hexadecimal (0x1.8p-3) number, inf or nan, with or
 * without a sign. False when it is none, is too large for a double, or is longer than 255 bytes. */
bool tcc_double_parse(const char *text, size_t n, double *out);

#endif
