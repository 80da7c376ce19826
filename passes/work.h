/* work: what one CTA does, and about how many cycles of its multiprocessor that takes. What the target
 * can do in a cycle is in its descriptor (ir/target.h).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_WORK_H
#define TCC_PASSES_WORK_H

#include "ir/ir.h"
#include "ir/machine.h"
#include "ir/target.h"

typedef struct tcc_work {
    double mma_bytes;    /* elements that matrix instructions multiply and add, times bytes of an operand's */
    double fmas, wide_fmas; /* products of f32 that lanes add, and of f64 */
    double smem_bytes;   /* that MMAs read */
    double copied_bytes; /* to shared memory */
    double off_line_bytes; /* of those, by TMA and of rows that do not begin at lines of L2 */
    double stored_bytes; /* by the copy engine */
    double accesses;     /* of global memory that lanes make, each up to 16 bytes */
    double moved_bytes;  /* by them */
} tcc_work;

/* Adds the cost of this many products of a type, with the target's instruction for them. */
void tcc_work_multiplies(tcc_work *w, const tcc_target *t, tcc_scalar elem, double products);

/* The time outside loops: the first copy arrives, results are stored, one after the other. */
double tcc_work_cycles(const tcc_target *t, const tcc_work *w);
/* An iteration of a loop that is `stages` copies ahead: as slow as the slowest of the multiplications,
 * their reads of shared memory, loads from L2, and copies, of which only a limited number is in flight;
 * in addition copies cost power, and lanes' accesses issue slots. `in_turn`: consumers take tiles in
 * turn. */
double tcc_iteration_cycles(const tcc_target *t, const tcc_work *w, int64_t stages, bool in_turn);
/* How many times as long TMA takes for panels of this many bytes as for whole lines; 0: 16 bytes, which are not
 * swizzled. */
double tcc_panel_times(int64_t width);
/* Rounds in which each multiprocessor computes one of its tiles, as long as full ones take. The last is shorter the
 * fewer tiles it has, as these have more of L2, memory and power to themselves: of TCC_ROUND parts all but
 * TCC_ROUND_FIXED go with their number. */
enum { TCC_ROUND = 64, TCC_ROUND_FIXED = 48 };
double tcc_rounds(double tiles_of_each);
/* Where sums are computed in parts, each round after the first reads operands from memory that the one before has
 * driven out of L2: its loops take so many more of TCC_ROUND parts. */
enum { TCC_ROUND_READS = 48 };
/* The part of the work outside of loops that a persistent CTA does while it multiplies another tile. */
double tcc_hidden_part(bool in_turn);

/* Whether rows begin at lines of L2, as those do that TMA copies at full speed. */
typedef enum tcc_lines {
    TCC_LINES_ALL,
    TCC_LINES_OPEN, /* by an extent that is not known */
    TCC_LINES_NOT_ALL
} tcc_lines;
/* The number of elements from one row of a tensor to the next, of two dimensions or more. */
tcc_dim tcc_pitch_of(const tcc_type *tensor);
/* Whether all rows of a tensor begin at lines. */
tcc_lines tcc_lines_of(const tcc_type *tensor);

/* From the end of one step of a variant to the first of the next one's work, in the same stream, and back. */
extern const int64_t tcc_step_gap_cycles;

/* The time until the first CTA of a cluster has received this many bytes from the others. */
double tcc_handing_cycles(const tcc_target *t, double bytes);

/* For a CTA that only has loads and stores of lanes, among others that hide its latency. */
double tcc_moving_cycles(const tcc_target *t, const tcc_work *w);

#endif
