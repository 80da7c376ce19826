/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/loops.h"

#include <string.h>

#include "passes/arith.h"

bool tcc_counts_iterations(const tcc_op *loop)
{
    int64_t lo, step;
    return tcc_value_is_int(TCC_VIEW(scf_for, loop)->lo, &lo) && lo == 0 &&
           tcc_value_is_int(TCC_VIEW(scf_for, loop)->step, &step) && step == 1;
}

bool tcc_is_loop(const tcc_op *op)
{
    return op && op->code == TCC_OP_scf_for;
}

bool tcc_is_invariant(const tcc_value *v, const tcc_op *loop)
{
    const tcc_block *body = loop->regions[0];
    return v->def ? !tcc_ancestor_in(v->def, body) : v->block != body;
}

bool tcc_has_iteration_number(const tcc_block *block)
{
    const tcc_op *op = block->parent;
    for (; tcc_is_loop(op) && tcc_is_loop(op->block->parent); op = op->block->parent)
        for (unsigned i = 0; i < 3; i++)
            if (!tcc_is_invariant(op->operands[i], op->block->parent))
                return false;
    return !op || op->code != TCC_OP_scf_if;
}

tcc_op *tcc_outermost(tcc_op *op)
{
    for (tcc_op *parent; (parent = op->block->parent) && parent->code != TCC_OP_tile_grid &&
                         parent->code != TCC_OP_tile_ctas;)
        op = parent;
    return op;
}

tcc_op *tcc_first_role(tcc_op *role)
{
    while (role->prev && role->prev->code == TCC_OP_async_role)
        role = role->prev;
    return role;
}

tcc_value *tcc_iteration_count(tcc_builder *b, const tcc_op *loop)
{
    const tcc_scf_for_operands *of = TCC_VIEW(scf_for, loop);
    tcc_value *n = of->hi;
    if (!tcc_counts_iterations(loop)) {
        n = TCC_EMIT(b, arith_sub, n->type, n, of->lo);
        n = tcc_arith_add(b, TCC_EMIT(b, arith_add, n->type, n, of->step), -1);
        n = TCC_EMIT(b, arith_div, n->type, n, of->step);
    }
    if (!tcc_attr_int(&loop->attrs, "at_least_once", 0))
        n = TCC_EMIT(b, arith_max, n->type, n, tcc_build_i32(b, 0));
    return n;
}

/* How many iterations a loop has made so far in the iterations of the loops around it; NULL if
 * there are none. */
static tcc_value *iterations_before(tcc_op *loop)
{
    tcc_op *outer = loop->block->parent;
    if (!tcc_is_loop(outer))
        return NULL;
    tcc_builder b = tcc_builder_before(loop);
    b.loc = loop->loc;
    tcc_value *number = tcc_iteration_number(&b, outer);
    return TCC_EMIT(&b, arith_mul, number->type, number, tcc_iteration_count(&b, loop));
}

tcc_value *tcc_iteration_number(tcc_builder *b, tcc_op *loop)
{
    if (!tcc_is_loop(loop))
        return tcc_build_i32(b, 0);
    const tcc_scf_for_operands *of = TCC_VIEW(scf_for, loop);
    tcc_value *before = iterations_before(loop), *i = loop->regions[0]->args[0];
    if (!tcc_counts_iterations(loop)) {
        tcc_value *from_first = TCC_EMIT(b, arith_sub, i->type, i, of->lo);
        i = TCC_EMIT(b, arith_div, i->type, from_first, of->step);
    }
    return before ? TCC_EMIT(b, arith_add, i->type, before, i) : i;
}

tcc_op *tcc_carry(tcc_op *loop, tcc_value *init)
{
    tcc_builder b = tcc_builder_before(loop);
    tcc_arena *arena = b.func->ir->arena;
    unsigned n = loop->n_results;
    tcc_value **operands = TCC_NEW_ARRAY(arena, tcc_value *, 4 + n);
    const tcc_type **types = TCC_NEW_ARRAY(arena, const tcc_type *, 1 + n);
    memcpy(operands, loop->operands, (3 + n) * sizeof *operands);
    for (unsigned i = 0; i < n; i++)
        types[i] = loop->results[i].type;
    operands[3 + n] = init;
    types[n] = init->type;
    b.loc = loop->loc;
    tcc_op *r = tcc_op_create(&b, TCC_OP_scf_for, 4 + n, operands, 1 + n, types);
    r->attrs = loop->attrs;
    tcc_block *body = loop->regions[0], *empty = r->regions[0];
    r->regions[0] = body;
    body->parent = r;
    loop->regions[0] = empty;
    empty->parent = loop;
    for (unsigned i = 0; i < n; i++)
        tcc_replace_uses(&loop->results[i], &r->results[i]);
    tcc_op_erase(loop);
    tcc_block_add_arg(body, init->type, NULL);
    tcc_carry_next(r, body->args[1 + n]);
    return r;
}

void tcc_carry_next(tcc_op *loop, tcc_value *next)
{
    tcc_op *yield = loop->regions[0]->last;
    tcc_builder b = tcc_builder_before(yield);
    unsigned n = loop->n_results;
    tcc_value **operands = TCC_NEW_ARRAY(b.func->ir->arena, tcc_value *, n);
    memcpy(operands, yield->operands, (n - 1) * sizeof *operands);
    operands[n - 1] = next;
    b.loc = yield->loc;
    tcc_op_create(&b, TCC_OP_scf_yield, n, operands, 0, NULL);
    tcc_op_erase(yield);
}
