/* record: fills in the timeline of a CTA from what its warps do: as the timed order runs them (clock.h), or as a GPU
 * did (replay.h).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_RECORD_H
#define TCC_INTERP_RECORD_H

#include "interp/machine.h"
#include "interp/timeline.h"

typedef struct tcc_recorder tcc_recorder;

/* An op that a warp runs. */
typedef struct tcc_recorded {
    unsigned warp;
    const tcc_op *op;
    int64_t barrier; /* that it names, by its address or number; -1: none */
} tcc_recorded;

/* For a CTA that is about to begin. */
tcc_recorder *tcc_recorder_create(tcc_arena *scratch, const char *kernel, int64_t cta, unsigned n_warps);

/* A load that completes on the mbarrier at an address, in its phase `fill`: to which stage. */
tcc_stage_use tcc_record_load(tcc_recorder *r, int64_t barrier, uint32_t fill, bool own, unsigned warp);
/* A copy to or from the CTA's shared memory. */
void tcc_record_copy(tcc_recorder *r, tcc_timed_copy copy);
/* The stage at an address in shared memory: that of the last copy to it. */
tcc_stage_use tcc_record_stage_at(const tcc_recorder *r, int64_t address);
/* The stage for which a warp waited last. */
tcc_stage_use tcc_record_stage_of(const tcc_recorder *r, unsigned warp);
void tcc_record_mma(tcc_recorder *r, tcc_timed_mma mma);
void tcc_record_wait(tcc_recorder *r, const tcc_recorded *what, tcc_wait_kind kind, uint64_t begin, uint64_t end);
/* Any op that a warp has run: it goes on at `until`, having waited from `since` on. */
void tcc_record_op(tcc_recorder *r, const tcc_recorded *what, uint64_t since, uint64_t until);
/* The phases of a CTA's mbarriers that have completed by now. */
void tcc_record_phases(tcc_recorder *r, const tcc_cta *cta, uint64_t now);
/* The CTA has ended. The timeline lives as long as the recorder's memory. */
tcc_timeline *tcc_record_end(tcc_recorder *r);

#endif
