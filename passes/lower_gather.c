/* lower_gather: loads of elements at coordinates of their own.
 *
 * Each is a load by itself, unless a neighbour has the same coordinates (gather_groups.c), under the condition that all
 * its coordinates are inside the tensor. Coordinates that are the same for all elements determine where the loads begin;
 * they are tested once.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/lowering.h"

static tcc_value *both(tcc_lowering *l, tcc_value *a, tcc_value *b)
{
    return a ? tcc_low_bin(l, TCC_OP_arith_and, a, b) : b;
}

/* Whether 0 <= at < extent. No matter how it was computed: it may have wrapped around. */
static tcc_value *is_inside(tcc_lowering *l, tcc_value *at, tcc_dim d)
{
    tcc_value *not_before = tcc_low_cmp(l, "ge", at, tcc_low_c32(l, 0));
    return both(l, not_before, tcc_low_cmp(l, "lt", at, tcc_low_extent(l, d)));
}

/* Whether each thread has the coordinates of those elements that it loads. */
static bool are_held_alike(tcc_lowering *l, const tcc_op *op)
{
    const tcc_type *r = op->results[0].type;
    for (unsigned i = 1; i < op->n_operands; i++) {
        const tcc_type *c = op->operands[i]->type;
        if (c->kind != TCC_KIND_tile || c == tcc_type_with_elem(l->ir, r, TCC_i32))
            continue;
        TCC_LOW_REFUSE(l, op, "tile.gather at coordinates that other threads have");
        return false;
    }
    return true;
}

/* Splits coordinates into those of all elements, and each element's. Whether the former are inside; NULL: there are
 * none. */
static tcc_value *split_coordinates(tcc_lowering *l, tcc_gather *g)
{
    const tcc_type *tensor = g->tensor->type;
    tcc_value *all_inside = NULL;
    for (unsigned d = 0; d < tensor->rank; d++) {
        const tcc_value *of = g->op->operands[1 + d];
        g->varies[d] = of->type->kind == TCC_KIND_tile;
        if (g->varies[d])
            continue;
        tcc_value *at = tcc_low_scalar(l, of), *inside = is_inside(l, at, tensor->dims[d]);
        g->first[d] = TCC_EMIT(&l->b, arith_select, l->i32, inside, at, tcc_low_c32(l, 0));
        all_inside = both(l, all_inside, inside);
    }
    return all_inside;
}

/* Register i. */
static tcc_value *load_register(tcc_lowering *l, const tcc_gather *g, const tcc_held *held, tcc_value *inside,
                                int64_t i)
{
    tcc_value *offset = g->origin;
    for (unsigned d = 0; d < g->tensor->type->rank; d++) {
        const tcc_value *of = g->op->operands[1 + d];
        if (!g->varies[d])
            continue;
        tcc_value *at = tcc_low_extract(l, tcc_low_unpacked(l, of, (size_t)(i / held->in_one)), i % held->in_one);
        inside = both(l, inside, is_inside(l, at, g->tensor->type->dims[d]));
        at = tcc_low_bin(l, TCC_OP_arith_mul, tcc_low_cast(l, g->stride[d]->type, at), g->stride[d]);
        offset = tcc_low_bin(l, TCC_OP_arith_add, offset, at);
    }
    return l->vendor->load_one(l, g, offset, inside ? inside : tcc_build_int(&l->b, l->i1, 1));
}

void tcc_low_gather(tcc_lowering *l, tcc_op *op)
{
    const tcc_value *tile = &op->results[0];
    tcc_gather g = {.op = op, .tensor = TCC_VIEW(tile_gather, op)->tensor};
    tcc_held held;
    if (!tcc_low_held(l, op, tile->type, &held) || !are_held_alike(l, op) || !tcc_low_is_ordered(l, op))
        return;
    tcc_value *inside = split_coordinates(l, &g);
    l->vendor->locate(l, &g);
    tcc_value **values = TCC_NEW_ARRAY(l->ctx->scratch, tcc_value *, held.spread.n_registers);
    int64_t run = tcc_low_gather_run(op);
    for (int64_t i = 0; i < held.spread.n_registers; i++) {
        int64_t before = tcc_low_gather_before(&held.spread, i, run);
        values[i] = before < 0 ? load_register(l, &g, &held, inside, i) : values[before];
    }
    tcc_low_set_registers(l, tile, &held, values);
}
