/* tile-contraction: compute sums of products tile by tile.
 *
 * Before:  %p = arith.mul %a, %b : field<f32[m, k, n]>
 *          %s = tensor.reduce %p {over = [k], kind = sum} : field<f32[m, n]>
 * After:   %s = tile.grid {axes = [m, n], …} : field<f32[m, n]> {
 *          ^(%m: i32, %n: i32):
 *            %r = scf.for %k = 0 … iterations, %c = 0.0 {
 *              tile.mma (tile.load A), (tile.load B), %c
 *            }
 *            scf.yield %r
 *          }
 *
 * Several sums are carried by one loop, which loads once what several of them read. An operand that is
 * computed elementwise is computed on tiles before its MMA.
 *
 * If sums have parts, each part is a tile of the grid along a separate axis, and takes every n-th of n parts'
 * tiles of k: so adjacent CTAs read adjacent memory.
 *
 * The loop counts iterations, not elements, so that later passes find an iteration's stage. It
 * makes at least one, so that its test may come last: around a loop that tests first ptxas
 * serialises wgmma (C7514). If K > 0 is not assumed, it makes one iteration on zeros if K is 0.
 *
 * Requires choose-schedule. Leaves the product dead: dce.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "ir/assume.h"
#include "passes/arith.h"
#include "passes/space.h"
#include "passes/families.h"
#include "passes/passes.h"
#include "passes/tiling.h"

typedef struct origin {
    const tcc_space *c;
    tcc_block *grid; /* its arguments are the axes' first indices */
    tcc_value *k;
} origin;

static tcc_value *origin_of(void *user, const char *index)
{
    const origin *o = user;
    for (size_t i = 0; i < o->c->n_axes; i++)
        if (!strcmp(o->c->axes[i], index))
            return o->grid->args[i];
    return o->k;
}

static tcc_op *build_grid(tcc_builder *b, const tcc_space *c, const tcc_schedule *s)
{
    tcc_ir *ir = b->func->ir;
    const tcc_type **types = TCC_NEW_ARRAY(ir->arena, const tcc_type *, c->n_sums);
    for (size_t i = 0; i < c->n_sums; i++)
        types[i] = c->sums[i].op->results[0].type;
    const int64_t sizes[] = {s->m, s->n};
    tcc_op *grid = tcc_tiling_grid(b, c->n_axes, c->axes, c->extents, sizes, c->n_sums, types);
    if (s->persistent)
        tcc_attr_set_int(ir, &grid->attrs, "persistent", s->persistent);
    if (s->cluster_m > 1 || s->cluster_n > 1)
        tcc_attr_set_ints(ir, &grid->attrs, "cluster", 2, (int64_t[]){s->cluster_m, s->cluster_n});
    return grid;
}

/* max(1, ceil(extent / step)), only ceil if K > 0 is promised. A step is a tile of k for each part. Parts
 * whose last tile is beyond K multiply zeros once: all have the same number of iterations, so that iterations
 * can be numbered whatever is around the loop. */
static tcc_value *build_iteration_count(tcc_builder *b, const tcc_space *c, int64_t depth,
                                        bool may_be_empty)
{
    const tcc_type *i32 = tcc_type_scalar(b->func->ir, TCC_i32);
    tcc_value *n = tcc_build_extent(b, c->k_extent);
    int64_t step = depth * c->parts.count;
    n = TCC_EMIT(b, arith_add, i32, n, tcc_build_i32(b, step - 1));
    n = TCC_EMIT(b, arith_div, i32, n, tcc_build_i32(b, step));
    return may_be_empty ? TCC_EMIT(b, arith_max, i32, n, tcc_build_i32(b, 1)) : n;
}

/* What no matrix instruction supports, or NULL: they multiply exactly, as f32 and i32 can
 * represent, and add in one of a few types. f64 is added in f64. */
static const char *why_not_instructions(tcc_arena *arena, const tcc_sum *s)
{
    bool ints = tcc_scalar_classify(s->products) == TCC_CLASS_INT;
    tcc_scalar sum = s->op->results[0].type->elem;
    if (s->products == TCC_f64 && sum == TCC_f64)
        return NULL;
    if (s->products != (ints ? TCC_i32 : TCC_f32))
        return tcc_arena_printf(arena, "products in %s; matrix instructions multiply in %s",
                                tcc_scalar_name(s->products), ints ? "i32" : "f32");
    if (ints ? sum != TCC_i32 : sum != TCC_f32 && sum != TCC_f16 && sum != TCC_bf16)
        return tcc_arena_printf(arena, "a sum in %s; matrix instructions add in %s",
                                tcc_scalar_name(sum), ints ? "i32" : "f32, f16 or bf16");
    return NULL;
}

/* Parts are of whole tiles of k, or none could be computed in tiles. */
static tcc_status check_parts(tcc_pass_ctx *ctx, const tcc_space *c, const tcc_schedule *s)
{
    if (!c->parts.index || c->parts.depth == s->k)
        return TCC_OK;
    tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, c->sums[0].op->loc,
              "not supported yet: parts of %lld terms in a row, computed in tiles of %lld",
              (long long)c->parts.depth, (long long)s->k);
    return TCC_ERR_UNSUPPORTED;
}

static tcc_status check_instructions(tcc_pass_ctx *ctx, const tcc_space *c)
{
    for (size_t i = 0; i < c->n_sums; i++) {
        const char *why = why_not_instructions(ctx->scratch, &c->sums[i]);
        if (why) {
            tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, c->sums[i].op->loc, "not supported yet: %s",
                      why);
            return TCC_ERR_UNSUPPORTED;
        }
    }
    return TCC_OK;
}

/* What operands are computed from is converted like what is used beside the sums. */
static tcc_status check_computed(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_space *c)
{
    tcc_map ops = TCC_MAP(ctx->scratch);
    for (size_t i = 0; i < c->n_operands; i++)
        if (tcc_sum_operand_is_computed(&c->operands[i]))
            tcc_find_elementwise(c->operands[i].value, ctx->scratch, &ops);
    bool ok = true;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        ok &= !tcc_map_get(&ops, op) || tcc_tiling_check_elements(ctx, op);
    return ok ? TCC_OK : TCC_ERR_UNSUPPORTED;
}

/* The loop over k, which carries an accumulator for each sum. */
static tcc_op *build_loop(tcc_builder *g, const tcc_space *c, const tcc_schedule *s,
                          tcc_value *iterations)
{
    tcc_ir *ir = g->func->ir;
    const tcc_type **types = TCC_NEW_ARRAY(ir->arena, const tcc_type *, c->n_sums);
    tcc_value **operands = TCC_NEW_ARRAY(ir->arena, tcc_value *, 3 + c->n_sums);
    operands[0] = tcc_build_i32(g, 0);
    operands[1] = iterations;
    operands[2] = tcc_build_i32(g, 1);
    for (size_t i = 0; i < c->n_sums; i++) {
        tcc_scalar sum = c->sums[i].op->results[0].type->elem;
        types[i] = tcc_type_sized(ir, TCC_KIND_tile, sum, 2, (int64_t[]){s->m, s->n});
        g->loc = c->sums[i].op->loc;
        operands[3 + i] =
            sum == TCC_i32 ? tcc_build_int(g, types[i], 0) : tcc_build_float(g, types[i], 0);
    }
    tcc_op *loop = tcc_op_create(g, TCC_OP_scf_for, 3 + c->n_sums, operands, c->n_sums, types);
    tcc_attr_set_int(ir, &loop->attrs, "at_least_once", 1);
    if (s->cluster_k > 1)
        tcc_attr_set_int(ir, &loop->attrs, "ranks", s->cluster_k);
    return loop;
}

/* ---- what is multiplied ------------------------------------------------------------------ */

/* Whether a value is 0 where all that varies along k is, whatever else it is computed of: beyond the last k. */
static bool is_zero_beyond(const tcc_value *v, const char *k, const tcc_map *zeros)
{
    static const tcc_opcode keep_zero[] = {
        TCC_OP_arith_cast, TCC_OP_arith_neg, TCC_OP_arith_add,  TCC_OP_arith_sub, TCC_OP_arith_mul,
        TCC_OP_arith_min,  TCC_OP_arith_max, TCC_OP_math_abs,   TCC_OP_math_relu, TCC_OP_math_silu,
        TCC_OP_math_gelu,  TCC_OP_math_tanh, TCC_OP_math_erf,   TCC_OP_math_sqrt, TCC_OP_math_roundeven,
        TCC_OP_math_gelu_tanh};
    const tcc_op *op = v->def;
    if (op->code == TCC_OP_tensor_read)
        return tcc_map_position(op, k) >= 0;
    bool all = false;
    for (size_t i = 0; i < sizeof keep_zero / sizeof *keep_zero; i++)
        all |= op->code == keep_zero[i];
    bool product = op->code == TCC_OP_arith_mul; /* with a number that is not infinite */
    size_t n_zeros = 0, n_numbers = 0;
    double x;
    for (unsigned i = 0; i < op->n_operands; i++) {
        n_zeros += op->operands[i]->def && tcc_map_get(zeros, op->operands[i]->def);
        n_numbers += product && tcc_value_is_float(op->operands[i], &x) && isfinite(x);
    }
    return all && n_zeros && n_zeros + n_numbers == op->n_operands;
}

/* An operand's tile, 0 beyond the last k: there what is computed of zeros need not be a number, and B's zeros
 * would not undo it. */
static tcc_value *cut(tcc_tiling *t, tcc_value *v, const tcc_sum_operand *o, tcc_dim extent)
{
    tcc_builder *b = &t->b;
    int dim = o->axis ? 0 : 1;
    tcc_value *left = tcc_build_extent(b, extent);
    left = tcc_arith_bin(b, TCC_OP_arith_sub, left, t->at(t->user, o->k));
    const tcc_type *numbers = tcc_type_with_elem(b->func->ir, v->type, TCC_i32);
    tcc_value *index = TCC_EMIT(b, tile_index, numbers, NULL);
    tcc_attr_set_int(b->func->ir, &index->def->attrs, "dim", dim);
    tcc_value *inside = tcc_arith_cmp(b, "lt", index, tcc_tiling_broadcast(t, left, numbers));
    return TCC_EMIT(b, arith_select, v->type, inside, v, tcc_build_float(b, v->type, 0));
}

/* The loop's operands while they are built. */
typedef struct operands {
    const tcc_space *c;
    const tcc_schedule *s;
    tcc_op *grid, *loop;
    tcc_builder *in; /* the loop's body */
    origin at;
    tcc_arena *scratch;
} operands;

/* The tile of tensor elements, whole along both directions. */
static tcc_value *load_operand(tcc_tiling *t, const tcc_sum_operand *o)
{
    const tcc_value *read = &o->read->results[0];
    const tcc_type *type =
        tcc_type_sized(t->b.func->ir, TCC_KIND_tile, read->type->elem, 2, t->sizes);
    t->b.loc = o->read->loc;
    return &tcc_tiling_access(t, o->read, TCC_OP_tile_load, &o->read->operands[0], 1, 1, &type)
                ->results[0];
}

/* What is the same for all k is computed before the loop. */
static tcc_value *compute_operand(operands *w, tcc_tiling *t, const tcc_sum_operand *o)
{
    tcc_map ops = TCC_MAP(w->scratch), zeros = TCC_MAP(w->scratch);
    tcc_find_elementwise(o->value, w->scratch, &ops);
    bool behind = false;
    for (tcc_op *op = w->grid->block->first, *next; op; op = next) {
        next = op->next;
        behind |= op == w->grid;
        if (!tcc_map_get(&ops, op))
            continue;
        if (op->results[0].type->kind != TCC_KIND_field) {
            tcc_builder front = tcc_builder_before(w->grid);
            if (behind) /* it is of a later sum */
                tcc_op_move(&front, op);
            continue;
        }
        if (is_zero_beyond(&op->results[0], o->k, &zeros))
            *tcc_map_at(&zeros, op) = op;
        if (op == o->read)
            continue;
        bool varies = tcc_field_has_index(op->results[0].type, o->k);
        tcc_builder in = t->b;
        if (!varies)
            t->b = tcc_builder_before(w->loop);
        tcc_tiling_op(t, op);
        if (!varies)
            t->b = in;
    }
    tcc_value *v = tcc_tiling_broadcast(t, tcc_value_map_get(t->map, o->value),
                                        tcc_type_sized(t->b.func->ir, TCC_KIND_tile,
                                                       o->value->type->elem, 2, t->sizes));
    tcc_dim k = w->c->k_extent;
    bool whole = !k.name && k.size && k.size % (w->s->k * w->c->parts.count) == 0;
    return whole || tcc_map_get(&zeros, o->value->def) ? v : cut(t, v, o, k);
}

static tcc_value *build_operand(operands *w, const tcc_sum_operand *o)
{
    const char *own = w->c->axes[o->axis];
    bool is_b = o->axis;
    tcc_tiling t = {.b = *w->in,
                    .axes = {is_b ? o->k : own, is_b ? own : o->k},
                    .sizes = {is_b ? w->s->k : w->s->m, is_b ? w->s->n : w->s->k},
                    .at = origin_of,
                    .user = &w->at,
                    .map = tcc_value_map_create(w->scratch)};
    tcc_value *loaded = load_operand(&t, o);
    if (!tcc_sum_operand_is_computed(o))
        return loaded;
    tcc_value_map_set(t.map, &o->read->results[0], loaded);
    return compute_operand(w, &t, o);
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* The body: what is multiplied, then the MMAs. */
static void fill_loop(tcc_op *loop, tcc_op *grid, const tcc_space *c, const tcc_schedule *s,
                      tcc_arena *scratch)
{
    tcc_ir *ir = loop->block->func->ir;
    tcc_builder l = tcc_builder_at_end(loop->regions[0]);
    l.loc = c->sums[0].op->loc;
    const tcc_type *i32 = tcc_type_scalar(ir, TCC_i32);
    tcc_value *iteration = tcc_block_add_arg(loop->regions[0], i32, "iteration");
    tcc_value **values = TCC_NEW_ARRAY(ir->arena, tcc_value *, c->n_operands);
    tcc_value **sums = TCC_NEW_ARRAY(ir->arena, tcc_value *, c->n_sums);
    for (size_t i = 0; i < c->n_sums; i++)
        sums[i] = tcc_block_add_arg(loop->regions[0], loop->results[i].type, "acc");
    operands w = {c, s, grid, loop, &l, {c, grid->regions[0], NULL}, scratch};
    tcc_value *number = iteration; /* of the tile of k */
    if (c->parts.index) {
        number = tcc_arith_mul(&l, number, c->parts.count);
        number = TCC_EMIT(&l, arith_add, i32, number, origin_of(&w.at, c->parts.index));
    }
    w.at.k = TCC_EMIT(&l, arith_mul, i32, number, tcc_build_i32(&l, s->k));
    for (size_t i = 0; i < c->n_operands; i++)
        values[i] = build_operand(&w, &c->operands[i]);
    for (size_t i = 0; i < c->n_sums; i++) {
        const tcc_sum *sum = &c->sums[i];
        tcc_value *a = values[sum->a - c->operands], *b = values[sum->b - c->operands];
        l.loc = sum->op->loc;
        sums[i] = TCC_EMIT(&l, tile_mma, sums[i]->type, a, b, sums[i]);
    }
    tcc_op_create(&l, TCC_OP_scf_yield, c->n_sums, sums, 0, NULL);
}

static void replace_sums(const tcc_space *c, tcc_op *grid)
{
    for (size_t i = 0; i < c->n_sums; i++) {
        tcc_value *sum = &c->sums[i].op->results[0];
        grid->results[i].name = sum->name;
        tcc_replace_uses(sum, &grid->results[i]);
        tcc_op_erase(c->sums[i].op);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_space c;
    tcc_schedule s = tcc_schedule_of(f);
    const tcc_family_passes *passes = tcc_family_passes_of(s.target);
    if (!tcc_func_is_variant(f) || !passes || !tcc_schedule_is_valid(&s) ||
        !tcc_space_of(f, &c) || !c.n_sums)
        return TCC_OK;
    tcc_status status = check_instructions(ctx, &c);
    status = status ? status : check_parts(ctx, &c, &s);
    status = status ? status : check_computed(ctx, f, &c);
    if (status)
        return status;
    tcc_builder b = tcc_builder_before(c.sums[0].op);
    tcc_op *grid = build_grid(&b, &c, &s);
    tcc_builder g = tcc_builder_at_end(grid->regions[0]);
    g.loc = c.sums[0].op->loc;
    bool may_be_empty = !tcc_assumes_min(f, c.k_extent, 1);
    tcc_op *loop = build_loop(&g, &c, &s, build_iteration_count(&g, &c, s.k, may_be_empty));
    fill_loop(loop, grid, &c, &s, ctx->scratch);
    tcc_value **results = TCC_NEW_ARRAY(ctx->ir->arena, tcc_value *, c.n_sums);
    for (size_t i = 0; i < c.n_sums; i++)
        results[i] = &loop->results[i];
    tcc_op_create(&g, TCC_OP_scf_yield, c.n_sums, results, 0, NULL);
    replace_sums(&c, grid);
    tcc_attr_remove(&f->attrs, "axes"); /* the grid has them */
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_tile_contraction = {
    "tile-contraction", "compute sums of products tile by tile", .run = run,
    .requires = TCC_UP_TO(schedule),
    .leaves = TCC_STATE(tiles),
    .undoes = TCC_STATE(swept)};
