/* form-fma: fuse a product and the sum that uses it into one instruction.
 *
 * Before:  %p = arith.mul %x, %y           After:  %r = arith.fma %x, %y, %z
 *          %r = arith.add %p, %z
 *
 * Also x * y - z and z - x * y; of two products the first one. Other uses of the product do not
 * matter, so a sum is rounded in the same way everywhere. The frontend has done so for those of the
 * program: what is left are products that functions end in, and those that passes add up. LLVM must
 * not contract anything: the instructions are those that the interpreter runs.
 *
 * Requires nothing. Preserves control flow; dce deletes the unused products.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/passes.h"
#include "support/map.h"

static tcc_op *product_behind(const tcc_value *v)
{
    return v->def && v->def->code == TCC_OP_arith_mul ? v->def : NULL;
}

bool tcc_op_is_contractible(const tcc_op *op)
{
    return (op->code == TCC_OP_arith_add || op->code == TCC_OP_arith_sub) &&
           (op->results[0].type->elem == TCC_f32 || op->results[0].type->elem == TCC_f64) &&
           (product_behind(op->operands[0]) || product_behind(op->operands[1]));
}

/* -v, a constant where v is one. */
static tcc_value *negated(tcc_builder *b, tcc_value *v)
{
    double number;
    if (tcc_value_is_float(v, &number))
        return tcc_build_float(b, v->type, -number);
    return TCC_EMIT(b, arith_neg, v->type, v);
}

static tcc_value *fma_of(tcc_op *sum)
{
    tcc_builder b = tcc_builder_before(sum);
    bool first = product_behind(sum->operands[0]);
    const tcc_op *product = product_behind(sum->operands[first ? 0 : 1]);
    tcc_value *x = product->operands[0], *y = product->operands[1], *z = sum->operands[first];
    if (sum->code == TCC_OP_arith_sub && first)
        z = negated(&b, z);
    else if (sum->code == TCC_OP_arith_sub)
        y = negated(&b, y);
    return TCC_EMIT(&b, arith_fma, sum->results[0].type, x, y, z);
}

/* Takes what replaces each operand; a use comes after what it uses. */
static void follow(const tcc_map *replaced, tcc_op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        tcc_value *fma = tcc_map_get(replaced, op->operands[i]);
        if (fma)
            tcc_op_set_operand(op, i, fma);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_map replaced = TCC_MAP(ctx->scratch);
    TCC_VEC(tcc_op *) dead = {0};
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        follow(&replaced, op);
        if (!tcc_op_is_contractible(op))
            continue;
        *tcc_map_at(&replaced, &op->results[0]) = fma_of(op);
        TCC_PUSH(ctx->scratch, &dead, op);
    }
    *changed = dead.len;
    while (dead.len)
        tcc_op_erase(dead.data[--dead.len]);
    return TCC_OK;
}

const tcc_pass tcc_pass_form_fma = {
    "form-fma", "fuse a product and the sum that uses it into one instruction", .run = run};
