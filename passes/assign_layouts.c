/* assign-layouts: say which register of which lane of which warp holds an element of a tile.
 *
 * Before:  async.role {name = consumer, warps = 8}
 *            %acc = arith.const {value = 0.0} : tile<f32[128, 256]>
 *            %p = arith.cast %e : tile<bf16[128, 64]>
 *            %r = async.mma %ring, %i, %p, %v, %acc {…} : tile<f32[128, 256]>
 * After:     %acc = arith.const {value = 0.0} : tile<f32[128, 256], wgmma_d(cols 32, warps rows 2)>
 *            %p = arith.cast %e : tile<bf16[128, 64], wgmma_d(cols 8, warps rows 2)>
 *            %a = tile.convert %p : tile<bf16[128, 64], wgmma_a(cols 4, warps rows 2)>
 *            %r = async.mma %ring, %i, %a, %v, %acc {…} : tile<f32[128, 256], wgmma_d(…)>
 *
 * All tiles of a role are held as matrix instructions leave their results, but for what they take as operand A.
 * A tile that has a layout keeps it; one whose extents do not fit gets none, and no lowering takes it.
 *
 * Requires specialize-warps.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/families.h"
#include "passes/passes.h"

typedef struct assigning {
    tcc_ir *ir;
    const tcc_op *role;
    tcc_hold *hold;
    const tcc_op *refused; /* uses a tile from outside the role */
    bool changed;
} assigning;

static void assign(assigning *a, tcc_value *v)
{
    if (v->type->kind != TCC_KIND_tile || v->type->layout)
        return;
    const tcc_type *type = a->hold(a->ir, v->type, a->role, false);
    a->changed |= type != NULL;
    v->type = type ? type : v->type;
}

/* A in registers: operand 2. */
static void convert_operand(assigning *a, tcc_op *op)
{
    tcc_value *v = op->operands[2];
    const tcc_type *type =
        v->type->kind == TCC_KIND_tile ? a->hold(a->ir, v->type, a->role, true) : NULL;
    if (!type || type == v->type)
        return;
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    tcc_op_set_operand(op, 2, TCC_EMIT(&b, tile_convert, type, v));
    a->changed = true;
}

static void assign_role(assigning *a)
{
    tcc_block *region = a->role->regions[0];
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region)) {
        for (unsigned r = 0; r < op->n_regions; r++)
            for (size_t i = 0; i < op->regions[r]->n_args; i++)
                assign(a, op->regions[r]->args[i]);
        for (unsigned i = 0; i < op->n_results; i++)
            assign(a, &op->results[i]);
        for (unsigned i = 0; i < op->n_operands; i++) {
            const tcc_type *t = op->operands[i]->type; /* of the role it had its layout by now */
            if (t->kind == TCC_KIND_tile && !t->layout && a->hold(a->ir, t, a->role, false))
                a->refused = op;
        }
        if (op->code == TCC_OP_async_mma)
            convert_operand(a, op);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_family_passes *passes = tcc_family_passes_of(tcc_target_of(ctx->ir));
    assigning a = {.ir = ctx->ir, .hold = passes ? passes->hold : NULL};
    for (tcc_op *op = f->body->first; op && a.hold; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_async_role) {
            a.role = op;
            assign_role(&a);
        }
    *changed = a.changed;
    if (a.refused) {
        tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, a.refused->loc,
                  "not supported yet: a tile from outside the role that uses it");
        return TCC_ERR_UNSUPPORTED;
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_assign_layouts = {
    "assign-layouts",
    "say which register of which lane of which warp holds an element of a tile", .run = run,
    .requires = TCC_UP_TO(roles),
    .leaves = TCC_STATE(layouts)};
