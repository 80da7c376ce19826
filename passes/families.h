/* families: what the passes do for one family of targets and not for another. A row each, in
 * families.c; ir/families.def says which family has which.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_FAMILIES_H
#define TCC_PASSES_FAMILIES_H

#include "ir/fragment.h"
#include "passes/choose_schedule.h"
#include "passes/schedule.h"

/* Why an operand with index x of its own can never be copied so; NULL when it can. */
typedef const char *tcc_why_not(const tcc_sum_operand *o, const char *x);

/* A way to copy the operands of a product. */
typedef struct tcc_way {
    const char *copy, *means; /* as the attribute `copy` says it; in words */
    /* Whether a variant assumes of a tensor what the way needs; assumes it. */
    bool (*is_assumed)(const tcc_func *f, const tcc_value *tensor);
    void (*assume)(tcc_func *f, const tcc_value *tensor);
    tcc_why_not *why_not;
    int64_t least_k_bits; /* that the summed dimension has; 0: it may be empty */
    bool pads;            /* other rows are worth a copy to aligned ones */
    bool of_one_width;    /* a part of 16 bytes along k must be as many elements of every operand */
} tcc_way;

/* How the variants of a kernel copy: the first one, for which everything else is aligned, too; the
 * direct one, which may do it in the same way; and the generic one, where that need not copy through registers. */
typedef struct tcc_copying {
    const tcc_way *first, *direct, *generic; /* generic: NULL where it always does */
} tcc_copying;
/* The attribute `copy` for operands with these tensors, multiplied along a dimension k, by what the function assumes of
 * them; NULL when some can only be copied element by element: then all are. */
const char *tcc_copying_of(const tcc_copying *how, const tcc_func *f, const tcc_value *const *tensors, size_t n,
                           tcc_dim k);
/* The same for the operands of a contraction. */
const char *tcc_copying_of_operands(const tcc_copying *how, const tcc_func *f,
                                    const tcc_space *c);
extern const tcc_copying tcc_copying_by_tma, tcc_copying_by_threads, tcc_copying_by_registers,
    tcc_copying_by_buffer;

/* Arithmetic of a schedule. */
typedef struct tcc_schedule_rules {
    bool (*is_valid)(const tcc_schedule *s);
    int64_t (*threads)(const tcc_schedule *s);
} tcc_schedule_rules;
extern const tcc_schedule_rules tcc_schedule_of_warpgroups, tcc_schedule_of_waves, tcc_schedule_of_warps;

/* Decides the layout of an operand in shared memory. k_dim: its summed dimension; instr: how many
 * elements of the other one an instruction takes. */
typedef void tcc_lay_out(tcc_ir *ir, const tcc_schedule *s, tcc_op *load, int k_dim, int64_t instr,
                         const char *copy);
tcc_lay_out tcc_lay_out_swizzled, tcc_lay_out_for_warps, tcc_lay_out_in_panels;

/* The tile type with the layout in which a role's warps hold it, as matrix instructions want it; NULL when its
 * extents do not fit. */
typedef const tcc_type *tcc_hold(tcc_ir *ir, const tcc_type *tile, const tcc_op *role, tcc_hold_as as);
tcc_hold tcc_hold_by_warpgroups, tcc_hold_by_warps, tcc_hold_by_waves;
/* Whether a role's warps hold what an MMA multiplies, and its sum, as it needs them. */
bool tcc_mma_is_held(tcc_ir *ir, const tcc_op *mma, const tcc_op *role, tcc_hold *hold);
/* Arranges warps over a tile in blocks of a fragment, in the rows and columns given by the role's attribute
 * `waves`, repeatedly. Warps that are side by side along an operand's summed dimension hold the same part of it,
 * and so do those over a result that is too small for all of them. halves: sums take one half of a register, and
 * a second block the other half if the number of blocks is even. */
const tcc_type *tcc_hold_in_blocks(tcc_ir *ir, const tcc_type *tile, const tcc_op *role, tcc_hold_as as,
                                   tcc_fragment_id id, bool halves);
/* In whole rows, which warps have in turn, each lane a word of its 2 or 4 `neighbours`. */
const tcc_type *tcc_hold_in_lines(tcc_ir *ir, const tcc_type *tile, const tcc_op *role, int64_t neighbours);

typedef struct tcc_family_passes {
    const char *pipeline;                      /* to the target level */
    const tcc_copying *copying;                /* choose-variants */
    const tcc_schedule_rules *schedule;
    tcc_status (*choose)(tcc_choice *ch);      /* choose-schedule: completes what the user gave */
    void (*choose_generic)(tcc_choice *ch);    /* for the generic variant */
    tcc_fill *fill;                            /* for both */
    const tcc_tile_menu *menu;                 /* for extents that are not known */
    bool (*has_room)(const tcc_choice *ch);    /* whether a completed schedule is sure not to spill */
    bool counts_pressure;                      /* what the epilogue holds is estimated: pressure.h */
    bool (*may_lack)(const tcc_choice *ch);    /* a completed schedule registers: then they are counted (skeleton.h);
                                                * NULL: they never are */
    tcc_lay_out *lay_out;                      /* choose-layout */
    tcc_hold *hold;                            /* assign-layouts */
    bool lanes_give;                           /* each other any 32 bits: exchange-tiles */
} tcc_family_passes;

/* NULL when the family has none. */
const tcc_family_passes *tcc_family_passes_of(const tcc_target *target);
/* The same; reports an error at loc if there are none. */
const tcc_family_passes *tcc_family_passes_wanted(const tcc_target *target, tcc_diag *diag,
                                                  tcc_loc loc);

#endif
