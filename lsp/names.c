/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "lsp/names.h"

#include <string.h>

#include "frontend/frontend.h"
#include "frontend/parse.h"
#include "frontend/sema.h"
#include "ir/schedule_key.h"

static const struct {
    const char *name, *doc;
} functions[] = {
#define FUNCTION(name, n_args, op, doc) {#name, doc},
#define CONVERSION(type, doc) {#type, doc},
#include "frontend/functions.def"
};

static const char *const key_docs[] = {
#define KEY(name, form, min, max, words, needs, variants, doc) doc,
#include "ir/schedule_keys.def"
};

bool lsp_function_at(size_t i, const char **name, const char **doc)
{
    if (i >= sizeof functions / sizeof *functions)
        return false;
    *name = functions[i].name;
    *doc = functions[i].doc;
    return true;
}

const char *lsp_key_doc(size_t key)
{
    return key_docs[key];
}

/* ---- what a name is, as text -------------------------------------------------------------- */

static const char *list_of(lsp_names *n, const char *text, const char *part, bool first)
{
    return tcc_arena_printf(n->arena, "%s%s%s", text, first ? "" : ", ", part);
}

static const char *dims_text(lsp_names *n, const tcc_ast_param *p)
{
    const char *text = "";
    for (size_t i = 0; i < p->dims.len; i++) {
        const tcc_ast_dim *d = &p->dims.data[i];
        text = list_of(n, text, d->name.text ? d->name.text : tcc_arena_printf(n->arena, "%lld", (long long)d->size), !i);
    }
    return p->dims.len ? tcc_arena_printf(n->arena, "[%s]", text) : "";
}

static const char *param_text(lsp_names *n, const tcc_ast_param *p)
{
    return tcc_arena_printf(n->arena, "%s%s: %s%s", p->role == TCC_ROLE_INOUT ? "inout " : "", p->name.text,
                            tcc_scalar_name(p->elem), dims_text(n, p));
}

static const char *kernel_text(lsp_names *n, const tcc_ast_kernel *k)
{
    const char *in = "", *out = "";
    for (size_t i = 0; i < k->params.len; i++) {
        const tcc_ast_param *p = k->params.data[i];
        const char **list = p->role == TCC_ROLE_OUT ? &out : &in;
        *list = list_of(n, *list, param_text(n, p), !**list);
    }
    return tcc_arena_printf(n->arena, *out ? "kernel %s(%s) -> (%s)" : "kernel %s(%s)", k->name.text, in, out);
}

static const char *stmt_text(lsp_names *n, const tcc_ast_stmt *s)
{
    static const char *const types[] = {[TCC_AST_LITERAL] = "f32", [TCC_AST_FLOAT] = "f32", [TCC_AST_INT] = "i32",
                                        [TCC_AST_BOOL] = "a condition"};
    const char *indices = "", *type = s->exprs.len ? types[s->exprs.data[s->exprs.len - 1]->type] : NULL;
    for (size_t i = 0; i < s->indices.len; i++)
        indices = list_of(n, indices, s->indices.data[i].text, !i);
    return tcc_arena_printf(n->arena, *indices ? "%s[%s]%s%s" : "%s%s%s%s", s->name.text, indices, type ? ": " : "",
                            type ? type : "");
}

/* ---- adding them -------------------------------------------------------------------------- */

static lsp_name *add(lsp_names *n, tcc_ast_name at, tcc_ast_name defined, const char *code, const char *doc)
{
    if (!at.text || !at.loc.line)
        return NULL;
    TCC_PUSH(n->arena, &n->all, (lsp_name){at.loc, strlen(at.text), defined.loc, defined.text ? strlen(defined.text) : 0,
                                           code, doc, NULL, NULL});
    return &n->all.data[n->all.len - 1];
}

static bool is_same(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static const tcc_ast_param *find_param(const tcc_ast_kernel *k, const char *name)
{
    for (size_t i = 0; i < k->params.len; i++)
        if (is_same(k->params.data[i]->name.text, name))
            return k->params.data[i];
    return NULL;
}

static const tcc_ast_stmt *find_stmt(const tcc_ast_kernel *k, const char *name)
{
    for (size_t i = 0; i < k->stmts.len; i++)
        if (is_same(k->stmts.data[i]->name.text, name))
            return k->stmts.data[i];
    return NULL;
}

static const tcc_ast_const *find_const(const lsp_names *n, const char *name)
{
    for (size_t i = 0; i < n->file->consts.len; i++)
        if (is_same(n->file->consts.data[i]->name.text, name))
            return n->file->consts.data[i];
    return NULL;
}

static void add_const(lsp_names *n, tcc_ast_name at, const tcc_ast_const *c)
{
    add(n, at, c->name, tcc_arena_printf(n->arena, "const %s = %.17g", c->name.text, c->number), "a constant; -D "
                                                                                                 "overrides it");
}

/* A tensor, scalar, intermediate or constant: all have one space of names. */
static void add_value(lsp_names *n, const tcc_ast_kernel *k, tcc_ast_name at)
{
    const tcc_ast_param *p = find_param(k, at.text);
    const tcc_ast_stmt *s = p ? NULL : find_stmt(k, at.text);
    const tcc_ast_const *c = p || s ? NULL : find_const(n, at.text);
    if (p)
        add(n, at, p->name, param_text(n, p), NULL);
    else if (s)
        add(n, at, s->name, stmt_text(n, s), "an intermediate: it is never stored in memory");
    else if (c)
        add_const(n, at, c);
}

static void add_dim(lsp_names *n, const tcc_ast_kernel *k, tcc_ast_name at)
{
    const tcc_ast_const *c = find_const(n, at.text);
    if (c) {
        add_const(n, at, c);
        return;
    }
    for (size_t i = 0; i < k->params.len; i++)
        for (size_t j = 0; j < k->params.data[i]->dims.len; j++) {
            const tcc_ast_dim *d = &k->params.data[i]->dims.data[j];
            if (is_same(d->name.text, at.text)) {
                add(n, at, d->name, at.text, "a dimension; its extent is given at launch, or by -D");
                return;
            }
        }
}

/* An index is defined by the dimension over which it ranges. */
static void add_index(lsp_names *n, const tcc_ast_kernel *k, tcc_ast_name at)
{
    for (size_t i = 0; i < k->n_indices; i++) {
        const tcc_ast_index *index = &k->indices[i];
        if (!is_same(index->name, at.text) || !index->extent)
            continue;
        const tcc_ast_dim *d = index->extent;
        const char *extent = d->name.text ? d->name.text : tcc_arena_printf(n->arena, "%lld", (long long)d->size);
        tcc_ast_name defined = {extent, d->name.loc};
        add(n, at, defined, tcc_arena_printf(n->arena, "%s: 0 to %s - 1", at.text, extent),
            index->from ? tcc_arena_printf(n->arena, "an index, over a dimension of `%s`", index->from->name.text)
                        : "an index, whose bounds are declared");
        return;
    }
}

static void add_indices(lsp_names *n, const tcc_ast_kernel *k, const tcc_ast_indices *uses)
{
    for (size_t i = 0; i < uses->len; i++)
        add_index(n, k, (tcc_ast_name){uses->data[i].text, uses->data[i].loc});
}

static void add_function(lsp_names *n, tcc_ast_name at)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (is_same(functions[i].name, at.text))
            add(n, at, (tcc_ast_name){0}, functions[i].name, functions[i].doc);
}

static void add_expr(lsp_names *n, const tcc_ast_kernel *k, const tcc_ast_expr *e)
{
    if (e->kind == TCC_AST_NAME && e->index)
        add_index(n, k, e->name);
    else if (e->kind == TCC_AST_NAME && e->dim)
        add_dim(n, k, e->name);
    else if (e->kind == TCC_AST_NAME || e->kind == TCC_AST_READ)
        add_value(n, k, e->name);
    if (e->kind == TCC_AST_APPLY)
        add_function(n, e->name);
    if (e->kind == TCC_AST_REDUCE)
        add_indices(n, k, &e->indices);
}

static void add_kernel(lsp_names *n, const tcc_ast_kernel *k)
{
    lsp_name *name = add(n, k->name, k->name, kernel_text(n, k), NULL);
    if (name)
        name->kernel = k->name.text;
    for (size_t i = 0; i < k->params.len; i++) {
        const tcc_ast_param *p = k->params.data[i];
        add_value(n, k, p->name);
        for (size_t j = 0; j < p->dims.len; j++)
            if (p->dims.data[j].name.text)
                add_dim(n, k, p->dims.data[j].name);
    }
    for (size_t i = 0; i < k->stmts.len; i++) {
        const tcc_ast_stmt *s = k->stmts.data[i];
        add_value(n, k, s->name);
        add_indices(n, k, &s->indices);
        for (size_t j = 0; j < s->exprs.len; j++)
            add_expr(n, k, s->exprs.data[j]);
    }
}

/* ---- schedules ---------------------------------------------------------------------------- */

static void add_key(lsp_names *n, const tcc_ast_schedule *s, tcc_ast_name at)
{
    for (size_t i = 0; i < TCC_KEY_COUNT; i++) {
        if (!is_same(tcc_schedule_keys[i].name, at.text))
            continue;
        tcc_str choices = {0};
        tcc_schedule_key_print_choices(&choices, &tcc_schedule_keys[i]);
        bool is_tile = tcc_schedule_keys[i].form == TCC_KEY_FORM_TILE ||
                       tcc_schedule_key_is_of_steps(&tcc_schedule_keys[i]);
        lsp_name *name = add(n, at, (tcc_ast_name){0},
                             tcc_arena_printf(n->arena, "%s %s", at.text,
                                              is_tile ? tcc_schedule_keys[i].words : tcc_str_text(&choices)),
                             key_docs[i]);
        tcc_str_free(&choices);
        if (name) {
            name->kernel = s->kernel.text;
            name->target = s->target.text;
        }
    }
}

static void add_schedule(lsp_names *n, const tcc_ast_schedule *s)
{
    const tcc_ast_kernel *k = NULL;
    for (size_t i = 0; i < n->file->kernels.len; i++)
        if (is_same(n->file->kernels.data[i]->name.text, s->kernel.text))
            k = n->file->kernels.data[i];
    const tcc_ast_name both[] = {s->kernel, s->target};
    for (size_t i = 0; k && i < 2; i++) {
        lsp_name *name = add(n, both[i], i ? (tcc_ast_name){0} : k->name, i ? s->target.text : kernel_text(n, k), NULL);
        if (name) {
            name->kernel = k->name.text;
            name->target = s->target.text;
        }
    }
    for (size_t i = 0; i < s->settings.len; i++) {
        const tcc_ast_setting *setting = s->settings.data[i];
        add_key(n, s, setting->key);
        for (size_t j = 0; k && j < setting->words.len; j++) {
            tcc_ast_name word = setting->words.data[j].name;
            const tcc_ast_const *c = find_const(n, word.text);
            if (c)
                add_const(n, word, c);
            else if (!setting->words.data[j].is_number)
                add_index(n, k, word);
        }
    }
}

void lsp_names_find(lsp_names *n, tcc_arena *arena, const char *source, size_t size, const char *target)
{
    tcc_diag silent = {0};
    *n = (lsp_names){.arena = arena};
    if (!tcc_frontend_check_text(source, size, &silent))
        return;
    tcc_ir *ir = tcc_ir_create(arena);
    n->file = tcc_parse(arena, source, size, ir->names, &silent);
    tcc_sema_file(arena, n->file, ir, target, NULL, 0, &silent);
    for (size_t i = 0; i < n->file->consts.len; i++)
        add_const(n, n->file->consts.data[i]->name, n->file->consts.data[i]);
    for (size_t i = 0; i < n->file->kernels.len; i++)
        add_kernel(n, n->file->kernels.data[i]);
    for (size_t i = 0; i < n->file->schedules.len; i++)
        add_schedule(n, n->file->schedules.data[i]);
}

const lsp_name *lsp_name_at(const lsp_names *n, tcc_loc loc)
{
    for (size_t i = 0; i < n->all.len; i++) {
        const lsp_name *name = &n->all.data[i];
        if (name->loc.line == loc.line && name->loc.column <= loc.column && loc.column <= name->loc.column + name->len)
            return name;
    }
    return NULL;
}
