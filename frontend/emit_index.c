/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/emit_index.h"

#include <string.h>

#include "frontend/sema.h"
#include "support/extent.h"

/* ---- index expressions ---------------------------------------------------------------------- */

/* x where an index that does not begin at 0 is counted from its first value, as in the IR. */
static const tcc_index_expr *from_first(tcc_ir *ir, const tcc_ast_kernel *kernel, const tcc_index_expr *x)
{
    for (size_t i = 0; x && i < kernel->n_indices; i++) {
        const tcc_ast_index *index = &kernel->indices[i];
        if (!index->least)
            continue;
        const tcc_index_expr *from = tcc_index_add(ir, tcc_index_name(ir, index->name), index->least);
        x = tcc_index_replace(ir, x, TCC_FACTOR_INDEX, index->name, from);
    }
    return x;
}

static tcc_split split(tcc_ir *ir, const tcc_ast_kernel *kernel, tcc_ast_expr *e)
{
    tcc_split s = {tcc_index_number(ir, 0), e};
    while (!s.rest->at && s.rest->kind == TCC_AST_APPLY) {
        bool subtracts = s.rest->function->code == TCC_OP_arith_sub;
        if (!subtracts && s.rest->function->code != TCC_OP_arith_add)
            break;
        tcc_ast_expr *x = s.rest->args[0], *y = s.rest->args[1];
        const tcc_ast_expr *part = y->at ? y : subtracts ? NULL : x;
        const tcc_index_expr *sum = !part       ? NULL
                                    : subtracts ? tcc_index_sub(ir, s.at, part->at)
                                                : tcc_index_add(ir, s.at, part->at);
        if (!sum)
            break;
        s = (tcc_split){sum, part == y ? x : y};
    }
    const tcc_index_expr *all = from_first(ir, kernel, tcc_index_add(ir, s.at, s.rest->at));
    if (all)
        return (tcc_split){all, NULL};
    s.at = from_first(ir, kernel, s.at);
    return s.at ? s : (tcc_split){tcc_index_number(ir, 0), e};
}

tcc_value *tcc_emit_binary(tcc_builder *b, tcc_opcode code, tcc_value *x, tcc_value *y, const char *pred)
{
    tcc_value *operands[] = {x, y};
    const tcc_type *type = tcc_emit_joined_type(b->func->ir, pred ? TCC_i1 : x->type->elem, 2, operands);
    tcc_op *op = tcc_op_create(b, code, 2, operands, 1, &type);
    if (pred)
        tcc_attr_set_str(b->func->ir, &op->attrs, "pred", pred);
    return &op->results[0];
}

static tcc_value *emit_name(tcc_builder *b, const tcc_index_factor *f)
{
    tcc_ir *ir = b->func->ir;
    tcc_dim index = {.name = f->name};
    tcc_value *v = f->kind == TCC_FACTOR_DIM
                       ? TCC_EMIT(b, tensor_dim, tcc_type_scalar(ir, TCC_i32), NULL)
                       : TCC_EMIT(b, tensor_index, tcc_type_get(ir, TCC_KIND_field, TCC_i32, 1, &index), NULL);
    tcc_attr_set_str(ir, &v->def->attrs, "name", f->name);
    return v;
}

static tcc_value *emit_at(tcc_builder *b, const tcc_index_expr *x);

static tcc_value *emit_quotient(tcc_builder *b, const tcc_index_factor *f)
{
    tcc_value *by = emit_at(b, f->by), *of = emit_at(b, f->of);
    return tcc_emit_binary(b, TCC_OP_arith_floor_div, of, by, NULL);
}

static tcc_value *emit_at(tcc_builder *b, const tcc_index_expr *x)
{
    tcc_value *sum = NULL;
    for (size_t i = 0; i < x->n; i++) {
        const tcc_index_term *t = &x->terms[i];
        tcc_value *term = t->number == 1 && t->n ? NULL : tcc_build_i32(b, t->number);
        for (size_t k = 0; k < t->n; k++) {
            const tcc_index_factor *f = &t->factors[k];
            tcc_value *v = f->kind == TCC_FACTOR_QUOTIENT ? emit_quotient(b, f) : emit_name(b, f);
            term = term ? tcc_emit_binary(b, TCC_OP_arith_mul, v, term, NULL) : v;
        }
        sum = sum ? tcc_emit_binary(b, TCC_OP_arith_add, sum, term, NULL) : term;
    }
    return sum ? sum : tcc_build_i32(b, 0);
}

tcc_value *tcc_emit_whole(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_index_expr *x)
{
    const tcc_index_expr *from = from_first(b->func->ir, kernel, x);
    return emit_at(b, from ? from : x);
}

/* ---- what is known -------------------------------------------------------------------------- */

/* Where an expression is computed: for these indices, each of which has a value. */
typedef struct place {
    tcc_ir *ir;
    const tcc_ast_kernel *kernel;
    uint64_t indices;
} place;

static bool look_up(void *user, tcc_index_factor_kind kind, const char *name, tcc_index_range *out)
{
    const place *p = user;
    *out = (tcc_index_range){0, TCC_MAX_EXTENT};
    for (size_t i = 0; i < p->kernel->n_indices; i++) {
        const tcc_ast_index *index = &p->kernel->indices[i];
        if (kind == TCC_FACTOR_INDEX && index->name == name)
            out->most = (index->extent->size ? index->extent->size : TCC_MAX_EXTENT) - 1;
        if (kind == TCC_FACTOR_DIM && index->bit & p->indices && index->extent->name.text == name)
            out->least = 1;
    }
    return true;
}

/* Whether x is 0 or more wherever all indices are within their extents: at the end of each towards which it falls. */
static bool is_never_negative(place *p, const tcc_index_expr *x)
{
    tcc_index_range r;
    for (size_t i = 0; x && i < p->kernel->n_indices; i++) {
        const tcc_ast_index *index = &p->kernel->indices[i];
        const tcc_index_expr *end = NULL;
        int direction = index->bit & p->indices
                            ? tcc_index_direction(p->ir, x, TCC_FACTOR_INDEX, index->name, look_up, p)
                            : 0;
        if (direction > 0)
            end = tcc_index_number(p->ir, 0);
        else if (direction < 0)
            end = tcc_index_sub(p->ir, index->extent->at, tcc_index_number(p->ir, 1));
        const tcc_index_expr *there = end ? tcc_index_replace(p->ir, x, TCC_FACTOR_INDEX, index->name, end) : NULL;
        x = there ? there : x;
    }
    return x && tcc_index_bounds(p->ir, x, look_up, p, &r) && r.least >= 0;
}

/* Whether a comparison always holds. */
static bool always_holds(place *p, const tcc_ast_expr *e)
{
    const tcc_index_expr *x = from_first(p->ir, p->kernel, e->args[0]->at);
    const tcc_index_expr *y = from_first(p->ir, p->kernel, e->args[1]->at);
    const char *pred = e->function->pred;
    if (!pred || !x || !y || *pred == 'e' || *pred == 'n')
        return false;
    const tcc_index_expr *more = *pred == 'l' ? tcc_index_sub(p->ir, y, x) : tcc_index_sub(p->ir, x, y);
    return is_never_negative(p, pred[1] == 'e' ? more : tcc_index_sub(p->ir, more, tcc_index_number(p->ir, 1)));
}

/* ---- what is wanted ------------------------------------------------------------------------- */

static bool is_conjunction(const tcc_ast_expr *e)
{
    return e->kind == TCC_AST_APPLY && e->function->code == TCC_OP_arith_and;
}

/* The comparisons of a reduction's domains that do not always hold. */
static tcc_ast_exprs find_conditions(place *p, const tcc_ast_expr *reduce)
{
    tcc_ast_exprs left = {0}, found = {0};
    for (size_t i = reduce->n_args; i-- > 1;)
        TCC_PUSH(p->ir->arena, &left, reduce->args[i]);
    while (left.len) {
        tcc_ast_expr *e = left.data[--left.len];
        if (is_conjunction(e)) {
            TCC_PUSH(p->ir->arena, &left, e->args[1]);
            TCC_PUSH(p->ir->arena, &left, e->args[0]);
        } else if (!always_holds(p, e)) {
            TCC_PUSH(p->ir->arena, &found, e);
        }
    }
    return found;
}

/* Where a reduction's terms are. */
static place place_of(tcc_ir *ir, const tcc_ast_kernel *kernel, const tcc_ast_expr *reduce)
{
    place p = {ir, kernel, 0};
    for (size_t i = 0; i < reduce->n_args; i++)
        p.indices |= reduce->args[i]->free;
    return p;
}

static void want_operands(tcc_ir *ir, const tcc_ast_kernel *kernel, const tcc_ast_expr *e)
{
    if (e->kind == TCC_AST_APPLY)
        for (size_t i = 0; i < e->n_args; i++)
            e->args[i]->wanted = true;
    for (size_t i = 0; e->kind == TCC_AST_READ && i < e->n_args; i++) {
        tcc_split s = split(ir, kernel, e->args[i]);
        if (s.rest)
            s.rest->wanted = true;
    }
    if (e->kind != TCC_AST_REDUCE)
        return;
    place p = place_of(ir, kernel, e);
    tcc_ast_exprs conditions = find_conditions(&p, e);
    e->args[0]->wanted = true;
    for (size_t i = 0; i < conditions.len; i++)
        conditions.data[i]->wanted = true;
}

void tcc_emit_want(tcc_ir *ir, const tcc_ast_kernel *kernel, const tcc_ast_stmt *stmt)
{
    stmt->exprs.data[stmt->exprs.len - 1]->wanted = true;
    for (size_t i = stmt->exprs.len; i--;)
        if (stmt->exprs.data[i]->wanted)
            want_operands(ir, kernel, stmt->exprs.data[i]);
}

/* ---- reads ------------------------------------------------------------------------------------ */

static bool has_index(const tcc_value *v, const char *name)
{
    bool has = false;
    for (unsigned d = 0; v && v->type->kind == TCC_KIND_field && d < v->type->rank; d++)
        has |= v->type->dims[d].name == name;
    return has;
}

/* The indices of a coordinate. It may have fewer than what it was written as, `n - n + 1`. */
static void add_dims(tcc_dim *dims, unsigned *rank, const tcc_ast_kernel *kernel, const tcc_split *at)
{
    for (size_t i = 0; i < kernel->n_indices; i++) {
        const char *name = kernel->indices[i].name;
        bool there = !tcc_index_has(at->at, TCC_FACTOR_INDEX, name) && !has_index(at->rest ? at->rest->value : NULL, name);
        for (unsigned d = 0; d < *rank && !there; d++)
            there = dims[d].name == name;
        if (!there)
            dims[(*rank)++] = (tcc_dim){.name = name};
    }
}

tcc_value *tcc_emit_read_at(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_expr *e)
{
    tcc_ir *ir = b->func->ir;
    size_t n = e->n_args, n_loaded = 0;
    tcc_dim dims[TCC_MAX_INDICES];
    unsigned rank = 0;
    tcc_attr *map = TCC_NEW_ARRAY(ir->arena, tcc_attr, n);
    tcc_value **operands = TCC_NEW_ARRAY(ir->arena, tcc_value *, n + 1);
    int64_t *loaded = TCC_NEW_ARRAY(ir->arena, int64_t, n);
    operands[0] = e->param->value;
    for (size_t d = 0; d < n; d++) {
        tcc_split s = split(ir, kernel, e->args[d]);
        bool is_number = !s.rest && tcc_index_plain(s.at) && !e->indices.data[d].index; /* it may have another extent */
        map[d] = tcc_attr_of_index(is_number ? tcc_index_number(ir, 0) : s.at);
        add_dims(dims, &rank, kernel, &s);
        if (!s.rest && !is_number)
            continue;
        loaded[n_loaded++] = (int64_t)d;
        operands[n_loaded] = is_number ? emit_at(b, s.at) : s.rest->value;
    }
    const tcc_type *type = tcc_type_get(ir, TCC_KIND_field, e->param->elem, rank, dims);
    tcc_op *op = tcc_op_create(b, TCC_OP_tensor_read, n_loaded + 1, operands, 1, &type);
    tcc_attr_set(ir, &op->attrs, "map", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {map, n}}, (tcc_loc){0, 0});
    if (n_loaded)
        tcc_attr_set_ints(ir, &op->attrs, "loaded", n_loaded, loaded);
    return &op->results[0];
}

/* ---- which terms there are -------------------------------------------------------------------- */

static void add_condition(tcc_builder *b, tcc_value **all, tcc_value *v)
{
    *all = *all ? tcc_emit_binary(b, TCC_OP_arith_and, *all, v, NULL) : v;
}

/* Adds that a read is inside its tensor, as far as that is not known. */
static void add_bounds(tcc_builder *b, place *p, uint64_t over, const tcc_ast_expr *read, tcc_emit_conditions *c)
{
    for (size_t d = 0; d < read->n_args; d++) {
        tcc_split s = split(p->ir, p->kernel, read->args[d]);
        if (read->indices.data[d].index)
            continue; /* it runs along the dimension */
        const tcc_ast_index *index = read->stmt ? tcc_sema_definition(read->stmt)->indices.data[d].index : NULL;
        const tcc_index_expr *end = index ? index->extent->at : read->param->dims.data[d].at;
        if (index && index->least)
            s.at = tcc_index_sub(p->ir, s.at, index->least);
        const tcc_index_expr *last = tcc_index_sub(p->ir, end, tcc_index_number(p->ir, 1));
        bool low = s.rest || !is_never_negative(p, s.at);
        bool high = s.rest || !is_never_negative(p, tcc_index_sub(p->ir, last, s.at));
        tcc_value **to = read->args[d]->free & over ? &c->of_terms : &c->of_all;
        tcc_value *at = low || high ? emit_at(b, s.at) : NULL;
        int64_t number;
        if (at && s.rest)
            at = tcc_index_is_number(s.at, &number) && !number
                     ? s.rest->value
                     : tcc_emit_binary(b, TCC_OP_arith_add, s.rest->value, at, NULL);
        if (low)
            add_condition(b, to, tcc_emit_binary(b, TCC_OP_arith_cmp, at, tcc_build_i32(b, 0), "ge"));
        if (high)
            add_condition(b, to, tcc_emit_binary(b, TCC_OP_arith_cmp, at, emit_at(b, end), "lt"));
    }
}

tcc_value *tcc_emit_is_inside(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_expr *read)
{
    tcc_emit_conditions c = {0};
    place p = {b->func->ir, kernel, read->free};
    add_bounds(b, &p, 0, read, &c);
    return c.of_all;
}

/* Whether the i-th expression of a statement is of the terms of a reduction, and of none inside it. */
static bool is_of_terms(const tcc_ast_stmt *stmt, size_t i, const tcc_ast_expr *reduce)
{
    size_t r = i + 1;
    while (stmt->exprs.data[r]->kind != TCC_AST_REDUCE || stmt->exprs.data[r]->first > i)
        r++;
    return stmt->exprs.data[r] == reduce;
}

/* Whether both operands of a product have all indices of a field. */
static bool are_in_factors(const tcc_ast_kernel *kernel, const tcc_ast_expr *product, const tcc_value *field)
{
    bool all = true;
    for (size_t i = 0; i < kernel->n_indices; i++) {
        const tcc_ast_index *index = &kernel->indices[i];
        all &= !has_index(field, index->name) || product->args[0]->free & product->args[1]->free & index->bit;
    }
    return all;
}

/* There is a term for each value of an index that the terms lack, and conditions that always hold. */
static void add_index(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_value *terms, const tcc_ast_index *index,
                      tcc_emit_conditions *c)
{
    if (has_index(terms, index->name) || has_index(c->of_terms, index->name))
        return;
    const tcc_index_expr *first = index->least ? index->least : tcc_index_number(b->func->ir, 0);
    tcc_value *at = tcc_emit_whole(b, kernel, tcc_index_name(b->func->ir, index->name));
    add_condition(b, &c->of_terms, tcc_emit_binary(b, TCC_OP_arith_cmp, at, emit_at(b, first), "ge"));
}

tcc_emit_conditions tcc_emit_conditions_of(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_stmt *stmt,
                                           const tcc_ast_expr *reduce)
{
    tcc_emit_conditions c = {0};
    place p = place_of(b->func->ir, kernel, reduce);
    uint64_t over = 0;
    for (size_t i = 0; i < reduce->indices.len; i++)
        over |= reduce->indices.data[i].index->bit;
    for (size_t i = reduce->first;; i++) {
        const tcc_ast_expr *e = stmt->exprs.data[i];
        if (e->kind == TCC_AST_READ && e->wanted && is_of_terms(stmt, i, reduce))
            add_bounds(b, &p, over, e, &c);
        if (e == reduce->args[0])
            break;
    }
    tcc_ast_exprs conditions = find_conditions(&p, reduce);
    for (size_t i = 0; i < conditions.len; i++)
        add_condition(b, conditions.data[i]->free & over ? &c.of_terms : &c.of_all, conditions.data[i]->value);
    for (size_t i = 0; i < reduce->indices.len; i++)
        add_index(b, kernel, reduce->args[0]->value, reduce->indices.data[i].index, &c);
    c.in_factors = c.of_terms && reduce->reduction == TCC_REDUCTION_SUM && tcc_sema_is_product(reduce->args[0]) &&
                   are_in_factors(kernel, reduce->args[0], c.of_terms);
    return c;
}
