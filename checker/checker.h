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

/* The same, and how many steps of warps that took: what a proof costs, alike in every run. */
tcc_status tcc_protocol_measure(const tcc_func *f, tcc_arena *scratch, tcc_diag *diag,
                                size_t *steps);

/* The same for every function of a module, several at a time; tells of the first that is wrong. `n_threads`: 0 for as
 * many as there are processors; what is said does not depend on it. */
tcc_status tcc_protocol_check_all(const tcc_ir *ir, size_t n_threads, tcc_diag *diag);

#endif
