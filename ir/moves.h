/* moves: from where a thread gets what it holds of a tile in another layout: from registers of its own, from
 * lanes of its warp, or from other warps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_MOVES_H
#define TCC_IR_MOVES_H

#include "ir/layout.h"
#include "ir/machine.h"

/* For each register of `to` the one of `from` that is at[0] rows and at[1] columns further,
 * wrapping around; a dimension of extent 1 is the same everywhere. For all threads at once: if
 * their numbers add the same in both tiles, a register of one tile is a register of the other. NULL
 * when a thread does not have what it needs. */
const int64_t *tcc_moves_in_thread(tcc_arena *arena, const tcc_spread *from, const tcc_spread *to,
                                   const int64_t at[2]);

/* Where each lane has what it needs for one register: in which lane, in which register there. */
typedef struct tcc_lane_sources {
    int64_t lane[TCC_MAX_LANES], number[TCC_MAX_LANES];
} tcc_lane_sources;

/* Finds it for register `number` of `to`; false if a warp does not have it, or if the lanes' numbers are not
 * linear in their bits: lane[l] is lane[0] exclusive-ored with what the bits of l contribute. */
bool tcc_moves_in_warp(const tcc_spread *from, const tcc_spread *to, int64_t number, tcc_lane_sources *s);

/* Bits of a lane's number that are swapped with bits of a register's, one pair after the other. */
typedef struct tcc_lane_swaps {
    unsigned n;
    struct {
        unsigned lane_bit, register_bit;
    } of[TCC_FRAGMENT_BITS];
} tcc_lane_swaps;

/* Finds swaps after which every lane has, in its own registers, all elements that it needs of `to`, whose elements have
 * so many bits. Returns the register that then holds each register of `to`; elements that share a word stay together.
 * NULL if there are no such swaps. */
const int64_t *tcc_swaps_in_warp(tcc_arena *arena, const tcc_spread *from, const tcc_spread *to, unsigned bits,
                                 tcc_lane_swaps *swaps);

/* Whether a warp has all elements of one tile that the other needs, according to these; lanes: whether
 * lanes can exchange elements. */
bool tcc_can_convert_in_warp(tcc_arena *arena, const tcc_type *from, const tcc_type *to, bool lanes);
/* Whether one warp has all of each row (dim 1) or column of a tile. */
bool tcc_can_reduce_in_warp(const tcc_type *tile, int dim);

#endif
