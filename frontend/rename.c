/* rename: intermediates that are read with other indices than those of their definition.
 *
 * Before:  t[i] = exp(x[i]);   C[m, n] = t[m] * t[n];
 * After:   t[m] = exp(x[m]);   t[n] = exp(x[n]);   C[m, n] = t[m] * t[n];
 *
 * Such a read refers to a copy of the definition with its coordinates, which follows the original: indices take the
 * places of indices, and so do expressions, as in t[i + 1]. An index that is summed there and free where it is read is
 * renamed. Later passes see nothing of this.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "frontend/sema.h"

/* Whether a definition, or one of its copies, is the one that an expression reads. */
static bool has_coordinates(const tcc_ast_stmt *stmt, const tcc_ast_expr *e)
{
    bool same = stmt->indices.len == e->n_args;
    for (size_t d = 0; same && d < e->n_args; d++) {
        const tcc_ast_index *index = e->indices.data[d].index;
        const tcc_index_expr *at = index || !stmt->at || !stmt->at[d] ? NULL : stmt->at[d]->at;
        same = index ? stmt->indices.data[d].index == index : at && at == e->args[d]->at;
    }
    return same;
}

tcc_ast_stmt *tcc_sema_renamed(tcc_sema *s, tcc_ast_stmt *stmt, const tcc_ast_stmt *reader, const tcc_ast_expr *e)
{
    stmt = stmt->of ? stmt->of : stmt;
    if (has_coordinates(stmt, e))
        return stmt;
    tcc_ast_stmt *again = stmt->again;
    while (again && !has_coordinates(again, e))
        again = again->again;
    if (again)
        return again;
    again = TCC_NEW(s->arena, tcc_ast_stmt);
    *again = (tcc_ast_stmt){.name = e->name, .of = stmt, .again = stmt->again, .reader = reader, .free = e->free};
    again->at = TCC_NEW_ARRAY(s->arena, tcc_ast_expr *, e->n_args);
    for (size_t d = 0; d < e->n_args; d++) {
        TCC_PUSH(s->arena, &again->indices, e->indices.data[d]);
        again->at[d] = e->indices.data[d].index ? NULL : e->args[d];
    }
    stmt->again = again;
    return again;
}

/* ---- indices ------------------------------------------------------------------------------- */

/* What takes the place of each index of the kernel, by its number: another one, index NULL: it stays; or, but for those
 * that are reduced, an expression. */
typedef struct renaming {
    tcc_sema *s;
    tcc_ast_stmt *again;
    tcc_ast_index_use to[TCC_MAX_INDICES];
    const tcc_ast_expr *by[TCC_MAX_INDICES];
} renaming;

static tcc_ast_index_use *place_of(renaming *r, const tcc_ast_index *index)
{
    return &r->to[index - r->s->kernel->indices];
}

static bool is_taken(const tcc_ast_kernel *kernel, const char *name)
{
    bool taken = false;
    for (size_t i = 0; i < kernel->n_indices; i++)
        taken |= !strcmp(kernel->indices[i].name, name);
    return taken;
}

/* An index over the same dimension that no statement has. False when there are too many. */
static bool add_index(renaming *r, const tcc_ast_index_use *use)
{
    tcc_ast_kernel *kernel = r->s->kernel;
    const char *name = use->text;
    for (int i = 2; is_taken(kernel, name); i++)
        name = tcc_arena_printf(r->s->arena, "%s%d", use->text, i);
    name = tcc_intern_get(r->s->ir->names, name, strlen(name));
    if (!tcc_sema_has_room_for_index(r->s, use->loc))
        return false;
    tcc_ast_index *index = &kernel->indices[kernel->n_indices];
    *index = *use->index;
    index->name = name;
    index->bit = UINT64_C(1) << kernel->n_indices++;
    *place_of(r, use->index) = (tcc_ast_index_use){name, use->loc, index};
    return true;
}

static size_t number_of(const renaming *r, const tcc_ast_index *index)
{
    return (size_t)(index - r->s->kernel->indices);
}

static bool find_renaming(renaming *r)
{
    const tcc_ast_stmt *again = r->again, *stmt = again->of;
    for (size_t i = 0; i < stmt->indices.len; i++) {
        const tcc_ast_index *index = stmt->indices.data[i].index;
        r->by[number_of(r, index)] = again->at[i];
        if (!again->at[i])
            *place_of(r, index) = again->indices.data[i];
    }
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        const tcc_ast_expr *e = stmt->exprs.data[i];
        for (size_t k = 0; e->kind == TCC_AST_REDUCE && k < e->indices.len; k++) {
            const tcc_ast_index_use *over = &e->indices.data[k];
            bool clashes = again->free & over->index->bit || r->by[number_of(r, over->index)];
            if (clashes && !place_of(r, over->index)->index && !add_index(r, over))
                return false;
        }
    }
    return true;
}

/* Whether the i-th expression of a definition is of a reduction over an index. */
static bool is_reduced(const tcc_ast_stmt *stmt, size_t i, const tcc_ast_index *index)
{
    bool is = false;
    for (size_t r = i + 1; r < stmt->exprs.len && !is; r++) {
        const tcc_ast_expr *e = stmt->exprs.data[r];
        for (size_t k = 0; e->kind == TCC_AST_REDUCE && e->first <= i && k < e->indices.len; k++)
            is |= e->indices.data[k].index == index;
    }
    return is;
}

/* The expression that the i-th one of the definition, an index, becomes; NULL: it stays an index. */
static const tcc_ast_expr *replacement(const renaming *r, size_t i)
{
    const tcc_ast_expr *e = r->again->of->exprs.data[i];
    const tcc_ast_expr *by = e->index ? r->by[number_of(r, e->index)] : NULL;
    return by && !is_reduced(r->again->of, i, e->index) ? by : NULL;
}

static void rename_index(renaming *r, tcc_ast_index_use *use)
{
    const tcc_ast_index_use *to = place_of(r, use->index);
    if (to->index)
        *use = *to;
}

/* Of a reduction; of a read those that are its coordinates. */
static void rename_indices(renaming *r, tcc_ast_expr *e)
{
    tcc_ast_indices renamed = {0};
    for (size_t i = 0; i < e->indices.len; i++) {
        tcc_ast_index_use use = e->indices.data[i];
        const tcc_ast_expr *arg = e->kind == TCC_AST_READ ? e->args[i] : NULL;
        if (!arg) {
            rename_index(r, &use);
        } else {
            use.index = arg->kind == TCC_AST_NAME && !e->of_domain ? arg->index : NULL;
            use.text = use.index ? use.index->name : NULL;
        }
        TCC_PUSH(r->s->arena, &renamed, use);
    }
    e->indices = renamed;
}

/* ---- statements ---------------------------------------------------------------------------- */

/* In postorder the last operand directly precedes its user, and each other one precedes the first expression
 * inside the next. */
void tcc_sema_find_args(tcc_arena *arena, tcc_ast_expr *e, const tcc_ast_exprs *exprs)
{
    tcc_ast_expr **args = TCC_NEW_ARRAY(arena, tcc_ast_expr *, e->n_args);
    size_t end = exprs->len;
    for (size_t a = e->n_args; a--; end = args[a]->first)
        args[a] = exprs->data[end - 1];
    e->args = args;
}

/* Adds a copy of an expression, whose operands have been added. */
static tcc_ast_expr *add_copy(renaming *r, const tcc_ast_expr *of)
{
    tcc_ast_exprs *exprs = &r->again->exprs;
    tcc_ast_expr *e = TCC_NEW(r->s->arena, tcc_ast_expr);
    *e = *of;
    tcc_sema_find_args(r->s->arena, e, exprs);
    e->first = e->n_args ? e->args[0]->first : exprs->len;
    TCC_PUSH(r->s->arena, exprs, e);
    return e;
}

/* What an expression varies with, by its operands. */
static uint64_t find_free(const tcc_ast_expr *e)
{
    uint64_t free = e->index ? e->index->bit : 0;
    for (size_t i = 0; i < e->n_args; i++)
        free |= e->args[i]->free;
    for (size_t i = 0; e->kind == TCC_AST_REDUCE && i < e->indices.len; i++)
        free &= ~e->indices.data[i].index->bit;
    return free;
}

static const tcc_function *conversion_to(tcc_scalar elem)
{
    size_t i = 0;
    while (tcc_function_at(i)->code != TCC_OP_arith_cast || tcc_function_at(i)->to != elem)
        i++;
    return tcc_function_at(i);
}

/* Adds the coordinate that takes the place of an index, in the type that this has. */
static void add_coordinate(renaming *r, const tcc_ast_expr *by, const tcc_ast_expr *index)
{
    const tcc_ast_exprs *from = &r->again->reader->exprs, *to = &r->again->exprs;
    size_t n = to->len;
    for (size_t i = by->first;; i++) {
        tcc_sema_find_at(r->s, add_copy(r, from->data[i]));
        if (from->data[i] == by)
            break;
    }
    if (index->type != TCC_AST_INT) {
        tcc_ast_expr cast = {.kind = TCC_AST_APPLY, .name = index->name, .n_args = 1, .type = index->type};
        cast.free = to->data[to->len - 1]->free;
        cast.function = conversion_to(tcc_sema_elem_of(index->type));
        add_copy(r, &cast);
    }
    r->s->kernel->n_exprs += to->len - n;
}

/* What is found out of a definition holds of it with other indices. */
static void write_again(tcc_sema *s, tcc_ast_stmt *again)
{
    renaming r = {.s = s, .again = again};
    const tcc_ast_stmt *stmt = again->of;
    if (!find_renaming(&r))
        return;
    for (size_t i = 0; i < stmt->exprs.len && tcc_sema_has_room_for_exprs(s, again->name.loc); i++) {
        const tcc_ast_expr *by = replacement(&r, i);
        if (by) {
            add_coordinate(&r, by, stmt->exprs.data[i]);
            continue;
        }
        s->kernel->n_exprs++;
        tcc_ast_expr *e = add_copy(&r, stmt->exprs.data[i]);
        rename_indices(&r, e);
        if (e->index && place_of(&r, e->index)->index)
            e->index = place_of(&r, e->index)->index;
        e->free = find_free(e);
        tcc_sema_find_at(s, e);
        if (e->stmt)
            e->stmt = tcc_sema_renamed(s, e->stmt, again, e);
    }
    again->valid = true;
}

void tcc_sema_write_again(tcc_sema *s)
{
    unsigned n_errors = s->diag->n_errors;
    for (size_t i = s->kernel->stmts.len; i--;) /* what a definition reads is defined before it */
        for (tcc_ast_stmt *again = s->kernel->stmts.data[i]->again; again; again = again->again)
            if (s->diag->n_errors == n_errors)
                write_again(s, again);
}
