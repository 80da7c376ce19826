/* lower-to-nvvm: from stages and roles to one op an instruction.
 *
 * Before:  tile.grid { … async.roles {…} {…} }     (docs/passes.md shows a whole one)
 * After:   the function is one kernel entry. Its arguments are the kernel's parameters: tensor
 *          maps, addresses, extents, scalars; its attributes say how to launch it: grid, block,
 *          smem_bytes, params, requires (docs/abi.md), args (docs/ir.md).
 *
 * Warps 0 … 4 * warpgroups - 1 are the consumers, the producer comes behind them.
 *
 * Requires specialize-warps. Afterwards only target ops are left.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/nvvm.h"
#include "passes/passes.h"

/* ---- arithmetic ------------------------------------------------------------------------ */

tcc_value *tcc_nvvm_leads_warpgroup(tcc_nvvm_lowering *l)
{
    tcc_value *thread = tcc_low_rem(&l->low, l->tid, 128);
    return tcc_low_cmp(&l->low, "eq", thread, tcc_low_c32(&l->low, 0));
}

void tcc_nvvm_barrier(tcc_nvvm_lowering *l, int64_t id, int64_t threads)
{
    tcc_value *number = tcc_low_c32(&l->low, id);
    TCC_EMIT_V(&l->low.b, nvvm_barrier, number, tcc_low_c32(&l->low, threads));
}

tcc_value *tcc_nvvm_swizzle(tcc_nvvm_lowering *l, tcc_value *byte, int64_t swizzle)
{
    if (!swizzle)
        return byte;
    int64_t chunks = swizzle - 16; /* 0x70, 0x30, 0x10: which 16-byte chunk of the row */
    tcc_value *row = tcc_low_bin_const(&l->low, TCC_OP_arith_shr, byte, 3);
    return tcc_low_bin(&l->low, TCC_OP_arith_xor, byte,
                       tcc_low_bin_const(&l->low, TCC_OP_arith_and, row, chunks));
}

tcc_value *tcc_nvvm_tensormap(tcc_nvvm_lowering *l, const tcc_value *tensor, const int64_t *box,
                              int64_t swizzle)
{
    const tcc_type *t = tensor->type;
    tcc_attr dims[TCC_MAX_RANK], strides[TCC_MAX_RANK], boxes[TCC_MAX_RANK];
    for (unsigned i = 0; i < t->rank; i++) {
        unsigned d = t->rank - 1 - i; /* innermost first */
        dims[i] = tcc_low_dim_attr(&l->low, t->dims[d]);
        boxes[i] = tcc_low_int(box[i]);
        if (i)
            strides[i - 1] = tcc_low_stride_attr(&l->low, t, d);
    }
    tcc_low_require_alignment(&l->low, tensor, 16);
    tcc_attr recipe = TCC_LOW_LIST(
        &l->low, tcc_low_str(&l->low, "tensor_map"), tcc_low_str(&l->low, tensor->name),
        tcc_low_list(&l->low, t->rank, dims), tcc_low_list(&l->low, t->rank - 1, strides),
        tcc_low_list(&l->low, t->rank, boxes), tcc_low_int(swizzle),
        tcc_low_str(&l->low, tcc_scalar_name(t->elem)));
    return tcc_low_parameter(&l->low, recipe,
                             tcc_type_get(l->low.ir, TCC_KIND_tensormap, TCC_f32, 0, NULL),
                             tcc_arena_printf(l->low.ctx->scratch, "map_%s", tensor->name));
}

/* ---- roles and loops ----------------------------------------------------------------------- */

static void lower_block(tcc_nvvm_lowering *l, tcc_block *block)
{
    for (tcc_op *op = block->first; op; op = op->next) {
        if (tcc_low_tile_of(op)) {
            tcc_nvvm_epilogue(l, op);
            return;
        }
        if (op->code == TCC_OP_async_acquire)
            op = tcc_nvvm_copies(l, op);
        else
            tcc_nvvm_op(l, op);
    }
}

/* The first value of a loop-carried tile: a constant, each accumulator of which is defined in front
 * of the loop. Without a definition there ptxas up to CUDA 12.8 serialises the products (C7515). */
static tcc_value *lower_carried(tcc_nvvm_lowering *l, tcc_value *v)
{
    if (v->type->kind != TCC_KIND_tile || !v->def || v->def->code != TCC_OP_arith_const)
        return tcc_value_map_get(l->low.map, v);
    tcc_value *zeros = TCC_EMIT(&l->low.b, arith_const, tcc_nvvm_accumulator_type(l), NULL);
    zeros->def->attrs = v->def->attrs;
    return zeros;
}

static void lower_for(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_value **operands = TCC_NEW_ARRAY(l->low.ir->arena, tcc_value *, op->n_operands);
    const tcc_type **types = TCC_NEW_ARRAY(l->low.ir->arena, const tcc_type *, op->n_results);
    for (unsigned i = 0; i < op->n_operands; i++)
        operands[i] = i < 3 ? tcc_value_map_get(l->low.map, op->operands[i])
                            : lower_carried(l, op->operands[i]);
    for (unsigned i = 0; i < op->n_results; i++)
        types[i] = operands[3 + i]->type;
    tcc_op *loop =
        tcc_op_create(&l->low.b, TCC_OP_scf_for, op->n_operands, operands, op->n_results, types);
    if (tcc_attr_int(&op->attrs, "at_least_once", 0))
        tcc_attr_set_int(l->low.ir, &loop->attrs, "at_least_once", 1);
    const tcc_block *from = op->regions[0];
    for (size_t i = 0; i < from->n_args; i++)
        tcc_value_map_set(l->low.map, from->args[i],
                          tcc_block_add_arg(loop->regions[0], i ? types[i - 1] : l->low.i32,
                                            from->args[i]->name));
    for (unsigned i = 0; i < op->n_results; i++)
        tcc_value_map_set(l->low.map, &op->results[i], &loop->results[i]);
    tcc_builder outer = l->low.b;
    l->low.b = tcc_builder_at_end(loop->regions[0]);
    lower_block(l, op->regions[0]);
    l->low.b = outer;
}

static void lower_if(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_op *then = tcc_low_if(&l->low, tcc_value_map_get(l->low.map, TCC_VIEW(scf_if, op)->cond));
    lower_block(l, op->regions[0]);
    l->low.b = tcc_builder_at_end(then->regions[1]);
    lower_block(l, op->regions[1]);
    tcc_low_end(&l->low, then);
}

static void set_registers(tcc_nvvm_lowering *l, int64_t count, const char *action)
{
    tcc_op *op = TCC_EMIT_V(&l->low.b, nvvm_setmaxnreg, NULL);
    tcc_attr_set_int(l->low.ir, &op->attrs, "count", count);
    tcc_attr_set_str(l->low.ir, &op->attrs, "action", action);
}

static void lower_producer(tcc_nvvm_lowering *l, tcc_block *block)
{
    l->role = TCC_ROLE_PRODUCER;
    if (!l->by_tma) {
        lower_block(l, block);
        return;
    }
    tcc_op *warp = NULL;
    if (l->low.s.producer == TCC_PRODUCER_WARPGROUP)
        warp = tcc_low_if(&l->low, tcc_low_cmp(&l->low, "eq", l->warp,
                                               tcc_low_c32(&l->low, 4 * l->low.s.warpgroups)));
    tcc_op *one = tcc_low_if(&l->low, TCC_EMIT(&l->low.b, nvvm_elect, l->low.i1, NULL));
    lower_block(l, block);
    tcc_low_end(&l->low, one);
    if (warp)
        tcc_low_end(&l->low, warp);
}

static void lower_roles(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_nvvm_init_ring(l);
    if (l->low.s.producer == TCC_PRODUCER_NONE) {
        l->role = TCC_ROLE_CONSUMER;
        lower_block(l, op->regions[1]);
        return;
    }
    int64_t give, take = tcc_schedule_registers(&l->low.s, tcc_target_of(l->low.ir), &give);
    tcc_value *consumer =
        tcc_low_cmp(&l->low, "lt", l->warp, tcc_low_c32(&l->low, 4 * l->low.s.warpgroups));
    tcc_op *roles = tcc_low_if(&l->low, consumer);
    l->role = TCC_ROLE_CONSUMER;
    if (give)
        set_registers(l, take, "inc");
    lower_block(l, op->regions[1]);
    l->low.b = tcc_builder_at_end(roles->regions[1]);
    l->low.b.loc = op->loc;
    if (give)
        set_registers(l, give, "dec");
    lower_producer(l, op->regions[0]);
    tcc_low_end(&l->low, roles);
    l->role = TCC_ROLE_CTA;
}

/* Ops that stay what they are, their operands mapped. */
static void lower_same(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_op_clone(&l->low.b, op, l->low.map);
}

static void lower_nothing(tcc_nvvm_lowering *l, tcc_op *op)
{
    (void)l, (void)op;
}

static void lower_dim(tcc_nvvm_lowering *l, tcc_op *op)
{
    const char *name = tcc_attr_str(&op->attrs, "name", "");
    tcc_value_map_set(l->low.map, &op->results[0], tcc_low_extent(&l->low, (tcc_dim){name, 0}));
}

static void lower_tile_grid(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_low_grid(&l->low, op, TCC_OP_nvvm_ctaid);
    lower_block(l, op->regions[0]);
}

static void lower_wait(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_nvvm_wait(l, op);
}
static void lower_release(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_nvvm_release(l, op);
}
static void lower_mma(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_nvvm_mma(l, op);
}
static void lower_mma_wait(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_nvvm_mma_wait(l, op);
}

void tcc_nvvm_op(tcc_nvvm_lowering *l, tcc_op *op)
{
    static void (*const lowerings[TCC_OP_COUNT])(tcc_nvvm_lowering *, tcc_op *) = {
        [TCC_OP_tile_grid] = lower_tile_grid,   [TCC_OP_tensor_dim] = lower_dim,
        [TCC_OP_scf_for] = lower_for,           [TCC_OP_scf_if] = lower_if,
        [TCC_OP_async_alloc] = lower_nothing,   [TCC_OP_async_ring] = lower_nothing,
        [TCC_OP_async_roles] = lower_roles,     [TCC_OP_async_wait] = lower_wait,
        [TCC_OP_async_mma] = lower_mma,         [TCC_OP_async_mma_wait] = lower_mma_wait,
        [TCC_OP_async_release] = lower_release,
    };
    l->low.b.loc = op->loc;
    bool is_tile_const =
        op->code == TCC_OP_arith_const && op->results[0].type->kind == TCC_KIND_tile;
    if (is_tile_const)
        return; /* the start of a sum (lower_carried) or of the epilogue, which makes its own */
    (lowerings[op->code] ? lowerings[op->code] : lower_same)(l, op);
}

/* ---- the pass ------------------------------------------------------------------------------- */

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_op *grid = tcc_low_find_grid(f);
    const char *variant = tcc_attr_str(&f->attrs, "variant", NULL);
    tcc_schedule s = tcc_schedule_of(f);
    if (!grid || !variant || s.waves || !tcc_schedule_is_valid(&s))
        return TCC_OK;
    tcc_nvvm_lowering l = {.aligned = !strcmp(variant, "tma")};
    tcc_low_begin(&l.low, ctx, f);
    tcc_nvvm_plan_memory(&l, grid);
    l.low.b.loc = grid->loc;
    tcc_low_scalar_args(&l.low);
    l.smem = TCC_EMIT(&l.low.b, nvvm_smem_base, l.low.i32, NULL);
    l.tid = TCC_EMIT(&l.low.b, nvvm_tid, l.low.i32, NULL);
    l.warp = TCC_EMIT(&l.low.b, nvvm_uniform, l.low.i32, tcc_low_div(&l.low, l.tid, 32));
    lower_block(&l, f->body);
    tcc_nvvm_prefetch_maps(&l);
    tcc_attr_set_int(ctx->ir, &f->attrs, "block", tcc_schedule_threads(&s));
    tcc_attr_set_int(ctx->ir, &f->attrs, "min_ctas",
                     1); /* setmaxnreg needs a register cap: C7508 */
    tcc_low_finish(&l.low, l.smem_bytes);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_lower_to_nvvm = {"lower-to-nvvm",
                                         "from stages and roles to one op an instruction", run};
