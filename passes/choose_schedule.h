/* choose_schedule: what the files of choose-schedule share: a schedule that is being completed,
 * with the places to complain at.
 *
 * choose_schedule.c            the pass, the user's tile, which index the rows run along
 * choose_schedule_warpgroups.c sm_90a
 * choose_schedule_cluster.c    CTAs that share loads
 * choose_schedule_warps.c      warps that multiply registers
 * choose_schedule_rdna.c       RDNA
 * choose_schedule_streams.c    kernels that stream
 * choose_schedule_pointwise.c  kernels without a product
 * tile_menu.c                  further tiles for kernels whose extents are not known
 * skeleton.c                   the search for the candidate that costs least
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_CHOOSE_SCHEDULE_H
#define TCC_PASSES_CHOOSE_SCHEDULE_H

#include "passes/space.h"
#include "passes/pass.h"
#include "passes/pressure.h"
#include "passes/room.h"
#include "passes/schedule.h"
#include "passes/work.h"

/* Registers of a thread. */
typedef struct tcc_need {
    int64_t lacks, limit; /* how many it lacks, negative if some are left; how many it may have */
} tcc_need;

typedef struct tcc_choice {
    tcc_pass_ctx *ctx;
    tcc_func *f;
    const tcc_target *target;
    tcc_space c;
    tcc_schedule s;
    const tcc_epilogue *epilogue; /* where pressure is counted, else NULL */
    struct tcc_skeletons *skeletons; /* what they share, once there has been a search (skeleton.c) */
    int64_t elem_bytes;
    int64_t single_loads[2]; /* registers for what lanes load one by one for each element of all As, and of all Bs */
    tcc_need need; /* of what a search found, else of what lacks least (skeleton.c) */
    TCC_VEC(tcc_schedule) set_aside; /* found best by searches before, but lacking registers */
    bool given_m, given_n, given_k;
} tcc_choice;

enum { TCC_MOST_STAGES = 8 }; /* unless the user asks for more */
/* Completes a schedule by what tiles with its layouts take of shared memory; refuses one that does not fit. */
typedef tcc_status tcc_fill(tcc_choice *ch, tcc_func *tiled, const tcc_room *r);

const tcc_named_attr *tcc_choice_given(const tcc_choice *ch, const char *key);
/* Where to report a problem with a key: at the user's entry, else at the kernel. */
tcc_loc tcc_choice_place(const tcc_choice *ch, const char *key);

#define TCC_CHOICE_REFUSE(ch, key, ...)                                                            \
    (tcc_error((ch)->ctx->diag, TCC_ERR_TARGET, tcc_choice_place(ch, key), __VA_ARGS__),           \
     TCC_ERR_TARGET)

/* What the sizes of a tile must be multiples of, with the reasons for n and k, and the largest. */
typedef struct tcc_tile_steps {
    int64_t m, n, k, max;
    const char *why_n, *why_k;
} tcc_tile_steps;
extern const char tcc_columns_of_instruction[], tcc_depth_of_instruction[];

/* Finds the sums of ch->f, whose rows run along the index given by its attributes. */
bool tcc_choice_find_sums(tcc_choice *ch);
/* Whether the tile is given a size along one of the result's indices. */
bool tcc_choice_is_tiled(const tcc_choice *ch);
/* Whether all rows of A's tensors (0) or B's (1) begin at lines of L2. */
tcc_lines tcc_choice_lines(const tcc_choice *ch, int axis);
/* Whether rows of any operand may begin elsewhere. */
bool tcc_choice_may_leave_lines(const tcc_choice *ch);
/* Whether an A (0) or a B (1) is computed from its tensor's elements. */
bool tcc_choice_computes(const tcc_choice *ch, int axis);
/* Whether the compiler decides which index the rows of a tile run along. */
bool tcc_choice_may_swap(const tcc_choice *ch);
/* Whether rows of A's tensors (0) or B's (1) run along another index than the summed one. */
bool tcc_choice_runs_across(const tcc_choice *ch, int axis);
/* Takes the user's sizes into ch->s, and which they are into given_m, given_n, given_k. */
tcc_status tcc_choice_read_tile(tcc_choice *ch, const tcc_tile_steps *steps);
/* The smallest tile that covers a known extent, else `most`. */
int64_t tcc_choice_cover(tcc_dim extent, int64_t step, int64_t most);

/* Tiles that a family offers for extents which are not known, the most useful first. */
typedef struct tcc_tile_size {
    int64_t m, n;
    bool persistent, in_turn; /* in_turn: `consumers pingpong` */
    int64_t split; /* parts of a sum; 0: what is said of them, or one */
    int64_t cluster; /* CTAs along m; 0: what is said of them, or one */
    bool swapped;  /* m is of the result's last index */
    bool padded;   /* for operands, too, that a step has copied */
} tcc_tile_size;
typedef struct tcc_tile_menu {
    const tcc_tile_size *sizes;
    size_t n;
} tcc_tile_menu;
extern const tcc_tile_menu tcc_tile_menu_of_warpgroups, tcc_tile_menu_of_warps, tcc_tile_menu_of_waves;
/* Adds a variant for each that agrees with the user's settings and ch->f's operands, at most as many as the module's
 * attribute `tiles` allows besides the first, and only those named by the attribute `wanted`, if present. ch:
 * completed, not yet written back to its function. */
void tcc_tile_menu_offer(const tcc_choice *ch);
/* As a comment, the tiles of variants that assume the same as the first one of their kernel; nothing where
 * there is none. */
void tcc_tile_menu_print(tcc_str *out, const tcc_func *first);

/* Completes a variant of the menu, which choose-schedule then leaves as it is; false if it will not take it, or it may
 * spill. ch: with the settings of the others. */
bool tcc_choice_offer(tcc_choice *ch);
/* Sets what a function whose body has changed needs of registers (pressure.h). */
void tcc_choose_pressure(tcc_pass_ctx *ctx, tcc_func *f);
/* Completes the schedule of a kernel that streams. */
tcc_status tcc_choose_stream(tcc_choice *ch);
/* Runs choose-schedule on a function, which may be a step of a variant. A complete schedule is unchanged. */
tcc_status tcc_choose_schedule(tcc_pass_ctx *ctx, tcc_func *f, bool *changed);

/* The columns of a chosen tile are a multiple of this: an instruction has 8, and CTAs of a cluster each load a part. */
int64_t tcc_choice_columns(const tcc_choice *ch);
/* Sets the raster order of ch->s as the user needs it, by default in groups of this many rows. */
tcc_status tcc_choose_raster(tcc_choice *ch, int64_t group);
/* Takes the user's cluster into ch->s, whose tile is chosen. */
tcc_status tcc_choose_cluster(tcc_choice *ch);

tcc_fill tcc_sm90_fill, tcc_warps_fill, tcc_rdna_fill;
tcc_status tcc_sm90_choose(tcc_choice *ch);
void tcc_sm90_choose_generic(tcc_choice *ch);
bool tcc_sm90_has_room(const tcc_choice *ch);
tcc_status tcc_warps_choose(tcc_choice *ch);
void tcc_warps_choose_generic(tcc_choice *ch);
bool tcc_warps_has_room(const tcc_choice *ch);
bool tcc_warps_may_lack(const tcc_choice *ch);
tcc_status tcc_rdna_choose(tcc_choice *ch);
void tcc_rdna_choose_generic(tcc_choice *ch);
bool tcc_rdna_has_room(const tcc_choice *ch);

#endif
