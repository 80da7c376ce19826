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
 *            %s = tile.mma %q, (tile.load %K), 0.0 : tile<f32[128, 128]>
 *            %m = tile.reduce %s {dim = 1, kind = max}        … %p …
 *            %m, %o, %p = scf.for … (%old = %m, %kept = 0.0, %operand = %p) {          // from the second tile on
 *              %s = tile.mma %q, (tile.load %K), 0.0 : tile<f32[128, 128]>
 *              %sum = tile.mma %operand, (tile.load %V), %kept : tile<f32[128, 64]>    // of the tile before
 *              %m = arith.max %old, (tile.reduce %s {dim = 1, kind = max})
 *              … %p, %a …
 *              scf.yield %m, (arith.mul %sum, (tile.broadcast %a)), %p
 *            }
 *            %o = tile.mma %p, (tile.load %V), %o
 *
 * Fields are tiles of rows times j, or of rows times e: a tile holds all of e, and all of what scores are summed over.
 * What does not change with j is computed before the loop, what only results need after it. What a tile adds to sums is
 * multiplied with the scores of the next one, so that it runs while those become operands: the loop carries operands,
 * and begins with the second tile. A condition bounds it, as far as expressions of indices say (domain.h). In tiles
 * that may lack terms the scores that all depends on are -inf there, or what is summed is 0.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <float.h>
#include <math.h>

#include "ir/assume.h"
#include "ir/reduction.h"
#include "passes/arith.h"
#include "passes/domain.h"
#include "passes/tile_streams.h"

/* ---- what is computed where --------------------------------------------------------------------- */

/* The value behind conversions of one that is summed. */
static tcc_value *summed_value(tcc_value *v)
{
    while (v->def && v->def->code == TCC_OP_arith_cast)
        v = TCC_VIEW(arith_cast, v->def)->a;
    return v;
}

static void need(tcc_map *ops, const tcc_value *v)
{
    tcc_op *op = v->def;
    if (op && tcc_has_field(op) && !tcc_is_reduction(op))
        *tcc_map_at(ops, op) = op;
}

/* What the loop is for. */
static void need_in_loop(tcc_streams *r, tcc_op *op)
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
    if (r->source && tcc_reduction_of(op) == TCC_REDUCTION_MAX)
        *tcc_map_at(&r->masked, r->source) = op;
    else if (!r->source && tcc_reduction_of(op) == TCC_REDUCTION_SUM)
        *tcc_map_at(&r->masked, summed_value(term)) = op;
}

static void find_needed(tcc_streams *r)
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
static void enter_plane(tcc_streams *r, const tcc_type *field)
{
    bool along = tcc_field_has_index(field, r->c.along);
    r->t.axes[0] = r->c.rows;
    r->t.axes[1] = along ? r->c.along : r->c.columns;
    r->t.sizes[0] = r->w->schedule.m;
    r->t.sizes[1] = along ? r->w->schedule.k : r->w->schedule.n;
}

/* A tile of rows times j, or with one column. */
static const tcc_type *tile_type(const tcc_streams *r, tcc_scalar elem, bool along)
{
    const int64_t sizes[] = {r->w->schedule.m, along ? r->w->schedule.k : 1};
    return tcc_type_sized(ir_of(r), TCC_KIND_tile, elem, 2, sizes);
}

/* Which terms of the tile along j there are, by the end of j and a reduction's condition. */
static tcc_value *select_terms(tcc_streams *r, const tcc_op *reduce, tcc_value *v)
{
    tcc_builder *b = &r->t.b;
    const tcc_type *type = v->type, *numbers = tcc_type_with_elem(ir_of(r), type, TCC_i32);
    tcc_value *none = tcc_tiling_start(&r->t, type, tcc_reduction_of(reduce));
    if (r->by) {
        const tcc_type *scalar = tcc_type_scalar(ir_of(r), type->elem);
        tcc_value *least = tcc_build_float(b, scalar, -INFINITY), *most = tcc_build_float(b, scalar, INFINITY);
        least = TCC_EMIT(b, arith_select, scalar, r->is_positive, least, most);
        none = tcc_tiling_broadcast(&r->t, least, type);
    }
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

typedef tcc_value *maker(tcc_streams *r, const tcc_op *reduce, tcc_value *v);

static tcc_value *make_masked(tcc_streams *r, const tcc_op *reduce, tcc_value *v)
{
    (void)r;
    (void)reduce;
    return v;
}

static tcc_value *reduce_as(tcc_streams *r, tcc_reduction kind, tcc_value *v)
{
    v = TCC_EMIT(&r->t.b, tile_reduce, tile_type(r, v->type->elem, false), v);
    tcc_attr_set_int(ir_of(r), &v->def->attrs, "dim", 1);
    tcc_attr_set_str(ir_of(r), &v->def->attrs, "kind", tcc_reduction_words[kind]);
    return v;
}

static tcc_value *make_reduced(tcc_streams *r, const tcc_op *reduce, tcc_value *v)
{
    return reduce_as(r, tcc_reduction_of(reduce), v);
}

/* The maximum of the source times a number: that of the source, or the minimum, times it. */
static tcc_value *build_scaled_maximum(tcc_streams *r, tcc_value *v)
{
    const tcc_reduction kinds[] = {TCC_REDUCTION_MAX, TCC_REDUCTION_MIN};
    const tcc_type *type = tile_type(r, v->type->elem, false);
    tcc_builder outer = r->t.b;
    tcc_op *test = tcc_op_create(&outer, TCC_OP_scf_if, 1, &r->is_positive, 1, &type);
    for (int i = 0; i < 2; i++) {
        r->t.b = tcc_builder_at_end(test->regions[i]);
        r->t.b.loc = outer.loc;
        tcc_value *extreme = reduce_as(r, kinds[i], v);
        tcc_op_create(&r->t.b, TCC_OP_scf_yield, 1, &extreme, 0, NULL);
    }
    r->t.b = outer;
    tcc_value *by = tcc_tiling_broadcast(&r->t, tcc_value_map_get(r->t.map, r->by), type);
    return TCC_EMIT(&r->t.b, arith_mul, type, &test->results[0], by);
}

/* What is made of v, of the type given, where there are terms, and of what changes no result elsewhere; of v itself
 * where the tile has all. It is made in either branch, so that no branch has a copy of the tile. */
static tcc_value *mask(tcc_streams *r, const tcc_op *reduce, tcc_value *v, maker *make, const tcc_type *type)
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

static bool has_along(const tcc_streams *r, const tcc_value *v)
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

/* The number that v is a score times, and the score; NULL: it is not. */
static tcc_value *scale_of(const tcc_streams *r, const tcc_value *v, tcc_value **score)
{
    const tcc_op *op = v->def;
    for (unsigned i = 0; op && op->code == TCC_OP_arith_mul && i < 2; i++) {
        const tcc_op *of = op->operands[i]->def;
        if (op->operands[1 - i]->type->kind == TCC_KIND_scalar && of && tcc_is_reduction(of) && score_of(r, of)) {
            *score = op->operands[i];
            return op->operands[1 - i];
        }
    }
    return NULL;
}

static bool find_exponential(const tcc_streams *r, const tcc_value *v, exponential *out)
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
    out->by = out->by || !r->later ? out->by : scale_of(r, out->x, &out->x);
    return has_along(r, out->x) && !(out->by && has_along(r, out->by)) && !has_along(r, out->y);
}

/* Whether a value is a score, or one times a number. */
bool tcc_streams_is_of_score(const tcc_streams *r, const tcc_value *v)
{
    const tcc_op *op = v->def;
    for (unsigned i = 0; op && op->code == TCC_OP_arith_mul && i < 2; i++)
        if (op->operands[1 - i]->type->kind == TCC_KIND_scalar && tcc_streams_is_of_score(r, op->operands[i]))
            return true;
    return op && tcc_is_reduction(op) && score_of(r, op);
}

/* v, NULL for 1, times a number, as a tile of `type`: multiplied before it is broadcast. */
static tcc_value *scale(tcc_streams *r, tcc_value *v, double by, const tcc_type *type)
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
static tcc_value *build_exponential(tcc_streams *r, const tcc_op *op)
{
    const double log2_e = 1.4426950408889634;
    exponential e;
    bool is = find_exponential(r, &op->results[0], &e), scales = is && tcc_streams_is_of_score(r, e.x);
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
static bool vanishes_with(const tcc_streams *r, const tcc_value *term, const tcc_value *x)
{
    exponential e;
    double by = 1;
    return find_exponential(r, term, &e) && e.x == x &&
           (r->by ? e.by == r->by : !e.by || (tcc_value_is_float(e.by, &by) && by > 0));
}

/* The one field that a maximum is of, as it is or times a number, and of which all that is summed are such
 * exponentials: -inf where there is no term, or inf, serves all. False: there is none. */
static bool find_source(tcc_streams *r)
{
    tcc_value *scaled = NULL, *source = NULL;
    for (const tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (tcc_is_reduction(op) && !score_of(r, op) && tcc_reduction_of(op) == TCC_REDUCTION_MAX)
            scaled = source = op->operands[0];
    r->by = source && r->later ? scale_of(r, scaled, &source) : NULL;
    bool all = source && source->type->elem == TCC_f32;
    for (const tcc_op *op = r->w->f->body->first; op && all; op = op->next) {
        if (!tcc_is_reduction(op) || score_of(r, op))
            continue;
        const tcc_product *sum = sum_of(r, op);
        tcc_value *term = sum ? sum->of[0].value : op->operands[0];
        all = tcc_reduction_of(op) == TCC_REDUCTION_MAX ? term == scaled : vanishes_with(r, summed_value(term), source);
    }
    r->source = all ? source : NULL;
    r->by = all ? r->by : NULL;
    return all;
}

/* Lets a value be what changes nothing of a reduction where there is no term. */
static void mask_value(tcc_streams *r, const tcc_op *as, tcc_value *v)
{
    const tcc_type *type = tile_type(r, v->type->elem, true);
    tcc_value *tile = tcc_tiling_broadcast(&r->t, tcc_value_map_get(r->t.map, v), type);
    tcc_value_map_set(r->t.map, v, mask(r, as, tile, make_masked, type));
}

void tcc_streams_build_op(tcc_streams *r, tcc_op *op)
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
tcc_value *tcc_streams_reduce(tcc_streams *r, const tcc_op *reduce)
{
    const tcc_type *type = tile_type(r, reduce->results[0].type->elem, true);
    tcc_value *term = reduce->operands[0], *v = tcc_value_map_get(r->t.map, term);
    enter_plane(r, term->type);
    v = tcc_arith_cast(&r->t.b, tcc_type_with_elem(ir_of(r), v->type, type->elem), v);
    v = tcc_tiling_broadcast(&r->t, v, type);
    if (r->by && tcc_reduction_of(reduce) == TCC_REDUCTION_MAX)
        return build_scaled_maximum(r, tcc_value_map_get(r->t.map, r->source));
    bool is_masked = r->source || (tcc_reduction_of(reduce) == TCC_REDUCTION_SUM && varies(r, summed_value(term)));
    r->t.b.loc = reduce->loc;
    return is_masked ? make_reduced(r, reduce, v) : mask(r, reduce, v, make_reduced, tile_type(r, type->elem, false));
}

/* ---- products ----------------------------------------------------------------------------------- */

/* The tile of a factor that is elements of a tensor, along indices x and y. */
static tcc_value *load_factor(tcc_streams *r, tcc_op *read, const char *x, const char *y, const int64_t sizes[2])
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
static int64_t depth_of(const tcc_streams *r, const tcc_product *score)
{
    return tcc_index_extent(r->w->f, score->k).size;
}

/* The rows of a score, which serve the whole loop. */
static tcc_value *load_rows(tcc_streams *r, const tcc_product *score)
{
    return load_factor(r, score->of[0].value->def, r->c.rows, score->k,
                       (int64_t[]){r->w->schedule.m, depth_of(r, score)});
}

/* Of the tile that begins at `first`. */
static tcc_value *build_score(tcc_streams *r, const tcc_product *score, tcc_value *rows, tcc_value *first)
{
    const int64_t sizes[] = {depth_of(r, score), r->w->schedule.k};
    tcc_tiling_place(&r->t, r->c.along, first);
    tcc_value *b = load_factor(r, score->of[1].value->def, score->k, r->c.along, sizes);
    const tcc_type *type = tile_type(r, score->sum->results[0].type->elem, true);
    r->t.b.loc = score->sum->loc;
    tcc_value *none = tcc_tiling_start(&r->t, type, TCC_REDUCTION_SUM);
    return TCC_EMIT(&r->t.b, tile_mma, type, rows, b, none);
}

/* Which of the factors that are computed a sum has. */
static size_t factor_at(const tcc_streams *r, const tcc_product *sum)
{
    size_t i = 0;
    while (i < r->factors.len && r->factors.data[i] != sum->of[0].value)
        i++;
    return i;
}

/* Adds the products of the tile that begins at `first`, whose operands these are, to sums. */
static void multiply(tcc_streams *r, tcc_value *first, tcc_value *const *operands, tcc_value **kept)
{
    const int64_t sizes[] = {r->w->schedule.k, r->w->schedule.n};
    tcc_tiling_place(&r->t, r->c.along, first);
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        const tcc_product *sum = reduce ? sum_of(r, reduce) : NULL;
        if (sum) {
            tcc_value *b = load_factor(r, sum->of[1].value->def, r->c.along, r->c.columns, sizes);
            r->t.b.loc = reduce->loc;
            *kept = TCC_EMIT(&r->t.b, tile_mma, (*kept)->type, operands[factor_at(r, sum)], b, *kept);
        }
        kept += reduce != NULL;
    }
}

/* ---- the loop ----------------------------------------------------------------------------------- */

/* What a reduction's partial results are. */
static const tcc_type *kept_type(const tcc_streams *r, const tcc_op *reduce)
{
    const int64_t sizes[] = {r->w->schedule.m, sum_of(r, reduce) ? r->w->schedule.n : 1};
    return tcc_type_sized(ir_of(r), TCC_KIND_tile, reduce->results[0].type->elem, 2, sizes);
}

/* The greatest, or the least, value in the tile's rows of an expression of them and of what is the same in the tile;
 * NULL: it is not known. */
static tcc_value *build_extreme(tcc_streams *r, const tcc_index_expr *x, bool greatest)
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
static tcc_value *build_bound(tcc_streams *r, tcc_value *v, size_t n, const tcc_index_expr *const *bounds, bool is_end,
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
static tcc_value *build_is_partial(tcc_streams *r, tcc_value *end)
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
static tcc_value *build_range(tcc_streams *r)
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

/* Whether op only converts a factor: the registers of the one before it are free when its products are there. */
static bool is_conversion(const tcc_streams *r, const tcc_op *op)
{
    bool is = false;
    for (size_t i = 0; i < r->factors.len && op->code == TCC_OP_arith_cast; i++)
        is |= r->factors.data[i] == &op->results[0];
    for (const tcc_use *u = is ? op->results[0].uses : NULL; u; u = u->next)
        is &= !tcc_map_get(&r->in, u->op) && !tcc_is_reduction(u->op);
    return is;
}

/* The tile that begins at r->first, whose scores are there: adds its terms to what is kept, except products, and
 * computes what these are of. Sums of products are needed last: they may still be in work. */
static void build_tile(tcc_streams *r, tcc_value **kept, tcc_value **operands, bool is_first)
{
    tcc_value **references = operands + r->factors.len;
    tcc_tiling_place(&r->t, r->c.along, r->first);
    for (size_t i = 0; i < r->c.n_scores; i++) {
        tcc_value *score = &r->c.scores[i].sum->results[0];
        const tcc_op *as = tcc_map_get(&r->masked, score);
        if (as)
            mask_value(r, as, score);
    }
    tcc_value **now = kept;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        bool is_needed = tcc_map_get(&r->in, op) && varies(r, &op->results[0]);
        if (reduce && !sum_of(r, reduce)) {
            *now = tcc_streams_combine(r, reduce, op, *now, is_first);
            tcc_streams_keep_reference(r, reduce, references, is_first);
        } else if (!reduce && is_needed && op->code != TCC_OP_tensor_before && !is_conversion(r, op)) {
            tcc_streams_build_op(r, op);
        }
        now += reduce != NULL;
    }
    if (!is_first)
        tcc_streams_rescale(r, kept);
    for (size_t i = 0; i < r->factors.len; i++) {
        tcc_value *factor = r->factors.data[i];
        if (factor->def && is_conversion(r, factor->def))
            tcc_streams_build_op(r, factor->def);
        tcc_value *a = tcc_value_map_get(r->t.map, factor);
        enter_plane(r, factor->type);
        operands[i] = tcc_tiling_broadcast(&r->t, a, tile_type(r, a->type->elem, true));
    }
}

static void build_scores(tcc_streams *r, tcc_value *const *rows, tcc_value *first)
{
    for (size_t i = 0; i < r->c.n_scores; i++) {
        const tcc_product *score = &r->c.scores[i];
        tcc_value_map_set(r->t.map, &score->sum->results[0], build_score(r, score, rows[i], first));
    }
}

/* Over all tiles or, if what they add is multiplied later, from the second one on. carried: what is kept, n of them,
 * then operands, and what sums are in step with. */
static tcc_op *build_loop(tcc_streams *r, tcc_value *tiles, tcc_value *const *rows, size_t n, size_t n_carried,
                          tcc_value **carried)
{
    tcc_builder outer = r->t.b;
    tcc_arena *scratch = r->w->ctx->scratch;
    int64_t step = r->w->schedule.k;
    tcc_value **made = TCC_NEW_ARRAY(scratch, tcc_value *, r->factors.len + 1); /* operands that are not carried */
    tcc_value **operands = TCC_NEW_ARRAY(scratch, tcc_value *, 3 + n_carried);
    const tcc_type **types = TCC_NEW_ARRAY(scratch, const tcc_type *, n_carried);
    operands[0] = tcc_build_i32(&outer, 0);
    operands[1] = r->later ? tcc_arith_add(&outer, tiles, -1) : tiles;
    operands[2] = tcc_build_i32(&outer, 1);
    for (size_t i = 0; i < n_carried; i++) {
        operands[3 + i] = carried[i];
        types[i] = carried[i]->type;
    }
    tcc_op *loop = tcc_op_create(&outer, TCC_OP_scf_for, 3 + n_carried, operands, n_carried, types);
    tcc_block *body = loop->regions[0];
    if (!r->later)
        tcc_attr_set_int(ir_of(r), &loop->attrs, "at_least_once", 1);
    r->t.b = tcc_builder_at_end(body);
    tcc_value *iteration = tcc_block_add_arg(body, tcc_type_scalar(ir_of(r), TCC_i32), "iteration");
    tcc_value *before = tcc_arith_bin(&r->t.b, TCC_OP_arith_add, tcc_arith_mul(&r->t.b, iteration, step), r->begin);
    r->first = r->later ? tcc_arith_add(&r->t.b, before, step) : before;
    r->is_first = r->later ? NULL : tcc_arith_cmp(&r->t.b, "eq", iteration, tcc_build_i32(&r->t.b, 0));
    r->is_partial = build_is_partial(r, tcc_arith_add(&r->t.b, r->first, step));
    for (size_t i = 0; i < n_carried; i++) {
        const char *name = i < n ? "before" : i < n + r->factors.len ? "operand" : "reference";
        carried[i] = tcc_block_add_arg(body, types[i], name);
    }
    build_scores(r, rows, r->first);
    if (r->later)
        multiply(r, before, carried + n, carried);
    build_tile(r, carried, r->later ? carried + n : made, false);
    if (!r->later)
        multiply(r, before, made, carried);
    tcc_op_create(&r->t.b, TCC_OP_scf_yield, n_carried, carried, 0, NULL);
    r->t.b = outer;
    for (size_t i = 0; i < n_carried; i++)
        carried[i] = &loop->results[i];
    return loop;
}

/* All tiles; the results of reductions, in their order. */
static tcc_value **build_tiles(tcc_streams *r, tcc_value *const *rows)
{
    size_t n = 0;
    tcc_value *tiles = build_range(r), **carried;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        n += combined_at(r, op) != NULL;
    const size_t more = r->factors.len + r->lagging.len;
    carried = TCC_NEW_ARRAY(r->w->ctx->scratch, tcc_value *, n + more);
    n = 0;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        if (reduce)
            carried[n++] = tcc_tiling_start(&r->t, kept_type(r, reduce), tcc_reduction_of(reduce));
    }
    if (!r->later) {
        build_loop(r, tiles, rows, n, n, carried);
        return carried;
    }
    r->first = r->begin;
    build_scores(r, rows, r->first);
    build_tile(r, carried, carried + n, true);
    build_loop(r, tiles, rows, n, n + more, carried);
    tcc_value *last = tcc_arith_mul(&r->t.b, tcc_arith_add(&r->t.b, tiles, -1), r->w->schedule.k);
    multiply(r, tcc_arith_bin(&r->t.b, TCC_OP_arith_add, last, r->begin), carried + n, carried);
    tcc_streams_catch_up(r, carried + n + r->factors.len, carried);
    return carried;
}

/* Results, and what is computed of them. */
static void build_results(tcc_streams *r, tcc_value *const *reduced)
{
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        const tcc_op *reduce = combined_at(r, op);
        if (reduce)
            tcc_value_map_set(r->t.map, &op->results[0], *reduced++);
        else if (op->code == TCC_OP_tensor_write)
            tcc_tiler_write(r->w, op);
        else if (tcc_map_get(&r->after, op) && (varies(r, &op->results[0]) || !tcc_map_get(&r->in, op)))
            tcc_streams_build_op(r, op);
        r->w->t.b = r->t.b;
    }
}

bool tcc_stream_masks_once(tcc_func *f, const tcc_cascade *c)
{
    tcc_tiler w = {.f = f};
    tcc_streams r = {.w = &w, .c = *c, .later = tcc_target_can(tcc_func_target(f), TCC_CAN_wgmma)};
    return find_source(&r);
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

/* Of what the source is multiplied by. If it is 0, it times inf, where there is no term, is not a number: then it
 * counts as the least number, of which nothing is to be seen. */
static void find_sign(tcc_streams *r)
{
    tcc_builder *b = &r->t.b;
    if (!r->by)
        return;
    tcc_value *by = tcc_value_map_get(r->t.map, r->by), *zero = tcc_build_float(b, by->type, 0);
    r->is_positive = tcc_arith_cmp(b, "ge", by, zero);
    tcc_value *is_zero = tcc_arith_cmp(b, "eq", by, zero), *least = tcc_build_float(b, by->type, FLT_MIN);
    tcc_value_map_set(r->t.map, r->by, TCC_EMIT(b, arith_select, by->type, is_zero, least, by));
}

/* Tiles of rows that have more terms than those before them are begun first: of the last CTAs, which leave others idle,
 * none takes long. */
static void place_rows(tcc_tiler *w, const tcc_cascade *c)
{
    const tcc_op *sum = c->sums[0].sum;
    tcc_domain d = sum->n_operands > 1 ? tcc_domain_of(sum->operands[1], c->along) : (tcc_domain){0};
    bool grows = false;
    for (size_t i = 0; i < d.end.len && !d.least.len; i++) {
        const tcc_index_expr *by = tcc_index_stride(w->f->ir, d.end.data[i], c->rows);
        int64_t step;
        grows |= by && tcc_index_is_number(by, &step) && step > 0;
    }
    if (!grows)
        return;
    tcc_builder *b = &w->t.b;
    int64_t size = w->schedule.m;
    tcc_value *last = tcc_arith_add(b, tcc_build_extent(b, tcc_index_extent(w->f, c->rows)), -1);
    last = tcc_arith_mul(b, tcc_arith_div(b, last, size), size);
    tcc_tiling_place(&w->t, c->rows, tcc_arith_bin(b, TCC_OP_arith_sub, last, tcc_tiling_first(&w->t, c->rows)));
}

static void build(tcc_tiler *w)
{
    tcc_arena *scratch = w->ctx->scratch;
    tcc_streams r = {.w = w,
                 .in = TCC_MAP(scratch),
                 .after = TCC_MAP(scratch),
                 .conditions = TCC_MAP(scratch),
                 .along = TCC_MAP(scratch),
                 .masked = TCC_MAP(scratch),
                 .needs = TCC_MAP(scratch)};
    const tcc_value *by;
    tcc_cascade_of(w->f, &r.c);
    r.whole = tcc_assumes_multiple(w->f, tcc_index_extent(w->f, r.c.along), w->schedule.k, &by);
    r.later = tcc_target_can(tcc_func_target(w->f), TCC_CAN_wgmma);
    find_source(&r);
    find_needed(&r);
    for (size_t i = 0; i < r.c.n_sums; i++)
        if (factor_at(&r, &r.c.sums[i]) == r.factors.len)
            TCC_PUSH(scratch, &r.factors, r.c.sums[i].of[0].value);
    tcc_streams_find_lagging(&r);
    place_rows(w, &r.c);
    r.t = w->t;
    tcc_value **rows = TCC_NEW_ARRAY(scratch, tcc_value *, r.c.n_scores);
    for (size_t i = 0; i < r.c.n_scores; i++)
        tcc_tiling_place(&r.t, r.c.scores[i].k, tcc_build_i32(&r.t.b, 0));
    for (size_t i = 0; i < r.c.n_scores; i++)
        rows[i] = load_rows(&r, &r.c.scores[i]);
    for (tcc_op *op = w->f->body->first; op; op = op->next)
        if (tcc_map_get(&r.in, op) && !varies(&r, &op->results[0]))
            tcc_streams_build_op(&r, op);
    find_sign(&r);
    build_results(&r, build_tiles(&r, rows));
}

const tcc_tile_kind tcc_tile_streams = {find_tile, NULL, build};
