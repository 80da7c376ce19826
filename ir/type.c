/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/type.h"

#include <string.h>

#include "ir/ir.h"

static const struct {
    const char *name;
    unsigned bits;
    tcc_scalar_class class;
} scalars[] = {
#define TCC_SCALAR(id, bits, class) {#id, bits, TCC_CLASS_##class},
#include "ir/types.def"
};

static const char *const kinds[] = {
#define TCC_KIND(id, doc) #id,
#include "ir/types.def"
};

const char *tcc_scalar_name(tcc_scalar s)
{
    return scalars[s].name;
}

unsigned tcc_scalar_bits(tcc_scalar s)
{
    return scalars[s].bits;
}

tcc_scalar_class tcc_scalar_classify(tcc_scalar s)
{
    return scalars[s].class;
}

bool tcc_scalar_find(const char *name, size_t n, tcc_scalar *out)
{
    for (int i = 0; i < TCC_SCALAR_COUNT; i++)
        if (strlen(scalars[i].name) == n && !memcmp(scalars[i].name, name, n)) {
            *out = (tcc_scalar)i;
            return true;
        }
    return false;
}

const char *tcc_kind_name(tcc_kind k)
{
    return kinds[k];
}

bool tcc_type_has_elem(const tcc_type *t)
{
    return t->kind != TCC_KIND_ring && t->kind != TCC_KIND_tensormap;
}

static bool matches(const tcc_type *t, tcc_kind kind, tcc_scalar elem, unsigned rank,
                    const tcc_dim *dims)
{
    if (t->kind != kind || t->elem != elem || t->rank != rank)
        return false;
    for (unsigned i = 0; i < rank; i++)
        if (t->dims[i].name != dims[i].name || t->dims[i].size != dims[i].size)
            return false;
    return true;
}

const tcc_type *tcc_type_get(tcc_ir *ir, tcc_kind kind, tcc_scalar elem, unsigned rank,
                             const tcc_dim *dims)
{
    tcc_dim *interned = TCC_NEW_ARRAY(ir->arena, tcc_dim, rank);
    uint32_t h = (uint32_t)kind * 31 + (uint32_t)elem;
    for (unsigned i = 0; i < rank; i++) {
        if (dims[i].name)
            interned[i].name = tcc_ir_name(ir, dims[i].name);
        else
            interned[i].size = dims[i].size;
        const char *name = interned[i].name ? interned[i].name : "";
        h = h * 31 + (uint32_t)interned[i].size + (unsigned char)name[0];
    }
    const tcc_type **bucket = &ir->types[h % (sizeof ir->types / sizeof *ir->types)];
    for (const tcc_type *t = *bucket; t; t = t->next)
        if (matches(t, kind, elem, rank, interned))
            return t;
    tcc_type *t = tcc_arena_alloc(ir->arena, sizeof *t + rank * sizeof *dims);
    t->kind = kind;
    t->elem = elem;
    t->rank = rank;
    t->next = *bucket;
    if (rank)
        memcpy(t->dims, interned, rank * sizeof *dims);
    *bucket = t;
    return t;
}

const tcc_type *tcc_type_scalar(tcc_ir *ir, tcc_scalar elem)
{
    return tcc_type_get(ir, TCC_KIND_scalar, elem, 0, NULL);
}

const tcc_type *tcc_type_sized(tcc_ir *ir, tcc_kind kind, tcc_scalar elem, unsigned rank,
                               const int64_t *sizes)
{
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, rank);
    for (unsigned i = 0; i < rank; i++)
        dims[i].size = sizes[i];
    return tcc_type_get(ir, kind, elem, rank, dims);
}

const tcc_type *tcc_type_with_elem(tcc_ir *ir, const tcc_type *t, tcc_scalar elem)
{
    return tcc_type_get(ir, t->kind, elem, t->rank, t->dims);
}

int64_t tcc_type_count(const tcc_type *t)
{
    int64_t n = 1;
    for (unsigned i = 0; i < t->rank; i++)
        n *= t->dims[i].size;
    return n;
}

bool tcc_type_is_scalar(const tcc_type *t, tcc_scalar elem)
{
    return t->kind == TCC_KIND_scalar && t->elem == elem;
}

void tcc_type_print(tcc_str *out, const tcc_type *t)
{
    if (t->kind == TCC_KIND_scalar) {
        tcc_str_puts(out, tcc_scalar_name(t->elem));
        return;
    }
    tcc_str_puts(out, tcc_kind_name(t->kind));
    if (!tcc_type_has_elem(t))
        return;
    tcc_str_printf(out, "<%s", tcc_scalar_name(t->elem));
    for (unsigned i = 0; i < t->rank; i++) {
        tcc_str_puts(out, i ? ", " : "[");
        if (t->dims[i].name)
            tcc_str_puts(out, t->dims[i].name);
        else
            tcc_str_printf(out, "%lld", (long long)t->dims[i].size);
    }
    tcc_str_puts(out, t->rank ? "]>" : ">");
}
