/* split-sums: compute sums in parts, which a second step adds.
 *
 * Before:  func @f(…, %C: …) {split = 8, tile = [m, 128, n, 128, k, 64], …} {
 *            %s = tensor.reduce %p {over = [k], kind = sum} : field<f32[m, n]>
 *            … %s …
 *          }
 * After:   func @f(…, %C: …, %parts: tensor<f32[8, M, N], rows 128>) {after = [f__sum], split = 8, …} {
 *            %s = tensor.reduce %p {over = [k], kind = sum, parts = [part, 8, 64]} : field<f32[part, m, n]>
 *            tensor.write %s, %parts {map = [part, m, n]}
 *          }
 *          func @f__sum(…, the same) {step = 1, …} {
 *            %r = tensor.read %parts {map = [part, m, n]} : field<f32[part, m, n]>
 *            %s = tensor.reduce %r {over = [part], kind = sum} : field<f32[m, n]>
 *            … %s …
 *          }
 *
 * Few tiles of a long sum leave most multiprocessors idle: division into parts multiplies their number. Each
 * part is a tile of the workspace with a single writer, and the second step adds them one after the other: the
 * result is the same to the bit in whatever order CTAs run. A part takes every so many-th tile of k, so that
 * parts of one tile, which run at one time, read neighbouring memory.
 *
 * The steps get schedules as choose-schedule completes them: the first has the one that there was, but for what
 * is known of its registers.
 *
 * Requires choose-schedule. Leaves nothing that is dead.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/assume.h"
#include "ir/cut.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/choose_axes.h"
#include "passes/choose_schedule.h"
#include "passes/passes.h"

enum {
    ROW_BYTES = 128, /* of which rows of parts are multiples: a line of L2 */
    TILE_ROWS = 8,   /* of the step that adds */
    TILE_COLUMNS = 128
};

/* ---- the workspace ----------------------------------------------------------------------- */

/* What both steps need to know about the parts. */
typedef struct split {
    tcc_space c;
    tcc_attr order; /* of the sums' indices in the result */
    int64_t count, depth;
    const char *index; /* of the parts */
} split;

/* Adds a tensor for the parts of each sum to a step's parameters. Its other indices are in the order in which
 * the result has them. */
static void add_tensors(tcc_func *f, const split *s)
{
    for (size_t i = 0; i < s->c.n_sums; i++) {
        tcc_dim dims[1 + TCC_MAX_AXES] = {{NULL, s->count}};
        size_t rank = s->order.list.n;
        for (size_t d = 0; d < rank; d++)
            dims[1 + d] = tcc_space_extent(&s->c, s->order.list.items[d].s);
        const tcc_type *type = tcc_type_get(f->ir, TCC_KIND_tensor, s->c.sums[i].op->results[0].type->elem,
                                            (unsigned)rank + 1, dims);
        tcc_func_add_workspace(f, tcc_type_with_row_bytes(f->ir, type, ROW_BYTES), "parts");
    }
}

/* The workspace tensor of the i-th sum. */
static tcc_value *tensor_of(const tcc_func *f, const split *s, size_t i)
{
    return f->body->args[f->body->n_args - s->c.n_sums + i];
}

static void set_map(tcc_op *op, const split *s)
{
    const char *names[1 + TCC_MAX_AXES] = {s->index};
    size_t n = s->order.list.n;
    for (size_t d = 0; d < n; d++)
        names[1 + d] = s->order.list.items[d].s;
    tcc_access_set_indices(op, n + 1, names);
}

/* A sum's type with the index of its parts. */
static const tcc_type *type_of_parts(tcc_ir *ir, const split *s, const tcc_type *sum)
{
    tcc_dim dims[1 + TCC_MAX_AXES] = {{s->index, 0}};
    memcpy(dims + 1, sum->dims, sum->rank * sizeof *dims);
    return tcc_type_get(ir, TCC_KIND_field, sum->elem, sum->rank + 1, dims);
}

/* ---- the steps --------------------------------------------------------------------------- */

/* The part comes first of the indices that have one value in a CTA. */
static void set_axes(tcc_func *f, const split *s)
{
    const char *axes[1 + TCC_MAX_AXES];
    for (size_t i = 0; i <= s->c.n_axes; i++)
        axes[i] = i < 2 ? s->c.axes[i] : i == 2 ? s->index : s->c.axes[i - 1];
    tcc_attr_set_strs(f->ir, &f->attrs, "axes", s->c.n_axes + 1, axes);
}

/* The step that computes the parts. What is known of its registers was said of the whole. */
static void keep_product(tcc_func *f, const split *s)
{
    tcc_op *last = f->body->last;
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = op->next;
        if (op->code == TCC_OP_tensor_write)
            tcc_op_erase(op);
    }
    set_axes(f, s);
    for (size_t i = 0; i < s->c.n_sums; i++) {
        tcc_op *sum = s->c.sums[i].op;
        tcc_builder b = tcc_builder_before(sum);
        b.loc = sum->loc;
        const tcc_type *type = type_of_parts(f->ir, s, sum->results[0].type);
        tcc_value *parts = TCC_EMIT(&b, tensor_reduce, type, TCC_VIEW(tensor_reduce, sum)->a);
        tcc_attr_set(f->ir, &parts->def->attrs, "over", tcc_attr_list(&sum->attrs, "over"), (tcc_loc){0, 0});
        tcc_attr_set_str(f->ir, &parts->def->attrs, "kind", "sum");
        tcc_attr *of = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, 3);
        of[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = s->index};
        of[1] = (tcc_attr){.kind = TCC_ATTR_INT, .i = s->count};
        of[2] = (tcc_attr){.kind = TCC_ATTR_INT, .i = s->depth};
        tcc_attr_set(f->ir, &parts->def->attrs, "parts", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {of, 3}},
                     (tcc_loc){0, 0});
        tcc_attr_carry(f->ir, &parts->def->attrs, &sum->attrs, "rows");
        parts->name = sum->results[0].name;
        b = tcc_builder_before(last);
        b.loc = sum->loc;
        set_map(TCC_EMIT_V(&b, tensor_write, parts, tensor_of(f, s, i)), s);
    }
    tcc_attr_remove(&f->attrs, "chunks");
    tcc_attr_remove(&f->attrs, "ahead");
    tcc_attr_remove(&f->attrs, "may_spill");
}

/* A tile with few elements per lane, since each has as many loads as there are parts. If the extent is less than a
 * tile, as if the last index is one of two, choose-schedule chooses a tile that wastes less. */
static void set_tile(tcc_func *f, const split *s)
{
    static const int64_t sizes[] = {TILE_COLUMNS, TILE_ROWS};
    const char *indices[2];
    size_t n = s->order.list.n, n_tiled = n > 2 ? 2 : n;
    for (size_t i = 0; i < n_tiled; i++) {
        indices[i] = s->order.list.items[n - 1 - i].s;
        tcc_dim extent = tcc_space_extent(&s->c, indices[i]);
        if (!extent.name && extent.size < sizes[i])
            return;
    }
    tcc_schedule_sizes_set(f, TCC_KEY_tile, n_tiled, indices, sizes);
}

/* The step that adds the parts, and computes what there is of the sums. It has a schedule of its own. */
static void keep_rest(tcc_func *f, const split *s)
{
    size_t i = 0;
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = op->next;
        if (op->code != TCC_OP_tensor_reduce)
            continue;
        tcc_value *parts = tensor_of(f, s, i++), *sum = &op->results[0];
        tcc_builder b = tcc_builder_before(op);
        b.loc = op->loc;
        tcc_value *read = TCC_EMIT(&b, tensor_read, type_of_parts(f->ir, s, sum->type), parts);
        set_map(read->def, s);
        tcc_value *added = TCC_EMIT(&b, tensor_reduce, sum->type, read);
        tcc_attr_set_strs(f->ir, &added->def->attrs, "over", 1, &s->index);
        tcc_attr_set_str(f->ir, &added->def->attrs, "kind", "sum");
        added->name = sum->name;
        tcc_replace_uses(sum, added);
        tcc_op_erase(op);
    }
    for (int key = 0; key < TCC_KEY_COUNT; key++)
        tcc_attr_remove(&f->attrs, tcc_schedule_keys[key].name);
    set_tile(f, s);
    tcc_choose_axes(f);
    tcc_attr_remove(&f->attrs, "more");
    tcc_attr_remove(&f->attrs, "chunks");
    tcc_attr_remove(&f->attrs, "ahead");
    tcc_attr_remove(&f->attrs, "may_spill");
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_schedule of = tcc_schedule_of(f);
    split s = {.count = of.split, .depth = of.k};
    if (!tcc_func_is_variant(f) || s.count < 2 || !tcc_schedule_is_valid(&of) || !tcc_space_of(f, &s.c) ||
        !s.c.n_sums || s.c.parts.index)
        return TCC_OK;
    s.order = tcc_space_order(f, s.c.sums[0].op->results[0].type);
    s.index = tcc_free_index(f, "part");
    add_tensors(f, &s);
    tcc_func *rest = tcc_func_clone(f, tcc_arena_printf(ctx->ir->arena, "%s__sum", f->name));
    tcc_attr_remove(&rest->attrs, "before");
    tcc_attr_set_int(ctx->ir, &rest->attrs, "step", 1);
    tcc_cut_set(rest, TCC_CUT_parts);
    tcc_attr_set_strs(ctx->ir, &f->attrs, "after", 1, &rest->name);
    keep_product(f, &s);
    keep_rest(rest, &s);
    tcc_erase_dead(f, ctx->scratch);
    tcc_erase_dead(rest, ctx->scratch);
    *changed = true;
    tcc_choose_pressure(ctx, f);
    return tcc_choose_schedule(ctx, rest, changed);
}

const tcc_pass tcc_pass_split_sums = {
    "split-sums", "compute sums in parts, which a second step adds", .run = run,
    .requires = TCC_UP_TO(schedule)};
