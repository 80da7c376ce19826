/* partition: what its files share.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_PARTITION_H
#define TCC_PASSES_PARTITION_H

#include "ir/cut.h"
#include "ir/schedule_key.h"
#include "passes/pass.h"

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

/* A copy of a function, of which the name says what it is; one that is a step before f, after the others. */
tcc_func *tcc_partition_copy(tcc_func *f, const char *what);
/* Such a copy that serves launches of f beside it. */
tcc_func *tcc_partition_add_form(tcc_func *f, const char *what);
tcc_func *tcc_partition_add_step(tcc_func *f, const char *what, tcc_cut why);
/* Lets a step write the first outputs of another index space than the last one's; NULL: there are none. */
tcc_func *tcc_partition_cut_outputs(tcc_pass_ctx *ctx, tcc_func *f);
/* A field's tensor in the workspace, and what it is called. */
const tcc_type *tcc_partition_stored_type(const tcc_func *f, const tcc_type *field);
const char *tcc_partition_name_of(const tcc_value *v);

#endif
