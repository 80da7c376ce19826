/* clock: the timed order of a CTA. Warps issue their ops when the model of an SM has time for
 * them, asynchronous operations end when it says so, and what is next in time goes on.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_CLOCK_H
#define TCC_INTERP_CLOCK_H

#include "interp/exec.h"

/* Runs the CTA that x is about to run to its end. What happens is recorded when it is the one
 * that the timeline of the options needs. */
tcc_status tcc_clock_run(tcc_exec *x);

#endif
