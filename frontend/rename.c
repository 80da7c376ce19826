/* rename: intermediates that are read with other indices than those of their definition.
 *
 * Before:  t[i] = exp(x[i]);   C[m, n] = t[m] * t[n];
 * After:   t[m] = exp(x[m]);   t[n] = exp(x[n]);   C[m, n] = t[m] * t[n];
 *
 * Such a read refers to a copy of the definition with its indices, which follows the original. An index that is summed
 * there and free where it is read is renamed. Later passes see nothing of this.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "frontend/sema.h"

static bool same_indices(const tcc_ast_indices *x, const tcc_ast_indices *y)
{
    bool same = x->len == y->len;
    for (size_t i = 0; same && i < x->len; i++)
        same = x->data[i].index == y->data[i].index;
    return same;
}

tcc_ast_stmt *tcc_sema_renamed(tcc_sema *s, tcc_ast_stmt *stmt, tcc_ast_name at, const tcc_ast_indices *indices)
{
    stmt = stmt->of ? stmt->of : stmt;
    if (same_indices(&stmt->indices, indices))
        return stmt;
    tcc_ast_stmt *again = stmt->again;
    while (again && !same_indices(&again->indices, indices))
        again = again->again;
    if (again)
        return again;
    again = TCC_NEW(s->arena, tcc_ast_stmt);
    *again = (tcc_ast_stmt){.name = at, .indices = *indices, .of = stmt, .again = stmt->again};
    for (size_t i = 0; i < indices->len; i++)
        again->free |= indices->data[i].index->bit;
    stmt->again = again;
    return again;
}

/* ---- indices ------------------------------------------------------------------------------- */

/* What takes the place of each index of the kernel, by its number; index NULL: it stays. */
typedef struct renaming {
    tcc_sema *s;
    tcc_ast_index_use to[TCC_MAX_INDICES];
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

static bool find_renaming(renaming *r, const tcc_ast_stmt *again)
{
    const tcc_ast_stmt *stmt = again->of;
    for (size_t i = 0; i < stmt->indices.len; i++)
        *place_of(r, stmt->indices.data[i].index) = again->indices.data[i];
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        const tcc_ast_expr *e = stmt->exprs.data[i];
        if (e->kind != TCC_AST_REDUCE)
            continue;
        for (size_t k = 0; k < e->indices.len; k++) {
            const tcc_ast_index_use *over = &e->indices.data[k];
            if (again->free & over->index->bit && !place_of(r, over->index)->index && !add_index(r, over))
                return false;
        }
    }
    return true;
}

static void rename_indices(renaming *r, tcc_ast_indices *indices)
{
    tcc_ast_indices renamed = {0};
    for (size_t i = 0; i < indices->len; i++) {
        const tcc_ast_index *index = indices->data[i].index; /* NULL: a coordinate that is more than one */
        const tcc_ast_index_use *to = index ? place_of(r, index) : NULL;
        TCC_PUSH(r->s->arena, &renamed, to && to->index ? *to : indices->data[i]);
    }
    *indices = renamed;
}

static uint64_t rename_set(const renaming *r, uint64_t set)
{
    uint64_t renamed = 0;
    const tcc_ast_kernel *kernel = r->s->kernel;
    for (size_t i = 0; i < kernel->n_indices; i++)
        if (set & kernel->indices[i].bit)
            renamed |= r->to[i].index ? r->to[i].index->bit : kernel->indices[i].bit;
    return renamed;
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

/* What is found out of a definition holds of it with other indices. */
static void write_again(tcc_sema *s, tcc_ast_stmt *again)
{
    renaming r = {.s = s};
    const tcc_ast_stmt *stmt = again->of;
    s->kernel->n_exprs += stmt->exprs.len;
    if (!tcc_sema_has_room_for_exprs(s, again->name.loc) || !find_renaming(&r, again))
        return;
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        tcc_ast_expr *e = TCC_NEW(s->arena, tcc_ast_expr);
        *e = *stmt->exprs.data[i];
        tcc_sema_find_args(s->arena, e, &again->exprs);
        rename_indices(&r, &e->indices);
        if (e->index && place_of(&r, e->index)->index)
            e->index = place_of(&r, e->index)->index;
        e->free = rename_set(&r, e->free);
        tcc_sema_find_at(s, e);
        if (e->stmt)
            e->stmt = tcc_sema_renamed(s, e->stmt, e->name, &e->indices);
        TCC_PUSH(s->arena, &again->exprs, e);
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
