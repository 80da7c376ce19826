/* lower-to-amdgcn: from tiles in registers and stages of LDS to one op an instruction.
 *
 * Before:  tile.ctas { … async.role {…} }     (docs/amd.md shows a whole one)
 * After:   the function is one kernel entry. Its arguments are the kernel's parameters: addresses,
 *          extents, scalars; its attributes say how to launch it: grid, block, wave, smem_bytes,
 *          params, requires (docs/abi.md), args (docs/ir.md).
 *
 * Each op is lowered by itself, by the table below. A ring orders nothing: an async.barrier must
 * separate puts and reads of its stages, and the checker proves that it does.
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

/* From a tensor's first element to its last. */
static tcc_value *elements_of(tcc_amdgcn_lowering *l, const tcc_type *t)
{
    tcc_lowering *low = &l->low;
    tcc_value *n = tcc_build_int(&low->b, low->i64, 1), *any = n;
    for (unsigned d = 0; d < t->rank; d++) {
        bool one, last = d + 1 == t->rank && !t->strides;
        tcc_value *extent = tcc_low_cast(low, low->i64, last ? tcc_low_row(low, t) : tcc_low_extent(low, t->dims[d]));
        if (!t->strides) {
            n = tcc_amdgcn_mul(l, n, extent);
            continue;
        }
        tcc_value *further = tcc_low_add(low, extent, -1);
        further = tcc_low_bin(low, TCC_OP_arith_mul, further, tcc_low_stride(low, t, (int)d, &one));
        n = tcc_amdgcn_add(l, n, further);
        any = tcc_amdgcn_mul(l, any, tcc_low_bin_const(low, TCC_OP_arith_min, extent, 1));
    }
    return t->strides ? tcc_amdgcn_mul(l, n, any) : n;
}

tcc_value *tcc_amdgcn_descriptor(tcc_amdgcn_lowering *l, const tcc_value *tensor, tcc_value *first,
                                 tcc_value *when)
{
    tcc_lowering *low = &l->low;
    const tcc_type *t = tensor->type;
    unsigned bits = tcc_scalar_bits(t->elem);
    tcc_value *all = tcc_build_int(&low->b, low->i64, bits == 4); /* half a byte is a byte */
    all = bytes_of(low, tcc_amdgcn_add(l, all, elements_of(l, t)), bits);
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

/* The launch condition that this many bytes are in reach of a buffer, unless it is known to
 * hold. */
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
    require_span(l, TCC_LOW_LIST(&l->low, tcc_attr_of_dim(k)), 2);
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
        tcc_attr all[TCC_MAX_RANK] = {tcc_attr_of_dim(t->dims[d])};
        if (factors.list.n)
            memcpy(all + 1, factors.list.items, factors.list.n * sizeof *all);
        factors = tcc_low_list(low, factors.list.n + 1, all);
    }
    require_span(l, factors, bytes * (n == TCC_WHOLE ? 1 : n));
    bool one;
    tcc_value *stride = tcc_low_cast(low, low->i32, tcc_low_stride(low, t, d, &one));
    return tcc_low_mul(low, stride, bytes);
}

/* ---- the role ------------------------------------------------------------------------------- */

static void lower_op(tcc_amdgcn_lowering *l, tcc_op *op);

void tcc_amdgcn_block(tcc_amdgcn_lowering *l, tcc_block *block)
{
    for (tcc_op *op = block->first; op && !l->low.failed; op = op->next)
        lower_op(l, op);
}

/* The wave's position in a tile, computed first so that cse finds it: LLVM's scheduler uses more registers if it
 * is computed later. */
static void place_wave(tcc_amdgcn_lowering *l, const tcc_op *role)
{
    tcc_attr waves = tcc_attr_list(&role->attrs, "waves");
    for (int d = 0; d < 2 && waves.list.n == 2 && waves.list.items[0].i > 0; d++) {
        int64_t rows = waves.list.items[0].i;
        tcc_value *number = (d ? tcc_low_div : tcc_low_rem)(&l->low, l->wave, rows);
        tcc_low_mul(&l->low, number, TCC_BLOCK);
    }
}

static void lower_role(tcc_amdgcn_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_op *parent = op->block->parent;
    if (l->by.role || !parent || parent->code != TCC_OP_tile_ctas) {
        TCC_LOW_REFUSE(low, op, "more than one role");
        return;
    }
    low->warps = tcc_attr_int(&op->attrs, "warps", 0);
    low->lanes = tcc_attr_int(&op->attrs, "lanes", 32);
    l->lds = TCC_EMIT(&low->b, amdgcn_lds_base, low->i32, NULL);
    l->tid = TCC_EMIT(&low->b, amdgcn_tid, low->i32, NULL);
    l->by.role = op;
    l->by.lane = tcc_low_rem(low, l->tid, low->lanes);
    l->by.row = tcc_low_rem(low, l->by.lane, TCC_BLOCK);
    l->by.group = tcc_low_div(low, l->by.lane, TCC_BLOCK);
    l->wave = TCC_EMIT(&low->b, amdgcn_readfirstlane, low->i32, tcc_low_div(low, l->tid, low->lanes));
    place_wave(l, op);
    tcc_amdgcn_block(l, op->regions[0]);
    tcc_attr_set_int(low->ir, &low->f->attrs, "block", low->warps * low->lanes);
    tcc_attr_set_int(low->ir, &low->f->attrs, "wave", low->lanes);
    low->warps = 0;
}

/* ---- other ops ----------------------------------------------------------------------------- */

void tcc_amdgcn_meet(tcc_amdgcn_lowering *l)
{
    tcc_op *wait = TCC_EMIT_V(&l->low.b, amdgcn_waitcnt, NULL);
    tcc_attr_set_int(l->low.ir, &wait->attrs, "ds", 0);
    TCC_EMIT_V(&l->low.b, amdgcn_s_barrier, NULL);
}

static void lower_barrier(tcc_amdgcn_lowering *l, tcc_op *op)
{
    (void)op;
    tcc_amdgcn_meet(l);
}

static void lower_pin(tcc_amdgcn_lowering *l, tcc_op *op)
{
    (void)op;
    tcc_amdgcn_pin(l);
}

static void lower_nothing(tcc_amdgcn_lowering *l, tcc_op *op)
{
    (void)l, (void)op;
}

/* Rings that a barrier completes order nothing themselves. */
static void lower_ring(tcc_amdgcn_lowering *l, tcc_op *op)
{
    if (!tcc_attr_is(&op->attrs, "completion", "barrier"))
        TCC_LOW_REFUSE(&l->low, op, "stages that are not completed by a barrier");
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef enum runner { ANYBODY, ROLE } runner;

static const struct {
    void (*lower)(tcc_amdgcn_lowering *, tcc_op *);
    runner runner;
} lowerings[TCC_OP_COUNT] = {
    [TCC_OP_tile_load] = {tcc_amdgcn_tile_load, ROLE},
    [TCC_OP_tile_mma] = {tcc_amdgcn_mma, ROLE},
    [TCC_OP_async_role] = {lower_role, ANYBODY},
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

static void lower_op(tcc_amdgcn_lowering *l, tcc_op *op)
{
    l->low.b.loc = op->loc;
    if (lowerings[op->code].runner == ROLE && !l->low.warps)
        TCC_LOW_REFUSE(&l->low, op, "%s outside async.role", tcc_op_info_get(op->code)->name);
    else if (lowerings[op->code].lower)
        lowerings[op->code].lower(l, op);
    else
        tcc_low_op(&l->low, op);
}

/* ---- the pass ------------------------------------------------------------------------------- */

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_op *ctas = tcc_low_find_ctas(f);
    if (!ctas || !tcc_target_can(tcc_target_of(ctx->ir), TCC_CAN_wmma))
        return TCC_OK;
    tcc_amdgcn_lowering l = {.target = tcc_target_of(ctx->ir)};
    tcc_low_begin(&l.low, ctx, f, &tcc_low_amdgcn);
    l.low.b.loc = ctas->loc;
    tcc_low_scalar_args(&l.low);
    tcc_amdgcn_block(&l, f->body);
    if (!l.low.failed && !l.by.role)
        TCC_LOW_REFUSE(&l.low, ctas, "a kernel without a role");
    if (l.low.failed)
        return TCC_ERR_UNSUPPORTED;
    *changed = true;
    return tcc_low_finish(&l.low, tcc_shared_end(f));
}

const tcc_pass tcc_pass_lower_to_amdgcn = {
    "lower-to-amdgcn", "from tiles in registers and LDS to one op per instruction", .run = run,
    .requires = TCC_UP_TO(places)};
