/* timeline: --timeline, of a launch on a GPU and beside it of the model; and where a timeline goes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_TIMELINE_H
#define TCC_TOOLS_TIMELINE_H

#include "tools/tcc-run/session.h"

/* Writes a timeline to the file of the options, passes its summary on to the task, and frees both. */
tcc_status timeline_keep(session *s, const launch_task *task, char *timeline, char *summary);

/* Launches a kernel that was compiled for a timeline, and keeps what was measured beside what the model expects; where
 * the model cannot run the kernel, without that. */
tcc_status timeline_measure(session *s, const launch_task *task);

#endif
