/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
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
    tcc_error(s->diag, TCC_ERR_UNSUPPORTED, loc, "more than %d operations in a kernel", TCC_MAX_EXPRS);
    return false;
}

/* The index of a name, added when it is new; NULL when there are too many. */
static tcc_ast_index *add_index(tcc_sema *s, const tcc_ast_index_use *use)
{
    tcc_ast_kernel *kernel = s->kernel;
    tcc_ast_index *index = find_index(kernel, use->text);
    if (index)
        return index;
    if (!tcc_sema_has_room_for_index(s, use->loc))
        return NULL;
    index = &kernel->indices[kernel->n_indices];
    *index = (tcc_ast_index){.name = use->text, .bit = UINT64_C(1) << kernel->n_indices++};
    return index;
}

/* Tensors, scalars and constants are not indices; the names of dimensions may be. */
static bool can_be_index(tcc_sema *s, const tcc_ast_index_use *use)
{
    const tcc_decl *d = tcc_sema_lookup(s, use->text);
    if (d && d->kind == TCC_DECL_CONST) {
        tcc_sema_unsupported(s, use->loc, "a constant as an index");
        return false;
    }
    if (d && (d->kind == TCC_DECL_PARAM || d->kind == TCC_DECL_STMT)) {
        tcc_error(s->diag, TCC_ERR_TYPE, use->loc, "'%s' is not an index", use->text);
        tcc_note(s->diag, d->loc, "'%s' is defined here", use->text);
        return false;
    }
    return true;
}

bool tcc_sema_indices(tcc_sema *s, tcc_ast_indices *uses, const char *list, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < uses->len; i++) {
        tcc_ast_index_use *use = &uses->data[i];
        use->index = can_be_index(s, use) ? add_index(s, use) : NULL;
        if (!use->index)
            return false;
        if (*out & use->index->bit) {
            tcc_error(s->diag, list ? TCC_ERR_TYPE : TCC_ERR_UNSUPPORTED, use->loc,
                      list ? "index '%s' occurs twice %s"
                           : "not supported yet: index '%s' twice in one subscript",
                      use->text, list);
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
        const tcc_ast_dim *dim = &param->dims.data[i];
        if (!index->extent || dims_agree(index->extent, dim))
            continue;
        tcc_error(s->diag, TCC_ERR_TYPE, uses->data[i].loc,
                  "index '%s' ranges over %s in '%s' and over %s in '%s'", index->name,
                  tcc_sema_dim_text(s, index->extent), index->from->name.text,
                  tcc_sema_dim_text(s, dim), param->name.text);
        tcc_sema_note_param(s, param);
        return false;
    }
    for (size_t i = 0; i < uses->len; i++)
        if (!uses->data[i].index->extent) {
            uses->data[i].index->extent = &param->dims.data[i];
            uses->data[i].index->from = param;
        }
    return true;
}

/* ---- names ----------------------------------------------------------------------------- */

/* Reports a name that nothing defines; later uses of it are silent. */
static void report_undefined(tcc_sema *s, tcc_ast_name name)
{
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

static bool check_read_of_param(tcc_sema *s, tcc_ast_expr *e, tcc_ast_param *param)
{
    const char *name = param->name.text;
    e->param = param;
    e->type = tcc_sema_type_of(param->elem);
    if (param->role == TCC_ROLE_OUT) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "output '%s' is read before it is written", name);
        return false;
    }
    param->is_read = true;
    if (param->role == TCC_ROLE_SCALAR && e->indices.len) {
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
    return tcc_sema_indices(s, &e->indices, NULL, &e->free) &&
           tcc_sema_bind(s, param, e->name.loc, &e->indices);
}

/* An index takes the place of one of a definition: both range over one dimension. */
static bool bind_to_index(tcc_sema *s, const tcc_ast_index_use *use, const tcc_ast_index *index, const tcc_ast_stmt *stmt)
{
    if (!use->index->extent) {
        use->index->extent = index->extent;
        use->index->from = index->from;
    }
    if (dims_agree(use->index->extent, index->extent))
        return true;
    tcc_error(s->diag, TCC_ERR_TYPE, use->loc, "index '%s' ranges over %s in '%s' and over %s in '%s'", use->text,
              tcc_sema_dim_text(s, use->index->extent), use->index->from->name.text,
              tcc_sema_dim_text(s, index->extent), stmt->name.text);
    tcc_note(s->diag, stmt->name.loc, "'%s' is defined here", stmt->name.text);
    return false;
}

static bool check_read_of_stmt(tcc_sema *s, tcc_ast_expr *e, tcc_ast_stmt *stmt)
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
    if (!tcc_sema_indices(s, &e->indices, NULL, &e->free))
        return false;
    for (size_t i = 0; i < stmt->indices.len; i++)
        if (!bind_to_index(s, &e->indices.data[i], stmt->indices.data[i].index, stmt))
            return false;
    e->stmt = tcc_sema_renamed(s, stmt, e->name, &e->indices);
    e->type = stmt->exprs.data[stmt->exprs.len - 1]->type;
    return true;
}

/* A name, with or without indices. */
static bool check_name(tcc_sema *s, tcc_ast_expr *e)
{
    const tcc_decl *d = tcc_sema_lookup(s, e->name.text);
    if (!d && e->kind == TCC_AST_NAME && find_index(s->kernel, e->name.text)) {
        tcc_sema_unsupported(s, e->name.loc, "an index as a number");
        return false;
    }
    if (!d) {
        report_undefined(s, e->name);
        return false;
    }
    switch (d->kind) {
    case TCC_DECL_PARAM:
        return d->param->written ? check_read_of_stmt(s, e, d->param->written) : check_read_of_param(s, e, d->param);
    case TCC_DECL_STMT: return check_read_of_stmt(s, e, d->stmt);
    case TCC_DECL_UNDEFINED: return false;
    case TCC_DECL_DIM:
        tcc_sema_unsupported(s, e->name.loc, "a dimension as a number");
        return false;
    case TCC_DECL_CONST: break;
    }
    if (e->indices.len) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "'%s' is a number and takes no indices",
                  e->name.text);
        return false;
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

/* Each index is one of the term's. An index of the same name around the reduction is another one. */
static bool check_over(tcc_sema *s, const tcc_ast_expr *e)
{
    bool sums = e->reduction == TCC_REDUCTION_SUM;
    for (size_t i = 0; i < e->indices.len; i++) {
        const tcc_ast_index_use *use = &e->indices.data[i];
        if (e->args[0]->free & use->index->bit)
            continue;
        tcc_error(s->diag, TCC_ERR_TYPE, use->loc, "index '%s' is %s and does not occur in the %s", use->text,
                  sums ? "summed" : "reduced", sums ? "sum" : "term");
        return false;
    }
    return true;
}

static bool check_reduction(tcc_sema *s, tcc_ast_expr *e)
{
    uint64_t over;
    if (e->args[0]->type == TCC_AST_ERROR ||
        !tcc_sema_indices(s, &e->indices, e->reduction == TCC_REDUCTION_SUM ? "in a sum" : "in a reduction", &over) ||
        !check_over(s, e))
        return false;
    e->free = e->args[0]->free & ~over;
    e->type = e->args[0]->type;
    if (!tcc_sema_reduction_type(s, e, is_contraction(e, over)))
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
        bool condition = f->code == TCC_OP_arith_select && i == 0;
        valid = valid && arg->type != TCC_AST_ERROR;
        e->free |= arg->free;
        if (arg->type && (arg->type == TCC_AST_BOOL) != condition) {
            tcc_error(s->diag, TCC_ERR_TYPE, arg->name.loc,
                      condition ? "the condition of 'where' must be a comparison"
                                : "a comparison can only be the condition of 'where'");
            valid = false;
        }
    }
    return valid && tcc_sema_apply_type(s, stmt, e);
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
    case TCC_AST_READ: valid = check_name(s, e); break;
    case TCC_AST_REDUCE: valid = check_reduction(s, e); break;
    case TCC_AST_APPLY: valid = check_apply(s, e, stmt); break;
    case TCC_AST_BROKEN: break;
    }
    if (!valid)
        e->type = TCC_AST_ERROR;
}
