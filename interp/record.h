/* record: fills in a timeline while a CTA runs in the timed order.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_RECORD_H
#define TCC_INTERP_RECORD_H

#include "interp/machine.h"
#include "interp/timeline.h"

typedef struct tcc_recorder tcc_recorder;

/* One for a CTA that is about to run. */
tcc_recorder *tcc_recorder_create(const tcc_cta *cta);

/* A copy to or from the CTA's shared memory; its use is found out here. */
void tcc_record_copy(tcc_recorder *r, const tcc_bulk_copy *copy, tcc_timed_copy times);
/* An MMA that its warps have issued, this one last; its use is found out here. */
void tcc_record_mma(tcc_recorder *r, const tcc_thread *t, const tcc_inst *in,
                        tcc_timed_mma mma);
void tcc_record_wait(tcc_recorder *r, const tcc_thread *t, const tcc_inst *in, tcc_wait_kind kind,
                     uint64_t begin, uint64_t end);
/* Any op that a warp has run: it goes on at `until`, having waited from `since` on. */
void tcc_record_op(tcc_recorder *r, const tcc_thread *t, const tcc_inst *in, uint64_t since,
                   uint64_t until);
/* The phases of mbarriers that have completed by now. */
void tcc_record_phases(tcc_recorder *r, uint64_t now);
/* The CTA has ended: shows the timeline to whom the options name. */
void tcc_record_end(tcc_recorder *r);

#endif
