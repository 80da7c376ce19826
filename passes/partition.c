/* partition: cut what one kernel cannot compute into steps, which hand fields on in the workspace.
 *
 * Before:  func @f(%X: …, %Y: …) {…} {
 *            … %m = tensor.reduce %x {over = [n], kind = max} : field<f32[m]>
 *            … %s = tensor.reduce %e {over = [n], kind = sum} : field<f32[m]>      // %e is computed of %m
 *            tensor.write %p, %Y {map = [m, n]}
 *          }
 * After:   func @f(…, %m: tensor<f32[M]>, %s: tensor<f32[M]>) {before = [f__m, f__s], …} {
 *            … %0 = tensor.read %m {map = [m]} …
 *          }
 *          func @f__m(…, %m: …) {step = 1, part = f__m, cut = nested, …} {
 *            … tensor.write …, %m {map = [m]}
 *          }
 *          func @f__s(…) {step = 1, part = f__s, cut = fewer, …} {…}
 *
 * One kernel computes either sums of products over one index space, which matrix instructions multiply, and what is
 * computed elementwise of these sums and of tensors in the same index space; or, elementwise in the index space of its
 * outputs, what may have reductions of such terms. What does not fit is cut off until the rest does, first what others
 * need: reductions within reductions; operands of products that vary with more indices than any tensor that they are
 * computed of; reductions that several kernels need, or that have fewer indices than the outputs, which would otherwise
 * be computed for each element; outputs of another index space; and sums of products of another one than the output's.
 * Where everything that needs a reduction begins with the same computation, whose result is no wider, that is stored:
 * f16(acc) for acc.
 * A function that one loop computes (passes/streams.h) is not cut, but gets a copy beside it that is, for launches that
 * the loop cannot serve.
 * Elements of a tensor that is written are copied before where another step, or the same at other indices, still reads
 * them; a function reads what it writes before the write.
 *
 * Requires nothing. What is left of a function, and each step, is one kernel.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/cut.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "ir/streaming.h"
#include "passes/pack_rows.h"
#include "passes/partition.h"
#include "passes/passes.h"
#include "passes/rows.h"
#include "passes/slice.h"
#include "passes/space.h"
#include "passes/split_streams.h"
#include "passes/stored_value.h"
#include "passes/streams.h"

enum { ROW_BYTES = 128 /* of which rows in the workspace are multiples: a line of L2 */ };

/* ---- what is computed of what --------------------------------------------------------------- */

/* The value that has v's name: v, or the wider one with the same numbers that expressions compute with; NULL: there is
 * none. */
static const tcc_value *named_value(const tcc_value *v)
{
    const tcc_op *cast = v->uses ? v->uses->op : NULL;
    bool widens = cast && cast->code == TCC_OP_arith_cast &&
                  tcc_scalar_widens(v->type->elem, cast->results[0].type->elem);
    return v->name ? v : widens && cast->results[0].name ? &cast->results[0] : NULL;
}

/* Whether the schedule names a value: in `separate` or `fuse`. */
bool tcc_schedule_names(const tcc_func *f, tcc_schedule_key_id key, const tcc_value *v)
{
    tcc_attr names = tcc_attr_list(&f->attrs, tcc_schedule_keys[key].name);
    const tcc_value *named = named_value(v);
    bool found = false;
    for (size_t i = 0; named && i < names.list.n; i++)
        found |= !strcmp(names.list.items[i].s, named->name);
    return found;
}

static bool is_fused(const void *f, const tcc_value *v)
{
    return tcc_schedule_names(f, TCC_KEY_fuse, v);
}

static tcc_value *find_separate(const tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (tcc_has_field(op) && tcc_schedule_names(f, TCC_KEY_separate, &op->results[0]))
            return &op->results[0];
    return NULL;
}

/* Whether one of `nested` that is of the same rows needs a reduction: one sweep over them is for both. */
static bool is_for_same_rows(tcc_pass_ctx *ctx, const tcc_map *nested, const tcc_op *needed)
{
    for (const tcc_op *op = needed->next; op; op = op->next) {
        if (!tcc_map_get(nested, op) || !tcc_fields_share_space(op->results[0].type, needed->results[0].type))
            continue;
        tcc_map slice = tcc_slice_of(ctx->scratch, op->n_operands, op->operands);
        if (tcc_map_get(&slice, needed) && tcc_rows_can_reduce(op, &slice, false))
            return true;
    }
    return false;
}

/* The first reduction that another one needs for its terms, and is not best computed together with one of these. */
static tcc_value *find_nested(tcc_pass_ctx *ctx, const tcc_func *f)
{
    tcc_map nested = TCC_MAP(ctx->scratch);
    for (tcc_op *op = f->body->first; op; op = op->next) {
        if (!tcc_is_reduction(op))
            continue;
        tcc_map slice = tcc_slice_of(ctx->scratch, op->n_operands, op->operands);
        for (tcc_op *in = f->body->first; in != op; in = in->next)
            if (tcc_is_reduction(in) && tcc_map_get(&slice, in))
                *tcc_map_at(&nested, in) = in;
    }
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (tcc_map_get(&nested, op) && (tcc_is_naive(f) || !is_for_same_rows(ctx, &nested, op)))
            return &op->results[0];
    return NULL;
}

static tcc_value *find_uncovered(const tcc_func *f)
{
    tcc_value *found = NULL;
    for (tcc_op *op = f->body->first; op && !found; op = op->next)
        found = tcc_is_reduction(op) ? tcc_product_uncovered(op) : NULL;
    return found;
}

/* ---- outputs ------------------------------------------------------------------------------ */

static bool is_write(const tcc_op *op)
{
    return op->code == TCC_OP_tensor_write;
}

static tcc_op *last_write(const tcc_func *f)
{
    tcc_op *op = f->body->last;
    while (op && !is_write(op))
        op = op->prev;
    return op;
}

/* The first write of another index space than the last one's; NULL when all have one. */
static tcc_op *find_other_write(const tcc_func *f)
{
    const tcc_op *last = last_write(f);
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (is_write(op) && !tcc_writes_share_space(op, last))
            return op;
    return NULL;
}

/* Whether outputs of two index spaces need an op. */
static bool is_shared(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *op)
{
    const tcc_op *first = NULL;
    for (const tcc_op *write = f->body->first; write; write = write->next) {
        if (!is_write(write))
            continue;
        if (!tcc_slice_has(ctx->scratch, write, op))
            continue;
        if (first && !tcc_writes_share_space(first, write))
            return true;
        first = write;
    }
    return false;
}

static tcc_value *find_shared(tcc_pass_ctx *ctx, const tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (tcc_is_reduction(op) && !tcc_schedule_names(f, TCC_KEY_fuse, &op->results[0]) && is_shared(ctx, f, op))
            return &op->results[0];
    return NULL;
}

/* ---- tensors that are read and written ------------------------------------------------------------ */

static bool is_read_of(const tcc_op *op, const tcc_value *tensor)
{
    return op->code == TCC_OP_tensor_read && TCC_VIEW(tensor_read, op)->tensor == tensor;
}

/* Whether an output of another index space than a write's needs an op. */
static bool others_need(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *write, const tcc_op *op)
{
    bool need = false;
    for (const tcc_op *other = f->body->first; other && !need; other = other->next)
        need = is_write(other) && !tcc_writes_share_space(other, write) && tcc_slice_has(ctx->scratch, other, op);
    return need;
}

/* Whether a read is of other elements than a write where these are computed: at other indices, or in a reduction over
 * one of them. */
static bool is_elsewhere(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *write, const tcc_op *read)
{
    bool elsewhere = !tcc_access_same(write, read, NULL, NULL);
    for (const tcc_op *op = f->body->first; op && !elsewhere; op = op->next) {
        tcc_attr over = tcc_is_reduction(op) ? tcc_attr_list(&op->attrs, "over") : (tcc_attr){0};
        for (size_t i = 0; i < over.list.n && !elsewhere; i++)
            elsewhere = tcc_field_has_index(read->results[0].type, over.list.items[i].s) &&
                        tcc_slice_has(ctx->scratch, op, read);
    }
    return elsewhere;
}

/* The first read of a tensor that is written before it is read for the last time, if the outputs with the indices of
 * `cut` are written by an earlier step; cut NULL: if all are by one kernel. */
static tcc_value *find_overwritten(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_op *cut)
{
    for (tcc_op *write = f->body->first; write; write = write->next)
        for (tcc_op *read = f->body->first; is_write(write) && read; read = read->next) {
            if (!is_read_of(read, TCC_VIEW(tensor_write, write)->tensor))
                continue;
            if (cut ? tcc_writes_share_space(write, cut) && others_need(ctx, f, write, read)
                    : is_elsewhere(ctx, f, write, read))
                return &read->results[0];
        }
    return NULL;
}

/* ---- sums of products beside others -------------------------------------------------------------- */

/* The sum of products that a kernel for the outputs is about: the first one that has their indices. */
static const tcc_op *find_product(const tcc_func *f, const tcc_op *write)
{
    const tcc_op *op = f->body->first;
    while (op && !(tcc_is_reduction(op) && tcc_product_is(op) && tcc_write_has_space(write, op->results[0].type)))
        op = op->next;
    return op;
}

/* The first reduction that the kernel cannot or should not compute. */
static tcc_value *find_other(const tcc_func *f, tcc_cut *why)
{
    const tcc_op *write = last_write(f), *product = write ? find_product(f, write) : NULL;
    for (tcc_op *op = f->body->first; write && op; op = op->next) {
        if (!tcc_is_reduction(op))
            continue;
        bool stays = product ? tcc_product_goes_with(op, product)
                     : tcc_product_is(op)
                         ? false
                         : tcc_write_has_space(write, op->results[0].type) || tcc_has_few_terms(f, op) ||
                               tcc_schedule_names(f, TCC_KEY_fuse, &op->results[0]);
        if (stays)
            continue;
        *why = product ? TCC_CUT_beside : TCC_CUT_fewer;
        return &op->results[0];
    }
    return NULL;
}

/* ---- what is cut off ------------------------------------------------------------------------------ */

/* A field, or the outputs of an index space. */
typedef struct part {
    tcc_value *value; /* NULL: none */
    tcc_op *write;    /* NULL: none */
    tcc_cut why;
} part;

/* What a function does not compute together with the rest; without value and write where there is no such thing. */
static part find_part(tcc_pass_ctx *ctx, const tcc_func *f)
{
    part p = {.value = find_separate(f), .why = TCC_CUT_separate};
    if (!p.value)
        p = (part){.value = find_nested(ctx, f), .why = TCC_CUT_nested};
    if (!p.value)
        p = (part){.value = find_uncovered(f), .why = TCC_CUT_uncovered};
    if (!p.value)
        p = (part){.value = find_shared(ctx, f), .why = TCC_CUT_shared};
    if (!p.value)
        p = (part){.write = find_other_write(f), .why = TCC_CUT_space};
    if (!p.value && !p.write)
        p.value = find_other(f, &p.why);
    tcc_value *read = p.value ? NULL : find_overwritten(ctx, f, p.write);
    return read ? (part){.value = read, .why = TCC_CUT_overwritten} : p;
}

/* ---- cuts --------------------------------------------------------------------------------------- */

static void drop_schedule(tcc_func *f)
{
    for (int i = 0; i < TCC_KEY_COUNT; i++)
        if (i != TCC_KEY_instr && i != TCC_KEY_fuse)
            tcc_attr_remove(&f->attrs, tcc_schedule_keys[i].name);
}

tcc_func *tcc_partition_copy(tcc_func *f, const char *what)
{
    const char *name = tcc_arena_printf(f->ir->arena, "%s__%s", f->name, what);
    for (int i = 2; tcc_func_find(f->ir, name); i++)
        name = tcc_arena_printf(f->ir->arena, "%s__%s%d", f->name, what, i);
    return tcc_func_clone(f, name);
}

/* Lets a copy serve launches of a function. */
static tcc_func *make_form(const tcc_func *f, tcc_func *form)
{
    tcc_attr_set_str(f->ir, &form->attrs, "kernel", tcc_func_kernel(f));
    tcc_attr_set_str(f->ir, &form->attrs, "part", form->name);
    return form;
}

tcc_func *tcc_partition_add_form(tcc_func *f, const char *what)
{
    return make_form(f, tcc_partition_copy(f, what));
}

tcc_func *tcc_partition_add_step(tcc_func *f, const char *what, tcc_cut why)
{
    tcc_ir *ir = f->ir;
    tcc_attr before = tcc_attr_list(&f->attrs, "before");
    const char **names = TCC_NEW_ARRAY(ir->arena, const char *, before.list.n + 1);
    for (size_t i = 0; i < before.list.n; i++)
        names[i] = before.list.items[i].s;
    tcc_func *step = tcc_partition_copy(f, what);
    tcc_attr_remove(&step->attrs, "before");
    tcc_attr_set_int(ir, &step->attrs, "step", 1);
    tcc_attr_set_str(ir, &step->attrs, "kernel", tcc_func_kernel(f));
    tcc_attr_set_str(ir, &step->attrs, "part", step->name);
    tcc_cut_set(step, why);
    drop_schedule(step);
    names[before.list.n] = step->name;
    tcc_attr_set_strs(ir, &f->attrs, "before", before.list.n + 1, names);
    return step;
}

/* The op of a clone that is the same as one of f. */
static tcc_op *op_in(tcc_func *clone, const tcc_func *f, const tcc_op *op)
{
    tcc_op *in = clone->body->first;
    for (const tcc_op *of = f->body->first; of != op; of = of->next)
        in = in->next;
    return in;
}

/* A field's indices in the order in which it is stored: rows run along one that products can be copied along. */
static const tcc_type *stored_order(const tcc_func *f, const tcc_value *v)
{
    const tcc_type *field = v->type;
    const char *row = NULL;
    for (const tcc_op *op = f->body->first; op && !row; op = op->next)
        row = tcc_is_reduction(op) ? tcc_product_row_index(op, v) : NULL;
    tcc_dim *dims = TCC_NEW_ARRAY(f->ir->arena, tcc_dim, field->rank);
    unsigned n = 0;
    for (unsigned d = 0; d < field->rank; d++)
        if (!row || !tcc_index_same(field->dims[d].name, row))
            dims[n++] = field->dims[d];
    if (n < field->rank)
        dims[n] = (tcc_dim){.name = row};
    return tcc_type_get(f->ir, TCC_KIND_field, field->elem, field->rank, dims);
}

const tcc_type *tcc_partition_stored_type(const tcc_func *f, const tcc_type *field)
{
    tcc_dim *dims = TCC_NEW_ARRAY(f->ir->arena, tcc_dim, field->rank);
    for (unsigned d = 0; d < field->rank; d++)
        dims[d] = tcc_index_extent(f, field->dims[d].name);
    const tcc_type *t = tcc_type_get(f->ir, TCC_KIND_tensor, field->elem, field->rank, dims);
    return field->rank > 1 ? tcc_type_with_row_bytes(f->ir, t, ROW_BYTES) : t;
}

/* Lets what reads the same elements after a read use its value. */
static void join_reads(tcc_op *read)
{
    for (tcc_op *op = read->next; op; op = op->next)
        if (op->code == TCC_OP_tensor_read && tcc_access_same(read, op, NULL, NULL))
            tcc_replace_uses(&op->results[0], &read->results[0]);
}

const char *tcc_partition_name_of(const tcc_value *v)
{
    const char *otherwise = tcc_is_reduction(v->def)                     ? tcc_attr_str(&v->def->attrs, "kind", "")
                            : v->def->code == TCC_OP_tensor_read     ? TCC_VIEW(tensor_read, v->def)->tensor->name
                                                                     : NULL;
    const tcc_value *named = named_value(v);
    return named ? named->name : otherwise ? otherwise : "value";
}

/* Whether one kernel can reduce the same parts as v is. */
static bool is_parted_with(const tcc_func *f, const tcc_value *v, const tcc_op *op)
{
    if (!tcc_is_reduction(v->def) || !tcc_is_reduction(op) || !tcc_attr_find(&v->def->attrs, "parts") ||
        !tcc_attr_find(&op->attrs, "parts"))
        return false;
    tcc_dim extent = tcc_index_extent(f, tcc_attr_list(&v->def->attrs, "over").list.items[0].s);
    return tcc_fields_share_space(v->type, op->results[0].type) &&
           tcc_dim_equal(extent, tcc_index_extent(f, tcc_attr_list(&op->attrs, "over").list.items[0].s));
}

/* A field that a step computes. */
typedef struct stored {
    tcc_value *v, *tensor, *same; /* same: in the step */
    const tcc_type *order;        /* of indices in memory */
} stored;

static void write_stored(tcc_func *step, const stored *s)
{
    tcc_builder b = tcc_builder_before(step->body->last);
    b.loc = s->v->def->loc;
    tcc_access_set_field(TCC_EMIT_V(&b, tensor_write, s->same, step->body->args[s->tensor->index]), s->order);
}

static void read_stored(const stored *s)
{
    tcc_builder b = tcc_builder_after(s->v->def);
    b.loc = s->v->def->loc;
    tcc_value *read = TCC_EMIT(&b, tensor_read, s->v->type, s->tensor);
    tcc_access_set_field(read->def, s->order);
    for (tcc_use *u = s->v->uses; u && named_value(s->v); u = u->next) /* it is no longer what the schedule names */
        if (u->op->n_results && &u->op->results[0] == named_value(s->v))
            u->op->results[0].name = NULL;
    tcc_replace_uses(s->v, read);
}

/* Elements of half a byte are not stored: a field of bytes, of which its users compute what they have of v. */
static tcc_value *in_bytes(tcc_value *v)
{
    enum { BYTE_BITS = 8 };
    if (tcc_scalar_bits(v->type->elem) >= BYTE_BITS)
        return v;
    tcc_builder b = tcc_builder_after(v->def);
    tcc_scalar elem = v->type->elem == TCC_u4 ? TCC_u8 : TCC_i8;
    b.loc = v->def->loc;
    const tcc_type *type = tcc_type_get(v->def->block->func->ir, TCC_KIND_field, elem, v->type->rank, v->type->dims);
    tcc_value *wide = TCC_EMIT(&b, arith_cast, type, v);
    for (tcc_use *u = v->uses, *next; u; u = next) {
        next = u->next;
        if (u->op->code == TCC_OP_arith_cast && u->op != wide->def)
            tcc_op_set_operand(u->op, 0, wide);
    }
    return wide;
}

/* The ops that a function needs if it reads a value. */
static tcc_map find_left(tcc_arena *scratch, const tcc_func *f, const tcc_value *v)
{
    tcc_map left = TCC_MAP(scratch);
    for (tcc_op *op = f->body->last; op; op = op->prev)
        for (unsigned i = 0; i < op->n_operands && op != v->def && (is_write(op) || tcc_map_get(&left, op)); i++)
            if (op->operands[i]->def)
                *tcc_map_at(&left, op->operands[i]->def) = op;
    return left;
}

/* The reductions in the same space that a value is computed of, and that are needed beside it. */
static tcc_map find_beside(tcc_arena *scratch, const tcc_func *f, const tcc_value *v)
{
    tcc_map slice = tcc_slice_of(scratch, 1, (tcc_value *[]){&v->def->results[0]});
    tcc_map left = find_left(scratch, f, v), beside = TCC_MAP(scratch);
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (tcc_is_reduction(op) && op != v->def && tcc_map_get(&slice, op) && tcc_map_get(&left, op) &&
            tcc_fields_share_space(v->type, op->results[0].type))
            *tcc_map_at(&beside, op) = op;
    return beside;
}

/* Lets a step compute a field, and those that go with it, and f read them. */
static void cut_value(tcc_func *f, const part *p, tcc_arena *scratch)
{
    TCC_VEC(stored) all = {0};
    const tcc_value *cut = in_bytes(p->value);
    if (cut->def->code == TCC_OP_tensor_read)
        join_reads(cut->def);
    tcc_map beside = find_beside(scratch, f, cut);
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (op == cut->def || is_parted_with(f, cut, op) || tcc_map_get(&beside, op)) {
            tcc_value *v = &op->results[0];
            stored s = {.v = v, .order = stored_order(f, v)};
            s.tensor = tcc_func_add_workspace(f, tcc_partition_stored_type(f, s.order), tcc_partition_name_of(v));
            TCC_PUSH(scratch, &all, s);
        }
    tcc_func *step = tcc_partition_add_step(f, tcc_partition_name_of(cut), p->why);
    for (size_t i = 0; i < all.len; i++)
        all.data[i].same = &op_in(step, f, all.data[i].v->def)->results[0];
    for (tcc_op *op = step->body->first, *next; op; op = next) {
        next = op->next;
        if (is_write(op))
            tcc_op_erase(op);
    }
    for (size_t i = 0; i < all.len; i++) {
        write_stored(step, &all.data[i]);
        read_stored(&all.data[i]);
    }
    tcc_erase_dead(step, scratch);
    tcc_erase_dead(f, scratch);
}

/* Lets a step write the outputs of an index space. */
static tcc_func *cut_writes(tcc_func *f, const part *p, tcc_arena *scratch)
{
    tcc_op *write = p->write;
    const tcc_value *tensor = TCC_VIEW(tensor_write, write)->tensor;
    tcc_func *step = tcc_partition_add_step(f, tensor->name ? tensor->name : "output", p->why);
    for (tcc_op *op = f->body->first, *in = step->body->first, *next, *next_in; op; op = next, in = next_in) {
        next = op->next;
        next_in = in->next;
        if (is_write(op) && op != write)
            tcc_op_erase(tcc_writes_share_space(op, write) ? op : in);
    }
    tcc_op_erase(write);
    tcc_erase_dead(step, scratch);
    tcc_erase_dead(f, scratch);
    return step;
}

tcc_func *tcc_partition_cut_outputs(tcc_pass_ctx *ctx, tcc_func *f)
{
    part p = {.write = find_other_write(f), .why = TCC_CUT_space};
    return p.write ? cut_writes(f, &p, ctx->scratch) : NULL;
}

/* Whether what the schedule separates is there. */
static bool check_separate(tcc_pass_ctx *ctx, const tcc_func *f)
{
    const tcc_named_attr *given = tcc_attr_find(&f->attrs, tcc_schedule_keys[TCC_KEY_separate].name);
    tcc_attr names = tcc_attr_list(&f->attrs, tcc_schedule_keys[TCC_KEY_separate].name);
    for (size_t i = 0; i < names.list.n; i++) {
        const tcc_op *op = f->body->first;
        while (op && !(tcc_has_field(op) && op->results[0].name && !strcmp(op->results[0].name, names.list.items[i].s)))
            op = op->next;
        if (op)
            continue;
        tcc_error(ctx->diag, TCC_ERR_TYPE, given->loc,
                  "'%s' cannot be stored: it is a number, or the same as something else", names.list.items[i].s);
        return false;
    }
    return true;
}

/* Whether a value may be stored; if not, the schedule is wrong. */
static bool may_cut(tcc_pass_ctx *ctx, const tcc_func *f, const part *p)
{
    if (!p->value || !tcc_schedule_names(f, TCC_KEY_fuse, p->value))
        return true;
    tcc_error(ctx->diag, TCC_ERR_TYPE, tcc_attr_find(&f->attrs, tcc_schedule_keys[TCC_KEY_fuse].name)->loc,
              "'%s' must be stored: %s", named_value(p->value)->name, tcc_cut_meaning(p->why));
    return false;
}

/* ---- the pass ------------------------------------------------------------------------------------ */

/* What several names of an index kept apart becomes one. */
static tcc_status join_equal(tcc_pass_ctx *ctx, tcc_func *f)
{
    bool changed;
    return tcc_pass_cse.run(ctx, f, &changed);
}

static tcc_status cut(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    for (part p;; *changed = true) {
        *changed |= tcc_nest_reductions(ctx->scratch, f);
        if (!find_separate(f) && tcc_rows_recognize(f)) {
            *changed = true;
            return join_equal(ctx, f);
        }
        p = find_part(ctx, f);
        if (!p.value && !p.write)
            return TCC_OK;
        if (!may_cut(ctx, f, &p))
            return TCC_ERR_TYPE;
        if (p.value && tcc_is_reduction(p.value->def) && !tcc_attr_find(&p.value->def->attrs, "parts") &&
            p.why != TCC_CUT_separate)
            p.value = tcc_stored_value(ctx->scratch, p.value, p.why != TCC_CUT_nested, is_fused, f);
        if (p.value)
            cut_value(f, &p, ctx->scratch);
        else
            cut_writes(f, &p, ctx->scratch);
    }
}

/* Another form, with the rows of heads that share what they multiply in one tile, for launches with few rows. */
static void add_packed(tcc_pass_ctx *ctx, tcc_func *f)
{
    tcc_func *packed = tcc_streams_may_have_few_rows(f) ? tcc_partition_add_form(f, "packed") : NULL;
    if (packed && tcc_pack_rows(packed))
        tcc_erase_dead(packed, ctx->scratch);
    else if (packed)
        tcc_func_remove(packed);
}

/* Whether a function is a form or one of its steps. */
static bool is_of_form(const tcc_func *f, const tcc_func *form)
{
    size_t n = strlen(form->name);
    return !strncmp(f->name, form->name, n) && (!f->name[n] || !strncmp(f->name + n, "__", 2));
}

/* Whether what puts parts together is proven: what is not is not offered. */
static bool is_merged(tcc_pass_ctx *ctx, const tcc_func *form)
{
    bool all = true;
    for (const tcc_func *f = form->ir->first; f && all; f = f->next) {
        tcc_attr merges = tcc_attr_list(&f->attrs, "merges");
        const tcc_func *parts = merges.list.n == 2 ? tcc_func_find(f->ir, merges.list.items[0].s) : NULL;
        if (is_of_form(f, form) && parts)
            all = !tcc_streaming_merge_wrong(f, parts, merges.list.items[1].s, ctx->scratch);
    }
    return all;
}

static void remove_form(tcc_func *form)
{
    for (tcc_func *f = form->ir->first, *next; f; f = next) {
        next = f->next;
        if (f != form && is_of_form(f, form))
            tcc_func_remove(f);
    }
    tcc_func_remove(form);
}

/* One loop serves launches for which variants of it are, and so does one in parts; steps, which a copy is cut into, serve
 * all. steps: this copy, as it was before; NULL: it is made here. */
static tcc_status add_steps(tcc_pass_ctx *ctx, tcc_func *f, tcc_func *steps)
{
    bool changed;
    tcc_status status = join_equal(ctx, f);
    if (status)
        return status;
    steps = make_form(f, steps ? steps : tcc_partition_copy(f, "steps"));
    tcc_attr_remove(&steps->attrs, "stream");
    tcc_attr_remove(&steps->attrs, tcc_schedule_keys[TCC_KEY_fuse].name); /* it is fused where that is possible */
    drop_schedule(steps);                                                 /* it is the loop's */
    add_packed(ctx, f);
    tcc_func *split = tcc_streams_split(ctx, f);
    status = split ? cut(ctx, split, &changed) : TCC_OK;
    if (split && !status && !is_merged(ctx, split))
        remove_form(split);
    return status ? status : cut(ctx, steps, &changed);
}

/* Says that a key of the schedule makes steps of what could be one loop. */
static void warn_of_key(tcc_pass_ctx *ctx, tcc_func *f)
{
    const tcc_named_attr *key = tcc_streams_other_key(f);
    if (!key || !key->loc.line)
        return;
    tcc_func *trial = tcc_partition_copy(f, "trial");
    for (const tcc_named_attr *other; (other = tcc_streams_other_key(trial));)
        tcc_attr_remove(&trial->attrs, other->name);
    if (tcc_streams_recognize(trial))
        tcc_warn(ctx->diag, key->loc,
                 "'%s' makes several steps of '%s', which could be one loop over '%s': that has no key but tile, stages, "
                 "warps and fuse",
                 key->name, f->name, tcc_attr_str(&trial->attrs, "stream", ""));
    tcc_func_remove(trial);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    if (tcc_attr_find(&f->attrs, "assumes") || tcc_attr_find(&f->attrs, "stream") || !last_write(f))
        return TCC_OK;
    if (!check_separate(ctx, f))
        return TCC_ERR_TYPE;
    if (find_separate(f))
        return cut(ctx, f, changed);
    tcc_func *steps = tcc_streams_have_conditions(f) ? tcc_partition_copy(f, "steps") : NULL;
    if (tcc_streams_recognize(f)) {
        *changed = true;
        return add_steps(ctx, f, steps);
    }
    if (steps)
        tcc_func_remove(steps);
    warn_of_key(ctx, f);
    return cut(ctx, f, changed);
}

const tcc_pass tcc_pass_partition = {"partition", "cut what one kernel cannot compute into steps", .run = run};
