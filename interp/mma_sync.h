/* mma_sync: where the lanes of a warp have the elements of fragments that only matrix instructions know.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_MMA_SYNC_H
#define TCC_INTERP_MMA_SYNC_H

#include "ir/fragment.h"

/* Of the fragment with such elements, loaded in columns or in rows (D: neither, false). */
tcc_place tcc_place_in_opaque(tcc_fragment_id id, tcc_scalar elem, bool columns, unsigned element, unsigned lane);

#endif
