/* dce: delete unused ops, and unused values that loops carry.
 *
 * Before:  %s, %t = scf.for … %a, %b {         After:  %s = scf.for … %a {
 *          ^(%i: i32, %x: i32, %y: i32):               ^(%i: i32, %x: i32):
 *            %u = arith.add %y, %x                       scf.yield %x
 *            scf.yield %x, %u                          }
 *          }
 *
 * Marks from the roots, the ops with an effect, then sweeps. Counting uses is not enough: around
 * a loop %y and %u use each other. An op with regions has no effect of its own: it is needed when
 * something in it is, or a result, and keeps the results that are.
 *
 * An index along which what is left varies keeps its extent, in the function's attribute `extents` where no other op
 * has it as a coordinate.
 *
 * Requires nothing. Preserves everything that has an effect.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/access.h"
#include "ir/counting.h"
#include "passes/passes.h"
#include "support/map.h"

typedef struct dce {
    tcc_func *func;
    tcc_arena *scratch;
    tcc_map live; /* ops and values, to themselves */
    TCC_VEC(tcc_op *) ops;
    TCC_VEC(tcc_value *) values; /* to do */
} dce;

static bool is_live(const dce *d, const void *op_or_value)
{
    return tcc_map_get(&d->live, op_or_value);
}

/* Whether it was not live before. */
static bool mark(dce *d, void *op_or_value)
{
    void **slot = tcc_map_at(&d->live, op_or_value);
    bool fresh = !*slot;
    *slot = op_or_value;
    return fresh;
}

static void mark_op(dce *d, tcc_op *op)
{
    if (mark(d, op))
        TCC_PUSH(d->scratch, &d->ops, op);
}

static void mark_value(dce *d, tcc_value *v)
{
    if (mark(d, v))
        TCC_PUSH(d->scratch, &d->values, v);
}

static bool is_root(const tcc_op *op)
{
    return !op->n_regions && op->code != TCC_OP_scf_yield &&
           !(tcc_op_info_get(op->code)->flags & TCC_PURE);
}

/* A live op needs its operands; of values that an op carries into regions or out of them, only the
 * live ones count: propagate_value. */
static void propagate_op(dce *d, tcc_op *op)
{
    unsigned n = op->n_regions ? tcc_op_info_get(op->code)->n_operands : op->n_operands;
    for (unsigned i = 0; i < n; i++)
        mark_value(d, op->operands[i]);
    if (tcc_loop_tests(op))
        mark_value(d, &op->results[0]);
    if (op->block->parent)
        mark_op(d, op->block->parent);
}

/* Result i of a loop lives and dies with its first value, its argument and what is yielded. */
static void propagate_value(dce *d, tcc_value *v)
{
    if (v->block) {
        tcc_op *parent = v->block->parent;
        if (parent && parent->code == TCC_OP_scf_for && v->index)
            mark_value(d, &parent->results[v->index - 1]);
        return;
    }
    tcc_op *op = v->def;
    mark_op(d, op);
    for (unsigned r = 0; r < op->n_regions; r++) {
        tcc_op *yield = tcc_block_yield(op->regions[r]);
        if (yield)
            mark_value(d, yield->operands[v->index]);
    }
    if (op->code == TCC_OP_scf_for) {
        mark_value(d, op->operands[3 + v->index]);
        mark_value(d, op->regions[0]->args[1 + v->index]);
    }
}

static void mark_all(dce *d)
{
    for (tcc_op *op = d->func->body->first; op; op = tcc_walk_next(op, d->func->body))
        if (is_root(op))
            mark_op(d, op);
    while (d->ops.len || d->values.len) {
        if (d->ops.len)
            propagate_op(d, d->ops.data[--d->ops.len]);
        else
            propagate_value(d, d->values.data[--d->values.len]);
    }
}

/* ---- sweeping -------------------------------------------------------------------------- */

/* Leaves out dead operands from `first` on; operand first + i goes with result i of `carrier`. */
static void drop_operands(const dce *d, tcc_op *op, unsigned first, const tcc_op *carrier)
{
    unsigned n = first;
    for (unsigned i = first; i < op->n_operands; i++)
        if (is_live(d, &carrier->results[i - first]))
            tcc_op_set_operand(op, n++, op->operands[i]);
    tcc_op_truncate_operands(op, n);
}

static void drop_args(const dce *d, tcc_block *body, const tcc_op *carrier)
{
    size_t n = 1;
    for (size_t i = 1; i < body->n_args; i++)
        if (is_live(d, &carrier->results[i - 1])) {
            body->args[n] = body->args[i];
            body->args[n]->index = (uint32_t)n;
            n++;
        }
    body->n_args = n;
}

static bool has_dead_results(const dce *d, const tcc_op *op)
{
    for (unsigned i = 0; i < op->n_results; i++)
        if (!is_live(d, &op->results[i]))
            return true;
    return false;
}

/* Replaces op by one with only the live results, which takes over its regions. */
static tcc_op *without_dead_results(dce *d, tcc_op *op)
{
    bool loop = op->code == TCC_OP_scf_for;
    const tcc_type **types = TCC_NEW_ARRAY(d->scratch, const tcc_type *, op->n_results);
    unsigned n = 0;
    for (unsigned i = 0; i < op->n_results; i++)
        if (is_live(d, &op->results[i]))
            types[n++] = op->results[i].type;
    if (loop) {
        drop_operands(d, op, 3, op);
        drop_args(d, op->regions[0], op);
    }
    for (unsigned r = 0; r < op->n_regions; r++)
        if (tcc_block_yield(op->regions[r]))
            drop_operands(d, tcc_block_yield(op->regions[r]), 0, op);

    tcc_builder b = tcc_builder_before(op);
    tcc_op *slim = tcc_op_create(&b, op->code, op->n_operands, op->operands, n, types);
    slim->attrs = op->attrs;
    for (unsigned r = 0; r < op->n_regions; r++) {
        tcc_block *empty = slim->regions[r];
        slim->regions[r] = op->regions[r];
        slim->regions[r]->parent = slim;
        op->regions[r] = empty;
    }
    n = 0;
    for (unsigned i = 0; i < op->n_results; i++)
        if (is_live(d, &op->results[i])) {
            slim->results[n].name = op->results[i].name;
            mark(d, &slim->results[n]);
            tcc_replace_uses(&op->results[i], &slim->results[n++]);
        }
    mark(d, slim);
    tcc_op_erase(op);
    return slim;
}

static bool sweep(dce *d)
{
    bool changed = false;
    TCC_VEC(tcc_op *) all = {0};
    for (tcc_op *op = d->func->body->first; op; op = tcc_walk_next(op, d->func->body)) {
        if (op->n_regions && is_live(d, op) && has_dead_results(d, op)) {
            op = without_dead_results(d, op);
            changed = true;
        }
        TCC_PUSH(d->scratch, &all, op);
    }
    /* Users come after what they use, inner ops after their op. */
    while (all.len) {
        tcc_op *op = all.data[--all.len];
        const void *needed = op->code == TCC_OP_scf_yield ? op->block->parent : op;
        if (!is_live(d, needed)) {
            tcc_op_erase(op);
            changed = true;
        }
    }
    return changed;
}

/* ---- extents --------------------------------------------------------------------------- */

/* An index and how many values it has, as a dead read says it. */
typedef struct extent {
    const char *index;
    tcc_dim dim;
} extent;
typedef TCC_VEC(extent) extents;

static extents extents_of_dead_reads(const dce *d)
{
    extents found = {0};
    for (const tcc_op *op = d->func->body->first; op; op = op->next)
        for (size_t i = 0; i < tcc_access_rank(op) && !is_live(d, op); i++)
            if (tcc_access_index(op, i))
                TCC_PUSH(d->scratch, &found,
                         ((extent){tcc_access_index(op, i), tcc_accessed_tensor(op)->type->dims[i]}));
    return found;
}

static bool is_varied_along(const tcc_func *f, const char *index)
{
    bool is = false;
    for (const tcc_op *op = f->body->first; op && !is; op = op->next)
        for (unsigned r = 0; r < op->n_results; r++) {
            const tcc_type *t = op->results[r].type;
            for (unsigned i = 0; t->kind == TCC_KIND_field && i < t->rank; i++)
                is |= tcc_index_same(t->dims[i].name, index);
        }
    return is;
}

/* What is left may vary along an index that only dead reads had as a coordinate: `x[i] * 0`. */
static void keep_extent(tcc_func *f, const extent *e)
{
    tcc_dim known = tcc_index_extent(f, e->index);
    if (known.name || known.size >= 0 || !is_varied_along(f, e->index))
        return;
    tcc_attr *pair = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, 2);
    pair[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = e->index};
    pair[1] = tcc_attr_of_dim(e->dim);
    tcc_attr_append(f->ir, &f->attrs, "extents", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {pair, 2}});
}

bool tcc_erase_dead(tcc_func *f, tcc_arena *scratch)
{
    dce d = {.func = f, .scratch = scratch, .live = TCC_MAP(scratch)};
    mark_all(&d);
    extents known = extents_of_dead_reads(&d);
    bool changed = sweep(&d);
    for (size_t i = 0; i < known.len; i++)
        keep_extent(f, &known.data[i]);
    return changed;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    *changed = tcc_erase_dead(f, ctx->scratch);
    return TCC_OK;
}

const tcc_pass tcc_pass_dce = {
    "dce", "delete unused ops", .run = run};
