/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/sema.h"

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

/* Whether the i-th expression of a statement is in a sum over an index, or that sum. */
static bool is_summed(const tcc_ast_stmt *stmt, size_t i, const char *index)
{
    for (size_t s = i; s < stmt->exprs.len; s++) {
        const tcc_ast_expr *sum = stmt->exprs.data[s];
        for (size_t k = 0; sum->kind == TCC_AST_REDUCE && sum->first <= i && k < sum->indices.len; k++)
            if (sum->indices.data[k].text == index)
                return true;
    }
    return false;
}

/* The first use of an index outside the sums over it. */
static tcc_loc find_use(const tcc_ast_stmt *stmt, const char *index)
{
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        const tcc_ast_expr *e = stmt->exprs.data[i];
        if (e->kind == TCC_AST_NAME && e->index && e->index->name == index && !is_summed(stmt, i, index))
            return e->name.loc;
    }
    return stmt->name.loc;
}

/* Says where an index is only a reduction's own. */
static void note_reduced(tcc_sema *s, const tcc_ast_stmt *stmt, const char *index)
{
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        const tcc_ast_expr *e = stmt->exprs.data[i];
        for (size_t k = 0; e->kind == TCC_AST_REDUCE && k < e->indices.len; k++)
            if (e->indices.data[k].text == index) {
                tcc_note(s->diag, e->indices.data[k].loc, "'%s' is an index of its own in this %s", index,
                         e->reduction == TCC_REDUCTION_SUM ? "sum" : "reduction");
                return;
            }
    }
}

/* The indices on the left are exactly those that vary on the right. */
static bool check_free(tcc_sema *s, const tcc_ast_stmt *stmt)
{
    uint64_t on_right = stmt->exprs.data[stmt->exprs.len - 1]->free;
    for (size_t i = 0; i < s->kernel->n_indices; i++) {
        const tcc_ast_index *index = &s->kernel->indices[i];
        if (on_right & ~stmt->free & index->bit)
            tcc_error(s->diag, TCC_ERR_TYPE, find_use(stmt, index->name),
                      "index '%s' is neither summed nor an index of '%s'", index->name,
                      stmt->name.text);
    }
    for (size_t i = 0; i < stmt->indices.len; i++) {
        const tcc_ast_index_use *use = &stmt->indices.data[i];
        if (!(~on_right & use->index->bit))
            continue;
        tcc_error(s->diag, TCC_ERR_TYPE, use->loc, "index '%s' of '%s' does not occur on the right-hand side", use->text,
                  stmt->name.text);
        note_reduced(s, stmt, use->text);
    }
    return on_right == stmt->free;
}

static void check_stmt(tcc_sema *s, tcc_ast_stmt *stmt)
{
    bool defines = check_target(s, stmt);
    bool valid = tcc_sema_indices(s, &stmt->indices, "on the left-hand side", &stmt->free);
    for (size_t i = 0; i < stmt->exprs.len; i++)
        tcc_sema_expr(s, stmt->exprs.data[i], stmt);
    const tcc_ast_expr *root = stmt->exprs.len ? stmt->exprs.data[stmt->exprs.len - 1] : NULL;
    if (root && root->type == TCC_AST_BOOL)
        tcc_error(s->diag, TCC_ERR_TYPE, root->name.loc,
                  "a comparison can only be the condition of 'where'");
    stmt->valid = defines && valid && root && root->type && root->type != TCC_AST_BOOL &&
                  check_free(s, stmt) && tcc_sema_result_type(s, stmt) &&
                  (!stmt->output || tcc_sema_bind(s, stmt->output, stmt->name.loc, &stmt->indices));
    if (stmt->output)
        stmt->output->written = stmt;
    else if (defines && !tcc_sema_lookup(s, stmt->name.text))
        tcc_sema_declare(s, &s->scope, TCC_DECL_STMT, stmt->name)->stmt = stmt;
}

/* ---- kernels --------------------------------------------------------------------------- */

/* Marks what outputs depend on: what is read only with other indices is not. */
static void find_live(tcc_ast_kernel *kernel)
{
    for (size_t i = kernel->stmts.len; i--;)
        for (tcc_ast_stmt *stmt = kernel->stmts.data[i]; stmt; stmt = stmt->again) {
            stmt->live |= stmt->output != NULL;
            for (size_t e = 0; stmt->live && e < stmt->exprs.len; e++) {
                tcc_ast_stmt *read = stmt->exprs.data[e]->stmt;
                if (read)
                    read->live = true;
            }
        }
}

static void check_results(tcc_sema *s)
{
    tcc_ast_kernel *kernel = s->kernel;
    for (size_t i = 0; i < kernel->params.len; i++) {
        const tcc_ast_param *param = kernel->params.data[i];
        bool writable = param->role == TCC_ROLE_OUT || param->role == TCC_ROLE_INOUT;
        if (writable && !param->written)
            tcc_error(s->diag, TCC_ERR_TYPE, param->name.loc, "%s '%s' is never written",
                      param->role == TCC_ROLE_OUT ? "output" : "inout", param->name.text);
        else if (!writable && !param->is_read)
            tcc_error(s->diag, TCC_ERR_TYPE, param->name.loc, "parameter '%s' is never used",
                      param->name.text);
    }
    for (size_t i = 0; i < kernel->stmts.len; i++) {
        const tcc_ast_stmt *stmt = kernel->stmts.data[i];
        if (!stmt->output && !stmt->used)
            tcc_error(s->diag, TCC_ERR_TYPE, stmt->name.loc, "'%s' is never used", stmt->name.text);
    }
}

void tcc_sema_body(tcc_sema *s)
{
    unsigned n_errors = s->diag->n_errors;
    tcc_sema_domains(s);
    for (size_t i = 0; i < s->kernel->stmts.len && s->diag->n_errors < TCC_MAX_ERRORS; i++) {
        tcc_sema_late_domains(s, i);
        tcc_sema_add_domains(s, s->kernel->stmts.data[i]);
        check_stmt(s, s->kernel->stmts.data[i]);
    }
    tcc_sema_late_domains(s, s->kernel->stmts.len);
    if (!s->kernel->valid || s->diag->n_errors > n_errors)
        return;
    tcc_sema_extents(s);
    if (s->diag->n_errors > n_errors)
        return;
    tcc_sema_write_again(s);
    find_live(s->kernel);
    if (s->diag->n_errors == n_errors)
        check_results(s);
}
