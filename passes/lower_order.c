/* lower_order: whether the threads of a role may access tensors without being synchronized.
 *
 * At the levels above, a role executes one op after another. Its warps do not wait for each other: one may load
 * or store an element before or after another stores it. So an access to a tensor that the role also stores to
 * must be to other elements, or to those that the same threads have in the other access. Concurrent roles are
 * not ordered at the levels above either.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/loops.h"
#include "passes/lowering.h"

/* For an access along a dimension of the tensor: where it begins, at base + factor * varying + first, and
 * how long it is. Without a varying part it begins at `first`. */
typedef struct extent {
    const tcc_value *base, *varying;
    int64_t factor, first, size;
} extent;

/* From registers, or from shared memory in words. */
static bool is_store(const tcc_op *op)
{
    return op->code == TCC_OP_tile_store || op->code == TCC_OP_async_send;
}

static const tcc_type *tile_of(const tcc_op *op)
{
    return (is_store(op) ? op->operands[0] : &op->results[0])->type;
}

/* Rows and columns. */
static const tcc_dim *sizes_of(const tcc_op *op)
{
    return tile_of(op)->dims + (op->code == TCC_OP_async_send);
}

/* A number, which async.opaque may keep from those that compute. */
static bool is_int(const tcc_value *v, int64_t *out)
{
    while (v->def && v->def->code == TCC_OP_async_opaque)
        v = v->def->operands[0];
    return tcc_value_is_int(v, out);
}

/* v is what is returned + *constant. */
static const tcc_value *without_constant(const tcc_value *v, int64_t *constant)
{
    int64_t one;
    *constant = 0;
    while (v->def && v->def->code == TCC_OP_arith_add && is_int(v->def->operands[1], &one)) {
        *constant += one;
        v = v->def->operands[0];
    }
    return v;
}

/* v is *factor times what is returned. */
static const tcc_value *without_factor(const tcc_value *v, int64_t *factor)
{
    bool scaled = v->def && v->def->code == TCC_OP_arith_mul && tcc_value_is_int(v->def->operands[1], factor);
    if (!scaled)
        *factor = 1;
    return scaled ? v->def->operands[0] : v;
}

static extent extent_along(const tcc_op *op, unsigned d)
{
    const tcc_dim *tile = sizes_of(op);
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    const tcc_value *v = op->operands[1 + is_store(op) + d];
    extent e = {.factor = 1, .size = 1};
    int64_t number = 0;
    v = without_constant(v, &e.first);
    e.varying = is_int(v, &number) ? NULL : v;
    e.first += number;
    if (e.varying && e.varying->def && e.varying->def->code == TCC_OP_arith_add) {
        e.base = e.varying->def->operands[0];
        e.varying = e.varying->def->operands[1];
    }
    if (e.varying)
        e.varying = without_factor(e.varying, &e.factor);
    for (int x = 0; x < 2; x++)
        if (dims.list.items[x].i == (int64_t)d)
            e.size = tile[x].size;
    return e;
}

static bool begin_alike(const extent *x, const extent *y)
{
    return x->base == y->base && x->varying == y->varying && x->factor == y->factor;
}

static bool are_apart(const extent *x, const extent *y)
{
    return x->first + x->size <= y->first || y->first + y->size <= x->first;
}

/* Where the two begin and end, if their beginnings differ only by a constant. */
static int64_t span_of(const extent *x, const extent *y)
{
    int64_t first = x->first < y->first ? x->first : y->first;
    int64_t end = x->first + x->size > y->first + y->size ? x->first + x->size : y->first + y->size;
    return end - first;
}

/* ---- which thread has what ---------------------------------------------------------------- */

/* The direction of a tile along which the tensor of an access has no index; -1: it has both, or none. */
static int direction_without_index(const tcc_op *op)
{
    const tcc_attr *dims = tcc_attr_list(&op->attrs, "dims").list.items;
    return (dims[0].i < 0) == (dims[1].i < 0) ? -1 : dims[1].i < 0;
}

/* Whether no element of the tensor is loaded by two threads. */
static bool is_loaded_once(const tcc_op *load)
{
    const tcc_type *tile = tile_of(load);
    int without = direction_without_index(load);
    tcc_spread s;
    return tcc_layout_spread(tile, &s) && (without < 0 || tile->dims[without].size == 1) &&
           s.n_registers * s.n_lanes * s.n_warps == tile->dims[0].size * tile->dims[1].size;
}

/* Whether a load of a single row (or column) is only stored as the first row of a tile: then the values in threads
 * that hold other rows do not matter. */
static bool only_first_counts(tcc_arena *scratch, tcc_op *load, int direction)
{
    tcc_map from = TCC_MAP(scratch); /* values that come of it */
    *tcc_map_at(&from, load->results) = load;
    for (tcc_op *op = load->next; op; op = tcc_walk_next(op, load->block)) {
        bool takes = false;
        for (unsigned i = 0; i < op->n_operands; i++)
            takes |= tcc_map_get(&from, op->operands[i]) != NULL;
        bool keeps_rows = tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE || op->code == TCC_OP_tile_broadcast ||
                          op->code == TCC_OP_tile_slice;
        if (takes && (is_store(op) ? direction_without_index(op) != direction : !keeps_rows))
            return false;
        if (takes && keeps_rows)
            *tcc_map_at(&from, op->results) = op;
    }
    return true;
}

/* Whether the same threads have an element of both tiles; along a direction where it does not count: of its column.
 * Of a row in words they have what its address says. */
static bool are_held_alike(const tcc_op *a, const tcc_op *b, int but)
{
    tcc_spread s, t;
    if (a->code == TCC_OP_async_send || b->code == TCC_OP_async_send)
        return a->code == b->code;
    bool alike = tcc_layout_spread(tile_of(a), &s) && tcc_layout_spread(tile_of(b), &t);
    for (int d = 0; d < 2 && alike; d++)
        alike = d == but || tcc_layout_same_threads(&s, &t, d);
    return alike;
}

/* Whether a thread that loads or stores an element in one of two accesses of the same place has it in the other. */
static bool have_the_same(tcc_arena *scratch, tcc_op *a, tcc_op *b)
{
    tcc_attr of_a = tcc_attr_list(&a->attrs, "dims"), of_b = tcc_attr_list(&b->attrs, "dims");
    tcc_op *load = is_store(a) ? b : a;
    int without = direction_without_index(load);
    if (!tcc_attr_equal(&of_a, &of_b))
        return false;
    if (is_store(load) || is_loaded_once(load))
        return are_held_alike(a, b, -1);
    return without >= 0 && tile_of(load)->dims[without].size == 1 && are_held_alike(a, b, without) &&
           only_first_counts(scratch, load, without);
}

/* Whether two accesses of a tensor have no element in common, or each thread has the same. */
static bool keep_apart(tcc_arena *scratch, tcc_op *a, tcc_op *b, unsigned rank)
{
    bool same = true;
    for (unsigned d = 0; d < rank; d++) {
        extent x = extent_along(a, d), y = extent_along(b, d);
        bool alike = begin_alike(&x, &y);
        if (alike && are_apart(&x, &y))
            return true;
        same &= alike && x.first == y.first && x.size == y.size;
    }
    return same && have_the_same(scratch, a, b);
}

/* ---- loops --------------------------------------------------------------------------------- */

static bool stays(const extent *x, const tcc_op *loop)
{
    return (!x->base || tcc_is_invariant(x->base, loop)) && (!x->varying || tcc_is_invariant(x->varying, loop));
}

/* Whether it is the same in all of a loop, of which loops inside have indices of their own. */
static bool is_of_outside(const tcc_value *v, const tcc_op *loop)
{
    const tcc_op *op = v->def ? v->def : v->block->parent;
    return !op || (op != loop && !tcc_ancestor_in((tcc_op *)op, loop->regions[0]));
}

/* How far the varying part of an access goes, where it is the index of a loop of known bounds; -1: it is not. */
static int64_t reach_of(const extent *x)
{
    const tcc_op *loop = x->varying->block ? x->varying->block->parent : NULL;
    int64_t lo, hi;
    bool known = tcc_is_loop(loop) && !x->varying->index && tcc_value_is_int(loop->operands[0], &lo) &&
                 tcc_value_is_int(loop->operands[1], &hi) && lo == 0 && hi > 0 && x->factor > 0;
    return known ? (hi - 1) * x->factor : -1;
}

/* How accesses that begin alike follow the iterations of a loop. */
typedef enum pace {
    ANYHOW,
    ON_A_GRID, /* those of two iterations are in the same cell of it, or have nothing in common */
    ONWARDS    /* each iteration has its own cell */
} pace;

static pace pace_of(const extent *x, const extent *y, const tcc_op *loop)
{
    bool by_base = x->base && !tcc_is_invariant(x->base, loop);
    bool both = by_base && !is_of_outside(x->varying, loop);
    int64_t cell = x->factor, reach = both ? reach_of(x) : 0, step;
    const tcc_value *by = by_base ? without_factor(x->base, &cell) : x->varying;
    bool onwards = by == loop->regions[0]->args[0] && tcc_value_is_int(loop->operands[2], &step);
    if (onwards)
        cell *= step;
    return reach < 0 || reach + span_of(x, y) > cell ? ANYHOW : onwards ? ONWARDS : ON_A_GRID;
}

/* As keep_apart, of accesses in different iterations of a loop around both. */
static bool keep_apart_in(tcc_arena *scratch, const tcc_op *loop, tcc_op *a, tcc_op *b, unsigned rank)
{
    bool same = true;
    for (unsigned d = 0; d < rank; d++) {
        extent x = extent_along(a, d), y = extent_along(b, d);
        bool alike = begin_alike(&x, &y), still = stays(&x, loop) && stays(&y, loop);
        pace follows = alike && !still ? pace_of(&x, &y, loop) : ANYHOW;
        if (follows == ONWARDS || (alike && still && are_apart(&x, &y)))
            return true;
        same &= still || follows == ON_A_GRID;
    }
    return same && keep_apart(scratch, a, b, rank);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static bool are_ordered(tcc_arena *scratch, tcc_op *a, tcc_op *b, unsigned rank)
{
    if (a->code == TCC_OP_tile_gather || b->code == TCC_OP_tile_gather) /* anywhere */
        return false;
    if (!keep_apart(scratch, a, b, rank))
        return false;
    for (const tcc_op *loop = a->block->parent; loop; loop = loop->block->parent)
        if (tcc_is_loop(loop) && tcc_ancestor_in(b, loop->regions[0]) &&
            !keep_apart_in(scratch, loop, a, b, rank))
            return false;
    return true;
}

bool tcc_low_is_ordered(tcc_lowering *l, tcc_op *op)
{
    const tcc_value *tensor = op->operands[is_store(op)];
    TCC_PUSH(l->ctx->scratch, &l->accesses, op);
    for (size_t i = 0; i < l->accesses.len; i++) {
        tcc_op *before = l->accesses.data[i];
        bool stored = is_store(before);
        if (before->operands[stored] != tensor || !(is_store(op) || stored) || tcc_role_of(before) != tcc_role_of(op) ||
            are_ordered(l->ctx->scratch, before, op, tensor->type->rank))
            continue;
        TCC_LOW_REFUSE(l, op, "an access of elements of '%s' that may have been %s before",
                       tensor->name, stored ? "stored" : "loaded");
        return false;
    }
    return true;
}
