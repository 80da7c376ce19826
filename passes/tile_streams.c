/* tile_streams: products whose operands are computed of other products and of reductions along the same index.
 *
 * Before:  func @f(…) {stream = j, …} {
 *            %s = tensor.reduce … {over = [d], kind = sum} : field<f32[i, j]>                   // of %Q and %K
 *            %m = tensor.reduce %s {over = [j], kind = max} : field<f32[i]>
 *            … %p = math.exp … : field<f32[i, j]>                                               // of %s and %m
 *            %o = tensor.reduce … {over = [j], kind = sum} : field<f32[i, e]>                   // of %p and %V
 *            … %a = math.exp … : field<f32[i]>                              // of %m and tensor.before %m
 *            %r = tensor.rescale %o, %a : field<f32[i, e]>                                      // users of %r
 * After:   tile.grid {axes = [i, e], …} {
 *          ^(%i: i32, %e: i32):
 *            %q = tile.load %Q, … : tile<bf16[128, 64]>
 *            %m, %o = scf.for %iteration = 0 … (%old = -inf, %acc = 0.0) {
 *              %s = tile.mma %q, (tile.load %K), 0.0 : tile<f32[128, 128]>
 *              %m = arith.max %old, (tile.reduce %s {dim = 1, kind = max})
 *              … %p, %a …
 *              %kept = arith.mul %acc, (tile.broadcast %a) : tile<f32[128, 64]>
 *              %o = tile.mma %p, (tile.load %V), %kept
 *            } …
 *
 * Fields are tiles of rows times j, or of rows times e: a tile holds all of e, and all of what scores are summed over.
 * What does not change with j is computed before the loop, what only results need after it. Where the last tile may go
 * beyond the end of j, or a condition says which terms there are, what is summed is 0 for all others.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/assume.h"
#include "ir/reduction.h"
#include "passes/arith.h"
#include "passes/cascade.h"
#include "passes/in_step.h"
#include "passes/tile.h"

typedef struct streams {
    tcc_tiler *w;
    tcc_cascade c;
    tcc_tiling t;      /* the one builder; its axes are of what is built */
    tcc_value *first;  /* of the tile along j */
    tcc_value *inside; /* which elements along j there are; NULL: it was not asked yet */
    bool whole;        /* all are */
    tcc_map in, after; /* ops that are computed in the loop, or before it, and those that results need */
    tcc_map along;     /* values that vary along j, or change with it */
    tcc_map masked;    /* values that are summed: 0 where there is no term */
} streams;

static tcc_ir *ir_of(const streams *r)
{
    return r->w->f->ir;
}

static bool varies(const streams *r, const tcc_value *v)
{
    return tcc_map_get(&r->along, v) != NULL;
}

/* ---- what is computed where --------------------------------------------------------------------- */

/* The value behind conversions of one that is summed. */
static tcc_value *summed_value(tcc_value *v)
{
    while (v->def && v->def->code == TCC_OP_arith_cast)
        v = TCC_VIEW(arith_cast, v->def)->a;
    return v;
}

static const tcc_product *product_in(size_t n, const tcc_product *of, const tcc_op *reduce)
{
    for (size_t i = 0; i < n; i++)
        if (of[i].sum == reduce)
            return &of[i];
    return NULL;
}

static const tcc_product *score_of(const streams *r, const tcc_op *reduce)
{
    return product_in(r->c.n_scores, r->c.scores, reduce);
}

static const tcc_product *sum_of(const streams *r, const tcc_op *reduce)
{
    return product_in(r->c.n_sums, r->c.sums, reduce);
}

static void need(tcc_map *ops, const tcc_value *v)
{
    tcc_op *op = v->def;
    if (op && tcc_has_field(op) && !tcc_is_reduction(op))
        *tcc_map_at(ops, op) = op;
}

/* What the loop is for. */
static void need_in_loop(streams *r, tcc_op *op)
{
    const tcc_product *sum = tcc_is_reduction(op) ? sum_of(r, op) : NULL;
    if (op->code == TCC_OP_tensor_rescale)
        need(&r->in, op->operands[1]);
    if (!tcc_is_reduction(op) || score_of(r, op))
        return;
    tcc_value *term = sum ? sum->of[0].value : op->operands[0];
    need(&r->in, term);
    if (op->n_operands > 1)
        need(&r->in, op->operands[1]);
    if (tcc_reduction_of(op) == TCC_REDUCTION_SUM)
        *tcc_map_at(&r->masked, summed_value(term)) = op;
}

static void find_needed(streams *r)
{
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        bool moves = tcc_is_reduction(op);
        for (unsigned i = 0; i < op->n_operands && !moves; i++)
            moves = varies(r, op->operands[i]);
        moves |= tcc_has_field(op) && tcc_field_has_index(op->results[0].type, r->c.along);
        if (moves && op->n_results)
            *tcc_map_at(&r->along, &op->results[0]) = op;
        need_in_loop(r, op);
        if (op->code == TCC_OP_tensor_write)
            need(&r->after, op->operands[0]);
    }
    for (tcc_op *op = r->w->f->body->last; op; op = op->prev) /* users come after what they use */
        for (unsigned i = 0; i < op->n_operands && op->code != TCC_OP_tensor_rescale; i++) {
            if (tcc_map_get(&r->in, op))
                need(&r->in, op->operands[i]);
            if (tcc_map_get(&r->after, op))
                need(&r->after, op->operands[i]);
        }
}

/* ---- fields ------------------------------------------------------------------------------------- */

/* Rows times j, or rows times the columns of results. */
static void enter_plane(streams *r, const tcc_type *field)
{
    bool along = tcc_field_has_index(field, r->c.along);
    r->t.axes[0] = r->c.rows;
    r->t.axes[1] = along ? r->c.along : r->c.columns;
    r->t.sizes[0] = r->w->schedule.m;
    r->t.sizes[1] = along ? r->w->schedule.k : r->w->schedule.n;
}

/* A tile of rows times j, or with one column. */
static const tcc_type *tile_type(const streams *r, tcc_scalar elem, bool along)
{
    const int64_t sizes[] = {r->w->schedule.m, along ? r->w->schedule.k : 1};
    return tcc_type_sized(ir_of(r), TCC_KIND_tile, elem, 2, sizes);
}

/* v where there are terms along j, elsewhere what changes no result. */
static tcc_value *mask(streams *r, const tcc_op *reduce, tcc_value *v)
{
    tcc_builder *b = &r->t.b;
    const tcc_type *type = v->type, *numbers = tcc_type_with_elem(ir_of(r), type, TCC_i32);
    tcc_value *none = tcc_tiling_start(&r->t, type, tcc_reduction_of(reduce));
    if (!r->whole && !r->inside) {
        tcc_value *number = TCC_EMIT(b, tile_index, numbers, NULL);
        tcc_attr_set_int(ir_of(r), &number->def->attrs, "dim", 1);
        tcc_value *left = tcc_build_extent(b, tcc_index_extent(r->w->f, r->c.along));
        left = tcc_arith_bin(b, TCC_OP_arith_sub, left, r->first);
        r->inside = tcc_arith_cmp(b, "lt", number, tcc_tiling_broadcast(&r->t, left, numbers));
    }
    if (!r->whole)
        v = TCC_EMIT(b, arith_select, type, r->inside, v, none);
    if (reduce->n_operands > 1) {
        tcc_value *is_term = tcc_value_map_get(r->t.map, reduce->operands[1]);
        v = TCC_EMIT(b, arith_select, type, tcc_tiling_broadcast(&r->t, is_term, type), v, none);
    }
    return v;
}

static void build_op(streams *r, tcc_op *op)
{
    const tcc_op *sum = op->n_results ? tcc_map_get(&r->masked, &op->results[0]) : NULL;
    if (!tcc_has_field(op))
        return;
    enter_plane(r, op->results[0].type);
    tcc_tiling_op(&r->t, op);
    if (!sum || !varies(r, &op->results[0]))
        return;
    const tcc_type *type = tile_type(r, op->results[0].type->elem, true);
    tcc_value *v = tcc_tiling_broadcast(&r->t, tcc_value_map_get(r->t.map, &op->results[0]), type);
    tcc_value_map_set(r->t.map, &op->results[0], mask(r, sum, v));
}

/* The terms of a reduction along j that is not of products; those of sums are masked already. */
static tcc_value *build_terms(streams *r, const tcc_op *reduce)
{
    const tcc_type *type = tile_type(r, reduce->results[0].type->elem, true);
    tcc_value *term = reduce->operands[0], *v = tcc_value_map_get(r->t.map, term);
    enter_plane(r, term->type);
    v = tcc_arith_cast(&r->t.b, tcc_type_with_elem(ir_of(r), v->type, type->elem), v);
    v = tcc_tiling_broadcast(&r->t, v, type);
    bool is_masked = tcc_reduction_of(reduce) == TCC_REDUCTION_SUM && varies(r, summed_value(term));
    return is_masked ? v : mask(r, reduce, v);
}

/* ---- products ----------------------------------------------------------------------------------- */

/* The tile of a factor that is elements of a tensor, along indices x and y. */
static tcc_value *load_factor(streams *r, const tcc_factor *f, const char *x, const char *y, const int64_t sizes[2])
{
    tcc_op *read = f->value->def;
    const tcc_type *type = tcc_type_sized(ir_of(r), TCC_KIND_tile, f->value->type->elem, 2, sizes);
    r->t.axes[0] = x;
    r->t.axes[1] = y;
    r->t.sizes[0] = sizes[0];
    r->t.sizes[1] = sizes[1];
    r->t.b.loc = read->loc;
    return &tcc_tiling_read(&r->t, read, type)->results[0];
}

static int64_t depth_of(const streams *r, const tcc_product *score)
{
    return tcc_index_extent(r->w->f, score->k).size;
}

/* The rows of a score, which serve the whole loop. */
static tcc_value *load_rows(streams *r, const tcc_product *score)
{
    return load_factor(r, &score->of[0], r->c.rows, score->k, (int64_t[]){r->w->schedule.m, depth_of(r, score)});
}

static void build_score(streams *r, const tcc_product *score, tcc_value *rows)
{
    const int64_t sizes[] = {depth_of(r, score), r->w->schedule.k};
    tcc_value *b = load_factor(r, &score->of[1], score->k, r->c.along, sizes);
    const tcc_type *type = tile_type(r, score->sum->results[0].type->elem, true);
    r->t.b.loc = score->sum->loc;
    tcc_value *none = tcc_tiling_start(&r->t, type, TCC_REDUCTION_SUM);
    tcc_value_map_set(r->t.map, &score->sum->results[0], TCC_EMIT(&r->t.b, tile_mma, type, rows, b, none));
}

/* What a tile's products add to acc. */
static tcc_value *multiply(streams *r, const tcc_product *sum, tcc_value *acc)
{
    const int64_t sizes[] = {r->w->schedule.k, r->w->schedule.n};
    tcc_value *b = load_factor(r, &sum->of[1], r->c.along, r->c.columns, sizes);
    tcc_value *a = tcc_value_map_get(r->t.map, sum->of[0].value);
    enter_plane(r, sum->of[0].value->type);
    a = tcc_tiling_broadcast(&r->t, a, tile_type(r, a->type->elem, true));
    r->t.b.loc = sum->sum->loc;
    return TCC_EMIT(&r->t.b, tile_mma, acc->type, a, b, acc);
}

/* ---- the loop ----------------------------------------------------------------------------------- */

/* What a reduction's partial results are. */
static const tcc_type *kept_type(const streams *r, const tcc_op *reduce)
{
    const int64_t sizes[] = {r->w->schedule.m, sum_of(r, reduce) ? r->w->schedule.n : 1};
    return tcc_type_sized(ir_of(r), TCC_KIND_tile, reduce->results[0].type->elem, 2, sizes);
}

/* The reduction of j that is combined where op stands. */
static tcc_op *combined_at(const streams *r, tcc_op *op)
{
    tcc_op *reduce = tcc_reduced_at(op);
    return reduce && !score_of(r, reduce) ? reduce : NULL;
}

static tcc_op *build_loop(streams *r)
{
    tcc_builder *b = &r->t.b;
    tcc_arena *scratch = r->w->ctx->scratch;
    TCC_VEC(tcc_value *) operands = {0};
    TCC_VEC(const tcc_type *) types = {0};
    tcc_dim extent = tcc_index_extent(r->w->f, r->c.along);
    tcc_value *n = tcc_build_extent(b, extent);
    n = tcc_arith_add(b, n, r->w->schedule.k - 1);
    n = TCC_EMIT(b, arith_div, n->type, n, tcc_build_i32(b, r->w->schedule.k)); /* as costs are read */
    if (!tcc_assumes_min(r->w->f, extent, 1))
        n = tcc_arith_bin(b, TCC_OP_arith_max, n, tcc_build_i32(b, 1));
    TCC_PUSH(scratch, &operands, tcc_build_i32(b, 0));
    TCC_PUSH(scratch, &operands, n);
    TCC_PUSH(scratch, &operands, tcc_build_i32(b, 1));
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        if (!reduce)
            continue;
        TCC_PUSH(scratch, &types, kept_type(r, reduce));
        TCC_PUSH(scratch, &operands, tcc_tiling_start(&r->t, types.data[types.len - 1], tcc_reduction_of(reduce)));
    }
    tcc_op *loop = tcc_op_create(b, TCC_OP_scf_for, operands.len, operands.data, types.len, types.data);
    tcc_attr_set_int(ir_of(r), &loop->attrs, "at_least_once", 1);
    return loop;
}

/* Combines a tile's terms with those before. */
static tcc_value *combine(streams *r, const tcc_op *reduce, const tcc_op *op, tcc_value *before, tcc_value *is_first)
{
    const tcc_product *sum = sum_of(r, reduce);
    tcc_value *factor = op == reduce ? NULL : tcc_in_step(&r->t, op, is_first, before->type);
    if (sum)
        return multiply(r, sum, factor ? TCC_EMIT(&r->t.b, arith_mul, before->type, before, factor) : before);
    tcc_value *terms = build_terms(r, reduce);
    r->t.b.loc = reduce->loc;
    tcc_value *v = TCC_EMIT(&r->t.b, tile_reduce, before->type, terms);
    tcc_attr_set_int(ir_of(r), &v->def->attrs, "dim", 1);
    tcc_attr_set_str(ir_of(r), &v->def->attrs, "kind", tcc_reduction_words[tcc_reduction_of(reduce)]);
    if (factor)
        return tcc_multiply_add(&r->t, before, factor, v);
    tcc_value *with[] = {before, v};
    v = &tcc_op_create(&r->t.b, tcc_reduction_op(tcc_reduction_of(reduce)), 2, with, 1, &v->type)->results[0];
    if (tcc_is_followed(reduce))
        tcc_follow(&r->t, reduce, before, v);
    return v;
}

static void fill_loop(streams *r, tcc_op *loop, tcc_value *const *rows)
{
    TCC_VEC(tcc_value *) kept = {0};
    tcc_block *body = loop->regions[0];
    r->t.b = tcc_builder_at_end(body);
    tcc_value *iteration = tcc_block_add_arg(body, tcc_type_scalar(ir_of(r), TCC_i32), "iteration");
    tcc_value *is_first = tcc_arith_cmp(&r->t.b, "eq", iteration, tcc_build_i32(&r->t.b, 0));
    r->first = tcc_arith_mul(&r->t.b, iteration, r->w->schedule.k);
    tcc_tiling_place(&r->t, r->c.along, r->first);
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_product *score = tcc_is_reduction(op) ? score_of(r, op) : NULL;
        const tcc_op *reduce = combined_at(r, op);
        if (score)
            build_score(r, score, rows[score - r->c.scores]);
        else if (reduce)
            TCC_PUSH(r->w->ctx->scratch, &kept,
                     combine(r, reduce, op, tcc_block_add_arg(body, kept_type(r, reduce), reduce->results[0].name),
                             is_first));
        else if (tcc_map_get(&r->in, op) && varies(r, &op->results[0]) && op->code != TCC_OP_tensor_before)
            build_op(r, op);
    }
    tcc_op_create(&r->t.b, TCC_OP_scf_yield, kept.len, kept.data, 0, NULL);
}

/* Results, and what is computed of them. */
static void build_results(streams *r, tcc_op *loop)
{
    size_t n = 0;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        if (reduce)
            tcc_value_map_set(r->t.map, &op->results[0], &loop->results[n++]);
        else if (op->code == TCC_OP_tensor_write)
            tcc_tiler_write(r->w, op);
        else if (tcc_map_get(&r->after, op) && (varies(r, &op->results[0]) || !tcc_map_get(&r->in, op)))
            build_op(r, op);
        r->w->t.b = r->t.b;
    }
}

/* ---- the kind ----------------------------------------------------------------------------------- */

static bool find_tile(tcc_tiler *w)
{
    tcc_cascade c;
    w->schedule = tcc_schedule_of(w->f);
    w->t.sizes[0] = w->schedule.m;
    w->t.sizes[1] = w->schedule.n;
    return tcc_schedule_is_valid(&w->schedule) && tcc_cascade_of(w->f, &c);
}

static void build(tcc_tiler *w)
{
    tcc_arena *scratch = w->ctx->scratch;
    streams r = {.w = w,
                 .in = TCC_MAP(scratch),
                 .after = TCC_MAP(scratch),
                 .along = TCC_MAP(scratch),
                 .masked = TCC_MAP(scratch)};
    const tcc_value *by;
    tcc_cascade_of(w->f, &r.c);
    r.whole = tcc_assumes_multiple(w->f, tcc_index_extent(w->f, r.c.along), w->schedule.k, &by);
    find_needed(&r);
    r.t = w->t;
    tcc_value **rows = TCC_NEW_ARRAY(scratch, tcc_value *, r.c.n_scores);
    for (size_t i = 0; i < r.c.n_scores; i++)
        tcc_tiling_place(&r.t, r.c.scores[i].k, tcc_build_i32(&r.t.b, 0));
    for (size_t i = 0; i < r.c.n_scores; i++)
        rows[i] = load_rows(&r, &r.c.scores[i]);
    for (tcc_op *op = w->f->body->first; op; op = op->next)
        if (tcc_map_get(&r.in, op) && !varies(&r, &op->results[0]))
            build_op(&r, op);
    tcc_op *loop = build_loop(&r);
    tcc_builder outer = r.t.b;
    fill_loop(&r, loop, rows);
    r.t.b = outer;
    build_results(&r, loop);
}

const tcc_tile_kind tcc_tile_streams = {find_tile, NULL, build};
