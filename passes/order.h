/* order: which passes must come before which. A pass says what it needs of a function, and what it
 * makes of one, as states; the manager checks both.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_ORDER_H
#define TCC_PASSES_ORDER_H

#include "passes/pass.h"

/* Reported when f is not as a pass needs it. `brought`: states that passes have brought as far as
 * they could; a function that is in none of them is one that they, and this one, leave as it is. */
tcc_status tcc_order_check(const tcc_pass_ctx *ctx, const tcc_pass *pass, const tcc_func *f,
                           unsigned brought);
/* Reported when a pass that has changed a variant of the compiler's does not leave it as it says. */
tcc_status tcc_order_check_left(const tcc_pass_ctx *ctx, const tcc_pass *pass, const tcc_func *f);

#endif
