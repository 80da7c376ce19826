/* sema_dim: what the dimensions of tensors are: numbers, names, or computed of both.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/sema.h"
#include "ir/index_dim.h"
#include "support/extent.h"

bool tcc_sema_is_extent(int64_t size)
{
    return size >= 1 && size <= TCC_MAX_EXTENT;
}

static bool refuse(tcc_sema *s, tcc_loc loc)
{
    tcc_error(s->diag, TCC_ERR_TYPE, loc, "a dimension must be a whole number from 1 to %lld",
              (long long)TCC_MAX_EXTENT);
    return false;
}

/* ---- names ------------------------------------------------------------------------------- */

tcc_ast_dim *tcc_sema_declare_dim(tcc_sema *s, tcc_ast_name name)
{
    tcc_ast_dim *dim = tcc_names_get(&s->kernel->dims, name.text);
    if (dim)
        return dim;
    const tcc_decl *d = tcc_sema_lookup(s, name.text);
    const tcc_frontend_define *define = tcc_names_get(&s->defines, name.text);
    dim = TCC_NEW(s->arena, tcc_ast_dim);
    *dim = (tcc_ast_dim){.name = name, .at = tcc_index_dim(s->ir, name.text)};
    tcc_names_put(s->arena, &s->kernel->dims, name.text, dim);
    if (d && d->kind == TCC_DECL_PARAM) {
        dim->invalid = true;
        tcc_error(s->diag, TCC_ERR_TYPE, name.loc, "'%s' names a parameter and a dimension", name.text);
        tcc_note(s->diag, d->loc, "the parameter is declared here");
    } else {
        tcc_sema_declare(s, &s->scope, TCC_DECL_DIM, name);
    }
    if (define && tcc_sema_is_extent(define->value)) { /* else check_defines reports it */
        dim->size = define->value;
        dim->at = tcc_index_number(s->ir, dim->size);
    }
    return dim;
}

/* Makes a name that of a dimension, or the number of a constant. */
static bool resolve_name(tcc_sema *s, tcc_ast_expr *e)
{
    const tcc_decl *d = tcc_sema_lookup(s, e->name.text);
    if (!d || d->kind != TCC_DECL_CONST) {
        e->dim = tcc_sema_declare_dim(s, e->name);
        return !e->dim->invalid;
    }
    e->kind = TCC_AST_NUMBER;
    e->number = d->constant->number;
    return d->constant->is_integer || refuse(s, e->name.loc);
}

/* ---- expressions -------------------------------------------------------------------------- */

static bool is_arithmetic(const tcc_ast_expr *e)
{
    switch (e->kind == TCC_AST_APPLY && e->function ? e->function->code : TCC_OP_COUNT) {
    case TCC_OP_arith_add:
    case TCC_OP_arith_sub:
    case TCC_OP_arith_mul:
    case TCC_OP_arith_neg:
    case TCC_OP_arith_div:
    case TCC_OP_arith_floor_rem: return e->n_args == (e->function->code == TCC_OP_arith_neg ? 1 : 2);
    default: return false;
    }
}

/* Finds what an expression is, of what those inside it are. */
static bool find_at(tcc_sema *s, tcc_ast_expr *e)
{
    int64_t number;
    bool is_name = e->kind == TCC_AST_NAME;
    if (!is_name && e->kind != TCC_AST_NUMBER && !is_arithmetic(e)) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc,
                  "a dimension is a whole number, a name, or an expression of these with + - * / %%");
        return false;
    }
    if (is_name && !resolve_name(s, e))
        return false;
    tcc_sema_find_at(s, e);
    if (e->at)
        return true;
    if (e->kind == TCC_AST_NUMBER)
        return refuse(s, e->name.loc);
    const tcc_index_expr *by = e->args[e->n_args - 1]->at;
    bool divides = e->function->code == TCC_OP_arith_div || e->function->code == TCC_OP_arith_floor_rem;
    if (divides && tcc_index_is_number(by, &number) && number < 1)
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "a dimension is divided by a positive number, not by %lld",
                  (long long)number);
    else
        tcc_error(s->diag, TCC_ERR_UNSUPPORTED, e->name.loc, "a dimension of too many terms, or of too large numbers");
    return false;
}

static bool any_extent(void *user, tcc_index_factor_kind kind, const char *name, tcc_index_range *out)
{
    (void)user, (void)kind, (void)name;
    *out = (tcc_index_range){0, TCC_MAX_EXTENT};
    return true;
}

bool tcc_sema_dim_of(tcc_sema *s, const tcc_index_expr *x, tcc_ast_dim *out)
{
    tcc_dim dim;
    if (!tcc_dim_of_index(s->ir, x, &dim))
        return false;
    out->at = x;
    out->name.text = dim.name;
    out->size = dim.name ? 0 : dim.size;
    return true;
}

/* A dimension that is a name keeps it where the name is bound. */
static bool compute(tcc_sema *s, tcc_ast_dim *dim)
{
    tcc_index_range range;
    bool is_name = dim->exprs.len == 1 && dim->exprs.data[0]->kind == TCC_AST_NAME;
    for (size_t i = 0; i < dim->exprs.len; i++)
        if (!find_at(s, dim->exprs.data[i]))
            return false;
    const tcc_ast_expr *root = dim->exprs.data[dim->exprs.len - 1];
    int64_t number;
    if (tcc_index_is_number(root->at, &number) ? !tcc_sema_is_extent(number)
                                               : tcc_index_bounds(s->ir, root->at, any_extent, NULL, &range) &&
                                                     range.most < 1)
        return refuse(s, dim->name.loc);
    if (!tcc_sema_dim_of(s, root->at, dim)) {
        tcc_error(s->diag, TCC_ERR_UNSUPPORTED, dim->name.loc, "a dimension of more than %d characters",
                  TCC_MAX_DIM_NAME);
        return false;
    }
    if (is_name)
        dim->name.text = root->name.text;
    return true;
}

void tcc_sema_dim(tcc_sema *s, tcc_ast_dim *dim)
{
    dim->invalid = !compute(s, dim);
    if (dim->invalid) /* for what is still checked */
        dim->at = tcc_index_number(s->ir, 1);
}
