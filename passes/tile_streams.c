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
 * What does not change with j is computed before the loop, what only results need after it. Scores are multiplied an
 * iteration ahead, so that they run while those before become operands: the loop carries them, and those of the tile
 * behind the last are for nobody. A condition bounds the loop, as far as expressions of indices say (domain.h). In
 * tiles that may lack terms the scores that all depends on are -inf there, or what is summed is 0.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/assume.h"
#include "ir/reduction.h"
#include "passes/arith.h"
#include "passes/cascade.h"
#include "passes/domain.h"
#include "passes/in_step.h"
#include "passes/tile.h"

typedef struct streams {
    tcc_tiler *w;
    tcc_cascade c;
    tcc_tiling t;     /* the one builder; its axes are of what is built */
    tcc_value *begin; /* of the first tile along j */
    tcc_value *first; /* of the one that is built */
    bool whole;       /* every tile along j is */
    bool ahead;       /* scores are multiplied an iteration ahead */
    /* Tiles from the first on to the second, j's first and end, have all terms in all rows; NULL: it is not known. */
    tcc_value *all_from, *all_to;
    tcc_value *is_partial;   /* whether this one may not; NULL: the same */
    tcc_map in, after;       /* ops that are computed in the loop, or before it, and those that results need */
    tcc_map conditions;      /* ops that say which terms there are */
    tcc_map along;           /* values that vary along j, or change with it */
    const tcc_value *source; /* -inf where there is no term; NULL: what is reduced is masked */
    tcc_map masked;          /* values that are masked, and for which reduction */
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

static const tcc_product *score_of(const streams *r, const tcc_op *reduce)
{
    return tcc_product_of(reduce, r->c.n_scores, r->c.scores);
}

static const tcc_product *sum_of(const streams *r, const tcc_op *reduce)
{
    return tcc_product_of(reduce, r->c.n_sums, r->c.sums);
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
        need(&r->conditions, op->operands[1]);
    if (r->source ? term == r->source : tcc_reduction_of(op) == TCC_REDUCTION_SUM)
        *tcc_map_at(&r->masked, r->source ? term : summed_value(term)) = op;
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
            if (tcc_map_get(&r->conditions, op))
                need(varies(r, op->operands[i]) ? &r->conditions : &r->in, op->operands[i]);
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

/* Which terms of the tile along j there are, by the end of j and a reduction's condition. */
static tcc_value *select_terms(streams *r, const tcc_op *reduce, tcc_value *v)
{
    tcc_builder *b = &r->t.b;
    const tcc_type *type = v->type, *numbers = tcc_type_with_elem(ir_of(r), type, TCC_i32);
    tcc_value *none = tcc_tiling_start(&r->t, type, tcc_reduction_of(reduce));
    if (!r->whole) {
        tcc_value *number = TCC_EMIT(b, tile_index, numbers, NULL);
        tcc_attr_set_int(ir_of(r), &number->def->attrs, "dim", 1);
        tcc_value *left = tcc_build_extent(b, tcc_index_extent(r->w->f, r->c.along));
        left = tcc_arith_bin(b, TCC_OP_arith_sub, left, r->first);
        tcc_value *inside = tcc_arith_cmp(b, "lt", number, tcc_tiling_broadcast(&r->t, left, numbers));
        v = TCC_EMIT(b, arith_select, type, inside, v, none);
    }
    if (reduce->n_operands == 1)
        return v;
    tcc_value_map *outer = r->t.map; /* what is computed here may be in a branch */
    r->t.map = tcc_value_map_within(r->w->ctx->scratch, outer);
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (tcc_map_get(&r->conditions, op)) {
            enter_plane(r, op->results[0].type);
            tcc_tiling_op(&r->t, op);
        }
    tcc_value *is_term = tcc_value_map_get(r->t.map, reduce->operands[1]);
    r->t.map = outer;
    return TCC_EMIT(b, arith_select, type, tcc_tiling_broadcast(&r->t, is_term, type), v, none);
}

typedef tcc_value *maker(streams *r, const tcc_op *reduce, tcc_value *v);

static tcc_value *make_masked(streams *r, const tcc_op *reduce, tcc_value *v)
{
    (void)r;
    (void)reduce;
    return v;
}

static tcc_value *make_reduced(streams *r, const tcc_op *reduce, tcc_value *v)
{
    v = TCC_EMIT(&r->t.b, tile_reduce, tile_type(r, v->type->elem, false), v);
    tcc_attr_set_int(ir_of(r), &v->def->attrs, "dim", 1);
    tcc_attr_set_str(ir_of(r), &v->def->attrs, "kind", tcc_reduction_words[tcc_reduction_of(reduce)]);
    return v;
}

/* What is made of v, of the type given, where there are terms, and of what changes no result elsewhere; of v itself
 * where the tile has all. It is made in either branch, so that no branch has a copy of the tile. */
static tcc_value *mask(streams *r, const tcc_op *reduce, tcc_value *v, maker *make, const tcc_type *type)
{
    tcc_builder outer = r->t.b;
    if (r->whole && reduce->n_operands == 1)
        return make(r, reduce, v);
    if (!r->is_partial)
        return make(r, reduce, select_terms(r, reduce, v));
    tcc_op *test = tcc_op_create(&outer, TCC_OP_scf_if, 1, &r->is_partial, 1, &type);
    for (int i = 0; i < 2; i++) {
        r->t.b = tcc_builder_at_end(test->regions[i]);
        r->t.b.loc = outer.loc;
        tcc_value *made = make(r, reduce, i ? v : select_terms(r, reduce, v));
        tcc_op_create(&r->t.b, TCC_OP_scf_yield, 1, &made, 0, NULL);
    }
    r->t.b = outer;
    return &test->results[0];
}

/* ---- exponentials ------------------------------------------------------------------------------- */

/* exp(x * by + y), or exp(x * by - y), where y has no j. */
typedef struct exponential {
    tcc_value *x, *by, *y; /* by: NULL: 1 */
    bool minus;
} exponential;

static bool has_along(const streams *r, const tcc_value *v)
{
    return v->type->kind == TCC_KIND_field && tcc_field_has_index(v->type, r->c.along);
}

/* The product of two values, if it is computed, too; else NULL. */
static tcc_value *product_of(tcc_value *x, tcc_value *y)
{
    for (const tcc_use *u = x->uses; u; u = u->next)
        if (u->op->code == TCC_OP_arith_mul && ((u->op->operands[0] == x && u->op->operands[1] == y) ||
                                                (u->op->operands[1] == x && u->op->operands[0] == y)))
            return &u->op->results[0];
    return NULL;
}

static bool find_exponential(const streams *r, const tcc_value *v, exponential *out)
{
    const tcc_op *of = v->def && v->def->code == TCC_OP_math_exp ? v->def->operands[0]->def : NULL;
    if (!of || v->type->elem != TCC_f32)
        return false;
    if (of->code == TCC_OP_arith_sub) {
        *out = (exponential){.x = of->operands[0], .y = of->operands[1], .minus = true};
    } else if (of->code == TCC_OP_arith_fma) {
        unsigned x = has_along(r, of->operands[0]) ? 0 : 1;
        *out = (exponential){.x = of->operands[x], .by = of->operands[1 - x], .y = of->operands[2]};
        tcc_value *product = product_of(out->x, out->by);
        out->by = product ? NULL : out->by;
        out->x = product ? product : out->x;
    } else {
        return false;
    }
    return has_along(r, out->x) && !(out->by && has_along(r, out->by)) && !has_along(r, out->y);
}

/* Whether a value is a score, or one times a number. */
static bool is_of_score(const streams *r, const tcc_value *v)
{
    const tcc_op *op = v->def;
    for (unsigned i = 0; op && op->code == TCC_OP_arith_mul && i < 2; i++)
        if (op->operands[1 - i]->type->kind == TCC_KIND_scalar && is_of_score(r, op->operands[i]))
            return true;
    return op && tcc_is_reduction(op) && score_of(r, op);
}

/* v, NULL for 1, times a number, as a tile of `type`: multiplied before it is broadcast. */
static tcc_value *scale(streams *r, tcc_value *v, double by, const tcc_type *type)
{
    if (!v)
        return tcc_build_float(&r->t.b, type, by);
    v = tcc_value_map_get(r->t.map, v);
    v = TCC_EMIT(&r->t.b, arith_mul, v->type, v, tcc_build_float(&r->t.b, v->type, by));
    return tcc_tiling_broadcast(&r->t, v, type);
}

/* An exponential of the field that is masked, or by a power of 2, for which there are instructions: then what is the
 * same along j is scaled, rather than each exponent. What is no score may be so large that it could not be. NULL:
 * neither. */
static tcc_value *build_exponential(streams *r, const tcc_op *op)
{
    const double log2_e = 1.4426950408889634;
    exponential e;
    bool is = find_exponential(r, &op->results[0], &e), scales = is && is_of_score(r, e.x);
    if (!scales && !(is && e.x == r->source))
        return NULL;
    tcc_value *x = tcc_value_map_get(r->t.map, e.x), *exponent;
    double unit = scales ? log2_e : 1;
    tcc_value *y = scale(r, e.y, e.minus ? -unit : unit, x->type);
    if (e.by || scales)
        exponent = TCC_EMIT(&r->t.b, arith_fma, x->type, x, scale(r, e.by, unit, x->type), y);
    else
        exponent = TCC_EMIT(&r->t.b, arith_add, x->type, x, y);
    return scales ? TCC_EMIT(&r->t.b, math_exp2, x->type, exponent) : TCC_EMIT(&r->t.b, math_exp, x->type, exponent);
}

/* Whether what a sum is of is 0 where x is -inf. */
static bool vanishes_with(const streams *r, const tcc_value *term, const tcc_value *x)
{
    exponential e;
    double by = 1;
    return find_exponential(r, term, &e) && e.x == x && (!e.by || (tcc_value_is_float(e.by, &by) && by > 0));
}

/* The one field that a maximum is of, and of which all that is summed are such exponentials: -inf where there is no
 * term serves all. NULL: there is none. */
static const tcc_value *find_source(const streams *r)
{
    const tcc_value *source = NULL;
    for (const tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (tcc_is_reduction(op) && !score_of(r, op) && tcc_reduction_of(op) == TCC_REDUCTION_MAX)
            source = op->operands[0];
    bool all = source && source->type->elem == TCC_f32;
    for (const tcc_op *op = r->w->f->body->first; op && all; op = op->next) {
        if (!tcc_is_reduction(op) || score_of(r, op))
            continue;
        const tcc_product *sum = sum_of(r, op);
        tcc_value *term = sum ? sum->of[0].value : op->operands[0];
        all = tcc_reduction_of(op) == TCC_REDUCTION_MAX ? term == source : vanishes_with(r, summed_value(term), source);
    }
    return all ? source : NULL;
}

/* Lets a value be what changes nothing of a reduction where there is no term. */
static void mask_value(streams *r, const tcc_op *as, tcc_value *v)
{
    const tcc_type *type = tile_type(r, v->type->elem, true);
    tcc_value *tile = tcc_tiling_broadcast(&r->t, tcc_value_map_get(r->t.map, v), type);
    tcc_value_map_set(r->t.map, v, mask(r, as, tile, make_masked, type));
}

static void build_op(streams *r, tcc_op *op)
{
    const tcc_op *as = op->n_results ? tcc_map_get(&r->masked, &op->results[0]) : NULL;
    if (!tcc_has_field(op))
        return;
    enter_plane(r, op->results[0].type);
    tcc_value *power = op->code == TCC_OP_math_exp ? build_exponential(r, op) : NULL;
    if (power)
        tcc_value_map_set(r->t.map, &op->results[0], power);
    else
        tcc_tiling_op(&r->t, op);
    if (as && varies(r, &op->results[0]))
        mask_value(r, as, &op->results[0]);
}

/* A reduction along j that is not of products; the terms of sums are masked already. */
static tcc_value *build_reduce(streams *r, const tcc_op *reduce)
{
    const tcc_type *type = tile_type(r, reduce->results[0].type->elem, true);
    tcc_value *term = reduce->operands[0], *v = tcc_value_map_get(r->t.map, term);
    enter_plane(r, term->type);
    v = tcc_arith_cast(&r->t.b, tcc_type_with_elem(ir_of(r), v->type, type->elem), v);
    v = tcc_tiling_broadcast(&r->t, v, type);
    bool is_masked = r->source || (tcc_reduction_of(reduce) == TCC_REDUCTION_SUM && varies(r, summed_value(term)));
    r->t.b.loc = reduce->loc;
    return is_masked ? make_reduced(r, reduce, v) : mask(r, reduce, v, make_reduced, tile_type(r, type->elem, false));
}

/* ---- products ----------------------------------------------------------------------------------- */

/* The tile of a factor that is elements of a tensor, along indices x and y. */
static tcc_value *load_factor(streams *r, tcc_op *read, const char *x, const char *y, const int64_t sizes[2])
{
    const tcc_type *type = tcc_type_sized(ir_of(r), TCC_KIND_tile, read->results[0].type->elem, 2, sizes);
    r->t.axes[0] = x;
    r->t.axes[1] = y;
    r->t.sizes[0] = sizes[0];
    r->t.sizes[1] = sizes[1];
    r->t.b.loc = read->loc;
    return &tcc_tiling_read(&r->t, read, type)->results[0];
}

/* All that a score is summed over. */
static int64_t depth_of(const streams *r, const tcc_product *score)
{
    return tcc_index_extent(r->w->f, score->k).size;
}

/* The rows of a score, which serve the whole loop. */
static tcc_value *load_rows(streams *r, const tcc_product *score)
{
    return load_factor(r, score->of[0].value->def, r->c.rows, score->k,
                       (int64_t[]){r->w->schedule.m, depth_of(r, score)});
}

/* Of the tile that begins at `first`. */
static tcc_value *build_score(streams *r, const tcc_product *score, tcc_value *rows, tcc_value *first)
{
    const int64_t sizes[] = {depth_of(r, score), r->w->schedule.k};
    tcc_tiling_place(&r->t, r->c.along, first);
    tcc_value *b = load_factor(r, score->of[1].value->def, score->k, r->c.along, sizes);
    const tcc_type *type = tile_type(r, score->sum->results[0].type->elem, true);
    r->t.b.loc = score->sum->loc;
    tcc_value *none = tcc_tiling_start(&r->t, type, TCC_REDUCTION_SUM);
    return TCC_EMIT(&r->t.b, tile_mma, type, rows, b, none);
}

/* What a tile's products add to acc. */
static tcc_value *multiply(streams *r, const tcc_product *sum, tcc_value *acc)
{
    const int64_t sizes[] = {r->w->schedule.k, r->w->schedule.n};
    tcc_value *b = load_factor(r, sum->of[1].value->def, r->c.along, r->c.columns, sizes);
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

/* The greatest, or the least, value in the tile's rows of an expression of them and of what is the same in the tile;
 * NULL: it is not known. */
static tcc_value *build_extreme(streams *r, const tcc_index_expr *x, bool greatest)
{
    tcc_ir *ir = ir_of(r);
    const tcc_index_expr *by = tcc_index_stride(ir, x, r->c.rows);
    int64_t step;
    if (!by || !tcc_index_is_number(by, &step) || tcc_index_has(x, TCC_FACTOR_INDEX, r->c.columns))
        return NULL;
    const tcc_index_expr *last = tcc_index_number(ir, (step > 0) == greatest ? r->w->schedule.m - 1 : 0);
    last = tcc_index_add(ir, tcc_index_name(ir, r->c.rows), last);
    return tcc_tiling_number(&r->t, tcc_index_replace(ir, x, TCC_FACTOR_INDEX, r->c.rows, last));
}

/* v, or the least or greatest of it and of the bounds of a domain that are known: in some row or, where NULL says that
 * one is not known, in all. */
static tcc_value *build_bound(streams *r, tcc_value *v, size_t n, const tcc_index_expr *const *bounds, bool is_end,
                              bool in_all)
{
    for (size_t i = 0; i < n && v; i++) {
        tcc_value *bound = build_extreme(r, bounds[i], is_end != in_all);
        if (bound)
            v = tcc_arith_bin(&r->t.b, is_end ? TCC_OP_arith_min : TCC_OP_arith_max, v, bound);
        else if (in_all)
            v = NULL;
    }
    return v;
}

/* Whether the tile that ends at `end` may lack terms in some row. */
static tcc_value *build_is_partial(streams *r, tcc_value *end)
{
    tcc_builder *b = &r->t.b;
    if (!r->all_from)
        return NULL;
    tcc_value *is = tcc_arith_cmp(b, "gt", end, r->all_to);
    int64_t from;
    if (tcc_value_is_int(r->all_from, &from) && !from)
        return is;
    return tcc_arith_bin(b, TCC_OP_arith_or, is, tcc_arith_cmp(b, "lt", r->first, r->all_from));
}

/* The number of tiles with terms, at least one; r->begin: where the first of them begins. */
static tcc_value *build_range(streams *r)
{
    tcc_builder *b = &r->t.b;
    int64_t step = r->w->schedule.k;
    tcc_dim extent = tcc_index_extent(r->w->f, r->c.along);
    const tcc_op *sum = r->c.sums[0].sum;
    tcc_domain d = {0};
    if (sum->n_operands > 1)
        d = tcc_domain_of(sum->operands[1], r->c.along);
    tcc_value *zero = tcc_build_i32(b, 0), *all = tcc_build_extent(b, extent);
    tcc_value *end = build_bound(r, all, d.end.len, d.end.data, true, false);
    tcc_value *least = build_bound(r, zero, d.least.len, d.least.data, false, false);
    bool is_whole = !d.end.len && !d.least.len;
    if (!d.is_wider && !(r->whole && is_whole)) {
        r->all_to = build_bound(r, all, d.end.len, d.end.data, true, true);
        r->all_from = r->all_to ? build_bound(r, zero, d.least.len, d.least.data, false, true) : NULL;
    }
    if (d.least.len)
        least = TCC_EMIT(b, arith_div, least->type, least, tcc_build_i32(b, step));
    r->begin = d.least.len ? TCC_EMIT(b, arith_mul, least->type, least, tcc_build_i32(b, step)) : least;
    tcc_value *n = tcc_arith_add(b, end, step - 1);
    n = TCC_EMIT(b, arith_div, n->type, n, tcc_build_i32(b, step)); /* as costs are read */
    if (d.least.len)
        n = tcc_arith_bin(b, TCC_OP_arith_sub, n, least);
    if (!is_whole || !tcc_assumes_min(r->w->f, extent, 1))
        n = tcc_arith_bin(b, TCC_OP_arith_max, n, tcc_build_i32(b, 1));
    return n;
}

/* It carries the scores of its next iteration last. */
static tcc_op *build_loop(streams *r, tcc_value *const *rows)
{
    tcc_builder *b = &r->t.b;
    tcc_arena *scratch = r->w->ctx->scratch;
    TCC_VEC(tcc_value *) operands = {0};
    TCC_VEC(const tcc_type *) types = {0};
    tcc_value *n = build_range(r);
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
    for (size_t i = 0; i < r->c.n_scores && r->ahead; i++) {
        tcc_value *score = build_score(r, &r->c.scores[i], rows[i], r->begin);
        TCC_PUSH(scratch, &types, score->type);
        TCC_PUSH(scratch, &operands, score);
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
    tcc_value *v = build_reduce(r, reduce);
    if (factor)
        return tcc_multiply_add(&r->t, before, factor, v);
    tcc_value *with[] = {before, v};
    v = &tcc_op_create(&r->t.b, tcc_reduction_op(tcc_reduction_of(reduce)), 2, with, 1, &v->type)->results[0];
    if (tcc_is_followed(reduce))
        tcc_follow(&r->t, reduce, is_of_score(r, reduce->operands[0]) ? 0x1p-32 : 1, before, v);
    return v;
}

static void fill_loop(streams *r, tcc_op *loop, tcc_value *const *rows)
{
    tcc_arena *scratch = r->w->ctx->scratch;
    TCC_VEC(tcc_value *) kept = {0}, next = {0};
    tcc_block *body = loop->regions[0];
    size_t n = loop->n_results - (r->ahead ? r->c.n_scores : 0); /* reductions */
    r->t.b = tcc_builder_at_end(body);
    tcc_value *iteration = tcc_block_add_arg(body, tcc_type_scalar(ir_of(r), TCC_i32), "iteration");
    tcc_value *is_first = tcc_arith_cmp(&r->t.b, "eq", iteration, tcc_build_i32(&r->t.b, 0));
    r->first = tcc_arith_bin(&r->t.b, TCC_OP_arith_add, tcc_arith_mul(&r->t.b, iteration, r->w->schedule.k), r->begin);
    tcc_value *first_of_next = tcc_arith_add(&r->t.b, r->first, r->w->schedule.k);
    r->is_partial = build_is_partial(r, first_of_next);
    for (size_t i = 0; i < loop->n_results; i++)
        tcc_block_add_arg(body, loop->results[i].type, i < n ? "before" : "score");
    for (size_t i = 0; i < r->c.n_scores; i++) {
        tcc_value *score = build_score(r, &r->c.scores[i], rows[i], r->ahead ? first_of_next : r->first);
        tcc_value_map_set(r->t.map, &r->c.scores[i].sum->results[0], r->ahead ? body->args[1 + n + i] : score);
        if (r->ahead)
            TCC_PUSH(scratch, &next, score);
    }
    tcc_tiling_place(&r->t, r->c.along, r->first);
    for (size_t i = 0; i < r->c.n_scores; i++) {
        tcc_value *score = &r->c.scores[i].sum->results[0];
        const tcc_op *as = tcc_map_get(&r->masked, score);
        if (as && r->is_partial && r->ahead) { /* in a branch nothing may be read that MMAs may be writing */
            tcc_value *read = tcc_value_map_get(r->t.map, score), *zero = tcc_build_float(&r->t.b, read->type, 0);
            tcc_value_map_set(r->t.map, score, TCC_EMIT(&r->t.b, arith_add, read->type, read, zero));
        }
        if (as)
            mask_value(r, as, score);
    }
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        if (reduce) {
            tcc_value *now = combine(r, reduce, op, body->args[1 + kept.len], is_first);
            TCC_PUSH(scratch, &kept, now);
        } else if (tcc_map_get(&r->in, op) && varies(r, &op->results[0]) && op->code != TCC_OP_tensor_before) {
            build_op(r, op);
        }
    }
    for (size_t i = 0; i < next.len; i++)
        TCC_PUSH(scratch, &kept, next.data[i]);
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

bool tcc_stream_masks_once(tcc_func *f, const tcc_cascade *c)
{
    tcc_tiler w = {.f = f};
    const streams r = {.w = &w, .c = *c};
    return find_source(&r) != NULL;
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
                 .conditions = TCC_MAP(scratch),
                 .along = TCC_MAP(scratch),
                 .masked = TCC_MAP(scratch)};
    const tcc_value *by;
    tcc_cascade_of(w->f, &r.c);
    r.whole = tcc_assumes_multiple(w->f, tcc_index_extent(w->f, r.c.along), w->schedule.k, &by);
    r.ahead = tcc_target_can(tcc_func_target(w->f), TCC_CAN_wgmma);
    r.source = find_source(&r);
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
    tcc_op *loop = build_loop(&r, rows);
    tcc_builder outer = r.t.b;
    fill_loop(&r, loop, rows);
    r.t.b = outer;
    build_results(&r, loop);
}

const tcc_tile_kind tcc_tile_streams = {find_tile, NULL, build};
