/* nearest_target: GPUs and architectures that are not targets, and which target is nearest to each.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_NEAREST_TARGET_H
#define TCC_IR_NEAREST_TARGET_H

#include "support/diag.h"

typedef struct tcc_nearest_target {
    const char *target; /* NULL: none, the name is not a GPU's or an architecture's */
    const char *how;    /* in what way it is near, for example "whose code it runs"; NULL: it is the same, written otherwise */
} tcc_nearest_target;

/* Letters may be small or capital, and words joined by anything: "RTX 4090", "sm90a". */
tcc_nearest_target tcc_nearest_target_find(const char *name);
/* The same; reports a name that is found. */
tcc_nearest_target tcc_nearest_target_tell(const char *name, tcc_diag *diag, tcc_loc loc);

#endif
