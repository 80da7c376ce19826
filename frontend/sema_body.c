/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <float.h>
#include <string.h>

#include "frontend/sema.h"

static void report_unsupported(tcc_sema *s, tcc_loc loc, const char *what)
{
    tcc_error(s->diag, TCC_ERR_UNSUPPORTED, loc, "not supported yet: %s", what);
}

/* ---- indices --------------------------------------------------------------------------- */

static uint64_t bit(int index)
{
    return UINT64_C(1) << index;
}

/* Position of an index in the kernel's table, -1 when it is not there. */
static int find_index(const tcc_ast_kernel *kernel, const char *name)
{
    for (size_t i = 0; i < kernel->n_indices; i++)
        if (kernel->indices[i].name == name)
            return (int)i;
    return -1;
}

/* The same, adding it; -1 when there are too many, which is reported. */
static int add_index(tcc_sema *s, tcc_ast_name name)
{
    tcc_ast_kernel *kernel = s->kernel;
    int i = find_index(kernel, name.text);
    if (i >= 0)
        return i;
    if (kernel->n_indices == TCC_MAX_INDICES) {
        tcc_error(s->diag, TCC_ERR_UNSUPPORTED, name.loc, "more than %d indices in a kernel",
                  TCC_MAX_INDICES);
        return -1;
    }
    kernel->indices[kernel->n_indices] = (tcc_ast_index){.name = name.text};
    return (int)kernel->n_indices++;
}

/* Gives the set of indices in a list of names that may be indices. On the left of an assignment
 * they must be distinct; A[i, i] is a diagonal. */
static bool check_indices(tcc_sema *s, const tcc_ast_names *names, bool on_left, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < names->len; i++) {
        tcc_ast_name name = names->data[i];
        const tcc_decl *d = tcc_sema_lookup(s, name.text);
        if (d && d->kind == TCC_DECL_CONST) {
            report_unsupported(s, name.loc, "a constant as an index");
            return false;
        }
        if (d && (d->kind == TCC_DECL_PARAM || d->kind == TCC_DECL_STMT)) {
            tcc_error(s->diag, TCC_ERR_TYPE, name.loc, "'%s' is not an index", name.text);
            tcc_note(s->diag, d->loc, "'%s' is defined here", name.text);
            return false;
        }
        int index = add_index(s, name);
        if (index < 0)
            return false;
        if (*out & bit(index) && on_left) {
            tcc_error(s->diag, TCC_ERR_TYPE, name.loc,
                      "index '%s' occurs twice on the left-hand side", name.text);
            return false;
        }
        if (*out & bit(index)) {
            tcc_error(s->diag, TCC_ERR_UNSUPPORTED, name.loc,
                      "not supported yet: index '%s' twice in one subscript", name.text);
            return false;
        }
        *out |= bit(index);
    }
    return true;
}

static bool dims_agree(const tcc_ast_dim *a, const tcc_ast_dim *b)
{
    return a->invalid || b->invalid ||
           (a->size || b->size ? a->size == b->size : a->name.text == b->name.text);
}

/* Makes each index range over its dimension of `param`, over which it must range wherever it is
 * used. After a conflict nothing is concluded from this access. */
static bool bind_indices(tcc_sema *s, const tcc_ast_param *param, tcc_ast_name access,
                         const tcc_ast_names *names)
{
    if (names->len != param->dims.len) {
        tcc_error(s->diag, TCC_ERR_TYPE, access.loc, "'%s' has %zu dimension%s, not %zu",
                  param->name.text, param->dims.len, param->dims.len == 1 ? "" : "s", names->len);
        tcc_sema_note_param(s, param);
        return false;
    }
    for (size_t i = 0; i < names->len; i++) {
        const tcc_ast_index *index =
            &s->kernel->indices[find_index(s->kernel, names->data[i].text)];
        const tcc_ast_dim *dim = &param->dims.data[i];
        if (!index->extent || dims_agree(index->extent, dim))
            continue;
        tcc_error(s->diag, TCC_ERR_TYPE, names->data[i].loc,
                  "index '%s' ranges over %s in '%s' and over %s in '%s'", index->name,
                  tcc_sema_dim_text(s, index->extent), index->from->name.text,
                  tcc_sema_dim_text(s, dim), param->name.text);
        tcc_sema_note_param(s, param);
        return false;
    }
    for (size_t i = 0; i < names->len; i++) {
        tcc_ast_index *index = &s->kernel->indices[find_index(s->kernel, names->data[i].text)];
        if (!index->extent) {
            index->extent = &param->dims.data[i];
            index->from = param;
        }
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

static bool check_number(tcc_sema *s, tcc_loc loc, double number)
{
    double magnitude = number < 0 ? -number : number;
    if (magnitude > (double)FLT_MAX || (magnitude > 0 && (float)magnitude == 0)) {
        tcc_error(s->diag, TCC_ERR_TYPE, loc, "number out of the range of f32");
        return false;
    }
    return true;
}

static bool check_read_of_param(tcc_sema *s, tcc_ast_expr *e, tcc_ast_param *param)
{
    const char *name = param->name.text;
    e->param = param;
    if (param->role == TCC_ROLE_OUT) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc,
                  "output '%s' cannot be read; declare it inout or use an intermediate", name);
        return false;
    }
    if (param->written) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "'%s' is read after it was written", name);
        tcc_note(s->diag, param->written->name.loc, "'%s' is written here", name);
        return false;
    }
    TCC_PUSH(s->arena, &param->reads, e);
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
    return check_indices(s, &e->indices, false, &e->free) &&
           bind_indices(s, param, e->name, &e->indices);
}

/* Intermediates are read with the indices of their definition. */
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
    for (size_t i = 0; i < stmt->indices.len; i++)
        if (stmt->indices.data[i].text != e->indices.data[i].text) {
            tcc_error(s->diag, TCC_ERR_UNSUPPORTED, e->indices.data[i].loc,
                      "not supported yet: reading '%s' with other indices than it is defined with",
                      e->name.text);
            tcc_note(s->diag, stmt->name.loc, "'%s' is defined here", e->name.text);
            return false;
        }
    e->free = stmt->free;
    return true;
}

/* A name, with or without indices. */
static bool check_name(tcc_sema *s, tcc_ast_expr *e)
{
    const tcc_decl *d = tcc_sema_lookup(s, e->name.text);
    if (!d && e->kind == TCC_AST_NAME && find_index(s->kernel, e->name.text) >= 0) {
        report_unsupported(s, e->name.loc, "an index as a number");
        return false;
    }
    if (!d) {
        report_undefined(s, e->name);
        return false;
    }
    switch (d->kind) {
    case TCC_DECL_PARAM: return check_read_of_param(s, e, d->param);
    case TCC_DECL_STMT: return check_read_of_stmt(s, e, d->stmt);
    case TCC_DECL_UNDEFINED: return false;
    case TCC_DECL_DIM: report_unsupported(s, e->name.loc, "a dimension as a number"); return false;
    case TCC_DECL_CONST: break;
    }
    if (e->indices.len) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "'%s' is a number and takes no indices",
                  e->name.text);
        return false;
    }
    e->kind = TCC_AST_NUMBER;
    e->number = d->constant->number;
    return check_number(s, e->name.loc, e->number);
}

/* ---- sums ------------------------------------------------------------------------------ */

static bool is_product(const tcc_ast_expr *e)
{
    return e->kind == TCC_AST_APPLY && e->function->code == TCC_OP_arith_mul;
}

/* What keeps e from being an operand of the contraction over `index`, or NULL. */
static const char *why_not_operand(const tcc_sema *s, const tcc_ast_expr *e, int index)
{
    if (is_product(e))
        return "a product of more than two tensors in a sum; move factors that do not depend on "
               "the summed index in front of 'sum'";
    if (!(e->free & bit(index)))
        return "a factor that does not depend on the summed index; move it in front of 'sum'";
    if (e->stmt)
        return "an intermediate in a sum";
    if (e->kind != TCC_AST_READ)
        return "a sum of anything but a product of two tensors";
    bool is_half = e->param->elem == TCC_f16 || e->param->elem == TCC_bf16;
    if (!is_half && s->kernel->valid) /* else the type may be wrong already */
        return "f32 tensors in a sum: they must be f16 or bf16";
    return NULL;
}

static bool check_contraction(tcc_sema *s, const tcc_ast_expr *sum, int index)
{
    const tcc_ast_expr *term = sum->args[0];
    if (!is_product(term)) {
        report_unsupported(s, term->name.loc, "a sum of anything but a product of two tensors");
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        const char *why = why_not_operand(s, term->args[i], index);
        if (why) {
            report_unsupported(s, term->args[i]->name.loc, why);
            return false;
        }
    }
    const tcc_ast_param *a = term->args[0]->param, *b = term->args[1]->param;
    if (a->elem != b->elem && s->kernel->valid) {
        report_unsupported(s, term->name.loc, "a product of f16 and bf16");
        return false;
    }
    return true;
}

static bool check_sum(tcc_sema *s, tcc_ast_expr *e, const tcc_ast_stmt *stmt, uint64_t on_left)
{
    const tcc_ast_expr *first = s->kernel->sum;
    uint64_t over;
    if (!first)
        s->kernel->sum = e;
    if (e->args[0]->type == TCC_AST_ERROR || !check_indices(s, &e->indices, true, &over))
        return false;
    for (size_t i = 0; i < e->indices.len; i++) {
        tcc_ast_name name = e->indices.data[i];
        uint64_t index = bit(find_index(s->kernel, name.text));
        if (on_left & index) {
            tcc_error(s->diag, TCC_ERR_TYPE, name.loc,
                      "index '%s' is summed and also on the left-hand side", name.text);
            for (size_t j = 0; j < stmt->indices.len; j++)
                if (stmt->indices.data[j].text == name.text)
                    tcc_note(s->diag, stmt->indices.data[j].loc, "'%s' is free here", name.text);
            return false;
        }
        if (!(e->args[0]->free & index)) {
            tcc_error(s->diag, TCC_ERR_TYPE, name.loc,
                      "index '%s' is summed and does not occur in the sum", name.text);
            return false;
        }
    }
    if (first) {
        report_unsupported(s, e->name.loc, "more than one sum in a kernel");
        tcc_note(s->diag, first->name.loc, "the first one is here");
        return false;
    }
    if (e->indices.len > 1) {
        report_unsupported(s, e->indices.data[1].loc, "a sum over several indices");
        return false;
    }
    e->free = e->args[0]->free & ~over;
    return check_contraction(s, e, find_index(s->kernel, e->indices.data[0].text));
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
    tcc_spelling spelling = {.wanted = e->name.text};
    const tcc_function *f;
    for (size_t i = 0; (f = tcc_function_at(i)); i++)
        tcc_spelling_try(&spelling, f->name);
    tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "unknown function '%s'%s", e->name.text,
              tcc_spelling_hint(s->arena, &spelling));
}

static bool check_apply(tcc_sema *s, tcc_ast_expr *e)
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
        if (arg->type == (condition ? TCC_AST_FLOAT : TCC_AST_BOOL)) {
            tcc_error(s->diag, TCC_ERR_TYPE, arg->name.loc,
                      condition ? "the condition of 'where' must be a comparison"
                                : "a comparison can only be the condition of 'where'");
            valid = false;
        }
    }
    return valid;
}

static void check_expr(tcc_sema *s, tcc_ast_expr *e, const tcc_ast_stmt *stmt, uint64_t on_left)
{
    bool valid = false;
    switch (e->kind) {
    case TCC_AST_NUMBER: valid = check_number(s, e->name.loc, e->number); break;
    case TCC_AST_NAME:
    case TCC_AST_READ: valid = check_name(s, e); break;
    case TCC_AST_SUM: valid = check_sum(s, e, stmt, on_left); break;
    case TCC_AST_APPLY: valid = check_apply(s, e); break;
    case TCC_AST_BROKEN: break;
    }
    bool compares =
        e->kind == TCC_AST_APPLY && e->function && e->function->code == TCC_OP_arith_cmp;
    e->type = !valid ? TCC_AST_ERROR : compares ? TCC_AST_BOOL : TCC_AST_FLOAT;
}

/* ---- statements ------------------------------------------------------------------------ */

/* Can the statement define or write its name? */
static bool check_target(tcc_sema *s, tcc_ast_stmt *stmt)
{
    const char *name = stmt->name.text;
    const tcc_decl *d = tcc_sema_lookup(s, name);
    if (!d || d->kind == TCC_DECL_UNDEFINED)
        return true;
    if (d->kind == TCC_DECL_STMT || (d->kind == TCC_DECL_PARAM && d->param->written)) {
        bool is_output = d->kind == TCC_DECL_PARAM;
        tcc_error(s->diag, TCC_ERR_TYPE, stmt->name.loc, "'%s' is %s twice", name,
                  is_output ? "written" : "defined");
        tcc_note(s->diag, is_output ? d->param->written->name.loc : d->loc, "'%s' is first %s here",
                 name, is_output ? "written" : "defined");
        return false;
    }
    if (d->kind == TCC_DECL_PARAM &&
        (d->param->role == TCC_ROLE_OUT || d->param->role == TCC_ROLE_INOUT)) {
        stmt->output = d->param;
        return true;
    }
    tcc_error(s->diag, TCC_ERR_TYPE, stmt->name.loc, "'%s' is %s and cannot be assigned", name,
              d->kind == TCC_DECL_PARAM   ? "an input"
              : d->kind == TCC_DECL_CONST ? "a constant"
                                          : "a dimension");
    tcc_note(s->diag, d->loc, "'%s' is defined here", name);
    return false;
}

/* The first use of an index outside the sum over it. */
static tcc_loc find_use(const tcc_ast_kernel *kernel, const tcc_ast_stmt *stmt, const char *index)
{
    size_t from = 1, to = 0; /* expressions of the sum: none */
    for (size_t i = 0; i < stmt->exprs.len; i++)
        if (stmt->exprs.data[i] == kernel->sum && kernel->sum->indices.data[0].text == index) {
            from = kernel->sum->first;
            to = i;
        }
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        const tcc_ast_names *indices = &stmt->exprs.data[i]->indices;
        for (size_t j = 0; (i < from || i > to) && j < indices->len; j++)
            if (indices->data[j].text == index)
                return indices->data[j].loc;
    }
    return stmt->name.loc;
}

/* The indices on the left are exactly those that vary on the right. */
static bool check_free(tcc_sema *s, const tcc_ast_stmt *stmt, uint64_t on_left)
{
    uint64_t on_right = stmt->exprs.data[stmt->exprs.len - 1]->free;
    for (int i = 0; i < (int)s->kernel->n_indices; i++)
        if (on_right & ~on_left & bit(i)) {
            const char *index = s->kernel->indices[i].name;
            tcc_error(s->diag, TCC_ERR_TYPE, find_use(s->kernel, stmt, index),
                      "index '%s' is neither summed nor an index of '%s'", index, stmt->name.text);
        }
    for (size_t i = 0; i < stmt->indices.len; i++)
        if (~on_right & bit(find_index(s->kernel, stmt->indices.data[i].text)))
            tcc_error(s->diag, TCC_ERR_TYPE, stmt->indices.data[i].loc,
                      "index '%s' of '%s' does not occur on the right-hand side",
                      stmt->indices.data[i].text, stmt->name.text);
    return on_right == on_left;
}

static void check_stmt(tcc_sema *s, tcc_ast_stmt *stmt)
{
    bool defines = check_target(s, stmt);
    bool valid = check_indices(s, &stmt->indices, true, &stmt->free) && defines;
    for (size_t i = 0; i < stmt->exprs.len; i++)
        check_expr(s, stmt->exprs.data[i], stmt, stmt->free);
    const tcc_ast_expr *root = stmt->exprs.len ? stmt->exprs.data[stmt->exprs.len - 1] : NULL;
    if (root && root->type == TCC_AST_BOOL)
        tcc_error(s->diag, TCC_ERR_TYPE, root->name.loc,
                  "a comparison can only be the condition of 'where'");
    valid = valid && root && root->type == TCC_AST_FLOAT && check_free(s, stmt, stmt->free);
    if (stmt->output && valid)
        valid = bind_indices(s, stmt->output, stmt->name, &stmt->indices);
    stmt->valid = valid;
    if (stmt->output)
        stmt->output->written = stmt;
    else if (defines && !tcc_sema_lookup(s, stmt->name.text))
        tcc_sema_declare(s, &s->scope, TCC_DECL_STMT, stmt->name)->stmt = stmt;
}

/* ---- kernels --------------------------------------------------------------------------- */

/* Every element of an inout tensor is read only where it is written: elsewhere it may have been
 * written already. */
static void check_inout(tcc_sema *s, const tcc_ast_param *param)
{
    const tcc_ast_names *to = &param->written->indices;
    for (size_t i = 0; i < param->reads.len; i++) {
        const tcc_ast_names *from = &param->reads.data[i]->indices;
        for (size_t j = 0; j < to->len; j++)
            if (from->data[j].text != to->data[j].text) {
                tcc_error(s->diag, TCC_ERR_TYPE, from->data[j].loc,
                          "inout '%s' is read at another place than it is written",
                          param->name.text);
                tcc_note(s->diag, to->data[j].loc, "'%s' is written here", param->name.text);
                return;
            }
    }
}

/* The sum's free indices are the index space of the kernel: every output covers it. */
static void check_index_space(tcc_sema *s, const tcc_ast_stmt *stmt)
{
    uint64_t space = s->kernel->sum->free;
    for (int i = 0; i < (int)s->kernel->n_indices; i++)
        if ((space ^ stmt->free) & bit(i)) {
            tcc_error(s->diag, TCC_ERR_UNSUPPORTED, stmt->name.loc,
                      space & bit(i)
                          ? "not supported yet: an output without index '%s' of the sum"
                          : "not supported yet: an output with index '%s', which the sum lacks",
                      s->kernel->indices[i].name);
            return;
        }
}

static void check_results(tcc_sema *s)
{
    tcc_ast_kernel *kernel = s->kernel;
    if (!kernel->sum)
        report_unsupported(s, kernel->name.loc, "a kernel without a sum");
    for (size_t i = 0; i < kernel->params.len; i++) {
        const tcc_ast_param *param = kernel->params.data[i];
        bool writable = param->role == TCC_ROLE_OUT || param->role == TCC_ROLE_INOUT;
        if (writable && !param->written)
            tcc_error(s->diag, TCC_ERR_TYPE, param->name.loc, "%s '%s' is never written",
                      param->role == TCC_ROLE_OUT ? "output" : "inout", param->name.text);
        else if (!writable && !param->reads.len)
            tcc_error(s->diag, TCC_ERR_TYPE, param->name.loc, "parameter '%s' is never used",
                      param->name.text);
        else if (param->role == TCC_ROLE_INOUT)
            check_inout(s, param);
    }
    for (size_t i = 0; i < kernel->stmts.len; i++) {
        const tcc_ast_stmt *stmt = kernel->stmts.data[i];
        if (!stmt->output && !stmt->used)
            tcc_error(s->diag, TCC_ERR_TYPE, stmt->name.loc, "'%s' is never used", stmt->name.text);
        else if (stmt->output && kernel->sum)
            check_index_space(s, stmt);
    }
}

void tcc_sema_body(tcc_sema *s)
{
    unsigned n_errors = s->diag->n_errors;
    for (size_t i = 0; i < s->kernel->stmts.len && s->diag->n_errors < TCC_MAX_ERRORS; i++)
        check_stmt(s, s->kernel->stmts.data[i]);
    if (s->kernel->valid && s->diag->n_errors == n_errors)
        check_results(s);
}
