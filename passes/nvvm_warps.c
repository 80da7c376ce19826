/* nvvm_warps: how warps hold what they multiply in registers, mma.sync, and outer products of lanes.
 *
 * A tile becomes a vec for each fragment that a warp has of it: of results numbers, of operands the words that the
 * instruction needs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/schedule_key.h"
#include "passes/nvvm.h"

/* By what the warps of a role multiply. */
static tcc_instr instr_of(const tcc_op *role)
{
    const tcc_named_attr *a = tcc_attr_find(&role->attrs, "instr");
    int64_t instr = tcc_target_instr(tcc_func_target(role->block->func));
    if (a)
        tcc_schedule_key_read(&tcc_schedule_keys[TCC_KEY_instr], &a->value, &instr); /* verified */
    return (tcc_instr)instr;
}

/* And in blocks of which shape. */
static tcc_mma_block block_of(const tcc_op *role)
{
    tcc_attr given = tcc_attr_list(&role->attrs, "block");
    tcc_mma_block block = {0, 0};
    if (given.list.n == 2)
        return (tcc_mma_block){given.list.items[0].i, given.list.items[1].i};
    tcc_mma_sync_block(tcc_func_target(role->block->func), instr_of(role), 0, &block);
    return block;
}

const tcc_type *tcc_hold_by_warps(tcc_ir *ir, const tcc_type *t, const tcc_op *role, tcc_hold_as as)
{
    tcc_fragment_id id = tcc_mma_sync_held(tcc_func_target(role->block->func), instr_of(role), block_of(role), as,
                                           tcc_scalar_bits(t->elem));
    int64_t line = as == TCC_AS_RESULT ? tcc_attr_int(&role->attrs, "line", 0) : 0;
    const tcc_type *in_lines = line ? tcc_hold_in_lines(ir, t, role, line) : NULL;
    return in_lines ? in_lines : tcc_hold_in_blocks(ir, t, role, as, id, false);
}

/* Whether tiles with a fragment are operands, whose words matrix instructions multiply. */
static bool is_of_operands(const tcc_target *target, const tcc_type *tile)
{
    tcc_fragment_id id = tcc_layout_fragment(tile);
    unsigned bits = tcc_scalar_bits(tile->elem);
    return tcc_mma_sync_with(target, TCC_AS_A, bits, id) || tcc_mma_sync_with(target, TCC_AS_B, bits, id);
}

void tcc_nvvm_cut_in_fragments(tcc_nvvm_lowering *l, const tcc_type *tile, tcc_held *held)
{
    enum { WORD_BITS = 32 };
    held->in_one = held->spread.n_fragment;
    held->n = (size_t)(held->spread.n_registers / held->in_one);
    held->each = is_of_operands(l->target, tile)
                     ? tcc_low_vec(&l->low, TCC_i32, held->in_one * tcc_scalar_bits(tile->elem) / WORD_BITS)
                     : tcc_low_vec(&l->low, tile->elem, held->in_one);
}

static tcc_value *multiply(tcc_nvvm_lowering *l, const tcc_op *op, tcc_value *a, tcc_value *b, tcc_value *c)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    tcc_value *r = TCC_EMIT(&l->low.b, nvvm_mma, c->type, a, b, c);
    tcc_attrs *attrs = &r->def->attrs;
    tcc_attr_set_str(l->low.ir, attrs, "a", tcc_scalar_name(o->a->type->elem));
    tcc_attr_set_str(l->low.ir, attrs, "b", tcc_scalar_name(o->b->type->elem));
    tcc_attr_set_str(l->low.ir, attrs, "acc", tcc_scalar_name(o->c->type->elem));
    return r;
}

/* ---- outer products ---------------------------------------------------------------------- */

/* Each of `rows` numbers `cols` times, or all of `cols` numbers `rows` times: as a fragment of D has its elements. */
static tcc_value *spread_rows(tcc_lowering *low, tcc_value *a, int64_t rows, int64_t cols)
{
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)(rows * cols));
    for (int64_t i = 0; i < rows * cols; i++)
        parts[i] = i % cols ? parts[i - 1] : tcc_low_extract(low, a, i / cols);
    return tcc_low_pack(low, a->type->elem, (size_t)(rows * cols), parts, rows * cols);
}

static tcc_value *spread_cols(tcc_lowering *low, tcc_value *b, int64_t rows, int64_t cols)
{
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)rows);
    for (int64_t i = 0; i < rows; i++)
        parts[i] = b;
    return tcc_low_pack(low, b->type->elem, (size_t)rows, parts, rows * cols);
}

static tcc_value *multiply_by_lanes(tcc_nvvm_lowering *l, const tcc_op *op, tcc_value *a, tcc_value *b,
                                    tcc_value *c)
{
    (void)op;
    return TCC_EMIT(&l->low.b, arith_fma, c->type, a, b, c);
}

/* Of n rows or columns of fragments those that a step multiplies, as D's have their elements, of this type, so that one
 * op multiplies all of a fragment. */
static void spread(tcc_lowering *low, tcc_value **of, size_t n, size_t steps, tcc_scalar elem, int64_t rows,
                   int64_t cols, bool is_a)
{
    const tcc_type *type = tcc_low_vec(low, elem, is_a ? rows : cols);
    for (size_t i = 0; i < n; i++)
        of[i * steps] = (is_a ? spread_rows : spread_cols)(low, tcc_low_cast(low, type, of[i * steps]), rows, cols);
}

static tcc_value **copy_of(tcc_lowering *low, tcc_value *const *values, size_t n)
{
    tcc_value **copy = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, n);
    memcpy(copy, values, n * sizeof *copy);
    return copy;
}

/* ---- tile.mma ------------------------------------------------------------------------------ */

/* Why no instruction multiplies so; NULL when one does. */
static const char *why_not(tcc_nvvm_lowering *l, const tcc_op *op)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    tcc_attr instr = tcc_attr_list(&op->attrs, "instr");
    const tcc_mma_sync *mma = tcc_mma_sync_of_block(l->target, instr_of(l->role.op), block_of(l->role.op),
                                                    o->a->type->elem, o->b->type->elem, o->c->type->elem);
    if (tcc_mma_accumulate(op))
        return "tile.mma that may not add";
    if (!mma || instr.list.n != 3 || instr.list.items[0].i != mma->m || instr.list.items[1].i != mma->n ||
        instr.list.items[2].i != mma->k)
        return "tile.mma by this instruction of such elements";
    return tcc_mma_is_held(l->low.ir, op, l->role.op, tcc_hold_by_warps)
               ? NULL
               : "tile.mma of tiles without the instruction's layout";
}

void tcc_nvvm_mma_sync(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    const char *why = why_not(l, op);
    tcc_held a, b, c;
    if (why) {
        TCC_LOW_REFUSE(low, op, "%s", why);
        return;
    }
    if (!tcc_low_held(low, op, o->a->type, &a) || !tcc_low_held(low, op, o->b->type, &b) ||
        !tcc_low_held(low, op, o->c->type, &c))
        return;
    bool opaque = tcc_layout_is_opaque(o->c->type);
    if (opaque && !tcc_nvvm_wmma_is_loaded(l, op)) {
        TCC_LOW_REFUSE(low, op, "tile.mma by wmma of operands that were not loaded for it");
        return;
    }
    size_t steps = (size_t)(o->a->type->dims[1].size / tcc_attr_list(&op->attrs, "instr").list.items[2].i);
    tcc_value **of_a = copy_of(low, tcc_low_parts(low, o->a)->values, a.n);
    tcc_value **of_b = copy_of(low, tcc_low_parts(low, o->b)->values, b.n);
    tcc_value **acc = copy_of(low, tcc_low_parts(low, o->c)->values, c.n);
    size_t rows = a.n / steps, cols = b.n / steps;
    bool by_lanes = instr_of(l->role.op) == TCC_INSTR_FMA;
    tcc_value *(*multiply_one)(tcc_nvvm_lowering *l, const tcc_op *mma, tcc_value *a, tcc_value *b, tcc_value *c) =
        opaque ? tcc_nvvm_wmma_multiply : by_lanes ? multiply_by_lanes : multiply;
    for (size_t s = 0; s < steps; s++) {
        if (by_lanes) {
            spread(low, of_a + s, rows, steps, o->c->type->elem, a.in_one, b.in_one, true);
            spread(low, of_b + s, cols, steps, o->c->type->elem, a.in_one, b.in_one, false);
        }
        for (size_t j = 0; j < cols; j++)
            for (size_t i = 0; i < rows; i++)
                acc[i * cols + j] =
                    multiply_one(l, op, of_a[i * steps + s], of_b[j * steps + s], acc[i * cols + j]);
    }
    tcc_low_set(low, &op->results[0], c.n, acc);
}
