/* signature: what the caller of a kernel passes, whatever level its function is of.
 *
 * Above the target level that is in the function's own parameters. A target-level function has
 * those of its GPU code; its attribute `args` keeps the caller's. Which kernel a function belongs
 * to is its attribute `kernel`, or its name. A module may also hold what a kernel computes, as the
 * frontend made it: a tensor-level function with the attribute `defines`, the kernel's name. It is
 * no code: passes leave it alone, and nothing is generated for it.
 *
 * A variant of a kernel is one function, or several that are run one after another, its steps: those
 * with one attribute `variant`, in the order of the module. What they hand on is in workspace tensors:
 * parameters behind the caller's, of the role `workspace`, which all steps of a variant have.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_SIGNATURE_H
#define TCC_IR_SIGNATURE_H

#include "ir/ir.h"
#include "support/manifest.h"

const char *tcc_func_kernel(const tcc_func *f);
bool tcc_func_is_definition(const tcc_func *f);
/* The function that defines a kernel; NULL when the module does not say. */
const tcc_func *tcc_func_definition(const tcc_ir *ir, const char *kernel);
/* Whether a function is of the target level: a kernel with parameters of its own. */
bool tcc_func_is_entry(const tcc_func *f);

/* The variant that a function is a step of: its attribute `variant`, or its name. */
const char *tcc_func_variant(const tcc_func *f);
/* The first step of a function's variant, and the step after f, NULL behind the last. */
const tcc_func *tcc_func_first_step(const tcc_func *f);
const tcc_func *tcc_func_next_step(const tcc_func *f);
/* Whether no step comes in front of f: such functions stand for their variants. */
bool tcc_func_leads(const tcc_func *f);

/* Whether a parameter of f is a workspace tensor. Above the target level. */
bool tcc_func_is_workspace(const tcc_func *f, const tcc_value *parameter);

/* A function without ops that has the kernel's name, the caller's arguments as parameters, and the
 * attributes `dims` and `roles`, made in an arena. What hand-written IR leaves out is added: `dims`
 * in the order of appearance, and as roles scalar and inout. NULL, reported, when the attributes
 * contradict themselves. */
const tcc_func *tcc_func_signature(const tcc_func *f, tcc_arena *arena, tcc_diag *diag);

/* The same with the workspace tensors alone, without `dims`, and with both. */
const tcc_func *tcc_func_workspace(const tcc_func *f, tcc_arena *arena, tcc_diag *diag);
const tcc_func *tcc_func_parameters(const tcc_func *f, tcc_arena *arena, tcc_diag *diag);

/* Whether two signatures are the same. */
bool tcc_signature_equal(const tcc_func *a, const tcc_func *b);

#endif
