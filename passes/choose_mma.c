/* choose-mma: decide the matrix instruction of every tile.mma.
 *
 * Before:  tile.mma %a, %b, %c        After:  tile.mma %a, %b, %c {instr = [64, 256, 16]}
 *
 * Requires choose-schedule. Preserves everything but the attribute.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/schedule_key.h"
#include "passes/passes.h"
#include "passes/schedule.h"

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_target *target = tcc_func_target(f);
    tcc_schedule s = tcc_schedule_of(f);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        if (op->code != TCC_OP_tile_mma || tcc_attr_find(&op->attrs, "instr"))
            continue;
        const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
        tcc_scalar a = o->a->type->elem, b = o->b->type->elem, acc = o->c->type->elem;
        tcc_mma_shape shape;
        tcc_instr first = tcc_target_instr_for(target, TCC_INSTR_COUNT, a, b, acc);
        tcc_instr instr = (tcc_instr)tcc_schedule_key_of(f, TCC_KEY_instr, first);
        if (!tcc_mma_shape_find(target, instr, a, b, acc, &shape)) {
            bool converts = tcc_target_converts(target, a) && tcc_target_converts(target, b);
            tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, op->loc,
                      "not supported yet: MMA of %s and %s accumulated in %s on %s%s", tcc_scalar_name(a),
                      tcc_scalar_name(b), tcc_scalar_name(acc), tcc_target_of(ctx->ir)->name,
                      converts ? ", except by 'instr naive'" : "");
            return TCC_ERR_UNSUPPORTED;
        }
        int64_t n = !tcc_schedule_is_valid(&s)       ? 0
                    : shape.n_max == shape.n_step ? shape.n_max
                                                  : tcc_schedule_instr_columns(&s, target, op->results[0].type->dims[1].size);
        tcc_arrangement u;
        if (n && tcc_arrange(&s, &u) && tcc_mma_sync_of_block(target, instr, u.block, a, b, acc)) {
            shape.m = u.block.m;
            n = u.block.n;
        }
        if (n) {
            tcc_attr_set_ints(ctx->ir, &op->attrs, "instr", 3, (int64_t[]){shape.m, n, shape.k});
            *changed = true;
        }
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_mma = {
    "choose-mma", "decide the matrix instruction of every tile.mma", .run = run,
    .requires = TCC_UP_TO(tiles),
    .leaves = TCC_STATE(instructions)};
