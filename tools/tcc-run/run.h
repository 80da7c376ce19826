/* run: one command line: compile or load, launch, check, measure.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_RUN_H
#define TCC_TOOLS_RUN_H

#include "tools/tcc-run/result.h"
#include "tools/tcc-run/session.h"

/* Does what the options say; *out tells how it went. */
void run_case(session *s, const options *o, run_result *out);

/* Makes the machine ready and no more: *out tells which it is. */
void run_nothing(session *s, const options *o, run_result *out);

#endif
