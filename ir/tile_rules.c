/* tile_rules: what ops of the tile level want of their operands, results and attributes together.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/grid.h"
#include "ir/machine.h"
#include "ir/rules.h"

typedef tcc_verifier verifier;

#define ERROR tcc_verify_error
#define TEXT(type) tcc_verify_text(v, type)

/* ---- tile ------------------------------------------------------------------------------ */

void tcc_verify_spread(verifier *v, const tcc_op *op, int64_t warps)
{
    enum { MOST_WARPS = 32, MOST_NEIGHBOURS = 16, BLOCK = 3, LANES = 4 };
    size_t n = tcc_attr_list(&op->attrs, "spread").list.n;
    n = n == BLOCK + 1 || n == LANES + 1 ? n : BLOCK;
    const tcc_attr *spread =
        tcc_attr_find(&op->attrs, "spread") ? tcc_verify_ints(v, op, "spread", n, 1, MOST_WARPS) : NULL;
    if (!spread)
        return;
    int64_t all = spread[1].i * spread[2].i, vector = spread[0].i;
    bool blocks = n > BLOCK && spread[BLOCK].i != 1;
    if (n > LANES && (blocks || spread[LANES].i & (spread[LANES].i - 1)))
        ERROR(v, op, "spread is of %lld rows of lanes, %lld in each, expected a power of two, and 1",
              (long long)spread[LANES].i, (long long)spread[BLOCK].i);
    else if (n == BLOCK + 1 && (spread[BLOCK].i != vector || (vector != 4 && vector != 8)))
        ERROR(v, op, "spread is of blocks of %lld x %lld, expected 4 x 4 or 8 x 8", (long long)spread[BLOCK].i,
              (long long)vector);
    if (vector > MOST_NEIGHBOURS || vector & (vector - 1))
        ERROR(v, op, "spread is of %lld neighbours, expected 1, 2, 4, 8 or 16", (long long)vector);
    if (all > MOST_WARPS || (warps && all != warps))
        ERROR(v, op, "spread is of %lld x %lld warps, expected %s%lld together", (long long)spread[1].i,
              (long long)spread[2].i, warps ? "" : "at most ", (long long)(warps ? warps : MOST_WARPS));
}

static void check_cluster(verifier *v, const tcc_op *op)
{
    const tcc_attr *cluster =
        tcc_attr_find(&op->attrs, "cluster") ? tcc_verify_ints(v, op, "cluster", 2, 1, TCC_MAX_CLUSTER) : NULL;
    if (!cluster)
        return;
    if (cluster[0].i * cluster[1].i > TCC_MAX_CLUSTER)
        ERROR(v, op, "attribute 'cluster' is of %lld CTAs, expected at most %d",
              (long long)(cluster[0].i * cluster[1].i),
              TCC_MAX_CLUSTER);
    if (tcc_attr_list(&op->attrs, "axes").list.n < 2)
        ERROR(v, op, "attribute 'cluster' needs two axes");
}

static void check_grid(verifier *v, const tcc_op *op)
{
    tcc_verify_spread(v, op, 0);
    check_cluster(v, op);
    if (tcc_attr_find(&op->attrs, "group") && tcc_attr_find(&op->attrs, "raster"))
        ERROR(v, op, "has attributes 'group' and 'raster', expected one of them");
    size_t n = tcc_attr_list(&op->attrs, "axes").list.n;
    tcc_verify_strings(v, op, "axes", n);
    tcc_verify_ints(v, op, "tile", n, 1, INT32_MAX);
    tcc_attr extents = tcc_attr_list(&op->attrs, "extents");
    const tcc_block *body = op->regions[0];
    if (op->block->parent)
        ERROR(v, op, "is inside another op");
    bool ok = extents.list.n == n;
    for (size_t i = 0; ok && i < n; i++)
        ok = tcc_grid_dim(op->block->func->ir, extents.list.items[i], &(tcc_dim){0});
    if (!ok)
        ERROR(v, op, "attribute 'extents' needs %zu dimensions, numbers or such as $M", n);
    ok = body->n_args == n;
    for (size_t i = 0; ok && i < n; i++)
        ok = tcc_type_is_scalar(body->args[i]->type, TCC_i32);
    if (!ok)
        ERROR(v, op, "needs %zu arguments of type i32 in its region, one for each axis", n);
    const tcc_op *yield = tcc_block_yield(body);
    if (yield && yield->n_operands)
        ERROR(v, op, "has no results, but its region yields values");
}

static void check_ctas(verifier *v, const tcc_op *op)
{
    tcc_verify_spread(v, op, 0);
    tcc_attr grid = tcc_attr_list(&op->attrs, "grid");
    if (!grid.list.n || !tcc_grid_is_sound(op->block->func->ir, grid))
        ERROR(v, op, "attribute 'grid' needs a number of CTAs for each axis, such as ($M + 127) / 128");
    if (op->block->parent)
        ERROR(v, op, "is inside another op");
    const tcc_block *body = op->regions[0];
    size_t in_cluster = tcc_attr_find(&op->attrs, "cluster") ? 1 : 0;
    bool ok = body->n_args == 1 + in_cluster || body->n_args == 2 + in_cluster;
    for (unsigned i = 0; ok && i < body->n_args; i++)
        ok = tcc_type_is_scalar(body->args[i]->type, TCC_i32);
    if (!ok && in_cluster)
        ERROR(v, op, "needs two or three arguments of type i32 in its region, the number of the cluster, how "
                     "many there are, and the CTA's in its cluster");
    else if (!ok)
        ERROR(v, op, "needs one or two arguments of type i32 in its region, the number of the CTA and "
                     "how many there are");
    tcc_verify_yields(v, op, 0);
}

/* One coordinate for each dimension of the tensor. */
static void check_coordinates(verifier *v, const tcc_op *op, const tcc_type *tensor)
{
    unsigned n = op->n_operands - tcc_op_info_get(op->code)->n_operands;
    if (n != tensor->rank)
        ERROR(v, op, "has %u coordinates, and tensor is %s", n, TEXT(tensor));
}

void tcc_verify_access(verifier *v, const tcc_op *op, const tcc_type *tensor,
                       const tcc_type *tile, unsigned skip)
{
    check_coordinates(v, op, tensor);
    const tcc_attr *dims = tcc_verify_ints(v, op, "dims", tile->rank - skip, -1, (int64_t)tensor->rank - 1);
    for (unsigned i = 0; dims && i < tile->rank - skip; i++)
        for (unsigned j = 0; j < i; j++)
            if (dims[i].i >= 0 && dims[i].i == dims[j].i)
                ERROR(v, op, "dims names dimension %lld of tensor twice", (long long)dims[i].i);
}

void tcc_verify_copied(verifier *v, const tcc_op *op, const tcc_type *tensor, const char *name,
                       const tcc_type *to)
{
    if (tensor->elem != to->elem)
        ERROR(v, op, "tensor is %s and %s is %s: their elements differ", TEXT(tensor), name,
              TEXT(to));
}

/* Groups of elements begin at one place in each row, so that there is one row. */
static void check_groups(verifier *v, const tcc_op *op, const tcc_type *tensor, const tcc_type *tile)
{
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    if (!tcc_attr_find(&op->attrs, "groups"))
        return;
    if (tile->rank != 2 || tile->dims[0].size != 1 || dims.list.n != 2 || dims.list.items[1].i != (int64_t)tensor->rank - 1)
        ERROR(v, op, "has 'groups' and is %s, expected one row along the last dimension of the tensor", TEXT(tile));
    if (tcc_attr_find(&op->attrs, "early") || tcc_attr_find(&op->attrs, "inside"))
        ERROR(v, op, "has 'groups' beside 'early' or 'inside'");
    if (tcc_attr_find(&op->attrs, "words") && (op->code != TCC_OP_tile_load || tensor->rank != 1))
        ERROR(v, op, "has 'groups' beside 'words' and accesses %s, expected a load of a vector", TEXT(tensor));
}

static void check_load(verifier *v, const tcc_op *op)
{
    const tcc_type *tensor = op->operands[0]->type, *r = op->results[0].type;
    tcc_verify_access(v, op, tensor, r, 0);
    tcc_verify_copied(v, op, tensor, "r", r);
    bool early = tcc_attr_find(&op->attrs, "early");
    if (early && tcc_attr_find(&op->attrs, "inside"))
        ERROR(v, op, "has both 'early' and 'inside'");
    if (!early && tcc_attr_find(&op->attrs, "chunk"))
        ERROR(v, op, "has 'chunk' without 'early'");
    check_groups(v, op, tensor, r);
}

static void check_gather(verifier *v, const tcc_op *op)
{
    const tcc_type *tensor = op->operands[0]->type, *r = op->results[0].type;
    check_coordinates(v, op, tensor);
    tcc_verify_copied(v, op, tensor, "r", r);
    for (unsigned i = 1; i < op->n_operands; i++) {
        const tcc_type *c = op->operands[i]->type;
        bool tile = c->kind == TCC_KIND_tile && c->elem == TCC_i32 && tcc_same_extents(c, r);
        if (!tile && !tcc_type_is_scalar(c, TCC_i32))
            ERROR(v, op, "coordinate %u is %s and r is %s, expected i32, or a tile of i32 and r's extents", i - 1,
                  TEXT(c), TEXT(r));
    }
}

static void check_store(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *tensor = op->operands[1]->type;
    tcc_verify_access(v, op, tensor, a, 0);
    check_groups(v, op, tensor, a);
    if (tcc_scalar_classify(a->elem) != tcc_scalar_classify(tensor->elem))
        ERROR(v, op, "a is %s and tensor is %s, expected both float or both int", TEXT(a),
              TEXT(tensor));
}

static void check_broadcast(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    if (a->kind != TCC_KIND_scalar && a->kind != TCC_KIND_tile) {
        ERROR(v, op, "a is %s, expected a scalar or tile", TEXT(a));
        return;
    }
    const tcc_attr *dims = tcc_verify_ints(v, op, "dims", a->rank, 0, (int64_t)r->rank - 1);
    bool ok = dims && a->elem == r->elem;
    for (unsigned i = 0; ok && i < a->rank; i++) {
        int64_t size = a->dims[i].size;
        ok = size == 1 || size == r->dims[dims[i].i].size;
        ok &= !i || dims[i].i > dims[i - 1].i;
    }
    if (dims && !ok)
        ERROR(v, op, "a is %s and r is %s, expected one element, dims in order, extents equal or 1",
              TEXT(a), TEXT(r));
}

bool tcc_verify_matrix(verifier *v, const tcc_op *op, const tcc_type *t)
{
    if (t->rank == 2)
        return true;
    ERROR(v, op, "a is %s, expected a matrix", TEXT(t));
    return false;
}

static void check_tile_slice(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    const tcc_attr *at = tcc_verify_ints(v, op, "at", 2, 0, INT32_MAX);
    if (a->elem != r->elem)
        ERROR(v, op, "a is %s and r is %s: their elements differ", TEXT(a), TEXT(r));
    if (!at || !tcc_verify_matrix(v, op, a))
        return;
    for (unsigned d = 0; d < 2; d++)
        if (r->rank != 2 || at[d].i + r->dims[d].size > a->dims[d].size) {
            ERROR(v, op, "r, %s, is not within a, %s, from [%lld, %lld] on", TEXT(r), TEXT(a),
                  (long long)at[0].i, (long long)at[1].i);
            return;
        }
}

void tcc_verify_convert(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    if (a->elem != r->elem || !tcc_same_extents(a, r))
        ERROR(v, op, "a is %s and r is %s, expected them to differ only in their layout", TEXT(a), TEXT(r));
}

static void check_rotate(verifier *v, const tcc_op *op)
{
    tcc_verify_ints(v, op, "by", 2, 0, INT32_MAX);
    tcc_verify_same(v, op, "a", op->operands[0]->type, "r", op->results[0].type);
    tcc_verify_matrix(v, op, op->operands[0]->type);
}

void tcc_verify_reduce(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    int64_t dim = tcc_attr_int(&op->attrs, "dim", 0);
    if (!tcc_verify_matrix(v, op, a))
        return;
    bool ok = r->rank == 2 && a->elem == r->elem;
    for (unsigned d = 0; ok && d < 2; d++)
        ok = r->dims[d].size == (d == dim ? 1 : a->dims[d].size);
    if (!ok)
        ERROR(v, op, "a is %s and r is %s, expected the same but for extent 1 in dimension %lld",
              TEXT(a), TEXT(r), (long long)dim);
}

void tcc_verify_product(verifier *v, const tcc_op *op, const tcc_type *a, const tcc_type *b,
                        const tcc_type *c)
{
    const tcc_type *r = op->results[0].type;
    tcc_verify_same(v, op, "c", c, "r", r);
    tcc_scalar_class class = tcc_scalar_classify(c->elem);
    if (tcc_scalar_classify(a->elem) != class || tcc_scalar_classify(b->elem) != class)
        ERROR(v, op, "a is %s, b is %s, c is %s, expected all float or all int", TEXT(a), TEXT(b),
              TEXT(c));
    unsigned of_a = a->kind == TCC_KIND_smem, of_b = b->kind == TCC_KIND_smem;
    if (a->rank != 2 + of_a || b->rank != 2 + of_b || c->rank != 2) {
        ERROR(v, op, "a is %s, b is %s, c is %s, expected matrices", TEXT(a), TEXT(b), TEXT(c));
        return;
    }
    const tcc_dim *x = a->dims + of_a, *y = b->dims + of_b, *z = c->dims;
    if (x[0].size != z[0].size || x[1].size != y[0].size || y[1].size != z[1].size) {
        ERROR(v, op, "a is %s, b is %s, c is %s, expected [m, k], [k, n], [m, n]", TEXT(a), TEXT(b),
              TEXT(c));
        return;
    }
    if (!tcc_attr_find(&op->attrs, "instr"))
        return;
    const tcc_attr *instr = tcc_verify_ints(v, op, "instr", 3, 1, INT32_MAX);
    if (instr && (z[0].size % instr[0].i || z[1].size % instr[1].i || x[1].size % instr[2].i))
        ERROR(v, op, "instr is [%lld, %lld, %lld] and does not divide m, n, k of a, %s, and b, %s",
              (long long)instr[0].i, (long long)instr[1].i, (long long)instr[2].i, TEXT(a),
              TEXT(b));
}

static void check_tile_mma(verifier *v, const tcc_op *op)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, op);
    tcc_verify_product(v, op, o->a->type, o->b->type, o->c->type);
    if (op->n_operands != (tcc_mma_accumulate(op) ? 4 : 3))
        ERROR(v, op, "has %u operands, expected nothing after c, or an i1", op->n_operands);
}

/* ---- the table ------------------------------------------------------------------------- */

tcc_op_rule *const tcc_tile_rules[TCC_OP_COUNT] = {
    [TCC_OP_tile_grid] = check_grid,
    [TCC_OP_tile_ctas] = check_ctas,
    [TCC_OP_tile_load] = check_load,
    [TCC_OP_tile_gather] = check_gather,
    [TCC_OP_tile_store] = check_store,
    [TCC_OP_tile_broadcast] = check_broadcast,
    [TCC_OP_tile_mma] = check_tile_mma,
    [TCC_OP_tile_slice] = check_tile_slice,
    [TCC_OP_tile_reduce] = tcc_verify_reduce,
    [TCC_OP_tile_rotate] = check_rotate,
    [TCC_OP_tile_convert] = tcc_verify_convert,
};
