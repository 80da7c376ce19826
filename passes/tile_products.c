/* tile_products: sums of products, by matrix instructions.
 *
 * Before:  %p = arith.mul %a, %b : field<f32[m, k, n]>
 *          %s = tensor.reduce %p {over = [k], kind = sum} : field<f32[m, n]>
 * After:   %s = scf.for %iteration = 0 … iterations, %c = 0.0 {
 *            tile.mma (tile.load A), (tile.load B), %c
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
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>

#include "ir/assume.h"
#include "passes/arith.h"
#include "passes/families.h"
#include "passes/tile.h"

/* ---- what can be computed so -------------------------------------------------------------------- */

static bool find_tile(tcc_tiler *w)
{
    w->schedule = tcc_schedule_of(w->f);
    w->t.sizes[0] = w->schedule.m;
    w->t.sizes[1] = w->schedule.n;
    return tcc_family_passes_of(w->schedule.target) && tcc_schedule_is_valid(&w->schedule);
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

/* What operands are computed of is converted like what is used beside the sums. Parts are of whole tiles of k, or none
 * could be computed in tiles. */
static bool check(tcc_tiler *w, tcc_map *terms)
{
    const tcc_space *c = &w->space;
    bool all = true;
    for (size_t i = 0; i < c->n_sums; i++) {
        const char *why = why_not_instructions(w->ctx->scratch, &c->sums[i]);
        if (why)
            tcc_error(w->ctx->diag, TCC_ERR_UNSUPPORTED, c->sums[i].op->loc, "not supported yet: %s", why);
        all &= !why;
    }
    if (c->parts.index && c->parts.depth != w->schedule.k) {
        tcc_error(w->ctx->diag, TCC_ERR_UNSUPPORTED, c->sums[0].op->loc,
                  "not supported yet: parts of %lld terms in a row, computed in tiles of %lld",
                  (long long)c->parts.depth, (long long)w->schedule.k);
        all = false;
    }
    for (size_t i = 0; i < c->n_operands; i++)
        if (tcc_sum_operand_is_computed(&c->operands[i]))
            *tcc_map_at(terms, c->operands[i].value->def) = c->operands[i].value->def;
    tcc_tiler_need(w, terms);
    return all;
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
    tcc_value *left = tcc_build_extent(b, extent);
    left = tcc_arith_bin(b, TCC_OP_arith_sub, left, tcc_tiling_first(t, o->k));
    const tcc_type *numbers = tcc_type_with_elem(b->func->ir, v->type, TCC_i32);
    tcc_value *index = TCC_EMIT(b, tile_index, numbers, NULL);
    tcc_attr_set_int(b->func->ir, &index->def->attrs, "dim", o->axis ? 0 : 1);
    tcc_value *inside = tcc_arith_cmp(b, "lt", index, tcc_tiling_broadcast(t, left, numbers));
    return TCC_EMIT(b, arith_select, v->type, inside, v, tcc_build_float(b, v->type, 0));
}

/* The whole tile of an element type. */
static const tcc_type *tile_of(const tcc_tiling *t, tcc_scalar elem)
{
    return tcc_type_sized(t->b.func->ir, TCC_KIND_tile, elem, 2, t->sizes);
}

/* The tile of tensor elements, whole along both directions. */
static tcc_value *load_operand(tcc_tiling *t, const tcc_sum_operand *o)
{
    const tcc_type *type = tile_of(t, o->read->results[0].type->elem);
    t->b.loc = o->read->loc;
    return &tcc_tiling_access(t, o->read, TCC_OP_tile_load, &o->read->operands[0], 1, 1, &type)->results[0];
}

/* What is the same for all k is computed before the loop. */
static tcc_value *compute_operand(tcc_tiler *w, tcc_op *loop, tcc_tiling *t, const tcc_sum_operand *o)
{
    tcc_map ops = TCC_MAP(w->ctx->scratch), zeros = TCC_MAP(w->ctx->scratch);
    *tcc_map_at(&ops, o->value->def) = o->value->def;
    tcc_tiler_need(w, &ops);
    for (tcc_op *op = w->f->body->first; op; op = op->next) {
        if (!tcc_map_get(&ops, op))
            continue;
        if (is_zero_beyond(&op->results[0], o->k, &zeros))
            *tcc_map_at(&zeros, op) = op;
        if (op == o->read)
            continue;
        tcc_builder in = t->b;
        bool varies = tcc_field_has_index(op->results[0].type, o->k);
        t->b = varies ? in : tcc_builder_before(loop);
        tcc_tiling_op(t, op);
        t->b = varies ? t->b : in;
    }
    tcc_value *v = tcc_tiling_broadcast(t, tcc_value_map_get(t->map, o->value), tile_of(t, o->value->type->elem));
    tcc_dim k = w->space.k_extent;
    bool whole = !k.name && k.size && k.size % (w->schedule.k * w->space.parts.count) == 0;
    return whole || tcc_map_get(&zeros, o->value->def) ? v : cut(t, v, o, k);
}

/* in: builds in the loop. k: the first one of the iteration. */
static tcc_value *build_operand(tcc_tiler *w, tcc_op *loop, const tcc_tiling *in, tcc_value *k,
                                const tcc_sum_operand *o)
{
    tcc_tiling t = *in;
    t.axes[!o->axis] = o->k;
    t.sizes[!o->axis] = w->schedule.k;
    t.map = tcc_value_map_create(w->ctx->scratch);
    tcc_tiling_place(&t, o->k, k);
    tcc_value *loaded = load_operand(&t, o);
    if (!tcc_sum_operand_is_computed(o))
        return loaded;
    tcc_value_map_set(t.map, &o->read->results[0], loaded);
    return compute_operand(w, loop, &t, o);
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* max(1, ceil(extent / step)), only ceil if K > 0 is promised. A step is a tile of k for each part. Parts
 * whose last tile is beyond K multiply zeros once: all have the same number of iterations, so that iterations
 * can be numbered whatever is around the loop. */
static tcc_value *build_iteration_count(tcc_tiler *w)
{
    tcc_builder *b = &w->t.b;
    tcc_dim extent = w->space.k_extent;
    const tcc_type *i32 = tcc_type_scalar(b->func->ir, TCC_i32);
    tcc_value *n = tcc_build_extent(b, extent);
    int64_t step = w->schedule.k * w->space.parts.count;
    n = TCC_EMIT(b, arith_add, i32, n, tcc_build_i32(b, step - 1));
    n = TCC_EMIT(b, arith_div, i32, n, tcc_build_i32(b, step));
    return tcc_assumes_min(w->f, extent, 1) ? n : TCC_EMIT(b, arith_max, i32, n, tcc_build_i32(b, 1));
}

/* The loop over k, which carries an accumulator for each sum. */
static tcc_op *build_loop(tcc_tiler *w)
{
    const tcc_space *c = &w->space;
    tcc_builder *b = &w->t.b;
    tcc_ir *ir = w->f->ir;
    const tcc_type **types = TCC_NEW_ARRAY(ir->arena, const tcc_type *, c->n_sums);
    tcc_value **operands = TCC_NEW_ARRAY(ir->arena, tcc_value *, 3 + c->n_sums);
    operands[1] = build_iteration_count(w);
    operands[0] = tcc_build_i32(b, 0);
    operands[2] = tcc_build_i32(b, 1);
    for (size_t i = 0; i < c->n_sums; i++) {
        types[i] = tile_of(&w->t, c->sums[i].op->results[0].type->elem);
        b->loc = c->sums[i].op->loc;
        operands[3 + i] = tcc_tiling_start(&w->t, types[i], TCC_REDUCTION_SUM);
    }
    tcc_op *loop = tcc_op_create(b, TCC_OP_scf_for, 3 + c->n_sums, operands, c->n_sums, types);
    tcc_attr_set_int(ir, &loop->attrs, "at_least_once", 1);
    if (w->schedule.cluster_k > 1)
        tcc_attr_set_int(ir, &loop->attrs, "ranks", w->schedule.cluster_k);
    return loop;
}

/* The first k of an iteration. */
static tcc_value *build_k(tcc_tiler *w, tcc_builder *l, tcc_value *iteration)
{
    const tcc_sum_parts *parts = &w->space.parts;
    const tcc_type *i32 = iteration->type;
    tcc_value *number = iteration; /* of the tile of k */
    if (parts->index) {
        number = tcc_arith_mul(l, number, parts->count);
        number = TCC_EMIT(l, arith_add, i32, number, tcc_tiling_first(&w->t, parts->index));
    }
    return TCC_EMIT(l, arith_mul, i32, number, tcc_build_i32(l, w->schedule.k));
}

/* The body: what is multiplied, then the MMAs. */
static void fill_loop(tcc_tiler *w, tcc_op *loop)
{
    const tcc_space *c = &w->space;
    tcc_tiling in = w->t;
    in.b = tcc_builder_at_end(loop->regions[0]);
    in.b.loc = c->sums[0].op->loc;
    tcc_value *iteration = tcc_block_add_arg(loop->regions[0], tcc_type_scalar(w->f->ir, TCC_i32), "iteration");
    tcc_value **values = TCC_NEW_ARRAY(w->ctx->scratch, tcc_value *, c->n_operands);
    tcc_value **sums = TCC_NEW_ARRAY(w->ctx->scratch, tcc_value *, c->n_sums);
    for (size_t i = 0; i < c->n_sums; i++)
        sums[i] = tcc_block_add_arg(loop->regions[0], loop->results[i].type, "acc");
    tcc_value *k = build_k(w, &in.b, iteration);
    for (size_t i = 0; i < c->n_operands; i++)
        values[i] = build_operand(w, loop, &in, k, &c->operands[i]);
    for (size_t i = 0; i < c->n_sums; i++) {
        const tcc_sum *sum = &c->sums[i];
        tcc_value *a = values[sum->a - c->operands], *b = values[sum->b - c->operands];
        in.b.loc = sum->op->loc;
        sums[i] = TCC_EMIT(&in.b, tile_mma, sums[i]->type, a, b, sums[i]);
    }
    tcc_op_create(&in.b, TCC_OP_scf_yield, c->n_sums, sums, 0, NULL);
}

static void build(tcc_tiler *w)
{
    const tcc_schedule *s = &w->schedule;
    tcc_attrs *attrs = &w->grid->attrs;
    if (s->persistent)
        tcc_attr_set_int(w->f->ir, attrs, "persistent", s->persistent);
    if (s->cluster_m > 1 || s->cluster_n > 1)
        tcc_attr_set_ints(w->f->ir, attrs, "cluster", 2, (int64_t[]){s->cluster_m, s->cluster_n});
    tcc_op *loop = build_loop(w);
    fill_loop(w, loop);
    for (size_t i = 0; i < w->space.n_sums; i++)
        tcc_value_map_set(w->t.map, &w->space.sums[i].op->results[0], &loop->results[i]);
    tcc_tiler_finish(w);
}

const tcc_tile_kind tcc_tile_products = {find_tile, check, build};
