/* room: the shared memory that a kernel's tiles take, read off its tile level once operands are laid out: what
 * allocate-shared will give to the buffers that later passes make of them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_ROOM_H
#define TCC_PASSES_ROOM_H

#include "passes/pass.h"
#include "passes/schedule.h"

typedef struct tcc_room {
    int64_t all;      /* bytes that a CTA may have */
    int64_t stage;    /* of what is copied for an iteration */
    int64_t barriers; /* of a stage */
    int64_t own;      /* of all stages of what consumers compute and multiply */
    int64_t others;   /* of what is neither there nor a result: sums that CTAs hand on, drawn numbers, exchanges */
} tcc_room;

/* Decides the layouts of what MMAs multiply (choose_layout.c). */
bool tcc_lay_out_operands(tcc_pass_ctx *ctx, tcc_func *f, const tcc_schedule *s);

tcc_room tcc_room_of(tcc_func *f, const tcc_schedule *s, tcc_arena *scratch);
/* Of so many stages and all but results. */
int64_t tcc_room_taken(const tcc_room *r, int64_t stages);
/* The stages that fit. */
int64_t tcc_room_stages(const tcc_room *r);
/* For results on their way to their tensors, beside s->stages: the stages, which are no longer used, and the rest; in a
 * persistent CTA, which fills the stages for its next tile, only the rest. */
int64_t tcc_room_for_results(const tcc_room *r, const tcc_schedule *s);

/* How a tile is stored if there is room. */
tcc_storing tcc_storing_wanted(const tcc_func *f, const tcc_op *store, const tcc_schedule *s);
/* Shared memory in which all consumers that take tiles in turn stage what an op stores. */
int64_t tcc_staged_bytes(const tcc_op *store, const tcc_schedule *s);
/* The same of all that is staged if there is room. */
int64_t tcc_staged_by(tcc_func *f, const tcc_schedule *s);

#endif
