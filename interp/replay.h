/* replay: the timeline of a CTA that ran on a GPU, from the stamps of its warps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_REPLAY_H
#define TCC_INTERP_REPLAY_H

#include "interp/timeline.h"

/* Reads what an entry with the attribute `timeline` has left in its workspace, of which the stamps are the end. NULL,
 * reported: the entry makes none, there are fewer bytes, or the CTA has made none. The timeline lives in `scratch`. */
const tcc_timeline *tcc_replay(const tcc_func *f, const void *workspace, size_t bytes, tcc_arena *scratch,
                               tcc_diag *diag);

#endif
