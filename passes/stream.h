/* stream: sums that one loop keeps in step with the reductions that their terms need (ir/streaming.h).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_STREAM_H
#define TCC_PASSES_STREAM_H

#include "ir/ir.h"

enum { TCC_STREAM_MOST_NAMES = 8 };

/* What an index is called. */
typedef struct tcc_stream_names {
    size_t n;
    const char *of[TCC_STREAM_MOST_NAMES];
} tcc_stream_names;

bool tcc_stream_has_name(const tcc_stream_names *names, const char *x);

/* Whether some sums over an index need other reductions over it, and all that do can be kept in step with these: the
 * pass finds what they are multiplied by. Reductions over other indices are of each term. */
bool tcc_stream_takes_one_sweep(tcc_arena *scratch, const tcc_func *f, const tcc_stream_names *index);

/* Writes what such sums are multiplied by into a function; whether there are any. */
bool tcc_stream_keep_in_step(tcc_arena *scratch, tcc_func *f, const char *index);

#endif
