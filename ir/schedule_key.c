/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/schedule_key.h"

#include <stdlib.h>
#include <string.h>

#define CAN TCC_CAN
#define EVERY true
#define FIRST false
const tcc_schedule_key tcc_schedule_keys[TCC_KEY_COUNT] = {
#define KEY(name, form, min, max, words, needs, variants, doc)                                     \
    {#name, TCC_KEY_FORM_##form, min, max, words, needs, variants},
#include "ir/schedule_keys.def"
};

bool tcc_schedule_key_is_list(const tcc_schedule_key *key)
{
    return key->form == TCC_KEY_FORM_TILE || key->form == TCC_KEY_FORM_WORDS || key->form == TCC_KEY_FORM_NAMES;
}

bool tcc_schedule_key_is_of_steps(const tcc_schedule_key *key)
{
    return key->form == TCC_KEY_FORM_NAMES;
}

bool tcc_schedule_is_open(const tcc_func *f)
{
    bool open = true;
    for (int i = 0; i < TCC_KEY_COUNT; i++)
        open &= tcc_schedule_key_is_of_steps(&tcc_schedule_keys[i]) || !tcc_attr_find(&f->attrs, tcc_schedule_keys[i].name);
    return open;
}

bool tcc_schedule_key_is_for(const tcc_schedule_key *key, const tcc_target *target)
{
    return target && !tcc_target_cannot(target, key->needs);
}

bool tcc_schedule_key_has(const tcc_schedule_key *key, int64_t i, const tcc_target *target)
{
    tcc_multiplied m;
    if (key != &tcc_schedule_keys[TCC_KEY_instr] || i == TCC_INSTR_NAIVE)
        return true;
    for (const tcc_target *t = target; t; t = t->plain ? tcc_target_find(t->plain) : NULL)
        for (size_t j = 0; tcc_target_multiplies(t, j, &m); j++)
            if ((int64_t)m.instr == i)
                return true;
    return false;
}

const char *tcc_schedule_key_word(const tcc_schedule_key *key, int64_t i)
{
    const char *word = key->words;
    for (; *word && i > 0; i--)
        word += strlen(word) + 1;
    return *word && !i ? word : NULL;
}

/* The number that a word of BYTES stands for: 0 for "none". */
static int64_t bytes_of(const char *word)
{
    return atoll(word);
}

bool tcc_schedule_key_read(const tcc_schedule_key *key, const tcc_attr *value, int64_t *out)
{
    bool is_int = value->kind == TCC_ATTR_INT, is_word = value->kind == TCC_ATTR_STR;
    const char *word;
    *out = is_int ? value->i : 0;
    switch (key->form) {
    case TCC_KEY_FORM_NUMBER: return is_int && *out >= key->min && *out <= key->max;
    case TCC_KEY_FORM_BYTES:
        for (int64_t i = 0; is_int && (word = tcc_schedule_key_word(key, i)); i++)
            if (bytes_of(word) == *out)
                return true;
        return false;
    case TCC_KEY_FORM_WORD:
        for (; is_word && (word = tcc_schedule_key_word(key, *out)); ++*out)
            if (!strcmp(value->s, word))
                return true;
        return false;
    default: return false;
    }
}

int64_t tcc_schedule_key_of(const tcc_func *f, tcc_schedule_key_id id, int64_t otherwise)
{
    const tcc_named_attr *a = tcc_attr_find(&f->attrs, tcc_schedule_keys[id].name);
    int64_t value;
    return a && tcc_schedule_key_read(&tcc_schedule_keys[id], &a->value, &value) ? value : otherwise;
}

void tcc_schedule_key_set(tcc_func *f, tcc_schedule_key_id id, int64_t value)
{
    const tcc_schedule_key *key = &tcc_schedule_keys[id];
    if (key->form == TCC_KEY_FORM_WORD)
        tcc_attr_set_str(f->ir, &f->attrs, key->name, tcc_schedule_key_word(key, value));
    else
        tcc_attr_set_int(f->ir, &f->attrs, key->name, value);
}

void tcc_schedule_sizes_set(tcc_func *f, tcc_schedule_key_id id, size_t n, const char *const *indices,
                            const int64_t *sizes)
{
    const char *key = tcc_schedule_keys[id].name;
    const tcc_named_attr *given = tcc_attr_find(&f->attrs, key);
    tcc_attr *items = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, 2 * n);
    for (size_t i = 0; i < n; i++) {
        items[2 * i] = (tcc_attr){.kind = TCC_ATTR_STR, .s = indices[i]};
        items[2 * i + 1] = (tcc_attr){.kind = TCC_ATTR_INT, .i = sizes[i]};
    }
    tcc_attr_set(f->ir, &f->attrs, key, (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, 2 * n}},
                 given ? given->loc : (tcc_loc){0, 0});
}

void tcc_schedule_key_print(tcc_str *out, const tcc_schedule_key *key, int64_t value)
{
    if (key->form == TCC_KEY_FORM_WORD)
        tcc_str_puts(out, tcc_schedule_key_word(key, value));
    else if (key->form == TCC_KEY_FORM_BYTES && !value)
        tcc_str_puts(out, "none");
    else
        tcc_str_printf(out, "%lld", (long long)value);
}

void tcc_schedule_key_print_choices(tcc_str *out, const tcc_schedule_key *key)
{
    const char *word;
    if (!key->words) {
        tcc_str_printf(out, "%lld to %lld", (long long)key->min, (long long)key->max);
        return;
    }
    for (int64_t i = 0; (word = tcc_schedule_key_word(key, i)); i++) {
        bool last = !tcc_schedule_key_word(key, i + 1);
        tcc_str_printf(out, "%s%s", !i ? "" : last ? " or " : ", ", word);
    }
}
