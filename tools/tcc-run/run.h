/* run: one command line: compile or load, launch, check, measure.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_RUN_H
#define TCC_TOOLS_RUN_H

#include "tools/tcc-run/result.h"
#include "tools/tcc-run/session.h"

/* Runs a kernel as the options say; *out receives the result. */
void run_case(session *s, const options *o, run_result *out);

/* Only initialises the machine; *out receives its description. */
void run_nothing(session *s, const options *o, run_result *out);

#endif
