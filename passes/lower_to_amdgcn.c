/* lower-to-amdgcn: from tiles in registers and stages of LDS to one op an instruction.
 *
 * Before:  tile.ctas { … async.roles {} {…} }     (docs/amd.md shows a whole one)
 * After:   the function is one kernel entry. Its arguments are the kernel's parameters: addresses,
 *          extents, scalars; its attributes say how to launch it: grid, block, wave, smem_bytes,
 *          params, requires (docs/abi.md), args (docs/ir.md).
 *
 * The waves of a workgroup share the tile (tcc_rdna_arrange), all of them copy and multiply. The
 * matrix instruction computes the transposed product: its A is the operand of n and its B that of
 * m, so that what a lane holds of D are neighbours along n, as results are stored.
 *
 * Requires specialize-warps and distribute-grid. Afterwards only target ops are left.
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

int64_t tcc_amdgcn_acc_at(const tcc_amdgcn_lowering *l, int64_t m, int64_t n)
{
    int64_t in_one = l->halves ? 2 : 1, blocks_n = l->waves.blocks_n;
    return m * ((blocks_n + in_one - 1) / in_one) + n / in_one;
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
    tcc_lowering *low = &l->low;
    int64_t span = bytes;
    for (size_t i = 0; i < factors.list.n && span <= TCC_BUFFER_MAX; i++) {
        bool known = factors.list.items[i].kind == TCC_ATTR_INT;
        if (!known || __builtin_mul_overflow(span, factors.list.items[i].i, &span))
            span = INT64_MAX;
    }
    if (span > TCC_BUFFER_MAX)
        tcc_low_require(low, 4,
                        (tcc_attr[]){tcc_low_str(low, "span"), factors, tcc_low_int(bytes),
                                     tcc_low_int(TCC_BUFFER_MAX)});
}

void tcc_amdgcn_require_trips(tcc_amdgcn_lowering *l, tcc_dim k)
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

/* ---- the workgroup's code ------------------------------------------------------------------- */

static bool is_operand_load(const tcc_op *op)
{
    return op->code == TCC_OP_async_copy ||
           (op->code == TCC_OP_tile_load && tcc_attr_find(&op->attrs, "panel"));
}

static void lower_block(tcc_amdgcn_lowering *l, tcc_block *block)
{
    for (tcc_op *op = block->first; op; op = op->next) {
        if (is_operand_load(op) || op->code == TCC_OP_scf_for) {
            op = tcc_amdgcn_product(l, op);
        } else if (tcc_low_tile_of(op)) {
            tcc_amdgcn_epilogue(l, op);
            return;
        } else {
            tcc_amdgcn_op(l, op);
        }
    }
}

void tcc_amdgcn_place_lane(tcc_amdgcn_lowering *l, tcc_value *lane)
{
    l->lane = lane;
    l->row = tcc_low_rem(&l->low, lane, TCC_BLOCK);
    l->group = tcc_low_div(&l->low, lane, TCC_BLOCK);
}

/* Where the lanes of the wave are in the tile. */
static void place_wave(tcc_amdgcn_lowering *l)
{
    tcc_lowering *low = &l->low;
    int64_t lanes = low->s.wave;
    const tcc_rdna_waves *w = &l->waves;
    l->lds = TCC_EMIT(&low->b, amdgcn_lds_base, low->i32, NULL);
    l->tid = TCC_EMIT(&low->b, amdgcn_tid, low->i32, NULL);
    tcc_amdgcn_place_lane(l, tcc_low_rem(low, l->tid, lanes));
    l->wave = TCC_EMIT(&low->b, amdgcn_readfirstlane, low->i32, tcc_low_div(low, l->tid, lanes));
    /* Along m the waves take blocks in turn: then those of transposed rows lie whole 512 bytes
     * apart, which one address reaches. Along n a wave's are neighbours, for its stores. */
    l->block_step[0] = w->waves_m * TCC_BLOCK;
    l->block_step[1] = TCC_BLOCK;
    l->wave_first[0] = tcc_low_mul(low, tcc_low_rem(low, l->wave, w->waves_m), TCC_BLOCK);
    l->wave_first[1] =
        tcc_low_mul(low, tcc_low_div(low, l->wave, w->waves_m), w->blocks_n * TCC_BLOCK);
}

static void lower_ctas(tcc_amdgcn_lowering *l, tcc_op *op)
{
    place_wave(l);
    tcc_low_ctas(&l->low, op, TCC_OP_amdgcn_wgid);
    lower_block(l, op->regions[0]);
}

static void lower_role(tcc_amdgcn_lowering *l, tcc_op *op)
{
    lower_block(l, op->regions[0]);
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

void tcc_amdgcn_op(tcc_amdgcn_lowering *l, tcc_op *op)
{
    static void (*const lowerings[TCC_OP_COUNT])(tcc_amdgcn_lowering *, tcc_op *) = {
        [TCC_OP_tile_ctas] = lower_ctas,      [TCC_OP_tensor_dim] = lower_dim,
        [TCC_OP_async_alloc] = lower_nothing, [TCC_OP_async_ring] = lower_nothing,
        [TCC_OP_async_role] = lower_role,     [TCC_OP_async_mma_wait] = lower_nothing,
    };
    l->low.b.loc = op->loc;
    bool is_tile_const =
        op->code == TCC_OP_arith_const && op->results[0].type->kind == TCC_KIND_tile;
    if (!is_tile_const) /* else the start of a sum, or of the epilogue, which makes its own */
        (lowerings[op->code] ? lowerings[op->code] : lower_same)(l, op);
}

/* ---- the pass ------------------------------------------------------------------------------- */

/* Finds the product: its instruction, its operands' loads and buffers. */
static bool find_product(tcc_amdgcn_lowering *l, tcc_op *grid)
{
    const tcc_op *loads[2] = {NULL}, *mma = NULL;
    tcc_block *region = grid->regions[0];
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region))
        if (is_operand_load(op) && !loads[1])
            loads[loads[0] != NULL] = op;
        else if (op->code == TCC_OP_async_mma)
            mma = op;
    if (!mma || !loads[1])
        return false;
    const tcc_async_mma_operands *o = TCC_VIEW(async_mma, mma);
    tcc_scalar m_type = o->a->type->elem, n_type = o->b->type->elem;
    l->wmma = tcc_wmma_find(l->target, n_type, m_type, o->c->type->elem, 0);
    if (!l->wmma)
        return false;
    int64_t wave = l->low.s.wave;
    l->result = tcc_wmma_result(l->target, (unsigned)wave);
    l->halves = tcc_wmma_is_in_halves(l->wmma);
    l->k_groups = tcc_wmma_k_groups(l->target, l->wmma->k, tcc_scalar_bits(m_type), wave);
    l->per_lane = TCC_BLOCK * TCC_BLOCK / wave;
    const tcc_rdna_product product = {
        .target = l->target, .wmma = l->wmma, .bits = tcc_scalar_bits(m_type)};
    l->round = tcc_rdna_round(&product, wave);
    for (int place = 0; place < 2; place++) {
        tcc_amdgcn_plan_operand(l, place, loads[place], place ? o->b : o->a);
    }
    return l->operands[0].depth % l->round == 0;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_op *grid = tcc_low_find_ctas(f);
    const char *variant = tcc_attr_str(&f->attrs, "variant", NULL);
    tcc_schedule s = tcc_schedule_of(f);
    bool has_wmma = tcc_target_can(tcc_target_of(ctx->ir), TCC_CAN_wmma);
    if (!grid || !variant || !has_wmma || !tcc_schedule_is_valid(&s))
        return TCC_OK;
    tcc_amdgcn_lowering l = {.target = tcc_target_of(ctx->ir),
                             .aligned = !strcmp(variant, "buffer")};
    tcc_low_begin(&l.low, ctx, f);
    tcc_rdna_arrange(&s, &l.waves);
    if (!find_product(&l, grid))
        return TCC_OK;
    l.low.b.loc = grid->loc;
    tcc_low_scalar_args(&l.low);
    lower_block(&l, f->body);
    if (l.low.failed)
        return ctx->diag->status;
    tcc_attr_set_int(ctx->ir, &f->attrs, "block", tcc_schedule_threads(&s));
    tcc_low_finish(&l.low, tcc_shared_end(f));
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_lower_to_amdgcn = {
    "lower-to-amdgcn", "from tiles in registers and LDS to one op an instruction", run};
