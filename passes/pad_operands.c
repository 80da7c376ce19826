/* pad-operands: copy operands to rows that begin at multiples of 128 bytes, in steps before the product.
 *
 * Before:  func @f__padded(%A: tensor<f16[M, K]>, …) {padded = [A], …} {
 *            %0 = tensor.read %A {map = [m, k]} …
 *          }
 * After:   func @f__padded__A(%A: tensor<f16[M, K]>, …, %padded_A: tensor<f16[M, K], rows 128>) {step = 1, …} {
 *            %0 = tensor.read %A {map = [i0, i1]}
 *            tensor.write %0, %padded_A {map = [i0, i1]}
 *          }
 *          func @f__padded(…, %padded_A: tensor<f16[M, K], rows 128>) {before = [f__padded__A], …} {
 *            %0 = tensor.read %padded_A {map = [m, k]} …
 *          }
 *
 * The copy engine takes rows that begin at multiples of 16 bytes, and reads those that begin at its lines of
 * 128 bytes fastest. Except for small products, a pass over memory costs less than a product without it.
 *
 * Requires variants. Preserves what the steps compute together.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/cut.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/contraction.h"
#include "passes/merging.h"
#include "passes/passes.h"

enum { ROW_BYTES = 128 };

static tcc_value *param_of(const tcc_func *f, tcc_attr name)
{
    return name.kind == TCC_ATTR_STR ? tcc_func_parameter(f, name.s) : NULL;
}

static bool can_be_padded(const tcc_value *tensor)
{
    bool can = tensor && tensor->type->kind == TCC_KIND_tensor && tensor->type->rank;
    for (const tcc_use *u = can ? tensor->uses : NULL; u; u = u->next)
        can &= u->op->code == TCC_OP_tensor_read;
    return can;
}

/* Makes a copy of the product's function a step that copies a tensor; the schedule is the product's. */
static void make_copy(tcc_func *step, tcc_value *from, tcc_value *to)
{
    tcc_ir *ir = step->ir;
    for (int i = 0; i < TCC_KEY_COUNT; i++)
        tcc_attr_remove(&step->attrs, tcc_schedule_keys[i].name);
    tcc_attr_set_int(ir, &step->attrs, "step", 1);
    tcc_cut_set(step, TCC_CUT_unaligned);
    tcc_op *end = step->body->last;
    while (end->prev)
        tcc_op_erase(end->prev);
    unsigned rank = from->type->rank;
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, rank);
    for (unsigned d = 0; d < rank; d++)
        dims[d].name = tcc_ir_name(ir, tcc_arena_printf(ir->arena, "i%u", d));
    tcc_builder b = tcc_builder_before(end);
    const tcc_type *field = tcc_type_get(ir, TCC_KIND_field, from->type->elem, rank, dims);
    tcc_value *all = TCC_EMIT(&b, tensor_read, field, .tensor = from);
    tcc_access_set_field(all->def, field);
    tcc_access_set_field(TCC_EMIT_V(&b, tensor_write, .a = all, .tensor = to), field);
    if (tcc_attr_find(&step->attrs, "merged"))
        tcc_attr_set(ir, &step->attrs, "merged", tcc_find_merged(step), (tcc_loc){0, 0});
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_attr padded = tcc_attr_list(&f->attrs, "padded");
    if (!padded.list.n)
        return TCC_OK;
    *changed = true;
    tcc_attr_remove(&f->attrs, "padded");
    size_t first = f->body->n_args;
    for (size_t i = 0; i < padded.list.n; i++) {
        const tcc_value *tensor = param_of(f, padded.list.items[i]);
        if (!can_be_padded(tensor)) {
            tcc_error(ctx->diag, TCC_ERR_TYPE, f->loc,
                      "'padded' needs names of tensors that have rows and are only read");
            return TCC_ERR_TYPE;
        }
        tcc_func_add_workspace(f, tcc_type_with_row_bytes(f->ir, tensor->type, ROW_BYTES),
                               tcc_arena_printf(ctx->scratch, "padded_%s", tensor->name));
    }
    const char **steps = TCC_NEW_ARRAY(ctx->scratch, const char *, padded.list.n);
    for (size_t i = padded.list.n; i--;) {
        tcc_value *tensor = param_of(f, padded.list.items[i]);
        tcc_func *step = tcc_func_clone(f, tcc_arena_printf(ctx->scratch, "%s__%s", f->name, tensor->name));
        steps[i] = step->name;
        make_copy(step, step->body->args[tensor->index], step->body->args[first + i]);
        tcc_replace_uses(tensor, f->body->args[first + i]);
    }
    tcc_attr_set_strs(f->ir, &f->attrs, "before", padded.list.n, steps);
    return TCC_OK;
}

const tcc_pass tcc_pass_pad_operands = {
    "pad-operands", "copy operands to aligned rows before the product", .run = run,
    .requires = TCC_UP_TO(variants)};
