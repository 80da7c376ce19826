/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "frontend/sema.h"

void tcc_sema_unsupported(tcc_sema *s, tcc_loc loc, const char *what)
{
    tcc_error(s->diag, TCC_ERR_UNSUPPORTED, loc, "not supported yet: %s", what);
}

/* ---- indices --------------------------------------------------------------------------- */

static tcc_ast_index *find_index(tcc_ast_kernel *kernel, const char *name)
{
    for (size_t i = 0; i < kernel->n_indices; i++)
        if (kernel->indices[i].name == name)
            return &kernel->indices[i];
    return NULL;
}

bool tcc_sema_has_room_for_index(tcc_sema *s, tcc_loc loc)
{
    if (s->kernel->n_indices < TCC_MAX_INDICES)
        return true;
    tcc_error(s->diag, TCC_ERR_UNSUPPORTED, loc, "more than %d indices in a kernel", TCC_MAX_INDICES);
    return false;
}

bool tcc_sema_has_room_for_exprs(tcc_sema *s, tcc_loc loc)
{
    if (s->kernel->n_exprs <= TCC_MAX_EXPRS)
        return true;
    tcc_error(s->diag, TCC_ERR_UNSUPPORTED, loc, "more than %d operations, reads and numbers in a kernel",
              TCC_MAX_EXPRS);
    return false;
}

/* Tensors, scalars and constants are not indices; the names of dimensions may be. */
static bool can_be_index(tcc_sema *s, const char *name, tcc_loc loc)
{
    const tcc_decl *d = tcc_sema_lookup(s, name);
    if (!d || d->kind == TCC_DECL_DIM || d->kind == TCC_DECL_UNDEFINED)
        return true;
    tcc_error(s->diag, TCC_ERR_TYPE, loc, "'%s' is not an index", name);
    tcc_note(s->diag, d->loc, "'%s' is defined here", name);
    return false;
}

tcc_ast_index *tcc_sema_index(tcc_sema *s, const char *name, tcc_loc loc)
{
    tcc_ast_kernel *kernel = s->kernel;
    if (!can_be_index(s, name, loc))
        return NULL;
    tcc_ast_index *index = find_index(kernel, name);
    if (index)
        return index;
    if (!tcc_sema_has_room_for_index(s, loc))
        return NULL;
    index = &kernel->indices[kernel->n_indices];
    *index = (tcc_ast_index){.name = name, .loc = loc, .bit = UINT64_C(1) << kernel->n_indices++};
    return index;
}

bool tcc_sema_indices(tcc_sema *s, tcc_ast_indices *uses, const char *list, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < uses->len; i++) {
        tcc_ast_index_use *use = &uses->data[i];
        use->index = tcc_sema_index(s, use->text, use->loc);
        if (!use->index)
            return false;
        if (*out & use->index->bit) {
            tcc_error(s->diag, TCC_ERR_TYPE, use->loc, "index '%s' occurs twice %s", use->text, list);
            return false;
        }
        *out |= use->index->bit;
    }
    return true;
}

static bool dims_agree(const tcc_ast_dim *a, const tcc_ast_dim *b)
{
    return a->invalid || b->invalid ||
           (a->size || b->size ? a->size == b->size : a->name.text == b->name.text);
}

/* How messages call the values of an index, and what gives it them: a parameter, or where there is none its bounds. */
static const char *range_text(tcc_sema *s, const tcc_ast_index *index)
{
    const char *extent = tcc_sema_dim_text(s, index->extent);
    if (!index->least)
        return extent;
    int64_t number;
    tcc_ast_dim least = {0};
    if (tcc_index_is_number(index->least, &number))
        return tcc_arena_printf(s->arena, "%s values from %lld on", extent, (long long)number);
    return tcc_sema_dim_of(s, index->least, &least)
               ? tcc_arena_printf(s->arena, "%s values from %s on", extent, tcc_sema_dim_text(s, &least))
               : extent;
}

static const char *place_text(tcc_sema *s, const tcc_ast_param *from)
{
    return from ? tcc_arena_printf(s->arena, "'%s'", from->name.text) : "its domain";
}

bool tcc_sema_bind(tcc_sema *s, const tcc_ast_param *param, tcc_loc access,
                   const tcc_ast_indices *uses)
{
    if (uses->len != param->dims.len) {
        tcc_error(s->diag, TCC_ERR_TYPE, access, "'%s' has %zu dimension%s, not %zu",
                  param->name.text, param->dims.len, param->dims.len == 1 ? "" : "s", uses->len);
        tcc_sema_note_param(s, param);
        return false;
    }
    for (size_t i = 0; i < uses->len; i++) {
        const tcc_ast_index *index = uses->data[i].index;
        const tcc_ast_dim *dim = &param->dims.data[i], *extent = index ? index->extent : dim;
        const tcc_ast_param *from = index && index->extent ? index->from : param;
        for (size_t k = 0; k < i && !extent; k++) /* where an index has two of its dimensions */
            extent = uses->data[k].index == index ? &param->dims.data[k] : NULL;
        if (!extent || (dims_agree(extent, dim) && !(index && index->least)))
            continue;
        tcc_error(s->diag, TCC_ERR_TYPE, uses->data[i].loc, "index '%s' ranges over %s in %s and over %s in '%s'",
                  index->name, index->extent ? range_text(s, index) : tcc_sema_dim_text(s, extent),
                  place_text(s, from), tcc_sema_dim_text(s, dim), param->name.text);
        tcc_sema_note_param(s, param);
        return false;
    }
    for (size_t i = 0; i < uses->len; i++)
        if (uses->data[i].index && !uses->data[i].index->extent) {
            uses->data[i].index->extent = &param->dims.data[i];
            uses->data[i].index->from = param;
        }
    return true;
}

/* ---- names ----------------------------------------------------------------------------- */

/* A statement that reads what it gives a value. */
static void report_recurrence(tcc_sema *s, tcc_ast_name name, const tcc_ast_stmt *stmt)
{
    const char *index = stmt->indices.len ? stmt->indices.data[0].text : "i";
    tcc_error(s->diag, TCC_ERR_TYPE, name.loc,
              "'%s' is read in the statement that gives it its values; what comes before an element is reduced over a "
              "domain, as in 'index j: j <= %s;' and 'sum(j) x[j]'", name.text, index);
}

/* Reports a name that nothing defines; later uses of it are silent. */
static void report_undefined(tcc_sema *s, const tcc_ast_expr *e, const tcc_ast_stmt *stmt)
{
    tcc_ast_name name = e->name;
    if (e->kind == TCC_AST_READ && tcc_names_get(&s->indices, name.text)) {
        tcc_error(s->diag, TCC_ERR_TYPE, name.loc, "'%s' is an index and takes none", name.text);
        return;
    }
    if (name.text == stmt->name.text) {
        report_recurrence(s, name, stmt);
        return;
    }
    tcc_spelling spelling = {.wanted = name.text};
    tcc_spelling_try_all(&spelling, &s->scope);
    tcc_spelling_try_all(&spelling, &s->consts);
    tcc_error(s->diag, TCC_ERR_TYPE, name.loc, "undefined name '%s'%s", name.text,
              tcc_spelling_hint(s->arena, &spelling));
    for (size_t i = 0; i < s->kernel->stmts.len; i++)
        if (s->kernel->stmts.data[i]->name.text == name.text) {
            tcc_note(s->diag, s->kernel->stmts.data[i]->name.loc,
                     "'%s' is defined here, after its use", name.text);
            break;
        }
    tcc_sema_declare(s, &s->scope, TCC_DECL_UNDEFINED, name);
}

static bool fits_i32(const tcc_index_expr *x)
{
    bool fits = true;
    for (size_t t = 0; t < x->n && fits; t++) {
        fits = x->terms[t].number <= INT32_MAX && x->terms[t].number >= -(int64_t)INT32_MAX;
        for (size_t f = 0; f < x->terms[t].n && fits; f++)
            if (x->terms[t].factors[f].kind == TCC_FACTOR_QUOTIENT)
                fits = fits_i32(x->terms[t].factors[f].of) && fits_i32(x->terms[t].factors[f].by);
    }
    return fits;
}

bool tcc_sema_check_reach(tcc_sema *s, const tcc_ast_stmt *stmt, const tcc_ast_expr *e, const char *what)
{
    for (size_t i = e->first;; i++) {
        const tcc_ast_expr *part = stmt->exprs.data[i];
        bool is_whole = part->type == TCC_AST_INT || part->type == TCC_AST_WHOLE;
        if (is_whole && part->at && !fits_i32(part->at)) {
            tcc_error(s->diag, TCC_ERR_TYPE, part->name.loc, "%s is an i32, and this has a number above %d", what,
                      INT32_MAX);
            return false;
        }
        if (part == e)
            return true;
    }
}

/* The coordinates of a read: whole numbers, which may be indices. */
static bool check_coordinates(tcc_sema *s, tcc_ast_expr *e, const tcc_ast_stmt *stmt)
{
    bool valid = true;
    for (size_t i = 0; i < e->n_args; i++) {
        tcc_ast_expr *arg = e->args[i];
        tcc_ast_index_use *use = &e->indices.data[i];
        e->free |= arg->free;
        use->index = arg->kind == TCC_AST_NAME && !e->of_domain ? arg->index : NULL;
        use->text = use->index ? use->index->name : NULL;
        bool is_open = arg->type <= TCC_AST_WHOLE, is_whole = arg->type && tcc_sema_resolve(s, stmt, arg, TCC_AST_INT);
        if (!is_open && !is_whole && !tcc_sema_report_large(s, stmt, arg))
            tcc_error(s->diag, TCC_ERR_TYPE, arg->name.loc,
                      "a coordinate is a whole number: convert it, as in 'i32(…)'");
        valid &= is_whole && tcc_sema_check_reach(s, stmt, arg, "a coordinate");
    }
    return valid;
}

static bool check_read_of_param(tcc_sema *s, tcc_ast_expr *e, tcc_ast_param *param, const tcc_ast_stmt *stmt)
{
    const char *name = param->name.text;
    e->param = param;
    e->type = tcc_sema_type_of(param->elem);
    if (param->role == TCC_ROLE_OUT) {
        if (param == stmt->output)
            report_recurrence(s, e->name, stmt);
        else
            tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "output '%s' is read before it is written", name);
        return false;
    }
    param->is_read = true;
    if (param->role == TCC_ROLE_SCALAR && e->n_args) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "'%s' is a scalar and takes no indices",
                  name);
        return false;
    }
    if (param->dims.len && !e->indices.len) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "tensor '%s' needs %zu ind%s", name,
                  param->dims.len, param->dims.len == 1 ? "ex" : "ices");
        tcc_sema_note_param(s, param);
        return false;
    }
    return check_coordinates(s, e, stmt) && tcc_sema_bind(s, param, e->name.loc, &e->indices);
}

static void share_extent(tcc_ast_index *index, const tcc_ast_index *other)
{
    if (!index->extent) {
        index->extent = other->extent;
        index->from = other->from;
        index->least = other->least;
    }
}

/* An index takes the place of one of a definition: both range over one dimension. */
static bool bind_to_index(tcc_sema *s, const tcc_ast_index_use *use, tcc_ast_index *index, const tcc_ast_stmt *stmt)
{
    if (!use->index)
        return true; /* a coordinate that is more */
    tcc_sema_bound(s, index);
    share_extent(use->index, index);
    share_extent(index, use->index);
    if (!index->extent || (dims_agree(use->index->extent, index->extent) && use->index->least == index->least))
        return true;
    tcc_error(s->diag, TCC_ERR_TYPE, use->loc, "index '%s' ranges over %s in %s and over %s in '%s'", use->text,
              range_text(s, use->index), place_text(s, use->index->from), range_text(s, index), stmt->name.text);
    tcc_note(s->diag, stmt->name.loc, "'%s' is defined here", stmt->name.text);
    return false;
}

static bool check_read_of_stmt(tcc_sema *s, tcc_ast_expr *e, tcc_ast_stmt *stmt, const tcc_ast_stmt *in)
{
    e->stmt = stmt;
    stmt->used = true;
    if (!stmt->valid)
        return false;
    if (stmt->indices.len != e->indices.len) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "'%s' is defined with %zu ind%s, not %zu",
                  e->name.text, stmt->indices.len, stmt->indices.len == 1 ? "ex" : "ices",
                  e->indices.len);
        tcc_note(s->diag, stmt->name.loc, "'%s' is defined here", e->name.text);
        return false;
    }
    if (!check_coordinates(s, e, in))
        return false;
    for (size_t i = 0; i < stmt->indices.len; i++)
        if (!bind_to_index(s, &e->indices.data[i], stmt->indices.data[i].index, stmt))
            return false;
    e->stmt = tcc_sema_renamed(s, stmt, in, e);
    e->type = stmt->exprs.data[stmt->exprs.len - 1]->type;
    return true;
}

/* An index as a number, or between brackets. */
static bool check_index(tcc_sema *s, tcc_ast_expr *e)
{
    e->index = tcc_sema_index(s, e->name.text, e->name.loc);
    e->free = e->index ? e->index->bit : 0;
    e->type = TCC_AST_WHOLE;
    return e->index;
}

/* Whether a name is an index: one that is an index for sure, so that misspelled names are found, also, alone between
 * brackets, if a dimension has the name, too; there whatever nothing else is. */
static bool is_index(const tcc_sema *s, const tcc_ast_expr *e, const tcc_decl *d)
{
    bool for_sure = tcc_names_get(&s->indices, e->name.text);
    bool may_be = !d || (d->kind == TCC_DECL_DIM && e->coordinate);
    return e->kind == TCC_AST_NAME && may_be && (for_sure || (!d && e->coordinate));
}

/* Whether a name alone between brackets may be what it is declared as: a whole number. */
static bool may_be_coordinate(const tcc_decl *d)
{
    const tcc_ast_stmt *stmt = d->stmt;
    switch (d->kind) {
    case TCC_DECL_PARAM: return d->param->role == TCC_ROLE_SCALAR && tcc_sema_type_of(d->param->elem) == TCC_AST_INT;
    case TCC_DECL_STMT: return !stmt->valid || stmt->exprs.data[stmt->exprs.len - 1]->type == TCC_AST_INT;
    default: return true;
    }
}

/* A name, with or without brackets. */
static bool check_name(tcc_sema *s, tcc_ast_expr *e, const tcc_ast_stmt *stmt)
{
    const tcc_decl *d = tcc_sema_lookup(s, e->name.text);
    if (is_index(s, e, d))
        return check_index(s, e);
    if (!d) {
        report_undefined(s, e, stmt);
        return false;
    }
    if (e->coordinate && !may_be_coordinate(d))
        return can_be_index(s, e->name.text, e->name.loc);
    switch (d->kind) {
    case TCC_DECL_PARAM:
        return d->param->written ? check_read_of_stmt(s, e, d->param->written, stmt)
                                 : check_read_of_param(s, e, d->param, stmt);
    case TCC_DECL_STMT: return check_read_of_stmt(s, e, d->stmt, stmt);
    case TCC_DECL_UNDEFINED: return false;
    case TCC_DECL_DIM:
    case TCC_DECL_CONST: break;
    }
    if (e->n_args) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "'%s' is a number and takes no indices",
                  e->name.text);
        return false;
    }
    if (d->kind == TCC_DECL_DIM) {
        e->dim = tcc_names_get(&s->kernel->dims, e->name.text);
        e->type = TCC_AST_WHOLE;
        return e->dim && !e->dim->invalid;
    }
    e->kind = TCC_AST_NUMBER;
    e->type = TCC_AST_LITERAL;
    e->number = d->constant->number;
    return true;
}

/* ---- reductions -------------------------------------------------------------------------- */

const tcc_ast_stmt *tcc_sema_definition(const tcc_ast_stmt *stmt)
{
    return stmt->of ? stmt->of : stmt;
}

const tcc_ast_expr *tcc_sema_meaning(const tcc_ast_expr *e, const tcc_ast_param **stored)
{
    *stored = NULL;
    while (e->stmt && !*stored) {
        const tcc_ast_stmt *stmt = tcc_sema_definition(e->stmt);
        *stored = stmt->output;
        e = stmt->exprs.data[stmt->exprs.len - 1];
    }
    return e;
}

bool tcc_sema_is_product(const tcc_ast_expr *e)
{
    return e->kind == TCC_AST_APPLY && e->function->code == TCC_OP_arith_mul;
}

/* Whether a sum is of products of two operands that both have what is summed. */
static bool is_contraction(const tcc_ast_expr *sum, uint64_t over)
{
    const tcc_ast_expr *term = sum->args[0];
    return sum->reduction == TCC_REDUCTION_SUM && tcc_sema_is_product(term) && (term->args[0]->free & over) == over &&
           (term->args[1]->free & over) == over;
}

/* What a reduction's terms and domains vary with. */
static uint64_t varies_with(const tcc_ast_expr *e)
{
    uint64_t free = 0;
    for (size_t i = 0; i < e->n_args; i++)
        free |= e->args[i]->free;
    return free;
}

/* Each index is one of the term's or of its domain. An index of the same name around the reduction is another one. */
static bool check_over(tcc_sema *s, const tcc_ast_expr *e)
{
    bool sums = e->reduction == TCC_REDUCTION_SUM;
    for (size_t i = 0; i < e->indices.len; i++) {
        const tcc_ast_index_use *use = &e->indices.data[i];
        if (varies_with(e) & use->index->bit)
            continue;
        tcc_error(s->diag, TCC_ERR_TYPE, use->loc, "index '%s' is %s and does not occur in the %s", use->text,
                  sums ? "summed" : "reduced", sums ? "sum" : "term");
        return false;
    }
    return true;
}

static bool check_reduction(tcc_sema *s, tcc_ast_expr *e, const tcc_ast_stmt *stmt)
{
    uint64_t over;
    for (size_t i = 0; i < e->n_args; i++)
        if (e->args[i]->type == TCC_AST_ERROR)
            return false;
    if (!tcc_sema_indices(s, &e->indices, e->reduction == TCC_REDUCTION_SUM ? "in a sum" : "in a reduction", &over) ||
        !check_over(s, e))
        return false;
    e->free = varies_with(e) & ~over;
    for (size_t i = 0; i < e->indices.len; i++)
        e->indices.data[i].index->reduced = true;
    if (!tcc_sema_reduction_type(s, stmt, e, is_contraction(e, over)))
        return false;
    if (!tcc_reduction_is_place(e->reduction))
        return true;
    e->type = TCC_AST_INT;
    e->accumulator_elem = TCC_i32;
    if (e->indices.len > 1)
        tcc_error(s->diag, TCC_ERR_TYPE, e->indices.data[1].loc, "'%s' is over one index, not %zu", e->name.text,
                  e->indices.len);
    return e->indices.len == 1;
}

/* ---- expressions ----------------------------------------------------------------------- */

static void report_unknown_function(tcc_sema *s, const tcc_ast_expr *e)
{
    tcc_scalar elem;
    if (tcc_scalar_find(e->name.text, strlen(e->name.text), &elem)) {
        tcc_error(s->diag, TCC_ERR_UNSUPPORTED, e->name.loc,
                  "not supported yet: conversion to '%s'", e->name.text);
        return;
    }
    for (int r = 0; r < TCC_REDUCTION_COUNT; r++)
        if (!strcmp(tcc_reduction_words[r], e->name.text)) {
            tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "'%s' needs an index and a term: %s(n) x[n]", e->name.text,
                      e->name.text);
            return;
        }
    tcc_spelling spelling = {.wanted = e->name.text};
    const tcc_function *f;
    for (size_t i = 0; (f = tcc_function_at(i)); i++)
        tcc_spelling_try(&spelling, f->name);
    tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "unknown function '%s'%s", e->name.text,
              tcc_spelling_hint(s->arena, &spelling));
}

static bool check_apply(tcc_sema *s, tcc_ast_expr *e, const tcc_ast_stmt *stmt)
{
    const tcc_function *f = e->function;
    if (!f) {
        report_unknown_function(s, e);
        return false;
    }
    if (f->n_args != e->n_args) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "'%s' takes %u argument%s, not %zu", f->name,
                  f->n_args, f->n_args == 1 ? "" : "s", e->n_args);
        return false;
    }
    bool valid = true;
    for (size_t i = 0; i < e->n_args; i++) {
        const tcc_ast_expr *arg = e->args[i];
        bool joins = f->code == TCC_OP_arith_and, condition = joins || (f->code == TCC_OP_arith_select && i == 0);
        valid = valid && arg->type != TCC_AST_ERROR;
        e->free |= arg->free;
        if (arg->type && (arg->type == TCC_AST_BOOL) != condition) {
            tcc_error(s->diag, TCC_ERR_TYPE, arg->name.loc,
                      joins       ? "'&&' joins comparisons"
                      : condition ? "the condition of 'where' must be a comparison"
                                : "a comparison can only be the condition of 'where'");
            valid = false;
        }
    }
    return valid && tcc_sema_apply_type(s, stmt, e);
}

/* ---- whole numbers ------------------------------------------------------------------------ */

static const tcc_index_expr *at_of_apply(tcc_sema *s, const tcc_ast_expr *e)
{
    const tcc_index_expr *x = e->n_args ? e->args[0]->at : NULL, *y = e->n_args > 1 ? e->args[1]->at : NULL;
    switch (e->function ? e->function->code : TCC_OP_COUNT) {
    case TCC_OP_arith_add: return tcc_index_add(s->ir, x, y);
    case TCC_OP_arith_sub: return tcc_index_sub(s->ir, x, y);
    case TCC_OP_arith_mul: return tcc_index_mul(s->ir, x, y);
    case TCC_OP_arith_neg: return tcc_index_mul(s->ir, tcc_index_number(s->ir, -1), x);
    case TCC_OP_arith_div: return tcc_index_div(s->ir, x, y);
    case TCC_OP_arith_floor_rem: return tcc_index_mod(s->ir, x, y);
    default: return NULL;
    }
}

static bool is_i32(double number)
{
    return number == trunc(number) && fabs(number) <= INT32_MAX;
}

void tcc_sema_find_at(tcc_sema *s, tcc_ast_expr *e)
{
    e->at = NULL;
    if (e->kind == TCC_AST_APPLY)
        e->at = at_of_apply(s, e);
    else if (e->kind == TCC_AST_NUMBER && is_i32(e->number))
        e->at = tcc_index_number(s->ir, (int64_t)e->number);
    else if (e->kind == TCC_AST_NAME && e->index)
        e->at = tcc_index_name(s->ir, e->index->name);
    else if (e->kind == TCC_AST_NAME && e->dim)
        e->at = e->dim->at;
}

void tcc_sema_expr(tcc_sema *s, tcc_ast_expr *e, const tcc_ast_stmt *stmt)
{
    bool valid = false;
    switch (e->kind) {
    case TCC_AST_NUMBER:
        e->type = TCC_AST_LITERAL;
        valid = true;
        break;
    case TCC_AST_NAME:
    case TCC_AST_READ: valid = check_name(s, e, stmt); break;
    case TCC_AST_REDUCE: valid = check_reduction(s, e, stmt); break;
    case TCC_AST_APPLY: valid = check_apply(s, e, stmt); break;
    case TCC_AST_BROKEN: break;
    }
    if (!valid)
        e->type = TCC_AST_ERROR;
    else
        tcc_sema_find_at(s, e);
}
