/* machine: what passes, interpreter and checker know of the GPUs alike: the sizes of warps, and
 * where the latter two let shared memory be.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_MACHINE_H
#define TCC_IR_MACHINE_H

#include <stdint.h>

enum {
    TCC_WARP_LANES = 32, /* of NVIDIA's */
    TCC_MAX_LANES = 64,
    TCC_WARPGROUP_WARPS = 4,
    TCC_WGMMA_ROWS = 64, /* that a warpgroup computes at a time */
    TCC_MAX_WARPS = 32,
    TCC_MAX_MBARRIERS = 160, /* of 80 stages, more than fit */
    TCC_MBARRIER_BYTES = 8,
    TCC_NAMED_BARRIERS = 16,
    TCC_MAX_CLUSTER = 8,
    TCC_SMEM_BASE = 1024,         /* address of the dynamic shared memory */
    TCC_PHASE_BYTES = 16,         /* what nvvm.phase is taken modulo */
    TCC_LINE_BYTES = 128,         /* of L2: at its multiples begin rows that TMA copies at full speed */
    TCC_CLUSTER_WINDOW = 1 << 24, /* rank r's is r + 1 such windows further for the cluster */
};

/* MMA groups that have ended when all but `pending` of the closed ones have. In the last ones there may be no MMA:
 * behind the last that has any, all have ended with it. */
static inline uint32_t tcc_mma_groups_ended(uint32_t closed, uint32_t last_with_any, uint32_t pending)
{
    uint32_t ended = closed > pending ? closed - pending : 0;
    return ended < last_with_any ? ended : closed;
}

/* A bit for each lane of a warp, the lowest for lane 0. */
typedef uint64_t tcc_lane_mask;

#endif
