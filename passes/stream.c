/* stream: let sums whose terms need other reductions of a row be kept in step with these, so that one sweep has them
 * all.
 *
 * Before:  func @f(…) {row = n, …} {
 *            %m = tensor.reduce %x {over = [n], kind = max} : field<f32[m]>
 *            %d = arith.sub %x, %m
 *            %e = math.exp %d
 *            %s = tensor.reduce %e {over = [n], kind = sum} : field<f32[m]>           // users of %s
 * After:     …
 *            %s = tensor.reduce %e {over = [n], kind = sum} : field<f32[m]>
 *            %o = tensor.before %m : field<f32[m]>
 *            %c = arith.sub %o, %m
 *            %a = math.exp %c
 *            %t = tensor.rescale %s, %a                                              // they use %t
 *
 * Terms are products of factors that do not change and of exponentials, in whose exponents reductions are terms of
 * their own: exp(a(x) + b(P)). When P becomes P', they are multiplied by exp(b(P') - b(P)): exponents are subtracted
 * first, for a quotient of exponentials would overflow. A factor may be rounded to 16 bits. What is not found to be of
 * this form takes another sweep. The verifier proves what this pass found (ir/streaming.h).
 *
 * In a function with the attribute `stream` terms of such sums may be products, whose columns' index the multiplier
 * lacks. Its ops then are in the order in which they are computed: all of the loop's come first.
 *
 * Requires choose-schedule: rows that lanes hold take one sweep as it is.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/assume.h"
#include "ir/reduction.h"
#include "passes/passes.h"
#include "passes/rows.h"
#include "passes/stream.h"

/* A term of an exponent that reductions change, as it is after a change and as it was before; subtracted or added. */
typedef struct part {
    tcc_value *after, *before;
    bool negative;
} part;

typedef struct streaming {
    tcc_arena *scratch;
    tcc_stream_names index; /* over which terms come */
    const tcc_type *rows;  /* has the indices of what they are reduced to, without those of products' columns */
    tcc_map moves;         /* values that change when terms come */
    tcc_builder b;         /* after the sum */
    tcc_value_map *before; /* such values, as they were */
    tcc_map factors;       /* of exponentials by what they are multiplied */
    TCC_VEC(part) parts;
    tcc_value *factor; /* NULL: 1 */
} streaming;

static bool moves(const streaming *s, const tcc_value *v)
{
    return tcc_map_get(&s->moves, v) != NULL;
}

/* Whether a value is the same for all terms of a row. */
static bool is_of_row(const streaming *s, const tcc_value *v)
{
    bool is = true;
    for (unsigned d = 0; v->type->kind == TCC_KIND_field && d < v->type->rank && is; d++)
        is = tcc_field_has_index(s->rows, v->type->dims[d].name);
    return is;
}

static bool is_reduced(const streaming *s, const tcc_op *op)
{
    return tcc_is_reduction(op) && tcc_stream_has_name(&s->index, tcc_attr_list(&op->attrs, "over").list.items[0].s);
}

/* ---- what is found ----------------------------------------------------------------------------- */

static bool widens(const tcc_op *op)
{
    return op->code == TCC_OP_arith_cast && tcc_scalar_widens(op->operands[0]->type->elem, op->results[0].type->elem);
}

/* Whether v is computed of reductions alone, elementwise, and can be computed again of what they were. */
static bool is_of_reductions(const streaming *s, const tcc_value *v)
{
    if (!moves(s, v) || !is_of_row(s, v))
        return false;
    if (tcc_is_reduction(v->def))
        return true;
    bool is = tcc_op_info_get(v->def->code)->flags & TCC_ELEMENTWISE;
    for (unsigned i = 0; is && i < v->def->n_operands; i++)
        is = !moves(s, v->def->operands[i]) || is_of_reductions(s, v->def->operands[i]);
    return is;
}

static bool splits(const streaming *s, const tcc_value *v);

/* Of the factors of arith.mul and fma the one that reductions change. */
static unsigned moving_factor(const streaming *s, const tcc_op *op)
{
    return moves(s, op->operands[0]) ? 0 : 1;
}

/* Whether the other one is fixed along the row. */
static bool product_splits(const streaming *s, const tcc_op *op)
{
    unsigned x = moving_factor(s, op);
    const tcc_value *by = op->operands[1 - x];
    return !moves(s, by) && (is_of_row(s, by) || !moves(s, op->operands[x])) && splits(s, op->operands[x]);
}

/* Whether an exponent is a sum of what reductions do not change and of what is computed of them. */
static bool splits(const streaming *s, const tcc_value *v)
{
    const tcc_op *op = v->def;
    if (!moves(s, v) || is_of_reductions(s, v))
        return true;
    switch (op->code) {
    case TCC_OP_arith_add:
    case TCC_OP_arith_sub: return splits(s, op->operands[0]) && splits(s, op->operands[1]);
    case TCC_OP_arith_neg: return splits(s, op->operands[0]);
    case TCC_OP_arith_cast: return widens(op) && splits(s, op->operands[0]);
    case TCC_OP_arith_mul: return product_splits(s, op);
    case TCC_OP_arith_fma: return product_splits(s, op) && splits(s, op->operands[2]);
    default: return false;
    }
}

static bool is_exponential(const tcc_op *op)
{
    return op->code == TCC_OP_math_exp || op->code == TCC_OP_math_exp2;
}

/* Whether terms that were rounded to a type are, multiplied, what they would be if the multiplied terms were rounded,
 * but for a small part: 8 bits have too few numbers for that. */
static bool rounds_by_a_part(const tcc_op *op)
{
    tcc_scalar from = op->operands[0]->type->elem, to = op->results[0].type->elem;
    return op->code == TCC_OP_arith_cast && tcc_scalar_classify(from) == TCC_CLASS_FLOAT &&
           tcc_scalar_classify(to) == TCC_CLASS_FLOAT && tcc_scalar_bits(to) >= 16;
}

/* Whether v is the difference of a value and its extremum. */
static bool is_from_extremum(const tcc_value *v)
{
    const tcc_op *op = v->def;
    const tcc_op *by = op && op->code == TCC_OP_arith_sub ? op->operands[1]->def : NULL;
    return by && tcc_is_reduction(by) && by->operands[0] == op->operands[0];
}

/* Whether what terms would be multiplied by is at most 1: an exponent falls, or, where `sign` is -1, rises when terms
 * come. What is scaled by a number that is not known may do either if it is how far a term is from the terms' extremum:
 * an exponential that grows then was at least 1. */
static bool falls(const streaming *s, const tcc_value *v, int sign)
{
    const tcc_op *op = v->def;
    double number;
    if (!moves(s, v))
        return true;
    switch (op->code) {
    case TCC_OP_tensor_reduce:
        return tcc_reduction_of(op) == (sign < 0 ? TCC_REDUCTION_MAX : TCC_REDUCTION_MIN);
    case TCC_OP_arith_add:
    case TCC_OP_arith_max:
    case TCC_OP_arith_min: return falls(s, op->operands[0], sign) && falls(s, op->operands[1], sign);
    case TCC_OP_arith_sub: return falls(s, op->operands[0], sign) && falls(s, op->operands[1], -sign);
    case TCC_OP_arith_neg: return falls(s, op->operands[0], -sign);
    case TCC_OP_arith_cast: return widens(op) && falls(s, op->operands[0], sign);
    case TCC_OP_arith_mul:
    case TCC_OP_arith_fma: {
        unsigned x = moving_factor(s, op);
        if (op->code == TCC_OP_arith_fma && !falls(s, op->operands[2], sign))
            return false;
        if (!moves(s, op->operands[x]))
            return true;
        if (!tcc_value_is_float(op->operands[1 - x], &number))
            return is_from_extremum(op->operands[x]);
        return falls(s, op->operands[x], number < 0 ? -sign : sign);
    }
    default: return false;
    }
}

/* Whether exponentials of a product do: numbers of f16 end where others' begin, and what was too small for it would be
 * missing when it is multiplied. */
static bool shrinks(const streaming *s, const tcc_value *v)
{
    const tcc_op *op = v->def;
    if (!moves(s, v))
        return true;
    if (is_exponential(op))
        return falls(s, op->operands[0], 1);
    bool all = true;
    for (unsigned i = 0; i < op->n_operands && all; i++)
        all = shrinks(s, op->operands[i]);
    return all;
}

static bool is_product(const streaming *s, const tcc_value *v);

/* Whether a condition that does not change has terms of such form, or 0. */
static bool selects_product(const streaming *s, const tcc_op *op)
{
    bool is = !moves(s, op->operands[0]);
    for (unsigned i = 1; i < 3 && is; i++) {
        double number;
        is = moves(s, op->operands[i]) ? is_product(s, op->operands[i])
                                       : tcc_value_is_float(op->operands[i], &number) && number == 0;
    }
    return is && moves(s, op->operands[1]) != moves(s, op->operands[2]);
}

/* Whether terms are products of what reductions do not change and of such exponentials. */
static bool is_product(const streaming *s, const tcc_value *v)
{
    const tcc_op *op = v->def;
    if (!moves(s, v))
        return true;
    switch (op->code) {
    case TCC_OP_math_exp:
    case TCC_OP_math_exp2: return splits(s, op->operands[0]);
    case TCC_OP_arith_mul: return is_product(s, op->operands[0]) && is_product(s, op->operands[1]);
    case TCC_OP_arith_div: return is_product(s, op->operands[0]) && !moves(s, op->operands[1]);
    case TCC_OP_arith_neg: return is_product(s, op->operands[0]);
    case TCC_OP_arith_cast:
        return rounds_by_a_part(op) && is_product(s, op->operands[0]) &&
               (op->results[0].type->elem != TCC_f16 || shrinks(s, op->operands[0]));
    case TCC_OP_arith_select: return selects_product(s, op);
    default: return false;
    }
}

/* ---- what is written ---------------------------------------------------------------------------- */

static tcc_value *build_before(streaming *s, tcc_value *v)
{
    tcc_value *known = tcc_value_map_get(s->before, v);
    if (!moves(s, v) || known != v)
        return known;
    if (tcc_is_reduction(v->def)) {
        tcc_value_map_set(s->before, v, TCC_EMIT(&s->b, tensor_before, v->type, v));
    } else {
        for (unsigned i = 0; i < v->def->n_operands; i++)
            build_before(s, v->def->operands[i]);
        tcc_op_clone(&s->b, v->def, s->before);
    }
    return tcc_value_map_get(s->before, v);
}

static tcc_value *multiply(streaming *s, tcc_value *x, tcc_value *y)
{
    return TCC_EMIT(&s->b, arith_mul, x->type, x, y);
}

static tcc_value *widen(streaming *s, tcc_value *v, tcc_scalar elem)
{
    return v->type->elem == elem ? v : TCC_EMIT(&s->b, arith_cast, tcc_type_with_elem(s->b.func->ir, v->type, elem), v);
}

static void find_parts(streaming *s, tcc_value *v, bool negative);

/* Those of a product. */
static void find_parts_of_product(streaming *s, const tcc_op *op, bool negative)
{
    unsigned x = moving_factor(s, op);
    size_t first = s->parts.len;
    find_parts(s, op->operands[x], negative);
    for (size_t i = first; i < s->parts.len; i++) {
        part *p = &s->parts.data[i];
        p->after = multiply(s, p->after, op->operands[1 - x]);
        p->before = multiply(s, p->before, op->operands[1 - x]);
    }
}

/* Collects the parts of an exponent that reductions change. */
static void find_parts(streaming *s, tcc_value *v, bool negative)
{
    const tcc_op *op = v->def;
    size_t first = s->parts.len;
    bool is_product = op && (op->code == TCC_OP_arith_mul || op->code == TCC_OP_arith_fma);
    if (!moves(s, v))
        return;
    if (is_of_reductions(s, v) && op->code != TCC_OP_arith_neg) {
        TCC_PUSH(s->scratch, &s->parts, (part){v, build_before(s, v), negative});
        return;
    }
    if (is_product)
        find_parts_of_product(s, op, negative);
    else
        find_parts(s, op->operands[0], negative ^ (op->code == TCC_OP_arith_neg));
    if (op->n_operands > 1 && op->code != TCC_OP_arith_mul)
        find_parts(s, op->operands[op->n_operands - 1], negative ^ (op->code == TCC_OP_arith_sub));
    for (size_t i = first; i < s->parts.len; i++) {
        s->parts.data[i].after = widen(s, s->parts.data[i].after, v->type->elem);
        s->parts.data[i].before = widen(s, s->parts.data[i].before, v->type->elem);
    }
}

/* By what an exponential is multiplied when reductions change; once for all sums. */
static tcc_value *build_factor(streaming *s, const tcc_op *op)
{
    void **known = tcc_map_at(&s->factors, op);
    if (*known)
        return *known;
    tcc_value *sum = NULL;
    s->parts.len = 0;
    find_parts(s, op->operands[0], false);
    for (size_t i = 0; i < s->parts.len; i++) {
        const part *p = &s->parts.data[i];
        tcc_value *x = p->negative ? p->before : p->after, *y = p->negative ? p->after : p->before;
        tcc_value *change = TCC_EMIT(&s->b, arith_sub, x->type, x, y);
        sum = sum ? TCC_EMIT(&s->b, arith_add, sum->type, sum, change) : change;
    }
    tcc_op *factor = tcc_op_create(&s->b, op->code, 1, &sum, 1, &sum->type);
    *tcc_map_at(&s->factors, op) = &factor->results[0];
    return &factor->results[0];
}

static void find_exponentials(streaming *s, const tcc_value *v, tcc_scalar elem)
{
    if (!moves(s, v))
        return;
    if (is_exponential(v->def)) {
        tcc_value *factor = widen(s, build_factor(s, v->def), elem);
        s->factor = s->factor ? multiply(s, s->factor, factor) : factor;
        return;
    }
    for (unsigned i = 0; i < v->def->n_operands; i++)
        find_exponentials(s, v->def->operands[i], elem);
}

static void write_rescale(streaming *s, tcc_op *sum)
{
    tcc_value *r = &sum->results[0];
    s->b = tcc_builder_after(sum);
    s->b.loc = sum->loc;
    s->factor = NULL;
    find_exponentials(s, TCC_VIEW(tensor_reduce, sum)->a, r->type->elem);
    tcc_value *rescaled = TCC_EMIT(&s->b, tensor_rescale, r->type, r, s->factor);
    rescaled->name = r->name;
    tcc_replace_uses(r, rescaled);
    tcc_op_set_operand(rescaled->def, 0, r);
}

/* ---- the sums of a function ----------------------------------------------------------------------- */

static bool can_stream(const streaming *s, const tcc_op *op)
{
    return tcc_reduction_of(op) == TCC_REDUCTION_SUM && !tcc_attr_find(&op->attrs, "parts") &&
           (op->n_operands == 1 || !moves(s, op->operands[1])) && is_product(s, op->operands[0]);
}

static bool any_operand(const tcc_map *set, const tcc_op *op)
{
    bool any = false;
    for (unsigned i = 0; i < op->n_operands; i++)
        any |= tcc_map_get(set, op->operands[i]) != NULL;
    return any;
}

/* What the terms of a row are reduced to: with the fewest indices. */
static const tcc_type *type_of_rows(const streaming *s, const tcc_func *f)
{
    const tcc_type *rows = NULL;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (is_reduced(s, op) && (!rows || op->results[0].type->rank < rows->rank))
            rows = op->results[0].type;
    return rows;
}

typedef TCC_VEC(tcc_op *) sums;

/* Finds sums that can be kept in step with what their terms need. What is computed of a reduction that needs another
 * one is not known while terms come: false where a reduction needs it, or cannot be kept in step. */
static bool find_sums(streaming *s, const tcc_func *f, sums *out)
{
    bool all = true;
    tcc_map later = TCC_MAP(s->scratch);
    s->rows = type_of_rows(s, f);
    for (tcc_op *op = f->body->first; op; op = op->next) {
        bool moves = any_operand(&s->moves, op), is_later = any_operand(&later, op), reduces = tcc_is_reduction(op);
        bool streams = reduces && moves && !is_later && is_reduced(s, op) && can_stream(s, op);
        if (streams)
            TCC_PUSH(s->scratch, out, op);
        all &= !reduces || !moves || streams;
        if (op->n_results && (is_later || (reduces && moves)))
            *tcc_map_at(&later, &op->results[0]) = op;
        if (op->n_results && (moves || (reduces && is_reduced(s, op))))
            *tcc_map_at(&s->moves, &op->results[0]) = op;
    }
    return all;
}

bool tcc_stream_has_name(const tcc_stream_names *names, const char *x)
{
    bool has = false;
    for (size_t n = 0; n < names->n && !has; n++)
        has = tcc_index_same(names->of[n], x);
    return has;
}

bool tcc_stream_takes_one_sweep(tcc_arena *scratch, const tcc_func *f, const tcc_stream_names *index)
{
    streaming s = {.scratch = scratch, .index = *index, .moves = TCC_MAP(scratch)};
    sums found = {0};
    return find_sums(&s, f, &found) && found.len;
}

/* ---- the pass ------------------------------------------------------------------------------------ */

/* Lets what the loop over terms computes come before all else. */
static void order_loop(tcc_arena *scratch, tcc_func *f, const char *index)
{
    const streaming s = {.index = {1, {index}}};
    tcc_map needed = TCC_MAP(scratch);
    for (tcc_op *op = f->body->last; op; op = op->prev) {
        bool is = op->code == TCC_OP_tensor_rescale || (tcc_is_reduction(op) && is_reduced(&s, op)) ||
                  tcc_map_get(&needed, op);
        if (!is)
            continue;
        *tcc_map_at(&needed, op) = op;
        for (unsigned i = 0; i < op->n_operands; i++)
            if (op->operands[i]->def)
                *tcc_map_at(&needed, op->operands[i]->def) = op;
    }
    tcc_builder end = tcc_builder_before(f->body->last);
    TCC_VEC(tcc_op *) after = {0};
    for (tcc_op *op = f->body->first; op != f->body->last; op = op->next)
        if (!tcc_map_get(&needed, op))
            TCC_PUSH(scratch, &after, op);
    for (size_t i = 0; i < after.len; i++)
        tcc_op_move(&end, after.data[i]);
}

/* The index of the rows that take several sweeps, or of a function that was recognised as one loop; NULL: neither. */
static const char *index_of(const tcc_func *f)
{
    tcc_space p;
    tcc_rows_tile tile;
    const char *row = tcc_attr_str(&f->attrs, "row", NULL);
    bool swept = row && tcc_func_is_variant(f) && tcc_space_of(f, &p) && p.along && tcc_rows_tile_of(f, &p, &tile) &&
                 !tile.one_sweep;
    return swept ? row : tcc_attr_str(&f->attrs, "stream", NULL);
}

bool tcc_stream_keep_in_step(tcc_arena *scratch, tcc_func *f, const char *index)
{
    streaming s = {.scratch = scratch, .index = {1, {index}}, .moves = TCC_MAP(scratch), .factors = TCC_MAP(scratch)};
    sums found = {0};
    s.before = tcc_value_map_create(scratch);
    find_sums(&s, f, &found);
    for (size_t i = 0; i < found.len; i++)
        write_rescale(&s, found.data[i]);
    return found.len;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const char *index = index_of(f);
    if (!index)
        return TCC_OK;
    *changed |= tcc_stream_keep_in_step(ctx->scratch, f, index);
    if (tcc_attr_find(&f->attrs, "stream"))
        order_loop(ctx->scratch, f, index);
    return TCC_OK;
}

const tcc_pass tcc_pass_stream = {"stream", "let sums be kept in step with what their terms need", .run = run,
                                  .requires = TCC_UP_TO(schedule)};
