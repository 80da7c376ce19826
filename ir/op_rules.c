/* op_rules: relations between the operands, results, attributes and regions of an op, with a
 * function for each op that the tables in rules.c do not describe completely. docs/add-an-op.md.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/cluster.h"
#include "ir/counting.h"
#include "ir/machine.h"
#include "ir/rules.h"
#include "ir/shared.h"
#include "ir/signature.h"

typedef tcc_verifier verifier;

#define ERROR tcc_verify_error
#define TEXT(type) tcc_verify_text(v, type)

/* ---- shapes of elementwise ops --------------------------------------------------------- */

static bool same_extents(const tcc_type *a, const tcc_type *b)
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
    return same_extents(a, b) && tcc_type_same_layout(a, b);
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
            ERROR(v, op, "%s is %s, wants a field or scalar, because r is %s", names[i].name, TEXT(t),
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

static void check_elementwise(verifier *v, const tcc_op *op)
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

/* ---- lists ----------------------------------------------------------------------------- */

/* The items of a list attribute, if it is n integers of a range; else NULL. */
static const tcc_attr *ints(verifier *v, const tcc_op *op, const char *name, size_t n, int64_t min,
                            int64_t max)
{
    tcc_attr a = tcc_attr_list(&op->attrs, name);
    bool ok = a.list.n == n;
    for (size_t i = 0; ok && i < n; i++)
        ok = a.list.items[i].kind == TCC_ATTR_INT && a.list.items[i].i >= min &&
             a.list.items[i].i <= max;
    if (ok)
        return a.list.items;
    ERROR(v, op, "attribute '%s' wants %zu integers from %lld to %lld", name, n, (long long)min,
          (long long)max);
    return NULL;
}

/* The items of a list attribute, if it is n strings; else NULL. */
static const tcc_attr *strings(verifier *v, const tcc_op *op, const char *name, size_t n)
{
    tcc_attr a = tcc_attr_list(&op->attrs, name);
    bool ok = a.list.n == n;
    for (size_t i = 0; ok && i < n; i++)
        ok = a.list.items[i].kind == TCC_ATTR_STR;
    if (ok)
        return a.list.items;
    ERROR(v, op, "attribute '%s' wants %zu names", name, n);
    return NULL;
}

static bool list_has(const tcc_attr *items, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(items[i].s, name))
            return true;
    return false;
}

/* ---- arith, tensor --------------------------------------------------------------------- */

static void check_const(verifier *v, const tcc_op *op)
{
    const tcc_type *r = op->results[0].type;
    const tcc_attr *a = &tcc_attr_find(&op->attrs, "value")->value;
    if (tcc_scalar_classify(r->elem) == TCC_CLASS_FLOAT) {
        if (a->kind != TCC_ATTR_FLOAT)
            ERROR(v, op, "r is %s, wants a float as its value", TEXT(r));
    } else if (a->kind != TCC_ATTR_INT) {
        ERROR(v, op, "r is %s, wants an integer as its value", TEXT(r));
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
    const tcc_attr *map = strings(v, op, "map", tensor->rank);
    if (!map)
        return;
    if (r->elem != tensor->elem)
        ERROR(v, op, "tensor is %s and r is %s: their elements differ", TEXT(tensor), TEXT(r));
    for (unsigned i = 0; i < tensor->rank; i++)
        if (!has_index(r, map[i].s))
            ERROR(v, op, "map names %s, which r, %s, lacks", map[i].s, TEXT(r));
    for (unsigned i = 0; i < r->rank; i++)
        if (!list_has(map, tensor->rank, r->dims[i].name))
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
        ERROR(v, op, "attribute 'parts' wants an index and two numbers, 1 or more");
    else if (n_over != 1)
        ERROR(v, op, "sums over %zu indices, wants one to divide into parts", n_over);
    if (!ok || n_over != 1)
        return NULL;
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    if (has_index(a, parts[0].s) || !has_index(r, parts[0].s))
        ERROR(v, op, "a is %s and r is %s: the index of parts, %s, belongs only to r", TEXT(a), TEXT(r), parts[0].s);
    return parts[0].s;
}

static void check_sum(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    size_t n = tcc_attr_list(&op->attrs, "over").list.n;
    const tcc_attr *over = strings(v, op, "over", n);
    if (!over)
        return;
    const char *part = check_parts(v, op, n);
    if (tcc_scalar_classify(r->elem) != tcc_scalar_classify(a->elem))
        ERROR(v, op, "a is %s and r is %s, wants both float or both int", TEXT(a), TEXT(r));
    for (size_t i = 0; i < n; i++)
        if (!has_index(a, over[i].s) || list_has(over, i, over[i].s))
            ERROR(v, op, "over names %s, wants each an index of a, %s, once", over[i].s, TEXT(a));
    for (unsigned i = 0; i < a->rank; i++)
        if (has_index(r, a->dims[i].name) == list_has(over, n, a->dims[i].name))
            ERROR(v, op, "a is %s and r is %s: index %s is either summed or kept", TEXT(a), TEXT(r),
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
    const tcc_attr *map = strings(v, op, "map", tensor->rank);
    if (!map)
        return;
    if (a->kind != TCC_KIND_field && a->kind != TCC_KIND_scalar)
        ERROR(v, op, "a is %s, wants a field or scalar", TEXT(a));
    if (tcc_scalar_classify(a->elem) != tcc_scalar_classify(tensor->elem))
        ERROR(v, op, "a is %s and tensor is %s, wants both float or both int", TEXT(a),
              TEXT(tensor));
    for (unsigned i = 0; i < tensor->rank; i++)
        if (list_has(map, i, map[i].s))
            ERROR(v, op, "map names %s twice", map[i].s);
    for (unsigned i = 0; a->kind == TCC_KIND_field && i < a->rank; i++)
        if (!list_has(map, tensor->rank, a->dims[i].name))
            ERROR(v, op, "a is %s, and map does not name %s", TEXT(a), a->dims[i].name);
}

/* ---- scf ------------------------------------------------------------------------------- */

/* Whether a region yields values of the types of op's results. */
static void check_yields(verifier *v, const tcc_op *op, unsigned region)
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

static void check_no_args(verifier *v, const tcc_op *op)
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
        ints(v, op, "warps", 2, 0, 64);
    const tcc_attr *registers =
        tcc_attr_find(&op->attrs, "registers") ? ints(v, op, "registers", 2, 24, 256) : NULL;
    if (registers && (registers[0].i % 8 || registers[1].i % 8))
        ERROR(v, op, "attribute 'registers' wants multiples of 8");
    if (tcc_value_is_int(op->operands[2], &step) && step < 1)
        ERROR(v, op, "step is %lld, wants a positive one", (long long)step);
    if (op->n_results != carried || body->n_args != carried + 1) {
        ERROR(v, op, "carries %u values, has %u results and %zu arguments: i and the carried ones",
              carried, op->n_results, body->n_args);
        return;
    }
    tcc_verify_same(v, op, "lo", i, "argument 0", body->args[0]->type);
    if (tcc_loop_tests(op) && (!carried || op->results[0].type != tcc_type_scalar(op->block->func->ir, TCC_i1)))
        ERROR(v, op, "attribute 'while' wants an i1 as the first carried value");
    for (unsigned c = 0; c < carried; c++) {
        const tcc_type *r = op->results[c].type;
        if (op->operands[c + 3]->type != r || body->args[c + 1]->type != r)
            ERROR(v, op, "carries a value that begins as %s, is %s in the body and ends as %s",
                  TEXT(op->operands[c + 3]->type), TEXT(body->args[c + 1]->type), TEXT(r));
    }
    check_yields(v, op, 0);
}

static void check_if(verifier *v, const tcc_op *op)
{
    check_no_args(v, op);
    check_yields(v, op, 0);
    check_yields(v, op, 1);
}

/* ---- tile ------------------------------------------------------------------------------ */

static bool is_extent(const tcc_attr *a)
{
    return a->kind == TCC_ATTR_STR ||
           (a->kind == TCC_ATTR_INT && a->i >= 0 && a->i <= INT32_MAX);
}

/* spread = [vector, rows, columns], for this many warps; 0: any number. */
static void check_spread(verifier *v, const tcc_op *op, int64_t warps)
{
    enum { MOST_WARPS = 32, MOST_NEIGHBOURS = 16 };
    const tcc_attr *spread = tcc_attr_find(&op->attrs, "spread") ? ints(v, op, "spread", 3, 1, MOST_WARPS) : NULL;
    if (!spread)
        return;
    int64_t all = spread[1].i * spread[2].i, vector = spread[0].i;
    if (vector > MOST_NEIGHBOURS || vector & (vector - 1))
        ERROR(v, op, "spread is of %lld neighbours, wants 1, 2, 4, 8 or 16", (long long)vector);
    if (all > MOST_WARPS || (warps && all != warps))
        ERROR(v, op, "spread is of %lld x %lld warps, wants %s%lld together", (long long)spread[1].i,
              (long long)spread[2].i, warps ? "" : "at most ", (long long)(warps ? warps : MOST_WARPS));
}

static void check_cluster(verifier *v, const tcc_op *op)
{
    const tcc_attr *cluster =
        tcc_attr_find(&op->attrs, "cluster") ? ints(v, op, "cluster", 2, 1, TCC_MAX_CLUSTER) : NULL;
    if (!cluster)
        return;
    if (cluster[0].i * cluster[1].i > TCC_MAX_CLUSTER)
        ERROR(v, op, "attribute 'cluster' is of %lld CTAs, wants at most %d", (long long)(cluster[0].i * cluster[1].i),
              TCC_MAX_CLUSTER);
    if (tcc_attr_list(&op->attrs, "axes").list.n < 2)
        ERROR(v, op, "attribute 'cluster' wants two axes");
}

static void check_grid(verifier *v, const tcc_op *op)
{
    check_spread(v, op, 0);
    check_cluster(v, op);
    if (tcc_attr_find(&op->attrs, "group") && tcc_attr_find(&op->attrs, "raster"))
        ERROR(v, op, "has attributes 'group' and 'raster', wants one of them");
    size_t n = tcc_attr_list(&op->attrs, "axes").list.n;
    const tcc_attr *axes = strings(v, op, "axes", n);
    const tcc_attr *tile = ints(v, op, "tile", n, 1, INT32_MAX);
    tcc_attr extents = tcc_attr_list(&op->attrs, "extents");
    const tcc_block *body = op->regions[0];
    if (op->block->parent)
        ERROR(v, op, "is inside another op");
    bool ok = extents.list.n == n;
    for (size_t i = 0; ok && i < n; i++)
        ok = is_extent(&extents.list.items[i]);
    if (!ok)
        ERROR(v, op, "attribute 'extents' wants %zu dimensions", n);
    ok = body->n_args == n;
    for (size_t i = 0; ok && i < n; i++)
        ok = tcc_type_is_scalar(body->args[i]->type, TCC_i32);
    if (!ok)
        ERROR(v, op, "wants %zu arguments of type i32 in its region, one for each axis", n);
    const tcc_op *yield = tcc_block_yield(body);
    if ((yield ? yield->n_operands : 0) != op->n_results)
        ERROR(v, op, "has %u results, and its region yields %u values", op->n_results,
              yield ? yield->n_operands : 0);
    for (unsigned r = 0; axes && tile && yield && r < op->n_results && r < yield->n_operands; r++) {
        const tcc_type *field = op->results[r].type, *t = yield->operands[r]->type;
        ok = field->kind == TCC_KIND_field && t->kind == TCC_KIND_tile && field->elem == t->elem;
        for (unsigned d = 0; ok && d < field->rank; d++)
            ok = list_has(axes, n, field->dims[d].name);
        if (!ok)
            ERROR(v, op,
                  "result %u is %s and the region yields %s, wants a field over the axes and "
                  "its tile",
                  r, TEXT(field), TEXT(t));
    }
}

static void check_ctas(verifier *v, const tcc_op *op)
{
    check_spread(v, op, 0);
    tcc_attr grid = tcc_attr_list(&op->attrs, "grid");
    bool ok = grid.list.n > 0;
    for (size_t i = 0; ok && i < grid.list.n; i++) {
        const tcc_attr *axis = &grid.list.items[i];
        ok = axis->kind == TCC_ATTR_LIST && axis->list.n == 2 &&
             is_extent(&axis->list.items[0]) && axis->list.items[1].kind == TCC_ATTR_INT &&
             axis->list.items[1].i >= 1 && axis->list.items[1].i <= INT32_MAX;
    }
    if (!ok)
        ERROR(v, op, "attribute 'grid' wants a dimension and how many of it a CTA takes, for each axis");
    if (op->block->parent)
        ERROR(v, op, "is inside another op");
    const tcc_block *body = op->regions[0];
    size_t in_cluster = tcc_attr_find(&op->attrs, "cluster") ? 1 : 0;
    ok = body->n_args == 1 + in_cluster || body->n_args == 2 + in_cluster;
    for (unsigned i = 0; ok && i < body->n_args; i++)
        ok = tcc_type_is_scalar(body->args[i]->type, TCC_i32);
    if (!ok && in_cluster)
        ERROR(v, op, "wants two or three arguments of type i32 in its region, the number of the cluster, how "
                     "many there are, and the CTA's in its cluster");
    else if (!ok)
        ERROR(v, op, "wants one or two arguments of type i32 in its region, the number of the CTA and "
                     "how many there are");
    check_yields(v, op, 0);
}

/* Coordinates for each dimension of the tensor, and where the tile's dimensions from `skip` on
 * run: tile.load, tile.store, async.copy. */
static void check_access(verifier *v, const tcc_op *op, const tcc_type *tensor,
                         const tcc_type *tile, unsigned skip)
{
    unsigned n = op->n_operands - tcc_op_info_get(op->code)->n_operands;
    if (n != tensor->rank)
        ERROR(v, op, "has %u coordinates, and tensor is %s", n, TEXT(tensor));
    const tcc_attr *dims = ints(v, op, "dims", tile->rank - skip, -1, (int64_t)tensor->rank - 1);
    for (unsigned i = 0; dims && i < tile->rank - skip; i++)
        for (unsigned j = 0; j < i; j++)
            if (dims[i].i >= 0 && dims[i].i == dims[j].i)
                ERROR(v, op, "dims names dimension %lld of tensor twice", (long long)dims[i].i);
}

static void check_copied(verifier *v, const tcc_op *op, const tcc_type *tensor, const char *name,
                         const tcc_type *to)
{
    if (tensor->elem != to->elem)
        ERROR(v, op, "tensor is %s and %s is %s: their elements differ", TEXT(tensor), name,
              TEXT(to));
}

static void check_load(verifier *v, const tcc_op *op)
{
    const tcc_type *tensor = op->operands[0]->type, *r = op->results[0].type;
    check_access(v, op, tensor, r, 0);
    check_copied(v, op, tensor, "r", r);
    bool early = tcc_attr_find(&op->attrs, "early");
    if (early && tcc_attr_find(&op->attrs, "inside"))
        ERROR(v, op, "has both 'early' and 'inside'");
    if (!early && tcc_attr_find(&op->attrs, "chunk"))
        ERROR(v, op, "has 'chunk' without 'early'");
}

static void check_store(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *tensor = op->operands[1]->type;
    check_access(v, op, tensor, a, 0);
    if (tcc_scalar_classify(a->elem) != tcc_scalar_classify(tensor->elem))
        ERROR(v, op, "a is %s and tensor is %s, wants both float or both int", TEXT(a),
              TEXT(tensor));
}

static void check_broadcast(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    if (a->kind != TCC_KIND_scalar && a->kind != TCC_KIND_tile) {
        ERROR(v, op, "a is %s, wants a scalar or tile", TEXT(a));
        return;
    }
    const tcc_attr *dims = ints(v, op, "dims", a->rank, 0, (int64_t)r->rank - 1);
    bool ok = dims && a->elem == r->elem;
    for (unsigned i = 0; ok && i < a->rank; i++) {
        int64_t size = a->dims[i].size;
        ok = size == 1 || size == r->dims[dims[i].i].size;
        ok &= !i || dims[i].i > dims[i - 1].i;
    }
    if (dims && !ok)
        ERROR(v, op, "a is %s and r is %s, wants one element, dims in order, extents equal or 1",
              TEXT(a), TEXT(r));
}

/* A matrix. */
static bool check_matrix(verifier *v, const tcc_op *op, const tcc_type *t)
{
    if (t->rank == 2)
        return true;
    ERROR(v, op, "a is %s, wants a matrix", TEXT(t));
    return false;
}

static void check_tile_slice(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    const tcc_attr *at = ints(v, op, "at", 2, 0, INT32_MAX);
    if (a->elem != r->elem)
        ERROR(v, op, "a is %s and r is %s: their elements differ", TEXT(a), TEXT(r));
    if (!at || !check_matrix(v, op, a))
        return;
    for (unsigned d = 0; d < 2; d++)
        if (r->rank != 2 || at[d].i + r->dims[d].size > a->dims[d].size) {
            ERROR(v, op, "r, %s, is not within a, %s, from [%lld, %lld] on", TEXT(r), TEXT(a),
                  (long long)at[0].i, (long long)at[1].i);
            return;
        }
}

static void check_convert(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    if (a->elem != r->elem || !same_extents(a, r))
        ERROR(v, op, "a is %s and r is %s, wants them to differ only in their layout", TEXT(a), TEXT(r));
}

static void check_rotate(verifier *v, const tcc_op *op)
{
    ints(v, op, "by", 2, 0, INT32_MAX);
    tcc_verify_same(v, op, "a", op->operands[0]->type, "r", op->results[0].type);
    check_matrix(v, op, op->operands[0]->type);
}

static void check_reduce(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    int64_t dim = tcc_attr_int(&op->attrs, "dim", 0);
    if (!check_matrix(v, op, a))
        return;
    bool ok = r->rank == 2 && a->elem == r->elem;
    for (unsigned d = 0; ok && d < 2; d++)
        ok = r->dims[d].size == (d == dim ? 1 : a->dims[d].size);
    if (!ok)
        ERROR(v, op, "a is %s and r is %s, wants the same but for extent 1 in dimension %lld",
              TEXT(a), TEXT(r), (long long)dim);
}

/* [m,k] * [k,n] + [m,n], of which a and b may have a dimension of stages in front. */
static void check_product(verifier *v, const tcc_op *op, const tcc_type *a, const tcc_type *b,
                          const tcc_type *c)
{
    const tcc_type *r = op->results[0].type;
    tcc_verify_same(v, op, "c", c, "r", r);
    tcc_scalar_class class = tcc_scalar_classify(c->elem);
    if (tcc_scalar_classify(a->elem) != class || tcc_scalar_classify(b->elem) != class)
        ERROR(v, op, "a is %s, b is %s, c is %s, wants all float or all int", TEXT(a), TEXT(b),
              TEXT(c));
    unsigned of_a = a->kind == TCC_KIND_smem, of_b = b->kind == TCC_KIND_smem;
    if (a->rank != 2 + of_a || b->rank != 2 + of_b || c->rank != 2) {
        ERROR(v, op, "a is %s, b is %s, c is %s, wants matrices", TEXT(a), TEXT(b), TEXT(c));
        return;
    }
    const tcc_dim *x = a->dims + of_a, *y = b->dims + of_b, *z = c->dims;
    if (x[0].size != z[0].size || x[1].size != y[0].size || y[1].size != z[1].size) {
        ERROR(v, op, "a is %s, b is %s, c is %s, wants [m, k], [k, n], [m, n]", TEXT(a), TEXT(b),
              TEXT(c));
        return;
    }
    if (!tcc_attr_find(&op->attrs, "instr"))
        return;
    const tcc_attr *instr = ints(v, op, "instr", 3, 1, INT32_MAX);
    if (instr && (z[0].size % instr[0].i || z[1].size % instr[1].i || x[1].size % instr[2].i))
        ERROR(v, op, "instr is [%lld, %lld, %lld] and does not divide m, n, k of a, %s, and b, %s",
              (long long)instr[0].i, (long long)instr[1].i, (long long)instr[2].i, TEXT(a),
              TEXT(b));
}

static void check_tile_mma(verifier *v, const tcc_op *op)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    check_product(v, op, o->a->type, o->b->type, o->c->type);
    if (op->n_operands != (tcc_mma_accumulate(op) ? 4 : 3))
        ERROR(v, op, "has %u operands, wants nothing after c, or an i1", op->n_operands);
}

/* ---- async ----------------------------------------------------------------------------- */

static void check_alloc(verifier *v, const tcc_op *op)
{
    const tcc_type *r = op->results[0].type;
    int64_t swizzle = tcc_attr_int(&op->attrs, "swizzle", 0);
    /* As wide as the swizzle, unless it says: then it is rows of panels that are swizzled. */
    int64_t panel = tcc_attr_int(&op->attrs, "panel", swizzle ? swizzle : 16);
    int64_t contiguous = tcc_attr_int(&op->attrs, "contiguous", 0) ? 1 : 0;
    int64_t bits = r->dims[1 + contiguous].size * tcc_scalar_bits(r->elem);
    if (bits % (panel * 8))
        ERROR(v, op, "r is %s, wants whole panels of %lld bytes along its contiguous dimension",
              TEXT(r), (long long)panel);
}

static void check_ring(verifier *v, const tcc_op *op)
{
    int64_t stages = tcc_attr_int(&op->attrs, "stages", 0);
    for (unsigned i = 0; i < op->n_operands; i++) {
        const tcc_type *t = op->operands[i]->type;
        if (t->kind != TCC_KIND_smem || t->dims[0].size != stages)
            ERROR(v, op, "operand %u is %s, wants smem of %lld stages", i, TEXT(t),
                  (long long)stages);
    }
    if (op->n_operands && tcc_is_of_turns(op))
        ERROR(v, op, "has buffers, but is for taking turns");
    bool bytes = !strcmp(tcc_attr_str(&op->attrs, "completion", ""), "bytes");
    if (tcc_attr_find(&op->attrs, "cluster") && !bytes && !tcc_is_of_words(op))
        ERROR(v, op, "is of a cluster, but does not count bytes and has no words");
    int64_t ctas = tcc_attr_int(&op->attrs, "cluster", 1), rows = tcc_attr_int(&op->attrs, "rows", ctas);
    if (rows < 1 || ctas % rows)
        ERROR(v, op, "has rows of a cluster of %lld: %lld, wants a number that divides it", (long long)ctas,
              (long long)rows);
}

/* async.role, async.one. */
static void check_region(verifier *v, const tcc_op *op)
{
    check_no_args(v, op);
    check_yields(v, op, 0);
    for (const tcc_block *b = op->block; b->parent; b = b->parent->block)
        if (b->parent->code == op->code)
            ERROR(v, op, "is inside another");
}

/* waves = [rows, columns] of this many warps, block = [rows, columns] of an instruction. */
static void check_role(verifier *v, const tcc_op *op)
{
    check_region(v, op);
    int64_t warps = tcc_attr_int(&op->attrs, "warps", 0);
    check_spread(v, op, warps);
    if (tcc_attr_find(&op->attrs, "waves")) {
        const tcc_attr *waves = ints(v, op, "waves", 2, 1, warps);
        if (waves && waves[0].i * waves[1].i != warps)
            ERROR(v, op, "waves is [%lld, %lld], wants %lld together", (long long)waves[0].i,
                  (long long)waves[1].i, (long long)warps);
    }
    if (tcc_attr_find(&op->attrs, "block"))
        ints(v, op, "block", 2, 1, INT16_MAX);
}

static const tcc_op *def_of(const tcc_value *v, tcc_opcode code)
{
    return v->def && v->def->code == code ? v->def : NULL;
}

/* With turns, a role can only wait for its own turn. */
static void check_wait(verifier *v, const tcc_op *op)
{
    const tcc_op *ring = def_of(op->operands[0], TCC_OP_async_ring);
    if (ring && tcc_is_of_turns(ring))
        ERROR(v, op, "uses a ring for taking turns, which are only acquired and released");
}

static void check_commit(verifier *v, const tcc_op *op)
{
    const tcc_op *ring = def_of(TCC_VIEW(async_commit, op)->ring, TCC_OP_async_ring);
    check_wait(v, op);
    bool bytes = ring && !strcmp(tcc_attr_str(&ring->attrs, "completion", ""), "bytes");
    if (ring && bytes != (tcc_attr_find(&op->attrs, "bytes") != NULL))
        ERROR(v, op, bytes ? "its ring counts bytes: wants 'bytes'" : "its ring counts no bytes");
}

/* A buffer is one of its ring's. */
static void check_buffer(verifier *v, const tcc_op *op, const tcc_value *ring, const char *name,
                         const tcc_value *buffer)
{
    const tcc_op *def = def_of(ring, TCC_OP_async_ring);
    for (unsigned i = 0; def && i < def->n_operands; i++)
        if (def->operands[i] == buffer)
            return;
    if (!def)
        return;
    ERROR(v, op, "%s, %s, is not a buffer of its ring", name, TEXT(buffer->type));
}

static void check_copy(verifier *v, const tcc_op *op)
{
    const tcc_async_copy_operands *o = TCC_VIEW(async_copy, op);
    check_access(v, op, o->tensor->type, o->buffer->type, 1);
    check_copied(v, op, o->tensor->type, "buffer", o->buffer->type);
    check_buffer(v, op, o->ring, "buffer", o->buffer);
    tcc_peers peers = tcc_peers_of(op);
    const tcc_op *ring = def_of(o->ring, TCC_OP_async_ring);
    tcc_fillers fillers = ring ? tcc_fillers_of(ring) : (tcc_fillers){0};
    if (peers.n > 1 && strcmp(tcc_attr_str(&op->attrs, "copy", ""), "tma"))
        ERROR(v, op, "copies to several CTAs, but not by the copy engine");
    else if (peers.n > 1 && ring && !tcc_fillers_have(&fillers, peers))
        ERROR(v, op, "is to %lld CTAs at places %lld apart, which do not fill its ring", (long long)peers.n,
              (long long)peers.apart);
}

static void check_put(verifier *v, const tcc_op *op)
{
    const tcc_async_put_operands *o = TCC_VIEW(async_put, op);
    const tcc_type *buffer = o->buffer->type, *a = o->a->type;
    if (a->rank != 2 || buffer->rank != 3 || buffer->elem != a->elem ||
        buffer->dims[1].size != a->dims[0].size || buffer->dims[2].size != a->dims[1].size)
        ERROR(v, op, "a is %s, which is not a stage of buffer, %s", TEXT(a), TEXT(buffer));
    check_buffer(v, op, o->ring, "buffer", o->buffer);
}

static void check_async_read(verifier *v, const tcc_op *op)
{
    const tcc_async_read_operands *o = TCC_VIEW(async_read, op);
    const tcc_type *buffer = o->buffer->type, *r = op->results[0].type;
    const tcc_attr *at = ints(v, op, "at", 2, 0, INT32_MAX);
    check_buffer(v, op, o->ring, "buffer", o->buffer);
    bool ok = at && r->rank == 2 && buffer->rank == 3 && r->elem == buffer->elem;
    for (unsigned d = 0; ok && d < 2; d++)
        ok = at[d].i + r->dims[d].size <= buffer->dims[1 + d].size;
    if (at && !ok)
        ERROR(v, op, "r, %s, is not part of a stage of buffer, %s", TEXT(r), TEXT(buffer));
}

/* A buffer outside rings, with one stage. */
static bool check_single(verifier *v, const tcc_op *op, const tcc_type *buffer)
{
    bool ok = buffer->rank == 3 && buffer->dims[0].size == 1;
    if (!ok)
        ERROR(v, op, "buffer is %s, wants one stage of a matrix", TEXT(buffer));
    return ok;
}

static void check_async_write(verifier *v, const tcc_op *op)
{
    const tcc_type *buffer = op->operands[0]->type, *a = op->operands[3]->type;
    if (!check_single(v, op, buffer) || !check_matrix(v, op, a))
        return;
    if (tcc_scalar_classify(a->elem) != tcc_scalar_classify(buffer->elem))
        ERROR(v, op, "a is %s and buffer is %s, wants both float or both int", TEXT(a),
              TEXT(buffer));
    for (unsigned d = 0; d < 2; d++)
        if (a->dims[d].size > buffer->dims[1 + d].size)
            ERROR(v, op, "a, %s, is larger than buffer, %s", TEXT(a), TEXT(buffer));
}

/* A buffer of a's element, with an element of its own for each of a's; for one that is reduced away: for
 * each warp. */
static void check_exchanged(verifier *v, const tcc_op *op, int reduced)
{
    const tcc_type *a = op->operands[0]->type, *buffer = op->operands[1]->type;
    if (!check_single(v, op, buffer) || !check_matrix(v, op, a))
        return;
    if (a->elem != buffer->elem)
        ERROR(v, op, "a is %s and buffer is %s, wants the same element", TEXT(a), TEXT(buffer));
    for (int d = 0; d < 2; d++)
        if (d != reduced && a->dims[d].size > buffer->dims[1 + d].size)
            ERROR(v, op, "a, %s, is larger than buffer, %s", TEXT(a), TEXT(buffer));
}

static void check_exchange(verifier *v, const tcc_op *op)
{
    check_convert(v, op);
    check_exchanged(v, op, -1);
}

static void check_combine(verifier *v, const tcc_op *op)
{
    check_reduce(v, op);
    check_exchanged(v, op, (int)tcc_attr_int(&op->attrs, "dim", 0));
}

/* A stage for each CTA that shares the sum but the first, of a's elements. */
static void check_contributed(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *buffer = op->operands[1]->type;
    if (!check_matrix(v, op, a))
        return;
    bool same = a->elem == buffer->elem;
    for (unsigned d = 0; d < 2; d++)
        same &= a->dims[d].size == buffer->dims[1 + d].size;
    if (!same)
        ERROR(v, op, "a is %s and buffer is %s, wants stages of the same", TEXT(a), TEXT(buffer));
    if (op->n_results)
        tcc_verify_same(v, op, "a", a, "r", op->results[0].type);
    const tcc_op *ctas = op->block->parent;
    while (ctas && ctas->code != TCC_OP_tile_ctas)
        ctas = ctas->block->parent;
    int64_t n = ctas ? tcc_attr_int(&ctas->attrs, "cluster", 1) : 1;
    int64_t apart = tcc_attr_int(&op->attrs, "apart", 1), sharing = buffer->dims[0].size + 1;
    if (op->n_results ? n % sharing : sharing * apart != n)
        ERROR(v, op, "buffer has %lld stages, wants one for each further CTA of a cluster of %lld",
              (long long)buffer->dims[0].size, (long long)n);
}

static void check_send(verifier *v, const tcc_op *op)
{
    const tcc_type *buffer = op->operands[0]->type, *tensor = op->operands[1]->type;
    if (check_single(v, op, buffer))
        check_access(v, op, tensor, buffer, 1);
    check_copied(v, op, tensor, "buffer", buffer);
}

static void check_opaque(verifier *v, const tcc_op *op)
{
    tcc_verify_same(v, op, "a", op->operands[0]->type, "r", op->results[0].type);
    if (op->results[0].type->elem != TCC_i32)
        ERROR(v, op, "a is %s, wants an i32", TEXT(op->operands[0]->type));
}

static void check_async_mma(verifier *v, const tcc_op *op)
{
    const tcc_async_mma_operands *o = TCC_VIEW(async_mma, op);
    check_product(v, op, o->a->type, o->b->type, o->c->type);
    check_buffer(v, op, o->ring, "b", o->b);
    unsigned n = op->n_operands - (tcc_mma_accumulate(op) != NULL);
    bool other = n == 7 && op->operands[5]->type->kind == TCC_KIND_ring &&
                 tcc_type_is_scalar(op->operands[6]->type, TCC_i32);
    if (o->a->type->kind == TCC_KIND_tile ? n != 5 : n != 5 && !other)
        ERROR(v, op, "a is %s, wants after c: %s", TEXT(o->a->type),
              o->a->type->kind == TCC_KIND_tile ? "nothing, or an i1"
                                                : "nothing, its ring and an i32, an i1, or all of them");
    else if (o->a->type->kind == TCC_KIND_smem)
        check_buffer(v, op, other ? op->operands[5] : o->ring, "a", o->a);
}

static void check_mma_wait(verifier *v, const tcc_op *op)
{
    tcc_verify_same(v, op, "c", op->operands[0]->type, "r", op->results[0].type);
}

/* ---- the table ------------------------------------------------------------------------- */

static void (*const rules[TCC_OP_COUNT])(verifier *, const tcc_op *) = {
    [TCC_OP_arith_const] = check_const,
    [TCC_OP_tensor_dim] = check_dim,
    [TCC_OP_tensor_read] = check_read,
    [TCC_OP_tensor_sum] = check_sum,
    [TCC_OP_tensor_write] = check_write,
    [TCC_OP_scf_for] = check_for,
    [TCC_OP_scf_if] = check_if,
    [TCC_OP_tile_grid] = check_grid,
    [TCC_OP_tile_ctas] = check_ctas,
    [TCC_OP_tile_load] = check_load,
    [TCC_OP_tile_store] = check_store,
    [TCC_OP_tile_broadcast] = check_broadcast,
    [TCC_OP_tile_mma] = check_tile_mma,
    [TCC_OP_tile_slice] = check_tile_slice,
    [TCC_OP_tile_reduce] = check_reduce,
    [TCC_OP_tile_rotate] = check_rotate,
    [TCC_OP_tile_convert] = check_convert,
    [TCC_OP_async_read] = check_async_read,
    [TCC_OP_async_write] = check_async_write,
    [TCC_OP_async_exchange] = check_exchange,
    [TCC_OP_async_combine] = check_combine,
    [TCC_OP_async_contribute] = check_contributed,
    [TCC_OP_async_collect] = check_contributed,
    [TCC_OP_async_send] = check_send,
    [TCC_OP_async_opaque] = check_opaque,
    [TCC_OP_async_alloc] = check_alloc,
    [TCC_OP_async_ring] = check_ring,
    [TCC_OP_async_role] = check_role,
    [TCC_OP_async_one] = check_region,
    [TCC_OP_async_commit] = check_commit,
    [TCC_OP_async_wait] = check_wait,
    [TCC_OP_async_copy] = check_copy,
    [TCC_OP_async_put] = check_put,
    [TCC_OP_async_mma] = check_async_mma,
    [TCC_OP_async_mma_wait] = check_mma_wait,
};

void tcc_verify_op_rule(verifier *v, const tcc_op *op)
{
    if (tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE)
        check_elementwise(v, op);
    if (rules[op->code])
        rules[op->code](v, op);
    tcc_verify_target_rule(v, op);
}
