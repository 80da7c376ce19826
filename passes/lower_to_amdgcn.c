/* lower-to-amdgcn: from tiles in registers and stages of LDS to one op an instruction.
 *
 * Before:  tile.ctas { … async.role {…} }     (docs/amd.md shows a whole one)
 * After:   the function is one kernel entry. Its arguments are the kernel's parameters: addresses,
 *          extents, scalars; its attributes say how to launch it: grid, block, wave, smem_bytes,
 *          params, requires (docs/abi.md), args (docs/ir.md).
 *
 * Each op is lowered by itself, by the table below. A ring orders nothing: where its stages are put and
 * read, async.barrier stands between, and the checker proves that it does.
 *
 * Requires specialize-warps, distribute-grid and allocate-shared. Afterwards only target ops are left.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/amdgcn.h"
#include "passes/passes.h"

/* ---- values ---------------------------------------------------------------------------------- */

tcc_value *tcc_amdgcn_add(tcc_amdgcn_lowering *l, tcc_value *a, tcc_value *b)
{
    return tcc_low_bin(&l->low, TCC_OP_arith_add, a, b);
}

tcc_value *tcc_amdgcn_mul(tcc_amdgcn_lowering *l, tcc_value *a, tcc_value *b)
{
    return tcc_low_bin(&l->low, TCC_OP_arith_mul, a, b);
}

tcc_value *tcc_amdgcn_and(tcc_amdgcn_lowering *l, tcc_value *a, tcc_value *b)
{
    return tcc_low_bin(&l->low, TCC_OP_arith_and, a, b);
}

tcc_value *tcc_amdgcn_offset(tcc_amdgcn_lowering *l, tcc_value *inside, tcc_value *offset)
{
    return TCC_EMIT(&l->low.b, arith_select, l->low.i32, inside, offset,
                    tcc_low_c32(&l->low, TCC_OUTSIDE));
}

void tcc_amdgcn_pin(tcc_amdgcn_lowering *l)
{
    const tcc_op *last = l->low.b.block->last;
    if (last && last->code == TCC_OP_amdgcn_sched_barrier)
        return;
    tcc_op *op = TCC_EMIT_V(&l->low.b, amdgcn_sched_barrier, NULL);
    tcc_attr_set_int(l->low.ir, &op->attrs, "mask", 0);
}

/* elements * bits / 8, an i64 */
static tcc_value *bytes_of(tcc_lowering *low, tcc_value *elements, unsigned bits)
{
    return bits < 8 ? tcc_low_div(low, elements, 8 / bits) : tcc_low_mul(low, elements, bits / 8);
}

tcc_value *tcc_amdgcn_descriptor(tcc_amdgcn_lowering *l, const tcc_value *tensor, tcc_value *first,
                                 tcc_value *when)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = tensor->type;
    unsigned bits = tcc_scalar_bits(t->elem);
    tcc_value *all = tcc_build_int(&low->b, low->i64, bits == 4); /* half a byte is a byte */
    tcc_value *product = tcc_build_int(&low->b, low->i64, 1);
    for (unsigned d = 0; d < t->rank; d++)
        product = tcc_amdgcn_mul(l, product,
                                 tcc_low_cast(low, low->i64, tcc_low_extent(low, t->dims[d])));
    all = bytes_of(low, tcc_amdgcn_add(l, all, product), bits);
    tcc_value *offset = bytes_of(low, first, bits);
    tcc_value *left = tcc_low_bin(low, TCC_OP_arith_sub, all, offset);
    left = tcc_low_bin_const(low, TCC_OP_arith_min, left, TCC_BUFFER_MAX);
    left = tcc_low_bin_const(low, TCC_OP_arith_max, left, 0);
    const tcc_type *type = tcc_type_get(low->ir, TCC_KIND_buffer, TCC_f32, 0, NULL);
    left = tcc_low_cast(low, low->i32, left);
    if (when)
        left = TCC_EMIT(&low->b, arith_select, low->i32, when, left, tcc_low_c32(low, 0));
    return TCC_EMIT(&low->b, amdgcn_make_buffer, type, tcc_low_pointer(low, tensor), offset, left);
}

/* The launch condition that so many bytes are in reach of a buffer, unless it is known to hold. */
static void require_span(tcc_amdgcn_lowering *l, tcc_attr factors, int64_t bytes)
{
    enum { FACTORS = 1, BYTES = 2, MOST = 3 };
    tcc_lowering *low = &l->low;
    int64_t span = bytes;
    for (size_t i = 0; i < factors.list.n && span <= TCC_BUFFER_MAX; i++) {
        bool known = factors.list.items[i].kind == TCC_ATTR_INT;
        if (!known || __builtin_mul_overflow(span, factors.list.items[i].i, &span))
            span = INT64_MAX;
    }
    if (span <= TCC_BUFFER_MAX)
        return;
    for (size_t i = 0; i < low->requires.len; i++) { /* the longest of all says it */
        const tcc_attr *of = low->requires.data[i].list.items;
        if (strcmp(of[0].s, "span") || !tcc_attr_equal(&of[FACTORS], &factors))
            continue;
        bytes = of[BYTES].i > bytes ? of[BYTES].i : bytes;
        low->requires.data[i] = TCC_LOW_LIST(low, of[0], factors, tcc_low_int(bytes), of[MOST]);
        return;
    }
    tcc_low_require(low, 4,
                    (tcc_attr[]){tcc_low_str(low, "span"), factors, tcc_low_int(bytes),
                                 tcc_low_int(TCC_BUFFER_MAX)});
}

void tcc_amdgcn_require_iterations(tcc_amdgcn_lowering *l, tcc_dim k)
{
    require_span(l, TCC_LOW_LIST(&l->low, tcc_low_dim_attr(&l->low, k)), 2);
}

tcc_value *tcc_amdgcn_stride(tcc_amdgcn_lowering *l, const tcc_value *tensor, int d, int64_t n)
{
    tcc_lowering *low = &l->low;
    if (d < 0)
        return tcc_low_c32(low, 0);
    const tcc_type *t = tensor->type;
    int64_t bits = tcc_scalar_bits(t->elem), bytes = bits < 8 ? 1 : bits / 8;
    tcc_attr factors = tcc_low_stride_attr(low, t, (unsigned)d);
    if (n == TCC_WHOLE) {
        tcc_attr all[TCC_MAX_RANK] = {tcc_low_dim_attr(low, t->dims[d])};
        if (factors.list.n)
            memcpy(all + 1, factors.list.items, factors.list.n * sizeof *all);
        factors = tcc_low_list(low, factors.list.n + 1, all);
    }
    require_span(l, factors, bytes * (n == TCC_WHOLE ? 1 : n));
    bool one;
    tcc_value *stride = tcc_low_cast(low, low->i32, tcc_low_stride(low, t, d, &one));
    return tcc_low_mul(low, stride, bytes);
}

/* ---- what values have become ------------------------------------------------------------- */

tcc_value *tcc_amdgcn_scalar(tcc_amdgcn_lowering *l, const tcc_value *v)
{
    return tcc_value_map_get(l->low.map, (tcc_value *)v);
}

tcc_parts *tcc_amdgcn_set(tcc_amdgcn_lowering *l, const tcc_value *v, size_t n,
                          tcc_value *const *values)
{
    tcc_arena *scratch = l->low.ctx->scratch;
    tcc_parts *parts = TCC_NEW(scratch, tcc_parts);
    *parts = (tcc_parts){.n = n, .values = TCC_NEW_ARRAY(scratch, tcc_value *, n)};
    memcpy(parts->values, values, n * sizeof *values);
    *tcc_map_at(&l->tiles, v) = parts;
    return parts;
}

const tcc_parts *tcc_amdgcn_parts(tcc_amdgcn_lowering *l, const tcc_value *v)
{
    tcc_parts *parts = tcc_map_get(&l->tiles, v);
    if (parts->mending)
        tcc_amdgcn_mend(l, parts);
    return parts;
}

/* ---- control flow -------------------------------------------------------------------------- */

static void lower_block(tcc_amdgcn_lowering *l, tcc_block *block)
{
    for (tcc_op *op = block->first; op && !l->low.failed; op = op->next)
        tcc_amdgcn_op(l, op);
}

static bool is_tile(const tcc_value *v)
{
    return v->type->kind == TCC_KIND_tile;
}

/* The values that an operand becomes, behind those before it. */
static void append(tcc_amdgcn_lowering *l, const tcc_value *v, tcc_value **values, size_t *n)
{
    const tcc_parts *parts = is_tile(v) ? tcc_amdgcn_parts(l, v) : NULL;
    for (size_t i = 0; parts && i < parts->n; i++)
        values[(*n)++] = parts->values[i];
    if (!parts)
        values[(*n)++] = tcc_amdgcn_scalar(l, v);
}

static size_t count_values(tcc_amdgcn_lowering *l, const tcc_value *v)
{
    return is_tile(v) ? tcc_amdgcn_parts(l, v)->n : 1;
}

/* v is, from `from` on, what `like` is. */
static size_t bind(tcc_amdgcn_lowering *l, const tcc_value *v, const tcc_value *like,
                   tcc_value *const *from)
{
    if (!is_tile(v)) {
        tcc_value_map_set(l->low.map, (tcc_value *)v, *from);
        return 1;
    }
    const tcc_parts *of = tcc_amdgcn_parts(l, like);
    tcc_amdgcn_set(l, v, of->n, from)->units = of->units;
    return of->n;
}

/* Whether what a region yields is what its loop carries. */
static bool yields_alike(tcc_amdgcn_lowering *l, const tcc_op *loop, const tcc_op *yield)
{
    for (unsigned i = 0; i < loop->n_results; i++) {
        const tcc_value *a = loop->operands[3 + i], *b = yield->operands[i];
        if (!is_tile(a))
            continue;
        const tcc_parts *x = tcc_amdgcn_parts(l, a), *y = tcc_amdgcn_parts(l, b);
        bool same = x->n == y->n && !memcmp(&x->units, &y->units, sizeof x->units);
        for (size_t p = 0; same && p < x->n; p++)
            same = x->values[p]->type == y->values[p]->type;
        if (!same) {
            TCC_LOW_REFUSE(&l->low, yield, "a loop that carries tiles in several ways");
            return false;
        }
    }
    return true;
}

static void lower_for(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    tcc_arena *scratch = low->ctx->scratch;
    tcc_block *from = op->regions[0];
    size_t n = 0, all = 3;
    for (unsigned i = 3; i < op->n_operands; i++)
        all += count_values(l, op->operands[i]);
    tcc_value **values = TCC_NEW_ARRAY(scratch, tcc_value *, all);
    const tcc_type **types = TCC_NEW_ARRAY(scratch, const tcc_type *, all);
    for (unsigned i = 0; i < op->n_operands; i++)
        append(l, op->operands[i], values, &n);
    for (size_t i = 3; i < n; i++)
        types[i - 3] = values[i]->type;
    tcc_op *loop = tcc_op_create(&low->b, TCC_OP_scf_for, n, values, n - 3, types);
    if (tcc_attr_int(&op->attrs, "at_least_once", 0))
        tcc_attr_set_int(low->ir, &loop->attrs, "at_least_once", 1);
    tcc_value_map_set(low->map, from->args[0],
                      tcc_block_add_arg(loop->regions[0], from->args[0]->type, from->args[0]->name));
    for (size_t i = 3; i < n; i++)
        values[i - 3] = tcc_block_add_arg(loop->regions[0], types[i - 3], NULL);
    for (size_t i = 1, at = 0; i < from->n_args; i++)
        at += bind(l, from->args[i], op->operands[2 + i], values + at);
    tcc_builder outer = low->b;
    low->b = tcc_builder_at_end(loop->regions[0]);
    lower_block(l, from);
    if (low->failed || !yields_alike(l, op, from->last))
        return;
    low->b = outer;
    for (size_t i = 0; i < n - 3; i++)
        values[i] = &loop->results[i];
    for (unsigned i = 0, at = 0; i < op->n_results; i++)
        at += (unsigned)bind(l, &op->results[i], op->operands[3 + i], values + at);
}

static void lower_yield(tcc_amdgcn_lowering *l, tcc_op *op)
{
    size_t n = 0, all = 0;
    for (unsigned i = 0; i < op->n_operands; i++)
        all += count_values(l, op->operands[i]);
    tcc_value **values = TCC_NEW_ARRAY(l->low.ctx->scratch, tcc_value *, all);
    for (unsigned i = 0; i < op->n_operands; i++)
        append(l, op->operands[i], values, &n);
    tcc_op_create(&l->low.b, TCC_OP_scf_yield, n, values, 0, NULL);
}

static void lower_if(tcc_amdgcn_lowering *l, tcc_op *op)
{
    if (op->n_results) {
        TCC_LOW_REFUSE(&l->low, op, "scf.if with results");
        return;
    }
    tcc_value *cond = tcc_amdgcn_scalar(l, op->operands[0]);
    tcc_op *r = tcc_op_create(&l->low.b, TCC_OP_scf_if, 1, &cond, 0, NULL);
    tcc_builder outer = l->low.b;
    for (unsigned i = 0; i < 2; i++) {
        l->low.b = tcc_builder_at_end(r->regions[i]);
        lower_block(l, op->regions[i]);
    }
    l->low.b = outer;
}

static void lower_ctas(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_low_ctas(&l->low, op, TCC_OP_amdgcn_wgid);
    lower_block(l, op->regions[0]);
}

/* Where the lanes of the wave are in a tile. */
static void place_waves(tcc_amdgcn_lowering *l)
{
    tcc_lowering *low = &l->low;
    tcc_waves *w = &l->by;
    l->lds = TCC_EMIT(&low->b, amdgcn_lds_base, low->i32, NULL);
    l->tid = TCC_EMIT(&low->b, amdgcn_tid, low->i32, NULL);
    w->lane = tcc_low_rem(low, l->tid, w->lanes);
    w->row = tcc_low_rem(low, w->lane, TCC_BLOCK);
    w->group = tcc_low_div(low, w->lane, TCC_BLOCK);
    l->wave = TCC_EMIT(&low->b, amdgcn_readfirstlane, low->i32, tcc_low_div(low, l->tid, w->lanes));
    w->first[0] = tcc_low_mul(low, tcc_low_rem(low, l->wave, w->waves[0]), TCC_BLOCK);
    w->first[1] = tcc_low_mul(low, tcc_low_div(low, l->wave, w->waves[0]), TCC_BLOCK);
}

static void lower_role(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_attr waves = tcc_attr_list(&op->attrs, "waves");
    const tcc_op *parent = op->block->parent;
    if (l->by.role || !parent || parent->code != TCC_OP_tile_ctas) {
        TCC_LOW_REFUSE(&l->low, op, "more than one role");
    } else if (waves.list.n != 2 || waves.list.items[0].i * waves.list.items[1].i !=
                                        tcc_attr_int(&op->attrs, "warps", 0)) {
        TCC_LOW_REFUSE(&l->low, op, "a role that does not say how its waves stand");
    } else {
        l->by = (tcc_waves){.role = op,
                            .warps = tcc_attr_int(&op->attrs, "warps", 0),
                            .lanes = tcc_attr_int(&op->attrs, "lanes", 32),
                            .waves = {waves.list.items[0].i, waves.list.items[1].i}};
        l->by.result = tcc_wmma_result(l->target, (unsigned)l->by.lanes);
        l->by.per_lane = TCC_BLOCK * TCC_BLOCK / l->by.lanes;
        place_waves(l);
        lower_block(l, op->regions[0]);
    }
}

/* ---- other ops ----------------------------------------------------------------------------- */

static void lower_barrier(tcc_amdgcn_lowering *l, tcc_op *op)
{
    (void)op;
    tcc_op *wait = TCC_EMIT_V(&l->low.b, amdgcn_waitcnt, NULL);
    tcc_attr_set_int(l->low.ir, &wait->attrs, "ds", 0);
    TCC_EMIT_V(&l->low.b, amdgcn_s_barrier, NULL);
}

static void lower_pin(tcc_amdgcn_lowering *l, tcc_op *op)
{
    (void)op;
    tcc_amdgcn_pin(l);
}

static void lower_dim(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_low_dim(&l->low, op);
}

/* Ops that stay what they are, their operands mapped. */
static void lower_same(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_op_clone(&l->low.b, op, l->low.map);
}

static void lower_nothing(tcc_amdgcn_lowering *l, tcc_op *op)
{
    (void)l, (void)op;
}

/* Rings that a barrier completes order nothing themselves. */
static void lower_ring(tcc_amdgcn_lowering *l, tcc_op *op)
{
    if (strcmp(tcc_attr_str(&op->attrs, "completion", ""), "barrier"))
        TCC_LOW_REFUSE(&l->low, op, "stages that are not completed by a barrier");
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef enum runner { ANYBODY, ROLE } runner;

static const struct {
    void (*lower)(tcc_amdgcn_lowering *, tcc_op *);
    runner runner;
} lowerings[TCC_OP_COUNT] = {
    [TCC_OP_tensor_dim] = {lower_dim, ANYBODY},
    [TCC_OP_scf_for] = {lower_for, ANYBODY},
    [TCC_OP_scf_if] = {lower_if, ANYBODY},
    [TCC_OP_scf_yield] = {lower_yield, ANYBODY},
    [TCC_OP_func_return] = {lower_same, ANYBODY},
    [TCC_OP_tile_ctas] = {lower_ctas, ANYBODY},
    [TCC_OP_tile_load] = {tcc_amdgcn_tile_load, ROLE},
    [TCC_OP_tile_store] = {tcc_amdgcn_tile_store, ROLE},
    [TCC_OP_tile_slice] = {tcc_amdgcn_slice, ROLE},
    [TCC_OP_tile_rotate] = {tcc_amdgcn_rotate, ROLE},
    [TCC_OP_tile_broadcast] = {tcc_amdgcn_broadcast, ROLE},
    [TCC_OP_tile_reduce] = {tcc_amdgcn_reduce, ROLE},
    [TCC_OP_tile_convert] = {tcc_amdgcn_convert, ROLE},
    [TCC_OP_tile_mma] = {tcc_amdgcn_mma, ROLE},
    [TCC_OP_async_role] = {lower_role, ANYBODY},
    [TCC_OP_async_alloc] = {lower_nothing, ANYBODY},
    [TCC_OP_async_ring] = {lower_ring, ANYBODY},
    [TCC_OP_async_acquire] = {lower_nothing, ROLE},
    [TCC_OP_async_put] = {tcc_amdgcn_put, ROLE},
    [TCC_OP_async_commit] = {lower_nothing, ROLE},
    [TCC_OP_async_wait] = {lower_nothing, ROLE},
    [TCC_OP_async_read] = {tcc_amdgcn_read, ROLE},
    [TCC_OP_async_release] = {lower_nothing, ROLE},
    [TCC_OP_async_barrier] = {lower_barrier, ROLE},
    [TCC_OP_async_pin] = {lower_pin, ROLE},
};

void tcc_amdgcn_op(tcc_amdgcn_lowering *l, tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    bool elementwise = info->flags & TCC_ELEMENTWISE || op->code == TCC_OP_arith_const;
    l->low.b.loc = op->loc;
    if (lowerings[op->code].runner == ROLE && !l->by.role)
        TCC_LOW_REFUSE(&l->low, op, "%s outside async.role", info->name);
    else if (lowerings[op->code].lower)
        lowerings[op->code].lower(l, op);
    else if (elementwise && is_tile(&op->results[0]))
        tcc_amdgcn_tile_op(l, op);
    else if (elementwise)
        lower_same(l, op);
    else
        TCC_LOW_REFUSE(&l->low, op, "%s, by lower-to-amdgcn", info->name);
}

/* ---- the pass ------------------------------------------------------------------------------- */

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_op *ctas = tcc_low_find_ctas(f);
    if (!ctas || !tcc_target_can(tcc_target_of(ctx->ir), TCC_CAN_wmma))
        return TCC_OK;
    tcc_amdgcn_lowering l = {.target = tcc_target_of(ctx->ir), .tiles = TCC_MAP(ctx->scratch)};
    tcc_low_begin(&l.low, ctx, f);
    l.low.b.loc = ctas->loc;
    tcc_low_scalar_args(&l.low);
    lower_block(&l, f->body);
    if (!l.low.failed && !l.by.role)
        TCC_LOW_REFUSE(&l.low, ctas, "a kernel without a role");
    if (l.low.failed)
        return TCC_ERR_UNSUPPORTED;
    tcc_attr_set_int(ctx->ir, &f->attrs, "block", l.by.warps * l.by.lanes);
    tcc_attr_set_int(ctx->ir, &f->attrs, "wave", l.by.lanes);
    *changed = true;
    return tcc_low_finish(&l.low, tcc_shared_end(f));
}

const tcc_pass tcc_pass_lower_to_amdgcn = {
    "lower-to-amdgcn", "from tiles in registers and LDS to one op an instruction", .run = run,
    .requires = TCC_UP_TO(places)};
