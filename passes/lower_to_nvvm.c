/* lower-to-nvvm: from stages and roles to one op per instruction.
 *
 * Before:  tile.ctas { … async.role {…} async.role {…} }     (docs/passes.md shows a whole one)
 * After:   the function is one kernel entry. Its arguments are the kernel's parameters: tensor
 *          maps, addresses, extents, scalars; its attributes say how to launch it: grid, block,
 *          smem_bytes, params, requires (docs/abi.md), args (docs/ir.md).
 *
 * Requires distribute-grid and allocate-shared. Afterwards only target ops are left.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/signature.h"
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
    const int64_t nowhere = 1 << 30; /* a stride that is not used */
    const tcc_type *t = tensor->type;
    tcc_attr dims[TCC_MAX_RANK], strides[TCC_MAX_RANK], boxes[TCC_MAX_RANK];
    for (unsigned i = t->rank; i < rank; i++) {
        dims[i] = tcc_low_int(1);
        boxes[i] = tcc_low_int(box[i]);
        strides[i - 1] = TCC_LOW_LIST(&l->low, tcc_low_int(nowhere));
    }
    for (unsigned i = 0; i < t->rank; i++) {
        unsigned d = t->rank - 1 - i; /* innermost first */
        dims[i] = tcc_attr_of_dim(t->dims[d]);
        boxes[i] = tcc_low_int(box[i]);
        if (i)
            strides[i - 1] = tcc_low_stride_attr(&l->low, t, d);
        if (i && t->strides)
            tcc_low_require_min(&l->low, t->strides[d], 1);
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

static void lower_op(tcc_nvvm_lowering *l, tcc_op *op);

void tcc_nvvm_block(tcc_nvvm_lowering *l, tcc_block *block)
{
    for (tcc_op *op = block->first; op && !l->low.failed; op = op->next) {
        if (op->code == TCC_OP_async_role)
            op = lower_roles(l, op);
        else
            lower_op(l, op);
        if (op == l->loads)
            TCC_EMIT_V(&l->low.b, nvvm_griddepcontrol_launch, NULL);
    }
    tcc_nvvm_end_block(l);
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
            TCC_LOW_REFUSE(&l->low, op, "registers of a role that does not consist of whole warpgroups");
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
    l->role.warps = l->low.warps = warps_of(op);
    l->low.lanes = TCC_WARP_LANES;
    set_registers(l, op);
    tcc_nvvm_block(l, op->regions[0]);
    l->role.first_warp += l->role.warps;
    l->role.barrier += 1 + l->role.warps / TCC_WARPGROUP_WARPS;
}

/* Lets the next step begin when the last role, which loads, has finished its loop, or at once without a loop.
 * Earlier its CTAs would crowd onto multiprocessors that happen to be idle. */
static void lead(tcc_nvvm_lowering *l, const tcc_op *role)
{
    for (const tcc_op *op = role->regions[0]->first; op; op = op->next)
        l->loads = op->n_regions ? op : l->loads;
    if (!l->loads)
        TCC_EMIT_V(&l->low.b, nvvm_griddepcontrol_launch, NULL);
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
    if (l->follows)
        TCC_EMIT_V(&l->low.b, nvvm_griddepcontrol_wait, NULL);
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
    if (l->leads)
        lead(l, last);
    lower_role(l, last);
    if (outer)
        tcc_low_end(&l->low, outer);
    l->role.op = NULL;
    l->low.warps = 0;
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
    l->low.warps = 0;
    tcc_nvvm_block(l, op->regions[0]);
    l->low.warps = role->warps;
    l->role.one = false;
    tcc_low_end(low, one);
    if (warp)
        tcc_low_end(low, warp);
}

void tcc_nvvm_meet(tcc_nvvm_lowering *l, const tcc_op *op)
{
    if (!l->role.op || l->role.one)
        TCC_LOW_REFUSE(&l->low, op, "%s where not all warps of a role run",
                       tcc_op_info_get(op->code)->name);
    else
        tcc_nvvm_barrier(l, tcc_low_c32(&l->low, l->role.barrier), tcc_nvvm_threads(l));
}

static void lower_barrier(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_nvvm_meet(l, op);
}

static void lower_opaque(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_value *a = tcc_value_map_get(l->low.map, TCC_VIEW(async_opaque, op)->a);
    tcc_value_map_set(l->low.map, &op->results[0],
                      TCC_EMIT(&l->low.b, nvvm_opaque, l->low.i32, a));
}

/* Into registers as they are held, or in chunks on their way to a stage. */
static void lower_load(tcc_nvvm_lowering *l, tcc_op *op)
{
    bool in_chunks =
        !op->results[0].type->layout && tcc_has_word("vectors elements", tcc_attr_str(&op->attrs, "copy", ""));
    if (in_chunks)
        tcc_nvvm_load_chunks(l, op);
    else
        tcc_low_op(&l->low, op);
}

static void lower_pin(tcc_nvvm_lowering *l, tcc_op *op)
{
    (void)op;
    TCC_EMIT_V(&l->low.b, nvvm_warp_sync, NULL);
}

/* Its last element: what is computed of the others comes before. */
static void lower_hold(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_parts *parts = tcc_low_parts(&l->low, TCC_VIEW(async_hold, op)->a);
    tcc_value *a = parts->values[parts->n - 1];
    if (a->type->kind == TCC_KIND_vec)
        a = tcc_low_extract(&l->low, a, tcc_type_count(a->type) - 1);
    TCC_EMIT_V(&l->low.b, nvvm_hold, a);
}

/* Of the thread's elements, and then of the warp's. */
static void lower_any(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_parts *parts = tcc_low_parts(low, TCC_VIEW(tile_any, op)->a);
    tcc_value *any = NULL;
    for (size_t p = 0; p < parts->n; p++) {
        tcc_value *part = parts->values[p];
        bool is_vec = part->type->kind == TCC_KIND_vec;
        for (int64_t i = 0; i < (is_vec ? tcc_type_count(part->type) : 1); i++) {
            tcc_value *a = is_vec ? tcc_low_extract(low, part, i) : part;
            any = any ? tcc_low_bin(low, TCC_OP_arith_or, any, a) : a;
        }
    }
    tcc_value_map_set(low->map, &op->results[0], TCC_EMIT(&low->b, nvvm_any, low->i1, any));
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef enum runner { ANYBODY, ALL /* threads of a role */ } runner;

static const struct {
    void (*lower)(tcc_nvvm_lowering *, tcc_op *);
    runner runner;
} lowerings[TCC_OP_COUNT] = {
    [TCC_OP_async_ring] = {tcc_nvvm_ring, ANYBODY},
    [TCC_OP_async_one] = {lower_one, ALL},
    [TCC_OP_async_acquire] = {tcc_nvvm_acquire, ANYBODY},
    [TCC_OP_async_copy] = {tcc_nvvm_copy, ANYBODY},
    [TCC_OP_async_draw] = {tcc_nvvm_draw, ANYBODY},
    [TCC_OP_async_put_word] = {tcc_nvvm_put_word, ANYBODY},
    [TCC_OP_async_read_word] = {tcc_nvvm_read_word, ANYBODY},
    [TCC_OP_async_commit] = {tcc_nvvm_commit, ANYBODY},
    [TCC_OP_async_wait] = {tcc_nvvm_wait, ANYBODY},
    [TCC_OP_async_put] = {tcc_nvvm_put, ALL},
    [TCC_OP_tile_load] = {lower_load, ALL},
    [TCC_OP_tile_mma] = {tcc_nvvm_mma_sync, ALL},
    [TCC_OP_async_read] = {tcc_nvvm_read, ALL},
    [TCC_OP_async_mma] = {tcc_nvvm_mma, ALL},
    [TCC_OP_async_mma_wait] = {tcc_nvvm_mma_wait, ALL},
    [TCC_OP_async_release] = {tcc_nvvm_release, ANYBODY},
    [TCC_OP_async_barrier] = {lower_barrier, ALL},
    [TCC_OP_async_cluster_barrier] = {tcc_nvvm_cluster_barrier, ANYBODY},
    [TCC_OP_async_contribute] = {tcc_nvvm_contribute, ALL},
    [TCC_OP_async_collect] = {tcc_nvvm_collect, ALL},
    [TCC_OP_async_write] = {tcc_nvvm_write, ALL},
    [TCC_OP_async_publish] = {tcc_nvvm_publish, ALL},
    [TCC_OP_async_send] = {tcc_nvvm_send, ALL},
    [TCC_OP_async_send_wait] = {tcc_nvvm_send_wait, ALL},
    [TCC_OP_async_opaque] = {lower_opaque, ALL},
    [TCC_OP_async_pin] = {lower_pin, ALL},
    [TCC_OP_async_hold] = {lower_hold, ALL},
    [TCC_OP_tile_any] = {lower_any, ALL},
};

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

static void lower_op(tcc_nvvm_lowering *l, tcc_op *op)
{
    l->low.b.loc = op->loc;
    if (lowerings[op->code].runner == ALL && !l->low.warps)
        TCC_LOW_REFUSE(&l->low, op, "%s where not all threads of a role run",
                       tcc_op_info_get(op->code)->name);
    else if (!knows_objects(op))
        TCC_LOW_REFUSE(&l->low, op, "%s on an argument", tcc_op_info_get(op->code)->name);
    else if (lowerings[op->code].lower)
        lowerings[op->code].lower(l, op);
    else
        tcc_low_op(&l->low, op);
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
    const tcc_target *target = tcc_func_target(f);
    if (!ctas || tcc_target_vendor(target) != TCC_VENDOR_NVIDIA)
        return TCC_OK;
    tcc_nvvm_lowering l = {.threads = count_threads(ctas), .target = target};
    if (tcc_target_can(target, TCC_CAN_overlap))
        tcc_func_neighbours(f, &l.follows, &l.leads);
    tcc_low_begin(&l.low, ctx, f, &tcc_low_nvvm);
    l.low.b.loc = ctas->loc;
    tcc_low_scalar_args(&l.low);
    l.smem = TCC_EMIT(&l.low.b, nvvm_smem_base, l.low.i32, NULL);
    l.tid = TCC_EMIT(&l.low.b, nvvm_tid, l.low.i32, NULL);
    l.warp = TCC_EMIT(&l.low.b, nvvm_uniform, l.low.i32, tcc_low_div(&l.low, l.tid, 32));
    tcc_nvvm_block(&l, f->body);
    if (!l.low.failed && !l.threads)
        TCC_LOW_REFUSE(&l.low, ctas, "a kernel without a role");
    if (l.low.failed)
        return TCC_ERR_UNSUPPORTED;
    tcc_nvvm_prefetch_maps(&l);
    tcc_attr_set_int(ctx->ir, &f->attrs, "block", l.threads);
    tcc_attr_set_int(ctx->ir, &f->attrs, "min_ctas",
                     1); /* setmaxnreg needs a register cap: C7508 */
    if (l.follows)
        tcc_attr_set_int(ctx->ir, &f->attrs, "overlaps", 1);
    *changed = true;
    return tcc_low_finish(&l.low, tcc_shared_end(f));
}

const tcc_pass tcc_pass_lower_to_nvvm = {
    "lower-to-nvvm", "from stages and roles to one op per instruction", .run = run,
    .requires = TCC_UP_TO(places)};
