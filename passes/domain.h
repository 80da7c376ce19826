/* domain: which values of an index a condition lets be, as far as expressions of other indices bound them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_DOMAIN_H
#define TCC_PASSES_DOMAIN_H

#include "ir/index.h"
#include "ir/ir.h"

/* The index is at least each of `least`, and less than each of `end`; neither has it. */
typedef struct tcc_domain {
    TCC_VEC(const tcc_index_expr *) least, end;
    bool is_wider; /* the condition says more */
} tcc_domain;

/* Of what holds where a field of i1 is 1. In the module's arena. */
tcc_domain tcc_domain_of(const tcc_value *condition, const char *index);

#endif
