/* emit: the kinds of output, and which target has which.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_EMIT_H
#define TCC_DRIVER_EMIT_H

#include <tcc/tcc.h>

#include "ir/target.h"
#include "support/diag.h"

/* TCC_OK, or TCC_ERR_ARGUMENT for no kind and TCC_ERR_TARGET for one that the target lacks,
 * reported. */
tcc_status tcc_emit_check(tcc_emit emit, const tcc_target *target, tcc_diag *diag);

/* Whether a kind is IR of tcc's own. */
bool tcc_emit_is_ir(tcc_emit emit);

#endif
