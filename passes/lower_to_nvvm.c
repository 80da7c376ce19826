/* lower-to-nvvm: from stages and roles to one op an instruction.
 *
 * Before:  tile.ctas { … async.role {…} async.role {…} }     (docs/passes.md shows a whole one)
 * After:   the function is one kernel entry. Its arguments are the kernel's parameters: tensor
 *          maps, addresses, extents, scalars; its attributes say how to launch it: grid, block,
 *          smem_bytes, params, requires (docs/abi.md), args (docs/ir.md).
 *
 * Requires distribute-grid and allocate-shared. Afterwards only target ops are left.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/target.h"
#include "passes/nvvm.h"
#include "passes/passes.h"

/* ---- arithmetic ------------------------------------------------------------------------ */

tcc_value *tcc_nvvm_leads_warpgroup(tcc_nvvm_lowering *l)
{
    tcc_value *thread = tcc_low_rem(&l->low, l->tid, 128);
    return tcc_low_cmp(&l->low, "eq", thread, tcc_low_c32(&l->low, 0));
}

void tcc_nvvm_barrier(tcc_nvvm_lowering *l, tcc_value *id, int64_t threads)
{
    TCC_EMIT_V(&l->low.b, nvvm_barrier, id, tcc_low_c32(&l->low, threads));
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

tcc_value *tcc_nvvm_tensormap(tcc_nvvm_lowering *l, const tcc_value *tensor, unsigned rank,
                              const int64_t *box, int64_t swizzle)
{
    const int64_t nowhere = 1 << 30; /* a stride that nobody takes */
    const tcc_type *t = tensor->type;
    tcc_attr dims[TCC_MAX_RANK], strides[TCC_MAX_RANK], boxes[TCC_MAX_RANK];
    for (unsigned i = t->rank; i < rank; i++) {
        dims[i] = tcc_low_int(1);
        boxes[i] = tcc_low_int(box[i]);
        strides[i - 1] = TCC_LOW_LIST(&l->low, tcc_low_int(nowhere));
    }
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
        tcc_low_list(&l->low, rank, dims), tcc_low_list(&l->low, rank - 1, strides),
        tcc_low_list(&l->low, rank, boxes), tcc_low_int(swizzle),
        tcc_low_str(&l->low, tcc_scalar_name(t->elem)));
    return tcc_low_parameter(&l->low, recipe,
                             tcc_type_get(l->low.ir, TCC_KIND_tensormap, TCC_f32, 0, NULL),
                             tcc_arena_printf(l->low.ctx->scratch, "map_%s", tensor->name));
}

/* ---- control flow -------------------------------------------------------------------------- */

static tcc_op *lower_roles(tcc_nvvm_lowering *l, tcc_op *op);

static void lower_block(tcc_nvvm_lowering *l, tcc_block *block)
{
    for (tcc_op *op = block->first; op && !l->low.failed; op = op->next)
        if (op->code == TCC_OP_async_role)
            op = lower_roles(l, op);
        else
            tcc_nvvm_op(l, op);
    tcc_nvvm_end_block(l);
}

/* What a value of this type becomes; NULL, refused. */
static const tcc_type *lower_type(tcc_nvvm_lowering *l, const tcc_op *op, const tcc_type *t)
{
    if (t->kind == TCC_KIND_tile)
        return tcc_nvvm_held_type(l, op, t);
    if (t->kind != TCC_KIND_scalar)
        TCC_LOW_REFUSE(&l->low, op, "a value of this kind as a result of %s",
                       tcc_op_info_get(op->code)->name);
    return t->kind == TCC_KIND_scalar ? t : NULL;
}

/* An op with these operands and `op`'s results, in their own types. */
static tcc_op *create_like(tcc_nvvm_lowering *l, const tcc_op *op, unsigned n_operands)
{
    tcc_arena *arena = l->low.ir->arena;
    tcc_value **operands = TCC_NEW_ARRAY(arena, tcc_value *, n_operands);
    const tcc_type **types = TCC_NEW_ARRAY(arena, const tcc_type *, op->n_results);
    for (unsigned i = 0; i < n_operands; i++)
        operands[i] = tcc_value_map_get(l->low.map, op->operands[i]);
    for (unsigned i = 0; i < op->n_results; i++)
        if (!(types[i] = lower_type(l, op, op->results[i].type)))
            return NULL;
    tcc_op *r = tcc_op_create(&l->low.b, op->code, n_operands, operands, op->n_results, types);
    for (unsigned i = 0; i < op->n_results; i++)
        tcc_value_map_set(l->low.map, &op->results[i], &r->results[i]);
    return r;
}

static void lower_region(tcc_nvvm_lowering *l, const tcc_op *from, tcc_op *to, unsigned region)
{
    tcc_builder outer = l->low.b;
    l->low.b = tcc_builder_at_end(to->regions[region]);
    lower_block(l, from->regions[region]);
    l->low.b = outer;
}

static void lower_for(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_op *loop = create_like(l, op, op->n_operands);
    if (!loop)
        return;
    if (tcc_attr_int(&op->attrs, "at_least_once", 0))
        tcc_attr_set_int(l->low.ir, &loop->attrs, "at_least_once", 1);
    const tcc_block *from = op->regions[0];
    for (size_t i = 0; i < from->n_args; i++)
        tcc_value_map_set(l->low.map, from->args[i],
                          tcc_block_add_arg(loop->regions[0],
                                            i ? loop->results[i - 1].type : from->args[0]->type,
                                            from->args[i]->name));
    lower_region(l, op, loop, 0);
}

static void lower_if(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_op *r = create_like(l, op, 1);
    for (unsigned i = 0; r && i < 2; i++)
        lower_region(l, op, r, i);
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
    tcc_low_dim(&l->low, op);
}

static void lower_ctas(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_low_ctas(&l->low, op, TCC_OP_nvvm_ctaid);
    lower_block(l, op->regions[0]);
}

/* ---- roles --------------------------------------------------------------------------------- */

static int64_t warps_of(const tcc_op *role)
{
    return tcc_attr_int(&role->attrs, "warps", 0);
}

static bool is_role(const tcc_op *op)
{
    return op && op->code == TCC_OP_async_role;
}

/* Whether the roles from `first` on have no more registers together than they begin with; what
 * changes them are whole warpgroups. */
static bool check_registers(tcc_nvvm_lowering *l, const tcc_op *first)
{
    int64_t launched = tcc_launched_registers(tcc_target_of(l->low.ir), l->threads), all = 0;
    for (const tcc_op *op = first; is_role(op); op = op->next) {
        int64_t registers = tcc_attr_int(&op->attrs, "registers", launched);
        all += registers * warps_of(op) * TCC_WARP_LANES;
        if (registers != launched && warps_of(op) % TCC_WARPGROUP_WARPS) {
            TCC_LOW_REFUSE(&l->low, op, "registers of a role that is no whole warpgroups");
            return false;
        }
    }
    if (all <= launched * l->threads)
        return true;
    TCC_LOW_REFUSE(&l->low, first, "roles with %lld registers together; there are %lld",
                   (long long)all, (long long)(launched * l->threads));
    return false;
}

static void set_registers(tcc_nvvm_lowering *l, const tcc_op *role)
{
    int64_t launched = tcc_launched_registers(tcc_target_of(l->low.ir), l->threads);
    int64_t registers = tcc_attr_int(&role->attrs, "registers", launched);
    if (registers == launched)
        return;
    tcc_op *op = TCC_EMIT_V(&l->low.b, nvvm_setmaxnreg, NULL);
    tcc_attr_set_int(l->low.ir, &op->attrs, "count", registers);
    tcc_attr_set_str(l->low.ir, &op->attrs, "action", registers > launched ? "inc" : "dec");
}

static void lower_role(tcc_nvvm_lowering *l, const tcc_op *op)
{
    l->low.b.loc = op->loc;
    l->role.op = op;
    l->role.warps = warps_of(op);
    set_registers(l, op);
    lower_block(l, op->regions[0]);
    l->role.first_warp += l->role.warps;
    l->role.barrier += 1 + l->role.warps / TCC_WARPGROUP_WARPS;
}

/* The roles from `first` on, which run together; returns the last. */
static tcc_op *lower_roles(tcc_nvvm_lowering *l, tcc_op *first)
{
    tcc_op *last = first;
    int64_t barriers = 1;
    for (tcc_op *op = first; is_role(op); op = op->next) {
        last = op;
        barriers += 1 + warps_of(op) / TCC_WARPGROUP_WARPS;
    }
    l->low.b.loc = first->loc;
    if (l->role.first_warp || !first->block->parent ||
        first->block->parent->code != TCC_OP_tile_ctas)
        TCC_LOW_REFUSE(&l->low, first, "roles that are not in tile.ctas, once");
    else if (barriers > TCC_NAMED_BARRIERS)
        TCC_LOW_REFUSE(&l->low, first, "roles that need %lld named barriers", (long long)barriers);
    else
        check_registers(l, first);
    if (l->low.failed)
        return last;
    tcc_nvvm_end_init(l);
    l->role = (tcc_role){.barrier = 1};
    tcc_op *outer = NULL;
    for (tcc_op *op = first; op != last; op = op->next) {
        int64_t end = l->role.first_warp + warps_of(op);
        tcc_value *mine = tcc_low_cmp(&l->low, "lt", l->warp, tcc_low_c32(&l->low, end));
        tcc_op *test = tcc_low_if(&l->low, mine);
        outer = outer ? outer : test;
        lower_role(l, op);
        l->low.b = tcc_builder_at_end(test->regions[1]);
    }
    lower_role(l, last);
    if (outer)
        tcc_low_end(&l->low, outer);
    l->role.op = NULL;
    return last;
}

/* A role that does nothing else elects its thread once; inside a loop it is cheaper to compare. */
static void lower_one(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_role *role = &l->role;
    if (!role->op) {
        TCC_LOW_REFUSE(low, op, "async.one outside async.role");
        return;
    }
    bool elects = op->block->parent == role->op;
    tcc_op *warp = NULL;
    if (elects && role->warps > 1)
        warp = tcc_low_if(
            low, tcc_low_cmp(low, "eq", l->warp, tcc_low_c32(low, role->first_warp)));
    tcc_value *mine =
        elects ? TCC_EMIT(&low->b, nvvm_elect, low->i1, NULL)
               : tcc_low_cmp(low, "eq", l->tid,
                             tcc_low_c32(low, role->first_warp * TCC_WARP_LANES));
    tcc_op *one = tcc_low_if(low, mine);
    l->role.one = true;
    lower_block(l, op->regions[0]);
    l->role.one = false;
    tcc_low_end(low, one);
    if (warp)
        tcc_low_end(low, warp);
}

static void lower_barrier(tcc_nvvm_lowering *l, tcc_op *op)
{
    if (!l->role.op || l->role.one)
        TCC_LOW_REFUSE(&l->low, op, "async.barrier of what are not all warps of a role");
    else
        tcc_nvvm_barrier(l, tcc_low_c32(&l->low, l->role.barrier), l->role.warps * TCC_WARP_LANES);
}

static void lower_opaque(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_value *a = tcc_value_map_get(l->low.map, TCC_VIEW(async_opaque, op)->a);
    tcc_value_map_set(l->low.map, &op->results[0],
                      TCC_EMIT(&l->low.b, nvvm_opaque, l->low.i32, a));
}

static void lower_pin(tcc_nvvm_lowering *l, tcc_op *op)
{
    (void)op;
    TCC_EMIT_V(&l->low.b, nvvm_warp_sync, NULL);
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef enum runner { ANYBODY, ALL /* threads of a role */ } runner;

static const struct {
    void (*lower)(tcc_nvvm_lowering *, tcc_op *);
    runner runner;
} lowerings[TCC_OP_COUNT] = {
    [TCC_OP_tensor_dim] = {lower_dim, ANYBODY},
    [TCC_OP_scf_for] = {lower_for, ANYBODY},
    [TCC_OP_scf_if] = {lower_if, ANYBODY},
    [TCC_OP_scf_yield] = {lower_same, ANYBODY},
    [TCC_OP_func_return] = {lower_same, ANYBODY},
    [TCC_OP_tile_ctas] = {lower_ctas, ANYBODY},
    [TCC_OP_tile_load] = {tcc_nvvm_load, ALL},
    [TCC_OP_tile_store] = {tcc_nvvm_store, ALL},
    [TCC_OP_tile_slice] = {tcc_nvvm_slice, ALL},
    [TCC_OP_tile_rotate] = {tcc_nvvm_rotate, ALL},
    [TCC_OP_tile_convert] = {tcc_nvvm_convert, ALL},
    [TCC_OP_tile_reduce] = {tcc_nvvm_reduce, ALL},
    [TCC_OP_tile_broadcast] = {tcc_nvvm_broadcast, ALL},
    [TCC_OP_async_alloc] = {lower_nothing, ANYBODY},
    [TCC_OP_async_ring] = {tcc_nvvm_ring, ANYBODY},
    [TCC_OP_async_one] = {lower_one, ALL},
    [TCC_OP_async_acquire] = {tcc_nvvm_acquire, ANYBODY},
    [TCC_OP_async_copy] = {tcc_nvvm_copy, ANYBODY},
    [TCC_OP_async_commit] = {tcc_nvvm_commit, ANYBODY},
    [TCC_OP_async_wait] = {tcc_nvvm_wait, ALL},
    [TCC_OP_async_mma] = {tcc_nvvm_mma, ALL},
    [TCC_OP_async_mma_wait] = {tcc_nvvm_mma_wait, ALL},
    [TCC_OP_async_release] = {tcc_nvvm_release, ALL},
    [TCC_OP_async_barrier] = {lower_barrier, ALL},
    [TCC_OP_async_write] = {tcc_nvvm_write, ALL},
    [TCC_OP_async_publish] = {tcc_nvvm_publish, ALL},
    [TCC_OP_async_send] = {tcc_nvvm_send, ALL},
    [TCC_OP_async_send_wait] = {tcc_nvvm_send_wait, ALL},
    [TCC_OP_async_opaque] = {lower_opaque, ALL},
    [TCC_OP_async_pin] = {lower_pin, ALL},
};

static bool is_tile(const tcc_op *op)
{
    return op->n_results && op->results[0].type->kind == TCC_KIND_tile;
}

/* Whether rings and buffers are what async.ring and async.alloc made. */
static bool knows_objects(const tcc_op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        tcc_kind kind = op->operands[i]->type->kind;
        if ((kind == TCC_KIND_ring || kind == TCC_KIND_smem) && !op->operands[i]->def)
            return false;
    }
    return true;
}

void tcc_nvvm_op(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    l->low.b.loc = op->loc;
    bool elementwise = info->flags & TCC_ELEMENTWISE || op->code == TCC_OP_arith_const;
    if (lowerings[op->code].runner == ALL && (!l->role.op || l->role.one))
        TCC_LOW_REFUSE(&l->low, op, "%s of what are not all threads of a role", info->name);
    else if (!knows_objects(op))
        TCC_LOW_REFUSE(&l->low, op, "%s on an argument", info->name);
    else if (lowerings[op->code].lower)
        lowerings[op->code].lower(l, op);
    else if (elementwise && is_tile(op))
        tcc_nvvm_tile_op(l, op);
    else if (elementwise)
        lower_same(l, op);
    else
        TCC_LOW_REFUSE(&l->low, op, "%s, by lower-to-nvvm", info->name);
}

/* ---- the pass ------------------------------------------------------------------------------- */

static int64_t count_threads(const tcc_op *ctas)
{
    int64_t warps = 0;
    for (const tcc_op *op = ctas->regions[0]->first; op; op = op->next)
        if (is_role(op))
            warps += warps_of(op);
    return warps * TCC_WARP_LANES;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_op *ctas = tcc_low_find_ctas(f);
    int64_t threads = ctas ? count_threads(ctas) : 0;
    if (!threads || !tcc_target_can(tcc_target_of(ctx->ir), TCC_CAN_wgmma))
        return TCC_OK;
    tcc_nvvm_lowering l = {.threads = threads};
    tcc_low_begin(&l.low, ctx, f);
    l.low.b.loc = ctas->loc;
    tcc_low_scalar_args(&l.low);
    l.smem = TCC_EMIT(&l.low.b, nvvm_smem_base, l.low.i32, NULL);
    l.tid = TCC_EMIT(&l.low.b, nvvm_tid, l.low.i32, NULL);
    l.warp = TCC_EMIT(&l.low.b, nvvm_uniform, l.low.i32, tcc_low_div(&l.low, l.tid, 32));
    lower_block(&l, f->body);
    if (l.low.failed)
        return TCC_ERR_UNSUPPORTED;
    tcc_nvvm_prefetch_maps(&l);
    tcc_attr_set_int(ctx->ir, &f->attrs, "block", threads);
    tcc_attr_set_int(ctx->ir, &f->attrs, "min_ctas",
                     1); /* setmaxnreg needs a register cap: C7508 */
    *changed = true;
    return tcc_low_finish(&l.low, tcc_shared_end(f));
}

const tcc_pass tcc_pass_lower_to_nvvm = {
    "lower-to-nvvm", "from stages and roles to one op an instruction", .run = run,
    .requires = TCC_UP_TO(places)};
