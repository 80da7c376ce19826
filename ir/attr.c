/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/index.h"
#include "ir/ir.h"

/* Most names differ in the first letter. */
const tcc_named_attr *tcc_attr_find(const tcc_attrs *attrs, const char *name)
{
    for (size_t i = 0; i < attrs->len; i++)
        if (*attrs->data[i].name == *name && !strcmp(attrs->data[i].name, name))
            return &attrs->data[i];
    return NULL;
}

void tcc_attr_set(tcc_ir *ir, tcc_attrs *attrs, const char *name, tcc_attr value, tcc_loc loc)
{
    for (size_t i = 0; i < attrs->len; i++)
        if (!strcmp(attrs->data[i].name, name)) {
            attrs->data[i].value = value;
            attrs->data[i].loc = loc;
            return;
        }
    if (!attrs->cap) { /* most ops have one */
        attrs->data = TCC_NEW(ir->arena, tcc_named_attr);
        attrs->cap = 1;
    }
    TCC_PUSH(ir->arena, attrs, (tcc_named_attr){tcc_ir_name(ir, name), value, loc});
}

void tcc_attr_carry(tcc_ir *ir, tcc_attrs *attrs, const tcc_attrs *from, const char *name)
{
    const tcc_named_attr *a = tcc_attr_find(from, name);
    if (a)
        tcc_attr_set(ir, attrs, name, a->value, a->loc);
}

void tcc_attr_remove(tcc_attrs *attrs, const char *name)
{
    for (size_t i = 0; i < attrs->len; i++)
        if (!strcmp(attrs->data[i].name, name)) {
            attrs->len--;
            memmove(&attrs->data[i], &attrs->data[i + 1], (attrs->len - i) * sizeof *attrs->data);
            return;
        }
}

void tcc_attr_set_int(tcc_ir *ir, tcc_attrs *attrs, const char *name, int64_t i)
{
    tcc_attr_set(ir, attrs, name, (tcc_attr){.kind = TCC_ATTR_INT, .i = i}, (tcc_loc){0, 0});
}

void tcc_attr_set_str(tcc_ir *ir, tcc_attrs *attrs, const char *name, const char *s)
{
    tcc_attr_set(ir, attrs, name, (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(ir, s)},
                 (tcc_loc){0, 0});
}

static tcc_attr list_of(tcc_attr *items, size_t n)
{
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, n}};
}

void tcc_attr_append(tcc_ir *ir, tcc_attrs *attrs, const char *name, tcc_attr item)
{
    tcc_attr old = tcc_attr_list(attrs, name), *items = TCC_NEW_ARRAY(ir->arena, tcc_attr, old.list.n + 1);
    if (old.list.n)
        memcpy(items, old.list.items, old.list.n * sizeof *items);
    items[old.list.n] = item;
    tcc_attr_set(ir, attrs, name, list_of(items, old.list.n + 1), (tcc_loc){0, 0});
}

void tcc_attr_set_ints(tcc_ir *ir, tcc_attrs *attrs, const char *name, size_t n, const int64_t *v)
{
    tcc_attr *items = TCC_NEW_ARRAY(ir->arena, tcc_attr, n);
    for (size_t i = 0; i < n; i++)
        items[i] = (tcc_attr){.kind = TCC_ATTR_INT, .i = v[i]};
    tcc_attr_set(ir, attrs, name, list_of(items, n), (tcc_loc){0, 0});
}

void tcc_attr_set_strs(tcc_ir *ir, tcc_attrs *attrs, const char *name, size_t n,
                       const char *const *v)
{
    tcc_attr *items = TCC_NEW_ARRAY(ir->arena, tcc_attr, n);
    for (size_t i = 0; i < n; i++)
        items[i] = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(ir, v[i])};
    tcc_attr_set(ir, attrs, name, list_of(items, n), (tcc_loc){0, 0});
}

int64_t tcc_attr_int(const tcc_attrs *attrs, const char *name, int64_t otherwise)
{
    const tcc_named_attr *a = tcc_attr_find(attrs, name);
    return a && a->value.kind == TCC_ATTR_INT ? a->value.i : otherwise;
}

const char *tcc_attr_str(const tcc_attrs *attrs, const char *name, const char *otherwise)
{
    const tcc_named_attr *a = tcc_attr_find(attrs, name);
    return a && a->value.kind == TCC_ATTR_STR ? a->value.s : otherwise;
}

bool tcc_attr_is(const tcc_attrs *attrs, const char *name, const char *s)
{
    const char *value = tcc_attr_str(attrs, name, NULL);
    return value && !strcmp(value, s);
}

bool tcc_attr_scalar(const tcc_attrs *attrs, const char *name, tcc_scalar *out)
{
    const char *word = tcc_attr_str(attrs, name, "");
    return tcc_scalar_find(word, strlen(word), out);
}

tcc_attr tcc_attr_list(const tcc_attrs *attrs, const char *name)
{
    const tcc_named_attr *a = tcc_attr_find(attrs, name);
    return a && a->value.kind == TCC_ATTR_LIST ? a->value : list_of(NULL, 0);
}

bool tcc_attr_equal(const tcc_attr *a, const tcc_attr *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case TCC_ATTR_INT: return a->i == b->i;
    case TCC_ATTR_FLOAT: return !memcmp(&a->f, &b->f, sizeof a->f); /* NaN equals itself */
    case TCC_ATTR_STR: return !strcmp(a->s, b->s);
    case TCC_ATTR_INDEX: return tcc_index_equal(a->index, b->index);
    default: break;
    }
    if (a->list.n != b->list.n)
        return false;
    for (size_t i = 0; i < a->list.n; i++)
        if (!tcc_attr_equal(&a->list.items[i], &b->list.items[i]))
            return false;
    return true;
}

bool tcc_attrs_equal(const tcc_attrs *a, const tcc_attrs *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        const tcc_named_attr *other = tcc_attr_find(b, a->data[i].name);
        if (!other || !tcc_attr_equal(&a->data[i].value, &other->value))
            return false;
    }
    return true;
}

static bool is_of_kind(tcc_attr a, char kind)
{
    switch (kind) {
    case 's': return a.kind == TCC_ATTR_STR;
    case 'i': return a.kind == TCC_ATTR_INT;
    case 'l': return a.kind == TCC_ATTR_LIST;
    default: return a.kind == TCC_ATTR_STR || a.kind == TCC_ATTR_INT;
    }
}

bool tcc_attr_is_record(tcc_attr a, const char *word, const char *kinds)
{
    bool is =
        a.kind == TCC_ATTR_LIST && a.list.n == 1 + strlen(kinds) && is_of_kind(a.list.items[0], 's') &&
        !strcmp(a.list.items[0].s, word);
    for (size_t i = 0; is && kinds[i]; i++)
        is = is_of_kind(a.list.items[1 + i], kinds[i]);
    return is;
}

tcc_attr tcc_attr_of_index(const tcc_index_expr *x)
{
    tcc_attr a = {.kind = TCC_ATTR_INDEX, .index = x};
    const char *name = tcc_index_plain(x);
    if (name)
        a = (tcc_attr){.kind = TCC_ATTR_STR, .s = name};
    else if (tcc_index_is_number(x, &a.i))
        a.kind = TCC_ATTR_INT;
    return a;
}

tcc_attr tcc_attr_of_dim(tcc_dim d)
{
    return d.name ? (tcc_attr){.kind = TCC_ATTR_STR, .s = d.name} : (tcc_attr){.kind = TCC_ATTR_INT, .i = d.size};
}

const tcc_index_expr *tcc_index_of_attr(tcc_ir *ir, tcc_attr a)
{
    return a.kind == TCC_ATTR_STR     ? tcc_index_name(ir, a.s)
           : a.kind == TCC_ATTR_INT   ? tcc_index_number(ir, a.i)
           : a.kind == TCC_ATTR_INDEX ? a.index
                                      : NULL;
}
