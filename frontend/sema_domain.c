/* sema_domain: which values the indices of reductions take.
 *
 * `index j: j <= i && start[e] <= j;` is a condition that every reduction over j has as another operand. Where no
 * dimension gives an index its extent, comparisons of it with what has no indices do: `index r: 0 <= r && r < 3;`.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "frontend/sema.h"
#include "support/extent.h"

/* ---- domains --------------------------------------------------------------------------- */

static void add_name(tcc_sema *s, const char *name)
{
    if (name && !tcc_names_get(&s->indices, name))
        tcc_names_put(s->arena, &s->indices, name, s);
}

static void add_names(tcc_sema *s, const tcc_ast_stmt *stmt)
{
    for (size_t i = 0; i < stmt->indices.len; i++)
        add_name(s, stmt->indices.data[i].text);
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        const tcc_ast_expr *e = stmt->exprs.data[i];
        for (size_t k = 0; e->kind == TCC_AST_REDUCE && k < e->indices.len; k++)
            add_name(s, e->indices.data[k].text);
    }
}

static void check_domain(tcc_sema *s, tcc_ast_stmt *domain)
{
    tcc_ast_index *index = tcc_sema_index(s, domain->name.text, domain->name.loc);
    if (!index)
        return;
    for (size_t i = 0; i < domain->exprs.len; i++) {
        domain->exprs.data[i]->of_domain = true;
        tcc_sema_expr(s, domain->exprs.data[i], domain);
    }
    const tcc_ast_expr *root = domain->exprs.len ? domain->exprs.data[domain->exprs.len - 1] : NULL;
    if (!root || !root->type)
        return;
    if (index->domain) {
        tcc_error(s->diag, TCC_ERR_TYPE, domain->name.loc, "index '%s' has two domains", index->name);
        tcc_note(s->diag, index->domain->name.loc, "the first one is here; '&&' joins conditions");
    } else if (root->type != TCC_AST_BOOL) {
        tcc_error(s->diag, TCC_ERR_TYPE, root->name.loc, "a domain is a comparison, or several joined by '&&'");
    } else if (!(root->free & index->bit)) {
        tcc_error(s->diag, TCC_ERR_TYPE, domain->name.loc, "the domain of '%s' does not depend on it", index->name);
    } else if (tcc_sema_check_reach(s, domain, root, "what a domain compares")) {
        domain->valid = true;
        index->domain = domain;
    }
}

/* The domain of an index as it is written; NULL: there is none, or it is wrong. */
static const tcc_ast_stmt *domain_of(const tcc_ast_kernel *kernel, const char *index)
{
    for (size_t i = 0; i < kernel->n_indices; i++)
        if (kernel->indices[i].name == index)
            return kernel->indices[i].domain;
    return NULL;
}

/* Copies a domain to the end of a statement's expressions; its root. */
static tcc_ast_expr *copy_domain(tcc_sema *s, const tcc_ast_stmt *domain, tcc_ast_exprs *exprs)
{
    size_t first = exprs->len;
    s->kernel->n_exprs += domain->exprs.len;
    for (size_t i = 0; i < domain->exprs.len; i++) {
        tcc_ast_expr *e = TCC_NEW(s->arena, tcc_ast_expr);
        *e = *domain->exprs.data[i];
        tcc_sema_find_args(s->arena, e, exprs);
        e->first += first;
        e->type = TCC_AST_ERROR; /* and checked again with what it is in */
        e->free = 0;
        TCC_PUSH(s->arena, exprs, e);
    }
    return exprs->data[exprs->len - 1];
}

/* An index without a domain may have one that is wrong, or that reads a statement and is not known above it. */
static void check_is_known(tcc_sema *s, tcc_ast_expr *reduce, const tcc_ast_index_use *use)
{
    for (size_t i = 0; i < s->kernel->domains.len; i++) {
        const tcc_ast_stmt *domain = s->kernel->domains.data[i];
        if (domain->name.text != use->text)
            continue;
        reduce->kind = TCC_AST_BROKEN;
        if (!domain->late)
            continue;
        tcc_error(s->diag, TCC_ERR_TYPE, use->loc, "the domain of '%s' reads what is defined below this", use->text);
        tcc_note(s->diag, domain->name.loc, "the domain is here");
    }
}

static void add_domains_to(tcc_sema *s, tcc_ast_expr *e, tcc_ast_exprs *exprs)
{
    tcc_ast_exprs args = {0};
    for (size_t i = 0; i < e->n_args; i++)
        TCC_PUSH(s->arena, &args, e->args[i]);
    for (size_t i = 0; i < e->indices.len; i++) {
        const tcc_ast_stmt *domain = domain_of(s->kernel, e->indices.data[i].text);
        if (domain)
            TCC_PUSH(s->arena, &args, copy_domain(s, domain, exprs));
        else
            check_is_known(s, e, &e->indices.data[i]);
    }
    e->args = args.data;
    e->n_args = args.len;
}

void tcc_sema_add_domains(tcc_sema *s, tcc_ast_stmt *stmt)
{
    if (!s->kernel->domains.len)
        return;
    tcc_ast_exprs exprs = {0};
    size_t *place = TCC_NEW_ARRAY(s->arena, size_t, stmt->exprs.len + 1);
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        tcc_ast_expr *e = stmt->exprs.data[i];
        place[i] = exprs.len;
        e->first = place[e->first];
        if (e->kind == TCC_AST_REDUCE)
            add_domains_to(s, e, &exprs);
        TCC_PUSH(s->arena, &exprs, e);
    }
    stmt->exprs = exprs;
    if (!tcc_sema_has_room_for_exprs(s, stmt->name.loc))
        stmt->exprs.len = 0;
}

/* Whether a domain reads what a statement above it gives a value. */
static bool reads_above(const tcc_ast_kernel *kernel, const tcc_ast_stmt *domain)
{
    bool reads = false;
    for (size_t i = 0; i < domain->exprs.len; i++) {
        const tcc_ast_expr *e = domain->exprs.data[i];
        for (size_t k = 0; k < domain->place && k < kernel->stmts.len; k++)
            reads |= (e->kind == TCC_AST_READ || e->kind == TCC_AST_NAME) &&
                     e->name.text == kernel->stmts.data[k]->name.text;
    }
    return reads;
}

void tcc_sema_domains(tcc_sema *s)
{
    tcc_ast_kernel *kernel = s->kernel;
    for (size_t i = 0; i < kernel->stmts.len; i++)
        add_names(s, kernel->stmts.data[i]);
    for (size_t i = 0; i < kernel->domains.len; i++)
        add_name(s, kernel->domains.data[i]->name.text);
    for (size_t i = 0; i < kernel->domains.len; i++) {
        tcc_ast_stmt *domain = kernel->domains.data[i];
        domain->late = reads_above(kernel, domain);
        if (!domain->late)
            check_domain(s, domain);
    }
}

void tcc_sema_late_domains(tcc_sema *s, size_t place)
{
    for (size_t i = 0; i < s->kernel->domains.len; i++) {
        tcc_ast_stmt *domain = s->kernel->domains.data[i];
        if (!domain->late || domain->place != place)
            continue;
        domain->late = false;
        check_domain(s, domain);
    }
}

/* ---- extents ------------------------------------------------------------------------------- */

/* What an index is at least, and less than; NULL: not known. */
typedef struct bounds {
    const tcc_index_expr *low, *high;
} bounds;

/* Adds what `index pred x` says. */
static void add_bound(tcc_ir *ir, bounds *b, const char *pred, const tcc_index_expr *x)
{
    bool equal = pred[1] == 'e' || *pred == 'e';
    const tcc_index_expr *after = tcc_index_add(ir, x, tcc_index_number(ir, 1));
    if ((*pred == 'l' || *pred == 'e') && !b->high)
        b->high = equal ? after : x;
    if ((*pred == 'g' || *pred == 'e') && !b->low)
        b->low = equal ? x : after;
}

/* Of the comparisons of a domain those of the index with what has no indices. */
static bounds find_bounds(tcc_ir *ir, const tcc_ast_index *index)
{
    static const char *const turned[][2] = {{"lt", "gt"}, {"le", "ge"}, {"gt", "lt"}, {"ge", "le"}, {"eq", "eq"}};
    bounds b = {NULL, NULL};
    const tcc_ast_stmt *domain = index->domain;
    for (size_t i = 0; domain && i < domain->exprs.len; i++) {
        const tcc_ast_expr *e = domain->exprs.data[i];
        if (e->type != TCC_AST_BOOL || e->function->code != TCC_OP_arith_cmp || !e->args[0]->at || !e->args[1]->at)
            continue;
        for (int side = 0; side < 2; side++) {
            const tcc_index_expr *x = e->args[side]->at, *y = e->args[1 - side]->at;
            const char *name = tcc_index_plain(x), *pred = e->function->pred;
            for (size_t k = 0; side && k < sizeof turned / sizeof *turned; k++)
                if (!strcmp(e->function->pred, turned[k][0]))
                    pred = turned[k][1];
            if (name && !strcmp(name, index->name) && !y->varies)
                add_bound(ir, &b, pred, y);
        }
    }
    return b;
}

/* Whether a domain says more than a least and a greatest value: further comparisons, or others. */
static bool says_more(const tcc_ast_index *index)
{
    size_t n = 0;
    bool equal = false;
    for (size_t i = 0; i < index->domain->exprs.len; i++) {
        const tcc_ast_expr *e = index->domain->exprs.data[i];
        bool compares = e->type == TCC_AST_BOOL && e->function->code == TCC_OP_arith_cmp;
        n += compares;
        equal |= compares && !strcmp(e->function->pred, "eq");
    }
    return n != (equal ? 1 : 2);
}

/* An index that is free keeps all values that its bounds give it. */
static bool check_free_domain(tcc_sema *s, const tcc_ast_index *index)
{
    bool has_dim = index->extent && index->from;
    if (!index->domain || index->reduced || (!has_dim && !says_more(index)))
        return true;
    tcc_loc loc = index->domain->name.loc;
    if (has_dim)
        tcc_error(s->diag, TCC_ERR_TYPE, loc, "index '%s' has a domain and is never reduced; it ranges over %s",
                  index->name, tcc_sema_dim_text(s, index->extent));
    else
        tcc_error(s->diag, TCC_ERR_TYPE, loc,
                  "index '%s' is never reduced: its domain may say only its least and its greatest value, as in "
                  "'index %s: 0 <= %s && %s < 3;'",
                  index->name, index->name, index->name, index->name);
    return false;
}

void tcc_sema_bound(tcc_sema *s, tcc_ast_index *index)
{
    bounds b = index->extent ? (bounds){NULL, NULL} : find_bounds(s->ir, index);
    const tcc_index_expr *n = tcc_index_sub(s->ir, b.high, b.low);
    int64_t number = 1;
    tcc_ast_dim *extent = TCC_NEW(s->arena, tcc_ast_dim);
    if (!n || (tcc_index_is_number(n, &number) && number < 1) || !tcc_sema_dim_of(s, n, extent))
        return;
    extent->name.loc = index->domain->name.loc;
    index->extent = extent;
    index->least = b.low->n ? b.low : NULL;
}

static void report_unbound(tcc_sema *s, const tcc_ast_index *index)
{
    bounds b = find_bounds(s->ir, index);
    const tcc_index_expr *n = tcc_index_sub(s->ir, b.high, b.low);
    int64_t number;
    const tcc_ast_stmt *domain = index->domain;
    if (domain && tcc_sema_report_large(s, domain, domain->exprs.data[domain->exprs.len - 1]))
        return;
    if (!b.low || !b.high)
        tcc_error(s->diag, TCC_ERR_TYPE, index->loc,
                  "nothing says how many values index '%s' has: it is not a coordinate by itself; give it bounds, as "
                  "in 'index %s: 0 <= %s && %s < 3;'",
                  index->name, index->name, index->name, index->name);
    else if (n && tcc_index_is_number(n, &number) && number < 1)
        tcc_error(s->diag, TCC_ERR_TYPE, index->domain->name.loc, "no value of '%s' is within its bounds", index->name);
    else
        tcc_error(s->diag, TCC_ERR_UNSUPPORTED, index->domain->name.loc, "too many values of '%s', or too long bounds",
                  index->name);
}

void tcc_sema_extents(tcc_sema *s)
{
    for (size_t i = 0; i < s->kernel->n_indices; i++) {
        tcc_ast_index *index = &s->kernel->indices[i];
        bool ok = check_free_domain(s, index);
        tcc_sema_bound(s, index);
        if (ok && !index->extent)
            report_unbound(s, index);
    }
}
