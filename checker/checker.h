/* protocol: proves that a kernel's warps, barriers, copies and MMAs go together; on AMD its
 * waves, barriers and accesses to LDS.
 *
 * It reads target-level IR, as it will be emitted, and nothing else: neither schedule nor sizes.
 * What it says holds for every iteration count of every loop, every order in which warps run and
 * every moment at which copies and MMAs end: there is no deadlock; shared memory is not read
 * before it is filled, nor overwritten while it is in use; every phase of a barrier gets the
 * arrivals and the bytes that it expects, and every wait is for the phase that it means; fences
 * stand where the proxies change; nothing is in flight at the end.
 *
 * How, and why that is enough: docs/protocol-checker.md.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_CHECKER_H
#define TCC_CHECKER_CHECKER_H

#include "ir/ir.h"

/* Checks one function. Returns
 *   TCC_OK               it is right;
 *   TCC_ERR_INTERNAL     it is wrong: diag has an error at the op, and as notes an execution that
 *                        leads there, step by step;
 *   TCC_ERR_UNSUPPORTED  it does what cannot be followed, such as a barrier at an address that is
 *                        only known at run time; diag says what. The compiler's own output never
 *                        does.
 * `scratch` holds what is needed meanwhile. */
tcc_status tcc_protocol_check(const tcc_func *f, tcc_arena *scratch, tcc_diag *diag);

/* What a proof has covered, alike in every run. A function with an op, a loop or a warp that was not covered is
 * TCC_ERR_UNSUPPORTED: nothing is proven of it. */
typedef struct tcc_covered {
    size_t ops;   /* reached, that synchronize or access shared memory, or that such ops depend on: all of these */
    size_t loops; /* all were left, and gone round again where their iteration count is not known */
    size_t warps; /* of the CTAs that were followed: all came to their end */
    size_t ends;  /* executions that were followed to the end; all others come to a state of one of these */
    size_t steps; /* of warps, in all attempts: what the proof costs */
    size_t proofs; /* of how many this is the sum */
} tcc_covered;

/* The same, and what the proof has covered; of another result only the steps are set. */
tcc_status tcc_protocol_measure(const tcc_func *f, tcc_arena *scratch, tcc_diag *diag, tcc_covered *covered);

/* The same for every function of a module, and for the plans that launch them (launch.h), several at a time; tells of
 * the first that is wrong. `n_threads`: 0 for as many as there are processors; what is said does not depend on it. */
tcc_status tcc_protocol_check_all(const tcc_ir *ir, size_t n_threads, tcc_diag *diag);

/* The same, and what all proofs together have covered. */
tcc_status tcc_protocol_cover_all(const tcc_ir *ir, size_t n_threads, tcc_diag *diag, tcc_covered *covered);

#endif
