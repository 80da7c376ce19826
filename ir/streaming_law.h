/* streaming_law: how ir/streaming.h brings what reductions and terms are into normal forms.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_STREAMING_LAW_H
#define TCC_IR_STREAMING_LAW_H

#include "ir/ir.h"
#include "ir/normal_form.h"
#include "support/map.h"

/* Of a reduction: what it was before some terms came, and what it is with them. */
enum { TCC_LAW_BEFORE = 1, TCC_LAW_AFTER = 2 };

typedef struct tcc_law {
    tcc_arena *arena;
    tcc_normal_forms all;
    tcc_map moves;    /* values that change when terms come */
    tcc_map forms[3]; /* of values where reductions are as they were BEFORE, and AFTER */
} tcc_law;

/* The only index over which a sum or an extremum is reduced; NULL: there is no such index. */
const char *tcc_law_index(const tcc_op *reduce);
bool tcc_law_has_index(const tcc_type *field, const char *index);
/* Marks what reductions over an index change, of ops from one on to another. */
void tcc_law_mark(tcc_law *l, const char *index, const tcc_op *from, const tcc_op *end);
/* What reductions do not change is an unknown, the same before and after. */
const tcc_normal_form *tcc_law_form(tcc_law *l, const tcc_value *v, int when);
/* The form of terms, in whose factors rounding is multiplication by a number close to 1, the same before and after: by
 * its part of a term the sum is wrong at most. Elsewhere, as in an exponent, it is another function. */
const tcc_normal_form *tcc_law_form_of_terms(tcc_law *l, const tcc_value *v, int when);

#endif
