/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "lsp/complete.h"

#include <string.h>

#include "frontend/lex.h"
#include "ir/schedule_key.h"
#include "support/json.h"

/* CompletionItemKind of the protocol. */
enum { ITEM_FUNCTION = 3, ITEM_VARIABLE = 6, ITEM_PROPERTY = 10, ITEM_KEYWORD = 14, ITEM_WORD = 20, ITEM_TYPE = 25 };

typedef struct items {
    tcc_str *out;
    size_t n;
} items;

static void add(items *to, const char *label, int kind, const char *doc)
{
    tcc_str_puts(to->out, to->n++ ? ", {\"label\": " : "{\"label\": ");
    tcc_json_print_string(to->out, label);
    tcc_str_printf(to->out, ", \"kind\": %d", kind);
    if (doc) {
        tcc_str_puts(to->out, ", \"documentation\": ");
        tcc_json_print_string(to->out, doc);
    }
    tcc_str_puts(to->out, "}");
}

/* ---- where the cursor is ------------------------------------------------------------------ */

enum { BEFORE = 2 };

typedef struct place {
    enum { AT_TOP, IN_SIGNATURE, IN_KERNEL, IN_HEAD, IN_SCHEDULE } in;
    tcc_tile_token last[BEFORE]; /* the word before the one at the cursor, and the one before that */
    const char *kernel;          /* the kernel, or the schedule's kernel, around the cursor; NULL: none */
    const char *target;          /* of the schedule */
    const char *key;             /* of the setting */
} place;

static void move(place *p, const tcc_tile_token *t)
{
    bool after_name = t->kind == TCC_TOK_NAME;
    switch (t->kind) {
    case TCC_TOK_CONST: p->in = AT_TOP; break;
    case TCC_TOK_KERNEL:
    case TCC_TOK_SCHEDULE:
        p->in = t->kind == TCC_TOK_KERNEL ? IN_SIGNATURE : IN_HEAD;
        p->kernel = p->target = p->key = NULL;
        break;
    case TCC_TOK_LBRACE: p->in = p->in == IN_HEAD ? IN_SCHEDULE : IN_KERNEL; break;
    case TCC_TOK_RBRACE: p->in = AT_TOP; break;
    case TCC_TOK_SEMICOLON: p->key = NULL; break;
    default: break;
    }
    if (after_name && (p->last[0].kind == TCC_TOK_KERNEL || p->last[0].kind == TCC_TOK_SCHEDULE))
        p->kernel = t->text;
    if (after_name && p->last[0].kind == TCC_TOK_FOR)
        p->target = t->text;
    if (after_name && p->in == IN_SCHEDULE && !p->key)
        p->key = t->text;
    p->last[1] = p->last[0];
    p->last[0] = *t;
}

/* Reads the text up to the word that the cursor is at the end of. */
static place find_place(tcc_arena *arena, const char *text, size_t size)
{
    tcc_diag silent = {0};
    place p = {.in = AT_TOP, .last = {{.kind = TCC_TOK_END}, {.kind = TCC_TOK_END}}};
    tcc_tile_lexer lexer = tcc_tile_lexer_create(text, size, tcc_intern_create(arena), &silent);
    for (;;) {
        tcc_tile_token t = tcc_tile_lex(&lexer);
        bool at_cursor = lexer.next == lexer.end && (t.kind == TCC_TOK_NAME || (t.kind >= TCC_TOK_KERNEL && t.kind <= TCC_TOK_SUM));
        if (t.kind == TCC_TOK_END || at_cursor)
            return p;
        move(&p, &t);
    }
}

/* ---- what fits there ---------------------------------------------------------------------- */

/* Whether a key is for a target, or for what kernels can be made as on it. */
static bool is_for(const tcc_schedule_key *key, const tcc_target *t)
{
    return tcc_schedule_key_is_for(key, t) || (t->plain && tcc_schedule_key_is_for(key, tcc_target_find(t->plain)));
}

static void add_keys(items *to, const char *target)
{
    const tcc_target *t = tcc_target_find(target);
    for (size_t i = 0; i < TCC_KEY_COUNT; i++)
        if (!t || is_for(&tcc_schedule_keys[i], t))
            add(to, tcc_schedule_keys[i].name, ITEM_PROPERTY, lsp_key_doc(i));
}

static const tcc_ast_kernel *find_kernel(const lsp_names *names, const char *name)
{
    for (size_t i = 0; name && names->file && i < names->file->kernels.len; i++)
        if (!strcmp(names->file->kernels.data[i]->name.text, name))
            return names->file->kernels.data[i];
    return NULL;
}

static void add_indices(items *to, const tcc_ast_kernel *k)
{
    for (size_t i = 0; k && i < k->n_indices; i++)
        add(to, k->indices[i].name, ITEM_VARIABLE, NULL);
}

static void add_intermediates(items *to, const tcc_ast_kernel *k)
{
    for (size_t i = 0; k && i < k->stmts.len; i++)
        if (!k->stmts.data[i]->output)
            add(to, k->stmts.data[i]->name.text, ITEM_VARIABLE, NULL);
}

static void add_tensors(items *to, const tcc_ast_kernel *k)
{
    for (size_t i = 0; k && i < k->params.len; i++)
        add(to, k->params.data[i]->name.text, ITEM_VARIABLE, NULL);
}

/* For a setting: the words that its key takes, indices or tensors. */
static void add_values(items *to, const lsp_names *names, const place *p, const char *target)
{
    const tcc_target *t = tcc_target_find(target);
    for (size_t i = 0; i < TCC_KEY_COUNT; i++) {
        const tcc_schedule_key *key = &tcc_schedule_keys[i];
        const char *word;
        if (strcmp(key->name, p->key))
            continue;
        if (key->form == TCC_KEY_FORM_TILE)
            add_indices(to, find_kernel(names, p->kernel));
        if (tcc_schedule_key_is_of_steps(key))
            add_intermediates(to, find_kernel(names, p->kernel));
        if (key->form == TCC_KEY_FORM_WORDS)
            add_tensors(to, find_kernel(names, p->kernel));
        for (int64_t w = 0; key->form >= TCC_KEY_FORM_WORD && !tcc_schedule_key_is_of_steps(key) && (word = tcc_schedule_key_word(key, w)); w++)
            if (!t || tcc_schedule_key_has(key, w, t))
                add(to, word, ITEM_WORD, NULL);
    }
}

static void add_elements(items *to)
{
    static const char *const elements[] = {
#define ELEMENT(type) #type,
#include "frontend/elements.def"
    };
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        add(to, elements[i], ITEM_TYPE, NULL);
}

static void add_kernel_names(items *to, const tcc_ast_kernel *k)
{
    const char *name, *doc;
    for (size_t i = 0; k && i < k->params.len; i++)
        add(to, k->params.data[i]->name.text, ITEM_VARIABLE, NULL);
    for (size_t i = 0; k && i < k->stmts.len; i++)
        if (!k->stmts.data[i]->output)
            add(to, k->stmts.data[i]->name.text, ITEM_VARIABLE, NULL);
    add_indices(to, k);
    add(to, "sum", ITEM_KEYWORD, "the sum over indices of the product after it: sum(k) a[m, k] * b[k, n]");
    for (size_t i = 0; lsp_function_at(i, &name, &doc); i++)
        add(to, name, ITEM_FUNCTION, doc);
}

void lsp_complete(tcc_str *out, const lsp_names *names, const char *text, size_t size, const char *target)
{
    place p = find_place(names->arena, text, size);
    items to = {out, 0};
    tcc_tile_token_kind before = p.last[0].kind;
    if (p.in == AT_TOP) {
        static const char *const words[] = {"kernel", "schedule", "const"};
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            add(&to, words[i], ITEM_KEYWORD, NULL);
    } else if (p.in == IN_HEAD && before == TCC_TOK_SCHEDULE) {
        for (size_t i = 0; names->file && i < names->file->kernels.len; i++)
            add(&to, names->file->kernels.data[i]->name.text, ITEM_FUNCTION, NULL);
    } else if (p.in == IN_HEAD && before == TCC_TOK_FOR) {
        for (size_t i = 0; tcc_target_at(i); i++)
            add(&to, tcc_target_at(i)->name, ITEM_WORD, NULL);
    } else if (p.in == IN_HEAD) {
        add(&to, "for", ITEM_KEYWORD, NULL);
    } else if (p.in == IN_SCHEDULE && p.key) {
        add_values(&to, names, &p, p.target ? p.target : target);
    } else if (p.in == IN_SCHEDULE) {
        add_keys(&to, p.target ? p.target : target);
    } else if (p.in == IN_SIGNATURE && before == TCC_TOK_COLON) {
        add_elements(&to);
    } else if (p.in == IN_SIGNATURE) {
        add(&to, "inout", ITEM_KEYWORD, "a tensor that is read and written, in place");
    } else {
        add_kernel_names(&to, find_kernel(names, p.kernel));
    }
}
