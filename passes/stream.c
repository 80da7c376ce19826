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
 * first, for a quotient of exponentials would overflow. What is not found to be of this form takes another sweep. The
 * verifier proves what this pass found (ir/streaming.h).
 *
 * Requires choose-schedule: rows that lanes hold take one sweep as it is.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/assume.h"
#include "ir/reduction.h"
#include "passes/passes.h"
#include "passes/rows.h"

/* A term of an exponent that reductions change, as it is after a change and as it was before; subtracted or added. */
typedef struct part {
    tcc_value *after, *before;
    bool negative;
} part;

typedef struct streaming {
    tcc_arena *scratch;
    tcc_builder b;         /* after the sum */
    tcc_map moves;         /* values that reductions of the row change */
    tcc_value_map *before; /* such values, as they were */
    TCC_VEC(part) parts;
    tcc_value *factor; /* NULL: 1 */
} streaming;

static bool moves(const streaming *s, const tcc_value *v)
{
    return tcc_map_get(&s->moves, v) != NULL;
}

static bool has_fields_of(const tcc_value *v, const tcc_type *type)
{
    return v->type->kind == TCC_KIND_field && tcc_fields_share_space(v->type, type);
}

/* ---- what is found ----------------------------------------------------------------------------- */

static bool widens(const tcc_op *op)
{
    return op->code == TCC_OP_arith_cast && tcc_scalar_widens(op->operands[0]->type->elem, op->results[0].type->elem);
}

/* Whether v is computed of reductions alone, elementwise, and can be computed again of what they were. */
static bool is_of_reductions(const streaming *s, const tcc_value *v, const tcc_type *type)
{
    if (!moves(s, v) || !has_fields_of(v, type))
        return false;
    if (tcc_is_reduction(v->def))
        return true;
    bool is = tcc_op_info_get(v->def->code)->flags & TCC_ELEMENTWISE;
    for (unsigned i = 0; is && i < v->def->n_operands; i++)
        is = !moves(s, v->def->operands[i]) || is_of_reductions(s, v->def->operands[i], type);
    return is;
}

static bool splits(const streaming *s, const tcc_value *v, const tcc_type *type);

/* Of the factors of arith.mul and fma the one that reductions change. */
static unsigned moving_factor(const streaming *s, const tcc_op *op)
{
    return moves(s, op->operands[0]) ? 0 : 1;
}

/* Whether the other one is fixed along the row. */
static bool product_splits(const streaming *s, const tcc_op *op, const tcc_type *type)
{
    unsigned x = moving_factor(s, op);
    const tcc_value *by = op->operands[1 - x];
    return !moves(s, by) &&
           (by->type->kind == TCC_KIND_scalar || has_fields_of(by, type) || !moves(s, op->operands[x])) &&
           splits(s, op->operands[x], type);
}

/* Whether an exponent is a sum of what reductions do not change and of what is computed of them. */
static bool splits(const streaming *s, const tcc_value *v, const tcc_type *type)
{
    const tcc_op *op = v->def;
    if (!moves(s, v) || is_of_reductions(s, v, type))
        return true;
    switch (op->code) {
    case TCC_OP_arith_add:
    case TCC_OP_arith_sub: return splits(s, op->operands[0], type) && splits(s, op->operands[1], type);
    case TCC_OP_arith_neg: return splits(s, op->operands[0], type);
    case TCC_OP_arith_cast: return widens(op) && splits(s, op->operands[0], type);
    case TCC_OP_arith_mul: return product_splits(s, op, type);
    case TCC_OP_arith_fma: return product_splits(s, op, type) && splits(s, op->operands[2], type);
    default: return false;
    }
}

static bool is_exponential(const tcc_op *op)
{
    return op->code == TCC_OP_math_exp || op->code == TCC_OP_math_exp2;
}

/* Whether terms are products of what reductions do not change and of such exponentials. */
static bool is_product(const streaming *s, const tcc_value *v, const tcc_type *type)
{
    const tcc_op *op = v->def;
    if (!moves(s, v))
        return true;
    if (is_exponential(op))
        return splits(s, op->operands[0], type);
    if (op->code == TCC_OP_arith_mul)
        return is_product(s, op->operands[0], type) && is_product(s, op->operands[1], type);
    if (op->code == TCC_OP_arith_div)
        return is_product(s, op->operands[0], type) && !moves(s, op->operands[1]);
    return (op->code == TCC_OP_arith_neg || widens(op)) && is_product(s, op->operands[0], type);
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

static void find_parts(streaming *s, tcc_value *v, bool negative, const tcc_type *type);

/* Those of a product. */
static void find_parts_of_product(streaming *s, const tcc_op *op, bool negative, const tcc_type *type)
{
    unsigned x = moving_factor(s, op);
    size_t first = s->parts.len;
    find_parts(s, op->operands[x], negative, type);
    for (size_t i = first; i < s->parts.len; i++) {
        part *p = &s->parts.data[i];
        p->after = multiply(s, p->after, op->operands[1 - x]);
        p->before = multiply(s, p->before, op->operands[1 - x]);
    }
}

/* Collects the parts of an exponent that reductions change. */
static void find_parts(streaming *s, tcc_value *v, bool negative, const tcc_type *type)
{
    const tcc_op *op = v->def;
    size_t first = s->parts.len;
    bool is_product = op && (op->code == TCC_OP_arith_mul || op->code == TCC_OP_arith_fma);
    if (!moves(s, v))
        return;
    if (is_of_reductions(s, v, type)) {
        TCC_PUSH(s->scratch, &s->parts, (part){v, build_before(s, v), negative});
        return;
    }
    if (is_product)
        find_parts_of_product(s, op, negative, type);
    else
        find_parts(s, op->operands[0], negative ^ (op->code == TCC_OP_arith_neg), type);
    if (op->n_operands > 1 && op->code != TCC_OP_arith_mul)
        find_parts(s, op->operands[op->n_operands - 1], negative ^ (op->code == TCC_OP_arith_sub), type);
    for (size_t i = first; i < s->parts.len; i++) {
        s->parts.data[i].after = widen(s, s->parts.data[i].after, v->type->elem);
        s->parts.data[i].before = widen(s, s->parts.data[i].before, v->type->elem);
    }
}

/* Multiplies the factor by what changes of an exponential. */
static void add_exponential(streaming *s, const tcc_op *op, const tcc_type *type)
{
    tcc_value *sum = NULL;
    s->parts.len = 0;
    find_parts(s, op->operands[0], false, type);
    for (size_t i = 0; i < s->parts.len; i++) {
        const part *p = &s->parts.data[i];
        tcc_value *x = p->negative ? p->before : p->after, *y = p->negative ? p->after : p->before;
        tcc_value *change = TCC_EMIT(&s->b, arith_sub, x->type, x, y);
        sum = sum ? TCC_EMIT(&s->b, arith_add, sum->type, sum, change) : change;
    }
    tcc_value *factor = &tcc_op_create(&s->b, op->code, 1, &sum, 1, &sum->type)->results[0];
    factor = widen(s, factor, type->elem);
    s->factor = s->factor ? multiply(s, s->factor, factor) : factor;
}

static void find_exponentials(streaming *s, const tcc_value *v, const tcc_type *type)
{
    if (!moves(s, v))
        return;
    if (is_exponential(v->def))
        add_exponential(s, v->def, type);
    for (unsigned i = 0; i < v->def->n_operands && !is_exponential(v->def); i++)
        find_exponentials(s, v->def->operands[i], type);
}

static tcc_value *write_rescale(streaming *s, tcc_op *sum)
{
    tcc_value *r = &sum->results[0];
    s->b = tcc_builder_after(sum);
    s->b.loc = sum->loc;
    s->factor = NULL;
    s->before = tcc_value_map_create(s->scratch);
    find_exponentials(s, TCC_VIEW(tensor_reduce, sum)->a, r->type);
    tcc_value *rescaled = TCC_EMIT(&s->b, tensor_rescale, r->type, r, s->factor);
    rescaled->name = r->name;
    tcc_replace_uses(r, rescaled);
    tcc_op_set_operand(rescaled->def, 0, r);
    return rescaled;
}

/* ---- the pass ------------------------------------------------------------------------------------ */

static bool can_stream(const streaming *s, const tcc_op *op)
{
    return tcc_reduction_of(op) == TCC_REDUCTION_SUM && !tcc_attr_find(&op->attrs, "parts") &&
           (op->n_operands == 1 || !moves(s, op->operands[1])) && is_product(s, op->operands[0], op->results[0].type);
}

static bool any_operand(const tcc_map *set, const tcc_op *op)
{
    bool any = false;
    for (unsigned i = 0; i < op->n_operands; i++)
        any |= tcc_map_get(set, op->operands[i]) != NULL;
    return any;
}

/* What is computed of a reduction that needs another one has another sweep. */
static bool stream_all(streaming *s, tcc_func *f)
{
    bool any = false;
    tcc_map later = TCC_MAP(s->scratch);
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = op->next;
        bool moves = any_operand(&s->moves, op), is_later = any_operand(&later, op);
        if (tcc_is_reduction(op) && moves && !is_later && can_stream(s, op)) {
            *tcc_map_at(&later, write_rescale(s, op)) = op;
            any = true;
        }
        if (op->n_results && (is_later || (tcc_is_reduction(op) && moves)))
            *tcc_map_at(&later, &op->results[0]) = op;
        if (op->n_results && (moves || tcc_is_reduction(op)))
            *tcc_map_at(&s->moves, &op->results[0]) = op;
    }
    return any;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_space p;
    tcc_rows_tile tile;
    bool swept = tcc_attr_find(&f->attrs, "row") && tcc_func_is_variant(f) && tcc_space_of(f, &p) && p.along &&
                 tcc_rows_tile_of(f, &p, &tile) && !tile.one_sweep;
    streaming s = {.scratch = ctx->scratch, .moves = TCC_MAP(ctx->scratch)};
    *changed |= swept && stream_all(&s, f);
    return TCC_OK;
}

const tcc_pass tcc_pass_stream = {"stream", "let sums be kept in step with what their terms need", .run = run,
                                  .requires = TCC_UP_TO(schedule)};
