/* signature: what the caller of a kernel passes, whatever level its function is of.
 *
 * Above the target level that is in the function's own parameters. A target-level function has
 * those of its GPU code; its attribute `args` keeps the caller's, as that of a function does in whose parameters
 * several dimensions have become one. Which kernel a function belongs
 * to is its attribute `kernel`, or its name. A module may also hold what a kernel computes, as the
 * frontend made it: a tensor-level function with the attribute `defines`, the kernel's name. It is
 * not code: passes leave it alone, and nothing is generated for it.
 *
 * A variant of a kernel is one function, or takes several steps: its attributes `before` and `after` name
 * functions that are to run before and after it, which have the attribute `step` and are not variants; steps may have
 * steps of their own. Variants may share steps. What one hands on to the next is in workspace tensors: parameters
 * behind the caller's, of the
 * role `workspace`, all of which the variant itself has, and each step those that it uses.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_SIGNATURE_H
#define TCC_IR_SIGNATURE_H

#include "ir/ir.h"
#include "ir/index.h"
#include "support/extent.h"
#include "support/manifest.h"

const char *tcc_func_kernel(const tcc_func *f);
bool tcc_func_is_definition(const tcc_func *f);
/* The function that defines a kernel; NULL if the module has none. */
const tcc_func *tcc_func_definition(const tcc_ir *ir, const char *kernel);
/* Whether a function is of the target level: a kernel with parameters of its own. */
bool tcc_func_is_entry(const tcc_func *f);

/* The name of the first variant, or of the first of a step's: of those for tensors that lie in memory as f's do, the
 * attribute `order` has it. */
const char *tcc_func_first(const tcc_func *f);

/* Whether a function is a step of others, and no variant. */
bool tcc_func_is_step(const tcc_func *f);
/* The first variant that has f as a step; f itself where it is none, or of none. */
const tcc_func *tcc_func_main(const tcc_func *f);
/* The functions that a variant runs, one after the other, itself among them. NULL: the module has none of the name. */
size_t tcc_func_step_count(const tcc_func *variant);
const tcc_func *tcc_func_step_at(const tcc_func *variant, size_t i);
/* What `before` and `after` say of a step that the module does not have; NULL: it has all of them. */
const char *tcc_func_missing_step(const tcc_func *variant);
/* Whether any variant runs another step before f, or one after it. */
void tcc_func_neighbours(const tcc_func *f, bool *before, bool *after);

/* The parameter of a function that has this name; NULL when there is none. */
tcc_value *tcc_func_parameter(const tcc_func *f, const char *name);
/* Whether a parameter of f is a workspace tensor. Above the target level. */
bool tcc_func_is_workspace(const tcc_func *f, const tcc_value *parameter);

/* Whether the workspace tensor of a name is 0 before the first step: the attribute `zeroed` names it. */
bool tcc_func_is_zeroed(const tcc_func *f, const char *workspace_name);

void tcc_func_zero_workspace(tcc_func *f, const char *workspace_name);

/* Adds a workspace tensor after f's parameters, called `name`, with a number appended if the name is taken. */
tcc_value *tcc_func_add_workspace(tcc_func *f, const tcc_type *type, const char *name);

/* The same for a kernel entry, to which the tensor's address is passed: that parameter. */
tcc_value *tcc_func_add_workspace_pointer(tcc_func *f, const tcc_type *type, const char *name);

/* Keeps what the caller passes in the attribute `args`, [[A, f16, [M, K]], …, [alpha, f32]], unless it is there: the
 * function's parameters are about to change. */
void tcc_func_record_args(tcc_func *f);

/* A function without ops that has the kernel's name, the caller's arguments as parameters, and the
 * attributes `dims` and `roles`, made in an arena. What hand-written IR leaves out is added: `dims`
 * in the order of appearance, and as roles scalar and inout. NULL, reported, when the attributes
 * contradict themselves. */
const tcc_func *tcc_func_signature(const tcc_func *f, tcc_arena *arena, tcc_diag *diag);

/* The same with only the workspace tensors, without `dims`, and with both. */
const tcc_func *tcc_func_workspace(const tcc_func *f, tcc_arena *arena, tcc_diag *diag);
const tcc_func *tcc_func_parameters(const tcc_func *f, tcc_arena *arena, tcc_diag *diag);

/* Which of `dims`, a list of names, a factor of a dimension is; -1: none, as where it is a number. */
int tcc_dims_find(tcc_attr dims, const tcc_extent_factor *factor);
/* The extent that a dimension has by its name where those of `dims` have these; -1: it names one that is not there. */
int64_t tcc_dims_value(tcc_attr dims, const int64_t *extents, const char *name);
/* The value of an index expression there, INT64_MAX where it leaves 64 bits; false: it names one that is not there. */
bool tcc_dims_index(tcc_attr dims, const int64_t *extents, const tcc_index_expr *x, int64_t *out);
/* The extent of a name as an expression; false where it is none. */
bool tcc_dims_compile(tcc_arena *arena, tcc_attr dims, const char *name, tcc_expr *out);
/* Whether all factors of a dimension's name (support/extent.h) are numbers or in `dims`, a list of names. */
bool tcc_dims_have(tcc_attr dims, const char *name);

/* Whether two signatures are the same. */
bool tcc_signature_equal(const tcc_func *a, const tcc_func *b);

#endif
