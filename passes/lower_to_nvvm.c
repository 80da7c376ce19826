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

tcc_value *tcc_nvvm_c32(tcc_nvvm_lowering *l, int64_t v)
{
    return tcc_build_int(&l->b, l->i32, v);
}

tcc_value *tcc_nvvm_bin(tcc_nvvm_lowering *l, tcc_opcode op, tcc_value *a, tcc_value *b)
{
    return &tcc_op_create(&l->b, op, 2, (tcc_value *[]){a, b}, 1, &a->type)->results[0];
}

static tcc_value *bin_const(tcc_nvvm_lowering *l, tcc_opcode op, tcc_value *a, int64_t b)
{
    return tcc_nvvm_bin(l, op, a, tcc_build_int(&l->b, a->type, b));
}

tcc_value *tcc_nvvm_add(tcc_nvvm_lowering *l, tcc_value *a, int64_t b)
{
    return b ? bin_const(l, TCC_OP_arith_add, a, b) : a;
}

tcc_value *tcc_nvvm_mul(tcc_nvvm_lowering *l, tcc_value *a, int64_t b)
{
    return b == 1 ? a : bin_const(l, TCC_OP_arith_mul, a, b);
}

static int log2_of(int64_t x)
{
    int n = 0;
    while (x > 1 && x % 2 == 0) {
        x /= 2;
        n++;
    }
    return x == 1 ? n : -1;
}

tcc_value *tcc_nvvm_div(tcc_nvvm_lowering *l, tcc_value *a, int64_t b)
{
    int shift = log2_of(b);
    return shift < 0 ? bin_const(l, TCC_OP_arith_div, a, b)
           : shift   ? bin_const(l, TCC_OP_arith_shr, a, shift)
                     : a;
}

tcc_value *tcc_nvvm_rem(tcc_nvvm_lowering *l, tcc_value *a, int64_t b)
{
    return bin_const(l, log2_of(b) < 0 ? TCC_OP_arith_rem : TCC_OP_arith_and, a,
                     log2_of(b) < 0 ? b : b - 1);
}

tcc_value *tcc_nvvm_cmp(tcc_nvvm_lowering *l, const char *pred, tcc_value *a, tcc_value *b)
{
    tcc_value *v = TCC_EMIT(&l->b, arith_cmp, l->i1, a, b);
    tcc_attr_set_str(l->ir, &v->def->attrs, "pred", pred);
    return v;
}

tcc_value *tcc_nvvm_cast(tcc_nvvm_lowering *l, const tcc_type *type, tcc_value *a)
{
    return a->type == type ? a : TCC_EMIT(&l->b, arith_cast, type, a);
}

tcc_value *tcc_nvvm_scaled(tcc_nvvm_lowering *l, tcc_value *index, tcc_value *stride)
{
    return tcc_nvvm_bin(l, TCC_OP_arith_mul, tcc_nvvm_cast(l, l->i64, index), stride);
}

tcc_op *tcc_nvvm_if(tcc_nvvm_lowering *l, tcc_value *cond)
{
    tcc_op *op = tcc_op_create(&l->b, TCC_OP_scf_if, 1, &cond, 0, NULL);
    tcc_loc loc = l->b.loc;
    l->b = tcc_builder_at_end(op->regions[0]);
    l->b.loc = loc;
    return op;
}

void tcc_nvvm_end(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_loc loc = l->b.loc;
    l->b = tcc_builder_after(op);
    l->b.loc = loc;
}

tcc_value *tcc_nvvm_leads_warpgroup(tcc_nvvm_lowering *l)
{
    tcc_value *thread = tcc_nvvm_rem(l, l->tid, 128);
    return tcc_nvvm_cmp(l, "eq", thread, tcc_nvvm_c32(l, 0));
}

void tcc_nvvm_barrier(tcc_nvvm_lowering *l, int64_t id, int64_t threads)
{
    tcc_value *number = tcc_nvvm_c32(l, id);
    TCC_EMIT_V(&l->b, nvvm_barrier, number, tcc_nvvm_c32(l, threads));
}

tcc_value *tcc_nvvm_swizzle(tcc_nvvm_lowering *l, tcc_value *byte, int64_t swizzle)
{
    if (!swizzle)
        return byte;
    int64_t chunks = swizzle - 16; /* 0x70, 0x30, 0x10: which 16-byte chunk of the row */
    tcc_value *row = bin_const(l, TCC_OP_arith_shr, byte, 3);
    return tcc_nvvm_bin(l, TCC_OP_arith_xor, byte, bin_const(l, TCC_OP_arith_and, row, chunks));
}

/* ---- parameters and launch conditions --------------------------------------------------- */

tcc_attr tcc_nvvm_str(tcc_nvvm_lowering *l, const char *s)
{
    return (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(l->ir, s)};
}

tcc_attr tcc_nvvm_int(int64_t i)
{
    return (tcc_attr){.kind = TCC_ATTR_INT, .i = i};
}

tcc_attr tcc_nvvm_list(tcc_nvvm_lowering *l, size_t n, const tcc_attr *items)
{
    tcc_attr *copy = TCC_NEW_ARRAY(l->ir->arena, tcc_attr, n);
    if (n)
        memcpy(copy, items, n * sizeof *items);
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {copy, n}};
}

tcc_attr tcc_nvvm_dim_attr(tcc_nvvm_lowering *l, tcc_dim d)
{
    return d.name ? tcc_nvvm_str(l, d.name) : tcc_nvvm_int(d.size);
}

#define LIST(l, ...)                                                                               \
    tcc_nvvm_list(l, sizeof((tcc_attr[]){__VA_ARGS__}) / sizeof(tcc_attr),                         \
                  (tcc_attr[]){__VA_ARGS__})

/* The parameter that this recipe describes, made on first use. */
static tcc_value *parameter(tcc_nvvm_lowering *l, tcc_attr recipe, const tcc_type *type,
                            const char *name)
{
    for (size_t i = 0; i < l->params.len; i++)
        if (tcc_attr_equal(&l->params.data[i], &recipe))
            return l->body->args[i];
    TCC_PUSH(l->ir->arena, &l->params, recipe);
    return tcc_block_add_arg(l->body, type, name);
}

void tcc_nvvm_require(tcc_nvvm_lowering *l, size_t n, const tcc_attr *items)
{
    tcc_attr condition = tcc_nvvm_list(l, n, items);
    for (size_t i = 0; i < l->requires.len; i++)
        if (tcc_attr_equal(&l->requires.data[i], &condition))
            return;
    TCC_PUSH(l->ir->arena, &l->requires, condition);
}

tcc_value *tcc_nvvm_extent(tcc_nvvm_lowering *l, tcc_dim d)
{
    if (!d.name)
        return tcc_nvvm_c32(l, d.size);
    return parameter(l, LIST(l, tcc_nvvm_str(l, "dim"), tcc_nvvm_str(l, d.name)), l->i32, d.name);
}

tcc_value *tcc_nvvm_pointer(tcc_nvvm_lowering *l, const tcc_value *tensor)
{
    return parameter(l, LIST(l, tcc_nvvm_str(l, "pointer"), tcc_nvvm_str(l, tensor->name)),
                     tcc_type_get(l->ir, TCC_KIND_ptr, tensor->type->elem, 0, NULL), tensor->name);
}

/* Elements from one index of dimension d to the next: the product of the later extents. */
static tcc_attr stride_attr(tcc_nvvm_lowering *l, const tcc_type *t, unsigned d)
{
    tcc_attr factors[TCC_MAX_RANK];
    size_t n = 0;
    for (unsigned e = d + 1; e < t->rank; e++)
        factors[n++] = tcc_nvvm_dim_attr(l, t->dims[e]);
    return tcc_nvvm_list(l, n, factors);
}

/* The address and the rows of a tensor are multiples of so many bytes. Rows are the last
 * dimension, so every other stride is one of theirs. */
static void require_alignment(tcc_nvvm_lowering *l, const tcc_value *tensor, int64_t bytes)
{
    const tcc_type *t = tensor->type;
    tcc_nvvm_require(
        l, 3,
        (tcc_attr[]){tcc_nvvm_str(l, "align"), tcc_nvvm_str(l, tensor->name), tcc_nvvm_int(bytes)});
    if (t->rank > 1 && t->dims[t->rank - 1].name)
        tcc_nvvm_require(l, 4,
                         (tcc_attr[]){tcc_nvvm_str(l, "pitch"), stride_attr(l, t, t->rank - 2),
                                      tcc_nvvm_int(tcc_scalar_bits(t->elem) / 8),
                                      tcc_nvvm_int(bytes)});
}

void tcc_nvvm_require_pairs(tcc_nvvm_lowering *l, const tcc_value *tensor)
{
    const tcc_type *t = tensor->type;
    int64_t bytes = tcc_scalar_bits(t->elem) / 8;
    require_alignment(l, tensor, 2 * bytes);
    if (t->rank == 1 && t->dims[0].name) /* a pair never crosses the end */
        tcc_nvvm_require(l, 4,
                         (tcc_attr[]){tcc_nvvm_str(l, "pitch"),
                                      LIST(l, tcc_nvvm_dim_attr(l, t->dims[0])),
                                      tcc_nvvm_int(bytes), tcc_nvvm_int(2 * bytes)});
}

tcc_value *tcc_nvvm_tensormap(tcc_nvvm_lowering *l, const tcc_value *tensor, const int64_t *box,
                              int64_t swizzle)
{
    const tcc_type *t = tensor->type;
    tcc_attr dims[TCC_MAX_RANK], strides[TCC_MAX_RANK], boxes[TCC_MAX_RANK];
    for (unsigned i = 0; i < t->rank; i++) {
        unsigned d = t->rank - 1 - i; /* innermost first */
        dims[i] = tcc_nvvm_dim_attr(l, t->dims[d]);
        boxes[i] = tcc_nvvm_int(box[i]);
        if (i)
            strides[i - 1] = stride_attr(l, t, d);
    }
    require_alignment(l, tensor, 16);
    tcc_attr recipe = LIST(l, tcc_nvvm_str(l, "tensor_map"), tcc_nvvm_str(l, tensor->name),
                           tcc_nvvm_list(l, t->rank, dims), tcc_nvvm_list(l, t->rank - 1, strides),
                           tcc_nvvm_list(l, t->rank, boxes), tcc_nvvm_int(swizzle),
                           tcc_nvvm_str(l, tcc_scalar_name(t->elem)));
    return parameter(l, recipe, tcc_type_get(l->ir, TCC_KIND_tensormap, TCC_f32, 0, NULL),
                     tcc_arena_printf(l->ctx->scratch, "map_%s", tensor->name));
}

tcc_value *tcc_nvvm_stride(tcc_nvvm_lowering *l, const tcc_type *t, int d, bool *one)
{
    *one = d == (int)t->rank - 1;
    tcc_value *stride = tcc_build_int(&l->b, l->i64, 1);
    for (unsigned e = (unsigned)d + 1; e < t->rank; e++)
        stride = tcc_nvvm_bin(l, TCC_OP_arith_mul, stride,
                              tcc_nvvm_cast(l, l->i64, tcc_nvvm_extent(l, t->dims[e])));
    return stride;
}

/* ---- the grid ---------------------------------------------------------------------------- */

static tcc_dim dim_of(tcc_attr a)
{
    return a.kind == TCC_ATTR_STR ? (tcc_dim){a.s, 0} : (tcc_dim){NULL, a.i};
}

/* From the CTA's number to the first index of each axis. Tiles of m are taken in groups, down the
 * group first: CTAs that run at one time then read few rows of A and columns of B. */
static void lower_grid(tcc_nvvm_lowering *l, tcc_op *grid)
{
    tcc_attr extents = tcc_attr_list(&grid->attrs, "extents");
    tcc_attr tile = tcc_attr_list(&grid->attrs, "tile");
    size_t n_axes = extents.list.n;
    tcc_value *tiles[2], *first[TCC_MAX_RANK];
    for (int x = 0; x < 2; x++) {
        int64_t size = tile.list.items[x].i;
        tcc_value *extent = tcc_nvvm_extent(l, dim_of(extents.list.items[x]));
        tiles[x] = tcc_nvvm_div(l, tcc_nvvm_add(l, extent, size - 1), size);
    }
    tcc_value *id = TCC_EMIT(&l->b, nvvm_ctaid, l->i32, NULL);
    if (n_axes > 2) {
        tcc_value *plane = tcc_nvvm_bin(l, TCC_OP_arith_mul, tiles[0], tiles[1]);
        tcc_value *rest = tcc_nvvm_bin(l, TCC_OP_arith_div, id, plane);
        id = tcc_nvvm_bin(l, TCC_OP_arith_rem, id, plane);
        for (size_t x = n_axes; x-- > 2;) {
            tcc_value *extent = tcc_nvvm_extent(l, dim_of(extents.list.items[x]));
            first[x] = tcc_nvvm_bin(l, TCC_OP_arith_rem, rest, extent);
            rest = tcc_nvvm_bin(l, TCC_OP_arith_div, rest, extent);
        }
    }
    tcc_value *group = tcc_nvvm_c32(l, tcc_attr_int(&grid->attrs, "group", 1));
    tcc_value *in_group = tcc_nvvm_bin(l, TCC_OP_arith_mul, group, tiles[1]);
    tcc_value *g = tcc_nvvm_bin(l, TCC_OP_arith_div, id, in_group);
    tcc_value *top = tcc_nvvm_bin(l, TCC_OP_arith_mul, g, group);
    tcc_value *height =
        tcc_nvvm_bin(l, TCC_OP_arith_min, tcc_nvvm_bin(l, TCC_OP_arith_sub, tiles[0], top), group);
    tcc_value *r = tcc_nvvm_bin(l, TCC_OP_arith_rem, id, in_group);
    first[0] = tcc_nvvm_bin(l, TCC_OP_arith_add, top, tcc_nvvm_bin(l, TCC_OP_arith_rem, r, height));
    first[1] = tcc_nvvm_bin(l, TCC_OP_arith_div, r, height);
    tcc_attr rule[TCC_MAX_RANK];
    for (size_t x = 0; x < n_axes; x++) {
        int64_t size = tile.list.items[x].i;
        tcc_value_map_set(l->map, grid->regions[0]->args[x], tcc_nvvm_mul(l, first[x], size));
        rule[x] = LIST(l, extents.list.items[x], tcc_nvvm_int(size));
    }
    tcc_attr_set(l->ir, &l->f->attrs, "grid", tcc_nvvm_list(l, n_axes, rule), (tcc_loc){0, 0});
}

/* ---- roles and loops ----------------------------------------------------------------------- */

static void lower_block(tcc_nvvm_lowering *l, tcc_block *block)
{
    for (tcc_op *op = block->first; op; op = op->next) {
        bool of_tiles = op->code == TCC_OP_tile_store ||
                        (op->n_results == 1 && op->results[0].type->kind == TCC_KIND_tile &&
                         op->code != TCC_OP_async_mma && op->code != TCC_OP_async_mma_wait &&
                         op->code != TCC_OP_scf_for && op->code != TCC_OP_arith_const);
        if (of_tiles) {
            tcc_nvvm_epilogue(l, op);
            return;
        }
        if (op->code == TCC_OP_async_acquire)
            op = tcc_nvvm_copies(l, op);
        else
            tcc_nvvm_op(l, op);
    }
}

/* The first value of a loop-carried tile. The first product ignores it, so any will do. */
static tcc_value *lower_carried(tcc_nvvm_lowering *l, tcc_value *v)
{
    if (v->type->kind != TCC_KIND_tile)
        return tcc_value_map_get(l->map, v);
    return TCC_EMIT(&l->b, vec_undef, tcc_nvvm_accumulator_type(l), NULL);
}

static void lower_for(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_value **operands = TCC_NEW_ARRAY(l->ir->arena, tcc_value *, op->n_operands);
    const tcc_type **types = TCC_NEW_ARRAY(l->ir->arena, const tcc_type *, op->n_results);
    for (unsigned i = 0; i < op->n_operands; i++)
        operands[i] =
            i < 3 ? tcc_value_map_get(l->map, op->operands[i]) : lower_carried(l, op->operands[i]);
    for (unsigned i = 0; i < op->n_results; i++)
        types[i] = operands[3 + i]->type;
    tcc_op *loop =
        tcc_op_create(&l->b, TCC_OP_scf_for, op->n_operands, operands, op->n_results, types);
    if (tcc_attr_int(&op->attrs, "at_least_once", 0))
        tcc_attr_set_int(l->ir, &loop->attrs, "at_least_once", 1);
    const tcc_block *from = op->regions[0];
    for (size_t i = 0; i < from->n_args; i++)
        tcc_value_map_set(
            l->map, from->args[i],
            tcc_block_add_arg(loop->regions[0], i ? types[i - 1] : l->i32, from->args[i]->name));
    for (unsigned i = 0; i < op->n_results; i++)
        tcc_value_map_set(l->map, &op->results[i], &loop->results[i]);
    tcc_builder outer = l->b;
    l->b = tcc_builder_at_end(loop->regions[0]);
    lower_block(l, op->regions[0]);
    l->b = outer;
}

static void lower_if(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_op *then = tcc_nvvm_if(l, tcc_value_map_get(l->map, TCC_VIEW(scf_if, op)->cond));
    lower_block(l, op->regions[0]);
    l->b = tcc_builder_at_end(then->regions[1]);
    lower_block(l, op->regions[1]);
    tcc_nvvm_end(l, then);
}

static void set_registers(tcc_nvvm_lowering *l, int64_t count, const char *action)
{
    tcc_op *op = TCC_EMIT_V(&l->b, nvvm_setmaxnreg, NULL);
    tcc_attr_set_int(l->ir, &op->attrs, "count", count);
    tcc_attr_set_str(l->ir, &op->attrs, "action", action);
}

static void lower_producer(tcc_nvvm_lowering *l, tcc_block *block)
{
    l->role = TCC_ROLE_PRODUCER;
    if (!l->by_tma) {
        lower_block(l, block);
        return;
    }
    tcc_op *warp = NULL;
    if (l->s.producer == TCC_PRODUCER_WARPGROUP)
        warp = tcc_nvvm_if(l, tcc_nvvm_cmp(l, "eq", l->warp, tcc_nvvm_c32(l, 4 * l->s.warpgroups)));
    tcc_op *one = tcc_nvvm_if(l, TCC_EMIT(&l->b, nvvm_elect, l->i1, NULL));
    lower_block(l, block);
    tcc_nvvm_end(l, one);
    if (warp)
        tcc_nvvm_end(l, warp);
}

static void lower_roles(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_nvvm_init_ring(l);
    if (l->s.producer == TCC_PRODUCER_NONE) {
        l->role = TCC_ROLE_CONSUMER;
        lower_block(l, op->regions[1]);
        return;
    }
    int64_t give, take = tcc_schedule_registers(&l->s, tcc_target_of(l->ir), &give);
    tcc_value *consumer = tcc_nvvm_cmp(l, "lt", l->warp, tcc_nvvm_c32(l, 4 * l->s.warpgroups));
    tcc_op *roles = tcc_nvvm_if(l, consumer);
    l->role = TCC_ROLE_CONSUMER;
    if (give)
        set_registers(l, take, "inc");
    lower_block(l, op->regions[1]);
    l->b = tcc_builder_at_end(roles->regions[1]);
    l->b.loc = op->loc;
    if (give)
        set_registers(l, give, "dec");
    lower_producer(l, op->regions[0]);
    tcc_nvvm_end(l, roles);
    l->role = TCC_ROLE_CTA;
}

/* Ops that stay what they are, their operands mapped. */
static void lower_same(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_op_clone(&l->b, op, l->map);
}

static void lower_nothing(tcc_nvvm_lowering *l, tcc_op *op)
{
    (void)l, (void)op;
}

static void lower_dim(tcc_nvvm_lowering *l, tcc_op *op)
{
    const char *name = tcc_attr_str(&op->attrs, "name", "");
    tcc_value_map_set(l->map, &op->results[0], tcc_nvvm_extent(l, (tcc_dim){name, 0}));
}

static void lower_tile_grid(tcc_nvvm_lowering *l, tcc_op *op)
{
    lower_grid(l, op);
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
    l->b.loc = op->loc;
    bool is_tile_const =
        op->code == TCC_OP_arith_const && op->results[0].type->kind == TCC_KIND_tile;
    if (is_tile_const)
        return; /* the start of a sum (lower_carried) or of the epilogue, which makes its own */
    (lowerings[op->code] ? lowerings[op->code] : lower_same)(l, op);
}

/* ---- the pass ------------------------------------------------------------------------------- */

/* Scalar parameters: all arrive as f32, or in their own type when that is an integer. */
static void lower_scalar_args(tcc_nvvm_lowering *l)
{
    for (size_t i = 0; i < l->f->body->n_args; i++) {
        tcc_value *arg = l->f->body->args[i];
        if (arg->type->kind != TCC_KIND_scalar || !arg->n_uses)
            continue;
        bool is_float = tcc_scalar_classify(arg->type->elem) == TCC_CLASS_FLOAT;
        tcc_value *v = parameter(l, LIST(l, tcc_nvvm_str(l, "scalar"), tcc_nvvm_str(l, arg->name)),
                                 is_float ? l->f32 : arg->type, arg->name);
        tcc_value_map_set(l->map, arg, tcc_nvvm_cast(l, arg->type, v));
    }
}

/* What callers pass, which the kernel's parameters are made of: args = [[A, f16, [M, K]], …,
 * [alpha, f32]]. */
static tcc_attr caller_args(tcc_nvvm_lowering *l)
{
    const tcc_block *body = l->f->body;
    tcc_attr *args = TCC_NEW_ARRAY(l->ir->arena, tcc_attr, body->n_args);
    for (size_t i = 0; i < body->n_args; i++) {
        const tcc_type *t = body->args[i]->type;
        tcc_attr *dims = TCC_NEW_ARRAY(l->ir->arena, tcc_attr, t->rank);
        for (unsigned d = 0; d < t->rank; d++)
            dims[d] = tcc_nvvm_dim_attr(l, t->dims[d]);
        const tcc_attr record[] = {tcc_nvvm_str(l, body->args[i]->name),
                                   tcc_nvvm_str(l, tcc_scalar_name(t->elem)),
                                   tcc_nvvm_list(l, t->rank, dims)};
        args[i] = tcc_nvvm_list(l, t->kind == TCC_KIND_tensor ? 3 : 2, record);
    }
    return tcc_nvvm_list(l, body->n_args, args);
}

/* The grid, if its work is distributed over roles. */
static tcc_op *find_grid(const tcc_func *f)
{
    tcc_op *grid = NULL;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_tile_grid)
            grid = op;
        else if (op->code == TCC_OP_async_roles)
            return grid;
    return NULL;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_op *grid = find_grid(f);
    const char *variant = tcc_attr_str(&f->attrs, "variant", NULL);
    tcc_schedule s = tcc_schedule_of(f);
    if (!grid || !variant || !tcc_schedule_is_valid(&s))
        return TCC_OK;
    tcc_ir *ir = ctx->ir;
    tcc_nvvm_lowering l = {
        .ctx = ctx,
        .ir = ir,
        .f = f,
        .s = s,
        .aligned = !strcmp(variant, "tma"),
        .body = tcc_block_create(f, NULL),
        .map = tcc_value_map_create(ctx->scratch),
        .i1 = tcc_type_scalar(ir, TCC_i1),
        .i32 = tcc_type_scalar(ir, TCC_i32),
        .i64 = tcc_type_scalar(ir, TCC_i64),
        .f32 = tcc_type_scalar(ir, TCC_f32),
    };
    tcc_attr requires = tcc_attr_list(&f->attrs, "requires");
    for (size_t i = 0; i < requires.list.n; i++)
        TCC_PUSH(ir->arena, &l.requires, requires.list.items[i]);
    tcc_nvvm_plan_memory(&l, grid);
    l.b = tcc_builder_at_end(l.body);
    l.b.loc = grid->loc;
    lower_scalar_args(&l);
    l.smem = TCC_EMIT(&l.b, nvvm_smem_base, l.i32, NULL);
    l.tid = TCC_EMIT(&l.b, nvvm_tid, l.i32, NULL);
    l.warp = TCC_EMIT(&l.b, nvvm_uniform, l.i32, tcc_nvvm_div(&l, l.tid, 32));
    lower_block(&l, f->body);
    tcc_nvvm_prefetch_maps(&l);

    tcc_attr args = caller_args(&l);
    f->body = l.body;
    tcc_attr_set_int(ir, &f->attrs, "block", tcc_schedule_threads(&l.s));
    tcc_attr_set_int(ir, &f->attrs, "min_ctas", 1); /* setmaxnreg needs a register cap: C7508 */
    tcc_attr_set_int(ir, &f->attrs, "smem_bytes", l.smem_bytes);
    tcc_attr_set(ir, &f->attrs, "args", args, (tcc_loc){0, 0});
    tcc_attr_set(ir, &f->attrs, "params", tcc_nvvm_list(&l, l.params.len, l.params.data),
                 (tcc_loc){0, 0});
    tcc_attr_set(ir, &f->attrs, "requires", tcc_nvvm_list(&l, l.requires.len, l.requires.data),
                 (tcc_loc){0, 0});
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_lower_to_nvvm = {"lower-to-nvvm",
                                         "from stages and roles to one op an instruction", run};
