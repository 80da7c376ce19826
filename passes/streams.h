/* streams: kernels that reduce over one index in one loop over tiles of it, although some reductions need others, and
 * sums of products among them: sum(j) p[i, j] * V[j, e], where p is computed of sum(d) Q[i, d] * K[j, d] and of its
 * maximum over j.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_STREAMS_H
#define TCC_PASSES_STREAMS_H

#include "ir/target.h"

/* partition: finds the index along which a function is such a kernel, makes its names one, and says it in the attribute
 * `stream`; false if the kernel is not one. */
bool tcc_streams_recognize(tcc_func *f);
/* Whether passes make one loop of such a kernel for a target. */
bool tcc_streams_can_be_tiled(const tcc_target *target);

#endif
