/* pad-operands: copy operands to rows that begin at multiples of 128 bytes, or run along the summed index, in steps before
 * the product.
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
 * With transposed = [A, 0] the copy's last dimension is A's first:
 *
 *            tensor.write %0, %transposed_A {map = [i1, i0]}
 *
 * The copy engine takes rows that begin at multiples of 16 bytes, and reads those that begin at its lines of
 * 128 bytes fastest; wgmma takes 8-bit and tf32 elements only along the summed index. Except for small products, a pass
 * over memory costs less than a product without it.
 *
 * Requires variants. Preserves what the steps compute together.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/cut.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/choose_axes.h"
#include "passes/space.h"
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

/* A copy of an operand. */
typedef struct copy {
    tcc_value *from;
    int64_t last; /* dimension, which is the copy's last one */
    const char *step;
} copy;
typedef TCC_VEC(copy) copies;

static bool is_padded(const copy *c)
{
    return c->last == c->from->type->rank - 1;
}

/* Of rank items, moves one to the end. */
static void move_last(unsigned rank, int64_t at, size_t size, void *items)
{
    char *p = items, item[sizeof(tcc_dim)];
    memcpy(item, p + (size_t)at * size, size);
    memmove(p + (size_t)at * size, p + ((size_t)at + 1) * size, (rank - 1 - (size_t)at) * size);
    memcpy(p + (rank - 1) * size, item, size);
}

/* Makes a copy of the product's function a step that copies a tensor; the schedule is the product's. */
static void make_step(tcc_func *step, const copy *c, tcc_value *from, tcc_value *to)
{
    tcc_ir *ir = step->ir;
    for (int i = 0; i < TCC_KEY_COUNT; i++)
        tcc_attr_remove(&step->attrs, tcc_schedule_keys[i].name);
    tcc_attr_remove(&step->attrs, "before");
    tcc_attr_set_int(ir, &step->attrs, "step", 1);
    tcc_cut_set(step, is_padded(c) ? TCC_CUT_unaligned : TCC_CUT_across);
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
    move_last(rank, c->last, sizeof *dims, dims);
    tcc_access_set_field(TCC_EMIT_V(&b, tensor_write, .a = all, .tensor = to),
                         tcc_type_get(ir, TCC_KIND_field, from->type->elem, rank, dims));
    tcc_choose_axes(step);
    if (tcc_attr_find(&step->attrs, "merged"))
        tcc_attr_set(ir, &step->attrs, "merged", tcc_find_merged(step), (tcc_loc){0, 0});
}

static const tcc_type *copied_type(tcc_func *f, const copy *c)
{
    const tcc_type *t = c->from->type;
    tcc_dim *dims = TCC_NEW_ARRAY(f->ir->arena, tcc_dim, t->rank);
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    move_last(t->rank, c->last, sizeof *dims, dims);
    return tcc_type_with_row_bytes(f->ir, tcc_type_get(f->ir, TCC_KIND_tensor, t->elem, t->rank, dims), ROW_BYTES);
}

/* Lets operands along whose summed index the copied dimension runs be read from the copy. */
static void read_copy(const tcc_func *f, const copy *c, tcc_value *to)
{
    tcc_space sums;
    unsigned rank = to->type->rank;
    for (size_t i = 0; tcc_space_of(f, &sums) && i < sums.n_operands; i++) {
        tcc_op *read = sums.operands[i].read;
        if (tcc_accessed_tensor(read) != c->from || tcc_map_position(read, sums.operands[i].k) != c->last)
            continue;
        const char **map = TCC_NEW_ARRAY(f->ir->arena, const char *, rank);
        for (unsigned d = 0; d < rank; d++)
            map[d] = tcc_access_index(read, d);
        move_last(rank, c->last, sizeof *map, map);
        tcc_op_set_operand(read, 0, to);
        tcc_access_set_indices(read, rank, map);
    }
}

/* What the function's attributes ask for, transposed operands first; false where they are wrong. */
static bool find_copies(tcc_pass_ctx *ctx, const tcc_func *f, copies *found)
{
    const tcc_attr padded = tcc_attr_list(&f->attrs, "padded"), transposed = tcc_attr_list(&f->attrs, "transposed");
    bool right = transposed.list.n % 2 == 0;
    for (size_t i = 0; i + 1 < transposed.list.n; i += 2) {
        tcc_value *from = param_of(f, transposed.list.items[i]);
        tcc_attr last = transposed.list.items[i + 1];
        right &= can_be_padded(from) && last.kind == TCC_ATTR_INT && last.i >= 0 && last.i < from->type->rank;
        TCC_PUSH(ctx->scratch, found, (copy){.from = from, .last = last.i});
    }
    for (size_t i = 0; i < padded.list.n; i++) {
        tcc_value *from = param_of(f, padded.list.items[i]);
        right &= can_be_padded(from);
        TCC_PUSH(ctx->scratch, found, (copy){.from = from, .last = right ? from->type->rank - 1 : 0});
    }
    if (!right)
        tcc_error(ctx->diag, TCC_ERR_TYPE, f->loc,
                  "'padded' needs names of tensors that have rows and are only read, and 'transposed' a dimension after each");
    return right;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    copies all = {0};
    if (!find_copies(ctx, f, &all))
        return TCC_ERR_TYPE;
    if (!all.len)
        return TCC_OK;
    *changed = true;
    tcc_attr_remove(&f->attrs, "padded");
    tcc_attr_remove(&f->attrs, "transposed");
    size_t first = f->body->n_args;
    for (size_t i = 0; i < all.len; i++)
        tcc_func_add_workspace(f, copied_type(f, &all.data[i]),
                               tcc_arena_printf(ctx->scratch, "%s_%s", is_padded(&all.data[i]) ? "padded" : "transposed",
                                                all.data[i].from->name));
    for (size_t i = all.len; i--;) {
        copy *c = &all.data[i];
        const char *name = tcc_arena_printf(ctx->scratch, "%s__%s", f->name, c->from->name);
        for (int j = 2; tcc_func_find(f->ir, name); j++)
            name = tcc_arena_printf(ctx->scratch, "%s__%s%d", f->name, c->from->name, j);
        tcc_func *step = tcc_func_clone(f, name);
        c->step = step->name;
        make_step(step, c, step->body->args[c->from->index], step->body->args[first + i]);
    }
    const tcc_attr before = tcc_attr_list(&f->attrs, "before");
    const char **steps = TCC_NEW_ARRAY(ctx->scratch, const char *, before.list.n + all.len);
    for (size_t i = 0; i < before.list.n; i++)
        steps[i] = before.list.items[i].s;
    for (size_t i = 0; i < all.len; i++) {
        steps[before.list.n + i] = all.data[i].step;
        if (is_padded(&all.data[i]))
            tcc_replace_uses(all.data[i].from, f->body->args[first + i]);
        else
            read_copy(f, &all.data[i], f->body->args[first + i]);
    }
    tcc_attr_set_strs(f->ir, &f->attrs, "before", before.list.n + all.len, steps);
    return TCC_OK;
}

const tcc_pass tcc_pass_pad_operands = {
    "pad-operands", "copy operands to aligned rows before the product", .run = run,
    .requires = TCC_UP_TO(variants)};
