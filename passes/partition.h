/* partition: what its files share.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_PARTITION_H
#define TCC_PASSES_PARTITION_H

#include "ir/schedule_key.h"

/* Whether the schedule names a value: in `separate` or `fuse`. */
bool tcc_schedule_names(const tcc_func *f, tcc_schedule_key_id key, const tcc_value *v);
/* Whether a reduction has so few terms that each element may as well reduce them itself. */
bool tcc_has_few_terms(const tcc_func *f, const tcc_op *reduce);
/* A field's type with more indices, after its own. Where `last` is not NULL they come first, and it last, which may be
 * one of its own. */
const tcc_type *tcc_field_with_indices(tcc_ir *ir, const tcc_type *field, size_t n, const char *const *more,
                                       const char *last);
/* Lets reductions over several indices come one after the other, and those of very many terms in parts, where that lets
 * more threads take part, and argmax as rows have it; whether there are any. */
bool tcc_nest_reductions(tcc_arena *scratch, tcc_func *f);

#endif
