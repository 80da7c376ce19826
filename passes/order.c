/* order: whether a function is as a pass needs it, and which passes make it so.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/order.h"

#include "ir/assume.h"
#include "passes/passes.h"
#include "passes/schedule.h"

/* ---- what an op says ------------------------------------------------------------------- */

static bool is_sum_without_axes(const tcc_func *f, const tcc_op *op)
{
    return op->code == TCC_OP_tensor_reduce && !tcc_attr_find(&f->attrs, "axes");
}

static bool is_sum_of_no_variant(const tcc_func *f, const tcc_op *op)
{
    return op->code == TCC_OP_tensor_reduce && !tcc_func_is_variant(f);
}

/* One that choose-schedule has written says so in all keys, also where it fits no instruction. */
static bool is_sum_without_schedule(const tcc_func *f, const tcc_op *op)
{
    if (op->code != TCC_OP_tensor_reduce ||
        (tcc_attr_find(&f->attrs, "tile") && tcc_attr_find(&f->attrs, "group")))
        return false;
    const tcc_schedule s = tcc_schedule_of(f);
    return !tcc_schedule_is_valid(&s);
}

static bool is_of_tensors(const tcc_func *f, const tcc_op *op)
{
    (void)f;
    return tcc_has_field(op) || tcc_op_info_get(op->code)->levels == TCC_LEVEL_TENSOR;
}

static bool is_mma_without_instruction(const tcc_func *f, const tcc_op *op)
{
    (void)f;
    return op->code == TCC_OP_tile_mma && !tcc_attr_find(&op->attrs, "instr");
}

static const tcc_op *load_of(const tcc_op *mma, unsigned operand)
{
    const tcc_op *def = mma->operands[operand]->def;
    return def && def->code == TCC_OP_tile_load ? def : NULL;
}

static bool is_operand_without_copy(const tcc_func *f, const tcc_op *op)
{
    (void)f;
    if (op->code != TCC_OP_tile_load || tcc_attr_find(&op->attrs, "copy"))
        return false;
    for (const tcc_use *u = op->results[0].uses; u; u = u->next)
        if (u->op->code == TCC_OP_tile_mma && load_of(u->op, 0) && load_of(u->op, 1))
            return true;
    return false;
}

/* In a role it is what no pass has taken, and no lowering will. */
static bool is_loop_without_stages(const tcc_func *f, const tcc_op *op)
{
    (void)f;
    bool multiplies = false;
    if (op->code != TCC_OP_scf_for || tcc_attr_find(&op->attrs, "stages") || tcc_role_of(op))
        return false;
    for (const tcc_op *in = op->regions[0]->first; in; in = in->next)
        multiplies |= in->code == TCC_OP_tile_mma && load_of(in, 0) && load_of(in, 1);
    return multiplies;
}

static bool is_mma_of_loads(const tcc_func *f, const tcc_op *op)
{
    (void)f;
    return op->code == TCC_OP_tile_mma && (load_of(op, 0) || load_of(op, 1)) && !tcc_role_of(op);
}

static bool is_of_no_role(const tcc_func *f, const tcc_op *op)
{
    (void)f;
    return tcc_op_does(op->code, TCC_BY_RING) && !tcc_role_of(op);
}

static bool is_grid(const tcc_func *f, const tcc_op *op)
{
    (void)f;
    return op->code == TCC_OP_tile_grid;
}

static bool is_mma_without_layout(const tcc_func *f, const tcc_op *op)
{
    (void)f;
    return op->code == TCC_OP_async_mma && !op->results[0].type->layout;
}

static bool is_without_place(const tcc_func *f, const tcc_op *op)
{
    (void)f;
    bool places = tcc_op_info_get(op->code)->levels == TCC_LEVEL_ASYNC;
    return places && tcc_op_does(op->code, TCC_ALLOCATES) && !tcc_attr_find(&op->attrs, "offset");
}

static bool is_cta_of_variant(const tcc_func *f, const tcc_op *op)
{
    return op->code == TCC_OP_tile_ctas && tcc_func_is_variant(f);
}

/* ---- states ---------------------------------------------------------------------------- */

static const struct {
    bool (*lacks)(const tcc_func *f, const tcc_op *op);
    const char *what;
} states[] = {
#define STATE(id, lacks, what) {lacks, what},
#include "passes/states.def"
};

/* The first of `wanted` that a function is not in, and the op that says so; their number: none. */
static unsigned find_lack(const tcc_func *f, unsigned wanted, const tcc_op **culprit)
{
    unsigned first = TCC_STATE_COUNT;
    for (const tcc_op *op = f->body->first; wanted && op;
         op = tcc_walk_next((tcc_op *)op, f->body))
        for (unsigned s = 0; s < first; s++)
            if (wanted >> s & 1 && states[s].lacks(f, op)) {
                first = s;
                *culprit = op;
            }
    return first;
}

/* The passes that bring a state, or undo it. */
static const char *names_of(tcc_arena *arena, unsigned state, bool bring)
{
    const char *names = NULL;
    const tcc_pass *pass;
    for (size_t i = 0; (pass = tcc_pass_at(i)); i++)
        if ((bring ? pass->leaves : pass->undoes) >> state & 1)
            names = names ? tcc_arena_printf(arena, "%s or %s", names, pass->name) : pass->name;
    return names;
}

tcc_status tcc_order_check(const tcc_pass_ctx *ctx, const tcc_pass *pass, const tcc_func *f,
                           unsigned brought)
{
    const tcc_op *op = NULL;
    unsigned s = find_lack(f, pass->requires & ~brought, &op);
    if (s == TCC_STATE_COUNT)
        return TCC_OK;
    const char *before = names_of(ctx->scratch, s, true);
    const char *name = tcc_op_info_get(op->code)->name;
    tcc_error(ctx->diag, TCC_ERR_ARGUMENT, op->loc, "pass %s finds %s %s: %s must come %s it",
              pass->name, name, states[s].what,
              before ? before : names_of(ctx->scratch, s, false), before ? "before" : "after");
    return TCC_ERR_ARGUMENT;
}

tcc_status tcc_order_check_left(const tcc_pass_ctx *ctx, const tcc_pass *pass, const tcc_func *f)
{
    const tcc_op *op = NULL;
    bool own = tcc_attr_find(&f->attrs, "kernel"); /* of choose-variants, not written by hand */
    unsigned s = own ? find_lack(f, pass->leaves, &op) : TCC_STATE_COUNT;
    if (s == TCC_STATE_COUNT)
        return TCC_OK;
    tcc_error(ctx->diag, TCC_ERR_INTERNAL, op->loc, "pass %s left %s %s", pass->name,
              tcc_op_info_get(op->code)->name, states[s].what);
    return TCC_ERR_INTERNAL;
}
