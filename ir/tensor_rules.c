/* tensor_rules: what elementwise ops, constants, ops of the tensor level and scf want of their operands,
 * results, attributes and regions together.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/counting.h"
#include "ir/reduction.h"
#include "ir/rules.h"
#include "ir/signature.h"

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

static void check_dim(verifier *v, const tcc_op *op)
{
    const char *name = tcc_attr_str(&op->attrs, "name", "");
    const tcc_named_attr *dims = tcc_attr_find(&op->block->func->attrs, "dims");
    if (!dims || dims->value.kind != TCC_ATTR_LIST || tcc_dims_have(dims->value, name))
        return;
    ERROR(v, op, "'%s' is not one of the function's dims", name);
}

static void check_read(verifier *v, const tcc_op *op)
{
    const tcc_type *tensor = op->operands[0]->type, *r = op->results[0].type;
    const tcc_attr *map = tcc_verify_strings(v, op, "map", tensor->rank);
    if (!map)
        return;
    if (r->elem != tensor->elem)
        ERROR(v, op, "tensor is %s and r is %s: their elements differ", TEXT(tensor), TEXT(r));
    for (unsigned i = 0; i < tensor->rank; i++)
        if (!has_index(r, map[i].s))
            ERROR(v, op, "map names %s, which r, %s, lacks", map[i].s, TEXT(r));
    for (unsigned i = 0; i < r->rank; i++)
        if (!tcc_list_has(map, tensor->rank, r->dims[i].name))
            ERROR(v, op, "r is %s, and map does not name %s", TEXT(r), r->dims[i].name);
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
    else if (tcc_reduction_of(op) != TCC_REDUCTION_SUM)
        ERROR(v, op, "only sums have parts");
    else if (n_over != 1)
        ERROR(v, op, "sums over %zu indices, expected one to divide into parts", n_over);
    if (!ok || n_over != 1 || tcc_reduction_of(op) != TCC_REDUCTION_SUM)
        return NULL;
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    if (has_index(a, parts[0].s) || !has_index(r, parts[0].s))
        ERROR(v, op, "a is %s and r is %s: the index of parts, %s, belongs only to r", TEXT(a), TEXT(r), parts[0].s);
    return parts[0].s;
}

static void check_reduce(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    size_t n = tcc_attr_list(&op->attrs, "over").list.n;
    const tcc_attr *over = tcc_verify_strings(v, op, "over", n);
    if (!over)
        return;
    const char *part = check_parts(v, op, n);
    if (tcc_scalar_classify(r->elem) != tcc_scalar_classify(a->elem))
        ERROR(v, op, "a is %s and r is %s, expected both float or both int", TEXT(a), TEXT(r));
    for (size_t i = 0; i < n; i++)
        if (!has_index(a, over[i].s) || tcc_list_has(over, i, over[i].s))
            ERROR(v, op, "over names %s, expected each an index of a, %s, once", over[i].s, TEXT(a));
    for (unsigned i = 0; i < a->rank; i++)
        if (has_index(r, a->dims[i].name) == tcc_list_has(over, n, a->dims[i].name))
            ERROR(v, op, "a is %s and r is %s: index %s is either reduced or kept", TEXT(a), TEXT(r),
                  a->dims[i].name);
    bool ok = true;
    for (unsigned i = 0; i < r->rank; i++)
        ok &= has_index(a, r->dims[i].name) || r->dims[i].name == part;
    if (!ok)
        ERROR(v, op, "a is %s and r is %s, which has another index", TEXT(a), TEXT(r));
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
    [TCC_OP_tensor_read] = check_read,
    [TCC_OP_tensor_reduce] = check_reduce,
    [TCC_OP_tensor_write] = check_write,
    [TCC_OP_scf_for] = check_for,
    [TCC_OP_scf_if] = check_if,
};
