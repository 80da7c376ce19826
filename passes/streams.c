/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/streams.h"

#include "ir/fragment.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "passes/cascade.h"
#include "passes/passes.h"
#include "passes/slice.h"
#include "passes/stream.h"

/* What is known of a function's indices: those of its rows, the names of the one that is streamed, and others, of which
 * a field has one. */
typedef struct search {
    tcc_func *f;
    tcc_arena *arena;
    const tcc_type *rows;   /* a field with the indices of what terms are reduced to */
    tcc_dim extent;         /* of the streamed index */
    tcc_stream_names names; /* its own */
    tcc_cascade products;
    tcc_map operands;  /* ops of products alone: what reads and widens a factor, and multiplies */
    tcc_value *inside; /* the condition of all reductions over the index; NULL: they have none */
} search;

typedef struct indices {
    unsigned streamed, others; /* others: neither these nor the rows' */
    const char *other;
} indices;

static bool is_streamed(const search *s, const char *x)
{
    return tcc_stream_has_name(&s->names, x);
}

static indices indices_of(const search *s, const tcc_type *field)
{
    indices in = {0};
    for (unsigned d = 0; field->kind == TCC_KIND_field && d < field->rank; d++) {
        const char *x = field->dims[d].name;
        in.streamed += is_streamed(s, x);
        if (is_streamed(s, x) || tcc_field_has_index(s->rows, x))
            continue;
        in.others++;
        in.other = x;
    }
    return in;
}

static const char *over(const tcc_op *reduce)
{
    tcc_attr list = tcc_attr_list(&reduce->attrs, "over");
    return list.list.n == 1 ? list.list.items[0].s : NULL;
}

/* ---- names of the index ---------------------------------------------------------------------- */

static bool add_name(search *s, const char *x)
{
    if (!is_streamed(s, x)) {
        if (s->names.n == TCC_STREAM_MOST_NAMES || tcc_field_has_index(s->rows, x) ||
            !tcc_dim_equal(tcc_index_extent(s->f, x), s->extent))
            return false;
        s->names.of[s->names.n++] = x;
    }
    return true;
}

/* Calls the index what a sum of products does: schedules have that name. */
static void prefer(search *s, const char *x)
{
    size_t n = 0;
    while (!tcc_index_same(s->names.of[n], x))
        n++;
    s->names.of[n] = s->names.of[0];
    s->names.of[0] = x;
}

/* Every name over which something is reduced to rows, or to rows of products: all but scores, which have one. Users
 * come before what they use. No field has two, so that they can be one. */
static bool find_names(search *s)
{
    bool all = true, multiplies = false;
    for (tcc_op *op = s->f->body->last; op && all; op = op->prev) {
        tcc_product p;
        if (!tcc_is_reduction(op))
            continue;
        all = over(op) && (indices_of(s, op->results[0].type).streamed || add_name(s, over(op)));
        if (!tcc_product_of_terms(op, &p) || !is_streamed(s, p.k))
            continue;
        multiplies = true;
        prefer(s, p.k);
    }
    for (const tcc_op *op = s->f->body->first; op && all; op = op->next)
        all = !op->n_results || indices_of(s, op->results[0].type).streamed <= 1;
    return all && multiplies;
}

static const char *renamed(const search *s, const char *x)
{
    return is_streamed(s, x) ? s->names.of[0] : x;
}

static void rename_op(const search *s, tcc_op *op)
{
    tcc_ir *ir = s->f->ir;
    const tcc_type *field = op->n_results ? op->results[0].type : NULL;
    for (size_t n = 1; n < s->names.n && tcc_accessed_tensor(op); n++)
        tcc_access_rename(op, s->names.of[n], s->names.of[0]);
    if (tcc_is_reduction(op) && is_streamed(s, over(op)))
        tcc_attr_set_strs(ir, &op->attrs, "over", 1, &s->names.of[0]);
    if (op->code == TCC_OP_tensor_index)
        tcc_attr_set_str(ir, &op->attrs, "name", renamed(s, tcc_attr_str(&op->attrs, "name", NULL)));
    if (!field || field->kind != TCC_KIND_field)
        return;
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, field->rank);
    for (unsigned d = 0; d < field->rank; d++) {
        dims[d] = field->dims[d];
        dims[d].name = renamed(s, dims[d].name);
    }
    op->results[0].type = tcc_type_get(ir, TCC_KIND_field, field->elem, field->rank, dims);
}

static void make_one_name(search *s)
{
    for (tcc_op *op = s->f->body->first; op && s->names.n > 1; op = op->next)
        rename_op(s, op);
    s->names.n = 1;
}

/* ---- reductions ---------------------------------------------------------------------------------- */

/* Whether a tensor has as many elements along the streamed index as there are terms. */
static bool has_all_terms(const search *s, const tcc_op *read)
{
    int at = tcc_map_position(read, s->names.of[0]);
    return at < 0 || tcc_dim_equal(tcc_accessed_tensor(read)->type->dims[at], s->extent);
}

/* Marks what is computed for a product alone; whether its numbers have 16 bits, and are added in f32. */
static bool take_product(search *s, const tcc_product *p)
{
    tcc_op *product = p->sum->operands[0]->def;
    bool all = p->products == TCC_f32 && p->sum->results[0].type->elem == TCC_f32 && p->parts.count == 1;
    *tcc_map_at(&s->operands, product) = product;
    for (int i = 0; i < 2; i++) {
        const tcc_value *v = product->operands[i], *narrow[] = {p->of[0].value, p->of[1].value};
        while (v != narrow[0] && v != narrow[1]) {
            *tcc_map_at(&s->operands, v->def) = v->def;
            v = v->def->operands[0];
        }
        if (v->def && v->def->code == TCC_OP_tensor_read) {
            *tcc_map_at(&s->operands, v->def) = v->def;
            all &= has_all_terms(s, v->def);
        }
        all &= v->type->elem == p->of[0].value->type->elem && (v->type->elem == TCC_f16 || v->type->elem == TCC_bf16);
    }
    return all;
}

/* What is reduced to rows: numbers of f32. */
static bool is_of_rows(const search *s, const tcc_op *op)
{
    return tcc_fields_share_space(op->results[0].type, s->rows) && !tcc_reduction_is_place(tcc_reduction_of(op)) &&
           !tcc_attr_find(&op->attrs, "parts") && op->results[0].type->elem == TCC_f32;
}

/* Whether a reduction is a score, a sum of products for each column, or to rows; all but scores with one condition. */
static bool is_of_stream(search *s, tcc_op *op, bool is_first)
{
    const tcc_product *score = tcc_product_of(op, s->products.n_scores, s->products.scores),
                      *sum = tcc_product_of(op, s->products.n_sums, s->products.sums);
    tcc_value *inside = op->n_operands > 1 ? op->operands[1] : NULL;
    if (score)
        return !inside && take_product(s, score);
    s->inside = is_first ? inside : s->inside;
    return inside == s->inside && is_streamed(s, over(op)) &&
           (sum ? take_product(s, sum) && op->results[0].type->rank == s->rows->rank + 1 : is_of_rows(s, op));
}

static bool find_reductions(search *s)
{
    bool all = true, is_first = true;
    for (tcc_op *op = s->f->body->first; op && all; op = op->next) {
        if (!tcc_is_reduction(op))
            continue;
        all = is_of_stream(s, op, is_first);
        is_first &= !is_streamed(s, over(op));
    }
    return all;
}

/* Whether it is known which terms there are before anything is reduced. */
static bool is_known_before(const search *s, tcc_value *inside)
{
    tcc_map of = tcc_slice_of(s->arena, 1, &inside);
    bool is = !indices_of(s, inside->type).others;
    for (const tcc_op *op = s->f->body->first; op && is; op = op->next)
        is = !tcc_is_reduction(op) || !tcc_map_get(&of, op);
    return is;
}

/* ---- all else --------------------------------------------------------------------------------------- */

/* Whether a read has an index of columns last, and neither it nor the rows' or the streamed one is computed with: what
 * is has one value in a tile. What is loaded for a coordinate is not along either. */
static bool reads_tiles(const search *s, const tcc_op *read, const char *column)
{
    const char *const alone[] = {s->names.of[0], s->products.rows, column};
    bool all = read->n_operands == 1 || (!column && !indices_of(s, read->results[0].type).streamed);
    all &= tcc_type_has_rows(tcc_accessed_tensor(read)->type);
    for (size_t n = 0; n < sizeof alone / sizeof *alone && all; n++)
        all = !alone[n] || !tcc_access_computes_with(read, alone[n]);
    for (size_t d = 0; d < tcc_access_rank(read) && all; d++) {
        const char *x = tcc_access_index(read, d);
        all = !x || tcc_map_position(read, x) == (int)d;
    }
    const char *last = all && column ? tcc_access_last(read) : NULL;
    return all && has_all_terms(s, read) && (!column || (last && tcc_index_same(last, column)));
}

/* Whether a write is of rows of products, contiguous, or of a value of each row. */
static bool is_written_in_rows(const search *s, const tcc_op *write)
{
    size_t rank = tcc_access_rank(write), columns = 0;
    const tcc_value *tensor = tcc_accessed_tensor(write);
    bool all = tcc_access_is_plain(write) && !tcc_value_is_used_by(tensor, TCC_OP_tensor_read);
    for (size_t d = 0; d < rank && all; d++) {
        const char *x = tcc_access_index(write, d);
        bool is_row = tcc_field_has_index(s->rows, x);
        columns += !is_row;
        all = is_row || (tcc_index_same(x, s->products.columns) && d + 1 == rank &&
                         tcc_type_has_rows(tensor->type));
    }
    return all && rank - columns == s->rows->rank;
}

static bool is_op_of_stream(const search *s, const tcc_op *op)
{
    indices in = op->n_results ? indices_of(s, op->results[0].type) : (indices){0};
    if (tcc_map_get(&s->operands, op))
        return true;
    if (in.others > 1 || (in.streamed && in.others))
        return false;
    switch (op->code) {
    case TCC_OP_tensor_reduce: /* find_reductions has seen them */
    case TCC_OP_tensor_index:
    case TCC_OP_tensor_dim:
    case TCC_OP_func_return:
    case TCC_OP_arith_const: return true;
    case TCC_OP_tensor_write: return is_written_in_rows(s, op);
    case TCC_OP_tensor_read: return reads_tiles(s, op, in.other);
    default: return tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    }
}

const tcc_named_attr *tcc_streams_other_key(const tcc_func *f)
{
    const tcc_named_attr *found = NULL;
    for (int key = 0; key < TCC_KEY_COUNT && !found; key++)
        if (key != TCC_KEY_tile && key != TCC_KEY_stages && key != TCC_KEY_warps && key != TCC_KEY_waves &&
            !tcc_schedule_key_is_of_steps(&tcc_schedule_keys[key]))
            found = tcc_attr_find(&f->attrs, tcc_schedule_keys[key].name);
    return found;
}

/* Whether one loop over tiles of an index may be what a schedule asks for: it has tiles of it and of rows, and stages. */
static bool is_scheduled_so(const tcc_func *f, const tcc_cascade *c)
{
    tcc_attr tile = tcc_attr_list(&f->attrs, tcc_schedule_keys[TCC_KEY_tile].name);
    bool all = !tcc_streams_other_key(f);
    for (size_t i = 0; i + 1 < tile.list.n && all; i += 2)
        all = tcc_index_same(tile.list.items[i].s, c->rows) || tcc_index_same(tile.list.items[i].s, c->along);
    return all;
}

/* Whether the target has instructions for a product that warpgroups share, or of warps whose lanes know the elements that
 * they have of its result: then they can be operands of another. */
static bool is_multiplied(const tcc_target *target, const tcc_product *p)
{
    tcc_scalar a = p->of[0].value->type->elem, b = p->of[1].value->type->elem, sum = p->sum->results[0].type->elem;
    tcc_instr instr = tcc_target_instr_for(target, TCC_INSTR_COUNT, a, b, sum);
    if (tcc_target_can(target, TCC_CAN_wgmma))
        return instr == TCC_INSTR_WGMMA;
    if (tcc_target_can(target, TCC_CAN_wmma))
        return instr == TCC_INSTR_WMMA;
    const tcc_mma_sync *mma = tcc_mma_sync_find(target, TCC_INSTR_MMA, a, b, sum);
    return instr == TCC_INSTR_MMA && !tcc_mma_sync_is_opaque(mma);
}

static bool are_multiplied(const tcc_func *f, const tcc_cascade *c)
{
    const tcc_target *target = tcc_target_of(f->ir);
    bool all = true;
    for (size_t i = 0; i < c->n_scores + c->n_sums; i++)
        all &= is_multiplied(target, i < c->n_scores ? &c->scores[i] : &c->sums[i - c->n_scores]);
    return all;
}

/* The name of a reduction's index, if a function is such a kernel when its terms are streamed; NULL: it is not. */
static const char *find_along(tcc_func *f, const char *index, const tcc_type *rows)
{
    search s = {.f = f, .arena = f->ir->arena, .rows = rows, .extent = tcc_index_extent(f, index)};
    s.names = (tcc_stream_names){1, {index}};
    s.operands = TCC_MAP(s.arena);
    if ((!s.extent.name && s.extent.size < 1) || !find_names(&s))
        return NULL;
    make_one_name(&s);
    bool is = tcc_cascade_along(f, s.names.of[0], &s.products) && tcc_field_has_index(rows, s.products.rows) &&
              are_multiplied(f, &s.products) && find_reductions(&s) && (!s.inside || is_known_before(&s, s.inside));
    for (const tcc_op *op = f->body->first; op && is; op = op->next)
        is = is_op_of_stream(&s, op);
    is = is && is_scheduled_so(f, &s.products) && tcc_stream_takes_one_sweep(s.arena, f, &s.names);
    return is ? s.names.of[0] : NULL;
}

/* ---- conditions of factors ------------------------------------------------------------------------- */

/* What a factor is where a condition holds, if it is 0 elsewhere; else NULL. */
static tcc_op *masked_factor(const tcc_value *factor)
{
    tcc_op *op = factor->def;
    double number;
    if (op && op->code == TCC_OP_arith_cast)
        op = op->operands[0]->def;
    bool is = op && op->code == TCC_OP_arith_select && tcc_value_is_float(op->operands[2], &number) && number == 0;
    return is ? op : NULL;
}

/* The condition under which both factors of a sum's terms are not 0; NULL: there is none. */
static tcc_value *condition_of_factors(const tcc_op *op)
{
    const tcc_op *product = tcc_is_reduction(op) && op->n_operands == 1 ? op->operands[0]->def : NULL;
    if (!product || product->code != TCC_OP_arith_mul || tcc_reduction_of(op) != TCC_REDUCTION_SUM)
        return NULL;
    const tcc_op *x = masked_factor(product->operands[0]), *y = masked_factor(product->operands[1]);
    return x && y && x->operands[0] == y->operands[0] ? x->operands[0] : NULL;
}

bool tcc_streams_have_conditions(const tcc_func *f)
{
    const tcc_op *op = f->body->first;
    while (op && !condition_of_factors(op))
        op = op->next;
    return op;
}

static tcc_value *unmasked(tcc_builder *b, tcc_value *factor)
{
    tcc_value *v = masked_factor(factor)->operands[1];
    return factor->def->code == TCC_OP_arith_cast ? TCC_EMIT(b, arith_cast, factor->type, v) : v;
}

/* Makes conditions of factors those of their sums: terms that are 0 or that are not there are the same. */
static void move_conditions(tcc_func *f)
{
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        tcc_value *condition = condition_of_factors(op);
        next = op->next;
        if (!condition)
            continue;
        const tcc_op *product = op->operands[0]->def;
        tcc_builder b = tcc_builder_before(op);
        b.loc = product->loc;
        tcc_value *x = unmasked(&b, product->operands[0]), *y = unmasked(&b, product->operands[1]);
        tcc_value *terms = TCC_EMIT(&b, arith_mul, product->results[0].type, x, y);
        b.loc = op->loc;
        tcc_op *sum = tcc_op_create(&b, op->code, 2, (tcc_value *[]){terms, condition}, 1, &op->results[0].type);
        for (size_t i = 0; i < op->attrs.len; i++)
            TCC_PUSH(f->ir->arena, &sum->attrs, op->attrs.data[i]);
        sum->results[0].name = op->results[0].name;
        tcc_replace_uses(&op->results[0], &sum->results[0]);
    }
    tcc_erase_dead(f, f->ir->arena);
}

static bool recognize(tcc_func *f)
{
    const char *along = NULL;
    for (const tcc_op *op = f->body->first; op && !along; op = op->next)
        along = tcc_is_reduction(op) && over(op) ? find_along(f, over(op), op->results[0].type) : NULL;
    if (along)
        tcc_attr_set_str(f->ir, &f->attrs, "stream", along);
    return along;
}

bool tcc_streams_recognize(tcc_func *f)
{
    if (tcc_streams_have_conditions(f)) {
        tcc_func *trial = tcc_func_clone(f, tcc_arena_printf(f->ir->arena, "%s__trial", f->name));
        move_conditions(trial);
        bool is = recognize(trial);
        tcc_func_remove(trial);
        if (!is)
            return false;
        move_conditions(f);
    }
    return recognize(f);
}
