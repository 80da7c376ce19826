/* choose-mma: decide the matrix instruction of every tile.mma.
 *
 * Before:  tile.mma %a, %b, %c        After:  tile.mma %a, %b, %c {instr = [64, 256, 16]}
 *
 * Requires choose-schedule. Preserves everything but the attribute.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/passes.h"
#include "passes/schedule.h"

/* Sets the shape for the product's types; false when the target has no such instruction. */
static bool decide(const tcc_target *target, const tcc_schedule *s, tcc_op *op, bool *changed)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    tcc_ir *ir = op->block->func->ir;
    tcc_scalar a = o->a->type->elem, b = o->b->type->elem, acc = op->results[0].type->elem;
    bool valid = tcc_schedule_is_valid(s);
    int64_t shape[3] = {16, 16, 0};
    if (target->family == TCC_FAMILY_SM90) {
        const tcc_mma *mma = a == b ? tcc_mma_find(target, a, acc) : NULL;
        if (!mma)
            return false;
        shape[0] = mma->m;
        shape[1] = valid ? tcc_schedule_instr_n(s, target) : 0;
        shape[2] = mma->k;
    } else {
        const tcc_wmma *wmma = tcc_wmma_find(target, a, b, acc, 0);
        if (!wmma)
            return false;
        shape[2] = wmma->k;
    }
    if (valid && shape[1]) {
        tcc_attr_set_ints(ir, &op->attrs, "instr", 3, shape);
        *changed = true;
    }
    return true;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_target *target = tcc_target_of(ctx->ir);
    tcc_schedule s = tcc_schedule_of(f);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        if (op->code != TCC_OP_tile_mma || tcc_attr_find(&op->attrs, "instr"))
            continue;
        const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
        tcc_scalar a = o->a->type->elem, b = o->b->type->elem, acc = o->c->type->elem;
        if (!decide(target, &s, op, changed)) {
            tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, op->loc,
                      "not supported yet: MMA of %s and %s accumulated in %s on %s",
                      tcc_scalar_name(a), tcc_scalar_name(b), tcc_scalar_name(acc), target->name);
            return TCC_ERR_UNSUPPORTED;
        }
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_mma = {"choose-mma",
                                      "decide the matrix instruction of every tile.mma", run};
