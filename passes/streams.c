/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/streams.h"

#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "passes/products.h"
#include "passes/slice.h"
#include "passes/stream.h"

enum { UNIT = 8, MOST_ALONG = 256 /* of what d and e are a multiple, and not beyond */ };

/* What is known of a function's indices: those of its rows, the names of j, and others, of which a field has one. */
typedef struct search {
    const tcc_func *f;
    tcc_arena *arena;
    tcc_stream *out;
    tcc_stream_names j;
    tcc_map operands; /* ops of products alone: the multiplication, and what reads and widens a factor of two names */
} search;

typedef struct indices {
    bool has_j;
    unsigned others; /* neither j nor the rows' */
    const char *other;
} indices;

static bool is_j(const search *s, const char *x)
{
    return tcc_stream_has_name(&s->j, x);
}

static indices indices_of(const search *s, const tcc_type *field)
{
    indices in = {0};
    for (unsigned d = 0; field->kind == TCC_KIND_field && d < field->rank; d++) {
        const char *x = field->dims[d].name;
        in.has_j |= is_j(s, x);
        if (is_j(s, x) || tcc_field_has_index(s->out->rows, x))
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
    if (!is_j(s, x)) {
        if (s->j.n == TCC_STREAM_MOST_NAMES || tcc_field_has_index(s->out->rows, x) ||
            !tcc_dim_equal(tcc_index_extent(s->f, x), s->out->extent))
            return false;
        s->j.of[s->j.n++] = x;
    }
    return true;
}

/* Every name over which something is reduced to rows, or to rows of products: all but inner products, which have one.
 * Users come before what they use. */
static bool find_names(search *s)
{
    bool all = true;
    for (const tcc_op *op = s->f->body->last; op && all; op = op->prev) {
        if (!tcc_is_reduction(op))
            continue;
        all = over(op) && (indices_of(s, op->results[0].type).has_j || add_name(s, over(op)));
    }
    return all;
}

/* ---- products ---------------------------------------------------------------------------------- */

/* Whether a read has x as its last coordinate, and i and j, if it has them, as others, and computes with none of these:
 * what is computed has one value in a tile. */
static bool reads_tiles(const search *s, const tcc_op *read, const char *x)
{
    size_t rank = tcc_access_rank(read);
    bool all = read->n_operands == 1 && (!x || (tcc_access_last(read) && tcc_index_same(tcc_access_last(read), x)));
    unsigned plain = 0;
    for (size_t d = 0; d < rank && all; d++) {
        const char *own = tcc_access_index(read, d);
        const tcc_index_expr *e = tcc_access_expr(read, d);
        plain += own && is_j(s, own);
        all = own ? tcc_map_position(read, own) == (int)d : !x || !tcc_index_has(e, TCC_FACTOR_INDEX, x);
        for (size_t n = 0; n < s->j.n && all && !own; n++)
            all = !tcc_index_has(e, TCC_FACTOR_INDEX, s->j.of[n]);
        if (!own && all && s->out->i)
            all = !tcc_index_has(e, TCC_FACTOR_INDEX, s->out->i);
    }
    return all && plain <= 1;
}

static bool is_float(const tcc_value *v, tcc_scalar elem)
{
    return v->type->kind == TCC_KIND_field && v->type->elem == elem;
}

/* The value behind conversions that keep every number; they become operands of the product. */
static tcc_value *narrow(search *s, tcc_value *v)
{
    while (v->def && v->def->code == TCC_OP_arith_cast &&
           tcc_scalar_widens(v->def->operands[0]->type->elem, v->type->elem)) {
        *tcc_map_at(&s->operands, v->def) = v->def;
        v = v->def->operands[0];
    }
    return v;
}

static tcc_op *read_of(search *s, const tcc_value *v)
{
    tcc_op *op = v->def && v->def->code == TCC_OP_tensor_read ? v->def : NULL;
    if (op)
        *tcc_map_at(&s->operands, op) = op;
    return op;
}

/* Whether p's tensors are read in tiles along x, which has few values, of a known number. */
static bool has_tiles(const search *s, tcc_stream_product *p)
{
    const tcc_value *tensor = tcc_accessed_tensor(p->read_b);
    tcc_dim x = tensor->type->rank ? tensor->type->dims[tensor->type->rank - 1] : (tcc_dim){0};
    p->extent = x.size;
    if (x.name || x.size < UNIT || x.size % UNIT || x.size > MOST_ALONG || !reads_tiles(s, p->read_b, p->x) ||
        (p->read_a && !reads_tiles(s, p->read_a, p->x)))
        return false;
    bool same = true; /* as many terms as all have */
    for (size_t d = 0; d < tcc_access_rank(p->read_b) && same; d++) {
        const char *own = tcc_access_index(p->read_b, d);
        same = !own || !is_j(s, own) || tcc_dim_equal(tensor->type->dims[d], s->out->extent);
    }
    return same;
}

/* Adds a product of a factor with rows and of one with j that lacks these. */
static bool add_product(search *s, tcc_op *sum)
{
    tcc_op *product = sum->operands[0]->def;
    bool is_inner = indices_of(s, sum->results[0].type).has_j;
    tcc_stream_product p = {.sum = sum, .x = is_inner ? over(sum) : indices_of(s, sum->results[0].type).other};
    if (!product || product->code != TCC_OP_arith_mul || tcc_reduction_of(sum) != TCC_REDUCTION_SUM || !p.x ||
        tcc_attr_find(&sum->attrs, "rounded") || !is_float(&sum->results[0], TCC_f32) ||
        !is_float(&product->results[0], TCC_f32) || (is_inner && sum->n_operands > 1))
        return false;
    tcc_value *of[2];
    for (int n = 0; n < 2; n++)
        of[n] = narrow(s, product->operands[n]);
    bool first = is_inner ? indices_of(s, of[1]->type).has_j : indices_of(s, of[1]->type).others;
    p.a = of[!first];
    p.b = of[first];
    p.read_a = is_inner ? read_of(s, p.a) : NULL;
    p.read_b = read_of(s, p.b);
    indices a = indices_of(s, p.a->type), b = indices_of(s, p.b->type);
    bool is = (is_float(p.a, TCC_f16) || is_float(p.a, TCC_bf16)) && p.a->type->elem == p.b->type->elem && p.read_b &&
              a.has_j == !is_inner && a.others == is_inner && b.has_j && b.others == 1 &&
              (is_inner ? p.read_a != NULL : sum->results[0].type->rank == s->out->rows->rank + 1);
    *tcc_map_at(&s->operands, product) = product;
    if (is && is_inner)
        TCC_PUSH(s->arena, &s->out->inner, p);
    else if (is)
        TCC_PUSH(s->arena, &s->out->main, p);
    return is;
}

/* What is reduced to rows: numbers of f32. */
static bool is_of_rows(const search *s, const tcc_op *op)
{
    return tcc_fields_share_space(op->results[0].type, s->out->rows) && !tcc_reduction_is_place(tcc_reduction_of(op)) &&
           !tcc_attr_find(&op->attrs, "parts") && is_float(&op->results[0], TCC_f32);
}

/* Sorts reductions into those to rows and into products. */
static bool find_reductions(search *s)
{
    bool all = true, any = false;
    for (tcc_op *op = s->f->body->first; op && all; op = op->next) {
        if (!tcc_is_reduction(op))
            continue;
        indices r = indices_of(s, op->results[0].type);
        bool is_over_j = is_j(s, over(op));
        tcc_value *inside = op->n_operands > 1 ? op->operands[1] : NULL;
        if (is_over_j && !any)
            s->out->inside = inside;
        all = (!is_over_j || inside == s->out->inside) && r.others <= 1 && is_over_j != r.has_j &&
              (is_over_j && !r.others ? is_of_rows(s, op) : add_product(s, op));
        any |= is_over_j;
    }
    return all && s->out->inner.len && s->out->main.len;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

/* Whether rows can be along x: what is multiplied by many of them lacks it, and every product has it. */
static bool can_be_rows(const tcc_stream *out, const char *x)
{
    bool can = true;
    for (size_t n = 0; n < out->inner.len && can; n++) {
        const tcc_stream_product *p = &out->inner.data[n];
        can = tcc_map_position(p->read_a, x) >= 0 && !tcc_field_has_index(p->b->type, x);
    }
    for (size_t n = 0; n < out->main.len && can; n++) {
        const tcc_stream_product *p = &out->main.data[n];
        can = tcc_field_has_index(p->a->type, x) && !tcc_field_has_index(p->b->type, x);
    }
    return can;
}

/* The innermost of Q's indices that can be. */
static bool find_rows(search *s)
{
    const tcc_op *q = s->out->inner.data[0].read_a;
    for (size_t d = tcc_access_rank(q); d-- && !s->out->i;) {
        const char *x = tcc_access_index(q, d);
        s->out->i = x && tcc_field_has_index(s->out->rows, x) && can_be_rows(s->out, x) ? x : NULL;
    }
    bool all = s->out->i;
    for (size_t n = 0; n < s->out->inner.len && all; n++)
        all = has_tiles(s, &s->out->inner.data[n]);
    for (size_t n = 0; n < s->out->main.len && all; n++)
        all = has_tiles(s, &s->out->main.data[n]);
    return all;
}

/* ---- all else --------------------------------------------------------------------------------------- */

static bool is_read(const search *s, const tcc_value *tensor)
{
    bool is = false;
    for (const tcc_op *op = s->f->body->first; op && !is; op = op->next)
        is = op->code == TCC_OP_tensor_read && tcc_accessed_tensor(op) == tensor;
    return is;
}

/* Whether a write is of rows of a main product, contiguous, or of a value of each row. */
static bool is_written_in_rows(const search *s, const tcc_op *write)
{
    size_t rank = tcc_access_rank(write), others = 0;
    bool all = tcc_access_is_plain(write) && !is_read(s, tcc_accessed_tensor(write));
    for (size_t d = 0; d < rank && all; d++) {
        const char *x = tcc_access_index(write, d);
        bool is_row = tcc_field_has_index(s->out->rows, x), is_main = false;
        for (size_t n = 0; n < s->out->main.len; n++)
            is_main |= tcc_index_same(x, s->out->main.data[n].x);
        others += !is_row;
        all = is_row || (is_main && d + 1 == rank && tcc_type_has_rows(tcc_accessed_tensor(write)->type));
    }
    return all && rank - others == s->out->rows->rank;
}

static bool is_op_of_stream(const search *s, const tcc_op *op)
{
    indices in = op->n_results ? indices_of(s, op->results[0].type) : (indices){0};
    if (tcc_map_get(&s->operands, op))
        return true;
    if (in.others > 1 || (in.has_j && in.others))
        return false;
    switch (op->code) {
    case TCC_OP_tensor_reduce:
    case TCC_OP_tensor_before:
    case TCC_OP_tensor_rescale:
    case TCC_OP_tensor_index:
    case TCC_OP_tensor_dim:
    case TCC_OP_func_return:
    case TCC_OP_arith_const: return true;
    case TCC_OP_tensor_write: return is_written_in_rows(s, op);
    case TCC_OP_tensor_read: return reads_tiles(s, op, in.other);
    default: return tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    }
}

/* Whether terms are known to exist before anything is reduced. */
static bool is_known_before(const search *s, tcc_value *inside)
{
    tcc_map of = tcc_slice_of(s->arena, 1, &inside);
    bool is = true;
    for (const tcc_op *op = s->f->body->first; op && is; op = op->next)
        is = !tcc_is_reduction(op) || !tcc_map_get(&of, op);
    return is && !indices_of(s, inside->type).others;
}

/* Of a function in which terms over j are reduced to rows of this type. */
static bool find(const tcc_func *f, const char *j, const tcc_type *rows, search *s, tcc_stream *out)
{
    *out = (tcc_stream){.j = j, .extent = tcc_index_extent(f, j), .rows = rows};
    *s = (search){.f = f, .arena = f->ir->arena, .out = out, .j = {1, {j}}};
    s->operands = TCC_MAP(s->arena);
    bool is = (out->extent.name || out->extent.size > 0) && find_names(s) && find_reductions(s) && find_rows(s) &&
              (!out->inside || is_known_before(s, out->inside));
    for (const tcc_op *op = f->body->first; op && is; op = op->next)
        is = is_op_of_stream(s, op);
    return is && tcc_stream_takes_one_sweep(s->arena, f, &s->j);
}

bool tcc_stream_find(const tcc_func *f, tcc_stream *out)
{
    const char *j = tcc_attr_str(&f->attrs, "stream", NULL);
    const tcc_type *rows = NULL;
    search s;
    for (const tcc_op *op = j ? f->body->first : NULL; op; op = op->next)
        if (tcc_is_reduction(op) && over(op) && tcc_index_same(over(op), j) &&
            (!rows || op->results[0].type->rank < rows->rank))
            rows = op->results[0].type;
    return rows && find(f, j, rows, &s, out);
}

/* ---- one name ---------------------------------------------------------------------------------------- */

static const char *renamed(const search *s, const char *x)
{
    return is_j(s, x) ? s->out->j : x;
}

static void rename_op(const search *s, tcc_op *op)
{
    tcc_ir *ir = s->f->ir;
    const tcc_type *field = op->n_results ? op->results[0].type : NULL;
    const char *name = tcc_attr_str(&op->attrs, "name", NULL);
    for (size_t n = 1; n < s->j.n && tcc_accessed_tensor(op); n++)
        tcc_access_rename(op, s->j.of[n], s->out->j);
    if (tcc_is_reduction(op) && is_j(s, over(op)))
        tcc_attr_set_strs(ir, &op->attrs, "over", 1, &s->out->j);
    if (op->code == TCC_OP_tensor_index)
        tcc_attr_set_str(ir, &op->attrs, "name", renamed(s, name));
    if (!field || field->kind != TCC_KIND_field)
        return;
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, field->rank);
    for (unsigned d = 0; d < field->rank; d++) {
        dims[d] = field->dims[d];
        dims[d].name = renamed(s, dims[d].name);
    }
    op->results[0].type = tcc_type_get(ir, TCC_KIND_field, field->elem, field->rank, dims);
}

bool tcc_streams_recognize(tcc_func *f)
{
    tcc_stream out;
    search s;
    bool is = false;
    for (const tcc_op *op = tcc_is_naive(f) ? NULL : f->body->first; op && !is; op = op->next)
        is = tcc_is_reduction(op) && over(op) && find(f, over(op), op->results[0].type, &s, &out);
    if (!is)
        return false;
    for (tcc_op *op = f->body->first; op; op = op->next)
        rename_op(&s, op);
    tcc_attr_set_str(f->ir, &f->attrs, "stream", out.j);
    return true;
}

bool tcc_streams_can_be_tiled(const tcc_target *target)
{
    (void)target;
    return false;
}
