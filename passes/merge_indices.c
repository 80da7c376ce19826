/* merge-indices: merge indices that are contiguous in every tensor.
 *
 * Before:  func @f(%X: tensor<f16[B, S, D]>, …, %Y: tensor<f16[B, S, N]>) {merged = [[b, s]], …} {
 *            %0 = tensor.read %X {map = [b, s, d]} : field<f16[b, s, d]>
 * After:   func @f(%X: tensor<f16[B.S, D]>, …, %Y: tensor<f16[B.S, N]>) {args = [[X, f16, [B, S, D]], …], …} {
 *            %0 = tensor.read %X {map = [s, d]} : field<f16[s, d]>
 *
 * A tile covers values of one index of each operand. With S = 1 only one of its rows would be used, with B * S = 64
 * all. The caller's arguments are kept as `args`. The merged extent must fit in 31 bits, and not just each of the old
 * ones, so choose-variants does not merge indices of the generic variant.
 *
 * Requires variants. Preserves what is computed, and rows.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/merging.h"

#include <string.h>

#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/space.h"
#include "passes/passes.h"
#include "support/extent.h"

/* Indices to merge, and their dimensions. */
typedef struct run_of {
    const tcc_attr *names;
    size_t n;
    tcc_dim dims[TCC_MAX_FACTORS];
    bool known; /* dims are */
} run_of;

static bool is_named(const char *name, const tcc_attr *names, size_t n)
{
    size_t i = 0;
    while (i < n && !tcc_index_same(name, names[i].s))
        i++;
    return i < n;
}

static bool names_any(tcc_attr list, const tcc_attr *names, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < list.list.n && !any; i++)
        any = list.list.items[i].kind == TCC_ATTR_STR && is_named(list.list.items[i].s, names, n);
    return any;
}

static bool computes_with_any(const tcc_op *access, const run_of *run)
{
    bool any = false;
    for (size_t i = 0; i < run->n && !any; i++)
        any = tcc_access_computes_with(access, run->names[i].s);
    return any;
}

/* Where an access has them, side by side, in order and not along rows; -1: it has none; -2: neither. */
static int place_in(const tcc_op *access, const run_of *run)
{
    size_t rank = tcc_access_rank(access), n = 0;
    int at = tcc_map_position(access, run->names[0].s);
    for (size_t d = 0; d < rank; d++)
        n += tcc_access_index(access, d) && is_named(tcc_access_index(access, d), run->names, run->n);
    if (computes_with_any(access, run))
        return -2;
    if (!n)
        return -1;
    if (at < 0 || n != run->n || (size_t)at + n >= rank)
        return -2;
    for (size_t i = 0; i < n; i++) {
        const char *index = tcc_access_index(access, (size_t)at + i);
        if (!index || !tcc_index_same(index, run->names[i].s))
            return -2;
    }
    return at;
}

/* Whether the dimensions are those that the indices have elsewhere. */
static bool have_dims(run_of *run, const tcc_dim *dims)
{
    bool same = true;
    for (size_t i = 0; i < run->n; i++) {
        same &= !run->known || tcc_dim_equal(run->dims[i], dims[i]);
        run->dims[i] = dims[i];
    }
    run->known = true;
    return same;
}

/* Where all uses of a tensor have them. */
static int place_in_tensor(const tcc_value *tensor, run_of *run)
{
    int at = -1;
    for (const tcc_use *u = tensor->uses; u; u = u->next) {
        int here = tcc_accessed_tensor(u->op) == tensor ? place_in(u->op, run) : -2;
        if (here == -2 || (u != tensor->uses && here != at))
            return -2;
        at = here;
    }
    if (at >= 0 && tensor->type->strides) /* of which one would have to be a multiple of the other */
        return -2;
    return at < 0 || have_dims(run, tensor->type->dims + at) ? at : -2;
}

/* Multiplies by a number; false where it is more than a dimension can be. */
static bool scale(int64_t *number, int64_t by)
{
    return by >= 1 && !__builtin_mul_overflow(*number, by, number) && *number <= TCC_MAX_EXTENT;
}

/* The product of the dimensions; false where it is more than a dimension can be, or none of names and numbers. */
static bool multiply(tcc_ir *ir, const run_of *run, tcc_dim *out)
{
    int64_t number = 1;
    size_t n = 0;
    const char *name = "";
    for (size_t i = 0; i < run->n; i++) {
        const char *left = run->dims[i].name;
        tcc_extent_factor f;
        if (left ? tcc_extent_is_sum(left) : !scale(&number, run->dims[i].size))
            return false;
        while (left && tcc_extent_take(&left, &f)) {
            if (f.n ? ++n > TCC_MAX_FACTORS : !scale(&number, f.number))
                return false;
            if (f.n)
                name = tcc_arena_printf(ir->arena, "%s%s%.*s", name, *name ? "." : "", (int)f.n, f.name);
        }
    }
    if (*name && number > 1)
        name = tcc_arena_printf(ir->arena, "%s.%lld", name, (long long)number);
    *out = *name ? (tcc_dim){.name = tcc_ir_name(ir, name)} : (tcc_dim){.size = number};
    return true;
}

static bool names_index(const tcc_op *index, const run_of *run)
{
    return is_named(tcc_attr_str(&index->attrs, "name", ""), run->names, run->n);
}

/* Whether these may be one: all tensors have them side by side, or none of them, and none is summed. */
static bool can_merge(const tcc_func *f, run_of *run)
{
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        tcc_attr parts = tcc_attr_list(&op->attrs, "parts");
        if (op->n_regions || (op->code == TCC_OP_tensor_index && names_index(op, run)) || names_any(tcc_attr_list(&op->attrs, "over"), run->names, run->n) ||
            names_any(parts, run->names, run->n))
            return false;
    }
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_value *arg = f->body->args[i];
        if (arg->type->kind == TCC_KIND_tensor && place_in_tensor(arg, run) == -2)
            return false;
    }
    tcc_dim product;
    return run->known && multiply(f->ir, run, &product);
}

/* Whether the schedule says something of an index. */
static bool is_scheduled(const tcc_func *f, const tcc_attr *name)
{
    for (int i = 0; i < TCC_KEY_COUNT; i++)
        if (names_any(tcc_attr_list(&f->attrs, tcc_schedule_keys[i].name), name, 1))
            return true;
    return false;
}

static bool is_list_of_names(tcc_attr list)
{
    for (size_t i = 0; list.kind == TCC_ATTR_LIST && i < list.list.n; i++)
        if (list.list.items[i].kind != TCC_ATTR_STR)
            return false;
    return list.kind == TCC_ATTR_LIST && list.list.n > 1 && list.list.n <= TCC_MAX_FACTORS;
}

size_t tcc_merged_rank(const tcc_op *access)
{
    tcc_attr merged = tcc_attr_list(&access->block->func->attrs, "merged");
    size_t rank = tcc_accessed_tensor(access)->type->rank;
    for (size_t i = 0; i < merged.list.n; i++) {
        tcc_attr names = merged.list.items[i];
        if (is_list_of_names(names) && tcc_map_position(access, names.list.items[0].s) >= 0)
            rank -= names.list.n - 1;
    }
    return rank;
}

tcc_attr tcc_find_merged(const tcc_func *f)
{
    const tcc_op *write = f->body->first;
    while (write && write->code != TCC_OP_tensor_write)
        write = write->next;
    tcc_attr map = write ? tcc_access_indices(write) : (tcc_attr){0};
    TCC_VEC(tcc_attr) lists = {0};
    for (size_t end = map.list.n, n; end > 1; end -= n) {
        for (n = 1; n < end && n < TCC_MAX_FACTORS && !is_scheduled(f, &map.list.items[end - n - 1]); n++) {
            run_of more = {.names = map.list.items + end - n - 1, .n = n + 1};
            if (!can_merge(f, &more))
                break;
        }
        if (n > 1)
            TCC_PUSH(f->ir->arena, &lists,
                     (tcc_attr){.kind = TCC_ATTR_LIST, .list = {map.list.items + end - n, n}});
    }
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {lists.data, lists.len}};
}

/* ---- the change ------------------------------------------------------------------------------ */

static void merge_tensor(tcc_value *tensor, run_of *run)
{
    tcc_ir *ir = tensor->block->func->ir;
    const tcc_type *t = tensor->type;
    int at = place_in_tensor(tensor, run);
    if (at < 0)
        return;
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, t->rank);
    memcpy(dims, t->dims, (size_t)at * sizeof *dims);
    multiply(ir, run, &dims[at]);
    size_t rest = t->rank - (size_t)at - run->n;
    memcpy(dims + at + 1, t->dims + (size_t)at + run->n, rest * sizeof *dims);
    const tcc_type *merged = tcc_type_get(ir, t->kind, t->elem, (unsigned)((size_t)at + 1 + rest), dims);
    tensor->type = tcc_type_with_row_bytes(ir, merged, t->row_bytes);
}

/* The coordinates but those that go. */
static void merge_access(tcc_op *op, const run_of *run)
{
    for (size_t d = tcc_access_rank(op); d--;) {
        const char *index = tcc_access_index(op, d);
        if (index && is_named(index, run->names, run->n - 1))
            tcc_access_remove(op, d);
    }
}

static void merge_field(tcc_ir *ir, tcc_value *v, const run_of *run)
{
    const tcc_type *t = v->type;
    if (t->kind != TCC_KIND_field)
        return;
    tcc_dim *left = TCC_NEW_ARRAY(ir->arena, tcc_dim, t->rank + 1u);
    unsigned n = 0;
    for (unsigned d = 0; d < t->rank; d++)
        if (!is_named(t->dims[d].name, run->names, run->n - 1))
            left[n++] = t->dims[d];
    v->type = n < t->rank ? tcc_type_get(ir, t->kind, t->elem, n, left) : t;
}

static void merge_axes(tcc_func *f, const run_of *run)
{
    tcc_attr axes = tcc_attr_list(&f->attrs, "axes");
    const char **left = TCC_NEW_ARRAY(f->ir->arena, const char *, axes.list.n);
    size_t n = 0;
    for (size_t i = 0; i < axes.list.n; i++)
        if (!is_named(axes.list.items[i].s, run->names, run->n - 1))
            left[n++] = axes.list.items[i].s;
    if (n)
        tcc_attr_set_strs(f->ir, &f->attrs, "axes", n, left);
}

static void merge(tcc_func *f, run_of *run)
{
    merge_axes(f, run);
    tcc_func_record_args(f);
    for (size_t i = 0; i < f->body->n_args; i++)
        if (f->body->args[i]->type->kind == TCC_KIND_tensor)
            merge_tensor(f->body->args[i], run);
    for (tcc_op *op = f->body->first; op; op = op->next) {
        merge_access(op, run);
        for (unsigned i = 0; i < op->n_results; i++)
            merge_field(f->ir, &op->results[i], run);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_attr merged = tcc_attr_list(&f->attrs, "merged");
    for (size_t i = 0; i < merged.list.n; i++) {
        tcc_attr names = merged.list.items[i];
        run_of indices = {.names = names.list.items, .n = names.list.n};
        if (!is_list_of_names(names) || !can_merge(f, &indices)) {
            tcc_error(ctx->diag, TCC_ERR_TYPE, f->loc,
                      "'merged' needs lists of two to %d indices that are not summed, and that every tensor either "
                      "has next to each other, before its last dimension, or lacks altogether", TCC_MAX_FACTORS);
            return TCC_ERR_TYPE;
        }
        merge(f, &indices);
        *changed = true;
    }
    tcc_attr_remove(&f->attrs, "merged");
    return TCC_OK;
}

const tcc_pass tcc_pass_merge_indices = {
    "merge-indices", "merge indices that are contiguous in all tensors", .run = run,
    .requires = TCC_UP_TO(variants)};
