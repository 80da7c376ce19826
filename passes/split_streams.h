/* split_streams: functions that one loop computes (streams.h), in parts that CTAs of their own compute.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_SPLIT_STREAMS_H
#define TCC_PASSES_SPLIT_STREAMS_H

#include "passes/pass.h"

/* Whether rows of a function that one loop computes may be so few that their tiles leave most multiprocessors idle, and
 * no schedule says how it is computed. */
bool tcc_streams_may_have_few_rows(const tcc_func *f);
/* partition: adds a function that computes what f does, of what parts of the terms give, and a step for these; returns
 * it, which is to be cut further. NULL: it would not pay. */
tcc_func *tcc_streams_split(tcc_pass_ctx *ctx, tcc_func *f);

#endif
