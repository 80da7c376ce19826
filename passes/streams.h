/* streams: kernels that reduce over one index in one loop over tiles of it, although some reductions need others, and
 * sums of products among them: sum(j) p[i, j] * V[j, e], where p is computed of sum(d) Q[i, d] * K[j, d] and of its
 * maximum over j.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_STREAMS_H
#define TCC_PASSES_STREAMS_H

#include "ir/ir.h"

/* partition: finds the index along which a function is such a kernel, makes its names one, and says it in the attribute
 * `stream`; false if the kernel is not one, or passes make no loop of it for the module's target. */
bool tcc_streams_recognize(tcc_func *f);
/* A key of a function's schedule that such a loop does not have; NULL: there is none. */
const tcc_named_attr *tcc_streams_other_key(const tcc_func *f);
/* Whether it then also gives sums the conditions under which their factors are not 0: steps multiply such factors. */
bool tcc_streams_have_conditions(const tcc_func *f);

#endif
