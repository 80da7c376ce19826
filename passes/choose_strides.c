/* choose-strides: compute a kernel for each order in which its strided tensors may lie in memory.
 *
 * Before:  func @f(%A: tensor<f16[M, K]>, %B: tensor<f16[K, N], strides [B_0, B_1]>, …) {…}
 * After:   func @f(%A: …, %B: tensor<f16[K, N], strides [B_0, 1]>, …) {units = [B_1], …}
 *          func @f__t_B(%A: …, %B: tensor<f16[N, K], strides [B_1, 1]>, …) {units = [B_0], order = f__t_B, …}
 *          func @f__strided(%A: …, %B: tensor<f16[K, N], strides [B_0, B_1]>, …) {order = f__strided, …}
 *
 * What copies 16 bytes at a time needs a dimension whose neighbours are neighbours in memory. In the first function it
 * is every tensor's last one. An input of a reduction may also be a transposed view: then it is the last but one, which
 * becomes the last one of the parameter's type; what the caller passes is kept in `args`. The last function takes any
 * strides, element by element; where no launch has rows along all last dimensions, that is the first one.
 *
 * Requires nothing. Preserves what is computed.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/access.h"
#include "ir/assume.h"
#include "ir/signature.h"
#include "passes/passes.h"

enum { MOST_TURNED = 2 }; /* tensors of which both orders are tried */

static bool is_unit(tcc_dim stride)
{
    return !stride.name && stride.size == 1;
}

/* Whether a stride is 1, or may be. */
static bool may_be_unit(const tcc_type *t, unsigned d)
{
    return t->strides[d].name || is_unit(t->strides[d]);
}

static bool is_strided(const tcc_value *arg)
{
    return arg->type->kind == TCC_KIND_tensor && arg->type->strides && arg->type->rank;
}

/* ---- what there is to choose --------------------------------------------------------------- */

/* Whether a tensor is only read, at coordinates that can be taken in another order. */
static bool is_read_plainly(const tcc_value *tensor)
{
    bool all = tensor->uses != NULL;
    for (const tcc_use *u = tensor->uses; u && all; u = u->next)
        all = u->op->code == TCC_OP_tensor_read && !tcc_attr_find(&u->op->attrs, "loaded");
    return all;
}

static bool reduces(const tcc_func *f)
{
    const tcc_op *op = f->body->first;
    while (op && op->code != TCC_OP_tensor_reduce)
        op = op->next;
    return op != NULL;
}

/* Whether a tensor's rows may run along its last dimension but one. */
static bool can_turn(const tcc_value *arg)
{
    const tcc_type *t = arg->type;
    return is_strided(arg) && t->rank > 1 && may_be_unit(t, t->rank - 2) && !is_unit(t->strides[t->rank - 1]) &&
           is_read_plainly(arg);
}

/* Whether the last stride is not known to be 1. */
static bool is_open(const tcc_value *arg)
{
    return is_strided(arg) && !is_unit(arg->type->strides[arg->type->rank - 1]);
}

/* ---- the functions -------------------------------------------------------------------------- */

static void turn_access(tcc_op *access)
{
    tcc_ir *ir = access->block->func->ir;
    tcc_attr map = tcc_attr_list(&access->attrs, "map");
    tcc_attr *turned = TCC_NEW_ARRAY(ir->arena, tcc_attr, map.list.n);
    size_t n = map.list.n;
    memcpy(turned, map.list.items, n * sizeof *turned);
    turned[n - 2] = map.list.items[n - 1];
    turned[n - 1] = map.list.items[n - 2];
    tcc_attr_set(ir, &access->attrs, "map", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {turned, n}}, (tcc_loc){0, 0});
}

/* Exchanges the last two dimensions of a parameter. */
static void turn(tcc_value *arg)
{
    tcc_ir *ir = arg->block->func->ir;
    const tcc_type *t = arg->type;
    unsigned last = t->rank - 1;
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, t->rank), *strides = TCC_NEW_ARRAY(ir->arena, tcc_dim, t->rank);
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    memcpy(strides, t->strides, t->rank * sizeof *strides);
    dims[last] = t->dims[last - 1];
    dims[last - 1] = t->dims[last];
    strides[last] = t->strides[last - 1];
    strides[last - 1] = t->strides[last];
    arg->type = tcc_type_with_strides(ir, tcc_type_get(ir, t->kind, t->elem, t->rank, dims), strides);
    for (const tcc_use *u = arg->uses; u; u = u->next)
        turn_access(u->op);
}

/* Makes the last stride 1: a launch is checked for it. */
static void set_unit(tcc_value *arg)
{
    tcc_func *f = arg->block->func;
    const tcc_type *t = arg->type;
    tcc_dim *strides = TCC_NEW_ARRAY(f->ir->arena, tcc_dim, t->rank);
    memcpy(strides, t->strides, t->rank * sizeof *strides);
    const char *name = strides[t->rank - 1].name;
    strides[t->rank - 1] = (tcc_dim){.size = 1};
    arg->type = tcc_type_with_strides(f->ir, t, strides);
    if (name)
        tcc_attr_append(f->ir, &f->attrs, "units", (tcc_attr){.kind = TCC_ATTR_STR, .s = name});
}

/* A tensor is turned where the bit of its number among those that can be is set. */
static void lay_out(tcc_func *f, unsigned turned)
{
    tcc_func_record_args(f);
    for (size_t i = 0, n = 0; i < f->body->n_args; i++) {
        tcc_value *arg = f->body->args[i];
        if (can_turn(arg) && turned >> n++ & 1)
            turn(arg);
        if (is_open(arg))
            set_unit(arg);
    }
}

/* What a function is called whose tensors are turned so. */
static const char *suffix(tcc_arena *arena, const tcc_func *f, unsigned turned)
{
    const char *name = "t";
    for (size_t i = 0, n = 0; i < f->body->n_args; i++)
        if (can_turn(f->body->args[i]) && turned >> n++ & 1)
            name = tcc_arena_printf(arena, "%s_%s", name, f->body->args[i]->name);
    return name;
}

static tcc_func *add_order(tcc_pass_ctx *ctx, tcc_func *f, const char *suffix)
{
    tcc_func *order = tcc_func_clone(f, tcc_arena_printf(ctx->scratch, "%s__%s", f->name, suffix));
    tcc_attr_set_str(ctx->ir, &order->attrs, "kernel", tcc_func_kernel(f));
    tcc_attr_set_str(ctx->ir, &order->attrs, "order", order->name);
    return order;
}

/* Whether some launch has the tensors turned so, as far as strides are known. */
static bool is_possible(const tcc_func *f, unsigned turned)
{
    bool is = true;
    for (size_t i = 0, n = 0; i < f->body->n_args && is; i++) {
        const tcc_value *arg = f->body->args[i];
        bool turns = can_turn(arg) && turned >> n++ & 1;
        bool is_turned = can_turn(arg) && is_unit(arg->type->strides[arg->type->rank - 2]);
        is = !is_open(arg) || turns || (!is_turned && may_be_unit(arg->type, arg->type->rank - 1));
    }
    return is;
}

static bool is_done(const tcc_func *f)
{
    return tcc_func_is_variant(f) || tcc_attr_find(&f->attrs, "order") || tcc_attr_find(&f->attrs, "units");
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    unsigned n_turned = 0, n_open = 0;
    for (size_t i = 0; i < f->body->n_args; i++) {
        n_open += is_open(f->body->args[i]);
        n_turned += can_turn(f->body->args[i]);
    }
    if (!n_open || is_done(f))
        return TCC_OK;
    *changed = true;
    n_turned = !reduces(f) ? 0 : n_turned > MOST_TURNED ? MOST_TURNED : n_turned;
    bool has_rows = is_possible(f, 0); /* else it is itself the one for any strides */
    if (has_rows)
        add_order(ctx, f, "strided");
    else
        tcc_attr_set_str(ctx->ir, &f->attrs, "order", f->name);
    for (unsigned turned = (1u << n_turned) - 1; turned; turned--)
        if (is_possible(f, turned))
            lay_out(add_order(ctx, f, suffix(ctx->scratch, f, turned)), turned);
    if (has_rows)
        lay_out(f, 0);
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_strides = {
    "choose-strides", "compute a kernel for each order in which strided tensors may lie in memory", .run = run};
