/* choose-pipeline: decide how the copies of a loop with an MMA are pipelined, and by which warps.
 *
 * Before:  scf.for %i …          After:  scf.for %i … {stages = 4, warps = [8, 4],
 *                                                      registers = [240, 40]}
 *
 * This is the last use of the function's schedule: later passes read the attributes of ops, and its
 * keys are kept only for printing.
 *
 * Requires choose-schedule and tile. Preserves everything but the attributes.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/machine.h"
#include "ir/schedule_key.h"
#include "passes/families.h"
#include "passes/passes.h"
#include "passes/schedule.h"

static void decide(tcc_func *f, const tcc_schedule *s, tcc_attrs *loop)
{
    tcc_ir *ir = f->ir;
    const tcc_target *target = tcc_func_target(f);
    int64_t lanes = s->wave ? s->wave : TCC_WARP_LANES;
    int64_t give = 0, producers = tcc_schedule_producer_threads(s) / lanes;
    tcc_attr_set_int(ir, loop, "stages", s->stages);
    int64_t turns = tcc_schedule_turns(s), consumers = tcc_schedule_threads(s) / lanes - producers;
    tcc_attr_set_ints(ir, loop, "warps", 2, (int64_t[]){consumers / turns, producers});
    if (turns > 1)
        tcc_attr_set_int(ir, loop, "turns", turns);
    int64_t take = tcc_target_can(target, TCC_CAN_setmaxnreg)
                       ? tcc_schedule_registers(s, target, &give)
                       : 0;
    if (give)
        tcc_attr_set_ints(ir, loop, "registers", 2, (int64_t[]){take, give});
    tcc_arrangement u;
    if (tcc_arrange(s, &u)) {
        tcc_attr_set_ints(ir, loop, "waves", 2, u.stand);
        tcc_attr_set_int(ir, loop, "lanes", lanes);
        if (s->instr != tcc_target_instr(target))
            tcc_attr_set_str(ir, loop, "instr",
                             tcc_schedule_key_word(&tcc_schedule_keys[TCC_KEY_instr], s->instr));
        tcc_mma_block first;
        if (tcc_mma_sync_block(target, s->instr, 0, &first) && (u.block.m != first.m || u.block.n != first.n))
            tcc_attr_set_ints(ir, loop, "block", 2, (int64_t[]){u.block.m, u.block.n});
    }
    tcc_attr_carry(ir, loop, &f->attrs, "chunks");
    tcc_attr_carry(ir, loop, &f->attrs, "ahead");
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    (void)ctx;
    tcc_schedule s = tcc_schedule_of(f);
    if (!tcc_schedule_is_valid(&s))
        return TCC_OK;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        tcc_op *loop = op->code == TCC_OP_tile_mma ? op->block->parent : NULL;
        if (!loop || loop->code != TCC_OP_scf_for || tcc_attr_find(&loop->attrs, "stages"))
            continue;
        decide(f, &s, &loop->attrs);
        *changed = true;
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_pipeline = {
    "choose-pipeline", "decide how the copies of a loop are pipelined, and by which warps", .run = run,
    .requires = TCC_UP_TO(tiles),
    .leaves = TCC_STATE(stages)};
