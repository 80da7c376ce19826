/* parallel: a loop spread over the machine's cores.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_PARALLEL_H
#define TCC_TOOLS_PARALLEL_H

#include <stddef.h>

/* Calls fn(begin, end, user) for pieces that cover [0, n), concurrently from several threads.
 * Pieces have at least `grain` elements, except the last. Returns when all are done. */
void parallel_for(size_t n, size_t grain, void (*fn)(size_t begin, size_t end, void *user),
                  void *user);

#endif
