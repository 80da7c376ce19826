/* intern: one pointer for equal byte strings, so that names compare by address.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_INTERN_H
#define TCC_SUPPORT_INTERN_H

#include "support/arena.h"

typedef struct tcc_intern tcc_intern;

tcc_intern *tcc_intern_create(tcc_arena *arena); /* lives as long as the arena */
/* The one pointer for these n bytes, terminated. */
const char *tcc_intern_get(tcc_intern *t, const char *bytes, size_t n);

#endif
