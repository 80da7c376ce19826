/* tensor_rules: what elementwise ops, constants, ops of the tensor level and scf want of their operands,
 * results, attributes and regions together.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/access.h"
#include "ir/counting.h"
#include "ir/reduction.h"
#include "ir/rules.h"
#include "ir/signature.h"
#include "ir/streaming.h"

typedef tcc_verifier verifier;

#define ERROR tcc_verify_error
#define TEXT(type) tcc_verify_text(v, type)

/* ---- shapes of elementwise ops --------------------------------------------------------- */

bool tcc_same_extents(const tcc_type *a, const tcc_type *b)
{
    if (a->kind != b->kind || a->rank != b->rank)
        return false;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].name != b->dims[i].name || a->dims[i].size != b->dims[i].size)
            return false;
    return true;
}

static bool same_shape(const tcc_type *a, const tcc_type *b)
{
    return tcc_same_extents(a, b) && tcc_type_same_layout(a, b);
}

static bool has_index(const tcc_type *field, const char *name)
{
    for (unsigned i = 0; i < field->rank; i++)
        if (field->dims[i].name == name)
            return true;
    return false;
}

/* Whether every index of field a is one of b's; a scalar has none. */
static bool indices_within(const tcc_type *a, const tcc_type *b)
{
    for (unsigned i = 0; i < a->rank; i++)
        if (!has_index(b, a->dims[i].name))
            return false;
    return true;
}

/* A field has the indices of its operands together; scalars are operands of fields too. */
static void check_field(verifier *v, const tcc_op *op)
{
    const tcc_type *r = op->results[0].type;
    const tcc_operand_info *names = tcc_op_info_get(op->code)->operands;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const tcc_type *t = op->operands[i]->type;
        if (t->kind != TCC_KIND_field && t->kind != TCC_KIND_scalar)
            ERROR(v, op, "%s is %s, expected a field or scalar, because r is %s", names[i].name, TEXT(t),
                  TEXT(r));
        else if (!indices_within(t, r))
            ERROR(v, op, "r is %s, which lacks an index of %s, %s", TEXT(r), names[i].name,
                  TEXT(t));
    }
    for (unsigned d = 0; d < r->rank; d++) {
        bool found = false;
        for (unsigned i = 0; i < op->n_operands; i++)
            found |= has_index(op->operands[i]->type, r->dims[d].name);
        if (!found)
            ERROR(v, op, "r is %s, and no operand has index %s", TEXT(r), r->dims[d].name);
    }
}

void tcc_verify_elementwise(verifier *v, const tcc_op *op)
{
    const tcc_type *r = op->results[0].type;
    const tcc_operand_info *names = tcc_op_info_get(op->code)->operands;
    unsigned first = op->code == TCC_OP_arith_select; /* after the condition */
    const tcc_type *t = op->operands[first]->type;
    for (unsigned i = first + 1; i < op->n_operands; i++)
        if (op->operands[i]->type->elem != t->elem)
            ERROR(v, op, "%s is %s and %s is %s: their elements differ", names[first].name, TEXT(t),
                  names[i].name, TEXT(op->operands[i]->type));
    if (op->code != TCC_OP_arith_cmp && op->code != TCC_OP_arith_cast && r->elem != t->elem)
        ERROR(v, op, "%s is %s and r is %s: their elements differ", names[first].name, TEXT(t),
              TEXT(r));
    if (r->kind == TCC_KIND_field) {
        check_field(v, op);
        return;
    }
    for (unsigned i = 0; i < op->n_operands; i++)
        if (!same_shape(op->operands[i]->type, r))
            ERROR(v, op, "%s is %s and r is %s: their shapes differ", names[i].name,
                  TEXT(op->operands[i]->type), TEXT(r));
}

/* ---- arith, tensor --------------------------------------------------------------------- */

static void check_const(verifier *v, const tcc_op *op)
{
    const tcc_type *r = op->results[0].type;
    const tcc_attr *a = &tcc_attr_find(&op->attrs, "value")->value;
    if (tcc_scalar_classify(r->elem) == TCC_CLASS_FLOAT) {
        if (a->kind != TCC_ATTR_FLOAT)
            ERROR(v, op, "r is %s, expected a float as its value", TEXT(r));
    } else if (a->kind != TCC_ATTR_INT) {
        ERROR(v, op, "r is %s, expected an integer as its value", TEXT(r));
    } else if (tcc_int_saturate(r->elem, a->i) != a->i) {
        ERROR(v, op, "value %lld does not fit r, %s", (long long)a->i, TEXT(r));
    }
}

static void check_dim_name(verifier *v, const tcc_op *op, const char *name)
{
    const tcc_named_attr *dims = tcc_attr_find(&op->block->func->attrs, "dims");
    if (!dims || dims->value.kind != TCC_ATTR_LIST || tcc_dims_have(dims->value, name))
        return;
    ERROR(v, op, "'%s' is not one of the function's dims", name);
}

static void check_dim(verifier *v, const tcc_op *op)
{
    check_dim_name(v, op, tcc_attr_str(&op->attrs, "name", ""));
}

/* An index has as many values as a dimension that it runs along, or as the function says. */
static void check_extent(verifier *v, const tcc_op *op, const char *index)
{
    tcc_dim extent = tcc_index_extent(op->block->func, index);
    if (!extent.name && extent.size < 0)
        ERROR(v, op, "index %s is the coordinate of no dimension, and the function does not give its extent", index);
}

static void check_index(verifier *v, const tcc_op *op)
{
    const tcc_type *r = op->results[0].type;
    const char *name = tcc_attr_str(&op->attrs, "name", "");
    if (r->rank != 1 || strcmp(r->dims[0].name, name))
        ERROR(v, op, "r is %s, expected a field of just the index %s", TEXT(r), name);
    else
        check_extent(v, op, name);
}

/* Index expressions for the dimensions of a tensor, and an operand for each dimension in `loaded`. */
static bool check_coordinates(verifier *v, const tcc_op *op, size_t rank)
{
    tcc_attr map = tcc_attr_list(&op->attrs, "map"), loaded = tcc_attr_list(&op->attrs, "loaded");
    bool ok = map.list.n == rank;
    for (size_t d = 0; d < map.list.n && ok; d++) {
        tcc_attr_kind kind = map.list.items[d].kind;
        ok = kind == TCC_ATTR_STR || kind == TCC_ATTR_INDEX ||
             (kind == TCC_ATTR_INT && map.list.items[d].i != INT64_MIN); /* whose magnitude does not fit */
    }
    if (!ok)
        ERROR(v, op, "attribute 'map' needs %zu index expressions", rank);
    bool ascend = loaded.list.n == op->n_operands - 1;
    for (size_t i = 0; i < loaded.list.n && ascend; i++) {
        const tcc_attr *item = &loaded.list.items[i];
        ascend = item->kind == TCC_ATTR_INT && item->i >= (i ? item[-1].i + 1 : 0) && item->i < (int64_t)rank;
    }
    if (!ascend)
        ERROR(v, op, "attribute 'loaded' needs %u dimensions in ascending order, one for each operand after the tensor",
              op->n_operands - 1);
    return ok && ascend;
}

/* Whether r has every index of an expression; its dimensions are those of the function. */
static void check_names(verifier *v, const tcc_op *op, const tcc_index_expr *x)
{
    const tcc_type *r = op->results[0].type;
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < x->terms[i].n; k++) {
            const tcc_index_factor *f = &x->terms[i].factors[k];
            if (f->kind == TCC_FACTOR_DIM) {
                check_dim_name(v, op, f->name);
            } else if (f->kind == TCC_FACTOR_QUOTIENT) {
                check_names(v, op, f->of);
                check_names(v, op, f->by);
            } else if (!has_index(r, f->name)) {
                ERROR(v, op, "map has index %s, which r, %s, lacks", f->name, TEXT(r));
            }
        }
}

/* Whether a coordinate varies with an index. */
static bool is_read_along(const tcc_op *op, const char *index)
{
    bool is = false;
    for (size_t d = 0; d < tcc_access_rank(op) && !is; d++) {
        const tcc_value *loaded = tcc_access_loaded(op, d);
        is = tcc_index_has(tcc_access_expr(op, d), TCC_FACTOR_INDEX, index) ||
             (loaded && has_index(loaded->type, index));
    }
    return is;
}

static void check_read(verifier *v, const tcc_op *op)
{
    const tcc_type *tensor = op->operands[0]->type, *r = op->results[0].type;
    if (!check_coordinates(v, op, tensor->rank))
        return;
    if (r->elem != tensor->elem)
        ERROR(v, op, "tensor is %s and r is %s: their elements differ", TEXT(tensor), TEXT(r));
    for (unsigned i = 1; i < op->n_operands; i++) {
        const tcc_type *t = op->operands[i]->type;
        if ((t->kind != TCC_KIND_field && t->kind != TCC_KIND_scalar) || t->elem != TCC_i32)
            ERROR(v, op, "operand %u is %s, expected a field or scalar of i32", i, TEXT(t));
        else if (!indices_within(t, r))
            ERROR(v, op, "r is %s, which lacks an index of operand %u, %s", TEXT(r), i, TEXT(t));
    }
    for (unsigned d = 0; d < tensor->rank; d++)
        check_names(v, op, tcc_access_expr(op, d));
    for (unsigned d = 0; d < r->rank; d++)
        if (!is_read_along(op, r->dims[d].name))
            ERROR(v, op, "r is %s, and no coordinate has index %s", TEXT(r), r->dims[d].name);
        else
            check_extent(v, op, r->dims[d].name);
}

/* parts = [index, number, depth], of a sum over one index: the index belongs only to r. Its name, NULL if
 * there are no such parts. */
static const char *check_parts(verifier *v, const tcc_op *op, size_t n_over)
{
    const tcc_attr list = tcc_attr_list(&op->attrs, "parts"), *parts = list.list.items;
    if (!tcc_attr_find(&op->attrs, "parts"))
        return NULL;
    bool ok = list.list.n == 3 && parts[0].kind == TCC_ATTR_STR;
    for (unsigned i = 1; ok && i < 3; i++)
        ok = parts[i].kind == TCC_ATTR_INT && parts[i].i >= 1 && parts[i].i <= INT32_MAX;
    if (!ok)
        ERROR(v, op, "attribute 'parts' needs an index and two numbers, 1 or more");
    else if (tcc_reduction_is_place(tcc_reduction_of(op)))
        ERROR(v, op, "places of extrema have no parts");
    else if (n_over != 1)
        ERROR(v, op, "reduces over %zu indices, expected one to divide into parts", n_over);
    if (!ok || n_over != 1 || tcc_reduction_is_place(tcc_reduction_of(op)))
        return NULL;
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    if (has_index(a, parts[0].s) || !has_index(r, parts[0].s))
        ERROR(v, op, "a is %s and r is %s: the index of parts, %s, belongs only to r", TEXT(a), TEXT(r), parts[0].s);
    return parts[0].s;
}

/* An i1 that says which terms there are. */
static bool check_condition(verifier *v, const tcc_op *op)
{
    const tcc_type *t = op->n_operands > 1 ? op->operands[1]->type : NULL;
    bool ok = op->n_operands <= 2;
    if (!ok)
        ERROR(v, op, "has %u operands, expected one or two", op->n_operands);
    else if (t && ((t->kind != TCC_KIND_field && t->kind != TCC_KIND_scalar) || t->elem != TCC_i1)) {
        ERROR(v, op, "the condition is %s, expected a field or scalar of i1", TEXT(t));
        ok = false;
    }
    return ok;
}

static bool any_has_index(const tcc_op *op, const char *name)
{
    bool has = false;
    for (unsigned i = 0; i < op->n_operands; i++)
        has |= has_index(op->operands[i]->type, name);
    return has;
}

/* rows: it is a sum of products. */
static void check_rows(verifier *v, const tcc_op *op, size_t n_over)
{
    const tcc_op *product = op->operands[0]->def;
    if (!tcc_attr_find(&op->attrs, "rows"))
        return;
    if (!product || product->code != TCC_OP_arith_mul || n_over != 1 || op->n_operands > 1 ||
        tcc_reduction_of(op) != TCC_REDUCTION_SUM)
        ERROR(v, op, "has 'rows', which is for a sum over one index of results of arith.mul");
}

static void check_reduce(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    size_t n = tcc_attr_list(&op->attrs, "over").list.n;
    const tcc_attr *over = tcc_verify_strings(v, op, "over", n);
    if (!over || !check_condition(v, op))
        return;
    const char *part = check_parts(v, op, n);
    check_rows(v, op, n);
    bool is_place = tcc_reduction_is_place(tcc_reduction_of(op));
    if (is_place && r->elem != TCC_i32)
        ERROR(v, op, "r is %s, expected a field of i32, an index", TEXT(r));
    else if (!is_place && tcc_scalar_classify(r->elem) != tcc_scalar_classify(a->elem))
        ERROR(v, op, "a is %s and r is %s, expected both float or both int", TEXT(a), TEXT(r));
    if (is_place && n != 1)
        ERROR(v, op, "looks for an extremum over %zu indices, expected one", n);
    for (size_t i = 0; i < n; i++)
        if (!any_has_index(op, over[i].s) || tcc_list_has(over, i, over[i].s))
            ERROR(v, op, "over names %s, expected each an index of a, %s, once", over[i].s, TEXT(a));
    for (unsigned o = 0; o < op->n_operands; o++) {
        const tcc_type *t = op->operands[o]->type;
        for (unsigned i = 0; i < t->rank; i++)
            if (has_index(r, t->dims[i].name) == tcc_list_has(over, n, t->dims[i].name))
                ERROR(v, op, "%s is %s and r is %s: index %s is either reduced or kept", o ? "the condition" : "a",
                      TEXT(t), TEXT(r), t->dims[i].name);
    }
    bool ok = true;
    for (unsigned i = 0; i < r->rank; i++)
        ok &= any_has_index(op, r->dims[i].name) || r->dims[i].name == part;
    if (!ok)
        ERROR(v, op, "a is %s and r is %s, which has another index", TEXT(a), TEXT(r));
}

static void check_before(verifier *v, const tcc_op *op)
{
    const tcc_op *def = op->operands[0]->def;
    tcc_verify_same(v, op, "a", op->operands[0]->type, "r", op->results[0].type);
    if (!def || def->code != TCC_OP_tensor_reduce)
        ERROR(v, op, "a is not a reduction");
}

/* A sum may have more indices than what it is multiplied by, as a product has that of its columns. */
static void check_rescale(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *by = op->operands[1]->type;
    tcc_verify_same(v, op, "a", a, "r", op->results[0].type);
    for (unsigned d = 0; d < by->rank; d++)
        if (!has_index(a, by->dims[d].name)) {
            ERROR(v, op, "a is %s and by is %s, which has another index", TEXT(a), TEXT(by));
            return;
        }
    if (by->elem != a->elem) {
        ERROR(v, op, "a is %s and by is %s, of another element type", TEXT(a), TEXT(by));
        return;
    }
    const char *wrong = op->results[0].type == a ? tcc_streaming_wrong(op, v->arena) : NULL;
    if (wrong)
        ERROR(v, op, "%s", wrong);
}

static void check_write(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *tensor = op->operands[1]->type;
    const tcc_attr *map = tcc_verify_strings(v, op, "map", tensor->rank);
    if (!map)
        return;
    if (a->kind != TCC_KIND_field && a->kind != TCC_KIND_scalar)
        ERROR(v, op, "a is %s, expected a field or scalar", TEXT(a));
    if (tcc_scalar_classify(a->elem) != tcc_scalar_classify(tensor->elem))
        ERROR(v, op, "a is %s and tensor is %s, expected both float or both int", TEXT(a),
              TEXT(tensor));
    for (unsigned i = 0; i < tensor->rank; i++)
        if (tcc_list_has(map, i, map[i].s))
            ERROR(v, op, "map names %s twice", map[i].s);
    for (unsigned i = 0; a->kind == TCC_KIND_field && i < a->rank; i++)
        if (!tcc_list_has(map, tensor->rank, a->dims[i].name))
            ERROR(v, op, "a is %s, and map does not name %s", TEXT(a), a->dims[i].name);
}

/* ---- scf ------------------------------------------------------------------------------- */

void tcc_verify_yields(verifier *v, const tcc_op *op, unsigned region)
{
    const tcc_op *yield = tcc_block_yield(op->regions[region]);
    unsigned n = yield ? yield->n_operands : 0;
    if (n != op->n_results) {
        ERROR(v, op, "has %u results, and region %u yields %u values", op->n_results, region, n);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        if (yield->operands[i]->type != op->results[i].type)
            ERROR(v, op, "result %u is %s, and region %u yields %s", i, TEXT(op->results[i].type),
                  region, TEXT(yield->operands[i]->type));
}

void tcc_verify_no_args(verifier *v, const tcc_op *op)
{
    for (unsigned i = 0; i < op->n_regions; i++)
        if (op->regions[i]->n_args)
            ERROR(v, op, "region %u has arguments", i);
}

static void check_for(verifier *v, const tcc_op *op)
{
    const tcc_type *i = op->operands[0]->type;
    const tcc_block *body = op->regions[0];
    unsigned carried = op->n_operands - 3;
    int64_t step;
    tcc_verify_same(v, op, "lo", i, "hi", op->operands[1]->type);
    tcc_verify_same(v, op, "lo", i, "step", op->operands[2]->type);
    if (tcc_attr_find(&op->attrs, "warps"))
        tcc_verify_ints(v, op, "warps", 2, 0, 64);
    const tcc_attr *registers =
        tcc_attr_find(&op->attrs, "registers") ? tcc_verify_ints(v, op, "registers", 2, 24, 256) : NULL;
    if (registers && (registers[0].i % 8 || registers[1].i % 8))
        ERROR(v, op, "attribute 'registers' needs multiples of 8");
    if (tcc_value_is_int(op->operands[2], &step) && step < 1)
        ERROR(v, op, "step is %lld, expected a positive one", (long long)step);
    if (op->n_results != carried || body->n_args != carried + 1) {
        ERROR(v, op, "carries %u values, has %u results and %zu arguments: i and the carried ones",
              carried, op->n_results, body->n_args);
        return;
    }
    tcc_verify_same(v, op, "lo", i, "argument 0", body->args[0]->type);
    if (tcc_loop_tests(op) && (!carried || op->results[0].type != tcc_type_scalar(op->block->func->ir, TCC_i1)))
        ERROR(v, op, "attribute 'while' needs an i1 as the first carried value");
    for (unsigned c = 0; c < carried; c++) {
        const tcc_type *r = op->results[c].type;
        if (op->operands[c + 3]->type != r || body->args[c + 1]->type != r)
            ERROR(v, op, "carries a value that begins as %s, is %s in the body and ends as %s",
                  TEXT(op->operands[c + 3]->type), TEXT(body->args[c + 1]->type), TEXT(r));
    }
    tcc_verify_yields(v, op, 0);
}

static void check_if(verifier *v, const tcc_op *op)
{
    tcc_verify_no_args(v, op);
    tcc_verify_yields(v, op, 0);
    tcc_verify_yields(v, op, 1);
}

/* ---- the table ------------------------------------------------------------------------- */

tcc_op_rule *const tcc_tensor_rules[TCC_OP_COUNT] = {
    [TCC_OP_arith_const] = check_const,
    [TCC_OP_tensor_dim] = check_dim,
    [TCC_OP_tensor_index] = check_index,
    [TCC_OP_tensor_read] = check_read,
    [TCC_OP_tensor_reduce] = check_reduce,
    [TCC_OP_tensor_before] = check_before,
    [TCC_OP_tensor_rescale] = check_rescale,
    [TCC_OP_tensor_write] = check_write,
    [TCC_OP_scf_for] = check_for,
    [TCC_OP_scf_if] = check_if,
};
