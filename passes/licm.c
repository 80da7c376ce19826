/* licm: move loop-invariant ops out of loops.
 *
 * Before:  scf.for %i … {                   After:  %a = arith.mul %x, %y
 *            %a = arith.mul %x, %y                  scf.for %i … {
 *            %b = arith.add %a, %i                    %b = arith.add %a, %i
 *            …                                        …
 *          }                                        }
 *
 * Only ops in the loop's own block: ops under a branch in the loop stay guarded. A loop of no
 * iterations must not divide by zero because of this pass.
 *
 * Requires nothing. Preserves control flow.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/memory.h"
#include "passes/passes.h"

static bool is_inside(const tcc_block *block, const tcc_op *loop)
{
    while (block && block->parent != loop)
        block = block->parent ? block->parent->block : NULL;
    return block;
}

static bool is_invariant(const tcc_op *op, const tcc_op *loop)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        const tcc_value *v = op->operands[i];
        if (is_inside(v->block ? v->block : v->def->block, loop))
            return false;
    }
    return true;
}

/* Whether op may run where it did not run before. */
static bool can_speculate(const tcc_op *op, const tcc_op *loop)
{
    if (op->code != TCC_OP_arith_div && op->code != TCC_OP_arith_rem)
        return true;
    int64_t divisor;
    return tcc_scalar_classify(op->results[0].type->elem) == TCC_CLASS_FLOAT ||
           (tcc_value_is_int(op->operands[1], &divisor) && divisor) ||
           tcc_attr_int(&loop->attrs, "at_least_once", 0);
}

static bool hoist(tcc_op *loop, const tcc_map *written)
{
    bool changed = false;
    tcc_builder before = tcc_builder_before(loop);
    for (tcc_op *op = loop->regions[0]->first, *next; op; op = next) {
        next = op->next;
        if (!op->n_regions && op->n_results && is_invariant(op, loop) && can_speculate(op, loop) &&
            tcc_op_is_movable(op, written)) {
            tcc_op_move(&before, op);
            changed = true;
        }
    }
    return changed;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_map written = tcc_written_tensors(f, ctx->scratch);
    TCC_VEC(tcc_op *) loops = {0};
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_scf_for)
            TCC_PUSH(ctx->scratch, &loops, op);
    while (loops.len) /* inner loops first: what leaves them may leave the outer ones too */
        *changed |= hoist(loops.data[--loops.len], &written);
    return TCC_OK;
}

const tcc_pass tcc_pass_licm = {"licm", "move loop-invariant ops out of loops", .run = run};
