/* narrow: which variants launches with extents in some ranges would run.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_NARROW_H
#define TCC_DRIVER_NARROW_H

#include <tcc/tcc.h>

#include "support/arena.h"
#include "support/diag.h"

typedef TCC_VEC(const char *) tcc_names;

/* Finds the variants of all kernels of a source that launches with extents in the options' ranges would run, on the GPU
 * that the target's table describes and with aligned addresses: those of a sample of the extents. Returns TCC_OK, or
 * TCC_ERR_ARGUMENT, reported, for ranges that cannot be. A source that cannot be compiled has none, and is not
 * reported. Names are the arena's. */
tcc_status tcc_narrow(tcc_arena *arena, const char *source, size_t size, const tcc_compile_options *options,
                      tcc_diag *diag, tcc_names *out);

#endif
