/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "frontend/sema.h"
#include "ir/nearest_target.h"
#include "ir/schedule_key.h"
#include "support/str.h"

static const char *const archs[] = {
#define ARCH(name) #name,
#include "frontend/archs.def"
};

#define LEN(a) (sizeof(a) / sizeof *(a))

/* ---- values ---------------------------------------------------------------------------- */

/* A number, or the name of a constant, in the key's range. */
static bool check_number(tcc_sema *s, const tcc_schedule_key *key, const tcc_ast_word *word,
                         int64_t *out)
{
    const tcc_decl *d = word->is_number ? NULL : tcc_names_get(&s->consts, word->name.text);
    bool is_integer = d ? d->constant->is_integer : word->is_number && word->is_integer;
    *out = d ? d->constant->integer : word->integer;
    if (is_integer && *out >= key->min && *out <= key->max)
        return true;
    tcc_error(s->diag, TCC_ERR_TYPE, word->name.loc,
              "'%s' takes whole numbers from %lld to %lld, not '%s'", key->name,
              (long long)key->min, (long long)key->max, word->name.text);
    return false;
}

static bool has_word(const tcc_schedule_key *key, const char *text)
{
    const char *word = NULL;
    for (int64_t i = 0; (word = tcc_schedule_key_word(key, i)) && strcmp(word, text); i++)
        ;
    return word;
}

static void refuse_word(tcc_sema *s, const tcc_schedule_key *key, tcc_loc loc)
{
    tcc_str choices = {0};
    tcc_schedule_key_print_choices(&choices, key);
    tcc_error(s->diag, TCC_ERR_TYPE, loc, "'%s' takes %s", key->name, tcc_str_text(&choices));
    tcc_str_free(&choices);
}

static void check_tensor(tcc_sema *s, const tcc_ast_kernel *kernel, const tcc_ast_name *tensor)
{
    tcc_spelling spelling = {.wanted = tensor->text};
    for (size_t i = 0; i < kernel->params.len; i++) {
        if (kernel->params.data[i]->name.text == tensor->text)
            return;
        tcc_spelling_try(&spelling, kernel->params.data[i]->name.text);
    }
    tcc_error(s->diag, TCC_ERR_TYPE, tensor->loc, "kernel '%s' has no tensor '%s'%s", kernel->name.text, tensor->text,
              tcc_spelling_hint(s->arena, &spelling));
}

static void check_tile_index(tcc_sema *s, const tcc_ast_kernel *kernel, const tcc_ast_name *index)
{
    tcc_spelling spelling = {.wanted = index->text};
    for (size_t i = 0; i < kernel->n_indices; i++) {
        if (kernel->indices[i].name == index->text)
            return;
        tcc_spelling_try(&spelling, kernel->indices[i].name);
    }
    tcc_error(s->diag, TCC_ERR_TYPE, index->loc, "kernel '%s' has no index '%s'%s",
              kernel->name.text, index->text, tcc_spelling_hint(s->arena, &spelling));
}

/* index number, index number, … or tensor word, tensor word, … */
static void check_pairs(tcc_sema *s, const tcc_schedule_key *key, tcc_ast_kernel *kernel,
                        tcc_ast_setting *setting)
{
    bool words_of_tensors = key->form == TCC_KEY_FORM_WORDS;
    size_t n = setting->words.len;
    const tcc_ast_word *words = setting->words.data;
    bool pairs = n == 2 * setting->n_groups && n > 0;
    for (size_t i = 0; pairs && i < n; i += 2)
        pairs = !words[i].is_number;
    if (!pairs) {
        tcc_error(s->diag, TCC_ERR_TYPE, setting->key.loc, "'%s' takes %s: %s %s%s;", key->name,
                  words_of_tensors ? "tensors and words" : "indices and numbers", key->name,
                  words_of_tensors ? "A " : "", key->words);
        return;
    }
    tcc_attr *items = TCC_NEW_ARRAY(s->arena, tcc_attr, n);
    tcc_names seen = {0};
    for (size_t i = 0; i < n && s->diag->n_errors < TCC_MAX_ERRORS; i += 2) {
        const tcc_ast_name *name = &words[i].name, *value = &words[i + 1].name;
        if (words_of_tensors)
            check_tensor(s, kernel, name);
        else if (kernel->valid)
            check_tile_index(s, kernel, name);
        if (tcc_names_get(&seen, name->text))
            tcc_error(s->diag, TCC_ERR_TYPE, name->loc, "%s '%s' occurs twice in '%s'",
                      words_of_tensors ? "tensor" : "index", name->text, key->name);
        else
            tcc_names_put(s->arena, &seen, name->text, &items[i]);
        items[i] = (tcc_attr){.kind = TCC_ATTR_STR, .s = name->text};
        items[i + 1] = (tcc_attr){.kind = words_of_tensors ? TCC_ATTR_STR : TCC_ATTR_INT, .s = value->text};
        if (!words_of_tensors)
            check_number(s, key, &words[i + 1], &items[i + 1].i);
        else if (!has_word(key, value->text))
            refuse_word(s, key, value->loc);
    }
    setting->value = (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, n}};
}

static void check_intermediate(tcc_sema *s, const tcc_ast_kernel *kernel, const tcc_ast_name *name)
{
    tcc_spelling spelling = {.wanted = name->text};
    for (size_t i = 0; i < kernel->stmts.len; i++) {
        const tcc_ast_stmt *stmt = kernel->stmts.data[i];
        if (stmt->output)
            continue;
        if (stmt->name.text == name->text)
            return;
        tcc_spelling_try(&spelling, stmt->name.text);
    }
    tcc_error(s->diag, TCC_ERR_TYPE, name->loc, "kernel '%s' has no intermediate '%s'%s", kernel->name.text, name->text,
              tcc_spelling_hint(s->arena, &spelling));
}

/* intermediate, intermediate, … */
static void check_names(tcc_sema *s, const tcc_schedule_key *key, const tcc_ast_kernel *kernel, tcc_ast_setting *setting)
{
    size_t n = setting->words.len;
    const tcc_ast_word *words = setting->words.data;
    bool names = n == setting->n_groups && n > 0;
    for (size_t i = 0; i < n; i++)
        names &= !words[i].is_number;
    if (!names) {
        tcc_error(s->diag, TCC_ERR_TYPE, setting->key.loc, "'%s' takes intermediates: %s %s;", key->name, key->name,
                  key->words);
        return;
    }
    tcc_attr *items = TCC_NEW_ARRAY(s->arena, tcc_attr, n);
    for (size_t i = 0; i < n && s->diag->n_errors < TCC_MAX_ERRORS; i++) {
        items[i] = (tcc_attr){.kind = TCC_ATTR_STR, .s = words[i].name.text};
        if (kernel->valid)
            check_intermediate(s, kernel, &words[i].name);
        for (size_t k = 0; k < i; k++)
            if (items[k].s == items[i].s)
                tcc_error(s->diag, TCC_ERR_TYPE, words[i].name.loc, "intermediate '%s' occurs twice in '%s'", items[i].s,
                          key->name);
    }
    setting->value = (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, n}};
}

static void check_word(tcc_sema *s, const tcc_schedule_key *key, tcc_ast_setting *setting)
{
    const tcc_ast_word *word = setting->words.data;
    if (!word && key->form == TCC_KEY_FORM_WORD && key->max) {
        setting->value = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_schedule_key_word(key, key->max)};
        return;
    }
    if (setting->words.len != 1 || !has_word(key, word->name.text)) {
        refuse_word(s, key, word ? word->name.loc : setting->key.loc);
        return;
    }
    setting->value = key->form == TCC_KEY_FORM_WORD ? (tcc_attr){.kind = TCC_ATTR_STR, .s = word->name.text}
                                       : (tcc_attr){.kind = TCC_ATTR_INT, .i = word->integer};
}

/* ---- settings and schedules ------------------------------------------------------------ */

static const tcc_schedule_key *find_key(tcc_sema *s, tcc_ast_name name)
{
    tcc_spelling spelling = {.wanted = name.text};
    for (size_t i = 0; i < TCC_KEY_COUNT; i++) {
        if (!strcmp(tcc_schedule_keys[i].name, name.text))
            return &tcc_schedule_keys[i];
        tcc_spelling_try(&spelling, tcc_schedule_keys[i].name);
    }
    tcc_error(s->diag, TCC_ERR_TYPE, name.loc, "unknown schedule key '%s'%s", name.text,
              tcc_spelling_hint(s->arena, &spelling));
    return NULL;
}

static void check_setting(tcc_sema *s, tcc_ast_kernel *kernel, tcc_ast_setting *setting)
{
    const tcc_schedule_key *key = find_key(s, setting->key);
    if (!key)
        return;
    switch (key->form) {
    case TCC_KEY_FORM_TILE:
    case TCC_KEY_FORM_WORDS: check_pairs(s, key, kernel, setting); break;
    case TCC_KEY_FORM_NAMES: check_names(s, key, kernel, setting); break;
    case TCC_KEY_FORM_NUMBER:
        if (setting->words.len == 1) {
            setting->value.kind = TCC_ATTR_INT;
            check_number(s, key, setting->words.data, &setting->value.i);
        } else {
            tcc_error(s->diag, TCC_ERR_TYPE, setting->key.loc,
                      "'%s' takes one number from %lld to %lld", key->name, (long long)key->min,
                      (long long)key->max);
        }
        break;
    case TCC_KEY_FORM_WORD:
    case TCC_KEY_FORM_BYTES: check_word(s, key, setting); break;
    }
}

static void check_settings(tcc_sema *s, tcc_ast_kernel *kernel, tcc_ast_schedule *schedule)
{
    tcc_names seen = {0};
    for (size_t i = 0; i < schedule->settings.len && s->diag->n_errors < TCC_MAX_ERRORS; i++) {
        tcc_ast_setting *setting = schedule->settings.data[i];
        const tcc_ast_setting *first = tcc_names_get(&seen, setting->key.text);
        if (!first) {
            tcc_names_put(s->arena, &seen, setting->key.text, setting);
            check_setting(s, kernel, setting);
            continue;
        }
        tcc_error(s->diag, TCC_ERR_TYPE, setting->key.loc, "schedule key '%s' is set twice",
                  setting->key.text);
        tcc_note(s->diag, first->key.loc, "'%s' is first set here", setting->key.text);
    }
}

static bool check_arch(tcc_sema *s, tcc_ast_name target)
{
    tcc_spelling spelling = {.wanted = target.text};
    for (size_t i = 0; i < LEN(archs); i++) {
        if (!strcmp(archs[i], target.text))
            return true;
        tcc_spelling_try(&spelling, archs[i]);
    }
    if (tcc_nearest_target_tell(target.text, s->diag, target.loc).target)
        return false;
    tcc_error(s->diag, TCC_ERR_TARGET, target.loc, "unknown target '%s'%s", target.text,
              tcc_spelling_hint(s->arena, &spelling));
    return false;
}

static void check_schedule(tcc_sema *s, tcc_ast_schedule *schedule)
{
    tcc_ast_kernel *kernel = tcc_names_get(&s->kernels, schedule->kernel.text);
    if (!kernel) {
        tcc_spelling spelling = {.wanted = schedule->kernel.text};
        tcc_spelling_try_all(&spelling, &s->kernels);
        tcc_error(s->diag, TCC_ERR_TYPE, schedule->kernel.loc, "no kernel '%s' in this file%s",
                  schedule->kernel.text, tcc_spelling_hint(s->arena, &spelling));
        return;
    }
    if (!check_arch(s, schedule->target))
        return;
    for (size_t i = 0; i < kernel->schedules.len; i++)
        if (kernel->schedules.data[i]->target.text == schedule->target.text) {
            tcc_error(s->diag, TCC_ERR_TYPE, schedule->kernel.loc,
                      "kernel '%s' has two schedules for %s", kernel->name.text,
                      schedule->target.text);
            tcc_note(s->diag, kernel->schedules.data[i]->kernel.loc, "the first one is here");
            return;
        }
    TCC_PUSH(s->arena, &kernel->schedules, schedule);
    check_settings(s, kernel, schedule);
    if (!strcmp(schedule->target.text, s->target))
        kernel->schedule = schedule;
}

void tcc_sema_schedules(tcc_sema *s)
{
    for (size_t i = 0; i < s->file->schedules.len && s->diag->n_errors < TCC_MAX_ERRORS; i++)
        check_schedule(s, s->file->schedules.data[i]);
}
